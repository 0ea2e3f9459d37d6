"""Figures with a knob: what is refused, what is written, and that all frames are drawn on the same axes."""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cfltr_book import Run
from cfltr_book.reporting.sliders import FEWEST, LONGEST_FACT, MOST

slider = Run("smoke", "digits").slider
CAPTION = "Share of the users who look at each rank; no data are involved."
pytestmark = pytest.mark.usefixtures("canvas")

KNOB = "severity of position bias η"
VALUES = [0, 0.5, 1, 2]


def told(eta: float) -> tuple[str, str]:
    fact = f"{3.0**-eta:.0%} of the users look at rank 3"
    return fact, f"Line chart of the share of users who look at ranks 1 to 3 at eta {eta:g}: {fact}."


def examined(eta: float) -> tuple[Figure, dict[str, Any], str, str]:
    """One frame, on axes whose limits follow from its own numbers."""
    ranks = np.arange(1.0, 4.0)
    fig, ax = plt.subplots()
    ax.plot(ranks, 100 * ranks**-eta)
    ax.set(xlabel="rank", ylabel="per cent")
    return fig, {"rank": ranks, "share": ranks**-eta}, *told(eta)


def changed(position: int, value: Any) -> Any:
    """``examined`` with one part of what it gives at eta 1 replaced."""

    def draw(eta: float) -> tuple[Any, ...]:
        parts = list(examined(eta))
        if eta == 1:
            parts[position] = value
        return tuple(parts)

    return draw


def on_axes(rows: int = 1, size: tuple[int, int] | None = None, **settings: Any) -> Any:
    """``examined`` with other axes at eta 1."""

    def draw(eta: float) -> tuple[Any, ...]:
        found = examined(eta)
        if eta != 1:
            return found
        fig, axes = plt.subplots(rows, 1, squeeze=False, figsize=size)
        axes[0, 0].set(**{"xlabel": "rank", "ylabel": "per cent", **settings})
        return fig, *found[1:]

    return draw


OTHER_AXES: list[dict[str, Any]] = [{"size": (5, 9)}, {"rows": 2}]


