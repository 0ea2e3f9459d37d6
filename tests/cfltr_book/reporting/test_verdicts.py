"""Verdicts of claims: every kind, every verdict, with Student intervals by hand."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracles
import pytest
import yaml
from scipy import stats

import cfltr_core
from cfltr_book import claim, mean_interval
from cfltr_book.__main__ import main
from cfltr_book.reporting import claim_registry, wording
from cfltr_book.reporting.claim_registry import (
    MEASURED_BY,
    VERDICTS,
    Claim,
    level_of,
    parse_registry,
    registry,
    withdrawn,
)
from cfltr_book.reporting.claims import NO_VERDICT, Measurement, NotMeasured, judge, swapped, verdict_of
from cfltr_book.reporting.intervals import FEW_UNITS, below, look
from cfltr_book.reporting.wording import describe, required

# Upper 97.5 % points of Student's t, from a printed table.
T975 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 4: 2.7764, 9: 2.2622}


def spec(kind: str, **changes) -> Claim:
    fields = {
        "id": "some-claim",
        "source": "somewhere",
        "statement": "Something holds.",
        "kind": kind,
        "chapter": "99",
        "corpora": ("yahoo-like",),
        "scale": "ci",
        "predicted": "supported",
        "reason": "a test",
    }
    return Claim(**{**fields, **changes})


def entry(id: str, kind: str = "number", **changes) -> dict:
    fields = {
        "id": id,
        "source": "somewhere",
        "statement": "Something holds.",
        "kind": kind,
        "chapter": "01",
        "corpora": ["yahoo-like"],
        "scale": "ci",
        "predicted": "supported",
        "reason": "a test",
        "margin": 0.1,
        "tolerance": 1e-12,
        "value": 0.0,
    }
    return {**fields, **changes}


@pytest.mark.oracle("intervals.mean_interval")
@pytest.mark.parametrize("n", [2, 3, 4, 5, 10])
def test_mean_interval(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n).tolist()
    for level in (0.5, 0.9, 0.95, 0.975, 0.995):
        found = mean_interval(values, level)
        np.testing.assert_allclose(found, oracles.mean_interval(values, level), rtol=1e-9, atol=1e-12)
        peer = stats.t.interval(level, n - 1, loc=np.mean(values), scale=stats.sem(values))
        np.testing.assert_allclose(found[1:], peer, rtol=1e-9, atol=1e-12)
    half = T975[n - 1] * np.std(values, ddof=1) / math.sqrt(n)
    np.testing.assert_allclose(mean_interval(values)[2] - np.mean(values), half, rtol=1e-4)


def test_mean_interval_by_hand() -> None:
    """1, 2, 3: mean 2, standard deviation 1, half-width 4.3027 / √3 = 2.4841."""
    mean, low, high = mean_interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert abs(high - (2 + 2.48414)) <= 1e-5
    assert abs(low - (2 - 2.48414)) <= 1e-5
    assert mean_interval([4.0]) == (4.0, -math.inf, math.inf)
    assert mean_interval([4.0, 4.0]) == (4.0, 4.0, 4.0)


# Three seeds 1, 2, 3 around a centre: the interval is centre ± 2.4841.
def around(centre: float, spread: float = 1.0) -> list[float]:
    return [centre - spread, centre, centre + spread]


@pytest.mark.parametrize(
    ("kind", "fields", "arrays", "verdict"),
    [
        ("identity", {"tolerance": 0.1}, {"left": [1.0, 2.0], "right": [1.05, 1.95]}, "supported"),
        ("identity", {"tolerance": 0.1}, {"left": [1.0, 2.0], "right": [1.0, 2.2]}, "contradicted"),
        ("identity", {"tolerance": 0.1}, {"left": [[1.0], [2.0]], "right": [[1.0], [1.8]]}, "contradicted"),
        ("inequality", {"tolerance": 0.1}, {"lower": [1.0, 2.0], "upper": [9.0, 1.95]}, "supported"),
        ("inequality", {"tolerance": 0.1}, {"lower": [1.0, 2.2], "upper": [9.0, 2.0]}, "contradicted"),
        ("ordering", {"margin": 0.5}, {"larger": around(3.0), "smaller": [0.0] * 3}, "supported"),
        ("ordering", {"margin": 0.52}, {"larger": around(3.0), "smaller": [0.0] * 3}, "inconclusive"),
        ("ordering", {"margin": 5.48}, {"larger": around(3.0), "smaller": [0.0] * 3}, "inconclusive"),
        ("ordering", {"margin": 5.49}, {"larger": around(3.0), "smaller": [0.0] * 3}, "contradicted"),
        ("ordering", {"margin": 0.0}, {"larger": around(-3.0), "smaller": [0.0] * 3}, "contradicted"),
        # Paired: seeds that vary together leave little spread in the difference.
        ("ordering", {"margin": 0.5}, {"larger": [101.0, 3.1, 51.0], "smaller": [100.0, 2.0, 50.0]}, "supported"),
        ("equivalence", {"margin": 2.5}, {"left": around(7.0), "right": [7.0] * 3}, "supported"),
        ("equivalence", {"margin": 2.48}, {"left": around(7.0), "right": [7.0] * 3}, "inconclusive"),
        ("equivalence", {"margin": 0.5}, {"left": around(10.0), "right": [7.0] * 3}, "contradicted"),
        ("equivalence", {"margin": 0.5}, {"left": around(4.0), "right": [7.0] * 3}, "contradicted"),
        ("number", {"value": 5.0, "margin": 2.5}, {"values": around(5.0)}, "supported"),
        ("number", {"value": 5.0, "margin": 2.48}, {"values": around(5.0)}, "inconclusive"),
        ("number", {"value": 8.0, "margin": 0.5}, {"values": around(5.0)}, "contradicted"),
        ("number", {"value": 2.0, "margin": 0.5}, {"values": around(5.0)}, "contradicted"),
        ("number", {"value": 5.0, "margin": 99.0}, {"values": [5.0]}, "inconclusive"),
    ],
)
def test_verdicts_by_hand(kind: str, fields: dict, arrays: dict, verdict: str) -> None:
    assert verdict_of(spec(kind, **fields), arrays, level=0.95).verdict == verdict


# Statistical kinds with two arrays of n equal differences, or n equal values, all far from the margin.
ALIKE = {
    "ordering": lambda n: {"larger": [101.0, 3.0, 51.0, 7.0, 9.0][:n], "smaller": [100.0, 2.0, 50.0, 6.0, 8.0][:n]},
    "equivalence": lambda n: {"left": [0.5] * n, "right": [0.5] * n},
    "number": lambda n: {"values": [0.1 + 0.2, *[0.3] * (n - 1)]},  # alike but for rounding
    "limit": lambda n: {"x": [1.0, 2.0, 4.0], "errors": [[1.0, 2.0, 4.0]] * n},
}


@pytest.mark.parametrize("kind", ALIKE)
def test_a_few_seeds_that_all_gave_the_same_value_decide_nothing(kind: str) -> None:
    """Two, three or four of them leave the claim open and say why; five decide."""
    one = spec(kind, margin=0.05, value={"number": 9.0, "limit": 1.0}.get(kind, 0.0))
    decided = {"ordering": "supported", "equivalence": "supported", "number": "contradicted", "limit": "supported"}
    for n, called in ((2, "both seeds"), (3, "all 3 seeds"), (4, "all 4 seeds")):
        found = verdict_of(one, ALIKE[kind](n), level=0.95)
        assert (found.verdict, found.interval) == ("inconclusive", (-math.inf, math.inf))
        assert found.reason == f"{called} gave the same value, so that their spread says nothing"
        units = {"units": np.arange(n) % 2} if n > 2 else {}
        folded = verdict_of(one, {**ALIKE[kind](n), **units}, level=0.95)
        assert folded.reason.startswith("both folds gave" if units else "both seeds gave")
    five = verdict_of(one, ALIKE[kind](FEW_UNITS), level=0.95)
    assert (five.verdict, five.reason) == (decided[kind], "")
    # One seed has no spread to speak of, and no reason is needed.
    assert verdict_of(one, ALIKE[kind](1), level=0.95).reason == ""


def test_what_differs_decides_and_mathematics_needs_no_spread() -> None:
    """Two seeds that differ a little have a spread; what is exact is judged by each case alone, also by one."""
    apart = verdict_of(spec("number", margin=0.5, value=1.0), {"values": [1.0, 1.0 + 1e-9]}, level=0.95)
    assert (apart.verdict, apart.reason) == ("supported", "")
    for n in (1, 2):
        same = {"left": [1.0] * n, "right": [1.0] * n}
        assert verdict_of(spec("identity", tolerance=1e-12), same).verdict == "supported"
        above = {"lower": [2.0] * n, "upper": [1.0] * n}
        assert verdict_of(spec("inequality", tolerance=1e-12), above).verdict == "contradicted"


def test_what_a_verdict_may_rest_on() -> None:
    """The mean interval itself, but for a few equal units and for what rounding leaves; one seed needs no reason."""
    apart = [1.0, 2.0, 4.0]
    found = look(np.array(apart), 0.9)
    np.testing.assert_allclose(found[:3], oracles.mean_interval(apart, 0.9), rtol=1e-9)
    assert found[3:] == (3, "")
    assert look(np.array([3.0]), 0.9) == (3.0, -math.inf, math.inf, 1, "")
    assert look(np.array([0.1 + 0.2, 0.3]) - 0.3, 0.9)[:3] == (0.0, -math.inf, math.inf)
    # Four seeds in two folds, whose means are 2 and 2.
    folds = look(np.array([1.0, 2.0, 3.0, 2.0]), 0.9, units=[0, 1, 0, 1])
    assert folds == (2.0, -math.inf, math.inf, 2, "both folds gave the same value, so that their spread says nothing")


def test_below_is_by_more_than_rounding() -> None:
    for size in (1e-9, 1.0, 1e9):
        assert below(size, size * (1 + 1e-11))
        assert below(-size * (1 + 1e-11), -size)
        assert not below(size, size * (1 + 1e-13))
        assert not below(size, size)
        assert not below(size, size / 2)
    assert below(0.0, 1e-11)
    assert below(1.0, math.inf)
    assert not below(-math.inf, -math.inf)


def test_rounding_decides_nothing() -> None:
    """Where 0.2 and 1 − 0.8 are equal by hand, five seeds that gave it neither exceed 0.2 nor fall short of it."""
    effect = 1.0 - 0.8
    assert effect < 0.2
    many = {"larger": [1.0] * 5, "smaller": [0.8] * 5}
    assert verdict_of(spec("ordering", margin=0.2), many, level=0.95).verdict == "inconclusive"
    assert verdict_of(spec("ordering", margin=0.2), swapped(many), level=0.95).verdict == "contradicted"
    for value in (0.0, 0.4):
        one = spec("number", margin=0.2, value=value)
        assert verdict_of(one, {"values": [effect] * 5}, level=0.95).verdict == "inconclusive"
    assert verdict_of(spec("ordering", margin=0.2 - 1e-9), many, level=0.95).verdict == "supported"
    assert verdict_of(spec("ordering", margin=0.2 + 1e-9), many, level=0.95).verdict == "contradicted"
    # 0.1 + 0.2 − 0.3 is 5.6e-17: nothing, above a margin of 0 as on the page.
    left = {"larger": [0.1 + 0.2] * 5, "smaller": [0.3] * 5}
    found = verdict_of(spec("ordering", margin=0.0), left, level=0.95)
    assert (found.verdict, found.effect, found.interval) == ("inconclusive", 0.0, (0.0, 0.0))
    small = verdict_of(spec("ordering", margin=0.0), {"larger": [1e-9] * 5, "smaller": [0.0] * 5}, level=0.95)
    assert (small.verdict, small.effect) == ("supported", 1e-9)


# Errors x^−½ times factors that multiply to slopes −0.5 ± spread over three seeds.
def power_law(spread: float) -> dict:
    x = np.array([10.0, 100.0, 1000.0, 10000.0])
    return {"x": x, "errors": np.stack([3 * x ** (-0.5 - spread), x**-0.5, 0.1 * x ** (-0.5 + spread)])}


@pytest.mark.parametrize(
    ("value", "margin", "spread", "verdict"),
    [
        (-0.5, 0.1, 0.01, "supported"),
        (-0.5, 0.1, 0.05, "inconclusive"),
        (-1.0, 0.1, 0.01, "contradicted"),
        (0.0, 0.1, 0.01, "contradicted"),
    ],
)
def test_limits_by_hand(value: float, margin: float, spread: float, verdict: str) -> None:
    """Three seeds with slopes −0.5 − s, −0.5, −0.5 + s: the interval is −0.5 ± 2.4841 s."""
    found = verdict_of(spec("limit", value=value, margin=margin), power_law(spread), level=0.95)
    assert found.verdict == verdict
    assert abs(found.effect + 0.5) <= 1e-12
    assert abs(found.interval[1] - (-0.5 + 2.48414 * spread)) <= 1e-5


@pytest.mark.oracle("claims.verdict_of")
@pytest.mark.parametrize("seed", range(20))
def test_verdicts_against_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, level = int(rng.integers(2, 8)), float(rng.choice([0.9, 0.95, 0.99]))
    margin, value = float(rng.uniform(0.05, 1.5)), float(rng.normal())
    a, b = rng.normal(rng.normal(), 0.4, size=(2, n))
    x, errors = rng.uniform(1, 9, size=5), np.exp(rng.normal(size=(n, 5)))
    slopes = [oracles.slope(x.tolist(), row.tolist()) for row in errors]
    cases = [
        ("ordering", {"larger": a, "smaller": b}, (a - b).tolist(), (margin, math.inf)),
        ("equivalence", {"left": a, "right": b}, (a - b).tolist(), (-margin, margin)),
        ("number", {"values": a}, a.tolist(), (value - margin, value + margin)),
        ("limit", {"x": x, "errors": errors}, slopes, (value - margin, value + margin)),
    ]
    for kind, arrays, sample, zone in cases:
        found = verdict_of(spec(kind, margin=margin, value=value), arrays, level=level)
        mean, low, high = oracles.mean_interval(sample, level)
        np.testing.assert_allclose([found.effect, *found.interval], [mean, low, high], rtol=1e-8, atol=1e-10)
        assert found.verdict == oracles.verdict(low, high, *zone)
        assert (found.level, found.seeds) == (level, n)
    turned = swapped({"larger": a, "smaller": b})
    assert turned["larger"] is b
    assert turned["smaller"] is a
    mean, low, high = oracles.mean_interval((b - a).tolist(), level)
    assert verdict_of(spec("ordering", margin=margin), turned, level=level).verdict == oracles.verdict(
        low, high, margin, math.inf
    )


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5])
def test_swapping_the_methods_turns_an_ordering_round(margin: float) -> None:
    arrays = {"larger": [3.0, 3.1, 2.9], "smaller": [1.0, 1.2, 1.1]}
    claimed = spec("ordering", margin=margin)
    assert verdict_of(claimed, arrays, level=0.95).verdict == "supported"
    assert verdict_of(claimed, swapped(arrays), level=0.95).verdict == "contradicted"
    alike = {"larger": [3.0, 1.0, 2.0], "smaller": [2.0, 3.0, 1.2]}
    assert verdict_of(claimed, alike, level=0.95).verdict == "inconclusive"
    assert verdict_of(claimed, swapped(alike), level=0.95).verdict == "inconclusive"


def test_exact_verdicts_report_the_largest_difference() -> None:
    found = verdict_of(spec("identity", tolerance=0.5), {"left": [1.0, -2.0], "right": [1.1, -2.3]})
    assert abs(found.effect - 0.3) <= 1e-12
    assert (found.interval, found.level) == (None, None)
    found = verdict_of(spec("inequality", tolerance=0.5), {"lower": [1.0, -2.0], "upper": [2.0, -1.8]})
    assert abs(found.effect + 0.2) <= 1e-12
    none = verdict_of(spec("inequality", tolerance=0.5), {"lower": [-0.0], "upper": [0.0]})
    assert f"{none.effect:.3g}" == "0", "it is read on a page, where -0 looks like an error"


def test_where_a_claim_gates_and_what_it_expects() -> None:
    per_corpus = {"digits": "contradicted", "letor": "inconclusive"}
    one = spec("number", corpora=("digits", "letor"), scale="ci", predicted=per_corpus)
    gated = {"digits", "letor:mq2008"}
    for corpus in ("yahoo-like", "digits", "letor:mq2008", "letor-like"):
        assert [one.gates(scale, corpus) for scale in ("smoke", "ci", "paper")] == [False, *[corpus in gated] * 2]
    assert spec("number", scale="smoke").gates("smoke", "yahoo-like")
    assert [spec("number", scale="paper").gates(scale, "yahoo-like") for scale in ("ci", "paper")] == [False, True]
    assert one.recorded("ci", "digits") == "contradicted"
    assert one.recorded("ci", "letor:mq2008") == "inconclusive"
    # Elsewhere what is expected on the first corpus.
    assert one.recorded("ci", "yahoo-like") == one.recorded("ci", "letor-like") == "contradicted"
    assert spec("number", predicted="inconclusive").recorded("ci", "digits") == "inconclusive"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> dict[str, Claim]:
    """A registry of six claims in two chapters, in place of the real file."""
    specs = parse_registry(
        [
            entry("same", "identity"),
            entry("below", "inequality"),
            entry("more", "ordering", control="alike", corpora=["yahoo-like", "letor"]),
            entry("alike", "equivalence"),
            entry("two", "number", value=2.0, chapter="02", predicted="inconclusive"),
            entry("falls", "limit", value=-0.5, chapter="01"),
        ]
    )
    monkeypatch.setattr(claim_registry, "registry", lambda: specs)
    return specs


def test_level_of(toy: dict[str, Claim]) -> None:
    """Three of the five claims of chapter 01 are statistical, and share its 5 %."""
    for name in ("same", "below", "more", "alike", "falls"):
        assert abs(level_of(toy[name]) - (1 - 0.05 / 3)) <= 1e-15
    assert level_of(toy["two"]) == 0.95
    assert level_of(spec("number")) == 0.95
    assert verdict_of(toy["more"], {"larger": [1.0, 2.0], "smaller": [0.0, 0.0]}).level == level_of(toy["more"])


def test_claim_records_what_the_verdict_rests_on(
    toy: dict[str, Claim], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    larger, smaller = [3.0, 3.1, 2.9], [1.0, 1.2, 1.1]
    found = claim("more", scale="ci", corpus="letor:mq2008", larger=larger, smaller=np.array(smaller))
    level = 1 - 0.05 / 3
    mean, low, high = oracles.mean_interval([a - b for a, b in zip(larger, smaller, strict=True)], level)
    assert found.verdict == oracles.verdict(low, high, 0.1, math.inf) == "supported"
    written = json.loads((tmp_path / "claims" / "more.json").read_text(encoding="utf-8"))
    np.testing.assert_allclose([written.pop("effect"), *written.pop("interval")], [mean, low, high], rtol=1e-8)
    assert abs(written.pop("level") - level) <= 1e-15
    assert written == {
        "id": "more",
        "verdict": "supported",
        "seeds": 3,
        "units": 3,
        "reason": "",
        "scale": "ci",
        "corpus": "letor:mq2008",
        "arrays": {"larger": larger, "smaller": smaller},
    }
    again = (tmp_path / "claims" / "more.json").read_bytes()
    claim("more", scale="ci", corpus="letor:mq2008", larger=larger, smaller=smaller)
    assert (tmp_path / "claims" / "more.json").read_bytes() == again
    assert [p.name for p in tmp_path.rglob("*")] == ["claims", "more.json"]


def test_claim_of_one_seed_records_an_unbounded_interval_as_null(
    toy: dict[str, Claim], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    assert claim("two", scale="smoke", corpus="digits", values=[2.0]).verdict == "inconclusive"
    written = json.loads((tmp_path / "claims" / "two.json").read_text(encoding="utf-8"))
    assert written["interval"] == [None, None]
    assert Measurement.from_record(written).result.interval == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("kind", "names"),
    [("identity", ("left", "right")), ("inequality", ("lower", "upper")), ("number", ("values",))],
)
def test_what_could_not_be_measured_has_no_verdict_and_no_numbers(kind: str, names: tuple[str, ...]) -> None:
    found = judge(spec(kind, tolerance=0.5, margin=0.25, value=1.0), {name: [1.0, math.nan] for name in names})
    assert (found.verdict, found.seeds, found.interval) == (NO_VERDICT, 0, None)
    assert math.isnan(found.effect)


@pytest.mark.parametrize("values", [[2.0], [1.9, 2.1, 2.0], [1.0, math.nan]])
def test_a_record_gives_back_what_was_measured(
    toy: dict[str, Claim], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, values: list[float]
) -> None:
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    result = claim("two", scale="smoke", corpus="digits", values=values)
    read = Measurement.from_record(json.loads((tmp_path / "claims" / "two.json").read_text(encoding="utf-8")))
    # NaN equals nothing, itself included; in words it does.
    assert repr(read.result) == repr(result)
    assert (read.scale, read.corpus) == ("smoke", "digits")
    assert judge(toy["two"], read.arrays).verdict == result.verdict
    assert json.loads(json.dumps(read.as_record()))["arrays"] == {
        "values": [None if math.isnan(v) else v for v in values]
    }


@pytest.mark.parametrize("missing", ["verdict", "reason", "scale", "arrays"])
def test_a_record_without_a_field_is_refused(missing: str) -> None:
    record = Measurement(
        verdict_of(spec("number", margin=1.0), {"values": [1.0]}, level=0.9), "ci", "digits", {}
    ).as_record()
    assert Measurement.from_record(record).scale == "ci"
    with pytest.raises(ValueError, match="its verdict is 'maybe', expected one of supported"):
        Measurement.from_record({**record, "verdict": "maybe"})
    del record[missing]
    with pytest.raises(KeyError, match=missing):
        Measurement.from_record(record)


UNMEASURED = {
    "not finite": ("number", {"values": [1.0, math.inf]}, r"values\[1\] is inf"),
    "not finite, of two dimensions": ("identity", {"left": [[1.0, math.nan]], "right": [[1.0, 1.0]]}, r"left\[0, 1\] "),
    "none": ("number", {"values": []}, "at least one"),
    "without a logarithm": ("limit", {"x": [1.0, 2.0, 3.0], "errors": [[1.0, -1.0, 3.0]]}, "must be positive"),
    "without a slope": ("limit", {"x": [2.0, 2.0, 2.0], "errors": [[1.0, 2.0, 3.0]]}, "all values are 2.0"),
}


@pytest.mark.parametrize("case", UNMEASURED)
def test_numbers_that_allow_no_verdict_stop_a_chapter_only_where_the_claim_gates(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, arrays, words = UNMEASURED[case]
    one = spec(kind, margin=1.0, tolerance=1.0)
    monkeypatch.setattr(claim_registry, "registry", lambda: {one.id: one})
    assert one.gates("ci", "yahoo-like")
    with pytest.raises(NotMeasured, match=f"some-claim.*{words}"):
        claim(one.id, scale="ci", corpus="yahoo-like", **arrays)
    for scale, corpus in (("smoke", "yahoo-like"), ("ci", "digits")):
        assert not one.gates(scale, corpus)
        result = claim(one.id, scale=scale, corpus=corpus, **arrays)
        assert (result.verdict, result.interval, result.seeds) == (NO_VERDICT, None, 0)
        assert math.isnan(result.effect)
        text = result._repr_markdown_()
        assert text.startswith("**Claim `some-claim`: no verdict.** Something holds. *(somewhere; some-claim")
        assert result.reason in text
    assert NO_VERDICT not in VERDICTS, "nothing can be expected to have none"
    with pytest.raises(ValueError, match="takes"):
        claim(one.id, scale="smoke", corpus="digits", wrong=[1.0])


def test_a_result_is_shown_with_the_mark_by_which_a_page_finds_its_claim(toy: dict[str, Claim]) -> None:
    from IPython.core.formatters import DisplayFormatter

    result = verdict_of(toy["two"], {"values": [2.0, 2.01, 1.99]})
    shown, metadata = DisplayFormatter().format(result)
    assert shown == {"text/markdown": result._repr_markdown_(), "text/plain": repr(result)}
    assert metadata == {"cfltr": {"claim": "two"}}


@pytest.mark.parametrize("field", sorted(Claim.__dataclass_fields__))
def test_a_verdict_depends_on_no_other_field_than_those_it_is_measured_by(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field in turn is changed: the result changes with those of ``MEASURED_BY``, and with no other."""
    fields = {"chapter": "01", "control": "some-claim"}
    other = {"margin": 20.0, "tolerance": 2.0, "value": 10.1, "chapter": "02", "corpora": ("digits",), "control": None}
    arrays = {"larger": [10.0, 10.1, 10.2], "smaller": [0.0, 0.1, 0.0], "left": [1.0], "right": [0.0]}
    wanted = {"identity": ("left", "right"), "ordering": ("larger", "smaller"), "number": ("larger",)}
    companion = spec("number", id="companion", chapter="02")

    def found(**changes) -> list[str]:
        results = []
        for kind, names in wanted.items():
            one = spec(**{"kind": kind, **fields, **changes})
            monkeypatch.setattr(claim_registry, "registry", lambda one=one: {one.id: one, "companion": companion})
            values = {key: arrays[name] for key, name in zip(claim_registry.ARRAYS[kind], names, strict=True)}
            if one.kind == kind:
                results.append(repr(verdict_of(one, values)))
        return results

    changed = found(**{field: other.get(field, "identity" if field == "kind" else "another")})
    assert (changed != found()) == (field in MEASURED_BY)


