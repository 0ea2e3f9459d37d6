"""Figures: what is refused, what is written, the same bytes twice; and the numbers that prose quotes."""

import io
import json
import math
import re
from pathlib import Path

import IPython.display
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import oracles
import pandas as pd
import pytest
from IPython.core import getipython
from matplotlib.markers import MarkerStyle

from cfltr_book import METHODS, curves, figure, record, style
from cfltr_book.reporting import pictures
from cfltr_book.reporting.figures import band

CAPTION = "Estimates of two methods on a generated corpus; bands are 95 % intervals over 5 seeds."
ALT = "Line plot of estimate against clicks: the line of IPS stays at 2.5, the naive one falls to 1.1."
CSV = "clicks,ips,method\n10,2.5,a\n100,0.333333333333,b\n1000,1e-09,c\n"
DATA = {"clicks": [10, 100, 1000], "ips": [2.5, 1 / 3, 1e-9], "method": ["a", "b", "c"]}


STYLE_SHEET = Path(__file__).resolve().parents[3] / "_static" / "book.css"
# Okabe and Ito's palette, its orange and sky blue darkened until a line of them is seen on white, and Paul Tol's muted
# one: made for colour-blind readers.  A grey, or black, has three equal channels.
SAFE = {"#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#B87A00", "#3A94CC"}
SAFE |= {"#332288", "#88CCEE", "#44AA99", "#117733", "#999933", "#DDCC77", "#CC6677", "#882255", "#AA4499"}


pytestmark = pytest.mark.usefixtures("canvas")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict, dict]]:
    """What a notebook would be given to show."""
    bundles: list[tuple[dict, dict]] = []
    monkeypatch.setattr(getipython, "get_ipython", object)
    monkeypatch.setattr(IPython.display, "display", lambda bundle, raw, metadata: bundles.append((bundle, metadata)))
    return bundles


def plot():
    fig, ax = plt.subplots()
    ax.plot([1, 2, 3], [2.5, 2.0, 1.0], label="ips", **METHODS["ips"])
    ax.fill_between([1, 2, 3], [2, 1, 0], [3, 3, 2], alpha=0.2)
    ax.set_xlabel("clicks")
    ax.legend()
    return fig


def test_methods_differ_in_colour_and_in_marker() -> None:
    assert {"truth", "naive", "ips"} <= set(METHODS)
    colours, markers = [m["color"] for m in METHODS.values()], [m["marker"] for m in METHODS.values()]
    assert len(set(colours)) == len(set(markers)) == len(METHODS)
    for colour in colours:
        assert colour in SAFE or colour[1:3] == colour[3:5] == colour[5:7], colour
    for marker in markers:
        MarkerStyle(marker)  # or Matplotlib does not know it
    with pytest.raises(TypeError):
        METHODS["mine"] = {}


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """The contrast of two colours, as WCAG defines it."""
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (one, other)]
    low, high = sorted(float(c @ [0.2126, 0.7152, 0.0722]) for c in linear)
    return (high + 0.05) / (low + 0.05)


def turned(colour: np.ndarray) -> np.ndarray:
    """A colour as the filter of the style sheet shows it in dark mode."""
    rule = re.search(r"filter: invert\(([\d.]+)\) hue-rotate\(180deg\)", STYLE_SHEET.read_text())
    assert rule is not None
    share = float(rule[1])
    grey = np.array([0.213, 0.715, 0.072])
    return np.clip((2 * np.tile(grey, (3, 1)) - np.eye(3)) @ (share + (1 - 2 * share) * colour), 0, 1)


def test_methods_and_text_are_seen_on_a_light_and_on_a_dark_page() -> None:
    style()
    white, dark = np.ones(3), np.full(3, 0x12 / 255)
    assert (mpl.rcParams["figure.figsize"], mpl.rcParams["svg.fonttype"]) == ([5.2, 3.6], "path")
    text = [mpl.rcParams[name] for name in ("text.color", "axes.labelcolor", "xtick.color")]
    for colours, least in (([look["color"] for look in METHODS.values()], 3), (text, 4.5)):
        for colour in colours:
            rgb = np.array(mpl.colors.to_rgb(colour))
            assert contrast(rgb, white) >= least, colour
            assert contrast(turned(rgb), dark) >= least, colour
    # What is too pale is found, on either page.
    assert contrast(np.array(mpl.colors.to_rgb("#E69F00")), white) < 3
    assert contrast(turned(np.array(mpl.colors.to_rgb("#DDDDDD"))), dark) < 3


