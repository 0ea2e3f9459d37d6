"""Examination from all interventions that a log happens to hold: AllPairs, and the likelihood that it maximises.

Its counts are those over the interventional sets S_kj (:mod:`cfltr_core.propensity.interventional_sets`); one nuisance
r_kj stands for the attraction in each.

Source: Agarwal et al. 2019, "Estimating Position Bias without Intrusive Interventions".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.propensity.concave import maximise
from cfltr_core.propensity.curves import PropensityCurve, clustered_covariance, effective_queries, grouped_curve
from cfltr_core.propensity.identifiability import components_of, rank_links, require_comparable
from cfltr_core.propensity.interventional_sets import (
    PairCounts,
    PairRule,
    Weighting,
    pair_terms,
    query_influence,
    summed_pairs,
)
from cfltr_core.propensity.strata import DisplayCounts


def all_pairs_likelihood(pairs: PairCounts, log_theta: ArrayLike) -> tuple[float, FloatArray, FloatArray]:
    """AllPairs' log-likelihood at ``log_theta`` = u, maximised over every r_kj, with gradient and minus its Hessian.

        ℓ(u) = Σ_{k<j} max_r Σ_{m ∈ {k, j}} [ ĉ_m^{kj} log(θ_m r) + ¬ĉ_m^{kj} log(1 − θ_m r) ],   θ = e^u.

    The best r is the smaller root of θ_k θ_j (A + B) r² − [A (θ_k + θ_j) + θ_k ¬ĉ_k + θ_j ¬ĉ_j] r + A = 0, where A
    and B are the clicks and misses of both ranks.  Each term is concave in u + log r, so ℓ is concave; its gradient is
    that at the best r, and minus its Hessian is the Laplacian of a graph with weights h_k h_j/(h_k + h_j) on its edges,
    in which h_m = ¬ĉ_m x/(1 − x)² at x = θ_m r.

    Source: Agarwal et al. 2019; r, which they fit by gradient steps, is eliminated here.

    ``pairs`` come from :func:`~cfltr_core.propensity.interventional_sets.pair_counts`; ``log_theta`` is (n_ranks,).
    The gradient is (n_ranks,), minus the Hessian (n_ranks, n_ranks); numbers that are not finite, or not one for each
    rank, are a ValueError.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.all_pairs import all_pairs_likelihood
    >>> from cfltr_core.propensity.interventional_sets import PairCounts
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

    The arguments are those of :func:`~cfltr_core.propensity.interventional_sets.pair_counts`.

    Raises
    ------
    ValueError
        When no two ranks can be compared, with the reason and the remedy.

    Examples
    --------
    >>> from cfltr_core.propensity.all_pairs import all_pairs
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> terms = dict(query=[0] * 6, document=[0, 0, 1, 1, 2, 2], rank=[1, 2, 2, 3, 1, 3], impressions=[60] * 6)
    >>> curve = all_pairs(DisplayCounts(**terms, clicks=[24, 12, 18, 12, 30, 10]))
    >>> curve.curve.round(3), curve.diagnosis
    (array([1.   , 0.5  , 0.333]), 'All ranks from 1 to 3 are linked.')
    """
    terms = pair_terms(counts, weighting=weighting, design=design)
    pairs, found = summed_pairs(terms), rank_links(counts)
    component = components_of(pairs.clicks, strong=True)
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
    rule = PairRule(part, -part * fit.odds, np.where(above, index[:, None], -1), np.where(above, index[None, :], -1))
    table, clicks, n_queries = query_influence(terms, rule)
    return grouped_curve(
        "AllPairs",
        log_theta,
        covariance=clustered_covariance(table @ inverse, n_queries),
        component=component,
        clicks=clicks.sum(axis=0),
        notes=found.diagnosis,
        queries=effective_queries(clicks),
        origin=counts.origin,
    )
