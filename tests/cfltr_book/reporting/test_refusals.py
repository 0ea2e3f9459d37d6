"""What is refused before anything is written: each message, with the name of what is wrong, in a kept text.

A line of the text belongs to one wrong value; a test asserts of it no more than that it is the same as it was.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from claim_files import entry, put, spec
from kept_text import same_as_kept
from refusals import refused
from test_sliders import KNOB, VALUES, changed, examined, on_axes, told

from cfltr_book import Run, claim, curves, figure, mean_interval, record
from cfltr_book.reporting.accepted import Accepted, parse_accepted
from cfltr_book.reporting.claim_registry import Withdrawal, parse_registry
from cfltr_book.reporting.claims import verdict_of
from cfltr_book.reporting.figures import band
from cfltr_book.reporting.pictures import check_texts
from cfltr_book.reporting.sliders import LONGEST_FACT, MOST
from cfltr_book.reporting.standing import Standing, entropy

INF, NAN = float("inf"), float("nan")
CAPTION = "Estimates of two methods on a generated corpus; bands are 95 % intervals over 5 seeds."
ALT = "Line plot of estimate against clicks: the line of IPS stays at 2.5, the naive one falls to 1.1."
GONE = {"replaced_by": "zero", "measured": "contradicted", "why": "it asked too little"}
OLD = entry("old", "ordering", withdrawn=GONE)
pytestmark = pytest.mark.usefixtures("canvas")


def each(name: str, *values: Any, **others: Any) -> list[dict[str, Any]]:
    """A change of one field to each of some values, beside changes of others."""
    return [{**others, name: value} for value in values]


FIGURES = [
    *each("id", "two", "fig-Two", "fig-two.svg", "fig-../up"),
    *each("caption", "", f" {'x' * 19} "),
    *each("alt", "", "1" * 39, "x" * 40, CAPTION, f" {CAPTION}\n"),
    *each("data", {}, {"clicks": []}),
]
RECORDS = [
    *each("name", "Some", "some_number", "", "-a", "a/b"),
    *each("value", "", "two\nlines", "ends in a space ", "it **wins**", "at $p > 0$", "it _wins_"),
    *each("value", "-3", "1,234.5", "12 %", "1e-05"),
    {"value": "wins", "form": "{:.2f}"},
]
SLIDERS = [
    {"caption": "Short."},
    *each("values", range(2), range(MOST + 1), [0, 2, 1], [0, 1, 1], [0, 1, INF], [0, 1, NAN]),
    {"form": "{:.0f}"},
    {"start": 0.7},
    *each("knob", " ", "$\\eta$", "rank"),
    *each("draw", changed(1, {}), changed(3, "A chart."), changed(3, told(0)[1]), lambda eta: examined(eta)[:3]),
    *each("draw", *(changed(2, text) for text in ("", "x" * (LONGEST_FACT + 1), "two\nlines", "it **wins**"))),
    *each("draw", on_axes(size=(5, 9)), on_axes(rows=2)),
    *each("draw", *(on_axes(**{f"{xy}{of}": to}) for xy in "xy" for of, to in (("label", "z"), ("scale", "log")))),
]
ENTRIES = [
    *({name: None} for name in ("source", "corpora", "reason", "predicted", "id")),
    {"id": "zero"},
    {"kind": "vibe"},
    {"scale": "huge"},
    {"colour": "red"},
    *each("corpora", "yahoo-like", [], ["yahoo"]),
    *each("margin", "1e-2", 0),
    *each("tolerance", "1e-12", None, 0.0, kind="identity"),
    {"kind": "inequality", "tolerance": None},
    *each("kind", "equivalence", "limit", margin=None),
    *each("kind", "number", "limit", value=None),
    {"kind": "ordering", "margin": -0.1, "control": "zero"},
    *each("control", None, "one", "nobody", "old", kind="ordering"),
    *each("control", "nobody", "old"),
    {"control": "zero", "chapter": "02"},
    *each("predicted", "maybe", {"digits": "supported"}),
    {"nature": "physical"},
    *each("each", "logs", "", 5),
    {"withdrawn": GONE, "predicted": None},
    *each("withdrawn", "yes", {"why": "so"}, {**GONE, "measured": "maybe"}),
    *each("withdrawn", *({**GONE, "replaced_by": name} for name in ("one", "me"))),
]
ROWS = [("two", "yahoo-like", "ci", "supported"), ("old", "yahoo-like", "ci", "supported")]
ROWS += [("zero", "letor", "ci", "supported"), ("zero", "digits", "smoke", "supported")]
ROWS += [("zero", "digits", "ci", "maybe"), ("zero", "yahoo-like", "ci", "supported")]
HEAD = "id,corpus,scale,verdict,effect,low,high\n"
INTERVALS = [([],), ([[1.0, 2.0]],), ([1.0, NAN],), ([1.0, 2.0], 95), ([1.0, 2.0], 0.95, [0])]
VERDICTS: list[tuple[str, dict[str, Any]]] = [
    ("identity", {"left": [1.0], "rite": [1.0]}),
    ("identity", {"left": [1.0], "right": [1.0, 2.0]}),
    ("identity", {"left": [1.0], "right": [1.0], "units": [0]}),
    ("number", {"values": [[1.0, 2.0]]}),
    ("number", {"values": [1.0, 2.0], "units": [0, 1, 2]}),
    ("ordering", {"larger": [1.0, 2.0], "smaller": [1.0]}),
    ("limit", {"x": [1.0, 2.0], "errors": [[1.0, 2.0]]}),
    ("limit", {"x": [1.0, 2.0, 3.0], "errors": [1.0, 2.0, 3.0]}),
]
PLACES = [("medium", "digits", 0), ("ci", "yahoo", 0), *(("ci", "digits", seed) for seed in (-1, True, "0"))]
STREAMS = [(3, -1), (-3, 1), (3, [1, 0.5]), (3, True), (3, [])]
GRID = np.zeros((5, 4))


def calls() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """Every wrong call, with what it is given."""
    run = Run("smoke", "digits", 3)
    texts = {"id": "fig-one", "caption": CAPTION, "alt": ALT, "data": {"clicks": [10]}}
    yield from ((figure, (plt.figure(),), {**texts, **changes}) for changes in FIGURES)
    yield from ((record, (), {"name": "who", "value": 1.0, **changes}) for changes in RECORDS)
    usual = {"draw": examined, "id": "fig-looks", "knob": KNOB, "values": VALUES, "caption": CAPTION}
    yield from ((run.slider, (), {**usual, **changes}) for changes in SLIDERS)
    for changes in ENTRIES:
        yield parse_registry, ([entry("zero"), OLD, entry(**{"id": "one", **changes})],), {}
    good = Accepted("zero", "yahoo-like", "ci", "contradicted")
    yield from ((parse_registry, ([entry("zero"), OLD], [good, Accepted(*row)]), {}) for row in ROWS)
    for text in ("id,verdict\n", HEAD + "one,digits,ci,a\n", HEAD + "one,digits,ci,a,1,2,3,4\n"):
        yield parse_accepted, (text,), {}
    for values, *level in INTERVALS:
        yield mean_interval, (values,), dict(zip(("level", "units"), level, strict=False))
    yield from ((verdict_of, (spec(kind, margin=1.0, tolerance=1.0), arrays), {}) for kind, arrays in VERDICTS)
    yield claim, ("three",), {"scale": "ci", "corpus": "digits", "values": [1.0]}
    yield claim, ("two",), {"scale": "big", "corpus": "digits", "values": [1.0]}
    yield run.number, ("who-wins", "IPS wins"), {}
    yield from ((Standing, place, {}) for place in PLACES)
    yield from ((entropy, place, {}) for place in STREAMS)
    yield run.setting_of, ([],), {}
    for changes in ({"values": GRID[:, :3]}, {"values": GRID[0]}, {"method": "mine"}):
        yield band, (plt.subplots()[1], [1.0, 2.0, 3.0, 4.0]), {"values": GRID, "method": "ips", **changes}
    yield from ((curves, ([1, 2, 3, 4], lines), {}) for lines in ({"a": GRID[0], "b": [1, 2, 3]}, {}))


def test_the_shortest_texts_that_say_something_are_taken() -> None:
    check_texts("fig-one", caption="x" * 20, alt="1" * 40)


def test_what_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, entry("two"))
    open_before = len(plt.get_fignums())
    lines = [f"{function.__name__}: {refused(function, *given, **named)}" for function, given, named in calls()]
    same_as_kept(Path(__file__).with_name("refusals.txt"), "\n".join(lines) + "\n")
    assert list(run.parent.rglob("*")) == []
    assert len(plt.get_fignums()) - open_before == len(FIGURES) + 3, "a slider closes its frames"
    assert parse_registry([entry("zero"), OLD])["old"].withdrawn == Withdrawal(*GONE.values())
