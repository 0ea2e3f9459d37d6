"""Click logs as counts, their exact simulation, and single clicks on demand.

Given the displayed rankings, the clicks of a position-based user on one document at one rank are a Binomial count
of its impressions there.  The counts are all that the estimators, the objectives and the samplers of this book
need: a log of 10⁸ clicks costs what a log of 10⁵ costs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.policies import DeterministicPolicy, LoggingPolicy
from cfltr_core.clicks.users import PositionBasedUser
from cfltr_core.ranking.ragged import query_of


def _rows(documents: ArrayLike, n_docs: int, name: str) -> np.ndarray:
    """``documents`` as rows of the features; the first that is a name or a fraction is told what a row is."""
    row = f"the row of a document among the features, 0 … {n_docs - 1}"
    remedy = "look names up in the order of the rows, as in pandas.Index(names).get_indexer(clicked)"
    array = checks.numbers(documents, name, f"{row}; {remedy}")
    if array.dtype.kind != "f":
        return array
    whole = (np.isfinite(array) & (array == np.floor(array))).ravel()
    if not whole.all():
        first = int(np.argmin(whole))
        raise ValueError(
            f"{name}[{first}] is {array.ravel()[first]}: expected a whole number, {row}; drop missing ones"
        )
    return array.astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ClickLog:
    """Aggregated clicks: one *term* per (query, document, displayed rank) that was shown, 0 <= clicks <= impressions.

    Given the displays, the clicks of a term are Binomial(impressions, propensity · attraction), so that the counts keep
    all that estimators, objectives and samplers use.

    Source: the counts of the clicks of Agarwal et al. 2018, Eq. 5; of the click log of Jagerman & de Rijke 2020, Eq. 6.

    Parameters
    ----------
    document : (n_terms,)
        Flat document index; the query follows from ``offsets``.
    rank : (n_terms,)
        Displayed rank, 1-based.
    impressions, clicks : (n_terms,)
        0 <= clicks <= impressions.
    propensity : (n_terms,)
        P(examined) of the term, in (0, 1] wherever there is a click.
    sessions : (n_queries,)
        Number of sessions of each query.
    offsets : (n_queries + 1,)

    Raises
    ------
    ValueError
        Naming the argument, the index and the remedy, for any violation of the above.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> log = cf.ClickLog(
    ...     document=[0, 1, 2], rank=[1, 2, 3], impressions=[6, 6, 6], clicks=[6, 0, 2],
    ...     propensity=[1, 1/2, 1/3], sessions=[6], offsets=[0, 3],
    ... )
    >>> log.n_sessions, log.n_clicks
    (6, 8)
    >>> log.query, log.weights
    (array([0, 0, 0]), array([1., 2., 3.]))
    >>> log.mass  # they sum to the mean weight of a click, (6 · 1 + 2 · 3) / 8
    array([0.75, 0.  , 0.75])
    """

    document: IntArray
    rank: IntArray
    impressions: IntArray
    clicks: IntArray
    propensity: FloatArray
    sessions: IntArray
    offsets: IntArray

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        n_terms = len(np.asarray(self.document))
        document = checks.counts(_rows(self.document, int(offsets[-1]), "document"), n_terms, "document")
        checks.within(document, 0, int(offsets[-1]) - 1, "document", "no such document")
        rank = checks.counts(self.rank, n_terms, "rank")
        checks.within(rank, 1, np.inf, "rank", "displayed ranks start at 1")
        impressions = checks.counts(self.impressions, n_terms, "impressions")
        clicks = checks.counts(self.clicks, n_terms, "clicks")
        sessions = checks.counts(self.sessions, len(offsets) - 1, "sessions")
        propensity = np.asarray(self.propensity, dtype=np.float64)
        if propensity.shape != (n_terms,):
            raise ValueError(f"propensity: expected shape ({n_terms},), got {propensity.shape}")
        checks.within(propensity, 0, 1, "propensity", "a propensity is a probability; clip ratios above 1")
        self._first(clicks > impressions, "clicks", clicks, "more clicks than impressions")
        self._first(
            (clicks > 0) & (propensity == 0),
            "propensity",
            propensity,
            "the document was clicked, so it can be examined: correct the examination curve",
        )
        query = query_of(document, offsets)
        self._first(
            impressions > sessions[query],
            "impressions",
            impressions,
            "more impressions than sessions of the query",
        )
        for name, value in (
            ("document", document),
            ("rank", rank),
            ("impressions", impressions),
            ("clicks", clicks),
            ("propensity", propensity),
            ("sessions", sessions),
            ("offsets", offsets),
        ):
            object.__setattr__(self, name, value)

    @staticmethod
    def _first(bad: np.ndarray, name: str, values: np.ndarray, why: str) -> None:
        if bad.any():
            index = int(np.argmax(bad))
            raise ValueError(f"{name}[{index}] is {values[index]}: {why}")

    def __repr__(self) -> str:
        return f"ClickLog({self.n_clicks} clicks in {self.n_sessions} sessions, {len(self.document)} terms)"

    @property
    def n_sessions(self) -> int:
        """Sessions over all queries."""
        return int(self.sessions.sum())

    @property
    def n_clicks(self) -> int:
        """Clicks over all terms."""
        return int(self.clicks.sum())

    @property
    def query(self) -> IntArray:
        """Query of each term, shape (n_terms,)."""
        return query_of(self.document, self.offsets)

    @property
    def weights(self) -> FloatArray:
        """1/propensity of each term, shape (n_terms,); 0 where the propensity is 0, where no click can be."""
        return np.divide(1.0, self.propensity, out=np.zeros_like(self.propensity), where=self.propensity > 0)

    @property
    def mass(self) -> FloatArray:
        """clicks / (propensity · n_clicks) of each term, shape (n_terms,), which is its part of a click's mean weight.

        They sum to M̄ = (1/n) Σ over clicks of 1/propensity.  Raises ValueError for a log without clicks.
        """
        if self.n_clicks == 0:
            raise ValueError("log: there is no click in the log, so no term has any mass")
        mass = np.zeros_like(self.propensity)
        return np.divide(self.clicks, self.propensity * self.n_clicks, out=mass, where=self.clicks > 0)


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


def sessions_for_clicks(
    policy: LoggingPolicy, user: PositionBasedUser, *, relevance: ArrayLike, n_clicks: float
) -> int:
    """Number of sessions S whose expected number of clicks is ``n_clicks``: S = round(n / E[clicks per session]).

    Sessions draw their query uniformly: E[clicks per session] = (1/n_queries) Σ_d exposure_d · attraction_d.  Papers
    fix the number of clicks; sessions are what one controls.

    Parameters
    ----------
    policy : LoggingPolicy
    user : PositionBasedUser
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
    checks.positive(n_clicks, "n_clicks")
    rel = checks.finite_vector(relevance, int(policy.offsets[-1]), "relevance")
    probability = policy.exposure(user) * user.attraction(rel)
    per_session = float(probability.sum()) / (len(policy.offsets) - 1)
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
    n = checks.positive_int(n_sessions, "n_sessions")
    m = checks.positive_int(n_queries, "n_queries")
    return checks.generator(rng).multinomial(n, np.full(m, 1.0 / m)).astype(np.int64)


