"""Samplers, gradients, SGD and the steps of the convergence proofs, against literal loops."""

import itertools
import math
from fractions import Fraction

import numpy as np
import oracles
import pytest
from ragged_logs import CLICKS, DOCUMENT, OFFSETS, PROPENSITY, clicks_in

from cfltr_core import click_sampler, exact_runs, weight_summary
from cfltr_core.learning.convergence import (
    click_gradients,
    convergence_bound,
    gradient_bounds,
    learning_rate_for,
    second_moment,
    steps_for_accuracy,
)
from cfltr_core.learning.proofs import Runs, proof_steps
from cfltr_core.learning.samplers import ClickSampler
from cfltr_core.sampling import AliasTable, Deck, term_draws

EXACT = 1e-12
X = np.random.default_rng(1).normal(size=(17, 6))
X[13] = X[12]  # two documents that nobody can tell apart
LOG = clicks_in(OFFSETS)
RAGGED_WEIGHTS = [
    [1.0],
    [0.2, 0.0, 0.8],
    [5.0, 1.0, 1.0, 1.0, 1.0],
    [1.0] * 7,
    [1e-12, 1.0, 1e6],
    (1.0 / np.random.default_rng(2).random(1000)).tolist(),
    np.random.default_rng(3).exponential(size=20_000).tolist(),
]


@pytest.mark.oracle("convergence.weight_summary")
def test_weight_summary() -> None:
    found = weight_summary(LOG)
    mean, rms, largest = oracles.weight_constants(CLICKS, PROPENSITY)
    np.testing.assert_allclose((found.mean, found.rms, found.maximum), (mean, rms, largest), rtol=EXACT)
    assert found.n_clicks == sum(CLICKS)
    assert found.mean < found.rms < found.maximum


@pytest.mark.oracle("convergence.convergence_bound", "convergence.learning_rate_for", "convergence.steps_for_accuracy")
def test_bounds_are_their_formulas() -> None:
    b, g, m, steps = 2.0, 3.0, 7.0, 50
    alpha = learning_rate_for(b, g, weight=m, steps=steps)
    bound = float(convergence_bound(b, g, weight=m, steps=steps))
    assert math.isclose(bound, oracles.bound_of_theorem(b, g, m, steps, alpha), rel_tol=EXACT)
    # This learning rate makes the right-hand side of Eq. 16 as small as it can be.
    assert all(oracles.bound_of_theorem(b, g, m, steps, alpha * k) > bound for k in (0.9, 1.1))
    np.testing.assert_allclose(convergence_bound(b, g, weight=m, steps=[1, 4, 100]), [42.0, 21.0, 4.2], rtol=EXACT)
    assert math.isclose(steps_for_accuracy(b, g, weight=m, accuracy=bound), steps, rel_tol=EXACT)


@pytest.mark.oracle("convergence.second_moment")
def test_second_moments_and_their_difference() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        w, norms, counts = 1 / rng.uniform(0.05, 1, 6), rng.uniform(0, 3, 6), rng.integers(0, 5, 6)
        counts[0] += 1
        uniform, weighted, covariance = oracles.second_moments(w.tolist(), norms.tolist(), counts.tolist())
        found = [second_moment(w, norms, counts=counts, sampling=kind) for kind in ("uniform", "weighted")]
        np.testing.assert_allclose(found, (uniform, weighted), rtol=EXACT)
        assert math.isclose(found[1] - found[0], -covariance, rel_tol=1e-10, abs_tol=1e-10)
    counterexample = [
        second_moment([1, 10], np.sqrt([100, 0.5]), counts=[1, 1], sampling=kind) for kind in ("uniform", "weighted")
    ]
    np.testing.assert_allclose(counterexample, [75.0, 288.75], rtol=EXACT)


