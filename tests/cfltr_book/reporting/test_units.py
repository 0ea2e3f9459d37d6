"""Seeds that share a fold count once: labels of units, intervals over them, and verdicts that rest on them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import oracles
import pytest

from cfltr_book import claim, mean_interval
from cfltr_book.data.corpora import units_of
from cfltr_book.data.letor.folders import fold_of
from cfltr_book.reporting import claim_registry
from cfltr_book.reporting.claim_registry import Claim
from cfltr_book.reporting.claims import swapped, verdict_of
from cfltr_book.reporting.figures import band
from cfltr_book.reporting.intervals import log_slopes


def means_of_units(values: list[float], units: list) -> list[float]:
    """One value per label: the mean of those that carry it, in the order of first appearance."""
    out = []
    for label in dict.fromkeys(units):
        members = [value for value, other in zip(values, units, strict=True) if other == label]
        out.append(math.fsum(members) / len(members))
    return out


# --- the intervals ------------------------------------------------------------------------------------

LABELS = {
    "ten seeds in five folds": [0, 1, 2, 3, 4, 0, 1, 2, 3, 4],
    "seven seeds in five folds": [3, 4, 0, 1, 2, 3, 4],
    "two folds": [7, 7, 7, 2],
    "one fold": [1, 1, 1],
    "every seed its own": [5, 4, 3, 9],
    "one seed": [0],
    "names": ["b", "a", "b", "c"],
}


@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.995])
def test_an_interval_over_units_is_that_of_their_means(name: str, level: float) -> None:
    units = LABELS[name]
    values = np.random.default_rng(len(units)).normal(size=len(units)).tolist()
    expected = oracles.mean_interval(means_of_units(values, units), level)
    for labels in (units, np.array(units)):
        np.testing.assert_allclose(mean_interval(values, level, units=labels), expected, rtol=1e-9, atol=1e-12)


def test_seeds_of_their_own_change_no_digit() -> None:
    values = np.random.default_rng(0).normal(size=9)
    assert mean_interval(values, units=[8, 1, 7, 2, 6, 3, 5, 4, 0]) == mean_interval(values)


def test_an_interval_by_hand() -> None:
    """Folds (1, 3), (2), (0, 6) have the means 2, 2, 3: mean 7/3, deviation 1/√3, half-width 4.3027 / 3."""
    mean, low, high = mean_interval([1.0, 2.0, 0.0, 6.0, 3.0], units=[0, 1, 2, 2, 0])
    np.testing.assert_allclose([mean, low, high], [7 / 3, (7 - 4.3027) / 3, (7 + 4.3027) / 3], rtol=1e-4)


def test_labels_are_one_per_seed() -> None:
    for wrong, shape in (([0, 1], r"\(2,\)"), ([[0], [1], [2]], r"\(3, 1\)"), (0, r"\(\)")):
        with pytest.raises(ValueError, match=rf"^units: expected one label per seed, shape \(3,\), got {shape}$"):
            mean_interval([1.0, 2.0, 3.0], units=wrong)


@pytest.mark.parametrize(("fold_effect", "log_effect"), [(0.0, 1.0), (1.0, 0.0), (1.0, 0.5), (1.0, 1.0)])
def test_coverage_of_ten_seeds_that_visit_five_folds_twice(fold_effect: float, log_effect: float) -> None:
    """A seed's value is its fold's effect plus its log's.  Over folds the interval covers as often as it says.

    Taken as ten values, seeds cover less wherever folds differ.  Two counts may stray four standard deviations.
    """
    n, level = 2_000, 0.95
    units = [0, 1, 2, 3, 4] * 2
    rng = np.random.default_rng([int(10 * fold_effect), int(10 * log_effect)])
    over_folds = over_seeds = 0
    for _ in range(n):
        fold = fold_effect * rng.normal(size=5)
        values = fold[units] + log_effect * rng.normal(size=10)
        _, low, high = mean_interval(values, level, units=units)
        over_folds += low <= 0 <= high
        _, low, high = mean_interval(values, level)
        over_seeds += low <= 0 <= high
    stray = 4 * math.sqrt(n * level * (1 - level))
    assert abs(over_folds - n * level) <= stray
    if fold_effect:
        assert over_seeds < n * level - stray
    else:
        assert abs(over_seeds - n * level) <= stray


@pytest.mark.parametrize("units", [None, [0, 1, 2, 0, 1]])
def test_a_band_over_units(units: list[int] | None) -> None:
    import matplotlib.pyplot as plt

    values = np.random.default_rng(0).normal(size=(5, 3))
    fig, ax = plt.subplots()
    band(ax, [1.0, 2.0, 3.0], values=values, method="ips", units=units)
    corners = ax.collections[0].get_paths()[0].vertices
    for x, column in zip([1.0, 2.0, 3.0], values.T.tolist(), strict=True):
        seen = means_of_units(column, units) if units else column
        _, low, high = oracles.mean_interval(seen, 0.95)
        heights = corners[corners[:, 0] == x, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [low, high], rtol=1e-9)
    plt.close(fig)


# --- the verdicts -------------------------------------------------------------------------------------

UNITS = [0, 1, 2, 0, 1, 2, 0]


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


def measured(kind: str, rng: np.random.Generator) -> tuple[dict, list[float]]:
    """Arrays of seven seeds, and the number that each seed stands for."""
    left, right = rng.normal(size=7), rng.normal(size=7)
    if kind == "limit":
        x = [1.0, 10.0, 100.0, 1000.0]
        errors = np.exp(rng.normal(size=(7, 4))) * np.power(x, -0.5)
        return {"x": x, "errors": errors}, [oracles.slope(x, row) for row in errors.tolist()]
    if kind == "number":
        return {"values": left}, left.tolist()
    names = claim_registry.ARRAYS[kind]
    return dict(zip(names, (left, right), strict=True)), (left - right).tolist()


@pytest.mark.parametrize("kind", ["ordering", "equivalence", "number", "limit"])
@pytest.mark.parametrize("seed", range(5))
def test_a_statistical_verdict_over_units(kind: str, seed: int) -> None:
    arrays, values = measured(kind, np.random.default_rng(seed))
    found = verdict_of(spec(kind, margin=0.3, value=-0.5), {**arrays, "units": UNITS}, level=0.8)
    mean, low, high = oracles.mean_interval(means_of_units(values, UNITS), 0.8)
    np.testing.assert_allclose([found.effect, *found.interval], [mean, low, high], rtol=1e-8)
    centre = {"ordering": math.inf, "equivalence": 0.0}.get(kind, -0.5)
    bottom, top = (0.3, math.inf) if kind == "ordering" else (centre - 0.3, centre + 0.3)
    assert found.verdict == oracles.verdict(low, high, bottom, top)
    assert (found.seeds, found.units) == (7, 3)
    alone = verdict_of(spec(kind, margin=0.3, value=-0.5), arrays, level=0.8)
    assert (alone.seeds, alone.units) == (7, 7)
    np.testing.assert_allclose([alone.effect, *alone.interval], oracles.mean_interval(values, 0.8), rtol=1e-8)


def test_a_difference_that_two_looks_at_each_fold_only_seem_to_show() -> None:
    """Differences .2, .3, .9 twice: six values clear zero at 95 %, three folds do not."""
    six = {"larger": [0.2, 0.3, 0.9] * 2, "smaller": [0.0] * 6}
    _, low, _ = oracles.mean_interval(six["larger"], 0.95)
    _, folds_low, _ = oracles.mean_interval(six["larger"][:3], 0.95)
    assert folds_low < 0 < low
    assert verdict_of(spec("ordering"), six, level=0.95).verdict == "supported"
    assert verdict_of(spec("ordering"), {**six, "units": [0, 1, 2] * 2}, level=0.95).verdict == "inconclusive"


def test_swapped_methods_keep_their_units() -> None:
    arrays = {"larger": [2.0, 3.0, 2.5, 9.0], "smaller": [0.0, 0.1, 0.2, 0.3], "units": [0, 1, 2, 2]}
    turned = swapped(arrays)
    assert turned == {"larger": arrays["smaller"], "smaller": arrays["larger"], "units": [0, 1, 2, 2]}
    low = verdict_of(spec("ordering"), arrays, level=0.5).interval[0]
    high = verdict_of(spec("ordering"), turned, level=0.5).interval[1]
    assert low == -high


def test_labels_that_do_not_fit_the_seeds() -> None:
    with pytest.raises(ValueError, match=r"^some-claim, units: expected one label per seed, shape \(2,\), got \(3,\)$"):
        verdict_of(spec("number", margin=1.0), {"values": [1.0, 2.0], "units": [0, 1, 2]}, level=0.9)
    with pytest.raises(ValueError, match=r"a claim of kind identity takes \('left', 'right'\), got .*'units'"):
        verdict_of(spec("identity", tolerance=1.0), {"left": [1.0], "right": [1.0], "units": [0]})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A registry of two claims, and the folder of their records."""
    specs = {"two": spec("number", id="two", value=2.0, margin=0.5), "same": spec("identity", id="same", tolerance=1.0)}
    monkeypatch.setattr(claim_registry, "registry", lambda: specs)
    monkeypatch.setenv("CFLTR_RUN_DIR", str(tmp_path))
    return tmp_path / "claims"