def test_claim_writes_nothing_unless_the_book_is_being_run(
    toy: dict[str, Claim], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CFLTR_RUN_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert claim("same", scale="ci", corpus="digits", left=[1.0], right=[1.0]).verdict == "supported"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "effect", "condition"),
    [
        ("identity", "largest |left − right|", "must not exceed 1e-12"),
        ("inequality", "largest excess", "must not exceed 1e-12"),
        ("ordering", "mean difference", "must exceed 0.25"),
        ("equivalence", "mean difference", "must lie within ±0.25"),
        ("number", "mean", "must lie within -1.5 ± 0.25"),
        ("limit", "log-log slope", "must lie within -1.5 ± 0.25"),
    ],
)
def test_describe_and_required(kind: str, effect: str, condition: str) -> None:
    one = spec(kind, tolerance=1e-12, margin=0.25, value=-1.5)
    assert describe(one) == effect
    assert required(one) == condition


def test_the_text_of_a_result(toy: dict[str, Claim]) -> None:
    text = verdict_of(toy["two"], {"values": [2.0, 2.01, 1.99]})._repr_markdown_()
    assert text == (
        "**Claim `two`: supported.** Something holds. *(somewhere; mean 2, 95.0% interval [1.98, 2.02] "
        "over 3 seeds; must lie within 2 ± 0.1)*"
    )
    of_logs = spec("number", each="log")
    assert [of_logs.counted(values) for values in (1, 2)] == ["1 log", "2 logs"]
    text = verdict_of(toy["same"], {"left": [1.0], "right": [1.5]})._repr_markdown_()
    assert text == (
        "**Claim `same`: contradicted.** Something holds. *(somewhere; largest |left − right| 0.5 in 1 case; "
        "must not exceed 1e-12)*"
    )