@pytest.mark.oracle("convergence.click_gradients", "convergence.gradient_bounds")
def test_gradients_of_single_clicks() -> None:
    rng = np.random.default_rng(5)
    bounds = gradient_bounds(X, OFFSETS, documents=DOCUMENT)
    np.testing.assert_allclose(bounds, [oracles.largest_gradient(X.tolist(), OFFSETS, d) for d in DOCUMENT], rtol=EXACT)
    for w in (np.zeros(6), rng.normal(size=6), 5 * rng.normal(size=6)):
        found = click_gradients(X, OFFSETS, documents=DOCUMENT, w=w)
        wanted = [oracles.hinge_gradient(X.tolist(), OFFSETS, d, w.tolist()) for d in DOCUMENT]
        np.testing.assert_allclose(found, wanted, rtol=EXACT, atol=EXACT)
        assert np.all(np.linalg.norm(found, axis=1) <= bounds + EXACT)
        for u in rng.normal(size=(5, 6)):  # it is a subgradient: f(u) ≥ f(w) + ⟨u − w, ∇f(w)⟩
            for d, g in zip(DOCUMENT, found, strict=True):
                at_w, at_u = (oracles.hinge_risk(X.tolist(), OFFSETS, d, v.tolist()) for v in (w, u))
                assert at_u >= at_w + g @ (u - w) - 1e-9


@pytest.mark.oracle("sampling.AliasTable.build", "sampling.AliasTable.probabilities")
@pytest.mark.parametrize("case", range(len(RAGGED_WEIGHTS)))
def test_an_alias_table_implies_its_weights(case: int) -> None:
    weights = np.array(RAGGED_WEIGHTS[case])
    table = AliasTable.build(weights)
    wanted = weights / math.fsum(weights)
    np.testing.assert_allclose(oracles.implied(table.keep.tolist(), table.alias.tolist()), wanted, rtol=0, atol=EXACT)
    np.testing.assert_allclose(table.probabilities(), wanted, rtol=0, atol=EXACT)
    assert np.all((table.probabilities() == 0) == (weights == 0))


def test_every_small_list_of_weights() -> None:
    """Columns that are exactly full, light and heavy ones in every order."""
    for weights in (w for n in range(1, 6) for w in itertools.product(range(4), repeat=n) if sum(w)):
        table, law = AliasTable.build(weights), [float(Fraction(weight, sum(weights))) for weight in weights]
        found = oracles.implied(table.keep.tolist(), table.alias.tolist())
        np.testing.assert_allclose([found, table.probabilities()], [law, law], rtol=0, atol=1e-15)


@pytest.mark.oracle("sampling.AliasTable", "sampling.AliasTable.draw")
def test_draws_follow_the_table() -> None:
    keep, alias = [0.25, 1.0, 0.5], [1, 1, 0]
    table = AliasTable(keep, alias)
    drawn = table.draw(2_000, np.random.default_rng(6))
    assert drawn.tolist() == oracles.alias_draws(keep, alias, 2_000, 6)
    share = np.bincount(drawn, minlength=3) / 2_000
    wanted = np.array(oracles.implied(keep, alias))
    assert np.all(np.abs(share - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / 2_000))
    for size in ((3, 4), (2, 3), 0):
        found = table.draw(size, np.random.default_rng(7))
        assert found.shape == np.empty(size).shape
        assert found.ravel().tolist() == oracles.alias_draws(keep, alias, found.size, 7)
    assert repr(table) == "AliasTable(3 categories)"


@pytest.mark.oracle("samplers.click_sampler", "samplers.ClickSampler")
@pytest.mark.parametrize("method", ["biased", "ips", "countersample"])
def test_samplers_have_their_laws_and_factors(method: str) -> None:
    sampler = click_sampler(LOG, method)
    assert isinstance(sampler, ClickSampler)
    law, factor = oracles.sgd_laws(CLICKS, PROPENSITY)[method]
    clicked = [t for t, c in enumerate(CLICKS) if c]
    assert sampler.document.tolist() == [DOCUMENT[t] for t in clicked]
    np.testing.assert_allclose(sampler.table.probabilities(), [law[t] for t in clicked], rtol=0, atol=EXACT)
    np.testing.assert_allclose(sampler.factor, [factor[t] for t in clicked], rtol=EXACT)
    # Unbiased for R, or not: P · scale against clicks · w / n.
    wanted = [CLICKS[t] / PROPENSITY[t] / sum(CLICKS) for t in clicked]
    assert np.allclose(sampler.table.probabilities() * sampler.factor, wanted, rtol=0, atol=EXACT) == (
        method != "biased"
    )


