"""Verdicts of claims against loops: every kind, over seeds and folds; what decides nothing; and what is recorded."""

import json
import math
from pathlib import Path

import numpy as np
import oracles
import pytest
from claim_files import entry, put, spec

from cfltr_book import claim, mean_interval
from cfltr_book.data.corpora import units_of
from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claim_registry import MEASURED_BY, Claim, level_of
from cfltr_book.reporting.claims import NO_VERDICT, Measurement, NotMeasured, judge, swapped, verdict_of
from cfltr_book.reporting.intervals import FEW_UNITS, log_slopes, look


def unit_means(values: list[float], units: list) -> list[float]:
    """One value per label: the mean of those that carry it, in the order of first appearance."""
    out = []
    for label in dict.fromkeys(units):
        members = [value for value, other in zip(values, units, strict=True) if other == label]
        out.append(math.fsum(members) / len(members))
    return out


LABELS = {
    "ten seeds in five folds": [0, 1, 2, 3, 4, 0, 1, 2, 3, 4],
    "seven seeds in five folds": [3, 4, 0, 1, 2, 3, 4],
    "two folds": [7, 7, 7, 2],
    "one fold": [1, 1, 1],
    "every seed its own": [5, 4, 3, 9],
    "one seed": [0],
    "names": ["b", "a", "b", "c"],
}


@pytest.mark.oracle("intervals.mean_interval")
@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.995])
def test_mean_interval(name: str, level: float) -> None:
    units = LABELS[name]
    values = np.random.default_rng(len(units)).normal(size=len(units)).tolist()
    expected = oracles.mean_interval(unit_means(values, units), level)
    for found in (mean_interval(values, level, units=np.array(units)), look(np.array(values), level, units=units)[:3]):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert look(np.array(values), level, units=units)[3:] == (len(set(units)), "")
    np.testing.assert_allclose(
        mean_interval(values, level), oracles.mean_interval(values, level), rtol=1e-9, atol=1e-12
    )


@pytest.mark.oracle("claims.verdict_of", "intervals.log_slopes")
@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_verdicts_against_loops(seed: int, folded: bool) -> None:
    rng = np.random.default_rng(seed)
    n, level = int(rng.integers(3, 8)), float(rng.choice([0.5, 0.8, 0.95]))
    margin, value = float(rng.uniform(0.05, 1.5)), float(rng.normal())
    units = [0, 1, *rng.integers(0, 3, size=n - 2).tolist()] if folded else list(range(n))
    labels = {"units": units} if folded else {}
    a, b = rng.normal(rng.normal(), 0.4, size=(2, n))
    x, errors = rng.uniform(1, 9, size=5), np.exp(rng.normal(size=(n, 5)))
    slopes = [oracles.slope(x.tolist(), row.tolist()) for row in errors]
    np.testing.assert_allclose(log_slopes(x, errors), slopes, rtol=1e-10)
    cases = [
        ("ordering", {"larger": a, "smaller": b}, (a - b).tolist(), (margin, math.inf)),
        ("ordering", swapped({"larger": a, "smaller": b}), (b - a).tolist(), (margin, math.inf)),
        ("equivalence", {"left": a, "right": b}, (a - b).tolist(), (-margin, margin)),
        ("number", {"values": a}, a.tolist(), (value - margin, value + margin)),
        ("limit", {"x": x, "errors": errors}, slopes, (value - margin, value + margin)),
    ]
    for kind, arrays, sample, zone in cases:
        found = verdict_of(spec(kind, margin=margin, value=value), {**arrays, **labels}, level=level)
        mean, low, high = oracles.mean_interval(unit_means(sample, units), level)
        np.testing.assert_allclose([found.effect, *found.interval], [mean, low, high], rtol=1e-8, atol=1e-10)
        assert found.verdict == oracles.verdict(low, high, *zone)
        assert (found.level, found.seeds, found.units) == (level, n, len(set(units)))
    for kind, names, effect in (
        ("identity", ("left", "right"), max(abs(p - q) for p, q in zip(a, b, strict=True))),
        ("inequality", ("lower", "upper"), max(p - q for p, q in zip(a, b, strict=True))),
    ):
        # A column is as good as a row, and each case stands for itself.
        found = verdict_of(spec(kind, tolerance=margin), {names[0]: a[:, None], names[1]: b[:, None]})
        assert (found.effect, found.seeds) == (pytest.approx(effect), n)
        assert found.verdict == ("supported" if effect <= margin else "contradicted")
        assert (found.interval, found.level, found.units) == (None, None, None)


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