def test_the_text_of_a_result_says_why_equal_seeds_leave_it_open(toy: dict[str, Claim]) -> None:
    text = verdict_of(toy["two"], {"values": [2.0, 2.0]})._repr_markdown_()
    assert text == (
        "**Claim `two`: inconclusive.** Something holds. *(somewhere; mean 2; both seeds gave the same "
        "value, so that their spread says nothing; must lie within 2 ± 0.1)*"
    )


TEXT = """
- id: one
  source: A18 §1
  statement: A holds.
  kind: identity
  chapter: "01"
  corpora: [yahoo-like, digits]
  scale: smoke
  tolerance: 1.0e-12
  reason: rounding
  predicted: supported
- id: two
  source: A18 §2
  statement: B beats C.
  kind: ordering
  chapter: "01"
  corpora: [yahoo-like, digits]
  scale: ci
  margin: 0.2
  reason: a fifth
  predicted: {yahoo-like: supported, digits: inconclusive}
  control: three
- id: three
  source: A18 §2
  statement: B and C are alike without bias.
  kind: equivalence
  chapter: "01"
  corpora: [digits]
  scale: ci
  margin: 0.1
  reason: half of it
  predicted: supported
"""


def test_parse_registry() -> None:
    found = parse_registry(yaml.safe_load(TEXT))
    assert list(found) == ["one", "two", "three"]
    assert found["one"].tolerance == 1e-12
    assert found["two"].corpora == ("yahoo-like", "digits")
    assert (found["two"].margin, found["two"].control, found["two"].chapter) == (0.2, "three", "01")
    assert found["two"].recorded("ci", "digits") == "inconclusive"
    assert parse_registry([]) == {}


