"""What a decision is about: sums over a log, query by query, whose quotient is the difference of two rankers.

A click counts by the exposure of its document under the rankers that filled the log.  Sums of several strata, say
periods, each with its own displays, add up.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.logs import ClickLog, require_exposed
from cfltr_core.clicks.users import User
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.trust_curves import TrustCurve
from cfltr_core.ranking.ragged import query_index, query_of, segment_sum
from cfltr_core.ranking.rank_weight import RankWeight, RankWeights


@dataclass(frozen=True, eq=False, kw_only=True)
class ClickLine:
    """P(click at rank k) = β_k γ + α_k with the covariance of its estimate: :func:`click_line` makes it.

    Parameters
    ----------
    slope, intercept : (n_ranks,)
        β and α; of a curve of examination θ and 0.
    covariance : (2 n_ranks, 2 n_ranks)
        Of β̂, then α̂; 0 where they are taken as known.
    """

    slope: FloatArray
    intercept: FloatArray
    covariance: FloatArray


def click_line(n_ranks: int, curve: PropensityCurve | TrustCurve | None, user: User | None) -> ClickLine:
    """The line of ranks 1 … ``n_ranks`` by a ``curve``, with its error, or by a ``user``, taken as known.

    Raises
    ------
    ValueError
        For a curve that ends above a rank, or does not know it or its error.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.evaluation.estimands import click_line
    >>> click_line(2, None, cf.PositionBasedUser([1, 1/2, 1/3])).slope
    array([1. , 0.5])
    """
    if curve is None:
        assert user is not None
        theta = np.asarray(user.propensity(np.arange(1, n_ranks + 1)), dtype=np.float64)
        return ClickLine(slope=theta, intercept=np.zeros(n_ranks), covariance=np.zeros((2 * n_ranks, 2 * n_ranks)))
    trust = isinstance(curve, TrustCurve)
    every = curve.slope if isinstance(curve, TrustCurve) else curve.curve
    known = np.append(np.isfinite(every), np.zeros(n_ranks, dtype=bool))[:n_ranks]
    if not known.all():
        missing = int(np.argmin(known)) + 1
        why = "it ends above" if missing > len(every) else "it cannot be compared with rank 1"
        raise ValueError(
            f"curve: θ of rank {missing}, where documents were displayed, is not known, for {why}; "
            f"leave displays from there on out, by cutoff={missing - 1}, or estimate it. {curve.diagnosis}"
        )
    at = np.arange(n_ranks)
    slope, intercept = every[:n_ranks], np.zeros(n_ranks)
    spread = np.zeros((2 * n_ranks, 2 * n_ranks))
    if isinstance(curve, TrustCurve):
        intercept, both = curve.intercept[:n_ranks], np.append(at, at + len(every))
        spread = curve.covariance[np.ix_(both, both)]
    else:
        # The curve has the covariance of log θ̂.
        spread[:n_ranks, :n_ranks] = curve.covariance[:n_ranks, :n_ranks] * slope[:, None] * slope
    if not np.isfinite(spread).all():
        missing = int(np.argmin(np.isfinite(np.diag(spread)))) % n_ranks + 1
        remedy = "" if trust else ", or take it as known, by user=curve.user()"
        raise ValueError(
            f"curve: its covariance is not known at rank {missing}, as from the clicks of a single query; estimate it "
            f"from more queries{remedy}"
        )
    return ClickLine(slope=slope, intercept=intercept, covariance=spread)


@dataclass(frozen=True, eq=False, kw_only=True)
class Sums:
    """What a log says of a difference, before it is divided by sessions; two of them add up to one.

    Parameters
    ----------
    totals, sessions : (n_queries,)
        T_q and S_q: the difference is Σ T_q / Σ S_q.
    least, most : (n_queries,)
        What documents without an exposure could add to T_q, if their attraction is anything from 0 to the ceiling.
    gradient : (2 n_ranks,)
        Derivative of Σ T_q by the slopes, then the intercepts.
    size : (n_queries,)
        Sums of |weight| over clicks.
    squares : float
        Σ weight² over clicks.
    told, asked_for : float
        Weight |λ| of the new ranker on documents with an exposure, and on all.
    clicks : int
    """

    totals: FloatArray
    sessions: FloatArray
    least: FloatArray
    most: FloatArray
    gradient: FloatArray
    size: FloatArray
    squares: float
    told: float
    asked_for: float
    clicks: int

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)})


def exposure_sums(
    new: RankWeights,
    production: RankWeights,
    *,
    log: ClickLog,
    shares: DisplayShares,
    line: ClickLine,
    ceiling: float,
) -> Sums:
    """The sums of one stratum: T_q = −Σ_d a_d (clicks_d − Σ_k impressions_dk α_k) / Σ_k share_dk β_k.

    Here a = λ_new − λ_production.  A document d without an exposure adds between −``ceiling`` max(a_d, 0) and
    ``ceiling`` max(−a_d, 0) a session.  Ranks below those of the ``line`` are left out.

    Raises
    ------
    ValueError
        For a click at a place that has no share, or on a document that is never examined.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.evaluation.estimands import click_line, exposure_sums
    >>> log = cf.ClickLog(document=[0, 1], rank=[1, 2], impressions=[4, 4], clicks=[2, 1], propensity=[1, 1/2],
    ...                   sessions=[4], offsets=[0, 3])
    >>> new, old = (cf.rank_weights(s, [0, 3], metric=cf.average_rank()) for s in ([1, 3, 2], [3, 2, 1]))
    >>> line = click_line(2, None, cf.PositionBasedUser([1, 1/2]))
    >>> sums = exposure_sums(new, old, log=log, shares=cf.DisplayShares.of_log(log), line=line, ceiling=1.0)
    >>> sums.totals, sums.least, sums.most  # B climbs a place, A falls by two; C, unseen, may lose a place to nobody
    (array([-2.]), array([0.]), array([4.]))
    """
    n_docs, n_ranks = int(log.offsets[-1]), len(line.slope)
    shown = (shares.share > 0) & (shares.rank <= n_ranks)
    document, rank, share = shares.document[shown], shares.rank[shown], shares.share[shown]
    exposure = np.bincount(document, share * line.slope[rank - 1], minlength=n_docs).astype(np.float64)
    kept = log.rank <= n_ranks
    _require_displays(log, kept & (log.clicks > 0), document, rank, exposure)

    term, place = log.document[kept], log.rank[kept] - 1
    clicks, impressions = log.clicks[kept], log.impressions[kept]
    net = np.bincount(term, clicks - impressions * line.intercept[place], minlength=n_docs)
    gap, seen = new.lam - production.lam, exposure > 0
    weight = np.divide(gap, exposure, out=np.zeros(n_docs), where=seen)
    sessions = log.sessions.astype(np.float64)
    unseen = np.where(seen, 0.0, -gap * ceiling)
    # By β_k through the exposure, by α_k through the clicks that it explains.
    per_share = np.divide(net * weight, exposure, out=np.zeros(n_docs), where=seen)
    gradient = [
        np.bincount(rank - 1, share * per_share[document], minlength=n_ranks),
        np.bincount(place, impressions * weight[term], minlength=n_ranks),
    ]
    size = np.bincount(term, clicks, minlength=n_docs) * np.abs(weight)
    told = np.abs(new.lam) * sessions[query_index(log.offsets)]
    return Sums(
        totals=-segment_sum(net * weight, log.offsets),
        sessions=sessions,
        least=sessions * segment_sum(np.minimum(unseen, 0.0), log.offsets),
        most=sessions * segment_sum(np.maximum(unseen, 0.0), log.offsets),
        gradient=np.concatenate(gradient),
        size=segment_sum(size, log.offsets),
        squares=float((size * np.abs(weight)).sum()),
        told=float(told[seen].sum()),
        asked_for=float(told.sum()),
        clicks=int(clicks.sum()),
    )


def ab_sums(events: Events, rankers: tuple[object, object], *, metric: RankWeight, line: ClickLine) -> Sums:
    """The sums of an A/B test: what the pages of the first of two ``rankers`` earned more than those of the second.

    In each query and period h a page earns V = −Σ_k λ(k) (click_k − α_k) / β_k, and

        T_q = Σ_h (S_B Σ_A V − S_A Σ_B V) / (S_A + S_B),   S_q = Σ_h S_A S_B / (S_A + S_B),

    with sums over the sessions of A and of B (weights of Mantel & Haenszel 1959).  So like is compared with like, and
    no exposure is asked for: documents stand where these rankers put them.

    Raises
    ------
    ValueError
        For a name that no ranker of the log has, or two rankers that never met the same query in one period.

    Examples
    --------
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> from cfltr_core.evaluation.estimands import ab_sums, click_line
    >>> rows = pd.DataFrame({"session": [1, 1, 2, 2], "query": 7, "document": [1, 2, 2, 1], "position": [1, 2, 1, 2],
    ...                      "clicked": [1, 0, 0, 0], "ranker": list("AABB")})
    >>> events = cf.read_events(rows, pd.DataFrame({"query": 7, "document": [1, 2], "age": [3, 1]}), split=None)
    >>> line = click_line(2, None, cf.PositionBasedUser([1, 1/2]))
    >>> sums = ab_sums(events, ("A", "B"), metric=cf.dcg(2), line=line)
    >>> sums.totals / sums.sessions
    array([1.])
    """
    number = [_number(events, name, at) for at, name in enumerate(rankers)]
    n_ranks, n_periods = len(line.slope), len(events.periods)
    query = query_of(events.document, events.offsets)
    stratum = query * n_periods + events.period
    n_strata = events.n_queries * n_periods
    asked = [
        np.bincount(stratum[mine], np.asarray(events.tops)[mine], minlength=n_strata)
        for mine in (events.ranker == one for one in number)
    ]
    both = asked[0] + asked[1]
    pair = np.divide(asked[0] * asked[1], both, out=np.zeros(n_strata), where=both > 0)
    if not pair.any():
        raise ValueError(
            f"ab_test: {rankers[0]!r} and {rankers[1]!r} never met the same query in one period, so like cannot be "
            "compared with like; name two rankers between which chance chose"
        )
    kept = np.isin(events.ranker, number) & (events.rank <= n_ranks) & (pair[stratum] > 0)
    first, stratum, place = events.ranker[kept] == number[0], stratum[kept], events.rank[kept] - 1
    # Of each session of one ranker the part that pairs it with one of the other, and the sign of its ranker.
    part = np.where(first, asked[1][stratum], -asked[0][stratum]) / both[stratum]
    weight = -metric(place + 1.0) * part / line.slope[place]
    clicks, impressions = events.clicks[kept], events.impressions[kept]
    net = clicks - impressions * line.intercept[place]
    query, size = query[kept], clicks * np.abs(weight)
    gradient = [
        -np.bincount(place, net * weight / line.slope[place], minlength=n_ranks),
        -np.bincount(place, impressions * weight, minlength=n_ranks),
    ]

    def by_query(values: FloatArray) -> FloatArray:
        return np.bincount(query, values, minlength=events.n_queries).astype(np.float64)

    return Sums(
        totals=by_query(net * weight),
        sessions=pair.reshape(-1, n_periods).sum(axis=1),
        least=np.zeros(events.n_queries),
        most=np.zeros(events.n_queries),
        gradient=np.concatenate(gradient),
        size=by_query(size),
        squares=float((size * np.abs(weight)).sum()),
        told=1.0,
        asked_for=1.0,
        clicks=int(clicks.sum()),
    )


def _number(events: Events, name: object, at: int) -> int:
    if name not in events.rankers:
        known = ", ".join(map(repr, events.rankers))
        raise ValueError(f"ab_test[{at}] is {name!r}: the rankers of the log are {known}")
    return events.rankers.index(name)


def _require_displays(log: ClickLog, kept: BoolArray, document: IntArray, rank: IntArray, exposure: FloatArray) -> None:
    """Raise a ValueError for a click at a place that has no share, or on a document that is never examined."""
    width = int(max(log.rank.max(initial=0), rank.max(initial=0))) + 1
    strange = kept & ~np.isin(log.document * width + log.rank, document * width + rank)
    if strange.any():
        term = int(np.argmax(strange))
        raise ValueError(
            f"shares: document {log.document[term]} has no share at rank {log.rank[term]}, where log.clicks[{term}] is "
            f"{log.clicks[term]}: give the displays of the rankers that filled the log"
        )
    require_exposed(log, exposure, "it can be examined at the ranks where it stood; correct θ", of=kept)
