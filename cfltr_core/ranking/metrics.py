"""Ranks of scored documents, λ at these ranks, additive metrics and nDCG@k.

Risk is minimised: every λ increases with the rank (:mod:`cfltr_core.ranking.rank_weight`).  Ranks are 1-based.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.ranking.ragged import length_groups, query_index, query_of
from cfltr_core.ranking.rank_weight import RankWeight, RankWeights

Ties = Literal["average", "random", "optimistic", "pessimistic"]
# So few documents are sorted in one go; more of them faster in rectangles, of which each costs some 50 µs.
FEW = 1 << 13


def _tie_bounds(scores: FloatArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """Best and worst rank of each document among those with the same score."""
    if len(scores) <= FEW:
        return _flat_tie_bounds(scores, offsets)
    best = np.empty(len(scores), dtype=np.int64)
    worst = np.empty(len(scores), dtype=np.int64)
    for _, index in length_groups(offsets):
        best[index], worst[index] = _row_tie_bounds(scores[index])
    return best, worst


def _flat_tie_bounds(scores: FloatArray, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """The same by one sort of all documents, by list and score."""
    order = np.lexsort((-scores, query_index(offsets)))
    ordered = scores[order]
    new = np.ones(len(scores), dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    new[offsets[:-1]] = True
    begin = np.flatnonzero(new)
    size = np.diff(begin, append=len(scores))
    first = begin - offsets[query_of(begin, offsets)] + 1
    best, worst = np.empty_like(order), np.empty_like(order)
    best[order], worst[order] = np.repeat(first, size), np.repeat(first + size - 1, size)
    return best, worst


def _row_tie_bounds(scores: FloatArray) -> tuple[IntArray, IntArray]:
    """The same for a rectangle of equally long lists, one per row."""
    order = np.argsort(-scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    n = scores.shape[1]
    starts = np.ones(scores.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ends = np.ones(scores.shape, dtype=bool)
    ends[:, :-1] = starts[:, 1:]
    place = np.arange(1, n + 1)
    first = np.maximum.accumulate(np.where(starts, place, 0), axis=1)
    last = np.minimum.accumulate(np.where(ends, place, n + 1)[:, ::-1], axis=1)[:, ::-1]
    best, worst = np.empty_like(order), np.empty_like(order)
    np.put_along_axis(best, order, first, axis=1)
    np.put_along_axis(worst, order, last, axis=1)
    return best, worst


def ranks(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    ties: Ties = "average",
    rng: np.random.Generator | None = None,
) -> FloatArray:
    """rank(d) = 1 + #{y : f(y) > f(d)} of each document in its query, plus what ``ties`` adds for equal scores.

    ``optimistic`` adds nothing, ``pessimistic`` puts all tied documents first, ``average`` takes the middle,
    ``random`` a uniformly random order (the only choice that always gives a permutation).

    Source: Agarwal et al. 2018, §4, the rank before its hinge bound, with a strict comparison.

    Parameters
    ----------
    scores : (n_docs,) finite
    offsets : (n_queries + 1,)
    ties : "average", "random", "optimistic" or "pessimistic"
        See above; never the order of the file.
    rng : numpy.random.Generator
        Needed for ``ties="random"``.

    Returns
    -------
    (n_docs,) float64
        1 = highest score.

    Raises
    ------
    ValueError
        For non-finite scores, bad offsets, an unknown ``ties``.
    TypeError
        For ``ties="random"`` without a generator.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.ranks([0.9, 0.4, 0.4], [0, 3])
    array([1. , 2.5, 2.5])
    >>> cf.ranks([0.9, 0.4, 0.4], [0, 3], ties="pessimistic")
    array([1., 3., 3.])
    """
    checks.arguments(ranks, locals())
    values, cuts = _scores_and_offsets(scores, offsets)
    if ties == "random":
        return _random_ranks(values, cuts, checks.generator(rng))
    best, worst = _tie_bounds(values, cuts)
    if ties == "optimistic":
        return best.astype(np.float64)
    if ties == "pessimistic":
        return worst.astype(np.float64)
    return (best + worst) / 2.0


def _random_ranks(scores: FloatArray, offsets: IntArray, rng: np.random.Generator) -> FloatArray:
    # One draw for the whole file, in file order: the result does not depend on how lists are grouped.
    lottery = rng.random(len(scores))
    out = np.empty(len(scores))
    for _, index in length_groups(offsets):
        shuffle = np.argsort(lottery[index], axis=1)
        shuffled = np.take_along_axis(index, shuffle, axis=1)
        order = np.argsort(-scores[shuffled], axis=1, kind="stable")
        out[np.take_along_axis(shuffled, order, axis=1)] = np.arange(1.0, index.shape[1] + 1)
    return out


def rank_weights(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    metric: RankWeight,
    ties: Ties = "average",
    rng: np.random.Generator | None = None,
) -> RankWeights:
    """λ(rank(d)) of each document, with its metric: what estimators take for the ranker to be judged.

    With ``ties="average"`` it is the exact mean of λ over all orders of the tied documents: the mean of
    λ(a), …, λ(b) when they share the ranks a…b (not λ at the mean rank).

    Source: Agarwal et al. 2018, Eq. 1.

    Parameters
    ----------
    metric : RankWeight
        λ, such as :func:`cfltr_core.ranking.rank_weight.dcg` gives it.
    scores, offsets, ties, rng
        As in :func:`ranks`, whose errors it shares.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())  # C A B
    >>> proposed.lam.round(3)
    array([-0.631, -0.5  , -1.   ])
    >>> cf.rank_weights([2, 2, 1], [0, 3], metric=cf.dcg()).lam.round(3)  # A, B: the mean of λ(1) and λ(2)
    array([-0.815, -0.815, -0.5  ])
    """
    checks.arguments(rank_weights, locals())
    values, cuts = _scores_and_offsets(scores, offsets)
    if ties != "average":
        return RankWeights(metric(ranks(values, cuts, ties=ties, rng=rng)), metric)
    best, worst = _tie_bounds(values, cuts)
    longest = int(np.diff(cuts).max())
    table = metric(np.arange(1.0, longest + 1))
    return RankWeights(_shared(table, best, worst), metric)


def additive_metric(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    relevance: ArrayLike,
    metric: RankWeight,
    ties: Ties = "average",
    rng: np.random.Generator | None = None,
) -> FloatArray:
    """Additive metric as a risk: Δ(f | q) = Σ_{d ∈ q} λ(rank(d | f)) · relevance(d), shape (n_queries,).

    Source: Agarwal et al. 2018, Eq. 1.

    Parameters
    ----------
    relevance : (n_docs,) finite
        Binary, or any weights.
    metric : RankWeight
        λ; its ``report`` turns the risk into the number that is usually shown.
    scores, offsets, ties, rng
        As in :func:`ranks`, whose errors it shares.

    Raises
    ------
    ValueError
        Also for a relevance of another length, or one that is not finite.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> risk = cf.additive_metric([2, 1, 3], [0, 3], relevance=[1, 0, 1], metric=cf.dcg())  # C A B
    >>> cf.dcg().report(risk).round(3)  # 1/log₂2 + 1/log₂3
    array([1.631])
    """
    lam = rank_weights(scores, offsets, metric=metric, ties=ties, rng=rng).lam
    rel = checks.finite_vector(relevance, len(lam), "relevance")
    return np.asarray(np.add.reduceat(lam * rel, np.asarray(offsets)[:-1]))


@dataclass(frozen=True, eq=False)
class NDCG:
    """Result of :func:`ndcg`: the mean over the queries that count, each query's value, the share dropped."""

    mean: float
    per_query: FloatArray
    share_dropped: float

    def __repr__(self) -> str:
        return f"NDCG(mean={self.mean:.6g} over {len(self.per_query)} queries, share_dropped={self.share_dropped:.3g})"