def test_a_record_holds_the_units_that_its_verdict_rests_on(registry: Path) -> None:
    values, units = [2.0, 2.1, 1.8, 2.3, 2.2], units_of("digits", [0, 1, 2, 1, 0])
    found = claim("two", scale="ci", corpus="digits", units=units, values=values)
    mean, low, high = oracles.mean_interval(means_of_units(values, units.tolist()), 0.95)
    np.testing.assert_allclose([found.effect, *found.interval], [mean, low, high], rtol=1e-8)
    written = json.loads((registry / "two.json").read_text(encoding="utf-8"))
    assert written["arrays"] == {"values": values, "units": [0, 1, 2, 1, 0]}
    assert (written["seeds"], written["units"]) == (5, 3)
    # The stored arrays alone give the verdict again.
    assert verdict_of(claim_registry.registry()["two"], written["arrays"]) == found
    assert "interval [1.5" in found._repr_markdown_()
    assert f"[{low:.3g}, {high:.3g}] over 5 seeds in 3 folds" in found._repr_markdown_()
    assert "over 5 seeds;" in claim("two", scale="ci", corpus="digits", values=values)._repr_markdown_()


def test_an_exact_claim_takes_no_notice_of_units(registry: Path) -> None:
    left, right = [1.0, 2.0, 3.0], [1.0, 2.0, 3.5]
    found = claim("same", scale="ci", corpus="digits", units=[0, 0, 1], left=left, right=right)
    assert found == claim("same", scale="ci", corpus="digits", left=left, right=right)
    assert found.units is None
    written = json.loads((registry / "same.json").read_text(encoding="utf-8"))
    assert written["arrays"] == {"left": left, "right": right}


