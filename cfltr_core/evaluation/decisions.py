"""Is the new ranker better than the one in production?  Four answers, from the clicks of past rankers.

The difference is estimated on the same clicks for both rankers, policy-aware: a click counts by the exposure of its
document under the rankers that filled the log, not by the place where it happened.  Two things are uncertain, the
clicks and the examination curve, and both are in the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.users import User
from cfltr_core.propensity.curves import PropensityCurve, effective_queries
from cfltr_core.ranking.ragged import query_index, segment_sum
from cfltr_core.ranking.rank_weight import RankWeights

Answer = Literal["better", "worse", "no difference larger than δ", "undecided"]
# With how much probability a difference of δ shall be seen: what makes (2.8 · sd / δ)² sessions at level .95.
POWER = 0.8
# Fewer clicks of equal weight may agree by chance, and their spread says nothing: no interval is made of them.
LEAST_CLICKS = 10


@dataclass(frozen=True, repr=False, kw_only=True)
class Decision:
    """What a log says of a new ranker against the one in production: :func:`decide` makes it, ``print`` says it.

    Parameters
    ----------
    answer : str
        ``"better"`` or ``"worse"`` if 0 is outside the interval, ``"no difference larger than δ"`` if the interval is
        around 0 and within ±δ, else ``"undecided"``.
    difference : float
        Of the metric a session; positive if the new ranker is better, also for a metric that is better when smaller.
    interval : (float, float)
        In which the difference lies with probability ``level``, by Student's law.
    standard_error : float
    share_of_theta : float in [0, 1]
        Part of its square that the error of θ̂ brings; 0 with θ taken as known.
    support : float in [0, 1]
        Share of the new ranker's weights |λ| on documents that the log can tell of: those with an exposure.
    effective_clicks : float
        To how many clicks of equal weight those amount at which the rankers differ (Kish).
    effective_queries : float
        The same for queries; Student's law has fewer degrees of freedom.
    sessions_more : float
        With ``"undecided"``: a whole number of further sessions like these, from ``smallest`` and the standard error
        and never from the difference, or infinite if no number would do.  Else 0.
    smallest, level : float
        δ and the level, as they were given.
    n_sessions, n_clicks : int
        Of the log, down to the rank that counted.
    metric : str
    """

    answer: Answer
    difference: float
    interval: tuple[float, float]
    standard_error: float
    share_of_theta: float
    support: float
    effective_clicks: float
    effective_queries: float
    sessions_more: float
    smallest: float
    level: float
    n_sessions: int
    n_clicks: int
    metric: str

    def __repr__(self) -> str:
        low, high = self.interval
        what = f"{self.metric} {self.difference:+.3g} [{low:.3g}, {high:.3g}]"
        return f"Decision({self.answer}: {what} a session, δ = {self.smallest:g})"

    def __str__(self) -> str:
        return self.summary

    @property
    def summary(self) -> str:
        """The answer in words, what it rests on, and what it leaves open: one sentence a line."""
        low, high = self.interval
        if self.interval == (0.0, 0.0):
            return (
                f"{self.answer[0].upper()}{self.answer[1:]}, with δ = {self.smallest:g}: both rankers give the same "
                f"{self.metric}, whatever is clicked."
            )
        lines = [
            f"{self.answer[0].upper()}{self.answer[1:]}, with δ = {self.smallest:g}: the new ranker's {self.metric} "
            f"differs by {self.difference:+.3g} a session (+ is better), {100 * self.level:g} % interval "
            f"{low:+.3g} to {high:+.3g}."
        ]
        if self.answer in ("better", "worse"):
            # From 0 to the ends of the interval, in the direction of the answer.
            least, most = sorted((abs(low), abs(high)))
            if most < self.smallest:
                lines.append("The difference is smaller than δ, which was said not to matter.")
            elif least < self.smallest:
                lines.append("Whether the difference is larger than δ is open.")
        if self.answer == "undecided":
            lines.append(self._what_is_missing())
        lines.append(
            f"This is for queries like these, which amount to {self.effective_queries:,.0f} of equal weight; for these "
            "very queries the interval is wider than need be. If the new ranker learnt from clicks on these queries, "
            "the answer is for these queries alone."
        )
        if self.support < 1:
            lines.append(
                f"{1 - self.support:.1%} of the new ranker's weight lies on documents that were never shown: of them "
                "nothing is known, and they count as never clicked."
            )
        told = f"{self.share_of_theta:.0%} of the variance is that of θ̂" if self.share_of_theta > 0 else "θ is taken "
        told += "" if self.share_of_theta > 0 else "as known"
        lines.append(
            f"{self.n_sessions:,} sessions with {self.n_clicks:,} clicks; where the rankers differ, they are worth "
            f"{self.effective_clicks:,.0f} clicks of equal weight; {told}."
        )
        return "\n".join(lines)

    def _what_is_missing(self) -> str:
        if 0 < self.effective_clicks < LEAST_CLICKS:
            return (
                f"Not enough data: {LEAST_CLICKS} clicks of equal weight where the rankers differ are the least that "
                f"an interval is made of; some {self.sessions_more:,.0f} sessions more would have them."
            )
        if math.isfinite(self.sessions_more):
            return (
                f"Not enough data: some {self.sessions_more:,.0f} sessions more would show a difference of δ with "
                f"probability {POWER:g}, if they ask other queries like these; of the same queries it takes more."
            )
        if self.effective_queries > 1 and math.isfinite(self.standard_error):
            return "Not enough data: θ̂ is too uncertain for δ, however many sessions come; give θ̂ more sessions."
        return "Not enough data: fewer than two queries have clicks where the rankers differ; no spread can be told."


def decide(
    new: RankWeights,
    production: RankWeights,
    *,
    log: ClickLog,
    shares: DisplayShares,
    smallest: float,
    curve: PropensityCurve | None = None,
    user: User | None = None,
    cutoff: int | None = None,
    level: float = 0.95,
) -> Decision:
    """Decide between two rankers on the clicks of held-out sessions.

    With a_d = λ_new − λ_production and the exposure e_d = Σ_k share_dk θ_k, the difference of N sessions is

        Δ̂ = −(1/N) Σ_d clicks_d a_d / e_d,   Var = Q/(Q−1) Σ_q (T_q − S_q Δ̂)² / N²  +  Jᵀ V J,

    with T_q the sum of query q, S_q its sessions, Q the queries that were asked, V the covariance of log θ̂ and
    J_k = (1/N) Σ_d clicks_d a_d share_dk θ_k / e_d², the derivative of Δ̂ (delta method).  Δ̂ is unbiased for documents
    that the past rankers could show, if clicks follow the position model with this θ.

    The quantile is Student's, of 2 (Σ_q r_q²)² / (Σ_q r_q⁴ − (Σ_q r_q²)²/Q) degrees of freedom, r_q = T_q − S_q Δ̂: 2
    over the squared relative error of the variance (Satterthwaite), but no more than queries say something, less one.
    So a variance that a few queries make is not taken for known.  It does not undo skewness: most intervals that miss
    lie on one side of the truth.

    If the answer is "undecided", ``sessions_more`` are missing until a difference of δ would be seen with probability
    .8, or, where there are as many, until one of the other answers is certain.  That takes N V / ((δ/m)² − JᵀVJ) in
    all, with V the first term of the variance, t the quantile, and m = t + .84 for the one and 2 t for the other: at
    level .95 (2.8 sd/δ)² if θ is known.  More sessions like these leave JᵀVJ as it is.

    Source: the estimate is that of Oosterhuis & de Rijke 2020, Eq. 5; the variance is derived in chapter 16.

    Parameters
    ----------
    new, production : RankWeights
        Of one metric on the documents of the log, from :func:`~cfltr_core.ranking.metrics.rank_weights`.
    log : ClickLog
        Sessions from which neither ranker nor θ̂ was made; its propensities are not used.
    shares : DisplayShares
        Displays of the rankers that filled the log.
    smallest : float
        δ > 0: the smallest difference that matters, of the metric a session; set it before you look.
    curve : PropensityCurve
        θ̂ from *other* sessions; what is above 1 is taken as it is.
    user : User
        In place of ``curve``: θ as if it were known, without an error.
    cutoff : int, optional
        Clicks and displays below this rank are left out, as if nobody looked there.
    level : float
        Of the interval; within it lies the truth with this probability.

    Raises
    ------
    TypeError
        For both or none of ``curve`` and ``user``, or arguments of another kind.
    ValueError
        Naming argument, index and remedy: for two metrics, other documents or lists, a δ that is not positive, a curve
        that does not reach a displayed rank, or a click at a place that has no share or is never examined.

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
    Decision(better: DCG +0.13 [0.129, 0.132] a session, δ = 0.05)
    >>> other = cf.rank_weights([2, 1, 3] * 100, cuts, metric=cf.dcg())  # C A B
    >>> few = cf.decide(other, production, log=draw(50, 2), shares=shares, user=user, smallest=0.1)
    >>> few, few.sessions_more
    (Decision(undecided: DCG +0.0962 [-0.0538, 0.246] a session, δ = 0.1), 175.0)
    >>> print(few.summary.splitlines()[1].split(",")[0])
    Not enough data: some 175 sessions more would show a difference of δ with probability 0.8
    """
    checks.arguments(decide, locals())
    _require_alike(new, production, log, shares)
    if (curve is None) == (user is None):
        raise TypeError("curve, user: give one of the two, an estimated θ with its covariance, or one taken as known")

    n_docs = int(log.offsets[-1])
    deepest = n_docs if cutoff is None else cutoff
    shown = (shares.share > 0) & (shares.rank <= deepest)
    document, rank, share = shares.document[shown], shares.rank[shown], shares.share[shown]
    theta, spread = _examination(int(rank.max(initial=0)), curve, user)
    at_term = share * theta[rank - 1]
    exposure = np.bincount(document, at_term, minlength=n_docs).astype(np.float64)
    kept = (log.clicks > 0) & (log.rank <= deepest)
    _require_displays(log, kept, document, rank, exposure)

    clicks = np.bincount(log.document[kept], log.clicks[kept], minlength=n_docs)
    n, gap = log.n_sessions, new.lam - production.lam
    weight = np.divide(gap, exposure, out=np.zeros(n_docs), where=exposure > 0)
    totals = -segment_sum(clicks * weight, log.offsets)
    difference = float(totals.sum()) / n
    asked = int((log.sessions > 0).sum())
    parts = (totals - log.sessions * difference) ** 2
    squares = float(parts.sum())
    of_clicks = asked / (asked - 1) * squares / n**2 if asked > 1 else math.nan
    weighted = np.divide(clicks * weight, exposure, out=np.zeros(n_docs), where=exposure > 0)
    slope = np.bincount(rank - 1, weighted[document] * at_term, minlength=len(theta)) / n
    of_theta = max(float(slope @ spread @ slope), 0.0)
    size = clicks * np.abs(weight)
    queries = float(effective_queries(segment_sum(size, log.offsets)[:, None])[0])
    told = np.abs(new.lam) * log.sessions[query_index(log.offsets)]
    per_click = float((size * np.abs(weight)).sum())
    effective = float(size.sum()) ** 2 / per_click if per_click > 0 else 0.0

    quantile = (
        _quantile(_freedom(parts, asked, queries), level) if effective >= LEAST_CLICKS and asked > 1 else math.inf
    )
    half = quantile * math.sqrt(of_clicks + of_theta) if math.isfinite(quantile) else math.inf
    if not gap.any():
        # The rankers are one: there is nothing to be uncertain of.
        of_clicks = half = 0.0
    low, high = difference - half, difference + half
    answer: Answer = "undecided"
    if low > 0 or high < 0:
        answer = "better" if low > 0 else "worse"
    elif -smallest < low and high < smallest:
        answer = "no difference larger than δ"
    total = of_clicks + of_theta
    missing = _missing(n, of_clicks, of_theta, quantile, smallest)
    if effective < LEAST_CLICKS:
        missing = float(math.ceil(n * LEAST_CLICKS / effective) - n) if effective > 0 else math.inf
    return Decision(
        answer=answer,
        difference=difference,
        interval=(low, high),
        standard_error=math.sqrt(total),
        share_of_theta=of_theta / total if total > 0 else 0.0,
        support=float(told[exposure > 0].sum() / told.sum()) if told.any() else 1.0,
        effective_clicks=effective,
        effective_queries=queries,
        sessions_more=missing if answer == "undecided" else 0.0,
        smallest=float(smallest),
        level=level,
        n_sessions=n,
        n_clicks=int(clicks.sum()),
        metric=new.metric.name,
    )


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
    if log.n_sessions == 0:
        raise ValueError("log: there is no session in the log, so nothing can be decided")


def _examination(n_ranks: int, curve: PropensityCurve | None, user: User | None) -> tuple[FloatArray, FloatArray]:
    """θ of the ranks 1 … ``n_ranks`` and the covariance of its logarithm, 0 for a ``user``."""
    if user is not None:
        return np.asarray(user.propensity(np.arange(1, n_ranks + 1))), np.zeros((n_ranks, n_ranks))
    assert curve is not None
    theta, spread = curve.curve[:n_ranks], curve.covariance[:n_ranks, :n_ranks]
    known = np.append(np.isfinite(theta), np.zeros(max(0, n_ranks - len(theta)), dtype=bool))
    if not known.all():
        missing = int(np.argmin(known)) + 1
        why = "it ends above" if missing > len(theta) else "it cannot be compared with rank 1"
        raise ValueError(
            f"curve: θ of rank {missing}, where documents were displayed, is not known, for {why}; "
            f"leave displays from there on out, by cutoff={missing - 1}, or estimate it. {curve.diagnosis}"
        )
    if not np.isfinite(spread).all():
        missing = int(np.argmin(np.isfinite(np.diag(spread)))) + 1
        raise ValueError(
            f"curve: its covariance is not known at rank {missing}, as from the clicks of a single query; estimate it "
            "from more queries, or take it as known, by user=curve.user()"
        )
    return theta, spread


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
    blind = kept & (exposure[log.document] == 0)
    if blind.any():
        term = int(np.argmax(blind))
        raise ValueError(
            f"exposure of document {log.document[term]} is 0, but log.clicks[{term}] is {log.clicks[term]}: it can be "
            "examined at the ranks where it stood; correct θ"
        )


def _freedom(parts: FloatArray, asked: int, queries: float) -> float:
    """Degrees of freedom of a variance that is a sum of ``parts``, one for each of ``asked`` queries."""
    total = float(parts.sum())
    spread = float((parts**2).sum()) / total**2 - 1 / asked if total > 0 else 0.0
    return min(queries - 1, 2 / spread) if spread > 0 else queries - 1


def _quantile(freedom: float, level: float) -> float:
    """Student's quantile for so many degrees of ``freedom``; infinite for none."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2)) if freedom > 1e-9 else math.inf


def _missing(n: int, of_clicks: float, of_theta: float, quantile: float, smallest: float) -> float:
    """How many sessions more: until δ is seen with probability .8, or else until an answer is certain."""
    from scipy.special import ndtri

    if not math.isfinite(quantile):
        return math.inf
    for multiple in (quantile + float(ndtri(POWER)), 2 * quantile):
        room = (smallest / multiple) ** 2 - of_theta
        needed = n * of_clicks / room if room > 0 else math.inf
        if needed > n:
            return needed - n if math.isinf(needed) else float(math.ceil(needed - n))
    return math.inf
