"""Estimates of the risk of a ranker from a click log of another one, each with a standard error.

A ranker enters as ``rank_weight``, λ(rank(d)) of every document under the ranker to be judged, from
:func:`cfltr_core.ranking.metrics.rank_weights`.  The target is the risk per session,

    R(f) = E_q[ Σ_{d ∈ q} λ(rank(d | f)) · relevance(d) ].

Every estimator here is a ratio N / D of sums over sessions, and its standard error is that of a ratio.

What the weights correct is decided by the propensities that the log holds.  A simulated log holds the examination at
the displayed rank: estimates from it are *policy-oblivious*.  :func:`policy_aware` puts the exposure in its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog, require_single_display
from cfltr_core.ranking.metrics import RankWeight, RankWeights

Unit = Literal["query", "session"]


@dataclass(frozen=True)
class Estimate:
    """A risk estimate with its standard error, and what it was made from.

    ``metric`` is known where the estimate was made from :class:`~cfltr_core.ranking.metrics.RankWeights`.
    """

    value: float
    standard_error: float
    n_sessions: int
    n_clicks: int
    metric: RankWeight | None = None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal interval ``value ± z · standard_error``."""
        if not 0 < level < 1:
            raise ValueError(f"level is {level}: expected a probability strictly between 0 and 1")
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        return self.value - half, self.value + half

    def report(self) -> float:
        """The number a table shows: −risk for a gain such as DCG, the risk itself for average rank."""
        if self.metric is None:
            raise ValueError("metric: the estimate was made from bare numbers; make it from rank_weights(…)")
        return float(self.metric.report(self.value))


def policy_aware(log: ClickLog, exposure: ArrayLike) -> ClickLog:
    """The same log with the propensity of each term replaced by the exposure of its document under the policy.

    IPS, self-normalised and clipped estimates from it are *policy-aware*: a click on d counts 1 / P(E = 1 | π, d),
    wherever d stood.  IPS is then unbiased when every relevant document has a positive exposure.

    Parameters
    ----------
    exposure : (n_docs,) in [0, 1]
        From ``policy.exposure(user)``, or an estimate of it.

    Raises
    ------
    ValueError
        For an exposure that is no probability, or that is 0 for a document that was clicked.

    Source: Oosterhuis & de Rijke 2020, Eq. 5.
    """
    chance = checks.finite_vector(exposure, int(log.offsets[-1]), "exposure")
    checks.within(chance, 0, 1, "exposure", "exposure is a probability")
    impossible = (log.clicks > 0) & (chance[log.document] == 0)
    if impossible.any():
        document = int(log.document[np.argmax(impossible)])
        raise ValueError(
            f"exposure[{document}] is 0, but the document was clicked: it can be examined; "
            "give the exposure under the policy that filled the log"
        )
    return replace(log, propensity=chance[log.document])


def naive(
    log: ClickLog, rank_weights: RankWeights | None = None, *, lam: ArrayLike | None = None, unit: Unit = "query"
) -> Estimate:
    """Naive estimate: every click counts 1, (1/S) Σ clicks · λ.  Biased by examination.

    Arguments and errors are those of :func:`ips`.
    """
    return _per_session(log, _lam(log, rank_weights, lam), np.ones(len(log.document)), unit)


def ips(
    log: ClickLog, rank_weights: RankWeights | None = None, *, lam: ArrayLike | None = None, unit: Unit = "query"
) -> Estimate:
    """Inverse propensity scoring: (1/S) Σ clicks · λ / propensity.

    Unbiased for R(f) without click noise when every relevant document has a positive propensity
    (Agarwal et al. 2018, Eq. 3–4; dividing by sessions, not by clicks).

    Parameters
    ----------
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
    """
    return _per_session(log, _lam(log, rank_weights, lam), log.weights, unit)


def clipped(
    log: ClickLog,
    rank_weights: RankWeights | None = None,
    *,
    cap: float,
    lam: ArrayLike | None = None,
    unit: Unit = "query",
) -> Estimate:
    """IPS with weights min(1/propensity, cap): less variance, biased toward 0 where weights are cut.

    The other arguments and errors are those of :func:`ips`.
    """
    if not (np.isfinite(cap) and cap >= 1):
        raise ValueError(f"cap is {cap}: expected a largest weight >= 1")
    return _per_session(log, _lam(log, rank_weights, lam), np.minimum(log.weights, cap), unit)


def self_normalised(
    log: ClickLog, rank_weights: RankWeights | None = None, *, lam: ArrayLike | None = None, unit: Unit = "query"
) -> Estimate:
    """Self-normalised IPS: Σ clicks · λ / p divided by Σ clicks / p.

    Estimates the risk *per relevant document*, R(f) / E[number of relevant documents], which is another
    scale than IPS.  NaN for a log without clicks.  Source: Swaminathan & Joachims 2015.

    Arguments and errors are those of :func:`ips`.
    """
    given = _lam(log, rank_weights, lam)
    at_term = _terms(log, given, unit)
    counted = log.clicks * log.weights
    total = float(counted.sum())
    if total == 0:
        return Estimate(float("nan"), float("nan"), log.n_sessions, log.n_clicks, given.metric)
    value = float((counted * at_term).sum()) / total
    return _with_error(log, value, (at_term - value) * log.weights, 0.0, total, unit, given.metric)


