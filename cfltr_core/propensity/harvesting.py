"""Examination from the interventions that a log happens to hold: click rates, pivot, chain and AllPairs.

For two ranks k ≠ j, S_kj are the strata that were shown at both.  Each estimator begins with weighted counts over S_kj,

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
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.conditional_poisson import clustered_covariance
from cfltr_core.propensity.curves import PropensityCurve, grouped_curve
from cfltr_core.propensity.identifiability import components_of, rank_links, require_comparable, words_for
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
class _Terms:
    """Terms of strata with their ``place``, the rank from 0; ``share`` is P(rank) by the design, where it is given."""

    n_ranks: int
    place: IntArray
    start: IntArray
    cluster: IntArray
    impressions: IntArray
    clicks: IntArray
    share: FloatArray | None
    weighting: Weighting


def _terms(counts: DisplayCounts, weighting: Weighting, design: LoggingPolicy | None) -> _Terms:
    """The terms of the log; with a design, one wherever the policy *might* have shown a document.

    The sets of what happened to be shown would favour, at each rank, the documents that happened to be shown often.
    """
    checks.one_of(weighting, "weighting", ("harmonic", "documents", "design"))
    if (weighting == "design") != (design is not None):
        raise TypeError('design: give the policy that filled the log with weighting="design", and only then')
    n = counts.n_ranks
    if design is None:
        return _Terms(
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
    return _Terms(n, place, start, cluster, impressions, clicks, table[seen][row, place], weighting)


def _pairs(terms: _Terms) -> Iterator[tuple[IntArray, IntArray, FloatArray, FloatArray]]:
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
    >>> from cfltr_core.propensity.harvesting import pair_counts
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(query=[0, 0], document=[0, 0], rank=[1, 2], impressions=[6, 2], clicks=[3, 1])
    >>> pair_counts(counts).clicks  # 3 · 2/8 and 1 · 6/8: clicked equally often
    array([[0.  , 0.75],
           [0.75, 0.  ]])
    """
    return _pair_counts(_terms(counts, weighting, design))


def _pair_counts(terms: _Terms) -> PairCounts:
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
class _Influence:
    """How one pair of terms moves the estimate: a c_i + b m_i − (a′ c_j + b′ m_j), for each pair of ranks k < j.

    ``clicks`` and ``misses`` hold a, b above the diagonal and a′, b′ below it; c and m are weighted.  The sum goes to
    column ``plus[k, j]``, and with the other sign to ``minus[k, j]``; −1 is nowhere.
    """

    clicks: FloatArray
    misses: FloatArray
    plus: IntArray
    minus: IntArray


def _influence(terms: _Terms, rule: _Influence) -> tuple[FloatArray, FloatArray, int]:
    """Sums by query and rank, the clicks at each rank that were used, and the number of queries with any."""
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
    clicks = np.bincount(terms.place, terms.clicks * used, minlength=n).astype(np.float64)
    return cells.reshape(n_clusters, n), clicks, len(np.unique(terms.cluster[used]))


def _log_ratios(pairs: PairCounts) -> tuple[FloatArray, FloatArray]:
    """log ĉ_k^{kj}/ĉ_j^{kj} where both are positive, else 0; and 1/ĉ_k^{kj}, else 0."""
    both = (pairs.clicks > 0) & (pairs.clicks.T > 0)
    safe = np.where(both, pairs.clicks, 1.0)
    return np.log(safe / safe.T), np.where(both, 1.0 / safe, 0.0)


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
        As in :func:`pair_counts`.

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
    checks.positive_int(rank, "rank")
    terms = _terms(counts, weighting, design)
    checks.within(rank, 1, terms.n_ranks, "rank", "ranks of the log")
    pairs, p = _pair_counts(terms), rank - 1
    log_ratio, inverse = _log_ratios(pairs)
    star = np.zeros_like(inverse)
    star[p], star[:, p] = inverse[p], inverse[:, p]
    column = np.full(star.shape, -1)
    column[:p, p], column[p, p + 1 :] = np.arange(p), np.arange(p + 1, terms.n_ranks)
    column[star == 0] = -1
    below = np.arange(terms.n_ranks) > p  # the other rank is the second of the pair: its sum counts with a minus
    rule = _Influence(star, np.zeros_like(star), np.where(below, -1, column), np.where(below, column, -1))
    return _from_ratios(f"pivot at rank {rank}", counts, log_ratio[:, p], terms=terms, rule=rule, links=star)


