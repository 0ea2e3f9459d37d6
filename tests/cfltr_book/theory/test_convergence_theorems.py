"""Theorems 1, 2 and 3 of Jagerman & de Rijke 2020 on random convex problems, with exact expectations.

Each problem has three weighted convex losses (two in the tight family); the expectation runs over all sequences of
indices.  w* minimises R exactly: a linear programme or a closed form.  Half of the problems are hinge ranks with five
or more features.  The controls change one assumption, or shrink one constant to a third, and must break the theorem.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from cfltr_book.theory.convergence import convergence_bound, learning_rate_for
from cfltr_book.theory.proofs import Runs, exact_runs

ROUNDING = 1e-9
STEPS = 5


@dataclass(frozen=True)
class Problem:
    """Weights, losses (m, n) and gradients (m, n, d) at m states, a minimiser, B ≥ ‖w*‖ and G ≥ ‖∇f_i‖ everywhere."""

    weights: np.ndarray
    losses: Callable[[np.ndarray], np.ndarray]
    gradients: Callable[[np.ndarray], np.ndarray]
    optimum: np.ndarray
    gradient: float

    @property
    def radius(self) -> float:
        return float(np.linalg.norm(self.optimum))

    def risk(self, states: np.ndarray) -> np.ndarray:
        return (self.losses(states) * self.weights).mean(axis=1)

    def risk_gradient(self, states: np.ndarray) -> np.ndarray:
        return (self.gradients(states) * self.weights[:, None]).mean(axis=1)

    def law(self, method: str) -> tuple[np.ndarray, np.ndarray]:
        n, w = len(self.weights), self.weights
        if method == "ips":
            return np.full(n, 1 / n), w
        return w / w.sum(), np.full(n, w.mean())


def of_pieces(weights: np.ndarray, pieces: list[tuple[np.ndarray, np.ndarray]]) -> Problem:
    """f_i(w) = Σ_k max(0, b_ik + ⟨a_ik, w⟩) with pieces (a_i, b_i); w* is the vertex of a linear programme."""
    n, d = len(weights), pieces[0][0].shape[1]
    rows = sum(len(b) for _, b in pieces)
    cost = np.concatenate([np.zeros(d), *(np.full(len(b), w / n) for w, (_, b) in zip(weights, pieces, strict=True))])
    upper = np.hstack([np.vstack([a for a, _ in pieces]), -np.eye(rows)])
    free = [(None, None)] * d + [(0, None)] * rows
    found = linprog(cost, A_ub=upper, b_ub=-np.concatenate([b for _, b in pieces]), bounds=free, method="highs")
    assert found.status == 0

    def margins(states: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return b + states @ a.T

    # The largest norm over all sets of active pieces bounds the gradient at every w.
    largest = max(
        np.linalg.norm(np.array(active) @ a) for a, b in pieces for active in itertools.product([0, 1], repeat=len(b))
    )
    problem = Problem(
        weights,
        lambda s: np.stack([np.maximum(0, margins(s, a, b)).sum(axis=1) for a, b in pieces], axis=1),
        lambda s: np.stack([(margins(s, a, b) > 0).astype(float) @ a for a, b in pieces], axis=1),
        found.x[:d],
        float(largest),
    )
    assert np.isclose(problem.risk(problem.optimum[None])[0], found.fun, rtol=1e-8, atol=1e-9)
    return problem


def hinge_rank(rng: np.random.Generator) -> Problem:
    """Three clicks on lists of four to six documents with five to seven features."""
    d = int(rng.integers(5, 8))
    pieces = []
    for _ in range(3):
        documents = rng.normal(size=(int(rng.integers(4, 7)), d))
        difference = documents[1:] - documents[0]
        pieces.append((difference, np.ones(len(difference))))
    return of_pieces(1 / rng.uniform(0.02, 1, 3), pieces)


def absolute(rng: np.random.Generator) -> Problem:
    """|⟨a, w⟩ − b| as two pieces."""
    d = int(rng.integers(1, 4))
    a, b = rng.normal(size=(3, d)), rng.normal(size=3)
    pieces = [(np.stack([u, -u]), np.array([-v, v])) for u, v in zip(a, b, strict=True)]
    return of_pieces(1 / rng.uniform(0.02, 1, 3), pieces)


def linear(rng: np.random.Generator) -> Problem:
    """⟨a, w⟩, minimised in the ball of radius 1 (§4.1 asks for a minimiser in a ball)."""
    a, w = rng.normal(size=(3, 4)), 1 / rng.uniform(0.02, 1, 3)
    mean = (w[:, None] * a).mean(axis=0)
    return Problem(
        w,
        lambda s: s @ a.T,
        lambda s: np.broadcast_to(a, (len(s), 3, 4)),
        -mean / np.linalg.norm(mean),
        float(np.linalg.norm(a, axis=1).max()),
    )


def tight(rng: np.random.Generator) -> Problem:
    """Two clicks with the same loss |⟨u, w⟩ − b|: every step goes the same way, and nothing cancels."""
    u = rng.normal(size=2)
    b = rng.uniform(0.5, 2)
    w = 1 / rng.uniform(0.3, 1, 2)
    return Problem(
        w,
        lambda s: np.repeat(np.abs(s @ u - b)[:, None], 2, axis=1),
        lambda s: np.repeat((np.sign(s @ u - b)[:, None] * u)[:, None], 2, axis=1),
        b * u / (u @ u),
        float(np.linalg.norm(u)),
    )


FAMILIES = {
    "hinge rank": (hinge_rank, 520),
    "absolute": (absolute, 180),
    "linear": (linear, 180),
    "tight": (tight, 160),
}
# Which scale a theorem puts in place of the weights.
SCALES = {
    "theorem 1": ("ips", lambda w: w.max()),
    "theorem 1 with RMS": ("ips", lambda w: np.sqrt((w**2).mean())),
    "theorem 3": ("countersample", lambda w: w.mean()),
}


@cache
def problems() -> dict[str, list[Problem]]:
    rng = np.random.default_rng(0)
    return {name: [make(rng) for _ in range(count)] for name, (make, count) in FAMILIES.items()}


def run(problem: Problem, method: str, scale: float, steps: int = STEPS, gradient: float | None = None) -> Runs:
    rate = learning_rate_for(problem.radius, gradient or problem.gradient, weight=scale, steps=steps)
    chance, factor = problem.law(method)
    return exact_runs(
        problem.gradients, chance, factor=factor, learning_rate=rate, steps=steps, n_features=len(problem.optimum)
    )


def excess(problem: Problem, runs: Runs) -> float:
    return float(runs.probability @ problem.risk(runs.average) - problem.risk(problem.optimum[None])[0])


def ratio(problem: Problem, theorem: str, shrink_scale: float = 1.0, shrink_gradient: float = 1.0) -> float:
    """Exact expected excess risk over its bound, both with constants that may be shrunk."""
    method, of = SCALES[theorem]
    scale, gradient = of(problem.weights) * shrink_scale, problem.gradient * shrink_gradient
    bound = float(convergence_bound(problem.radius, gradient, weight=scale, steps=STEPS))
    return excess(problem, run(problem, method, scale, gradient=gradient)) / bound


@pytest.mark.parametrize("theorem", SCALES)
def test_the_bound_holds(theorem: str) -> None:
    ratios = {name: [ratio(p, theorem) for p in found] for name, found in problems().items()}
    assert max(max(found) for found in ratios.values()) <= 1 + ROUNDING
    # It is no empty statement: one family comes close.
    assert max(ratios["tight"]) >= 0.3


@pytest.mark.parametrize("theorem", SCALES)
@pytest.mark.parametrize("shrunk", ["scale", "gradient"])
def test_a_third_of_a_constant_is_not_enough(theorem: str, shrunk: str) -> None:
    broken = {"shrink_scale": 1 / 3} if shrunk == "scale" else {"shrink_gradient": 1 / 3}
    assert max(ratio(p, theorem, **broken) for p in problems()["tight"]) > 1 + ROUNDING


# --- controls: one assumption of each theorem is dropped ----------------------------------------------------------


def line(weights: list[float], losses, gradients, optimum: float, gradient: float = 1.0) -> Problem:
    """A problem on the line."""
    return Problem(
        np.array(weights),
        lambda s: np.broadcast_to(losses(s), (len(s), len(weights))),
        lambda s: np.broadcast_to(gradients(s), (len(s), len(weights)))[:, :, None],
        np.array([optimum]),
        gradient,
    )


@pytest.mark.parametrize("theorem", ["theorem 1", "theorem 3"])
def test_without_convexity_both_fail(theorem: str) -> None:
    """min(|w − 2|, 1): flat where SGD starts."""
    hole = line(
        [1.0, 1.5],
        lambda s: np.minimum(np.abs(s - 2), 1),
        lambda s: np.where(np.abs(s - 2) < 1, np.sign(s - 2), 0.0),
        2.0,
    )
    method, of = SCALES[theorem]
    scale = of(hole.weights)
    assert excess(hole, run(hole, method, scale, 12)) > 1.1 * convergence_bound(2.0, 1.0, weight=scale, steps=12)


@pytest.mark.parametrize("theorem", ["theorem 1", "theorem 3"])
def test_beyond_the_radius_both_fail(theorem: str) -> None:
    """w* lies ten times as far out as B says."""
    far = line([1.0, 1.5], lambda s: np.abs(s - 10), lambda s: np.sign(s - 10), 10.0)
    method, of = SCALES[theorem]
    scale = of(far.weights)
    chance, factor = far.law(method)
    rate = learning_rate_for(1.0, 1.0, weight=scale, steps=6)
    runs = exact_runs(far.gradients, chance, factor=factor, learning_rate=rate, steps=6, n_features=1)
    assert excess(far, runs) > 2 * convergence_bound(1.0, 1.0, weight=scale, steps=6)


def test_the_bound_of_theorem_3_does_not_hold_for_ips_sgd() -> None:
    """Eight clicks of weight 1 and one of weight 1,000, all with the loss |w − 1|: M̄ will not do for Algorithm 1."""
    rare = line([1.0] * 8 + [1_000.0], lambda s: np.abs(s - 1), lambda s: np.sign(s - 1), 1.0)
    mean = rare.weights.mean()
    bound = float(convergence_bound(1.0, 1.0, weight=mean, steps=4))
    assert excess(rare, run(rare, "ips", mean, 4)) > 1.5 * bound
    assert excess(rare, run(rare, "countersample", mean, 4)) <= bound


def test_theorem_2_and_3_fail_when_clicks_are_drawn_uniformly() -> None:
    apart = line([1.0, 9.0], lambda s: np.hstack([np.abs(s + 1), np.abs(s - 1)]),
                 lambda s: np.hstack([np.sign(s + 1), np.sign(s - 1)]), 1.0)  # fmt: skip
    mean = apart.weights.mean()
    uniform, state = np.full(2, 0.5), np.zeros((1, 1))
    expected = np.einsum("n,mnd->md", uniform * mean, apart.gradients(state))
    assert abs(expected - apart.risk_gradient(state)) > 1
    runs = exact_runs(
        apart.gradients, uniform, factor=np.full(2, mean),
        learning_rate=learning_rate_for(1.0, 1.0, weight=mean, steps=12), steps=12, n_features=1,
    )  # fmt: skip
    assert excess(apart, runs) > 1.5 * convergence_bound(1.0, 1.0, weight=mean, steps=12)
