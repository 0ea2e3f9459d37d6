"""Examination from the interventions that a log happens to hold, as ratios of clicks: click rates, pivot and chain.

A ratio of weighted clicks over one interventional set estimates θ_k/θ_j
(:mod:`cfltr_core.propensity.interventional_sets`).  :mod:`cfltr_core.propensity.all_pairs` takes all sets at once.

Source: Agarwal et al. 2019, "Estimating Position Bias without Intrusive Interventions".
"""

from __future__ import annotations

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.propensity.curves import PropensityCurve, clustered_covariance, effective_queries, grouped_curve
from cfltr_core.propensity.identifiability import components_of, rank_links, require_comparable, words_for
from cfltr_core.propensity.interventional_sets import (
    PairRule,
    PairTerms,
    Weighting,
    pair_terms,
    query_influence,
    summed_pairs,
)
from cfltr_core.propensity.strata import DisplayCounts


def pivot(
    counts: DisplayCounts, rank: int = 1, *, weighting: Weighting = "harmonic", design: LoggingPolicy | None = None
) -> PropensityCurve:
    """Pivot estimate θ_k/θ_p = ĉ_k^{kp}/ĉ_p^{kp}, with p = ``rank``: only documents shown at p and k speak of k.

    With swaps of rank p it is the estimate of the swap experiment (Joachims et al. 2017).  Its standard error is that
    of a ratio of sums, clustered by query.

    Source: Agarwal et al. 2019.

    Parameters
    ----------
    counts : DisplayCounts
    rank : int
        The pivot, from 1: the landmark rank of the swaps, or one that many documents pass.
    weighting, design
        As in :func:`~cfltr_core.propensity.interventional_sets.pair_counts`.

    Raises
    ------
    ValueError
        When no rank can be compared with the pivot, or there is no such rank.

    Examples
    --------
    >>> from cfltr_core.propensity.harvesting import pivot
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0, 0, 1, 1], document=[0, 0, 1, 1], rank=[1, 2, 2, 3], impressions=[6, 6, 6, 6])
    >>> pivot(DisplayCounts(**terms, clicks=[6, 3, 3, 2]), 2).curve.round(3)  # by way of rank 2
    array([1.   , 0.5  , 0.333])
    """
    checks.arguments(pivot, locals())
    terms = pair_terms(counts, weighting=weighting, design=design)
    checks.within(rank, 1, terms.n_ranks, "rank", "ranks of the log")
    return _along(f"pivot at rank {rank}", counts, terms, np.full(terms.n_ranks, rank - 1))


def adjacent_chain(
    counts: DisplayCounts, *, weighting: Weighting = "harmonic", design: LoggingPolicy | None = None
) -> PropensityCurve:
    """Chain estimate θ_k/θ₁ = Π_{j<k} ĉ_{j+1}^{j,j+1}/ĉ_j^{j,j+1}: only documents shown at adjacent ranks speak.

    The errors of the factors add up on the way down.  The chain ends where two adjacent ranks have no document in
    common, or no click.

    Source: Agarwal et al. 2019.

    The arguments are those of :func:`~cfltr_core.propensity.interventional_sets.pair_counts`.

    Raises
    ------
    ValueError
        When no two adjacent ranks can be compared.

    Examples
    --------
    >>> from cfltr_core.propensity.harvesting import adjacent_chain
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0, 0, 1, 1], document=[0, 0, 1, 1], rank=[1, 2, 2, 3], impressions=[6, 6, 6, 6])
    >>> adjacent_chain(DisplayCounts(**terms, clicks=[6, 3, 3, 2])).curve.round(3)  # 1/2 · 2/3
    array([1.   , 0.5  , 0.333])
    """
    terms = pair_terms(counts, weighting=weighting, design=design)
    return _along("adjacent chain", counts, terms, np.maximum(np.arange(terms.n_ranks) - 1, 0))


def _along(method: str, counts: DisplayCounts, terms: PairTerms, parent: IntArray) -> PropensityCurve:
    """Sums of log ratios of each rank and its ``parent`` on the way to the root, its own parent; ranks from 0.

    An edge of this tree is log ĉ_k^{kj}/ĉ_j^{kj}, 0 where clicks are missing; a query moves it by its parts of the two
    counts, each divided by the whole.
    """
    clicks, rank = summed_pairs(terms).clicks, np.arange(terms.n_ranks)
    edge = (parent[:, None] == rank) & (clicks > 0) & (clicks.T > 0)  # of a rank and its parent, not of the root
    inverse = np.divide(1.0, clicks, out=np.zeros_like(clicks), where=edge | edge.T)
    component, found = components_of(inverse, strong=False), rank_links(counts)
    require_comparable(found, component)
    rule = PairRule(
        inverse, np.zeros_like(inverse), plus=np.where(edge, rank[:, None], -1), minus=np.where(edge.T, rank, -1)
    )
    sums, heard, n_queries = query_influence(terms, rule)
    # An edge moves every rank whose way to the root it is on.
    step, way, at = np.zeros(len(rank)), np.eye(len(rank)), rank
    step[edge.any(axis=1)] = np.log(clicks[edge] / clicks.T[edge])
    for _ in rank:
        at = parent[at]
        way[at, rank] = 1.0
    return grouped_curve(
        method,
        step @ way,
        covariance=clustered_covariance(sums @ way, n_queries),
        component=component,
        clicks=heard.sum(axis=0),
        notes=(*_lost(method, component, found.log), *found.diagnosis),
        queries=effective_queries(heard),
        origin=counts.origin,
    )


