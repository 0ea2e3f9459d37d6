"""Guarded deployment: production stays unless held-out clicks rule out that its successor is much worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.users import User
from cfltr_core.evaluation.decisions import Decision, decide
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.ranking.metrics import RankWeights


@dataclass(frozen=True, repr=False, kw_only=True)
class SafeChoice:
    """Which ranker to deploy, and why: :func:`choose_safely` makes it.

    Parameters
    ----------
    chosen : str or None
        Name of the candidate; None for the ranker in production.
    decisions : mapping
        The :class:`~cfltr_core.evaluation.decisions.Decision` on each candidate.
    """

    chosen: str | None
    decisions: Mapping[str, Decision]

    def __repr__(self) -> str:
        of = "1 candidate" if len(self.decisions) == 1 else f"{len(self.decisions)} candidates"
        return f"SafeChoice({'production stays' if self.chosen is None else repr(self.chosen)}, of {of})"


def choose_safely(
    candidates: Mapping[str, RankWeights],
    production: RankWeights,
    *,
    log: ClickLog,
    shares: DisplayShares,
    smallest: float,
    curve: PropensityCurve | None = None,
    user: User | None = None,
    cutoff: int | None = None,
    level: float = 0.95,
) -> SafeChoice:
    """The candidate with the largest estimated gain over ``production`` among those that are surely not much worse.

    A candidate is *safe* if its interval lies above −δ, δ = ``smallest``, and eligible if its estimate is above 0 too;
    without one, production stays.  Of m candidates each gets the level 1 − (1 − level)/m (Bonferroni), so that with a
    probability of at most (1 − level)/2 a ranker is deployed that is worse than production by more than δ, if the
    intervals cover as they say.  With few clicks nothing is safe: the price is a gain that comes later.

    Source: a high-confidence bound on improvement, as in Thomas, Theocharous & Ghavamzadeh 2015, "High Confidence
    Policy Improvement"; Gupta, Oosterhuis & de Rijke 2023 bound the risk by the exposure in its place.

    Parameters
    ----------
    candidates : mapping of names to RankWeights
        Not made from the sessions of ``log``.
    production, log, shares, smallest, curve, user, cutoff, level
        As in :func:`~cfltr_core.evaluation.decisions.decide`, and so are the errors.

    Raises
    ------
    ValueError
        Also for no candidate.

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
    """
    if not candidates:
        raise ValueError("candidates: expected at least one ranker, by its name, got none")
    each = 1 - (1 - level) / len(candidates)
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
            level=each,
        )
        for name, new in candidates.items()
    }
    eligible = [name for name, d in decisions.items() if d.interval[0] > -smallest and d.difference > 0]
    best = max(eligible, key=lambda name: decisions[name].difference, default=None)
    return SafeChoice(chosen=best, decisions=decisions)
