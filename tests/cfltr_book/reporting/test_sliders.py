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


def test_the_slider_of_a_run_says_where_it_stands(run: Path) -> None:
    here = Run("smoke", "digits", 3)
    for name, seeds in (("fig-one", None), ("fig-two", here.seeds)):
        here.slider(examined, name, knob=KNOB, values=VALUES, caption=CAPTION, seeds=seeds)
    assert "digits" not in read(run, "fig-one")["caption"]
    assert read(run, "fig-two")["caption"].startswith(
        f"{CAPTION} {here.setting_of(here.seeds)}. On the book's site a slider "
    )