def ndcg(
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    relevance: ArrayLike,
    cutoff: int = 10,
    gain: Literal["exponential", "linear"] = "exponential",
    empty: Literal["drop", "zero", "one"] = "drop",
) -> NDCG:
    """nDCG@k = DCG@k / ideal DCG@k with gain 2^y − 1 (or y), discount 1 / log₂(1 + rank), k the ``cutoff``.

    Source: Järvelin & Kekäläinen 2002; the exponential gain is Burges et al. 2005's.  It is the measure of Jagerman &
    de Rijke 2020, §6.4.

    Parameters
    ----------
    scores : (n_docs,) finite
        Ties are averaged exactly.
    offsets : (n_queries + 1,)
    relevance : (n_docs,) grades, whole numbers 0…30
    cutoff : int
        k: what stands below rank k counts nothing.
    gain : "exponential" or "linear"
        2^y − 1 or y of a document with grade y.
    empty : "drop", "zero" or "one"
        Queries without a relevant document have no ideal: they are dropped (their ``per_query`` value is NaN), or
        count as 0 or 1.

    Returns
    -------
    NDCG
        ``mean`` over the queries that count, ``per_query`` (n_queries,), and ``share_dropped``.

    Raises
    ------
    ValueError
        For grades that are not small whole numbers, an unknown ``gain`` or ``empty``, a cutoff below 1.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> result = cf.ndcg([3, 2, 1, 1], [0, 3, 4], relevance=[1, 0, 1, 0])  # A B C; and a query without relevant ones
    >>> round(result.mean, 3), result.per_query.round(3), result.share_dropped  # 1.5 / 1.631
    (0.92, array([0.92,  nan]), 0.5)
    """
    checks.arguments(ndcg, locals())
    values, cuts = _scores_and_offsets(scores, offsets)
    why = "expected a grade from 0 to 30, since 2^y − 1 needs small ones"
    grades, k = checks.counts(relevance, len(values), "relevance", high=30, why=why), cutoff
    grade = np.arange(31, dtype=np.float64)
    gain_of: FloatArray = grade if gain == "linear" else np.exp2(grade) - 1.0
    longest = int(np.diff(cuts).max())
    discount = np.zeros(longest)
    discount[:k] = 1.0 / np.log2(np.arange(2.0, min(k, longest) + 2))
    total = np.concatenate([[0.0], np.cumsum(discount)])
    ideal = np.empty(len(cuts) - 1)
    achieved = np.empty(len(cuts) - 1)
    for queries, index in length_groups(cuts):
        block = grades[index]
        ideal[queries] = _ideal_dcg(block, gain_of, total)
        achieved[queries] = _dcg(values[index], block, gain_of, discount[: index.shape[1]], k)
    has = ideal > 0
    per_query = np.full(len(ideal), {"drop": np.nan, "zero": 0.0, "one": 1.0}[empty])
    per_query[has] = achieved[has] / ideal[has]
    kept = per_query[has] if empty == "drop" else per_query
    mean = float(kept.mean()) if len(kept) else float("nan")
    return NDCG(mean, per_query, float(1.0 - has.mean()) if empty == "drop" else 0.0)