def small_problem(seed: int, n: int = 3, d: int = 2):
    """f_i(w) = |⟨a_i, w⟩ − b_i|, with its risk and gradients as callables of many states, and as loops."""
    rng = np.random.default_rng(seed)
    a, b, w = rng.normal(size=(n, d)), rng.normal(size=n), 1 / rng.uniform(0.1, 1, n)

    def gradients(states: np.ndarray) -> np.ndarray:
        return np.sign(states @ a.T - b)[:, :, None] * a

    def one(i: int, state: list[float]) -> list[float]:
        sign = np.sign(oracles.inner(state, a[i]) - b[i])
        return [float(sign * x) for x in a[i]]

    def risk(states: np.ndarray) -> np.ndarray:
        return (w * np.abs(states @ a.T - b)).mean(axis=1)

    def slope(states: np.ndarray) -> np.ndarray:
        return (w[:, None] * gradients(states)).mean(axis=1)

    return a, b, w, gradients, one, risk, slope


def at_one(function):
    """A callable of many states as a callable of one."""
    return lambda state: function(np.array([state]))[0]


@pytest.mark.oracle("proofs.exact_runs", "proofs.Runs.average")
def test_all_sequences_are_followed() -> None:
    *_, w, gradients, one, _, _ = small_problem(9)
    chance = w / w.sum()
    runs = exact_runs(gradients, chance, factor=np.full(3, w.mean()), learning_rate=0.3, steps=4, n_features=2)
    wanted = oracles.sequences(one, chance.tolist(), [w.mean()] * 3, 0.3, 4, 2)
    np.testing.assert_allclose(runs.probability, [p for p, _, _ in wanted], rtol=EXACT)
    np.testing.assert_allclose(runs.iterates, [path for _, path, _ in wanted], rtol=0, atol=EXACT)
    np.testing.assert_allclose(runs.gradients, [g for _, _, g in wanted], rtol=0, atol=EXACT)
    np.testing.assert_allclose(runs.average, [np.mean(path, axis=0) for _, path, _ in wanted], rtol=0, atol=EXACT)
    assert math.isclose(runs.probability.sum(), 1, rel_tol=EXACT)


@pytest.mark.oracle("proofs.proof_steps", "proofs.ProofSteps.ladder")
@pytest.mark.parametrize("method", ["ips", "countersample"])
def test_every_step_of_the_proof(method: str) -> None:
    for seed in range(5):
        a, _, w, gradients, one, risk, slope = small_problem(seed)
        chance, scale = {"ips": (np.full(3, 1 / 3), w), "countersample": (w / w.sum(), np.full(3, w.mean()))}[method]
        star, top, rate = np.array([0.3, -0.2]), float(scale.max() * np.linalg.norm(a, axis=1).max()), 0.1
        runs = exact_runs(gradients, chance, factor=scale, learning_rate=rate, steps=4, n_features=2)
        found = proof_steps(
            runs, risk, risk_gradient=slope, optimum=star, radius=0.5, gradient_bound=top, moment_bound=0.8 * top**2
        )
        loops = oracles.sequences(one, chance.tolist(), scale.tolist(), rate, 4, 2)
        values, slack = oracles.ladder(loops, at_one(risk), at_one(slope), star.tolist(), rate, 0.5, top, 0.8 * top**2)
        np.testing.assert_allclose(found.ladder, values, rtol=1e-10, atol=EXACT)
        slacks = (found.jensen_slack, found.subgradient_slack, found.lemma_slack, found.gradient_slack)
        np.testing.assert_allclose(slacks, slack, rtol=1e-9, atol=1e-10)
        assert min(slacks) > -1e-12
        assert math.isclose(found.inner_exact, found.inner_sampled, abs_tol=EXACT)  # gradients are unbiased
        # What Lemma 14.1 gives away is the distance at the end: Σ⟨w_t − w*, g_t⟩ = … − ‖w_{T+1} − w*‖² / 2α.
        end = runs.iterates[:, -1] - rate * runs.gradients[:, -1] - star
        gap = 4 * (found.lemma - found.inner_sampled)
        assert math.isclose(gap, runs.probability @ (end**2).sum(axis=1) / (2 * rate), rel_tol=1e-9)


