"""EM with free attraction and with a scorer, and what joint fits say, against loops over displays."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import oracles
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from refusals import refuses
from sklearn.linear_model import LogisticRegression, Ridge

from cfltr_core.propensity.conditional_poisson import conditional_poisson
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.joint_fits import AssumptionRange, JointFit, assumption_range, joint_fit, joint_links
from cfltr_core.propensity.joint_models import ClickLikelihood, expectation_maximisation, regression_em
from cfltr_core.propensity.strata import DisplayCounts
from cfltr_core.propensity.towers import two_towers

TERMS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(1, 4)),
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
    min_size=2,
    max_size=12,
)


def terms_of(cells: dict[tuple[int, int], tuple[int, int]]) -> list[oracles.Term]:
    """Strata numbered without a gap, in order."""
    number = {d: s for s, d in enumerate(sorted({d for d, _ in cells}))}
    return [(number[d], k, n, c) for (d, k), (n, c) in sorted(cells.items())]


def counts_of(terms: list[oracles.Term]) -> DisplayCounts:
    stratum, rank, impressions, clicks = zip(*terms, strict=True)
    return DisplayCounts(
        query=np.array(stratum) // 2, document=stratum, rank=rank, impressions=impressions, clicks=clicks
    )  # fmt: skip


def simulated(seed: int, shown_at: Callable[[int], list[int]], n_strata: int = 8) -> list[oracles.Term]:
    """Clicks of a position-based user with θ = 1, 1/2, 1/3, 1/4 on strata that were shown at some of these ranks."""
    rng, out = np.random.default_rng(seed), []
    for s in range(n_strata):
        rho = rng.uniform(0.2, 0.8)
        out += [(s, k, 200, int(rng.binomial(200, rho / k))) for k in shown_at(s)]
    return out


def at_three(s: int) -> list[int]:
    return [k for k in (1, 2, 3, 4) if k != s % 4 + 1]


def at_one(s: int) -> list[int]:
    return [s % 4 + 1]


def features_of(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 2))


@pytest.mark.oracle("joint_models.ClickLikelihood.__call__")
@pytest.mark.parametrize("combine", ["product", "additive"])
@given(cells=TERMS, data=st.data())
def test_the_likelihood_and_its_slopes(combine: str, cells: dict, data: st.DataObject) -> None:
    terms = terms_of(cells)
    counts = counts_of(terms)
    n_strata = len(counts.start) - 1
    number = st.floats(-4, -0.05) if combine == "product" else st.floats(-3, 3)
    a, f = (data.draw(st.lists(number, min_size=n, max_size=n)) for n in (counts.n_ranks, n_strata))
    value, by_rank, by_stratum = ClickLikelihood(counts, combine)(np.array(a), np.array(f))

    def literal(a: list[float], f: list[float]) -> float:
        if combine == "additive":
            return oracles.tower_value(terms, a, f, "additive")
        return oracles.joint_value(
            terms, dict(enumerate(map(math.exp, a), start=1)), dict(enumerate(map(math.exp, f)))
        )  # fmt: skip

    assert value == pytest.approx(literal(a, f), rel=1e-11)
    displays = sum(n for _, _, n, _ in terms)
    for found, slope in (
        (by_rank, oracles.differences(lambda x: literal(x, f), a)),
        (by_stratum, oracles.differences(lambda x: literal(a, x), f)),
    ):
        np.testing.assert_allclose(found / displays, np.array(slope) / displays, atol=2e-6)


def test_chances_next_to_0_and_1_are_not_rounded_away() -> None:
    counts = counts_of([(0, 1, 5, 2), (0, 2, 5, 1)])
    for combine, far in itertools.product(("product", "additive"), (-600.0, -1e-13, 30.0, 600.0)):
        if combine == "product" and far > 0:
            continue
        value, by_rank, by_stratum = ClickLikelihood(counts, combine)(np.array([far, 0.0]), np.array([min(far, 0)]))
        assert np.isfinite([value, *by_rank, *by_stratum]).all()
    # log(1 − σ(30)²) = log 2 − 30 up to rounding that is relative.
    silent, near = ClickLikelihood(counts_of([(0, 1, 1, 0), (0, 2, 1, 0)])), -math.log1p(math.exp(-30))
    assert silent(np.array([near, -700.0]), np.array([near]))[0] == pytest.approx(math.log(2) - 30, rel=1e-10)
    sure = counts_of([(0, 1, 5, 5), (0, 2, 5, 5)])
    assert ClickLikelihood(sure)(np.zeros(2), np.zeros(1))[0] == 0.0


@pytest.mark.oracle("joint_models.expectation_maximisation")
@settings(max_examples=30)
@given(cells=TERMS)
@example(cells={(0, 1): (2, 2), (0, 2): (1, 1), (1, 1): (1, 0)})
def test_the_likelihood_never_falls_and_the_history_is_that_of_loops(cells: dict) -> None:
    terms = terms_of(cells)
    assume(len({k for _, k, _, c in terms if c}) > 1)
    counts = counts_of(terms)
    fit = expectation_maximisation(counts, iterations=12)
    theta = {k: 0.5 if any(k == term[1] for term in terms) else 0.0 for k in range(1, counts.n_ranks + 1)}
    gamma = dict.fromkeys(range(len(counts.start) - 1), 0.5)
    history = [oracles.joint_value(terms, theta, gamma)]
    for _ in range(12):
        theta, gamma = oracles.em_step(terms, theta, gamma)
        history.append(oracles.joint_value(terms, theta, gamma))
    np.testing.assert_allclose(fit.history, history, rtol=1e-9, atol=1e-12)
    assert (np.diff(fit.history) >= -1e-9 * np.abs(fit.history[:-1])).all()
    found = np.outer(fit.attraction, fit.examination)
    expected = [[gamma[s] * theta[k] for k in theta] for s in gamma]
    # As θ nears 1 each step multiplies γ by 1 − θ, whose rounding is relative to 1: the example's γ is 1e-32.
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-25)


@pytest.mark.parametrize("seed", range(3))
def test_a_fixed_point_is_a_stationary_point(seed: int) -> None:
    terms = simulated(seed, at_three)
    fit = expectation_maximisation(counts_of(terms), iterations=50_000, tolerance=1e-14)
    assert fit.components == ((1, 2, 3, 4),)
    # Anywhere on the ray θ → aθ, γ → γ/a: half of the examination of the fit.
    at = [*(fit.examination / 2), *(fit.attraction * 2)]

    def value(x: list[float]) -> float:
        return oracles.joint_value(terms, dict(enumerate(x[:4], start=1)), dict(enumerate(x[4:])))

    displays = sum(n for _, _, n, _ in terms)
    np.testing.assert_allclose(np.array(oracles.differences(value, at)) / displays, 0, atol=1e-6)
    assert not any("Not converged" in note for note in fit.notes)


def test_with_one_ranker_nothing_is_identified_and_the_start_decides() -> None:
    terms = simulated(0, at_one)
    counts = counts_of(terms)
    fits = [
        expectation_maximisation(counts, iterations=3_000, start=(theta, np.full(8, 0.5)))
        for theta in (np.full(4, 0.5), [0.9, 0.9, 0.4, 0.9])
    ]
    for fit in fits:
        assert fit.components == ((1,), (2,), (3,), (4,))
        np.testing.assert_array_equal(fit.curve, [1, math.nan, math.nan, math.nan])
        assert "No document links rank 1 with rank 2" in fit.diagnosis
        refuses("rank 2 cannot be compared with rank 1", fit.user)
        # θ_k γ_s is the click rate, in both worlds.
        rates = [c / n for _, _, n, c in terms]
        found = [fit.examination[k - 1] * fit.attraction[s] for s, k, _, _ in terms]
        np.testing.assert_allclose(found, rates, rtol=1e-6)
    assert fits[0].history[-1] == pytest.approx(fits[1].history[-1], rel=1e-9)
    assert abs(fits[0].examination / fits[1].examination - 1).max() > 0.3
    refuses("counts: no two ranks can be compared", conditional_poisson, counts)
    x = features_of(0, 8)
    for fit in (regression_em(counts, x, iterations=50), two_towers(counts, x)):
        assert np.isfinite(fit.curve).all()
        assert fit.notes[0].startswith(
            "Between the groups rank 1 | rank 2 | rank 3 | rank 4 these ratios are the model's"
        )
        assert fit.notes[0].endswith("no document was shown in two of them.")


@pytest.mark.oracle("joint_models.regression_em", "towers.two_towers")
@pytest.mark.parametrize("shown_at", [at_three, at_one])
def test_regression_em_and_the_product_of_towers_rest_where_the_likelihood_is_flat(shown_at: Callable) -> None:
    terms = simulated(1, shown_at, n_strata=12)
    counts, x = counts_of(terms), features_of(1, 12)
    em = regression_em(counts, x, iterations=60_000, tolerance=1e-13)
    towers = two_towers(counts, x, steps=2_000)
    np.testing.assert_allclose(em.curve, towers.curve, rtol=1e-4)
    np.testing.assert_allclose(em.attraction, towers.attraction, rtol=1e-4)
    assert em.history[-1] == pytest.approx(towers.history[-1], rel=1e-9)
    assert (np.diff(em.history) >= -1e-9 * np.abs(em.history[:-1])).all()
    assert (np.diff(towers.history) >= -1e-9 * np.abs(towers.history[:-1])).all()
    np.testing.assert_allclose(em.ranker.weights, towers.ranker.weights, rtol=1e-3)
    # The likelihood as a function of a, b and w, in loops: flat at what the towers say.
    w = towers.ranker.weights
    raw = oracles.linear_scores(x.tolist(), w.tolist())

    def value(at: list[float]) -> float:
        scores = [at[4] + f for f in oracles.linear_scores(x.tolist(), at[5:])]
        return oracles.tower_value(terms, at[:4], scores, "product")

    # attraction = t σ(b + w·x) with t = θ_1: the largest and the smallest give t, and then b.
    top, low = int(np.argmax(towers.attraction)), int(np.argmin(towers.attraction))

    def logit(s: int, t: float) -> float:
        return math.log(towers.attraction[s] / (t - towers.attraction[s]))

    t = oracles.bisect(
        lambda t: -(logit(top, t) - logit(low, t)), -(raw[top] - raw[low]), towers.attraction[top] * (1 + 1e-9), 1.0
    )
    theta = towers.examination * t
    at = [*np.log(theta / (1 - theta)).tolist(), logit(top, t) - raw[top], *w]
    displays = sum(n for _, _, n, _ in terms)
    np.testing.assert_allclose(np.array(oracles.differences(value, at)) / displays, 0, atol=1e-6)


def test_a_scorer_of_your_own() -> None:
    terms = simulated(2, at_three, n_strata=12)
    counts, x = counts_of(terms), features_of(2, 12)
    linear = regression_em(counts, x, iterations=150)
    classes = regression_em(counts, x, iterations=150, scorer=LogisticRegression(C=1e6, max_iter=500, tol=1e-8))
    np.testing.assert_allclose(classes.curve, linear.curve, rtol=1e-2)
    assert classes.ranker is None
    assert "LogisticRegression" in classes.assumption
    shares = regression_em(counts, x, iterations=50, scorer=Ridge())
    assert np.isfinite(shares.curve).all()

    class Wrong:
        def fit(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray) -> None:
            self.called = getattr(self, "called", 0) + 1

        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.full(len(X), 0.3 + 0.4 * (self.called % 2))

    noisy = regression_em(counts, x, iterations=9, scorer=Wrong())
    assert any(note.startswith("The likelihood fell in") for note in noisy.notes)
    assert noisy.notes[-1].startswith("Not converged: iteration 9 still moved a ratio by")


@pytest.mark.oracle("joint_fits.joint_fit", "joint_fits.joint_links",
                    "identifiability.RankLinks.gaps")  # fmt: skip
@given(cells=TERMS)
def test_groups_of_a_model(cells: dict[tuple[int, int], tuple[int, int]]) -> None:
    terms = terms_of(cells)
    counts = counts_of(terms)
    clicks = oracles.clicks_by_rank(terms, counts.n_ranks)
    if sum(c > 0 for c in clicks) < 2:
        why = "there is no click" if sum(clicks) == 0 else "clicks are at rank "
        refuses(f"counts: {why}", joint_links, counts)
        return
    links = joint_links(counts)
    theta, top = np.linspace(0.8, 0.2, counts.n_ranks), int(np.argmax(np.array(clicks) > 0))
    gamma = np.full(len(counts.start) - 1, 0.4)
    fit = joint_fit("a fit", links, theta=theta, attraction=gamma, history=np.zeros(2), assumption="some")
    group = [0 if c else k for k, c in enumerate(clicks, start=1)]
    component = np.array([sorted(set(group), key=group.index).index(g) for g in group])
    np.testing.assert_array_equal(fit.component, component)
    shown = {k for _, k, _, _ in terms}
    for words, ranks in (
        ("Shown but never clicked", [k for k in sorted(shown) if clicks[k - 1] == 0]),
        ("Never shown", [k for k in range(1, counts.n_ranks) if k not in shown]),
    ):
        said = [note.split(": ")[1].split(";")[0] for note in links.gaps if note.startswith(words)]
        assert said == ([oracles.rank_words(ranks)] if ranks else [])
    assert fit.notes[len(fit.notes) - len(links.gaps) :] == links.gaps
    assert isinstance(fit, JointFit)
    np.testing.assert_allclose(fit.examination, theta / theta[top])
    np.testing.assert_allclose(fit.attraction, 0.4 * theta[top])
    known = component == component[0]
    np.testing.assert_allclose(fit.curve, np.where(known, theta / theta[0], math.nan), rtol=1e-12)
    assert fit.standard_error[0] == 0
    assert np.isnan(fit.standard_error[1:]).all()


@pytest.mark.oracle("joint_fits.assumption_range", "joint_fits.AssumptionRange.low",
                    "joint_fits.AssumptionRange.high", "joint_fits.AssumptionRange.width",
                    "joint_fits.AssumptionRange.diagnosis")  # fmt: skip
def test_a_range_over_assumptions() -> None:
    def curve(log_ratio: list[float], component: list[int]) -> PropensityCurve:
        n = len(log_ratio)
        return PropensityCurve(
            method="m", log_ratio=np.array(log_ratio), covariance=np.full((n, n), math.nan),
            component=np.array(component), clicks=np.ones(n),
        )  # fmt: skip

    logs = [[0.0, -1.0, -2.0], [0.0, -0.5, -2.5], [0.0, -0.7, 0.0]]
    found = assumption_range({name: curve(u, [0, 0, int(name == "c")]) for name, u in zip("abc", logs, strict=True)})
    assert isinstance(found, AssumptionRange)
    assert found.names == ("a", "b", "c")
    values = [[math.exp(u[k]) for u in logs] for k in range(2)]
    np.testing.assert_allclose(found.low, [*map(min, values), math.nan])
    np.testing.assert_allclose(found.high, [*map(max, values), math.nan])
    np.testing.assert_allclose(found.width, [*(max(v) - min(v) for v in values), math.nan])
    assert found.diagnosis.splitlines() == [
        f"They disagree most at rank 2: {math.exp(-1):.3g} with a, {math.exp(-0.5):.3g} with b; which is right hangs "
        "on what is assumed of relevance.",
        f"No range at {oracles.rank_words([3])}: not known to c.",
    ]
    assert repr(found) == "AssumptionRange(3 assumptions: a, b, c; 3 ranks)"
    refuses("fits: expected at least two curves by name, got 1", assumption_range, {"a": curve(logs[0], [0, 0, 0])})
    refuses("fits['b'] has 2", assumption_range, {"a": curve(logs[0], [0, 0, 0]), "b": curve([0.0, -1.0], [0, 0])})


COUNTS = counts_of(simulated(0, at_three))
X = features_of(0, 8)
BAD: dict[str, Callable[[], object]] = {
    "counts: there is no click": lambda: expectation_maximisation(counts_of([(0, 1, 5, 0), (0, 2, 5, 0)])),
    "counts: clicks are at rank 1 only": lambda: regression_em(counts_of([(0, 1, 5, 2), (1, 1, 5, 1)]), X),
    "start: expected a pair": lambda: expectation_maximisation(COUNTS, start=np.full(4, 0.5)),
    "start: theta has shape (1,)": lambda: expectation_maximisation(COUNTS, start=([0.5], np.full(8, 0.5))),
    "start: attraction[7] is 1.0": lambda: expectation_maximisation(COUNTS, start=(np.full(4, 0.5), [0.5] * 7 + [1.0])),
    "scorer is int": lambda: regression_em(COUNTS, X, scorer=3),
    "scorer is Half": lambda: regression_em(COUNTS, X, scorer=type("Half", (), {"fit": print})()),
    "scorer: predicted (8, 2)": lambda: regression_em(
        COUNTS, X, scorer=type("Odd", (), {"fit": lambda *a, **k: None, "predict": lambda s, x: x})()
    ),
}


@pytest.mark.parametrize("start", BAD)
def test_bad_input(start: str) -> None:
    refuses(start, BAD[start])
