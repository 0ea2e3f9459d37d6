"""How fast stochastic gradient descent with inverse propensity weights converges: constants, bounds, proof steps.

A log of n clicks with propensities p_i and weights w_i = 1/p_i has the objective

    R(w) = (1/n) Σ_i w_i f_i(w),     f_i(w) = 1 + Σ_{y ≠ d_i} max(0, 1 − ⟨w, x_{d_i} − x_y⟩),

and stochastic gradients g_t = (scale of i_t) · ∇f_{i_t}(w_t).  Every mean over clicks is weighted by counts.
Source: Jagerman & de Rijke 2020, §4 and §5; the sharper forms are derived in chapters 13 and 14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.ranking.ragged import query_of

# Sequences of clicks that are followed at once, and numbers held while the lists of clicks are gathered.
LIMIT = 2_000_000
BLOCK = 1 << 20

Gradients = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class WeightSummary:
    """Count-weighted summary of the weights 1/p of a log: M̄ (``mean``), RMS (``rms``), M (``maximum``).

    M̄ ≤ RMS ≤ M, and (RMS/M̄)² = 1 + CV², with CV the coefficient of variation of the weights.
    """

    n_clicks: int
    mean: float
    rms: float
    maximum: float


def weight_summary(log: ClickLog) -> WeightSummary:
    """M̄ = (1/n) Σ 1/p, RMS = √((1/n) Σ 1/p²) and M = max 1/p over the n clicks of a log.

    Source: Jagerman & de Rijke 2020, §4.1 and Eq. 20; RMS is not in the paper.
    """
    clicked = log.clicks > 0
    if not clicked.any():
        raise ValueError("log: there is no click in the log, so that its weights have no mean")
    counts, weights = log.clicks[clicked], log.weights[clicked]
    mean, square = np.average(np.stack([weights, weights**2]), axis=1, weights=counts)
    return WeightSummary(log.n_clicks, float(mean), float(np.sqrt(square)), float(weights.max()))


def convergence_bound(radius: float, gradient_bound: float, *, weight: float, steps: ArrayLike) -> FloatArray:
    """Bound B · (weight · G) / √T on E[R(w̄) − R(w*)] after T = ``steps`` iterations at :func:`learning_rate_for`.

    ``radius`` B ≥ ‖w*‖ and ``gradient_bound`` G ≥ ‖∇f_i(w_t)‖.  ``weight`` is M in Theorem 1 (IPS-SGD, Eq. 9) and M̄ in
    Theorem 3 (CounterSample, Eq. 24) of Jagerman & de Rijke 2020; RMS(1/p) in place of M is the sharper form of
    Theorem 1.  Same shape as ``steps``.
    """
    b, s = checks.positive(radius, "radius"), _scaled(gradient_bound, weight)
    t = checks.within(steps, 1, np.inf, "steps", "a number of iterations")
    return np.asarray(b * s / np.sqrt(t))


def learning_rate_for(radius: float, gradient_bound: float, *, weight: float, steps: int) -> float:
    """Learning rate α = B / (weight · G · √T) of Theorems 1 and 3; arguments as in :func:`convergence_bound`."""
    b, s = checks.positive(radius, "radius"), _scaled(gradient_bound, weight)
    return float(b / (s * np.sqrt(checks.positive_int(steps, "steps"))))


def steps_for_accuracy(radius: float, gradient_bound: float, *, weight: float, accuracy: float) -> float:
    """T = B² (weight · G)² / ε²: iterations that suffice for an error of at most ε (Eqs. 18 and 26), not rounded."""
    b, s = checks.positive(radius, "radius"), _scaled(gradient_bound, weight)
    return (b * s / checks.positive(accuracy, "accuracy")) ** 2


def second_moment(
    weights: ArrayLike, gradient_norms: ArrayLike, *, counts: ArrayLike, sampling: Literal["uniform", "weighted"]
) -> float:
    """Exact E‖g‖² of one step.

    ``uniform``   (IPS-SGD)        (1/n) Σ w_i² ‖∇f_i‖²
    ``weighted``  (CounterSample)  M̄ · (1/n) Σ w_i ‖∇f_i‖²

    The second minus the first is −Cov(w, w ‖∇f‖²), the covariance over the n clicks.

    Parameters
    ----------
    weights, gradient_norms, counts : (n_terms,)
        w = 1/p > 0, ‖∇f‖ ≥ 0, and the number of clicks of each term.
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1:
        raise ValueError(f"weights: expected one number per term, got shape {w.shape}")
    checks.within(w, np.finfo(np.float64).tiny, np.inf, "weights", "a weight is one over a propensity")
    norms = checks.finite_vector(gradient_norms, len(w), "gradient_norms")
    checks.within(norms, 0, np.inf, "gradient_norms", "a norm")
    n = checks.counts(counts, len(w), "counts")
    checks.positive_int(int(n.sum()), "the sum of counts")
    checks.one_of(sampling, "sampling", ("uniform", "weighted"))
    factor = w if sampling == "uniform" else np.average(w, weights=n)
    return float(np.average(factor * w * norms**2, weights=n))


def _scaled(gradient_bound: float, weight: float) -> float:
    return checks.positive(gradient_bound, "gradient_bound") * checks.positive(weight, "weight")


# --- gradients of single clicks -------------------------------------------------------------------------------