def read(run: Path, id: str) -> dict[str, Any]:
    return dict(json.loads((run / f"{id}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("dense", [False, True])
def test_a_slider_is_a_figure_with_frames_beside_it(run: Path, dense: bool) -> None:
    plt.close("all")  # whatever an earlier test left open
    kept = plt.figure()
    slider(examined, "fig-looks", knob=KNOB, values=VALUES, start=0.5, caption=CAPTION, dense=dense)
    assert plt.get_fignums() == [kept.number], "its own figures are closed, and no other"
    kind = "png" if dense else "svg"
    images = [f"fig-looks.0.{kind}", f"fig-looks.{kind}", f"fig-looks.2.{kind}", f"fig-looks.3.{kind}"]
    files = [f"fig-looks.{ending}" for ending in ("card.png", "csv", "json")]
    assert sorted(path.name for path in run.iterdir()) == sorted([*images, *files])
    assert len({(run / name).read_bytes() for name in images}) == len(images), "every frame shows something else"
    about = read(run, "fig-looks")
    assert about["caption"].startswith(CAPTION)
    assert about["caption"].endswith(f"a slider takes the {KNOB} from 0 to 2; without the slider it is 0.5.")
    assert about["alt"] == told(0.5)[1]
    assert (about["image"], about["data"]) == (images[1], "fig-looks.csv")
    assert about["slider"] == {
        "knob": KNOB,
        "start": 1,
        "frames": [
            {"text": f"{eta:g}", "fact": told(eta)[0], "alt": told(eta)[1], "image": name}
            for eta, name in zip(VALUES, images, strict=True)
        ],
    }
    table = pd.read_csv(run / "fig-looks.csv")
    assert list(table) == [KNOB, "rank", "share"]
    # A literal loop over knob and rank.
    expected = [[eta, rank, rank**-eta] for eta in VALUES for rank in (1.0, 2.0, 3.0)]
    np.testing.assert_allclose(table.to_numpy(), expected, rtol=1e-11)


def test_the_middle_comes_first_and_the_same_call_writes_the_same_bytes(run: Path) -> None:
    slider(examined, "fig-looks", knob=KNOB, values=VALUES, caption=CAPTION, form="{:.1f}")
    first = {path.name: path.read_bytes() for path in run.iterdir()}
    assert read(run, "fig-looks")["slider"]["start"] == 2
    assert [frame["text"] for frame in read(run, "fig-looks")["slider"]["frames"]] == ["0.0", "0.5", "1.0", "2.0"]
    slider(examined, "fig-looks", knob=KNOB, values=VALUES, caption=CAPTION, form="{:.1f}")
    assert {path.name: path.read_bytes() for path in run.iterdir()} == first


def test_the_limits_of_all_frames_hold_what_any_shows() -> None:
    made: list[Figure] = []

    def draw(eta: float) -> tuple[Any, ...]:
        found = examined(eta)
        found[0].axes[0].set_xlim(3 + eta, 0)
        made.append(found[0])
        return found

    alone = [examined(eta)[0].axes[0].get_ylim() for eta in VALUES]
    assert len(set(alone)) > 1, "drawn alone, each has limits of its own"
    slider(draw, "fig-looks", knob=KNOB, values=VALUES, caption=CAPTION)
    assert {fig.axes[0].get_xlim() for fig in made} == {(5, 0)}, "turned, as each of them"
    assert {fig.axes[0].get_ylim() for fig in made} == {(min(low for low, _ in alone), max(high for _, high in alone))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"caption": "Short."}, "caption of fig-looks"),
        *(({"values": range(n)}, rf"expected {FEWEST} to {MOST} numbers, got shape \({n},\)") for n in (2, MOST + 1)),
        *(({"values": [0, x, 1]}, r"values\[2\] of fig-looks is 1, not above the one before") for x in (2, 1)),
        *(({"values": [0, 1, x]}, rf"values\[2\] of fig-looks is {x}: expected a finite") for x in (np.inf, np.nan)),
        ({"form": "{:.0f}"}, "form of fig-looks"),
        ({"start": 0.7}, "start of fig-looks is 0.7"),
        *(({"knob": knob}, "knob of fig-looks is") for knob in (" ", "$\\eta$")),
        ({"knob": "rank"}, "data of fig-looks has a column 'rank' of its own"),
        ({"draw": changed(1, {})}, f"at {KNOB} = 1: data of fig-looks is empty"),
        ({"draw": changed(3, "A chart.")}, f"at {KNOB} = 1: alt of fig-looks"),
        ({"draw": changed(3, told(0)[1])}, "alt of fig-looks: two frames have the same one"),
        *(
            ({"draw": changed(2, text)}, f"fact of fig-looks at {KNOB} = 1")
            for text in ("", "x" * (LONGEST_FACT + 1), "two\nlines", "it **wins**")
        ),
        ({"draw": lambda eta: examined(eta)[:3]}, "draw of fig-looks at .* = 0"),
        *(({"draw": on_axes(**more)}, "1 has another size or number of axes than 0") for more in OTHER_AXES),
        *(({"draw": on_axes(**{f"{xy}label": "z"})}, f"1 and 0 differ in the label of {xy}") for xy in "xy"),
        *(({"draw": on_axes(**{f"{xy}scale": "log"})}, f"1 and 0 differ in the scale of {xy}") for xy in "xy"),
    ],
)
def test_slider_refuses(run: Path, changes: dict[str, Any], message: str) -> None:
    arguments = {"draw": examined, "id": "fig-looks", "knob": KNOB, "values": VALUES, "caption": CAPTION} | changes
    before = plt.get_fignums()  # what other tests left open
    with pytest.raises(ValueError, match=message):
        slider(arguments.pop("draw"), arguments.pop("id"), **arguments)
    assert not run.exists()
    assert plt.get_fignums() == before


def test_the_slider_of_a_run_says_where_it_stands(run: Path) -> None:
    here = Run("smoke", "digits", 3)
    for name, seeds in (("fig-one", None), ("fig-two", here.seeds)):
        here.slider(examined, name, knob=KNOB, values=VALUES, caption=CAPTION, seeds=seeds)
    assert "digits" not in read(run, "fig-one")["caption"]
    assert read(run, "fig-two")["caption"].startswith(
        f"{CAPTION} {here.setting_of(here.seeds)}. On the book's site a slider "
    )
