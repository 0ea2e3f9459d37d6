"""Bounds of SGD, its runs along every sequence of draws, and the steps of the proofs, against literal loops."""

import math

import numpy as np
import oracles
import pytest

from cfltr_book.theory.convergence import convergence_bound, learning_rate_for, second_moment, steps_for_accuracy
from cfltr_book.theory.proofs import Runs, exact_runs, proof_steps

EXACT = 1e-12


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
