"""Exact expectations over all sequences of draws of stochastic gradient descent, and the steps of its proofs.

Runs, their probabilities, and both sides of every inequality in the proofs of :mod:`cfltr_book.theory.convergence`.
Source: Jagerman & de Rijke 2020, §4 and §5; the sharper forms are derived in chapters 13 and 14.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray

# Sequences of clicks that are followed at once.
LIMIT = 2_000_000

Gradients = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of SGD, w_{t+1} = w_t − α g_t: their ``probability`` (runs,), and what happened on the way.

    ``iterates`` w_1 … w_T and ``gradients`` g_1 … g_T have shape (runs, T, features); ``learning_rate`` is α.
    :func:`exact_runs` makes them.
    """

    probability: FloatArray
    iterates: FloatArray
    gradients: FloatArray
    learning_rate: float

    @property
    def average(self) -> FloatArray:
        """w̄ = (1/T) Σ_t w_t of each run, (runs, features)."""
        return np.asarray(self.iterates.mean(axis=1))


def exact_runs(
    gradients: Gradients,
    probability: ArrayLike,
    *,
    factor: ArrayLike,
    learning_rate: float,
    steps: int,
    n_features: int,
) -> Runs:
    """SGD w_{t+1} = w_t − α · factor_i · ∇f_i(w_t) from w_1 = 0 along all nᵀ sequences of draws, with probabilities.

    Source: the expectations of Jagerman & de Rijke 2020, Theorems 1 and 3, as sums over sequences.

    Parameters
    ----------
    gradients : callable
        Takes states (m, n_features), returns ∇f_i at each of them for all i, (m, n, n_features).
    probability, factor : (n,)
        P(i) of each draw, and the factor of its gradient: (1/n, w_i) for IPS-SGD, (w_i / (n M̄), M̄) for
        CounterSample.
    learning_rate : float
        α > 0.
    steps : int
        T.
    n_features : int

    Returns
    -------
    Runs

    Raises
    ------
    ValueError
        For probabilities that do not sum to 1, or more than two million sequences.

    Examples
    --------
    Two clicks with weights 1 and 3, and f_i(w) = abs(w − b_i):

    >>> import numpy as np
    >>> from cfltr_book.theory.proofs import exact_runs
    >>> weights, b = np.array([1, 3]), np.array([1, -1])
    >>> gradients = lambda w: np.sign(w - b)[:, :, None]
    >>> runs = exact_runs(gradients, [1/2, 1/2], factor=weights, learning_rate=0.1, steps=3, n_features=1)
    >>> runs.iterates.shape, (runs.probability @ runs.average).round(3)  # 2³ runs of 3 steps with 1 feature
    ((8, 3, 1), array([-0.1]))
    """
    checks.arguments(exact_runs, locals())
    why = "the chance that a click is drawn"
    chance = checks.finite_vector(probability, None, "probability", low=0, high=1, why=why)
    if abs(chance.sum() - 1) > 1e-9:
        raise ValueError(f"probability sums to {chance.sum()}: one click is drawn in each step")
    n, t, d, rate = len(chance), steps, n_features, learning_rate
    multiplier = checks.finite_vector(factor, n, "factor")
    if n**t > LIMIT:
        raise ValueError(f"steps is {t}: {n}^{t} sequences are too many (limit {LIMIT}); take fewer steps or clicks")
    iterates, sampled = np.empty((n**t, t, d)), np.empty((n**t, t, d))
    state, weight = np.zeros((1, d)), np.ones(1)
    for step in range(t):
        repeats = n ** (t - step)
        iterates[:, step] = np.repeat(state, repeats, axis=0)
        g = multiplier[:, None] * np.asarray(gradients(state), dtype=np.float64)
        if g.shape != (len(state), n, d):
            raise ValueError(f"gradients returned shape {g.shape}, expected {(len(state), n, d)}")
        state = (state[:, None] - rate * g).reshape(-1, d)
        weight = (weight[:, None] * chance).ravel()
        sampled[:, step] = np.repeat(g.reshape(-1, d), repeats // n, axis=0)
    return Runs(weight, iterates, sampled, rate)


@dataclass(frozen=True)
class ProofSteps:
    """Both sides of every inequality in the proofs of Theorems 1 and 3, in the order of the proof.

    Each of ``excess``, ``mean_excess``, ``inner_exact``, ``inner_sampled``, ``lemma``, ``moment`` and ``bound`` is at
    most the next; ``inner_exact`` and ``inner_sampled`` are equal.  Equation numbers of Jagerman & de Rijke 2020 in
    brackets::

        excess          E[R(w̄)] − R*                                 (10a)
        mean_excess     E[(1/T) Σ R(w_t)] − R*                        (10b) Jensen
        inner_exact     E[(1/T) Σ ⟨w_t − w*, ∇R(w_t)⟩]                (13a) convexity
        inner_sampled   E[(1/T) Σ ⟨w_t − w*, g_t⟩]                    (13d) unbiased gradients
        lemma           ‖w*‖²/(2αT) + (α/2) E[(1/T) Σ ‖g_t‖²]         (14)  Lemma 14.1
        moment          B²/(2αT) + (α/2) (bound on E‖g_t‖²)           sharper than the next
        bound           B²/(2αT) + (α/2) (bound on ‖g_t‖)²            (16)

    The slacks are the smallest over all runs (and steps) of what must be ≥ 0 on every single path:
    ``jensen_slack``, ``subgradient_slack``, ``lemma_slack`` and ``gradient_slack``.  :func:`proof_steps` makes them.
    """

    excess: float
    mean_excess: float
    inner_exact: float
    inner_sampled: float
    lemma: float
    moment: float
    bound: float
    jensen_slack: float
    subgradient_slack: float
    lemma_slack: float
    gradient_slack: float

    @property
    def ladder(self) -> FloatArray:
        """The seven numbers from ``excess`` to ``bound``."""
        return np.array(astuple(self)[:7])


def proof_steps(
    runs: Runs,
    risk: Callable[[FloatArray], FloatArray],
    *,
    risk_gradient: Callable[[FloatArray], FloatArray],
    optimum: ArrayLike,
    radius: float,
    gradient_bound: float,
    moment_bound: float | None = None,
) -> ProofSteps:
    """Both sides of every step from E[R(w̄)] − R(w*) to B²/(2αT) + (α/2) (bound on ‖g_t‖)² along runs of SGD.

    Source: Jagerman & de Rijke 2020, the proof of Theorem 1, Eq. 10–16, and with Eq. 25 that of Theorem 3.

    Parameters
    ----------
    runs : Runs
        From :func:`exact_runs` (expectations are then exact), or simulated ones with equal probabilities.
    risk, risk_gradient : callables
        R and a subgradient of it for states (m, n_features): (m,) and (m, n_features).
    optimum : (n_features,)
        w*; the proof holds for any point with ‖w*‖ ≤ ``radius``.
    radius : float
        B > 0.
    gradient_bound : float
        Bound on ‖g_t‖: M G for IPS-SGD, M̄ G for CounterSample.
    moment_bound : float, optional
        Bound on E‖g_t‖², such as (RMS · G)²; the square of ``gradient_bound`` if it is left out.

    Returns
    -------
    ProofSteps

    Raises
    ------
    ValueError
        For an optimum of another shape, or a bound that is not > 0.

    Examples
    --------
    Two clicks with weights 1 and 3, and f_i(w) = abs(w − b_i): R is smallest at −1, G = 1, M = 3 and RMS = √5.

    >>> import numpy as np
    >>> from cfltr_book.theory.proofs import exact_runs, proof_steps
    >>> weights, b = np.array([1, 3]), np.array([1, -1])
    >>> gradients = lambda w: np.sign(w - b)[:, :, None]
    >>> runs = exact_runs(gradients, [1/2, 1/2], factor=weights, learning_rate=0.1, steps=3, n_features=1)
    >>> proof = proof_steps(
    ...     runs,
    ...     lambda w: (weights * abs(w - b)).mean(axis=1),
    ...     risk_gradient=lambda w: (weights * np.sign(w - b)).mean(axis=1, keepdims=True),
    ...     optimum=[-1], radius=1, gradient_bound=3, moment_bound=5,
    ... )
    >>> proof.ladder.round(2)  # from the excess risk to the bound of the paper
    array([0.9 , 0.9 , 0.9 , 0.9 , 1.92, 1.92, 2.12])
    """
    checks.arguments(proof_steps, locals())
    n, t, d = runs.iterates.shape
    star = checks.finite_vector(optimum, d, "optimum")
    b, top = radius, gradient_bound
    moment = top**2 if moment_bound is None else moment_bound
    alpha, flat = runs.learning_rate, runs.iterates.reshape(-1, d)
    at = risk(flat).reshape(n, t)
    best = float(risk(star[None])[0])
    at_average = risk(runs.average)
    away = runs.iterates - star
    exact = np.einsum("ntd,ntd->nt", away, risk_gradient(flat).reshape(n, t, d))
    sampled = np.einsum("ntd,ntd->nt", away, runs.gradients)
    squares = np.einsum("ntd,ntd->nt", runs.gradients, runs.gradients)
    telescoped = float(star @ star) / (2 * alpha) + alpha / 2 * squares.sum(axis=1)

    def mean(per_run: FloatArray) -> float:
        return float(runs.probability @ per_run)

    return ProofSteps(
        excess=mean(at_average) - best,
        mean_excess=mean(at.mean(axis=1)) - best,
        inner_exact=mean(exact.mean(axis=1)),
        inner_sampled=mean(sampled.mean(axis=1)),
        lemma=mean(telescoped) / t,
        moment=b**2 / (2 * alpha * t) + alpha / 2 * moment,
        bound=b**2 / (2 * alpha * t) + alpha / 2 * top**2,
        jensen_slack=float((at.mean(axis=1) - at_average).min()),
        subgradient_slack=float((exact - (at - best)).min()),
        lemma_slack=float((telescoped - sampled.sum(axis=1)).min()),
        gradient_slack=float(top - np.sqrt(squares.max())),
    )