def ips_variance(
    lam: ArrayLike,
    click_probability: ArrayLike,
    *,
    weights: ArrayLike,
    offsets: ArrayLike,
    sessions: ArrayLike,
) -> float:
    """Exact variance of (1/S) Σ clicks · λ · weights under a position-based user, with one display per query.

    Under a stochastic policy documents are displayed together or not, and the terms of chapter 11 are added.

    With ρ the click probability, a = λ · weights, and S_q sessions of query q,

        Var = (1/S²) Σ_q S_q Σ_{d ∈ q} ρ_d (1 − ρ_d) a_d²                        (``sessions`` an array)
        Var = (1/S) { mean_q Σ_d ρ_d (1 − ρ_d) a_d² + Var_q(Σ_d ρ_d a_d) }       (``sessions`` a number)

    The second is for sessions that draw their query uniformly: it adds the variance between queries.
    ``weights`` is 1/propensity for IPS, 1 for the naive estimate; give 0 to documents never shown.
    """
    cuts = checks.offsets_of(offsets)
    n_docs = int(cuts[-1])
    values = checks.finite_vector(lam, n_docs, "lam")
    w = checks.finite_vector(weights, n_docs, "weights")
    rho = checks.finite_vector(click_probability, n_docs, "click_probability")
    checks.within(rho, 0, 1, "click_probability", "a probability")
    within = np.add.reduceat(rho * (1 - rho) * (values * w) ** 2, cuts[:-1])
    if np.ndim(sessions) == 0:
        total = checks.positive_int(np.asarray(sessions).item(), "sessions")
        between = np.add.reduceat(rho * values * w, cuts[:-1]).var()
        return float((within.mean() + between) / total)
    per_query = checks.counts(sessions, len(cuts) - 1, "sessions")
    checks.positive_int(int(per_query.sum()), "the sum of sessions")
    return float((per_query * within).sum() / per_query.sum() ** 2)


@dataclass(frozen=True)
class _Lam:
    """λ of each document, and the metric where it is known."""

    values: FloatArray
    metric: RankWeight | None


def _lam(log: ClickLog, rank_weights: RankWeights | None, lam: ArrayLike | None) -> _Lam:
    if rank_weights is not None and not isinstance(rank_weights, RankWeights):
        raise TypeError(
            f"rank_weights is {type(rank_weights).__name__}: expected what rank_weights(scores, offsets, metric=…) "
            "returns; numbers that are λ already are given by name, as lam=…"
        )
    if (rank_weights is None) == (lam is None):
        raise TypeError("rank_weights, lam: give one of the two")
    n_docs = int(log.offsets[-1])
    if rank_weights is not None:
        return _Lam(checks.finite_vector(rank_weights.lam, n_docs, "rank_weights"), rank_weights.metric)
    return _Lam(checks.finite_vector(np.asarray(lam), n_docs, "lam"), None)


def _terms(log: ClickLog, given: _Lam, unit: Unit) -> FloatArray:
    """λ of each term's document."""
    checks.one_of(unit, "unit", ("query", "session"))
    if log.n_sessions == 0:
        raise ValueError("log: there is no session in the log, so nothing can be estimated")
    return given.values[log.document]


def _per_session(log: ClickLog, given: _Lam, weights: FloatArray, unit: Unit) -> Estimate:
    a = _terms(log, given, unit) * weights
    value = float((log.clicks * a).sum()) / log.n_sessions
    return _with_error(log, value, a, value, float(log.n_sessions), unit, given.metric)


def _with_error(
    log: ClickLog,
    value: float,
    coefficient: FloatArray,
    centre: float,
    denominator: float,
    unit: Unit,
    metric: RankWeight | None,
) -> Estimate:
    """Attach the standard error of a ratio whose session residual is e_i = Σ_d c_id · coefficient_d − centre.

    Var = n/(n−1) · Σ e² / denominator², with e summed over each query (unit "query") or each session.
    Single sessions are not stored; Σ_i e_i² is replaced by its exact conditional mean given the counts: for a
    query with n sessions and counts c_d,
    E[Σ_i (Σ_d c_id b_d)²] = Σ_d b_d² c_d (1 − c_d/n) + (Σ_d b_d c_d)² / n.

    This assumes that every session of a query shows the same ranking and that the clicks of a session are
    independent given it (position-based users): then, given the counts, the clicked sessions of each document
    are an independent uniform subset.  For estimates per session the variance estimate is exactly unbiased when
    sessions draw their query independently; for the self-normalised ratio it holds to first order.
    """
    query = log.query
    n_queries = len(log.sessions)
    totals = np.bincount(query, log.clicks * coefficient, minlength=n_queries)
    if unit == "query":
        squares = float(((totals - log.sessions * centre) ** 2).sum())
        size = int((log.sessions > 0).sum())
    else:
        require_single_display(log)
        share = log.clicks / np.maximum(log.sessions, 1)[query]
        alone = np.bincount(query, coefficient**2 * log.clicks * (1 - share), minlength=n_queries)
        # Completed square: the sum of e² cannot come out below 0 by rounding.
        together = log.sessions * (totals / np.maximum(log.sessions, 1) - centre) ** 2
        squares = float((alone + together).sum())
        size = log.n_sessions
    error = np.sqrt(size / (size - 1) * squares) / denominator if size > 1 else float("nan")
    return Estimate(value, float(error), log.n_sessions, log.n_clicks, metric)