def simulate_clicks(
    policy: LoggingPolicy,
    user: PositionBasedUser,
    *,
    relevance: ArrayLike,
    sessions: ArrayLike,
    rng: np.random.Generator,
) -> ClickLog:
    """Draw a click log: the displays first, then clicks of document d at rank r ~ Binomial(impressions, θ_r · ε_d).

    This is the exact law of the counts under a position-based user.  A deterministic policy costs O(documents)
    whatever the number of sessions; a stochastic one counts its displays by its ``impressions``, in memory bounded by
    documents × displayed ranks.

    Source: Agarwal et al. 2018, §3.1–3.2 and §5.1; Jagerman & de Rijke 2020, Eq. 27.

    Parameters
    ----------
    policy : LoggingPolicy
        What is shown.
    user : PositionBasedUser
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
    rel = checks.finite_vector(relevance, int(policy.offsets[-1]), "relevance")
    per_query = checks.counts(sessions, len(policy.offsets) - 1, "sessions")
    checks.within(rel, 0, 1, "relevance", "the user model takes binary relevance")
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
    checks.generator(rng)
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


def require_single_display(log: ClickLog) -> None:
    """Raise a ValueError unless every session of a query was shown the same ranking."""
    repeated = np.flatnonzero(np.bincount(log.document, minlength=1) > 1)
    if len(repeated):
        raise ValueError(
            f"log: document {repeated[0]} was shown at more than one rank; this is exact only when every document "
            'has one displayed rank. For standard errors use unit="query"'
        )
    partly = np.flatnonzero(log.impressions != log.sessions[log.query])
    if len(partly):
        term = partly[0]
        raise ValueError(
            f"log: impressions[{term}] is {log.impressions[term]}, but its query had {log.sessions[log.query[term]]} "
            "sessions; this is exact only when every session shows the same ranking. For standard errors use "
            'unit="query"'
        )


def aggregate_clicks(
    documents: ArrayLike, policy: DeterministicPolicy, *, user: PositionBasedUser, sessions: ArrayLike
) -> ClickLog:
    """Your own single clicks as a :class:`ClickLog`: clicks of document d = #{i : documents_i = d}.

    Parameters
    ----------
    documents : (n_clicks,) whole numbers
        The flat document index of each click: the row of the document among the features.  Names of documents are
        looked up first, as in ``pandas.Index(names).get_indexer(clicked)`` with the names in the order of the rows.
    policy : DeterministicPolicy
        At which rank each document was shown.
    user : PositionBasedUser
        The examination curve that you assume.
    sessions : (n_queries,) whole numbers
        How often each query was asked, with or without a click.

    Raises
    ------
    ValueError
        For a click that is no document's index, on a document that was not shown, or for more clicks on a document
        than its query had sessions.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0, 0, 2, 0, 0, 2, 0, 0], policy, user=user, sessions=[6])  # six users, eight clicks
    >>> log.clicks, log.propensity.round(2)
    (array([6, 0, 2]), array([1.  , 0.5 , 0.33]))
    """
    offsets = policy.offsets
    n_docs = int(offsets[-1])
    per_query = checks.counts(sessions, len(offsets) - 1, "sessions")
    clicked = checks.indices(_rows(documents, n_docs, "documents"), "documents")
    checks.within(
        clicked, 0, n_docs - 1, "documents", "no such document; −1 is what a look-up gives for a name that is not there"
    )
    clicks = np.bincount(clicked, minlength=n_docs)
    hidden = (clicks > 0) & (policy.displayed_rank == 0)
    if hidden.any():
        raise ValueError(f"documents: document {int(np.argmax(hidden))} was clicked but not shown by the policy")
    impressions = np.repeat(per_query, np.diff(offsets)) * (policy.displayed_rank > 0)
    seen = np.flatnonzero(impressions)
    if (clicks > impressions).any():
        bad = int(np.argmax(clicks > impressions))
        raise ValueError(
            f"documents: document {bad} has {clicks[bad]} clicks in {impressions[bad]} sessions of its query; "
            "count at most one click per session, and every session"
        )
    return ClickLog(
        document=seen,
        rank=policy.displayed_rank[seen],
        impressions=impressions[seen],
        clicks=clicks[seen],
        propensity=user.propensity(policy.displayed_rank[seen]),
        sessions=per_query,
        offsets=offsets,
    )