def _ideal_dcg(grades: IntArray, gain_of: FloatArray, total: FloatArray) -> FloatArray:
    """Best DCG of each row from its grade counts alone, no sort; ``total[n]`` is the discount of n places."""
    ideal = np.zeros(len(grades))
    above = np.zeros(len(grades), dtype=np.int64)
    for grade in range(int(grades.max()), 0, -1):
        at_least = np.count_nonzero(grades >= grade, axis=1)
        ideal += gain_of[grade] * (total[at_least] - total[above])
        above = at_least
    return ideal


def _dcg(scores: FloatArray, grades: IntArray, gain_of: FloatArray, discount: FloatArray, k: int) -> FloatArray:
    """DCG@k of each row.  A row without ties among its k + 1 best needs no order below place k."""
    n = scores.shape[1]
    top = min(k, n)
    ordered = np.sort(scores, axis=1)
    best = ordered[:, max(0, n - top - 1) :]
    tied = (best[:, 1:] == best[:, :-1]).any(axis=1)
    chosen = np.flatnonzero((scores >= ordered[:, [n - top]]) & ~tied[:, None]).reshape(-1, top)
    order = np.argsort(-scores.ravel()[chosen], axis=1)
    gains = gain_of[grades.ravel()[np.take_along_axis(chosen, order, axis=1)]]
    out = np.empty(len(scores))
    out[~tied] = gains @ discount[:top]
    if tied.any():
        shared = _shared(discount, *_row_tie_bounds(scores[tied]))
        out[tied] = (gain_of[grades[tied]] * shared).sum(axis=1)
    return out


def _shared(table: FloatArray, best: IntArray, worst: IntArray) -> FloatArray:
    """Mean of ``table`` over the ranks best … worst that tied documents share (table[0] belongs to rank 1)."""
    total = np.concatenate([[0.0], np.cumsum(table)])
    mean = (total[worst] - total[best - 1]) / (worst - best + 1)
    # A document without a tie takes the entry itself: a difference of sums would cost the last digits.
    return np.asarray(np.where(best == worst, table[best - 1], mean))


def _scores_and_offsets(scores: ArrayLike, offsets: ArrayLike) -> tuple[FloatArray, IntArray]:
    index = getattr(scores, "index", None)
    # A list has a method of that name.
    if index is not None and not callable(index) and not np.array_equal(np.asarray(index), np.arange(len(index))):
        raise ValueError(
            "scores: a Series whose index is not 0, 1, 2, …: its rows may have another order than the documents; give "
            "events.scores(scores) if it is named by query and document, or scores.to_numpy() if the order is right"
        )
    values = checks.finite_vector(scores, None, "scores")
    return values, checks.offsets_of(offsets, len(values))