def test_rounding_decides_nothing() -> None:
    """Where 0.2 and 1 − 0.8 are equal by hand, five seeds that gave it neither exceed 0.2 nor fall short of it."""
    assert 1.0 - 0.8 < 0.2
    many = {"larger": [1.0] * 5, "smaller": [0.8] * 5}
    for margin, verdict in ((0.2, "inconclusive"), (0.2 - 1e-9, "supported"), (0.2 + 1e-9, "contradicted")):
        assert verdict_of(spec("ordering", margin=margin), many, level=0.95).verdict == verdict
    for value in (0.0, 0.4):
        one = spec("number", margin=0.2, value=value)
        assert verdict_of(one, {"values": [1.0 - 0.8] * 5}, level=0.95).verdict == "inconclusive"
    # 0.1 + 0.2 − 0.3 is 5.6e-17: nothing, above a margin of 0 as on the page, where -0 would look like an error.
    left = {"larger": [0.1 + 0.2] * 5, "smaller": [0.3] * 5}
    found = verdict_of(spec("ordering", margin=0.0), left, level=0.95)
    assert (found.verdict, found.effect, found.interval) == ("inconclusive", 0.0, (0.0, 0.0))
    none = verdict_of(spec("inequality"), {"lower": [-0.0], "upper": [0.0]})
    assert f"{none.effect:.3g}" == "0"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> dict[str, Claim]:
    """A registry of five claims in two chapters, in place of the real file."""
    return put(
        monkeypatch,
        entry("same", "identity"),
        entry("more", "ordering", control="alike", corpora=["yahoo-like", "letor"]),
        entry("alike", "equivalence"),
        entry("two", value=2.0, chapter="02", predicted="inconclusive"),
        entry("falls", "limit", value=-0.5),
    )


def test_the_statistical_claims_of_a_chapter_share_its_false_alarms(toy: dict[str, Claim]) -> None:
    for name in ("same", "more", "alike", "falls"):
        assert level_of(toy[name]) == pytest.approx(1 - 0.05 / 3, abs=1e-15)
    assert level_of(toy["two"]) == level_of(spec()) == 0.95
    assert verdict_of(toy["more"], {"larger": [1.0, 2.0], "smaller": [0.0, 0.0]}).level == level_of(toy["more"])


