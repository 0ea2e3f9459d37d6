"""Intervals of sums over queries: two errors, that of the clicks and that of an estimated curve, by Student's law."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cfltr_core.checks import FloatArray
from cfltr_core.evaluation.estimands import Sums
from cfltr_core.propensity.curves import effective_queries, student_quantile

# With how much probability a difference of δ shall be seen: what makes (2.8 · sd / δ)² sessions at level .95.
POWER = 0.8
# Fewer clicks of equal weight may agree by chance, and their spread says nothing: no interval is made of them.
LEAST_CLICKS = 10


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A difference with its sampling interval, and with what was never shown: :func:`interval_of` makes it.

    Parameters
    ----------
    difference : float
    sampling : (float, float)
        Where the difference on documents with an exposure lies.
    interval : (float, float)
        The same with the least and the most that the other documents could add.
    unseen : (float, float)
        These two.
    of_clicks, of_theta : float
        The two parts of the variance.
    quantile : float
        Of Student's law; infinite where no interval can be made.
    effective_clicks, effective_queries : float
        Of equal weight, where the rankers differ (Kish).
    freedom : float
        Degrees of freedom of Student's law; infinite where the variance is known.
    """

    difference: float
    sampling: tuple[float, float]
    interval: tuple[float, float]
    unseen: tuple[float, float]
    of_clicks: float
    of_theta: float
    quantile: float
    effective_clicks: float
    effective_queries: float
    freedom: float = math.inf

    @property
    def standard_error(self) -> float:
        """Of the difference, by both parts of the variance."""
        return math.sqrt(self.of_clicks + self.of_theta)

    @property
    def share_of_theta(self) -> float:
        """Part of its square that the error of the curve brings, in [0, 1]; 0 with θ taken as known."""
        variance = self.of_clicks + self.of_theta
        return self.of_theta / variance if variance > 0 else 0.0


def interval_of(sums: Sums, covariance: FloatArray, *, level: float, by_user: Sequence[Sums] = ()) -> Interval:
    """Δ̂ = Σ T_q / N with N = Σ S_q, and the interval Δ̂ ± t · sd at ``level``,

        sd² = Q/(Q−1) Σ_q r_q² / N²  +  Jᵀ V J,   r_q = T_q − S_q Δ̂,

    Q the queries with sessions, V the ``covariance`` of the line and J = gradient / N.  The ends of the whole interval
    are those of T_q + least_q and of T_q + most_q, each with its own spread.  t is Student's quantile of
    2 (Σ r_q²)² / (Σ r_q⁴ − (Σ r_q²)²/Q) degrees of freedom (Satterthwaite), and no more than queries say something,
    less one.

    Σ r_q² knows only queries in which the rankers differ *here*.  Under Zipf's law a candidate that changes few queries
    mostly leaves the most frequent ones as they are; other queries like these might not, and then the difference is far
    larger.  So the first part is never taken for less than it is if how much a query differs has nothing to do with
    how often it is asked:

        (Q/(Q−1) Σ_q r_q²/S_q − (Q − Q') σ²) / (N Q'),   Q' = N² / Σ S_q²,

    the mean square of a query's difference, by sessions, over as many queries as the sessions amount to; σ² =
    ``squares``/N is what clicks alone add to r_q² a session.  Its parts r_q²/S_q have degrees of freedom of their own.
    Where all queries have as many sessions both are the same.

    Sessions of one user are alike as well.  Where the sums of G groups of users are given, with r_gq = T_gq − S_gq Δ̂
    the first part of the variance is larger by G/(G−1) Σ_g (Σ_q r_gq)² / N² − Σ_gq r_gq² / N², if that is above 0
    (clusters by query and by user, Cameron, Gelbach & Miller 2011), and there are G − 1 degrees of freedom at most.

    Parameters
    ----------
    sums : Sums
    covariance : (2 n_ranks, 2 n_ranks)
    level : float
    by_user : several Sums
        Of groups of users; they add up to ``sums``.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.evaluation.estimands import Sums
    >>> from cfltr_core.evaluation.query_intervals import interval_of
    >>> zero = np.zeros(20)
    >>> sums = Sums(totals=np.tile([0.0, 1.0], 10), sessions=zero + 2, least=zero - 1, most=zero, gradient=np.zeros(2),
    ...             size=zero + 5, squares=50.0, told=1.0, asked_for=1.0, clicks=100)
    >>> found = interval_of(sums, np.zeros((2, 2)), level=0.95)
    >>> found.difference, np.round(found.sampling, 2), np.round(found.interval, 2), found.unseen
    (0.25, array([0.13, 0.37]), array([-0.37,  0.37]), (-0.5, 0.0))
    """
    n, asked = float(sums.sessions.sum()), int((sums.sessions > 0).sum())
    of_theta = max(float(sums.gradient @ covariance @ sums.gradient), 0.0) / n**2
    clicks = float(sums.size.sum()) ** 2 / sums.squares if sums.squares > 0 else 0.0
    each = np.divide(1.0, sums.sessions, out=np.zeros_like(sums.sessions), where=sums.sessions > 0)
    weights = np.column_stack([sums.size, sums.size * np.sqrt(each), sums.sessions])
    queries, by_session, frequent = effective_queries(weights).tolist()
    correction = asked / (asked - 1) if asked > 1 else math.nan

    def spread(extra: Callable[[Sums], FloatArray]) -> tuple[float, float, float, float]:
        """The value with ``extra`` on the totals, the variance by clicks, and the quantile with its freedom."""
        totals = sums.totals + extra(sums)
        value = float(totals.sum()) / n
        parts = (totals - sums.sessions * value) ** 2
        of_a_query = correction * float((parts * each).sum()) - (asked - frequent) * sums.squares / n
        of_clicks, freedom = max(
            (correction * float(parts.sum()) / n**2, _freedom(parts, asked, queries)),
            (of_a_query / (n * frequent), _freedom(parts * each, asked, by_session)),
        )
        groups = len(by_user)
        if groups > 1:
            rest = np.stack([one.totals + extra(one) - one.sessions * value for one in by_user])
            more = groups / (groups - 1) * (rest.sum(axis=1) ** 2).sum() - (rest**2).sum()
            of_clicks, freedom = of_clicks + max(float(more), 0.0) / n**2, min(freedom, groups - 1)
        enough = clicks >= LEAST_CLICKS and asked > 1
        return value, of_clicks, student_quantile(freedom, level) if enough else math.inf, freedom

    middle, below, above = (
        spread(extra) for extra in (lambda s: np.zeros_like(s.totals), lambda s: s.least, lambda s: s.most)
    )

    def end(one: tuple[float, float, float, float], sign: float) -> float:
        value, variance, times, _ = one
        return value + sign * (times * math.sqrt(variance + of_theta) if math.isfinite(times) else math.inf)

    value, of_clicks, quantile, freedom = middle
    return Interval(
        difference=value,
        sampling=(end(middle, -1), end(middle, 1)),
        interval=(end(below, -1), end(above, 1)),
        unseen=(float(sums.least.sum()) / n, float(sums.most.sum()) / n),
        of_clicks=of_clicks,
        of_theta=of_theta,
        quantile=quantile,
        effective_clicks=clicks,
        effective_queries=queries,
        freedom=freedom,
    )


