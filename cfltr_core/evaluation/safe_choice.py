"""Guarded deployment: production stays unless held-out clicks rule out that its successor is much worse."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cfltr_core import checks
from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.users import User
from cfltr_core.evaluation.answers import Decision
from cfltr_core.evaluation.decisions import decide
from cfltr_core.logs.log_report import LogReport
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.trust_curves import TrustCurve
from cfltr_core.ranking.ragged import query_index
from cfltr_core.ranking.rank_weight import RankWeights

Rule = Literal["interval", "exposure"]


@dataclass(frozen=True, repr=False, kw_only=True)
class SafeChoice:
    """Which ranker to deploy, and why: :func:`choose_safely` makes it.

    Parameters
    ----------
    chosen : str or None
        Name of the candidate; None for the ranker in production.
    decisions : mapping
        The :class:`~cfltr_core.evaluation.answers.Decision` on each candidate.
    """

    chosen: str | None
    decisions: Mapping[str, Decision]

    def __repr__(self) -> str:
        of = "1 candidate" if len(self.decisions) == 1 else f"{len(self.decisions)} candidates"
        return f"SafeChoice({'production stays' if self.chosen is None else repr(self.chosen)}, of {of})"

    @property
    def summary(self) -> str:
        """What is deployed, and a line on each candidate: its difference, its interval and the answer."""
        first = "Production stays" if self.chosen is None else f"Deploy {self.chosen!r}"
        lines = [f"{name}: {decision!r}" for name, decision in self.decisions.items()]
        return "\n".join([f"{first}; intervals hold for all candidates together.", *lines])


def choose_safely(
    candidates: Mapping[str, RankWeights],
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
    rule: Rule = "interval",
    report: LogReport | None = None,
) -> SafeChoice:
    """The candidate with the largest estimated gain over ``production`` among those that are surely not much worse.

    A candidate is *safe* if its interval lies above −δ, δ = ``smallest``, whatever was never shown, and eligible if its
    estimate is above 0 too; without one, production stays.  Of m candidates each gets the level 1 − (1 − level)/m
    (Bonferroni): all intervals hold together, and with a probability of at most (1 − level)/2 a ranker is deployed that
    is worse than production by more than δ, if the intervals cover as they say.  With few clicks nothing is safe: the
    price is a gain that comes later.

    With ``rule="exposure"`` the candidate with the largest difference in Û − R is chosen, if that is above 0: Û is the
    estimate, and R² = level / (1 − level) · (1/N) Σ_q (S_q/N) Σ_d λ_d²/e_d a bound on its variance times what a
    one-sided inequality (Cantelli's) takes.  So R asks how far a ranker is from those that filled the log, e_d being
    their exposure, and not what was clicked; like its source it leaves products of two clicks of a session out.  Where
    λ_d is minus the exposure of d under the ranker to be judged, the sum is Z d₂, Rényi's divergence of the two
    exposures.  Neither δ nor the error of θ̂ enters, so it promises nothing of a loss of δ; ``benchmarks.safety`` counts
    how often a ranker passes that is worse by more, by either rule.

    Source: a high-confidence bound on improvement, as in Thomas, Theocharous & Ghavamzadeh 2015, "High Confidence
    Policy Improvement"; the other rule is that of Gupta, Oosterhuis & de Rijke 2023, "Safe Deployment for
    Counterfactual Learning to Rank with Exposure-Based Risk Minimization", who learn by it.

    Parameters
    ----------
    candidates : mapping of names to RankWeights
        Not made from the sessions of ``log``.
    production, log, shares, smallest, curve, user, cutoff, level, spend, ceiling, report
        As in :func:`~cfltr_core.evaluation.decisions.decide`, and so are the errors.
    rule : "interval" or "exposure"
        The latter not with a TrustCurve.

    Raises
    ------
    ValueError, TypeError
        Also for no candidate, or another rule.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> cuts, relevance = range(0, 301, 3), [1, 0, 1] * 100
    >>> pages = [cf.DeterministicPolicy(rank * 100, cuts) for rank in ([1, 2, 3], [2, 3, 1])]  # A B C and C A B
    >>> policy, user = cf.MixturePolicy(pages, [1/2, 1/2]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> orders = {"A B C": [3, 2, 1], "A C B": [3, 1, 2], "B A C": [2, 3, 1]}
    >>> rankers = {name: cf.rank_weights(s * 100, cuts, metric=cf.dcg()) for name, s in orders.items()}
    >>> production, shares = rankers.pop("A B C"), cf.DisplayShares.of_policy(policy)
    >>> for n in (10, 1_000):
    ...     rng = np.random.default_rng(0)
    ...     sessions = cf.draw_sessions(n, 100, rng=rng)
    ...     log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=sessions, rng=rng)
    ...     choice = cf.choose_safely(rankers, production, log=log, shares=shares, user=user, smallest=0.05)
    ...     print(choice, choice.decisions["B A C"].answer)
    SafeChoice(production stays, of 2 candidates) worse
    SafeChoice('A C B', of 2 candidates) worse
    >>> print(choice.summary.splitlines()[0])
    Deploy 'A C B'; intervals hold for all candidates together.
    """
    checks.arguments(choose_safely, locals())
    if not candidates:
        raise ValueError("candidates: expected at least one ranker, by its name, got none")
    if rule == "exposure" and isinstance(curve, TrustCurve):
        raise TypeError("rule is 'exposure': it knows no trust; give a PropensityCurve or a user, or take 'interval'")
    decisions = {
        name: decide(
            new,
            production,
            log=log,
            shares=shares,
            smallest=smallest,
            curve=curve,
            user=user,
            cutoff=cutoff,
            level=level,
            spend=spend / len(candidates),
            ceiling=ceiling,
            report=report,
        )
        for name, new in candidates.items()
    }
    gain = {name: d.difference for name, d in decisions.items()}
    if rule == "exposure":
        examined = curve.user() if isinstance(curve, PropensityCurve) else user
        assert examined is not None
        one = log.log() if isinstance(log, Events) else log
        displays = shares.displays() if isinstance(shares, Events) else shares
        stays = _risk(production, one, displays, examined, cutoff, level)
        for name, new in candidates.items():
            risk = _risk(new, one, displays, examined, cutoff, level)
            gain[name] += stays - risk if risk < math.inf else -math.inf
        eligible = [name for name in gain if gain[name] > 0]
    else:
        eligible = [name for name, d in decisions.items() if d.interval[0] > -smallest and d.difference > 0]
    best = max(eligible, key=gain.__getitem__, default=None)
    return SafeChoice(chosen=best, decisions=decisions)


def _risk(
    weights: RankWeights, log: ClickLog, shares: DisplayShares, user: User, cutoff: int | None, level: float
) -> float:
    """R of :func:`choose_safely`; infinite for a ranker with weight on a document that nobody could see."""
    n_docs = int(log.offsets[-1])
    counted = shares.rank <= (n_docs if cutoff is None else cutoff)
    seen = shares.share[counted] * user.propensity(shares.rank[counted])
    exposure = np.bincount(shares.document[counted], seen, minlength=n_docs)
    asked = log.sessions[query_index(log.offsets)] / log.n_sessions
    weighted = weights.lam**2 * asked
    if (weighted[exposure == 0] > 0).any():
        return math.inf
    bound = float(np.divide(weighted, exposure, out=np.zeros(n_docs), where=exposure > 0).sum()) / log.n_sessions
    return math.sqrt(level / (1 - level) * bound)
