"""Click logs that are drawn: sessions, their exact simulation as counts, and single clicks on demand.

Given the displayed rankings, the clicks of a position-based user on one document at one rank are a Binomial count
of its impressions there, so that no session is simulated one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog, require_single_display
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.clicks.users import User


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClickRecords:
    """Single clicks, one row each: what :func:`expand_clicks` returns.

    ``query``, ``document``, ``rank`` and ``propensity`` are those of the click, each of shape (n_clicks,); ``session``
    is numbered within its query, 0 … sessions[query] − 1.
    """

    query: IntArray
    session: IntArray
    document: IntArray
    rank: IntArray
    propensity: FloatArray

    def __repr__(self) -> str:
        return f"ClickRecords({len(self)} clicks)"

    def __len__(self) -> int:
        return len(self.document)


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
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> cf.sessions_for_clicks(policy, user, relevance=[1, 0, 1], n_clicks=8)  # 8 / (1 + 1/3)
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


def expand_clicks(log: ClickLog, rng: np.random.Generator) -> ClickRecords:
    """Single clicks behind the counts: for each term a uniform subset of its sessions, of size ``clicks``.

    Subsets are independent between terms.  This is the exact law of the single clicks given the counts.

    Parameters
    ----------
    log : ClickLog
        In which every session of a query showed the same ranking (deterministic policies).
    rng : numpy.random.Generator

    Returns
    -------
    ClickRecords
        One row a click, in order of term and session.

    Raises
    ------
    ValueError
        For a log of several displays per query.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> clicks = cf.expand_clicks(log, np.random.default_rng(0))
    >>> clicks.document, clicks.session[:6]  # A was clicked in all six sessions, C in two of them
    (array([0, 0, 0, 0, 0, 0, 2, 2]), array([0, 1, 2, 3, 4, 5]))
    """
    checks.arguments(expand_clicks, locals())
    require_single_display(log)
    # Of the two complementary subsets draw the smaller; rejection then ends after a few rounds.
    flip = 2 * log.clicks > log.impressions
    drawn = np.where(flip, log.impressions - log.clicks, log.clicks)
    picks = _distinct_picks(drawn, log.impressions, rng)
    term, session = np.divmod(picks, max(1, int(log.impressions.max(initial=1))))
    if flip.any():
        term, session = _complement(term, session, flip, log.impressions)
    return ClickRecords(
        query=log.query[term],
        session=session,
        document=log.document[term],
        rank=log.rank[term],
        propensity=log.propensity[term],
    )


def _distinct_picks(wanted: IntArray, among: IntArray, rng: np.random.Generator) -> IntArray:
    """Sorted codes ``term * max(among) + number``: per term, ``wanted`` distinct numbers below ``among``."""
    width = max(1, int(among.max(initial=1)))
    terms = np.arange(len(wanted))
    codes = np.empty(0, dtype=np.int64)
    missing = wanted
    while missing.sum() > 0:
        term = np.repeat(terms, missing)
        number = (rng.random(len(term)) * among[term]).astype(np.int64)
        # Repeated numbers are dropped and drawn again: sampling without replacement, term by term.
        codes = np.unique(np.concatenate([codes, term * width + number]))
        missing = wanted - np.bincount(codes // width, minlength=len(wanted))
    return codes


def _complement(
    term: IntArray, session: IntArray, flip: np.ndarray, impressions: IntArray
) -> tuple[IntArray, IntArray]:
    keep = ~flip[term]
    width = max(1, int(impressions.max(initial=1)))
    flipped = np.flatnonzero(flip)
    sizes = impressions[flipped]
    all_term = np.repeat(flipped, sizes)
    all_session = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    rest = np.setdiff1d(all_term * width + all_session, (term * width + session)[~keep], assume_unique=True)
    codes = np.sort(np.concatenate([(term * width + session)[keep], rest]))
    return codes // width, codes % width
