"""Is the new ranker better than the one in production?  Five answers, from the clicks of past rankers.

The difference is estimated on the same clicks for both rankers, policy-aware: a click counts by the exposure of its
document under the rankers that filled the log, not by the place where it happened.  Uncertain are the clicks, the
curve, and what was never shown; all three are in the interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, Literal

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.users import User
from cfltr_core.evaluation.answers import Decision, answer_of
from cfltr_core.evaluation.estimands import ClickLine, Sums, ab_sums, click_line, exposure_sums
from cfltr_core.evaluation.query_intervals import interval_of, sessions_missing
from cfltr_core.logs.log_report import LogReport
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.trust_curves import TrustCurve
from cfltr_core.ranking.rank_weight import RankWeights

# The part of a log that read_events means for learning.
LEARNT_FROM = "train"


def decide(
    new: RankWeights,
    production: RankWeights,
    *,
    log: ClickLog | Events,
    shares: DisplayShares | Events,
    smallest: float,
    curve: PropensityCurve | TrustCurve | None = None,
    user: User | None = None,
    cutoff: int | None = None,
    level: float = 0.95,
    spend: float = 1.0,
    ceiling: float = 1.0,
    by: Literal["period"] | None = None,
    ab_test: tuple[Any, Any] | None = None,
    report: LogReport | None = None,
) -> Decision:
    """Decide between two rankers on the clicks of held-out sessions.

    With P(click on d at rank k) = β_k γ_d + α_k (θ_k γ_d where nobody trusts high ranks), a_d = λ_new − λ_production
    and the exposure e_d = Σ_k share_dk β_k, the difference of N sessions is

        Δ̂ = −(1/N) Σ_d a_d (clicks_d − Σ_k impressions_dk α_k) / e_d,
        Var = Q/(Q−1) Σ_q (T_q − S_q Δ̂)² / N²  +  Jᵀ V J,

    with T_q the sum of query q, S_q its sessions, Q the queries that were asked, V the covariance of (β̂, α̂) and J the
    derivative of Δ̂ by them (delta method).  Δ̂ is unbiased for documents that were shown, if clicks follow the model.
    Where a few queries have most of the sessions, and the rankers differ in few, the first part would be too small;
    :func:`~cfltr_core.evaluation.query_intervals.interval_of` says what it is at least.
    A document without an exposure adds −a_d γ_d a session, and γ_d is anything from 0 to ``ceiling``: the least and the
    most that they add are in the interval, beside what chance makes.

    *Looks.*  Who looks several times at growing data, or at several questions at once, gives each look a part of
    1 − ``level`` to ``spend``; with parts that add up to 1 all intervals hold together with probability ``level``
    (Bonferroni's inequality, whatever the looks have in common).

    *Periods.*  With ``by="period"`` each period has its own displays and its own attractions, and sums add up: right
    where taste or the rankers' traffic changes, at the price of what was not shown *in that period*.  Each period gets
    an interval of its own, at a level that holds for all of them together.  A column that says of what kind a session
    is (device, country) belongs in the period as well, if it had a say in the choice of the ranker.

    *Undecided?*  ``sessions_more`` are missing, by :func:`~cfltr_core.evaluation.query_intervals.sessions_missing`.

    Source: the estimate is that of Oosterhuis & de Rijke 2020, Eq. 5, and with trust that of Vardasbi et al. 2020; the
    variance is derived in chapter 16; bounds for what is not identified, as in Manski 1990.

    Parameters
    ----------
    new, production : RankWeights
        Of one metric on the documents of the log, from :func:`~cfltr_core.ranking.metrics.rank_weights`.
    log : ClickLog or Events
        Sessions from which neither ranker nor curve was made, as ``events.part("test")``; its propensities are not
        used.
    shares : DisplayShares or Events
        Displays of the rankers that filled the log: ``events`` with all its parts.
    smallest : float
        δ > 0: the smallest difference that matters, of the metric a session; set it before you look.
    curve : PropensityCurve or TrustCurve
        From *other* sessions; what is above 1 is taken as it is.
    user : User
        In place of ``curve``: θ as if it were known, without an error.
    cutoff : int, optional
        Clicks and displays below this rank are left out, as if nobody looked there.
    level : float
        Of the interval; within it lies the truth with this probability.
    spend : float in (0, 1]
        The part of 1 − ``level`` that this look may use.
    ceiling : float in (0, 1]
        The largest attraction that a document can have: how often it would be clicked at rank 1.
    by : "period" or None
        Only with Events.
    ab_test : two names of rankers, optional
        What ``new`` and ``production`` are called in the log: their own sessions are compared, too.  Only with Events.
    report : LogReport, optional
        Of :func:`~cfltr_core.logs.health.check_log` on the whole log: where it has red lines, the decision names them
        first, because then no number below them can be relied on.

    Raises
    ------
    TypeError
        For both or none of ``curve`` and ``user``, or arguments of another kind.
    ValueError
        Naming argument, index and remedy: for two metrics, other documents or lists, a δ that is not positive, a curve
        that does not reach a displayed rank or was estimated from the same sessions, or a click at a place that has no
        share or is never examined.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> cuts, relevance = range(0, 301, 3), [1, 0, 1] * 100
    >>> pages = [cf.DeterministicPolicy(rank * 100, cuts) for rank in ([1, 2, 3], [2, 3, 1])]  # A B C and C A B
    >>> policy, user = cf.MixturePolicy(pages, [1/2, 1/2]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> def draw(sessions, seed):
    ...     rng = np.random.default_rng(seed)
    ...     per_query = cf.draw_sessions(sessions, 100, rng=rng)
    ...     return cf.simulate_clicks(policy, user, relevance=relevance, sessions=per_query, rng=rng)
    >>> curve = cf.conditional_poisson(cf.display_counts(draw(20_000, 0)))  # θ̂ from sessions of its own
    >>> production, new = (cf.rank_weights(s * 100, cuts, metric=cf.dcg()) for s in ([3, 2, 1], [3, 1, 2]))
    >>> shares = cf.DisplayShares.of_policy(policy)
    >>> decision = cf.decide(new, production, log=draw(20_000, 1), shares=shares, curve=curve, smallest=0.05)
    >>> decision  # A C B is better than A B C, by .131
    Decision(better by at least δ: DCG +0.13 [0.129, 0.132] a session, δ = 0.05)
    >>> round(decision.standard_error, 5), round(decision.share_of_theta, 2)
    (0.00078, 0.34)
    >>> other = cf.rank_weights([2, 1, 3] * 100, cuts, metric=cf.dcg())  # C A B
    >>> few = cf.decide(other, production, log=draw(50, 2), shares=shares, user=user, smallest=0.1)
    >>> few, few.sessions_more
    (Decision(undecided: DCG +0.0962 [-0.0538, 0.246] a session, δ = 0.1), 235.0)
    >>> print(few.summary.splitlines()[2].split(",")[0])
    Not enough data: some 235 sessions more would show a difference of δ with probability 0.8
    """
    checks.arguments(decide, locals())
    if (curve is None) == (user is None):
        raise TypeError("curve, user: give one of the two, an estimated curve with its error, or θ taken as known")
    judged = _strata(log, shares, by)
    logs, displays = next(iter(judged.values()))
    _require_alike(new, production, next(iter(logs.values())), displays)
    if sum(one.n_sessions for logs, _ in judged.values() for one in logs.values()) == 0:
        raise ValueError("log: there is no session in the log, so nothing can be decided")
    _require_other_sessions(log, curve)

    deepest = max(int(some.rank[some.share > 0].max(initial=0)) for _, some in judged.values())
    line = click_line(deepest if cutoff is None else min(deepest, cutoff), curve, user)
    each = 1 - (1 - level) * spend
    rankers_are_one = not (new - production).lam.any()

    def sums_of(one: ClickLog, some: DisplayShares) -> Sums:
        return exposure_sums(new, production, log=one, shares=some, line=line, ceiling=ceiling)

    def decision(groups: Mapping[int, Sums], level: float, **more: Any) -> Decision:
        """Of the sums of groups of users."""
        parts = [*groups.values()]
        return _decision(parts, line, new.metric.name, smallest=smallest, level=level, same=rankers_are_one, **more)

    parts = {name: {group: sums_of(one, some) for group, one in logs.items()} for name, (logs, some) in judged.items()}
    periods, read = {}, None
    if by is not None:
        together = 1 - (1 - each) / len(parts)
        periods = {name: decision(sums, together) for name, sums in parts.items()}
    if ab_test is not None:
        if not isinstance(log, Events):
            raise TypeError("ab_test: the sessions of a ranker are told by Events; give log=events.part(…)")
        read = decision({0: ab_sums(log, ab_test, metric=new.metric, line=line)}, each, n=log.n_sessions)
    every = {group for of_period in parts.values() for group in of_period}
    whole = {group: reduce(add, [of[group] for of in parts.values() if group in of]) for group in every}
    notes = (*_below_pages(new, displays.offsets, len(line.slope)), *_notes(log))
    red = () if report is None else report.red
    return decision(whole, each, periods=periods, ab_test=read, notes=notes, red=red)


def _strata(
    log: ClickLog | Events, shares: DisplayShares | Events, by: Literal["period"] | None
) -> Mapping[Any, tuple[Mapping[int, ClickLog], DisplayShares]]:
    """The log of each group of users, and the shares, of each period, or of all periods as one."""
    if not isinstance(log, Events):
        if by is not None or isinstance(shares, Events):
            raise TypeError("log: periods and displays are told by Events; give log=events.part(…) and shares=events")
        return {None: ({0: log}, shares)}
    if not isinstance(shares, Events):
        if by is not None:
            raise TypeError("shares: those of a period are told by Events; give shares=events")
        return {None: (_by_user(log), shares)}
    if by is None:
        return {None: (_by_user(log), shares.displays())}
    names = [log.periods[number] for number in np.unique(log.period)]
    return {name: (_by_user(log.subset(periods=[name])), shares.subset(periods=[name]).displays()) for name in names}


def _by_user(log: Events) -> dict[int, ClickLog]:
    return {group: one.log() for group, one in log.by_user().items()}


def _decision(
    parts: Sequence[Sums], line: ClickLine, metric: str, *, smallest: float, level: float, same: bool,
    n: int | None = None, **more: Any,
) -> Decision:  # fmt: skip
    """The decision on sums that add up; of rankers that are the ``same`` nothing is uncertain.

    ``n`` are the sessions of the log where the sums have other weights, as those of an A/B test have.
    """
    sums = reduce(add, parts)
    found = interval_of(sums, line.covariance, level=level, by_user=parts)
    if same:
        found = replace(found, interval=(0.0, 0.0), sampling=(0.0, 0.0), of_clicks=0.0, of_theta=0.0)
    answer = answer_of(*found.interval, smallest)
    n = round(float(sums.sessions.sum())) if n is None else n
    return Decision(
        **vars(found),
        answer=answer,
        support=sums.told / sums.asked_for if sums.asked_for > 0 else 1.0,
        sessions_more=sessions_missing(found, n, smallest=smallest) if answer == "undecided" else 0.0,
        smallest=float(smallest),
        level=level,
        n_sessions=n,
        n_clicks=sums.clicks,
        n_queries=int((sums.sessions > 0).sum()),
        metric=metric,
        **more,
    )


def _require_other_sessions(log: ClickLog | Events, curve: PropensityCurve | TrustCurve | None) -> None:
    """Raise a ValueError for a ``curve`` that was estimated from sessions of the ``log``."""
    if curve is not None and curve.origin is not None and curve.origin.meets(log.origin):
        raise ValueError(
            f"curve: it was estimated from sessions of part {', '.join(map(repr, curve.origin.parts))}, which are "
            "judged here: the errors of the two would not be independent; estimate it from another part of the log"
        )


def _below_pages(new: RankWeights, offsets: IntArray, deepest: int) -> tuple[str, ...]:
    """A note where the metric counts ranks below the ``deepest`` one of which the log tells."""
    below = np.arange(deepest + 1, np.diff(offsets).max(initial=0) + 1)
    if not new.metric(below).any():
        return ()
    return (
        f"The metric counts ranks below {deepest}, where this log tells nothing: it is that of longer pages; for yours "
        f"cut it there, as cf.dcg({deepest}) is.",
    )


def _notes(log: ClickLog | Events) -> tuple[str, ...]:
    """What is to be said of a ranker that learnt from clicks."""
    parts = () if log.origin is None else log.origin.parts
    if LEARNT_FROM in parts:
        return (f"Judged are sessions of part {LEARNT_FROM!r}: who learnt from them looks better here than it is.",)
    if log.origin is not None and log.origin.whole_queries:
        return ("No other part of the log has these queries; who learnt from them elsewhere looks better than it is.",)
    return ("If the new ranker learnt from clicks on these queries, the answer is for these queries alone.",)


def _require_alike(new: RankWeights, production: RankWeights, log: ClickLog, shares: DisplayShares) -> None:
    """Raise what :func:`decide` promises unless both rankers, the log and the shares are of the same lists."""
    if new.metric.name != production.metric.name:
        raise ValueError(
            f"new: its metric is {new.metric.name}, that of production {production.metric.name}: compare by one"
        )
    n_docs = int(log.offsets[-1])
    for name, weights in (("new", new), ("production", production)):
        if len(weights) != n_docs:
            raise ValueError(f"{name}: it has {len(weights)} documents, the log has {n_docs}: rank those of the log")
    if not np.array_equal(shares.offsets, log.offsets):
        raise ValueError("shares: its offsets are not those of the log: use the same lists in the same order")
