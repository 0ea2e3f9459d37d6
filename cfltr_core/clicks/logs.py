"""Click logs as counts, and your own clicks as one; :mod:`cfltr_core.clicks.simulation` draws them.

Given the displayed rankings, the clicks of a position-based user on one document at one rank are a Binomial count
of its impressions there.  The counts are all that the estimators, the objectives and the samplers of this book
need: a log of 10⁸ clicks costs what a log of 10⁵ costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.origins import Origin
from cfltr_core.clicks.policies import DeterministicPolicy
from cfltr_core.clicks.users import User
from cfltr_core.ranking.ragged import query_of


def _rows(documents: ArrayLike, n_docs: int, name: str) -> np.ndarray:
    """``documents`` as rows of the features; the first that is a name or a fraction is told what a row is."""
    row = f"the row of a document among the features, 0 … {n_docs - 1}"
    remedy = "look names up in the order of the rows, as in pandas.Index(names).get_indexer(clicked)"
    array = checks.numbers(documents, name, f"{row}; {remedy}")
    if array.dtype.kind != "f":
        return array
    bad = ~(np.isfinite(array) & (array == np.floor(array)))
    checks.refuse(bad, name, array, f"expected a whole number, {row}; drop missing ones")
    return array.astype(np.int64)


def _again(document: IntArray, rank: IntArray) -> tuple[int, int] | None:
    """The first term whose document and rank an earlier one has, after that one; None if there is none."""
    above, below = document[:-1], document[1:]
    if ((above < below) | ((above == below) & (rank[:-1] < rank[1:]))).all():
        return None
    order = np.lexsort((rank, document))
    same = (document[order][1:] == document[order][:-1]) & (rank[order][1:] == rank[order][:-1])
    if not same.any():
        return None
    first = int(np.argmin(np.where(same, order[1:], len(order))))
    return int(order[first]), int(order[first + 1])


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
    examined : bool
        False where nobody said yet who examines which rank: the propensities are then 1 and stand for nothing, and
        weights are refused.
    origin : Origin, optional
        Of which sessions of a log that was read.

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
    examined: bool = True
    origin: Origin | None = None

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        n_terms = len(np.asarray(self.document))
        given, n_docs = _rows(self.document, int(offsets[-1]), "document"), int(offsets[-1])
        document = checks.counts(given, n_terms, "document", high=n_docs - 1, why="no such document")
        rank = checks.counts(self.rank, n_terms, "rank", low=1, why=checks.FROM_1)
        impressions = checks.counts(self.impressions, n_terms, "impressions")
        clicks = checks.counts(self.clicks, n_terms, "clicks")
        sessions = checks.counts(self.sessions, len(offsets) - 1, "sessions")
        why = "a propensity is a probability; clip ratios above 1"
        propensity = checks.finite_vector(self.propensity, n_terms, "propensity", low=0, high=1, why=why)
        checks.refuse(clicks > impressions, "clicks", clicks, checks.ONCE)
        why = "the document was clicked, so it can be examined: correct the examination curve"
        checks.refuse((clicks > 0) & (propensity == 0), "propensity", propensity, why)
        many = impressions > sessions[query_of(document, offsets)]
        checks.refuse(many, "impressions", impressions, "more impressions than sessions of the query")
        again = _again(document, rank)
        if again is not None:
            raise ValueError(
                f"rank[{again[1]}] is {rank[again[1]]}, but term {again[0]} is of the same document and rank: add up "
                "impressions and clicks of the two terms"
            )
        checks.keep(self, document=document, rank=rank, impressions=impressions, clicks=clicks, offsets=offsets)
        # Other propensities than 1 are known from somewhere.
        examined = bool(self.examined or (propensity != 1).any())
        checks.keep(self, propensity=propensity, sessions=sessions, examined=examined)

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
        """1/propensity of each term, shape (n_terms,); 0 where the propensity is 0, where no click can be.

        Raises ValueError for a log of which nobody said who examines its ranks.
        """
        require_examined(self)
        return np.divide(1.0, self.propensity, out=np.zeros_like(self.propensity), where=self.propensity > 0)

    @property
    def mass(self) -> FloatArray:
        """clicks / (propensity · n_clicks) of each term, shape (n_terms,), which is its part of a click's mean weight.

        They sum to M̄ = (1/n) Σ over clicks of 1/propensity.  Raises ValueError for a log without clicks, or of which
        nobody said who examines its ranks.
        """
        require_examined(self)
        if self.n_clicks == 0:
            raise ValueError("log: there is no click in the log, so no term has any mass")
        mass = np.zeros_like(self.propensity)
        return np.divide(self.clicks, self.propensity * self.n_clicks, out=mass, where=self.clicks > 0)


def require_examined(log: Any) -> None:
    """Raise unless ``log`` is a :class:`ClickLog` whose propensities mean something: TypeError, or ValueError.

    Examples
    --------
    >>> import dataclasses
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.logs import require_examined
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1, 1])
    >>> log = cf.aggregate_clicks([0], policy, user=user, sessions=[6])
    >>> require_examined(log)
    >>> require_examined(dataclasses.replace(log, examined=False))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: log: nobody said who examines its ranks, so that its clicks cannot be weighted: ...
    """
    checks.of_type(log, "log", ClickLog)
    if not log.examined:
        raise ValueError(
            "log: nobody said who examines its ranks, so that its clicks cannot be weighted: give the exposure of its "
            "documents, policy_aware(events.log(), events.displays().exposure(user)), or the user, events.log(user); "
            "for raw clicks, on purpose, events.log(PositionBasedUser(power_examination(0.0)))"
        )


def require_exposed(log: ClickLog, exposure: FloatArray, remedy: str, *, of: BoolArray | bool = True) -> None:
    """Raise a ValueError, with the ``remedy``, for a click on a document without ``exposure``, at terms ``of`` which.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.logs import require_exposed
    >>> policy, user = cf.DeterministicPolicy([1, 2], [0, 2]), cf.PositionBasedUser([1, 1/2])
    >>> log = cf.aggregate_clicks([1], policy, user=user, sessions=[6])
    >>> require_exposed(log, np.array([1.0, 0.5]), "correct θ")
    >>> try:
    ...     require_exposed(log, np.array([1.0, 0.0]), "correct θ")
    ... except ValueError as error:
    ...     print(error)
    exposure of document 1 is 0, but log.clicks[1] is 1: correct θ
    """
    blind = (log.clicks > 0) & (exposure[log.document] == 0) & of
    if blind.any():
        term = int(np.argmax(blind))
        raise ValueError(
            f"exposure of document {log.document[term]} is 0, but log.clicks[{term}] is {log.clicks[term]}: {remedy}"
        )


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


def aggregate_clicks(documents: ArrayLike, policy: DeterministicPolicy, *, user: User, sessions: ArrayLike) -> ClickLog:
    """Your own single clicks as a :class:`ClickLog`: clicks of document d = #{i : documents_i = d}.

    Parameters
    ----------
    documents : (n_clicks,) whole numbers
        The flat document index of each click: the row of the document among the features.  Names of documents are
        looked up first, as in ``pandas.Index(names).get_indexer(clicked)`` with the names in the order of the rows.
    policy : DeterministicPolicy
        At which rank each document was shown.
    user : User
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
    why = "no such document; −1 is what a look-up gives for a name that is not there"
    clicked = checks.indices(_rows(documents, n_docs, "documents"), "documents", n_docs, why)
    clicks = np.bincount(clicked, minlength=n_docs)
    hidden = (clicks > 0) & (policy.displayed_rank == 0)
    if hidden.any():
        raise ValueError(
            f"documents: document {int(np.argmax(hidden))} was clicked but not shown by the policy: its displayed_rank "
            "is 0; ranks start at 1, so add 1 to ranks that start at 0"
        )
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
