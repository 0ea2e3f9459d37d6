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

Unit = Literal["query", "session"]


@dataclass(frozen=True)
class Estimate:
    """A risk estimate with its standard error, and what it was made from."""

    value: float
    standard_error: float
    n_sessions: int
    n_clicks: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal interval ``value ± z · standard_error``."""
        if not 0 < level < 1:
            raise ValueError(f"level is {level}: expected a probability strictly between 0 and 1")
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        return self.value - half, self.value + half


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


def naive(log: ClickLog, rank_weight: ArrayLike, unit: Unit = "query") -> Estimate:
    """Naive estimate: every click counts 1, (1/S) Σ clicks · λ.  Biased by examination."""
    return _per_session(log, rank_weight, np.ones(len(log.document)), unit)


def ips(log: ClickLog, rank_weight: ArrayLike, unit: Unit = "query") -> Estimate:
    """Inverse propensity scoring: (1/S) Σ clicks · λ / propensity.

    Unbiased for R(f) without click noise when every relevant document has a positive propensity
    (Agarwal et al. 2018, Eq. 3–4; dividing by sessions, not by clicks).

    Parameters
    ----------
    rank_weight : (n_docs,)
        λ(rank(d)) under the ranker to be judged.
    unit : "query" or "session"
        What the standard error treats as the random sample.  ``"query"``: the queries are a sample from a
        larger population (cluster by query).  ``"session"``: the set of queries is the population, sessions
        draw from it; uses the exact law of single clicks given the counts.
    """
    return _per_session(log, rank_weight, _inverse(log), unit)


def clipped(log: ClickLog, rank_weight: ArrayLike, clip: float, unit: Unit = "query") -> Estimate:
    """IPS with weights min(1/propensity, clip): less variance, biased toward 0 where weights are cut."""
    if not (np.isfinite(clip) and clip >= 1):
        raise ValueError(f"clip is {clip}: expected a largest weight >= 1")
    return _per_session(log, rank_weight, np.minimum(_inverse(log), clip), unit)


def self_normalised(log: ClickLog, rank_weight: ArrayLike, unit: Unit = "query") -> Estimate:
    """Self-normalised IPS: Σ clicks · λ / p divided by Σ clicks / p.

    Estimates the risk *per relevant document*, R(f) / E[number of relevant documents], which is another
    scale than IPS.  NaN for a log without clicks.  Source: Swaminathan & Joachims 2015.
    """
    inverse = _inverse(log)
    lam = _terms(log, rank_weight, unit)
    weights = log.clicks * inverse
    total = float(weights.sum())
    if total == 0:
        return Estimate(float("nan"), float("nan"), log.n_sessions, log.n_clicks)
    value = float((weights * lam).sum()) / total
    return _with_error(log, value, (lam - value) * inverse, 0.0, total, unit)


def ips_variance(
    rank_weight: ArrayLike,
    click_probability: ArrayLike,
    weight: ArrayLike,
    offsets: ArrayLike,
    sessions: ArrayLike,
) -> float:
    """Exact variance of (1/S) Σ clicks · λ · weight under a position-based user, with one display per query.

    Under a stochastic policy documents are displayed together or not, and the terms of chapter 11 are added.

    With ρ the click probability, a = λ · weight, and S_q sessions of query q,

        Var = (1/S²) Σ_q S_q Σ_{d ∈ q} ρ_d (1 − ρ_d) a_d²                        (``sessions`` an array)
        Var = (1/S) { mean_q Σ_d ρ_d (1 − ρ_d) a_d² + Var_q(Σ_d ρ_d a_d) }       (``sessions`` a number)

    The second is for sessions that draw their query uniformly: it adds the variance between queries.
    ``weight`` is 1/propensity for IPS, 1 for the naive estimate; give 0 to documents never shown.
    """
    cuts = checks.offsets_of(offsets)
    n_docs = int(cuts[-1])
    lam = checks.finite_vector(rank_weight, n_docs, "rank_weight")
    w = checks.finite_vector(weight, n_docs, "weight")
    rho = checks.finite_vector(click_probability, n_docs, "click_probability")
    checks.within(rho, 0, 1, "click_probability", "a probability")
    within = np.add.reduceat(rho * (1 - rho) * (lam * w) ** 2, cuts[:-1])
    if np.ndim(sessions) == 0:
        total = checks.positive_int(np.asarray(sessions).item(), "sessions")
        between = np.add.reduceat(rho * lam * w, cuts[:-1]).var()
        return float((within.mean() + between) / total)
    per_query = checks.counts(sessions, len(cuts) - 1, "sessions")
    checks.positive_int(int(per_query.sum()), "the sum of sessions")
    return float((per_query * within).sum() / per_query.sum() ** 2)


def _inverse(log: ClickLog) -> FloatArray:
    # Terms of propensity 0 have no clicks (ClickLog checks it): their weight never matters.
    return np.divide(1.0, log.propensity, out=np.zeros_like(log.propensity), where=log.propensity > 0)


def _terms(log: ClickLog, rank_weight: ArrayLike, unit: Unit) -> FloatArray:
    """λ of each term's document."""
    if unit not in ("query", "session"):
        raise ValueError(f"unit is {unit!r}: choose 'query' or 'session'")
    if log.n_sessions == 0:
        raise ValueError("log: there is no session in the log, so nothing can be estimated")
    return checks.finite_vector(rank_weight, int(log.offsets[-1]), "rank_weight")[log.document]


def _per_session(log: ClickLog, rank_weight: ArrayLike, weights: FloatArray, unit: Unit) -> Estimate:
    a = _terms(log, rank_weight, unit) * weights
    value = float((log.clicks * a).sum()) / log.n_sessions
    return _with_error(log, value, a, value, float(log.n_sessions), unit)


def _with_error(
    log: ClickLog, value: float, coefficient: FloatArray, centre: float, denominator: float, unit: Unit
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
    return Estimate(value, float(error), log.n_sessions, log.n_clicks)