def test_the_real_file_parses() -> None:
    files = sorted((Path(claim_registry.__file__).parents[1] / "claims").glob("*.yml"))
    entries = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}
    assert {one.id: one.chapter for one in (*registry().values(), *withdrawn().values())} == {
        entry["id"]: chapter for chapter, some in entries.items() for entry in some
    }
    for some in entries.values():
        assert [entry["id"] for entry in sorted(some, key=lambda entry: "withdrawn" in entry)] == [
            entry["id"] for entry in some
        ], "withdrawn claims stand at the end of their file"
    for one in registry().values():
        assert one.corpora
        assert one.reason
        assert describe(one)
        assert 0.9 < level_of(one) < 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "vibe"}, "one: unknown kind"),
        ({"scale": "huge"}, "one: unknown kind"),
        ({"on_record": "supported"}, "one: .*unexpected keyword argument 'on_record'"),
        ({"margin": 0}, "one: this kind states a margin > 0"),
        ({"margin": -1.0}, "one: this kind states a margin > 0"),
        ({"margin": "1e-2"}, r"one: margin is '1e-2'; write a number such as 1\.0e-12"),
        ({"kind": "identity", "tolerance": "1e-12"}, "one: tolerance is '1e-12'; write a number"),
        ({"kind": "identity", "tolerance": 0.0}, "one: an exact claim states a tolerance > 0"),
        ({"kind": "ordering", "margin": -0.1, "control": "zero"}, "one: margin is the smallest effect that matters"),
        ({"kind": "ordering"}, "one: an ordering names its negative control, another claim"),
        ({"kind": "ordering", "control": "one"}, "one: an ordering names its negative control, another claim"),
        ({"kind": "ordering", "control": "nobody"}, "one: an ordering names its negative control, another claim"),
        ({"control": "nobody"}, "one: its control nobody is no claim"),
        ({"control": "zero", "chapter": "02"}, "one: the control is measured in the same chapter"),
        ({"id": "zero"}, "zero: stands twice"),
        ({"corpora": "yahoo-like"}, r"one: corpora is a list.*\[yahoo-like, digits\]"),
        ({"corpora": []}, "one: corpora is a list"),
        ({"colour": "red"}, "one: .*unexpected keyword argument 'colour'"),
    ],
)
def test_parse_registry_refuses(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^claims/0\d\.yml, {message}"):
        parse_registry([entry("zero"), {**entry("one"), **changes}])


@pytest.mark.parametrize("missing", ["source", "corpora", "reason", "predicted", "id"])
def test_parse_registry_wants_every_field(missing: str) -> None:
    incomplete = entry("one")
    del incomplete[missing]
    with pytest.raises(ValueError, match=rf"claims/01\.yml, (one|<no id>): .*'{missing}'"):
        parse_registry([incomplete])


@pytest.mark.parametrize(
    ("kind", "missing", "message"),
    [
        ("identity", "tolerance", "an exact claim states a tolerance > 0"),
        ("inequality", "tolerance", "an exact claim states a tolerance > 0"),
        ("equivalence", "margin", "this kind states a margin > 0"),
        ("number", "margin", "this kind states a margin > 0"),
        ("limit", "margin", "this kind states a margin > 0"),
        ("number", "value", "this kind states the value that is claimed"),
        ("limit", "value", "this kind states the value that is claimed"),
    ],
)
def test_parse_registry_wants_the_smallest_effect_that_matters(kind: str, missing: str, message: str) -> None:
    incomplete = entry("one", kind)
    del incomplete[missing]
    with pytest.raises(ValueError, match=rf"claims/01\.yml, one: {message}"):
        parse_registry([incomplete])


def test_an_ordering_without_a_margin_asks_for_any_difference() -> None:
    ordering = entry("one", "ordering", control="zero")
    del ordering["margin"]
    assert parse_registry([entry("zero"), ordering])["one"].margin == 0.0


@pytest.mark.parametrize(
    ("kind", "arrays", "message"),
    [
        ("identity", {"left": [1.0]}, r"takes \('left', 'right'\), got \('left',\)"),
        ("identity", {"left": [1.0], "rite": [1.0]}, r"takes \('left', 'right'\)"),
        ("identity", {"left": [1.0], "right": [1.0, 2.0]}, r"left and right differ in shape, \(1,\), \(2,\)"),
        ("number", {"values": []}, "values: expected finite numbers, at least one"),
        ("number", {"values": [1.0, math.nan]}, r"values: expected finite numbers, but values\[1\] is nan"),
        ("number", {"values": [[1.0, 2.0]]}, r"expected one number per seed, got shape \(1, 2\)"),
        ("ordering", {"larger": [1.0, 2.0], "smaller": [1.0]}, "larger and smaller differ in shape"),
        ("limit", {"x": [1.0, 2.0], "errors": [[1.0, 2.0]]}, "with m >= 3"),
        ("limit", {"x": [1.0, 2.0, 3.0], "errors": [1.0, 2.0, 3.0]}, r"expected x \(m,\) and errors \(seeds, m\)"),
        ("limit", {"x": [1.0, 2.0, 0.0], "errors": [[1.0, 2.0, 3.0]]}, "must be positive for a log-log slope"),
        ("limit", {"x": [1.0, 2.0, 3.0], "errors": [[1.0, 0.0, 3.0]]}, "must be positive for a log-log slope"),
        (
            "limit",
            {"x": [2.0, 2.0, 2.0], "errors": [[1.0, 2.0, 3.0]]},
            "x: all values are 2.0; a slope needs different",
        ),
    ],
)
def test_verdict_of_refuses(kind: str, arrays: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^some-claim.*{message}"):
        verdict_of(spec(kind, margin=1.0, tolerance=1.0), arrays)


def test_claim_refuses_what_is_not_registered(toy: dict[str, Claim]) -> None:
    with pytest.raises(ValueError, match=r"id is 'three'.*add it to cfltr_book/claims before it is measured"):
        claim("three", scale="ci", corpus="digits", values=[1.0])
    with pytest.raises(ValueError, match="scale is 'big': choose one of smoke, ci, paper"):
        claim("two", scale="big", corpus="digits", values=[1.0])


def test_mean_interval_refuses() -> None:
    with pytest.raises(ValueError, match=r"values: expected one number per seed, got shape \(0,\)"):
        mean_interval([])
    with pytest.raises(ValueError, match=r"values: expected one number per seed, got shape \(1, 2\)"):
        mean_interval([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"values\[1\] is nan: a seed without a number"):
        mean_interval([1.0, math.nan])
    with pytest.raises(ValueError, match="level is 95: expected a probability"):
        mean_interval([1.0, 2.0], 95)


def test_main_prints_every_claim_with_its_verdict(
    toy: dict[str, Claim], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    said = capsys.readouterr()
    assert said.err.startswith(f"no claim records below {tmp_path / '_build' / 'run'}: run 'make book' in the book")
    out = said.out.splitlines()
    assert len(out) == 2 * len(toy)
    for line, one in zip(out[::2], toy.values(), strict=True):
        record = wording.outcome(one, one.recorded(one.scale, one.corpora[0]))
        assert line.split() == [one.chapter, one.id, "on", "record:", *record.split(), "measured:", "not", "run"]
    assert main([str(tmp_path)]) == 1
    assert "no claim records below" in capsys.readouterr().err
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path / "_build" / "run" / "chapters" / "01_one"))
    assert toy["same"].gates("ci", "yahoo-like")
    claim("same", scale="ci", corpus="yahoo-like", left=[1.0], right=[2.0])
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path / "_build" / "run" / ".partial" / "01_two"))
    claim("two", scale="ci", corpus="digits", values=[2.0])
    for arguments in ([], [str(tmp_path / "_build" / "run")]):
        assert main(arguments) == 0
        said = capsys.readouterr()
        measured = {line.split()[1]: line.split("measured: ")[1] for line in said.out.splitlines()[::2]}
        assert measured == {**dict.fromkeys(toy, "not run"), "same": "false  (changed)"}
        assert said.err == ""
    (tmp_path / "_build" / "run" / "chapters" / "01_one" / "claims" / "same.json").write_text("{}")
    with pytest.raises(
        SystemExit, match=r"same\.json: no claim record of this version \('id'\); run 'make book' again"
    ):
        main([])


