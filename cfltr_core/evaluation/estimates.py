"""An estimate and its standard error: that of a ratio of sums over sessions.

Every estimator of :mod:`cfltr_core.evaluation.estimators` is a ratio N / D of such sums.  What the standard error takes
for the random sample, queries or sessions, is its *unit*.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import FloatArray
from cfltr_core.clicks.logs import ClickLog, require_single_display
from cfltr_core.ranking.rank_weight import RankWeight

Unit = Literal["query", "session"]


@dataclass(frozen=True)
class Estimate:
    """A risk estimate R̂ with its standard error, and what it was made from.

    ``value`` and :meth:`interval` are of the risk, which is minimised: of a gain such as DCG they have the other sign
    than a table shows.  :meth:`report` and :meth:`report_interval` have that of the table.

    ``value`` is R̂ and ``standard_error`` the square root of its estimated variance, both in units of λ per session
    (per relevant document if it is self-normalised); ``n_sessions`` and ``n_clicks`` are those of the log; ``metric``
    is known where the estimate was made from :class:`~cfltr_core.ranking.rank_weight.RankWeights`.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> estimate = cf.ips(log, cf.rank_weights([2, 1, 3], [0, 3], metric=cf.dcg()), unit="session")
    >>> round(estimate.report(), 3), round(estimate.standard_error, 3)  # DCG = −risk
    (1.631, 0.632)
    >>> [round(end, 2) for end in estimate.report_interval(level=0.9)]  # of DCG
    [0.59, 2.67]
    >>> [round(end, 2) for end in estimate.interval(level=0.9)]  # of the risk
    [-2.67, -0.59]
    """

    value: float
    standard_error: float
    n_sessions: int
    n_clicks: int
    metric: RankWeight | None = None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal interval R̂ ± z · standard error of the *risk*; :meth:`report_interval` has that of the metric.

        It covers R with probability ``level`` if R̂ is normal.
        ValueError for a level that is not strictly between 0 and 1.
        """
        checks.arguments(Estimate.interval, locals())
        half = NormalDist().inv_cdf(0.5 + level / 2) * self.standard_error
        return self.value - half, self.value + half

    def report(self) -> float:
        """The number a table shows: −R̂ for a gain such as DCG, R̂ itself for average rank.

        ValueError for an estimate that was made from bare numbers.
        """
        if self.metric is None:
            raise ValueError("metric: the estimate was made from bare numbers; make it from rank_weights(…)")
        return float(self.metric.report(self.value))

    def report_interval(self, level: float = 0.95) -> tuple[float, float]:
        """The interval around :meth:`report`: that of :meth:`interval` at this ``level``, its sign turned for a gain.

        ValueError as for these two.
        """
        self.report()
        low, high = sorted(float(self.metric.report(end)) for end in self.interval(level))  # type: ignore[union-attr]
        return low, high


def ratio_error(
    log: ClickLog,
    coefficient: FloatArray,
    *,
    centre: float,
    denominator: float,
    unit: Unit,
    fixed: FloatArray | float = 0.0,
) -> float:
    """Standard error of a ratio whose session residual is e_i = Σ_d c_id · coefficient_d − centre.

    Var = n/(n−1) · Σ e² / denominator², with e summed over each query (unit "query") or each session.
    Single sessions are not stored; Σ_i e_i² is replaced by its exact conditional mean given the counts: for a
    query with n sessions and counts c_d,
    E[Σ_i (Σ_d c_id b_d)²] = Σ_d b_d² c_d (1 − c_d/n) + (Σ_d b_d c_d)² / n.

    This assumes that every session of a query shows the same ranking and that the clicks of a session are
    independent given it (position-based users): then, given the counts, the clicked sessions of each document
    are an independent uniform subset.  For estimates per session the variance estimate is exactly unbiased when
    sessions draw their query independently; for the self-normalised ratio it holds to first order.

    Parameters
    ----------
    log : ClickLog
    coefficient : (n_terms,)
        What a click adds to the residual, term by term.
    centre, denominator : float
        What is taken off in every session; D, the number of sessions for an estimate per session.
    unit : "query" or "session"
        As in :func:`~cfltr_core.evaluation.estimators.ips`.
    fixed : (n_terms,) or float
        Added to each term whatever its clicks, an equal share in each session of its query.

    Returns
    -------
    float
        NaN for fewer than two queries, or two sessions.

    Raises
    ------
    ValueError
        For another unit and, by session, for a log with a query that was shown in several orders.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.evaluation.estimates import ratio_error
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> mean = float((log.clicks * log.weights).sum()) / 6  # how many relevant documents, by IPS
    >>> error = ratio_error(log, log.weights, centre=mean, denominator=6.0, unit="session")
    >>> mean, round(error, 3), round(cf.ips(log, lam=[1, 1, 1], unit="session").standard_error, 3)
    (2.0, 0.632, 0.632)
    """
    checks.one_of(unit, "unit", get_args(Unit))
    query = log.query
    n_queries = len(log.sessions)
    totals = np.bincount(query, log.clicks * coefficient + fixed, minlength=n_queries)
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
    return float(np.sqrt(size / (size - 1) * squares) / denominator) if size > 1 else float("nan")
