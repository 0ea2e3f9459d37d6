"""Interventional sets: what a log shows at two ranks, in weighted counts, and how each query moves their sums.

For two ranks k ≠ j, S_kj are the strata that were shown at both.  The estimators of
:mod:`cfltr_core.propensity.harvesting` and :mod:`cfltr_core.propensity.all_pairs` begin with weighted counts over S_kj,

    ĉ_k^{kj} = Σ_{s ∈ S_kj} w_sk^{kj} c_sk,    ¬ĉ_k^{kj} = Σ_{s ∈ S_kj} w_sk^{kj} (n_sk − c_sk),

whose weights make up for the different numbers of displays at the two ranks: the mean of ĉ_k^{kj} is θ_k r_kj and that
of ĉ_j^{kj} is θ_j r_kj with *one* r_kj, so that their ratio is θ_k/θ_j.

* ``"harmonic"``: w_sk = n_sj/(n_sk + n_sj), the weights of Mantel & Haenszel 1959, which follow how much is known;
* ``"documents"``: w_sk = 1/n_sk, every document alike, as in public implementations;
* ``"design"``: w_sk = 1/P(rank(s) = k), which needs the policy that filled the log: the weights of the paper.

Source: Agarwal et al. 2019, "Estimating Position Bias without Intrusive Interventions".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.propensity.strata import DisplayCounts

Weighting = Literal["harmonic", "documents", "design"]


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Weighted counts over the interventional sets: ``clicks[k, j]`` is ĉ_k^{kj}, ``misses[k, j]`` is ¬ĉ_k^{kj}.

    Both are (n_ranks, n_ranks), counted from 0, with 0 on the diagonal; ``sets`` holds the numbers of strata in S_kj.
    :func:`pair_counts` makes it.
    """

    clicks: FloatArray
    misses: FloatArray
    sets: IntArray


@dataclass(frozen=True)
class PairTerms:
    """Terms of strata with their ``place``, the rank from 0; ``share`` is P(rank) by the design, where it is given.

    ``start`` cuts them into strata, ``cluster`` numbers the queries; ``place``, ``cluster``, ``impressions``,
    ``clicks`` and ``share`` are (n_terms,).  :func:`pair_terms` makes it.
    """

    n_ranks: int
    place: IntArray
    start: IntArray
    cluster: IntArray
    impressions: IntArray
    clicks: IntArray
    share: FloatArray | None
    weighting: Weighting


def pair_terms(counts: DisplayCounts, *, weighting: Weighting, design: LoggingPolicy | None) -> PairTerms:
    """The terms of the log; with a design, one wherever the policy *might* have shown a document.

    The sets of what happened to be shown would favour, at each rank, the documents that happened to be shown often.
    Arguments and errors are those of :func:`pair_counts`.

    Examples
    --------
    >>> from cfltr_core.propensity.interventional_sets import pair_terms
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 2], clicks=[3, 1])
    >>> terms = pair_terms(counts, weighting="harmonic", design=None)
    >>> terms.place, terms.start  # one stratum, of two terms
    (array([0, 1]), array([0, 2]))
    """
    checks.arguments(pair_terms, locals())
    if (weighting == "design") != (design is not None):
        raise TypeError('design: give the policy that filled the log with weighting="design", and only then')
    n = counts.n_ranks
    if design is None:
        return PairTerms(
            n, counts.rank - 1, counts.start, counts.cluster, counts.impressions, counts.clicks, None, weighting
        )
    if np.any(counts.period):
        raise ValueError('design: one policy cannot have filled several periods; use weighting="harmonic"')
    checks.within(counts.document, 0, int(design.offsets[-1]) - 1, "document", "no such document in the design's lists")
    table = np.stack([design.display_mean(lambda r, k=k: r == k) for k in range(1, n + 1)], axis=1)  # type: ignore[misc]
    # Quadrature leaves dust where a policy never shows a document.
    table[table < 1e-9] = 0.0
    impossible = table[counts.document, counts.rank - 1] == 0
    if impossible.any():
        term = int(np.argmax(impossible))
        raise ValueError(
            f"design: document {counts.document[term]} was shown at rank {counts.rank[term]}, where the policy never "
            "puts it; give the policy that filled the log"
        )
    seen, row_of = np.unique(counts.document, return_inverse=True)
    row, place = np.nonzero(table[seen] > 0)
    number = np.zeros((3, len(seen), n), dtype=np.int64)
    number[:2, row_of, counts.rank - 1] = counts.impressions, counts.clicks
    number[2, row_of] = counts.cluster[:, None]
    impressions, clicks, cluster = number[:, row, place]
    start = np.append(np.flatnonzero(np.append(True, row[1:] != row[:-1])), len(row))
    return PairTerms(n, place, start, cluster, impressions, clicks, table[seen][row, place], weighting)