def test_only_the_claims_that_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*words: str) -> list[str]:
        assert main(["--only", *words]) == 0
        return [line.split()[1] for line in capsys.readouterr().out.splitlines()[::2]]

    of_five = [one.id for one in registry().values() if one.chapter == "05"]
    assert listed("5") == listed("05") == of_five != []
    assert listed(of_five[0].upper()) == [one.id for one in registry().values() if of_five[0] in one.id]
    says = [one.id for one in registry().values() if "propdcg" in f"{one.id} {one.statement} {one.source}".lower()]
    assert listed("PropDCG") == says
    assert listed("5", "PropDCG") == [name for name in says if name in of_five] != of_five
    assert main(["--only", "5", "no such words"]) == 1
    assert capsys.readouterr().err == "--only 5 no such words: no claim has all of these words\n"


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(cfltr_core.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-m", "cfltr_book", *arguments], capture_output=True, text=True, cwd=folder, env=environment
    )


def test_the_package_can_be_run_as_a_command(tmp_path: Path) -> None:
    child = command(folder=tmp_path)
    assert child.returncode == 0
    assert [line.split()[1] for line in child.stdout.splitlines()[::2]] == list(registry())
    assert command(str(tmp_path), folder=tmp_path).returncode == 1
    child = command("--help", folder=tmp_path)
    assert child.returncode == 0
    assert child.stdout.startswith("usage: python -m cfltr_book [-h] [--only WORD [WORD ...]] [folder]")


def test_a_closed_pipe_gives_no_traceback(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(cfltr_core.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-m", "cfltr_book"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        said = child.stderr.read()
    assert said.splitlines()[1:] == []
    assert "no claim records below" in said
    assert child.returncode == 0