def test_a_figure_of_the_book_has_no_face_and_one_of_a_notebook_is_white(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from PIL import Image

    style()

    def corner(image: bytes | None) -> tuple[int, ...]:
        assert image is not None
        with Image.open(io.BytesIO(image)) as opened:
            return opened.convert("RGBA").getpixel((0, 0))

    fig = plot()
    monkeypatch.delenv("CFLTR_RUN_DIR", raising=False)
    assert corner(pictures.drawn(fig, "png")) == (255, 255, 255, 255)
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    assert corner(pictures.drawn(fig, "png"))[3] == 0
    assert corner(pictures.card_of(fig)) == (255, 255, 255, 255)


def test_two_panels_of_a_column_are_drawn_in_a_row_too(run: Path) -> None:
    texts = {"caption": CAPTION, "alt": ALT, "data": DATA}
    fig, axes = plt.subplots(2, 1, figsize=(5.2, 7), sharex=True)
    axes[1].set_xlabel("clicks")
    column = pictures.drawn(fig, "svg")
    figure(fig, "fig-two-panels", **texts)
    assert (run / "fig-two-panels.svg").read_bytes() == column
    row = (run / "fig-two-panels.row.svg").read_text()
    assert 'viewBox="0 0 748.8 302.4"' in row, "twice as wide, and 0.6 times as high"
    # What the panels share is said below each of them.
    fig.canvas.draw()
    assert [ax.get_position().y0 for ax in axes] == [axes[0].get_position().y0] * 2
    assert [ax.get_xlabel() for ax in axes] == ["clicks"] * 2
    assert all(tick.label1.get_visible() for tick in axes[0].xaxis.get_major_ticks())


@pytest.mark.parametrize("panels", [(1, 1), (3, 1), (1, 2), (2, 2)])
def test_other_panels_stay_where_they_are(run: Path, panels: tuple[int, int]) -> None:
    assert pictures.row_of(plt.subplots(*panels)[0], "svg") is None


@pytest.mark.parametrize("units", [None, [0, 1, 2, 0, 1]])
def test_band(units: list[int] | None) -> None:
    x, values = [1.0, 2.0, 3.0, 4.0], np.random.default_rng(0).normal(size=(5, 4))
    _, ax = plt.subplots()
    band(ax, x, values=values, method="ips", units=units)
    band(ax, x, values=values + 1, method="naive", label="raw clicks")
    counted = (
        values if units is None else np.array([(values[0] + values[3]) / 2, (values[1] + values[4]) / 2, values[2]])
    )
    expected = np.array([oracles.mean_interval(column, 0.95) for column in counted.T.tolist()])
    line = ax.lines[0]
    np.testing.assert_allclose(line.get_xydata()[:, 1], expected[:, 0], rtol=1e-9)
    assert (line.get_color(), line.get_marker(), line.get_label()) == (*METHODS["ips"].values(), "ips")
    assert ax.lines[1].get_label() == "raw clicks"
    corners = ax.collections[0].get_paths()[0].vertices
    for at, (_, low, high) in zip(x, expected, strict=True):
        heights = corners[corners[:, 0] == at, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [low, high], rtol=1e-9)


def test_curves() -> None:
    x = [1.0, 2.0, 3.0, 4.0]
    rows = np.random.default_rng(0).normal(size=(5, 4))
    lines = {"ips": rows, "naive": rows[0], "light": rows[1], "dark": rows[2]}
    ax = curves(x, lines, labels={"naive": "raw clicks"}, xlabel="clicks", yscale="log", legend={"title": "methods"})
    expected = [oracles.mean_interval(column, 0.95)[0] for column in rows.T.tolist()]
    for line, values in zip(ax.lines, (expected, *rows), strict=False):
        np.testing.assert_allclose(line.get_ydata(), values, rtol=1e-12)
    shades = [mpl.colors.to_hex(mpl.colormaps["viridis"](shade)).upper() for shade in (0.0, 0.6)]
    colours = [mpl.colors.to_hex(line.get_color()).upper() for line in ax.lines]
    assert colours == [METHODS["ips"]["color"], METHODS["naive"]["color"], *shades]
    markers = [line.get_marker() for line in ax.lines]
    assert markers[:2] == [METHODS["ips"]["marker"], METHODS["naive"]["marker"]]
    assert len(set(markers)) == 4
    assert len(ax.collections) == 1  # one band
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["ips", "raw clicks", "light", "dark"]
    assert (legend.get_title().get_text(), ax.get_xlabel(), ax.get_yscale()) == ("methods", "clicks", "log")
    other = curves(x, {"truth": rows[0]}, legend=False)
    assert (other.get_legend(), curves(x, {"truth": rows[0]}, ax=other), len(other.lines)) == (None, other, 2)
    for n, every in ((25, None), (26, 2), (61, 6)):
        assert curves(np.arange(n), {"a": np.arange(n)}).lines[0].get_markevery() == every


@pytest.mark.parametrize("dense", [False, True])
def test_figure_writes_image_data_and_text(run: Path, dense: bool) -> None:
    style()
    kind = "png" if dense else "svg"
    fig = plot()
    figure(fig, "fig-two", caption=CAPTION, alt=ALT, data=DATA, dense=dense)
    assert not plt.fignum_exists(fig.number)
    written = {path.name: path.read_bytes() for path in run.iterdir()}
    assert {*written} == {f"fig-two.{ending}" for ending in ("card.png", "csv", "json", kind)}
    assert written["fig-two.csv"].decode() == CSV
    files = {"image": f"fig-two.{kind}", "data": "fig-two.csv"}
    assert json.loads(written["fig-two.json"]) == {"id": "fig-two", "caption": CAPTION, "alt": ALT, **files}
    assert written[f"fig-two.{kind}"].startswith(b"\x89PNG" if dense else b"<?xml")
    assert b"<dc:date>" not in written[f"fig-two.{kind}"]
    # The same call writes the same bytes: no date and no random identifiers in them.
    figure(plot(), "fig-two", caption=CAPTION, alt=ALT, data=pd.DataFrame(DATA), dense=dense)
    assert {path.name: path.read_bytes() for path in run.iterdir()} == written


def test_nothing_is_written_unless_the_book_is_being_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CFLTR_RUN_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    figure(plot(), "fig-one", caption=CAPTION, alt=ALT, data=DATA)
    record("some-number", 1.5)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dense", [False, True])
def test_a_notebook_is_shown_image_alternative_text_and_caption(
    shown: list, dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CFLTR_FIGURE_NUMBERS", '{"fig-two": "Fig. 7.3"}')
    for name in ("fig-one", "fig-two"):
        figure(plot(), name, caption=CAPTION, alt=ALT, data=DATA, dense=dense)
    (image, about), (text, label), _, (numbered, _) = shown
    mime = "image/png" if dense else "image/svg+xml"
    assert set(image) == {mime, "text/plain"}
    assert image["text/plain"] == ALT
    assert image[mime].startswith(b"\x89PNG" if dense else "<?xml")
    assert about == {"cfltr": {"figure": "fig-one"}}
    assert text == {"text/markdown": f"*{CAPTION}*", "text/plain": CAPTION}
    assert label == {"cfltr": {"caption": "fig-one"}}
    assert numbered["text/markdown"] == pictures.numbered_caption(CAPTION, "Fig. 7.3") == f"**Fig. 7.3.** *{CAPTION}*"
    monkeypatch.setattr(getipython, "get_ipython", lambda: None)
    record("some-number", 1.5)
    assert len(shown) == 4, "outside a notebook nothing is shown"


@pytest.mark.parametrize(
    ("value", "options", "text"),
    [
        (np.float64(0.256), {"form": "{:.0%}"}, "26%"),
        (2 / 3, {}, "0.667"),
        ("loses to letor:my_set (η = 1)", {}, "loses to letor:my_set (η = 1)"),
        *((value, {"form": "{:.1f}"}, "—") for value in (math.nan, math.inf, np.float64("-inf"))),
    ],
)
def test_record(run: Path, shown: list, value: float | str, options: dict, text: str) -> None:
    record("share-of-clicks", value, **options)
    written = json.loads((run.parent / "records" / "share-of-clicks.json").read_text(encoding="utf-8"))
    kind, kept = "phrase" if isinstance(value, str) else "number", None if text == "—" else value
    assert written == {"name": "share-of-clicks", "kind": kind, "value": kept, "text": text}
    ((bundle, about),) = shown
    assert bundle == {"application/papermill.record/text/plain": text, "text/plain": f"share-of-clicks: {text}"}
    assert about == {"scrapbook": {"name": "share-of-clicks", "mime_prefix": "application/papermill.record/"}}