def adjacent_chain(
    counts: DisplayCounts, *, weighting: Weighting = "harmonic", design: LoggingPolicy | None = None
) -> PropensityCurve:
    """Chain estimate θ_k/θ₁ = Π_{j<k} ĉ_{j+1}^{j,j+1}/ĉ_j^{j,j+1}: only documents shown at adjacent ranks speak.

    The errors of the factors add up on the way down.  The chain ends where two adjacent ranks have no document in
    common, or no click.

    Source: Agarwal et al. 2019.

    Parameters
    ----------
    counts : DisplayCounts
    weighting, design
        As in :func:`pair_counts`.

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
    terms = _terms(counts, weighting, design)
    log_ratio, inverse = _log_ratios(_pair_counts(terms))
    n = terms.n_ranks
    near = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) == 1
    chain = np.where(near, inverse, 0.0)
    minus = np.where((chain > 0) & (np.arange(n) > np.arange(n)[:, None]), np.arange(n), -1)
    rule = _Influence(chain, np.zeros_like(chain), np.full((n, n), -1), minus)
    down = np.concatenate([[0.0], np.cumsum(-np.diagonal(log_ratio, 1))])
    # A step moves every rank below it, as far as the chain holds.
    spread = np.triu(np.ones((n, n)))
    return _from_ratios("adjacent chain", counts, down, terms=terms, rule=rule, links=chain, spread=spread)


def _from_ratios(
    method: str,
    counts: DisplayCounts,
    log_theta: FloatArray,
    *,
    terms: _Terms,
    rule: _Influence,
    links: FloatArray,
    spread: FloatArray | None = None,
) -> PropensityCurve:
    """The curve of an estimator whose influences are sums of pairs, times ``spread``; ``links`` > 0 are compared."""
    component, found = components_of(links, strong=False), rank_links(counts)
    require_comparable(found, component)
    table, clicks, n_queries = _influence(terms, rule)
    influence = table if spread is None else table @ spread
    return grouped_curve(
        method,
        log_theta,
        covariance=clustered_covariance(influence, n_queries),
        component=component,
        clicks=clicks,
        notes=(*_lost(method, component, found.log), *found.diagnosis),
    )


def _lost(method: str, component: IntArray, log: IntArray) -> tuple[str, ...]:
    """A sentence on what the log could compare with rank 1 and this estimator cannot."""
    lost = np.flatnonzero((component != component[0]) & (log == log[0])) + 1
    if len(lost) == 0:
        return ()
    return (f"The {method} cannot compare {words_for(lost.tolist())} with rank 1, but the log can: use all_pairs.",)


def all_pairs_likelihood(pairs: PairCounts, log_theta: ArrayLike) -> tuple[float, FloatArray, FloatArray]:
    """AllPairs' log-likelihood at ``log_theta`` = u, maximised over every r_kj, with gradient and minus its Hessian.

        ℓ(u) = Σ_{k<j} max_r Σ_{m ∈ {k, j}} [ ĉ_m^{kj} log(θ_m r) + ¬ĉ_m^{kj} log(1 − θ_m r) ],   θ = e^u.

    The best r is the smaller root of θ_k θ_j (A + B) r² − [A (θ_k + θ_j) + θ_k ¬ĉ_k + θ_j ¬ĉ_j] r + A = 0, where A
    and B are the clicks and misses of both ranks.  Each term is concave in u + log r, so ℓ is concave; its gradient is
    that at the best r, and minus its Hessian is the Laplacian of a graph with weights h_k h_j/(h_k + h_j) on its edges,
    in which h_m = ¬ĉ_m x/(1 − x)² at x = θ_m r.

    Source: Agarwal et al. 2019; r, which they fit by gradient steps, is eliminated here.

    Parameters
    ----------
    pairs : PairCounts
    log_theta : (n_ranks,)

    Returns
    -------
    value, gradient (n_ranks,), minus_hessian (n_ranks, n_ranks)

    Raises
    ------
    ValueError
        For numbers that are not finite, or not one for each rank.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.harvesting import PairCounts, all_pairs_likelihood
    >>> pairs = PairCounts(np.array([[0, 8.0], [4, 0]]), np.array([[0, 2.0], [6, 0]]), np.array([[0, 10], [10, 0]]))
    >>> value, gradient, _ = all_pairs_likelihood(pairs, np.log([1.0, 0.5]))  # clicked 8 and 4 times in 10
    >>> bool((abs(gradient) < 1e-12).all()), round(value, 3)  # 8 log .8 + 2 log .2 + 4 log .4 + 6 log .6
    (True, -11.734)
    """
    u = checks.finite_vector(log_theta, len(pairs.clicks), "log_theta")
    fit = _profile(pairs, u)
    value = float((pairs.clicks * fit.log_x + fit.misses * np.log1p(-fit.x)).sum())
    gradient = (pairs.clicks - fit.misses * fit.odds).sum(axis=1)
    return value, gradient, np.diag(fit.link.sum(axis=1)) - fit.link


@dataclass(frozen=True)
class _Profile:
    """At the best r of each pair: x = θ_k r_kj, x/(1 − x), h_kj, and the weights h_k h_j/(h_k + h_j) of the edges."""

    misses: FloatArray
    log_x: FloatArray
    x: FloatArray
    odds: FloatArray
    h: FloatArray
    link: FloatArray


def _profile(pairs: PairCounts, u: FloatArray) -> _Profile:
    a = pairs.clicks
    # Without a single miss nothing would hold x below 1; a hundred-millionth of a miss does.
    b = np.maximum(pairs.misses, 1e-8 * (a + pairs.misses))
    total = a + a.T
    some = total > 0
    # Divided by the larger θ of the pair, so that nothing over- or underflows: the larger is 1, the other e^{−gap}.
    top = np.maximum.outer(u, u)
    theta_k, theta_j = np.exp(u[:, None] - top), np.exp(u[None, :] - top)
    square = theta_k * theta_j * (total + b + b.T)
    middle = total * (theta_k + theta_j) + theta_k * b + theta_j * b.T
    root = np.sqrt(np.maximum(middle**2 - 4 * square * total, 0.0))
    r = np.divide(2 * total, middle + root, out=np.full(a.shape, 0.5), where=some)
    x = np.where(some, np.minimum(theta_k * r, 1 - 1e-15), 0.0)
    b = np.where(some, b, 0.0)
    odds = x / (1 - x)
    h = b * odds / (1 - x)
    both = h + h.T
    link = np.divide(h * h.T, both, out=np.zeros_like(h), where=both > 0)
    return _Profile(b, np.log(np.where(some, x, 1.0)), x, odds, h, link)


def all_pairs(
    counts: DisplayCounts, *, weighting: Weighting = "harmonic", design: LoggingPolicy | None = None
) -> PropensityCurve:
    """AllPairs: every interventional set speaks, through one likelihood with a nuisance r_kj for each pair of ranks.

    Maximises :func:`all_pairs_likelihood` by Newton's method.  The standard error is a sandwich, clustered by query,
    in which the r_kj are estimated too.

    It needs interventions that do not depend on the query: a ranker that serves the queries it is good at brings
    documents of other attraction to the same two ranks, unless the weights are those within documents (``"harmonic"``
    and ``"documents"`` are), and shares of sessions that stay the same while the log is filled.

    Source: Agarwal et al. 2019.

    Parameters
    ----------
    counts : DisplayCounts
    weighting, design
        As in :func:`pair_counts`.

    Raises
    ------
    ValueError
        When no two ranks can be compared, with the reason and the remedy.

    Examples
    --------
    >>> from cfltr_core.propensity.harvesting import all_pairs
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0] * 6, document=[0, 0, 1, 1, 2, 2], rank=[1, 2, 2, 3, 1, 3], impressions=[60] * 6)
    >>> curve = all_pairs(DisplayCounts(**terms, clicks=[24, 12, 18, 12, 30, 10]))
    >>> curve.curve.round(3), curve.diagnosis
    (array([1.   , 0.5  , 0.333]), 'All ranks from 1 to 3 are linked.')
    """
    terms = _terms(counts, weighting, design)
    pairs, found = _pair_counts(terms), rank_links(counts)
    component = components_of(pairs.clicks.T, strong=True)
    require_comparable(found, component)
    n = terms.n_ranks
    same = component[:, None] == component[None, :]
    within = PairCounts(pairs.clicks * same, pairs.misses * same, pairs.sets * same)
    # The first rank of every group is fixed at 0.
    free = np.isin(np.arange(n), np.unique(component, return_index=True)[1], invert=True)
    log_theta, inverse = maximise(lambda u: all_pairs_likelihood(within, u), np.zeros(n), free=free)
    fit = _profile(within, log_theta)
    both = fit.h + fit.h.T
    part = np.divide(fit.h.T, both, out=np.zeros_like(both), where=both > 0)
    above = np.triu(same & (pairs.clicks > 0) | same & (pairs.clicks.T > 0), 1)
    index = np.arange(n)
    rule = _Influence(part, -part * fit.odds, np.where(above, index[:, None], -1), np.where(above, index[None, :], -1))
    table, clicks, n_queries = _influence(terms, rule)
    return grouped_curve(
        "AllPairs",
        log_theta,
        covariance=clustered_covariance(table @ inverse, n_queries),
        component=component,
        clicks=clicks,
        notes=found.diagnosis,
    )


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
    n = counts.n_ranks
    n_clusters = int(counts.cluster[-1]) + 1
    cell, size = counts.cluster * n + counts.rank - 1, n_clusters * n
    shown = np.bincount(cell, counts.impressions, minlength=size).reshape(n_clusters, n)
    clicks = np.bincount(cell, counts.clicks, minlength=size).reshape(n_clusters, n)
    deepest = n if places is None else checks.positive_int(places, "places")
    checks.within(deepest, 1, n, "places", "ranks of the log")
    if places is not None:
        whole = (shown[:, :deepest] > 0).all(axis=1)
        if not whole.any():
            raise ValueError(f"places is {places}: no query showed all ranks from 1 to {places}; take fewer")
        shown, clicks = shown[whole, :deepest], clicks[whole, :deepest]
    total, clicked = shown.sum(axis=0), clicks.sum(axis=0)
    if clicked[0] == 0:
        raise ValueError(
            "counts: there is no click at rank 1, with which the others are compared; collect more sessions"
        )
    some = clicked > 0
    rate = np.divide(clicked, total, out=np.zeros(deepest), where=total > 0)
    influence = np.where(some, (clicks - shown * rate) / np.where(some, clicked, 1.0), 0.0)
    influence -= influence[:, :1]
    notes = []
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
    )