def sessions_missing(found: Interval, n: int, *, smallest: float) -> float:
    """How many sessions more than ``n``: until a difference of δ is seen with probability .8, or an answer is certain.

    That takes N V / ((δ'/m)² − JᵀVJ) in all, with V the part of the clicks in the variance, δ' the ``smallest``
    difference, on what was shown, less what was never shown could take from it, and m = t + .84 for the one and 2 t for
    the other: at level .95 (2.8 sd/δ)² if θ is known and all was shown.  More sessions like these leave JᵀVJ and the
    unseen as they are.  A log that hides much asks for too few: what it has not shown makes no noise yet, and
    weighs much when it is shown rarely.

    Logs that are undecided are more often those whose variance came out too small.  So m is larger by √(f/χ²), χ² the
    quantile of .2 with the f degrees of ``freedom`` of the variance: its upper limit stands in its place (Browne 1995).

    No number would do where :func:`hides_the_answer`.

    Examples
    --------
    >>> from cfltr_core.evaluation.query_intervals import Interval, sessions_missing
    >>> found = Interval(difference=0.0, sampling=(-2.0, 2.0), interval=(-2.0, 2.0), unseen=(0.0, 0.0), of_clicks=1.0,
    ...                  of_theta=0.0, quantile=1.96, effective_clicks=99.0, effective_queries=50.0)
    >>> sessions_missing(found, 100, smallest=1.0)  # 2.8² · 100 in all
    685.0
    """
    from scipy.special import chdtri, ndtri

    if found.effective_clicks < LEAST_CLICKS:
        share = found.effective_clicks / LEAST_CLICKS
        return float(math.ceil(n / share) - n) if share > 0 else math.inf
    if not math.isfinite(found.quantile) or hides_the_answer(found, smallest=smallest):
        return math.inf
    told = max(smallest + found.unseen[0], 0.0)
    if math.isfinite(found.freedom):
        told *= math.sqrt(float(chdtri(found.freedom, POWER)) / found.freedom)
    for multiple in (found.quantile + float(ndtri(POWER)), 2 * found.quantile):
        room = (told / multiple) ** 2 - found.of_theta
        needed = n * found.of_clicks / room if room > 0 else math.inf
        if needed > n:
            return needed - n if math.isinf(needed) else float(math.ceil(needed - n))
    return math.inf


def hides_the_answer(found: Interval, *, smallest: float) -> bool:
    """Whether no number of sessions like these would do, because of what was never shown.

    Either it could take all of a gain of δ; or it is wider than ±δ, and with every difference on what was shown that
    ``sampling`` allows it reaches from below 0 to above 0.

    Examples
    --------
    >>> from cfltr_core.evaluation.query_intervals import Interval, hides_the_answer
    >>> found = Interval(difference=-0.1, sampling=(-0.2, -0.01), interval=(-0.2, 0.8), unseen=(0.0, 0.8),
    ...                  of_clicks=1.0, of_theta=0.0, quantile=1.96, effective_clicks=99.0, effective_queries=50.0)
    >>> hides_the_answer(found, smallest=0.03)
    True
    """
    (low, high), (least, most) = found.sampling, found.unseen
    return -least >= smallest or (most - least >= 2 * smallest and high + least <= 0 <= low + most)


def _freedom(parts: FloatArray, asked: int, queries: float) -> float:
    """Degrees of freedom of a variance that is a sum of ``parts``, one for each of ``asked`` queries."""
    total = float(parts.sum())
    spread = float((parts**2).sum()) / total**2 - 1 / asked if total > 0 else 0.0
    return min(queries - 1, 2 / spread) if spread > 0 else queries - 1
