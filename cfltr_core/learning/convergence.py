"""How fast stochastic gradient descent with inverse propensity weights converges: its constants, and bounds from them.

A log of n clicks with propensities p_i and weights w_i = 1/p_i has the objective

    R(w) = (1/n) Σ_i w_i f_i(w),     f_i(w) = 1 + Σ_{y ≠ d_i} max(0, 1 − ⟨w, x_{d_i} − x_y⟩),

and stochastic gradients g_t = (scale of i_t) · ∇f_{i_t}(w_t).  Every mean over clicks is weighted by counts.
:mod:`cfltr_book.theory.proofs` follows such runs along every sequence of draws.
Source: Jagerman & de Rijke 2020, §4 and §5; the sharper forms are derived in chapters 13 and 14.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.ranking.ragged import equal_blocks, query_of

# Numbers held while the lists of clicks are gathered.
BLOCK = 1 << 20


@dataclass(frozen=True)
class WeightSummary:
    """Count-weighted summary of the weights 1/p of a log: M̄ (``mean``), RMS (``rms``), M (``maximum``).

    M̄ ≤ RMS ≤ M, and (RMS/M̄)² = 1 + CV², with CV the coefficient of variation of the weights over the ``n_clicks``
    clicks.  :func:`weight_summary` makes it.
    """

    n_clicks: int
    mean: float
    rms: float
    maximum: float


def weight_summary(log: ClickLog) -> WeightSummary:
    """M̄ = (1/n) Σ 1/p, RMS = √((1/n) Σ 1/p²) and M = max 1/p over the n clicks of a ``log``.

    Source: Jagerman & de Rijke 2020, §4.1 and Eq. 20; RMS is not in the paper.

    Raises
    ------
    ValueError
        For a log without clicks.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> summary = cf.weight_summary(log)
    >>> summary.mean, round(summary.rms, 3), summary.maximum  # (6 · 1 + 2 · 3) / 8, √((6 · 1 + 2 · 9) / 8), 3
    (1.5, 1.732, 3.0)
    """
    clicked = log.clicks > 0
    if not clicked.any():
        raise ValueError("log: there is no click in the log, so that its weights have no mean")
    counts, weights = log.clicks[clicked], log.weights[clicked]
    mean, square = np.average(np.stack([weights, weights**2]), axis=1, weights=counts)
    return WeightSummary(log.n_clicks, float(mean), float(np.sqrt(square)), float(weights.max()))


def convergence_bound(radius: float, gradient_bound: float, *, weight: float, steps: ArrayLike) -> FloatArray:
    """Bound B · (weight · G) / √T on E[R(w̄) − R(w*)] after T = ``steps`` iterations at :func:`learning_rate_for`.

    Source: Jagerman & de Rijke 2020, Theorem 1 (Eq. 9) and Theorem 3 (Eq. 24).

    Parameters
    ----------
    radius : float
        B ≥ ‖w*‖, > 0.
    gradient_bound : float
        G ≥ ‖∇f_i(w_t)‖, > 0.
    weight : float
        M in Theorem 1 (IPS-SGD) and M̄ in Theorem 3 (CounterSample); RMS(1/p) in place of M is the sharper form of
        Theorem 1.
    steps : any shape, >= 1
        T.

    Returns
    -------
    Bounds of the shape of ``steps``

    Raises
    ------
    ValueError
        For an argument that is not > 0, or a T below 1.

    Examples
    --------
    >>> from cfltr_core.learning.convergence import convergence_bound
    >>> convergence_bound(1.0, 2.0, weight=3.0, steps=[1, 100])
    array([6. , 0.6])
    """
    checks.arguments(convergence_bound, locals())
    t = checks.within(steps, 1, np.inf, "steps", "a number of iterations")
    return np.asarray(radius * gradient_bound * weight / np.sqrt(t))


def learning_rate_for(radius: float, gradient_bound: float, *, weight: float, steps: int) -> float:
    """Learning rate α = B / (weight · G · √T) of Theorems 1 and 3; arguments as in :func:`convergence_bound`.

    Source: Jagerman & de Rijke 2020, Theorems 1 and 3, where α is η.

    Examples
    --------
    >>> from cfltr_core.learning.convergence import learning_rate_for
    >>> round(learning_rate_for(1.0, 2.0, weight=3.0, steps=100), 4)
    0.0167
    """
    checks.arguments(learning_rate_for, locals())
    return float(radius / (gradient_bound * weight * np.sqrt(steps)))


def steps_for_accuracy(radius: float, gradient_bound: float, *, weight: float, accuracy: float) -> float:
    """T = B² (weight · G)² / ε²: iterations that suffice for an error of at most ε = ``accuracy``, not rounded.

    The other arguments are those of :func:`convergence_bound`.

    Source: Jagerman & de Rijke 2020, Eq. 18 and Eq. 26.

    Examples
    --------
    >>> from cfltr_core.learning.convergence import steps_for_accuracy
    >>> steps_for_accuracy(1.0, 2.0, weight=3.0, accuracy=0.5)
    144.0
    """
    checks.arguments(steps_for_accuracy, locals())
    return (radius * gradient_bound * weight / accuracy) ** 2


def second_moment(
    weights: ArrayLike, gradient_norms: ArrayLike, *, counts: ArrayLike, sampling: Literal["uniform", "weighted"]
) -> float:
    """Exact E‖g‖² of one step.

    ``uniform``   (IPS-SGD)        (1/n) Σ w_i² ‖∇f_i‖²
    ``weighted``  (CounterSample)  M̄ · (1/n) Σ w_i ‖∇f_i‖²

    The second minus the first is −Cov(w, w ‖∇f‖²), the covariance over the n clicks.

    Source: derived in chapter 14; Jagerman & de Rijke 2020 bound both, by (M G)² (Eq. 15) and (M̄ G)² (Eq. 25).

    Parameters
    ----------
    weights, gradient_norms, counts : (n_terms,)
        w = 1/p > 0, ‖∇f‖ ≥ 0, and the number of clicks of each term.
    sampling : "uniform" or "weighted"

    Raises
    ------
    ValueError
        For shapes that disagree, a weight that is not > 0, a negative norm, or no click.

    Examples
    --------
    >>> from cfltr_core.learning.convergence import second_moment
    >>> log = {"weights": [1, 10], "gradient_norms": [10, 0.5**0.5], "counts": [1, 1]}
    >>> [round(second_moment(**log, sampling=s), 1) for s in ("uniform", "weighted")]  # the second is not always less
    [75.0, 288.8]
    """
    checks.arguments(second_moment, locals())
    least = float(np.finfo(np.float64).tiny)
    w = checks.finite_vector(weights, None, "weights", low=least, why="a weight is one over a propensity")
    norms = checks.finite_vector(gradient_norms, len(w), "gradient_norms", low=0, why="a norm")
    n = checks.counts(counts, len(w), "counts")
    checks.positive_int(int(n.sum()), "the sum of counts")
    factor = w if sampling == "uniform" else np.average(w, weights=n)
    return float(np.average(factor * w * norms**2, weights=n))


def click_gradients(features: ArrayLike, offsets: ArrayLike, *, documents: ArrayLike, w: ArrayLike) -> FloatArray:
    """∇f_i(w) = Σ_{y ≠ d: ⟨w, x_d − x_y⟩ < 1} (x_y − x_d) for each clicked document d, (n_terms, n_features).

    A subgradient with slope 0 at a kink.  O(list × features) work for each click.

    Source: the gradient of the hinge bound of Agarwal et al. 2018, §4, for a linear scorer.

    Parameters
    ----------
    features : (n_docs, n_features)
    offsets : (n_queries + 1,)
    documents : (n_terms,)
        Flat indices of the clicked documents.
    w : (n_features,)

    Raises
    ------
    ValueError
        For shapes that disagree, or documents that do not exist.

    Examples
    --------
    >>> from cfltr_core.learning.convergence import click_gradients
    >>> click_gradients([[1.0], [0.0], [0.5]], [0, 3], documents=[0, 2], w=[0.0])  # of A and of C
    array([[-1.5],
           [ 0. ]])
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
    """G_i = Σ_{y ≠ d} ‖x_y − x_d‖ ≥ ‖∇f_i(w)‖ at every w, for each clicked document, (n_terms,).

    Arguments and errors are those of :func:`click_gradients`.

    Source: the G of Jagerman & de Rijke 2020, Theorem 1, for the hinge of their Eq. 2.

    Examples
    --------
    >>> from cfltr_core.learning.convergence import gradient_bounds
    >>> gradient_bounds([[1.0], [0.0], [0.5]], [0, 3], documents=[0, 2])
    array([1.5, 1. ])
    """
    x, cuts, terms = _lists(features, offsets, documents)
    out = np.empty(len(terms))
    for rows, index in _blocks(cuts, terms, x.shape[1]):
        out[rows] = np.linalg.norm(x[index] - x[terms[rows]][:, None], axis=2).sum(axis=1)
    return out


def _lists(features: ArrayLike, offsets: ArrayLike, documents: ArrayLike) -> tuple[FloatArray, IntArray, IntArray]:
    x = checks.feature_matrix(features).astype(np.float64, copy=False)
    terms = checks.indices(documents, "documents", len(x), "no such document")
    return x, checks.offsets_of(offsets, len(x)), terms


def _blocks(cuts: IntArray, terms: IntArray, n_features: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (rows, index): terms with equally long lists, and the documents of their lists as a rectangle."""
    query = query_of(terms, cuts)
    width = np.diff(cuts)[query]
    for rows in equal_blocks(width, BLOCK // n_features):
        yield rows, cuts[query[rows]][:, None] + np.arange(width[rows[0]])
