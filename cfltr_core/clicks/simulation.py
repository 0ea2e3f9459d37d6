"""Click logs that are drawn: sessions, and their exact simulation as counts.

Given the displayed rankings, the clicks of a position-based user on one document at one rank are a Binomial count
of its impressions there, so that no session is simulated one by one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.clicks.users import User


def sessions_for_clicks(policy: LoggingPolicy, user: User, *, relevance: ArrayLike, n_clicks: float) -> int:
    """Number of sessions S whose expected number of clicks is ``n_clicks``: S = round(n / E[clicks per session]).

    Sessions draw their query uniformly: E[clicks per session] = (1/n_queries) Σ_d Σ_r P(rank(d) = r) · P(click | r, d).
    Papers fix the number of clicks; sessions are what one controls.

    Parameters
    ----------
    policy : LoggingPolicy
    user : User
    relevance : (n_docs,) in [0, 1]
    n_clicks : float
        n > 0.

    Returns
    -------
    int, at least 1

    Raises
    ------
    ValueError
        When no document can be clicked.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.simulation import sessions_for_clicks
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> sessions_for_clicks(policy, user, relevance=[1, 0, 1], n_clicks=8)  # 8 / (1 + 1/3)
    6
    """
    checks.arguments(sessions_for_clicks, locals())
    rel = checks.finite_vector(relevance, int(policy.offsets[-1]), "relevance", low=0, high=1, why=checks.BINARY)
    # P(click) is affine in relevance at every rank: the means for irrelevant and for relevant documents are enough.
    low = policy.display_mean(lambda rank: user.click_probability(rank, np.zeros_like(rank)))
    high = policy.display_mean(lambda rank: user.click_probability(rank, np.ones_like(rank)))
    per_session = float((low + (high - low) * rel).sum()) / (len(policy.offsets) - 1)
    if per_session == 0:
        raise ValueError("relevance: no document can be clicked under this policy and user")
    return max(1, round(n_clicks / per_session))


def draw_sessions(n_sessions: int, n_queries: int, *, rng: np.random.Generator) -> IntArray:
    """Sessions per query when each draws its query uniformly: Multinomial(n_sessions; 1/n_queries, …), (n_queries,).

    Raises
    ------
    ValueError
        For an ``n_sessions`` or ``n_queries`` below 1.
    TypeError
        For an ``rng`` that is no numpy.random.Generator.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> sessions = cf.draw_sessions(100, 4, rng=np.random.default_rng(0))
    >>> sessions.shape, int(sessions.sum())
    ((4,), 100)
    """
    checks.arguments(draw_sessions, locals())
    return rng.multinomial(n_sessions, np.full(n_queries, 1.0 / n_queries)).astype(np.int64)


def simulate_clicks(
    policy: LoggingPolicy,
    user: User,
    *,
    relevance: ArrayLike,
    sessions: ArrayLike,
    rng: np.random.Generator,
) -> ClickLog:
    """Draw a click log: the displays first, then clicks of document d at rank r ~ Binomial(impressions, θ_r · ε_d).

    This is the exact law of the counts under a position-based user; the rate of another user is its P(click | r, d).
    A deterministic policy costs O(documents) whatever the number of sessions; a stochastic one counts its displays by
    its ``impressions``, in memory bounded by documents × displayed ranks.

    Source: Agarwal et al. 2018, §3.1–3.2 and §5.1; Jagerman & de Rijke 2020, Eq. 27.

    Parameters
    ----------
    policy : LoggingPolicy
        What is shown.
    user : User
        Who clicks: θ_r and ε_d.
    relevance : (n_docs,) binary
    sessions : (n_queries,)
        Sessions per query, e.g. from :func:`draw_sessions`.
    rng : numpy.random.Generator

    Returns
    -------
    ClickLog
        Terms of the documents that were shown at least once, in order of document and rank; ``propensity`` is the
        examination probability θ at the displayed rank, which ignores the policy (*policy-oblivious*).
        :func:`cfltr_core.evaluation.estimators.policy_aware` replaces it by the exposure.

    Raises
    ------
    ValueError
        For a relevance outside [0, 1], or numbers of sessions that are not whole or do not match the lists.
    TypeError
        For an ``rng`` that is no numpy.random.Generator.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.simulate_clicks(policy, user, relevance=[1, 0, 1], sessions=[9_000], rng=np.random.default_rng(0))
    >>> (log.clicks / log.impressions).round(1)  # θ_r where relevant, up to chance
    array([1. , 0. , 0.3])
    """
    checks.arguments(simulate_clicks, locals())
    rel = checks.finite_vector(relevance, int(policy.offsets[-1]), "relevance", low=0, high=1, why=checks.BINARY)
    per_query = checks.counts(sessions, len(policy.offsets) - 1, "sessions")
    document, rank, impressions = policy.impressions(per_query, rng)
    clicks = rng.binomial(impressions, user.click_probability(rank, rel[document]))
    return ClickLog(
        document=document,
        rank=rank,
        impressions=impressions,
        clicks=clicks,
        propensity=user.propensity(rank),
        sessions=per_query,
        offsets=policy.offsets,
    )
