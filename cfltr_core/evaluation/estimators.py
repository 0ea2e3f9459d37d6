"""Estimates of the risk of a ranker from a click log of another one, each with a standard error.

A ranker enters as ``rank_weight``, λ(rank(d)) of every document under the ranker to be judged, from
:func:`cfltr_core.ranking.metrics.rank_weights`.  The target is the risk per session,

    R(f) = E_q[ Σ_{d ∈ q} λ(rank(d | f)) · relevance(d) ].

Every estimator here is a ratio N / D of sums over sessions, and its standard error is that of a ratio
(:mod:`cfltr_core.evaluation.estimates`).

What the weights correct is decided by the propensities that the log holds.  A simulated log holds the examination at
the displayed rank: estimates from it are *policy-oblivious*.  :func:`policy_aware` puts the exposure in its place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog, require_exposed
from cfltr_core.evaluation.estimates import Estimate, Unit, ratio_error
from cfltr_core.ranking.rank_weight import RankWeight, RankWeights


def policy_aware(log: ClickLog, exposure: ArrayLike) -> ClickLog:
    """The same log with the propensity of each term replaced by P(E = 1 | π, d), the exposure of its document.

    IPS, self-normalised and clipped estimates from it are *policy-aware*: a click on d counts 1 / P(E = 1 | π, d),
    wherever d stood.  IPS is then unbiased when every relevant document has a positive exposure.

    Source: Oosterhuis & de Rijke 2020, Eq. 5.

    Parameters
    ----------
    log : ClickLog
    exposure : (n_docs,) in [0, 1]
        From ``policy.exposure(user)``, or an estimate of it.

    Raises
    ------
    ValueError
        For an exposure that is no probability, or that is 0 for a document that was clicked.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy = cf.EpsilonGreedyPolicy([1, 2, 3], [0, 3], epsilon=[0, 1])  # A, and B or C below it
    >>> user, rng = cf.PositionBasedUser([1, 1/2, 1/3]), np.random.default_rng(0)
    >>> log = cf.simulate_clicks(policy, user, relevance=[1, 0, 1], sessions=[1_000], rng=rng)
    >>> log.propensity, cf.policy_aware(log, policy.exposure(user)).propensity  # C is seen by one user in four
    (array([1. , 0.5, 0.5]), array([1.  , 0.25, 0.25]))
    """
    checks.arguments(policy_aware, locals())
    n_docs, why = int(log.offsets[-1]), "exposure is a probability"
    chance = checks.finite_vector(exposure, n_docs, "exposure", low=0, high=1, why=why)
    require_exposed(log, chance, "it can be examined; give the exposure under the policy that filled the log")
    return replace(log, propensity=chance[log.document])


def naive(
    log: ClickLog, rank_weights: RankWeights | None = None, *, lam: ArrayLike | None = None, unit: Unit = "query"
) -> Estimate:
    """Naive estimate (1/S) Σ clicks · λ over S sessions: every click counts 1.  Biased by examination.

    Its mean is E_q[Σ_d p_d · λ(rank(d)) · relevance(d)] without click noise.  Arguments and errors are those of
    :func:`ips`.

    Source: notes on counterfactual evaluation, "Naive Estimator"; Joachims et al. 2017.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> deployed, proposed = (cf.rank_weights(s, [0, 3], metric=cf.dcg()) for s in ([3, 2, 1], [2, 1, 3]))
    >>> round(cf.naive(log, deployed).report(), 3), round(cf.naive(log, proposed).report(), 3)  # true: 1.5 < 1.631
    (1.167, 0.964)
    """
    return _per_session(log, _terms(log, rank_weights, lam, unit), 1.0, unit)


def ips(
    log: ClickLog, rank_weights: RankWeights | None = None, *, lam: ArrayLike | None = None, unit: Unit = "query"
) -> Estimate:
    """Inverse propensity scoring: (1/S) Σ clicks · λ / propensity over S sessions.

    Unbiased for R(f) without click noise when every relevant document has a positive propensity.

    Source: Agarwal et al. 2018, Eq. 3–4, where the sum is divided by query instances, which are our sessions.  Eq. 5
    writes n, which later is the number of clicks: divided by clicks the estimate is not unbiased.

    Parameters
    ----------
    log : ClickLog
    rank_weights : RankWeights
        From :func:`~cfltr_core.ranking.metrics.rank_weights`: λ(rank(d)) under the ranker to be judged, or the
        difference of two, which compares two rankers on the same clicks.
    lam : (n_docs,)
        The same as bare numbers, by name, where the ranker is known in another way.
    unit : "query" or "session"
        What the standard error treats as the random sample.  ``"query"``: the queries are a sample from a
        larger population (cluster by query).  ``"session"``: the set of queries is the population, sessions
        draw from it; uses the exact law of single clicks given the counts.

    Raises
    ------
    TypeError
        For a bare array without a name (scores and ranks are arrays too), or for both or none of the two.
    ValueError
        For λ of another number of documents, or a log without sessions.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> deployed, proposed = (cf.rank_weights(s, [0, 3], metric=cf.dcg()) for s in ([3, 2, 1], [2, 1, 3]))
    >>> round(cf.ips(log, deployed).report(), 3), round(cf.ips(log, proposed).report(), 3)
    (1.5, 1.631)
    >>> difference = cf.ips(log, proposed - deployed, unit="session")
    >>> round(difference.report(), 3), round(difference.standard_error, 3)
    (0.131, 0.316)
    """
    return _per_session(log, _terms(log, rank_weights, lam, unit), log.weights, unit)


def clipped(
    log: ClickLog,
    rank_weights: RankWeights | None = None,
    *,
    cap: float,
    lam: ArrayLike | None = None,
    unit: Unit = "query",
) -> Estimate:
    """IPS with capped weights, (1/S) Σ clicks · λ · min(1/propensity, ``cap``): less variance, some bias toward 0.

    ``cap`` is at least 1, else a ValueError.  The other arguments and errors are those of :func:`ips`.

    Source: Joachims et al. 2017, which Agarwal et al. 2018, §5.2 and §5.5, refer to.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())
    >>> round(cf.clipped(log, proposed, cap=2).report(), 3)  # a click on C counts 2, not 3
    1.298
    """
    checks.arguments(clipped, locals())
    return _per_session(log, _terms(log, rank_weights, lam, unit), np.minimum(log.weights, cap), unit)


def self_normalised(
    log: ClickLog, rank_weights: RankWeights | None = None, *, lam: ArrayLike | None = None, unit: Unit = "query"
) -> Estimate:
    """Self-normalised IPS: (Σ clicks · λ / p) / (Σ clicks / p), with p the propensity.

    Estimates the risk *per relevant document*, R(f) / E[number of relevant documents], which is another
    scale than IPS.  NaN for a log without clicks.  Arguments and errors are those of :func:`ips`.

    Source: Swaminathan & Joachims 2015, reference [23] of Agarwal et al. 2018.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())
    >>> round(cf.self_normalised(log, proposed).report(), 3)  # 1.631 of two relevant documents
    0.815
    """
    at_term, metric = _terms(log, rank_weights, lam, unit)
    counted = log.clicks * log.weights
    total = float(counted.sum())
    if total == 0:
        return Estimate(float("nan"), float("nan"), log.n_sessions, log.n_clicks, metric)
    value = float((counted * at_term).sum()) / total
    error = ratio_error(log, (at_term - value) * log.weights, centre=0.0, denominator=total, unit=unit)
    return Estimate(value, error, log.n_sessions, log.n_clicks, metric)


def corrected_clicks(
    log: ClickLog,
    rank_weights: RankWeights | None = None,
    *,
    factor: ArrayLike,
    expected: ArrayLike,
    lam: ArrayLike | None = None,
    unit: Unit = "query",
) -> Estimate:
    """The general estimate per session: (1/S) Σ λ · ``factor`` · (clicks − impressions · ``expected``), term by term.

    IPS is ``factor`` 1/propensity and ``expected`` 0; :func:`~cfltr_core.evaluation.affine.affine` gives both by rank.

    Parameters
    ----------
    log, rank_weights, lam, unit
        As in :func:`ips`, and so are the errors.
    factor, expected : (n_terms,) or one number
        What a click counts, and how many clicks an impression has whoever is shown.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.evaluation.estimators import corrected_clicks
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg())
    >>> round(corrected_clicks(log, proposed, factor=log.weights, expected=0).report(), 3)  # IPS
    1.631
    """
    n_terms = len(log.document)
    weights, shift = (
        checks.finite_vector(np.full(n_terms, v) if np.ndim(v) == 0 else v, n_terms, name)
        for name, v in (("factor", factor), ("expected", expected))
    )
    return _per_session(log, _terms(log, rank_weights, lam, unit), weights, unit, shift)


def _terms(
    log: ClickLog, rank_weights: RankWeights | None, lam: ArrayLike | None, unit: Unit
) -> tuple[FloatArray, RankWeight | None]:
    """λ of each term's document, and the metric where it is known."""
    checks.arguments(_terms, locals())
    if (rank_weights is None) == (lam is None):
        raise TypeError("rank_weights, lam: give one of the two")
    given, metric, name = lam, None, "lam"
    if rank_weights is not None:
        given, metric, name = rank_weights.lam, rank_weights.metric, "rank_weights"
    values = checks.finite_vector(np.asarray(given), int(log.offsets[-1]), name)
    if log.n_sessions == 0:
        raise ValueError("log: there is no session in the log, so nothing can be estimated")
    return values[log.document], metric


def _per_session(
    log: ClickLog,
    terms: tuple[FloatArray, RankWeight | None],
    weights: FloatArray | float,
    unit: Unit,
    expected: FloatArray | float = 0.0,
) -> Estimate:
    """(1/S) Σ λ · weights · (clicks − impressions · expected)."""
    at_term, metric = terms
    a = at_term * weights
    # What is taken off is fixed by the displays; its sum over a query moves the residual, not its spread in a query.
    fixed = -log.impressions * expected * a
    value = float((log.clicks * a + fixed).sum()) / log.n_sessions
    error = ratio_error(log, a, centre=value, denominator=float(log.n_sessions), unit=unit, fixed=fixed)
    return Estimate(value, error, log.n_sessions, log.n_clicks, metric)
