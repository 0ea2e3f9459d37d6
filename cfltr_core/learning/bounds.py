"""Surrogate bounds on the rank of a document, and on any additive risk through its rank weight λ.

A rank is a sum of steps, rank(d) = 1 + Σ_{y ≠ d} 1[s_y > s_d].  Each step lies below a surrogate of the score
difference s_d − s_y, and so the rank lies below the *surrogate rank* 1 + S_d, where S_d sums

    hinge      max(z, 0),                 z = 1 − (s_d − s_y)
    smoothed   max_{0 ≤ a ≤ 1} a z + (μ/2) a (1 − a), between max(z, 0) and max(z, 0) + μ/8
    logistic   log₂(1 + exp(−σ (s_d − s_y)))

over the other documents y of the list.  If λ increases, λ(rank) ≤ λ(1 + S_d): an upper bound for a risk, and with
the sign turned a lower bound for a gain.  Source: Agarwal et al. 2018, §4 and Eq. 7; the logistic form is usual
in pairwise learning to rank, after Burges 2010.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.ranking.ragged import document_index, equal_blocks, query_of
from cfltr_core.ranking.rank_weight import RankWeight, average_rank

Surrogate = Literal["hinge", "logistic"]
# Floating scores: a solver may work in single precision, the public functions do not.
Scores = NDArray[np.floating]
# Pairs, or documents to be sorted, that are held at once.  So few stay in the processor's cache, through all the steps.
BLOCK = 1 << 14
# Lists with so many clicked documents are sorted for the hinge, others go pair by pair.  Measured on 60,000 documents,
# the time of sorting over that of pairs, for 4, 6 and 8 clicked documents in each list: 1.1, .9, .9 in lists of 24,
# 1.0, .8, .7 of 100, 1.1, .7, .7 of 1,000 and 2.2, 1.2, 1.1 of 10,000 (``benchmarks.bounds`` measures it again).
MANY = 6


@dataclass(frozen=True, eq=False)
class Bound:
    """Result of :func:`bound_loss`: the bound on the risk (``value``), its ``gradient``, the surrogate ``ranks``."""

    value: float
    gradient: FloatArray
    ranks: FloatArray


def surrogate_ranks(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    documents: ArrayLike,
    surrogate: Surrogate = "hinge",
    sigma: float = 1.0,
    smoothing: float = 0.0,
) -> FloatArray:
    """Upper bound 1 + S_d, S_d = Σ_{y ≠ d} max(0, 1 − (s_d − s_y)), on the rank of each of ``documents`` in its list.

    It bounds every kind of rank, ``pessimistic`` included: a tied pair adds 1 to the bound, and at most 1 to a rank.
    Shape (len(documents),).

    Source: Agarwal et al. 2018, §4, the display before Eq. 7; for the other forms see the module.

    Parameters
    ----------
    scores : (n_docs,) finite
    offsets : (n_queries + 1,)
    documents : (n_terms,)
        Flat document indices, in any order.
    surrogate : "hinge" or "logistic"
    sigma : float
        Steepness σ > 0 of the logistic form, which is log₂: with the natural logarithm a tie would count .69.
    smoothing : float
        μ ≥ 0 of the smoothed hinge; 0 is the hinge itself.

    Raises
    ------
    ValueError
        For non-finite scores, bad offsets, documents that do not exist, an unknown surrogate, σ ≤ 0, μ outside [0, 2].

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.surrogate_ranks([3, 2, 1], [0, 3], documents=[0, 2])  # A and C, which have the ranks 1 and 3
    array([1., 6.])
    >>> cf.surrogate_ranks([3, 2, 1], [0, 3], documents=[0, 2], surrogate="logistic").round(2)
    array([1.64, 5.96])
    """
    return bound_loss(scores, offsets, documents=documents, surrogate=surrogate, sigma=sigma, smoothing=smoothing).ranks


def bound_loss(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    documents: ArrayLike,
    weights: ArrayLike | None = None,
    metric: RankWeight | None = None,
    surrogate: Surrogate = "hinge",
    sigma: float = 1.0,
    smoothing: float = 0.0,
) -> Bound:
    """Bound Σ_t weights_t · λ(1 + S_t) on a weighted additive risk, with its gradient in the scores.

    The work is Σ_t (length of the list of t), so O(list) for one clicked document; for the hinge a list of m with
    ``MANY`` or more clicked documents costs O(m log m) instead.  Memory is O(``BLOCK`` + longest list) beside the
    result.

    Source: Agarwal et al. 2018, Eq. 7, whose right-hand side it is with weights_t = clicks_t / (p_t · n).

    Parameters
    ----------
    scores, offsets, documents, surrogate, sigma, smoothing
        As in :func:`surrogate_ranks`.
    weights : (n_terms,)
        One finite weight ≥ 0 for each of ``documents``; all 1 if none are given.
    metric : RankWeight
        λ, increasing and with a ``derivative``; average rank if none is given.

    Returns
    -------
    Bound
        ``gradient`` has shape (n_docs,) and sums to 0 in each list.  At a kink of the hinge (z = 0) it is the
        subgradient with slope 0; with ``smoothing`` the function has no kink.

    Raises
    ------
    ValueError
        As :func:`surrogate_ranks`; also for weights that are negative or do not match, and λ without a derivative.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> bound = cf.bound_loss([3, 2, 1], [0, 3], documents=log.document, weights=log.mass)
    >>> bound.value, bound.gradient  # .75 · 1 + .75 · 6 above .75 · 1 + .75 · 3; C ought to rise
    (5.25, array([ 0.75,  0.75, -1.5 ]))
    """
    checks.arguments(bound_loss, locals())
    cuts, lam = checks.offsets_of(offsets), metric or average_rank()
    values = checks.finite_vector(scores, int(cuts[-1]), "scores")
    terms = checks.indices(documents, "documents", len(values), "no such document")
    given, why = np.ones(len(terms)) if weights is None else weights, "a negative weight would turn the bound round"
    c = checks.finite_vector(given, len(terms), "weights", low=0, why=why)
    step = logistic(sigma) if surrogate == "logistic" else smooth_hinge(smoothing) if smoothing > 0 else hinge
    s, force = _sums(cuts, terms, values, step, lambda rows, total: c[rows] * lam.slope(1.0 + total))
    return Bound(float((c * lam(1.0 + s)).sum()), -force, 1.0 + s)


def _sums(
    offsets: IntArray, documents: IntArray, scores: FloatArray, step: Step, price: Price
) -> tuple[FloatArray, FloatArray]:
    """:meth:`ClickedLists.sums`, or that of :class:`SortedLists` for the lists in which that is faster."""
    query = query_of(documents, offsets)
    many = (np.bincount(query, minlength=len(offsets))[query] >= MANY) & (step is hinge)
    few, dense = np.flatnonzero(~many), np.flatnonzero(many)
    total, force = np.empty(len(documents)), np.zeros(len(scores))
    if len(few):
        lists = ClickedLists(offsets, documents[few])
        total[few], force = lists.sums(scores, step, lambda rows, s: price(few[rows], s))
    if len(dense):
        total[dense], pulled = SortedLists(offsets, documents[dense]).sums(
            scores, lambda rows, s: price(dense[rows], s)
        )
        force += pulled
    return total, force


# A step takes z = 1 − (s_d − s_y), which it may overwrite, and returns (value, slope) of the surrogate of 1[s_y ≥ s_d].
Step = Callable[[Scores], tuple[Scores, Scores]]
# What one unit of the sums of some terms costs.
Price = Callable[[IntArray, FloatArray], FloatArray]


def hinge(z: Scores) -> tuple[Scores, Scores]:
    """max(z, 0) and its slope, 0 at the kink."""
    slope = (z > 0).astype(z.dtype)
    return np.maximum(z, 0, out=z), slope


def smooth_hinge(mu: float) -> Step:
    """The centred smoothed hinge h_μ(z) = a z + (μ/2) a (1 − a) at its maximiser a = clip(½ + z/μ, 0, 1), its slope."""

    def step(z: Scores) -> tuple[Scores, Scores]:
        a = z * z.dtype.type(1 / mu)
        a += z.dtype.type(0.5)
        np.clip(a, 0, 1, out=a)
        z += z.dtype.type(mu / 2) * (1 - a)
        z *= a
        return z, a

    return step


def logistic(sigma: float) -> Step:
    """log₂(1 + exp(σ (z − 1))) and its slope, in the form that neither overflows nor loses small values."""
    sigma, log_2 = float(sigma), math.log(2)

    def step(z: Scores) -> tuple[Scores, Scores]:
        z -= 1
        z *= z.dtype.type(sigma)
        small = np.exp(-np.abs(z))
        value = (np.maximum(z, 0) + np.log1p(small)) / log_2
        slope = np.where(z > 0, 1, small) / (1 + small) * (sigma / log_2)
        return value, slope

    return step


class ClickedLists:
    """The list of every clicked document, as rectangles without padding: one row per term, one column per document.

    Terms whose lists are equally long stand in one rectangle, cut into blocks of about ``BLOCK`` pairs; the terms of a
    query stand together.  A row of scores is then a contiguous copy, and the forces on the documents of a query are a
    sum of its rows: no index of a pair is ever stored.

    Parameters
    ----------
    offsets : (n_queries + 1,) checked
    documents : (n_terms,) checked
    """

    def __init__(self, offsets: IntArray, documents: IntArray) -> None:
        query = query_of(documents, offsets)
        width = np.diff(offsets)[query]
        self.offsets = offsets
        self.documents = documents
        self.rivals = width - 1
        self.n_pairs = int(self.rivals.sum())
        by_query = np.argsort(query, kind="stable")
        self._blocks = []
        for rows in equal_blocks(width[by_query], BLOCK):
            terms = by_query[rows]
            first = np.flatnonzero(np.diff(query[terms], prepend=-1))
            self._blocks.append((terms, int(width[terms[0]]), offsets[query[terms]], first))

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """(rows, columns) of each block."""
        return [(len(terms), m) for terms, m, _, _ in self._blocks]

    def gaps(self, scores: Scores) -> Iterator[tuple[IntArray, IntArray, IntArray, Scores]]:
        """Yield ``(terms, start, first, z)`` per block: z = 1 − (s_d − s_y), row by row, the own document included.

        ``start`` is the first document of each row's list, ``first`` the rows that begin another query.
        """
        for i, (terms, _, start, first) in enumerate(self._blocks):
            yield terms, start, first, self.gaps_of(i, scores)

    def rectangle(self, block: int) -> tuple[IntArray, int, IntArray, IntArray]:
        """``(terms, columns, start, first)`` of one block, see :meth:`gaps`."""
        return self._blocks[block]

    def gaps_of(self, block: int, scores: Scores) -> Scores:
        """The z of one block, see :meth:`gaps`."""
        terms, m, start, _ = self._blocks[block]
        z = _windows(scores, m)[start]
        z += (1 - scores[self.documents[terms]])[:, None]
        return z

    def own(self, scores: Scores, step: Step) -> Scores:
        """What a document would add to its own sum, with the rounding of :meth:`gaps`, to be taken off again."""
        mine = scores[self.documents]
        return step((1 - mine) + mine)[0]

    def sums(self, scores: Scores, step: Step, price: Price) -> tuple[FloatArray, FloatArray]:
        """S_t of every term, and the force Σ_t price_t Σ_y slope_ty (e_t − e_y) on every document, (n_docs,).

        ``price(terms, sums)`` is what one unit of S_t costs; the force is minus the gradient of Σ_t cost(S_t).
        """
        total = np.empty(len(self.documents))
        force = np.zeros(len(scores))
        own = self.own(scores, step)
        for terms, start, first, z in self.gaps(scores):
            value, slope = step(z)
            total[terms] = value.sum(axis=1) - own[terms]
            cost = price(terms, total[terms])
            self.push(force, terms, start, first, slope, cost)
        return total, force

    def push(
        self, force: FloatArray, terms: IntArray, start: IntArray, first: IntArray, slope: Scores, cost: FloatArray
    ) -> None:
        """Add Σ_t cost_t Σ_y slope_ty (e_t − e_y) of one block to ``force``; the own document cancels."""
        np.add.at(force, self.documents[terms], cost * np.add.reduce(slope, axis=1))
        slope *= cost.astype(slope.dtype)[:, None]
        pulled = np.add.reduceat(slope, first, axis=0) if len(first) < len(terms) else slope
        # Each query occurs once in a block, so that a plain subtraction in place loses nothing.
        _windows(force, slope.shape[1])[start[first]] -= pulled


class SortedLists:
    """The lists of the clicked ``documents``, for :meth:`sums` of the hinge by sorting each list once.

    With τ_t = s_t − 1 the hinge of a pair is max(s_y − τ_t, 0): only the k_t documents with s_y > τ_t count.  In a
    sorted list they stand at the end, so that

        S_t = Σ_{s_y > τ_t} (s_y − s_max) − k_t (τ_t − s_max) − (the own document's 1),

    a sum from the end and a place found by bisection.  Turned round, the pull on y is the sum of the prices of all t
    whose place lies at or before that of y.  A list of m documents of which n are clicked costs O(m log m + n log m)
    instead of O(n m).

    Scores are measured from the largest of their list: its own hinge, s_max − τ_t, is part of S_t, so that no sum is
    much larger than the result, and S_t has nearly the precision of a sum over pairs however far apart scores are.
    Which documents count is decided by the same comparison of the same numbers, so that slopes are equal at ties and
    kinks too.

    Parameters
    ----------
    offsets : (n_queries + 1,) checked
    documents : (n_terms,) checked, in any order, repeated if need be
    """

    def __init__(self, offsets: IntArray, documents: IntArray) -> None:
        query = query_of(documents, offsets)
        self.documents = documents
        self._chunks = []
        order = np.argsort(query, kind="stable")
        clicked, first = np.unique(query[order], return_index=True)
        first = np.append(first, len(order))
        width = np.diff(offsets)[clicked]
        for lists in equal_blocks(width, BLOCK):
            # The terms of a list are neighbours in ``order``.
            terms = order[document_index(lists, first)]
            cuts = np.append(0, np.cumsum(first[lists + 1] - first[lists]))
            index = offsets[clicked[lists]][:, None] + np.arange(width[lists[0]])
            self._chunks.append((terms, cuts, index))

    def sums(self, scores: FloatArray, price: Price) -> tuple[FloatArray, FloatArray]:
        """S_t of every term, and the force Σ_t price_t Σ_y [s_y > τ_t] (e_t − e_y) on every document, (n_docs,).

        As :meth:`ClickedLists.sums` of the hinge.
        """
        total = np.empty(len(self.documents))
        force = np.zeros(len(scores))
        for terms, cuts, index in self._chunks:
            n, m = index.shape
            ranked = np.take_along_axis(index, np.argsort(scores[index], axis=1), axis=1)
            high, mine = scores[ranked], scores[self.documents[terms]]
            row, tau = np.repeat(np.arange(n), np.diff(cuts)), mine - 1
            place = np.empty(len(terms), dtype=np.int64)
            for ascending, (low, end) in zip(high, pairwise(cuts.tolist()), strict=True):
                place[low:end] = ascending.searchsorted(tau[low:end], side="right")
            k = m - place
            place += row * (m + 1)
            largest = high[:, -1:].copy()
            high -= largest
            above = np.zeros((n, m + 1))
            np.cumsum(high[:, ::-1], axis=1, out=above[:, -2::-1])
            sums = above.ravel()[place]
            sums -= k * (tau - largest[row, 0])
            sums -= mine - tau
            total[terms] = np.maximum(sums, 0, out=sums)
            cost = price(terms, sums)
            pull = np.bincount(place, cost, minlength=n * (m + 1)).reshape(n, m + 1)
            force[ranked] -= np.cumsum(pull[:, :-1], axis=1)
            np.add.at(force, self.documents[terms], cost * k)
        return total, force


def neighbours(sizes: IntArray, limit: int) -> Iterator[slice]:
    """Cut ``sizes`` into slices of neighbours with a sum of at most ``limit``, as long as they can be, or of one."""
    begin = np.concatenate([[0], np.cumsum(sizes)])
    low = 0
    while low < len(sizes):
        high = max(low + 1, int(np.searchsorted(begin, begin[low] + limit, side="right")) - 1)
        yield slice(low, high)
        low = high


def _windows(array: NDArray[np.floating], m: int) -> NDArray[np.floating]:
    """All windows of ``m`` neighbours of a contiguous vector, as a view, without the checks of sliding_window_view."""
    return np.ndarray((len(array) - m + 1, m), array.dtype, array, strides=2 * array.strides)