@pytest.mark.parametrize("units", [None, [0, 1, 2, 1, 0]])
def test_claim_records_what_the_verdict_rests_on(
    toy: dict[str, Claim], units: list[int] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arrays = {"larger": [3.0, 3.1, 2.9, 3.3, 2.8], "smaller": [1.0, 1.2, 1.1, 1.4, 0.9]}
    labels = None if units is None else units_of("digits", units)
    about = {"scale": "ci", "corpus": "letor:mq2008"}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CFLTR_RUN_DIR", raising=False)
    found = claim("more", **about, units=labels, **arrays)
    assert list(tmp_path.iterdir()) == [], "nothing is written unless the book is being run"
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    assert claim("more", **about, units=labels, **arrays) == found
    written = json.loads((tmp_path / "claims" / "more.json").read_text(encoding="utf-8"))
    # The stored arrays alone give the verdict again.
    assert verdict_of(toy["more"], written["arrays"]) == found
    differences = [a - b for a, b in zip(*arrays.values(), strict=True)]
    mean, low, high = oracles.mean_interval(unit_means(differences, units or [*range(5)]), 1 - 0.05 / 3)
    assert found.verdict == oracles.verdict(low, high, 0.1, math.inf) == "supported"
    np.testing.assert_allclose([written.pop("effect"), *written.pop("interval")], [mean, low, high], rtol=1e-8)
    assert written.pop("level") == pytest.approx(1 - 0.05 / 3, abs=1e-15)
    counted = {"seeds": 5, "units": 3 if units else 5, "reason": ""}
    arrays |= {"units": units} if units else {}
    assert written == {"id": "more", "verdict": "supported", **counted, **about, "arrays": arrays}
    exact = {"left": [1.0, 2.0], "right": [1.0, 2.5]}
    one = claim("same", scale="ci", corpus="digits", units=[0, 0], **exact)
    assert one == claim("same", scale="ci", corpus="digits", **exact), "an exact claim takes no notice of folds"


@pytest.mark.parametrize("values", [[2.0], [1.9, 2.1, 2.0], [1.0, math.nan]])
def test_a_record_gives_back_what_was_measured(
    toy: dict[str, Claim], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, values: list[float]
) -> None:
    """Also an interval without bounds, which is null in JSON, and a number that is none."""
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    result = claim("two", scale="smoke", corpus="digits", values=values)
    record = json.loads((tmp_path / "claims" / "two.json").read_text(encoding="utf-8"))
    read = Measurement.from_record(record)
    # NaN equals nothing, itself included; in words it does.
    assert repr(read.result) == repr(result)
    assert (read.scale, read.corpus) == ("smoke", "digits")
    assert judge(toy["two"], read.arrays).verdict == result.verdict
    assert json.loads(json.dumps(read.as_record()))["arrays"] == {
        "values": [None if math.isnan(v) else v for v in values]
    }
    with pytest.raises(ValueError, match="its verdict is 'maybe', expected one of supported"):
        Measurement.from_record({**record, "verdict": "maybe"})
    for missing in ("verdict", "reason", "scale", "arrays"):
        with pytest.raises(KeyError, match=missing):
            Measurement.from_record({name: value for name, value in record.items() if name != missing})


UNMEASURED = {
    "not finite": ("number", {"values": [1.0, math.inf]}, r"values\[1\] is inf"),
    "not finite, of two dimensions": ("identity", {"left": [[1.0, math.nan]], "right": [[1.0, 1.0]]}, r"left\[0, 1\] "),
    "none": ("number", {"values": []}, "at least one"),
    "negative": ("limit", {"x": [1.0, 2.0, 3.0], "errors": [[1.0, -1.0, 3.0]]}, "must be positive"),
    "without a logarithm": ("limit", {"x": [1.0, 2.0, 0.0], "errors": [[1.0, 1.0, 3.0]]}, "must be positive"),
    "without a slope": ("limit", {"x": [2.0, 2.0, 2.0], "errors": [[1.0, 2.0, 3.0]]}, "all values are 2.0"),
}


@pytest.mark.parametrize("case", UNMEASURED)
def test_numbers_that_allow_no_verdict_stop_a_chapter_only_where_the_claim_gates(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, arrays, words = UNMEASURED[case]
    one = spec(kind, margin=0.5, tolerance=0.5)
    monkeypatch.setattr(claim_registry, "registry", lambda: {one.id: one})
    with pytest.raises(NotMeasured, match=f"some-claim.*{words}"):
        claim(one.id, scale="ci", corpus="yahoo-like", **arrays)
    for scale, corpus in (("smoke", "yahoo-like"), ("ci", "digits")):
        result = claim(one.id, scale=scale, corpus=corpus, **arrays)
        assert (result.verdict, result.interval, result.seeds, result.threshold) == (NO_VERDICT, None, 0, 0.5)
        assert result.reason in result._repr_markdown_()


@pytest.mark.parametrize("field", sorted(Claim.__dataclass_fields__))
def test_a_verdict_depends_on_no_other_field_than_those_it_is_measured_by(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each field in turn is changed: the result changes with those of ``MEASURED_BY``, and with no other."""
    fields = {"chapter": "01", "control": "some-claim", "margin": 0.0}
    other = {"margin": 20.0, "tolerance": 2.0, "value": 10.1, "chapter": "02", "corpora": ("digits",), "control": None}
    arrays = {"larger": [10.0, 10.1, 10.2], "smaller": [0.0, 0.1, 0.0], "left": [1.0], "right": [0.0]}
    wanted = {"identity": ("left", "right"), "ordering": ("larger", "smaller"), "number": ("larger",)}
    companion = spec(id="companion", chapter="02")

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


def test_the_text_of_a_result(toy: dict[str, Claim]) -> None:
    """On its page it bears the mark by which that finds its claim, a link to the scoreboard and an anchor."""
    result = verdict_of(toy["two"], {"values": [2.0, 2.1, 1.8], "units": [0, 1, 0]})
    plain = result.markdown()
    assert plain.startswith("**Claim `two`: inconclusive.** Something holds. *(somewhere; mean 2, 95.0% interval [")
    assert plain.endswith("] over 3 seeds in 2 folds; must lie within 2 ± 0.1)*")
    about = {"cfltr": {"claim": "two"}}
    assert result._repr_mimebundle_() == ({"text/markdown": plain, "text/plain": repr(result)}, about)
    anchored = '<span id="claim-two"></span><a href="board.html#claim-two">`two`</a>'
    assert result.markdown(scoreboard="board.html", anchor=True) == plain.replace("`two`", anchored)
    assert [spec(each="log").counted(values) for values in (1, 2)] == ["1 log", "2 logs"]