def test_a_biased_gradient_breaks_the_step_that_needs_it() -> None:
    _, _, _, gradients, _, risk, slope = small_problem(2)
    runs = exact_runs(
        gradients, np.full(3, 1 / 3), factor=np.ones(3), learning_rate=0.1, steps=4, n_features=2
    )  # Biased-SGD, judged by R_IPS
    found = proof_steps(runs, risk, risk_gradient=slope, optimum=[0.3, -0.2], radius=0.5, gradient_bound=10.0)
    assert abs(found.inner_exact - found.inner_sampled) > 1e-3
    assert isinstance(runs, Runs)


N = sum(CLICKS)


@pytest.mark.oracle("sampling.Deck", "sampling.Deck.epochs", "sampling.Deck.probabilities", "sampling.term_draws")
@pytest.mark.parametrize(("runs", "batch"), [(1, 1), (1, 3), (2, 1), (3, 4), (2, 45), (1, 5000)])
def test_a_deck_is_dealt_to_its_last_card(runs: int, batch: int) -> None:
    deck = Deck(CLICKS)
    steps = math.ceil(4 * N / batch) + 1
    found: list[np.ndarray] = []
    for part in term_draws(deck, (runs, batch), np.random.default_rng(5)):
        found += [*part.reshape(-1, runs, batch)]
        if len(found) >= steps:
            break
    dealt = np.array(found[:steps])
    assert dealt.tolist() == oracles.dealt(CLICKS, runs, batch, steps, 5)
    streams = dealt.swapaxes(0, 1).reshape(runs, -1)
    for stream in streams:
        for epoch in range(streams.shape[1] // N):
            assert np.bincount(stream[epoch * N : (epoch + 1) * N], minlength=8).tolist() == CLICKS
    assert not np.array_equal(streams[0][:N], streams[0][N : 2 * N])
    epochs = deck.epochs(runs, np.random.default_rng(5))
    first = next(epochs)
    assert first.dtype == np.int32
    assert first.shape == (runs, N)
    np.testing.assert_allclose(deck.probabilities(), [c / N for c in CLICKS], rtol=EXACT)


def test_all_orders_are_equally_likely() -> None:
    orders: dict[tuple[int, ...], int] = dict.fromkeys(itertools.permutations(range(3)), 0)
    epochs = Deck([1, 1, 1]).epochs(1, np.random.default_rng(11))
    for _ in range(6_000):
        orders[tuple(next(epochs)[0].tolist())] += 1
    spread = math.sqrt(6_000 * 1 / 6 * 5 / 6)
    assert all(abs(count - 1_000) < 4 * spread for count in orders.values())


def test_draws_with_replacement_do_not_depend_on_how_they_are_asked_for() -> None:
    table = AliasTable.build([1.0, 2.0, 5.0])
    chunk = next(term_draws(table, (2, 3), np.random.default_rng(3)))
    np.testing.assert_array_equal(chunk, table.draw((4096 // 6, 6), np.random.default_rng(3)))
    assert next(term_draws(table, (3, 3000), np.random.default_rng(3))).shape == (1, 9000)


def test_a_deck_is_another_table_of_the_same_sampler() -> None:
    deck, table = (click_sampler(LOG, "ips", replacement=replacement) for replacement in (False, True))
    assert repr(deck.table) == "Deck(20 cards of 7 categories)"
    np.testing.assert_array_equal(deck.factor, table.factor)
    np.testing.assert_allclose(deck.table.probabilities(), table.table.probabilities(), rtol=0, atol=EXACT)