def _pairs(terms: PairTerms) -> Iterator[tuple[IntArray, IntArray, FloatArray, FloatArray]]:
    """(i, j, w_i, w_j): all pairs of terms i < j of a stratum and their weights, by how far apart they stand in it."""
    sizes = np.diff(terms.start)
    last = np.repeat(terms.start[1:], sizes)
    n = terms.impressions
    for lag in range(1, int(sizes.max())):
        i = np.flatnonzero(np.arange(len(last)) + lag < last)
        j = i + lag
        if terms.share is not None:
            yield i, j, 1.0 / terms.share[i], 1.0 / terms.share[j]
        elif terms.weighting == "harmonic":
            yield i, j, n[j] / (n[i] + n[j]), n[i] / (n[i] + n[j])
        else:
            yield i, j, 1.0 / n[i], 1.0 / n[j]


def pair_counts(
    counts: DisplayCounts, *, weighting: Weighting = "harmonic", design: LoggingPolicy | None = None
) -> PairCounts:
    """Weighted clicks and misses of every interventional set S_kj, as the top of this module defines them.

    Parameters
    ----------
    counts : DisplayCounts
    weighting : "harmonic", "documents" or "design"
    design : LoggingPolicy
        The policy that filled the log, with ``weighting="design"`` only: S_kj then holds what it might show at both.

    Raises
    ------
    TypeError
        For a design without its weighting, or the other way round.
    ValueError
        For a document that was shown where the design never puts it.

    Examples
    --------
    >>> from cfltr_core.propensity.interventional_sets import pair_counts
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 2], clicks=[3, 1])
    >>> pair_counts(counts).clicks  # 3 · 2/8 and 1 · 6/8: clicked equally often
    array([[0.  , 0.75],
           [0.75, 0.  ]])
    """
    return summed_pairs(pair_terms(counts, weighting=weighting, design=design))


def summed_pairs(terms: PairTerms) -> PairCounts:
    """The weighted counts of :func:`pair_counts`, from the ``terms`` of a log.

    Examples
    --------
    >>> from cfltr_core.propensity.interventional_sets import pair_terms, summed_pairs
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 2], clicks=[3, 1])
    >>> summed_pairs(pair_terms(counts, weighting="documents", design=None)).clicks  # 3/6 and 1/2
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    n = terms.n_ranks
    clicks, misses, sets = np.zeros(n * n), np.zeros(n * n), np.zeros(n * n, dtype=np.int64)
    missed = terms.impressions - terms.clicks
    for i, j, w_i, w_j in _pairs(terms):
        for one, other, weight in ((i, j, w_i), (j, i, w_j)):
            cell = terms.place[one] * n + terms.place[other]
            clicks += np.bincount(cell, terms.clicks[one] * weight, minlength=n * n)
            misses += np.bincount(cell, missed[one] * weight, minlength=n * n)
            sets += np.bincount(cell, minlength=n * n)
    return PairCounts(clicks.reshape(n, n), misses.reshape(n, n), sets.reshape(n, n))


@dataclass(frozen=True)
class PairRule:
    """How one pair of terms moves the estimate: a c_i + b m_i − (a′ c_j + b′ m_j), for each pair of ranks k < j.

    ``clicks`` and ``misses`` hold a, b above the diagonal and a′, b′ below it; c and m are weighted.  The sum goes to
    column ``plus[k, j]``, and with the other sign to ``minus[k, j]``; −1 is nowhere.
    """

    clicks: FloatArray
    misses: FloatArray
    plus: IntArray
    minus: IntArray


def query_influence(terms: PairTerms, rule: PairRule) -> tuple[FloatArray, FloatArray, int]:
    """Sums of a ``rule`` by query and rank, the clicks that it used, and the number of queries with any terms.

    Returns
    -------
    sums (n_queries, n_ranks), clicks (n_queries, n_ranks), n_queries

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.interventional_sets import PairRule, pair_terms, query_influence
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 2], clicks=[3, 2])
    >>> terms, to = pair_terms(counts, weighting="documents", design=None), np.array([[-1, 0], [-1, -1]])
    >>> rule = PairRule(np.ones((2, 2)), np.zeros((2, 2)), plus=to, minus=np.full((2, 2), -1))
    >>> query_influence(terms, rule)  # 3/6 − 2/2
    (array([[-0.5,  0. ]]), array([[3., 2.]]), 1)
    """
    n, n_clusters = terms.n_ranks, int(terms.cluster.max()) + 1
    cells = np.zeros(n_clusters * n)
    used = np.zeros(len(terms.place), dtype=bool)
    missed = terms.impressions - terms.clicks
    for i, j, w_i, w_j in _pairs(terms):
        k, m = terms.place[i], terms.place[j]
        value = w_i * (rule.clicks[k, m] * terms.clicks[i] + rule.misses[k, m] * missed[i])
        value -= w_j * (rule.clicks[m, k] * terms.clicks[j] + rule.misses[m, k] * missed[j])
        counted = (rule.plus[k, m] >= 0) | (rule.minus[k, m] >= 0)
        used[i[counted]] = used[j[counted]] = True
        for sign, column in ((1.0, rule.plus[k, m]), (-1.0, rule.minus[k, m])):
            to = column >= 0
            cells += sign * np.bincount(terms.cluster[i[to]] * n + column[to], value[to], minlength=n_clusters * n)
    clicks = np.bincount(terms.cluster * n + terms.place, terms.clicks * used, minlength=n_clusters * n)
    sums, heard = (table.reshape(n_clusters, n).astype(np.float64) for table in (cells, clicks))
    return sums, heard, len(np.unique(terms.cluster[used]))