# --- the labels ---------------------------------------------------------------------------------------

SEEDS = [0, 1, 2, 3, 4, 5, 6, 9, 10, 3]
LAYOUTS = {
    "five parts": [f"S{i}.txt" for i in range(1, 6)],
    "five folds": [f"Fold{k}/{part}.txt" for k in range(1, 6) for part in ("train", "vali", "test")],
    "five folds of one file": [f"Fold{k}/all.txt" for k in range(1, 6)],
    "one split": ["train.txt", "vali.txt", "test.txt"],
    "one split, Istella": ["sample/train.txt", "sample/vali.txt", "sample/test.txt"],
    "one split, Yahoo": ["set1.train.txt", "set1.valid.txt", "set1.test.txt"],
    "one file": ["all.txt"],
}


@pytest.mark.oracle("folders.fold_of", "corpora.units_of")
@pytest.mark.parametrize("nest", ["", "as-unpacked/"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_seeds_that_read_the_same_fold_are_one_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, nest: str
) -> None:
    """Only names are looked at: the files are empty."""
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    for name in LAYOUTS[layout]:
        path = tmp_path / "mine" / nest / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = units_of("letor:mine@2,normalise", SEEDS)
    assert found.dtype == np.int64
    if layout.startswith("five"):
        parts = [oracles.collection_layout([f"S{i}" for i in range(1, 6)], seed) for seed in SEEDS]
        for a, one in zip(found.tolist(), parts, strict=True):
            for b, other in zip(found.tolist(), parts, strict=True):
                assert (a == b) == (one == other)
        assert found.tolist() == [fold_of(tmp_path / "mine", seed) for seed in SEEDS]
    else:
        assert found.tolist() == SEEDS
        assert {fold_of(str(tmp_path / "mine"), seed) for seed in SEEDS} == {None}


@pytest.mark.parametrize("corpus", ["yahoo-like", "istella-like:conflict", "digits"])
def test_other_seeds_are_other_populations_or_splits(corpus: str) -> None:
    assert units_of(corpus, SEEDS).tolist() == SEEDS
    assert units_of(corpus, iter(range(3))).tolist() == [0, 1, 2]
    assert units_of(corpus, []).tolist() == []


def test_units_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="corpus is 'yahoo': choose"):
        units_of("yahoo", [0])
    for seeds, message in (([0, -1], r"seeds\[1\] is -1"), ([0.5], r"seeds\[0\] is 0\.5")):
        with pytest.raises(ValueError, match=f"{message}: expected a whole number of at least 0"):
            units_of("digits", seeds)
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    (tmp_path / "mine" / "Fold1").mkdir(parents=True)
    (tmp_path / "mine" / "Fold1" / "all.txt").touch()
    assert units_of("letor:mine", [0, 5]).tolist() == [0, 0]
    with pytest.raises(ValueError, match="has Fold1 but no Fold2, which the seed asks for"):
        units_of("letor:mine", [0, 1])
    with pytest.raises(FileNotFoundError, match="folder: there is no folder"):
        fold_of(tmp_path / "absent", 0)


def test_slopes_are_those_of_powers() -> None:
    x = np.array([1.0, 10.0, 100.0])
    rows = np.array([3.0 * x**-0.5, 0.2 * x**2])
    np.testing.assert_allclose(log_slopes(x, rows), [-0.5, 2.0], rtol=1e-12)
    # Least squares: numpy's own fit of a line through the logarithms.
    noisy = np.exp(np.random.default_rng(0).normal(size=(4, 3)))
    np.testing.assert_allclose(log_slopes(x, noisy), np.polyfit(np.log(x), np.log(noisy.T), 1)[0], rtol=1e-10)