def _lost(method: str, component: IntArray, log: IntArray) -> tuple[str, ...]:
    """A sentence on what the log could compare with rank 1 and this estimator cannot."""
    lost = np.flatnonzero((component != component[0]) & (log == log[0])) + 1
    if len(lost) == 0:
        return ()
    return (f"The {method} cannot compare {words_for(lost.tolist())} with rank 1, but the log can: use all_pairs.",)


def click_rates(counts: DisplayCounts, *, places: int | None = None) -> PropensityCurve:
    """Ratios of click rates by rank, θ̂_k/θ̂₁ = (clicks_k/impressions_k) / (clicks₁/impressions₁).

    On pages that were shuffled (RandTop) every rank shows the same mix of documents, and the ratio is that of the
    examinations.  On any other log it is the naive estimate: it takes the relevance that the ranker put on top for
    examination, and stands here as the control.  Pages of different lengths change the mix of queries with the rank;
    with ``places`` = n only queries count that showed all ranks from 1 to n, and only these ranks.

    Source: the notes on counterfactual evaluation, "Estimating Position Bias".

    Parameters
    ----------
    counts : DisplayCounts
    places : int, optional
        n, at most the deepest rank.

    Raises
    ------
    ValueError
        For a log without a click at rank 1, or in which no query showed ranks 1 to ``places``.

    Examples
    --------
    >>> from cfltr_core.propensity.harvesting import click_rates
    >>> from cfltr_core.propensity.strata import count_rows
    >>> counts = count_rows(query=[0] * 4, document=[0, 1, 1, 0], rank=[1, 2, 1, 2], clicked=[1, 0, 1, 1])
    >>> click_rates(counts).curve, click_rates(counts, places=2).clicks
    (array([1. , 0.5]), array([2., 1.]))
    """
    checks.arguments(click_rates, locals())
    n = counts.n_ranks
    n_clusters = int(counts.cluster[-1]) + 1
    cell, size = counts.cluster * n + counts.rank - 1, n_clusters * n
    shown = np.bincount(cell, counts.impressions, minlength=size).reshape(n_clusters, n)
    clicks = np.bincount(cell, counts.clicks, minlength=size).reshape(n_clusters, n)
    deepest = n if places is None else places
    checks.within(deepest, 1, n, "places", "ranks of the log")
    if places is not None:
        whole = (shown[:, :deepest] > 0).all(axis=1)
        if not whole.any():
            raise ValueError(f"places is {places}: no query showed all ranks from 1 to {places}; take fewer")
        shown, clicks = shown[whole, :deepest], clicks[whole, :deepest]
    total, clicked = shown.sum(axis=0), clicks.sum(axis=0)
    if clicked[0] == 0:
        remedy = "collect more sessions" if total[0] > 0 else "nothing was shown there: number ranks from 1"
        raise ValueError(f"counts: there is no click at rank 1, with which the others are compared; {remedy}")
    some = clicked > 0
    rate = np.divide(clicked, total, out=np.zeros(deepest), where=total > 0)
    influence = np.where(some, (clicks - shown * rate) / np.where(some, clicked, 1.0), 0.0)
    influence -= influence[:, :1]
    notes = []
    if deepest > 1 and (np.diff(counts.start) == 1).all():
        notes.append(
            "Every document was shown at one rank only, so these rates mix examination with what the ranker put where: "
            "show one per cent of the sessions their page shuffled, and compare each document with itself."
        )
    uneven = (shown > 0).sum(axis=1)
    if places is None and uneven.min() < uneven.max():
        notes.append(
            f"Queries showed between {uneven.min()} and {uneven.max()} ranks, so the mix of queries changes with the "
            "rank: take places=… to compare the same queries, or the conditional Poisson estimate."
        )
    if not some.all():
        notes.append(f"No click at {words_for((np.flatnonzero(~some) + 1).tolist())}: nothing can be said of it.")
    component = np.where(some, 0, np.cumsum(~some))
    return grouped_curve(
        "click rates",
        np.log(np.where(some, rate, 1.0)),
        covariance=clustered_covariance(influence, len(shown)),
        component=component,
        clicks=clicked,
        notes=tuple(notes),
        queries=effective_queries(clicks),
        origin=counts.origin,
    )