def click_gradients(features: ArrayLike, offsets: ArrayLike, *, documents: ArrayLike, w: ArrayLike) -> FloatArray:
    """∇f_i(w) = Σ_{y ≠ d: ⟨w, x_d − x_y⟩ < 1} (x_y − x_d) for each clicked document d, (n_terms, n_features).

    A subgradient with slope 0 at a kink.  O(list × features) work for each click.
    """
    x, cuts, terms = _lists(features, offsets, documents)
    scores = x @ checks.finite_vector(w, x.shape[1], "w")
    out = np.empty((len(terms), x.shape[1]))
    for rows, index in _blocks(cuts, terms, x.shape[1]):
        active = (scores[index] - scores[terms[rows]][:, None] > -1.0).astype(np.float64)
        pulled = (active[:, None, :] @ x[index])[:, 0]
        out[rows] = pulled - active.sum(axis=1)[:, None] * x[terms[rows]]  # the own document cancels
    return out


def gradient_bounds(features: ArrayLike, offsets: ArrayLike, *, documents: ArrayLike) -> FloatArray:
    """G_i = Σ_{y ≠ d} ‖x_y − x_d‖ ≥ ‖∇f_i(w)‖ at every w, for each clicked document, (n_terms,)."""
    x, cuts, terms = _lists(features, offsets, documents)
    out = np.empty(len(terms))
    for rows, index in _blocks(cuts, terms, x.shape[1]):
        out[rows] = np.linalg.norm(x[index] - x[terms[rows]][:, None], axis=2).sum(axis=1)
    return out


def _lists(features: ArrayLike, offsets: ArrayLike, documents: ArrayLike) -> tuple[FloatArray, IntArray, IntArray]:
    x = np.asarray(features, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"features: expected shape (n_docs, n_features), got {x.shape}")
    terms = checks.indices(documents, "documents")
    checks.within(terms, 0, len(x) - 1, "documents", "no such document")
    return x, checks.offsets_of(offsets, len(x)), terms


def _blocks(cuts: IntArray, terms: IntArray, n_features: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (rows, index): terms with equally long lists, and the documents of their lists as a rectangle."""
    query = query_of(terms, cuts)
    width = np.diff(cuts)[query]
    order = np.argsort(width, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(width[order])) + 1) if len(terms) else []:
        m = int(width[same[0]])
        size = max(1, BLOCK // (m * n_features))
        for start in range(0, len(same), size):
            rows = same[start : start + size]
            yield rows, cuts[query[rows]][:, None] + np.arange(m)


# --- exact expectations over sequences, and the steps of the proof ---------------------------------------------


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of SGD: ``probability`` (runs,), ``iterates`` w_1 … w_T and ``gradients`` g_1 … g_T (runs, T, features)."""

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
    """SGD from w_1 = 0 along all nᵀ sequences of indices at once, each with its probability.

    Parameters
    ----------
    gradients : callable
        Takes states (m, n_features), returns ∇f_i at each of them for all i, (m, n, n_features).
    probability, factor : (n,)
        P(i) of each draw, and the factor of its gradient: (1/n, w_i) for IPS-SGD, (w_i / (n M̄), M̄) for
        CounterSample.

    Raises
    ------
    ValueError
        For probabilities that do not sum to 1, or more than two million sequences.
    """
    chance = np.asarray(probability, dtype=np.float64)
    if chance.ndim != 1:
        raise ValueError(f"probability: expected one number per click, got shape {chance.shape}")
    checks.within(chance, 0, 1, "probability", "the chance that a click is drawn")
    if abs(chance.sum() - 1) > 1e-9:
        raise ValueError(f"probability sums to {chance.sum()}: one click is drawn in each step")
    n, t = len(chance), checks.positive_int(steps, "steps")
    multiplier = checks.finite_vector(factor, n, "factor")
    rate = checks.positive(learning_rate, "learning_rate")
    d = checks.positive_int(n_features, "n_features")
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

    Each is at most the next; ``inner_exact`` and ``inner_sampled`` are equal.  Equation numbers of Jagerman &
    de Rijke 2020 in brackets.

    excess          E[R(w̄)] − R*                                 (10a)
    mean_excess     E[(1/T) Σ R(w_t)] − R*                        (10b) Jensen
    inner_exact     E[(1/T) Σ ⟨w_t − w*, ∇R(w_t)⟩]                (13a) convexity
    inner_sampled   E[(1/T) Σ ⟨w_t − w*, g_t⟩]                    (13d) unbiased gradients
    lemma           ‖w*‖²/(2αT) + (α/2) E[(1/T) Σ ‖g_t‖²]         (14)  Lemma 14.1
    moment          B²/(2αT) + (α/2) (bound on E‖g_t‖²)           sharper than the next
    bound           B²/(2αT) + (α/2) (bound on ‖g_t‖)²            (16)

    The slacks are the smallest over all runs (and steps) of what must be ≥ 0 on every single path.
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
        names = ("excess", "mean_excess", "inner_exact", "inner_sampled", "lemma", "moment", "bound")
        return np.array([getattr(self, name) for name in names])


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
    """Evaluate every inequality of the proof of Theorem 1 (or 3) along runs of SGD.

    Parameters
    ----------
    runs : Runs
        From :func:`exact_runs` (expectations are then exact), or simulated ones with equal probabilities.
    risk, risk_gradient : callables
        R and a subgradient of it for states (m, n_features): (m,) and (m, n_features).
    optimum : (n_features,)
        w*; the proof holds for any point with ‖w*‖ ≤ ``radius``.
    gradient_bound : float
        Bound on ‖g_t‖: M G for IPS-SGD, M̄ G for CounterSample.
    moment_bound : float, optional
        Bound on E‖g_t‖², such as (RMS · G)²; the square of ``gradient_bound`` if it is left out.
    """
    n, t, d = runs.iterates.shape
    star = checks.finite_vector(optimum, d, "optimum")
    b, top = checks.positive(radius, "radius"), checks.positive(gradient_bound, "gradient_bound")
    moment = top**2 if moment_bound is None else checks.positive(moment_bound, "moment_bound")
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
