"""Events, counted: how often each document was shown and clicked, by rank, ranker, period and part of the sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfltr_core import checks
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.display_shares import DisplayShares
from cfltr_core.clicks.event_report import EventReport
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.origins import Origin
from cfltr_core.clicks.users import User
from cfltr_core.ranking.ragged import query_of

if TYPE_CHECKING:
    import pandas as pd

# The columns of a term.
TERMS = ("document", "rank", "ranker", "period", "part_number", "user_group", "impressions", "clicks", "tops")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Events:
    """What :func:`read_events` counts: one *term* per (document, rank, ranker, period, part) that was shown.

    Documents are rows of the features, sorted by query and document, so that a query's stand together.  Whole sessions
    belong to a part, *train*, *validation* or *test*; :meth:`part` takes one of them, :meth:`subset` some queries,
    rankers or periods.

    Parameters
    ----------
    features : (n_docs, n_features) float32
    feature_names : (n_features,)
    offsets : (n_queries + 1,)
        Query q owns the rows offsets[q] … offsets[q + 1] − 1.
    index : data frame
        Columns ``query`` and ``document``: the names of each row of the features.
    rankers, periods, parts : tuples
        Names, in order; one ``None`` where a log does not tell.
    document, rank, ranker, period, part_number : (n_terms,)
        Row of the features; displayed rank, from 1; numbers of the names, from 0.
    impressions, clicks : (n_terms,)
    report : EventReport
        What was read, and what was left out.
    user_group : (n_terms,), optional
        Groups of users, from 0; all of one group where users are not known.
    tops : (n_terms,), optional
        Impressions that were the first of their page, of which each session has one: all those at rank 1, unless pages
        have gaps.

    Raises
    ------
    ValueError
        Naming the argument and the row, for counts that no log can have.

    Examples
    --------
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> features = pd.DataFrame({"query": ["shoes"] * 3, "document": ["A", "B", "C"], "age": [3, 1, 2]})
    >>> shown = {1: "ABC", 2: "ABC", 3: "CAB", 4: "CAB"}
    >>> clicked = {(1, "A"), (2, "A"), (2, "C"), (4, "C")}
    >>> rows = [
    ...     {"session": s, "query": "shoes", "document": d, "position": k, "clicked": (s, d) in clicked, "ranker": page}
    ...     for s, page in shown.items() for k, d in enumerate(page, start=1)
    ... ]
    >>> events = cf.read_events(pd.DataFrame(rows), features, split=None)
    >>> events
    Events(4 clicks in 4 sessions, 1 queries, 3 documents, 2 rankers)
    >>> events.n_sessions, events.n_clicks, events.n_queries, events.queries, events.rankers
    (4, 4, 1, array(['shoes'], dtype=object), ('ABC', 'CAB'))
    >>> log = events.log(cf.PositionBasedUser([1, 1/2, 1/3]))
    >>> log, log.rank, log.clicks
    (ClickLog(4 clicks in 4 sessions, 6 terms), array([1, 2, 2, 3, 1, 3]), array([2, 0, 0, 0, 1, 1]))
    >>> cf.display_counts(events)  # strata: each document in each period
    DisplayCounts(4 clicks, 12 impressions, 3 strata, 3 ranks)
    >>> sorted(events.columns())
    ['clicks', 'document', 'impressions', 'period', 'query', 'rank']
    >>> events.displays().share  # each ranker had half of the sessions
    array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    >>> events.sessions.values.tolist()  # query, ranker, period, part, sessions
    [[0, 0, 0, 0, 2], [0, 1, 0, 0, 2]]
    >>> events.subset(rankers=["CAB"])
    Events(1 clicks in 2 sessions, 1 queries, 3 documents, 1 rankers)
    >>> named = pd.Series([3.0, 1.0, 2.0], index=pd.MultiIndex.from_product([["shoes"], ["C", "A", "B"]]))
    >>> events.scores(named), events.shown_scores("CAB")  # of A, B, C
    (array([1., 2., 3.]), array([-2., -3., -1.]))
    >>> events.part(0).n_sessions, events.origin.parts, len(events.by_user()), events.samples
    (4, ('all',), 1, False)
    """

    features: NDArray[np.float32]
    feature_names: tuple[str, ...]
    offsets: IntArray
    index: pd.DataFrame
    rankers: tuple[Any, ...]
    periods: tuple[Any, ...]
    parts: tuple[Any, ...]
    document: IntArray
    rank: IntArray
    ranker: IntArray
    period: IntArray
    part_number: IntArray
    impressions: IntArray
    clicks: IntArray
    report: EventReport
    user_group: IntArray | None = None
    tops: IntArray | None = None

    def __post_init__(self) -> None:
        n_docs = len(self.features)
        n_terms, why = len(np.asarray(self.document)), "no event has it; make Events with read_events"
        if self.user_group is None:
            checks.keep(self, user_group=np.zeros(n_terms, dtype=np.int64))
        if self.tops is None:
            checks.keep(self, tops=np.where(np.asarray(self.rank) == 1, self.impressions, 0))
        columns = {
            name: checks.counts(getattr(self, name), n_terms, name, low=low, high=high, why=why)
            for name, low, high in (
                ("document", 0, n_docs - 1),
                ("rank", 1, np.inf),
                ("ranker", 0, len(self.rankers) - 1),
                ("period", 0, len(self.periods) - 1),
                ("part_number", 0, len(self.parts) - 1),
                ("user_group", 0, np.inf),
                ("impressions", 1, np.inf),
                ("clicks", 0, np.inf),
                ("tops", 0, np.inf),
            )
        }
        checks.refuse(columns["clicks"] > columns["impressions"], "clicks", columns["clicks"], checks.ONCE)
        checks.keep(self, offsets=checks.offsets_of(self.offsets, n_docs), **columns)

    def __repr__(self) -> str:
        rankers = "" if self.rankers == (None,) else f", {len(np.unique(self.ranker))} rankers"
        return (
            f"Events({self.n_clicks} clicks in {self.n_sessions} sessions, {self.n_queries} queries, "
            f"{len(self.features)} documents{rankers})"
        )

    @property
    def n_sessions(self) -> int:
        """Sessions over all queries: every page has one document that is its first."""
        return int(np.asarray(self.tops).sum())

    @property
    def samples(self) -> bool:
        """Whether rows are samples, one impression of one slot each, and no pages."""
        return bool(np.array_equal(np.asarray(self.tops), self.impressions) and (self.rank > 1).any())

    @property
    def n_clicks(self) -> int:
        """Clicks over all terms."""
        return int(self.clicks.sum())

    @property
    def n_queries(self) -> int:
        """Queries with candidates, asked or not."""
        return len(self.offsets) - 1

    @property
    def queries(self) -> NDArray[Any]:
        """Names of the queries, shape (n_queries,)."""
        return np.asarray(self.index["query"].to_numpy()[self.offsets[:-1]])

    @property
    def origin(self) -> Origin:
        """Which sessions these are: what is made from them keeps it."""
        top = np.asarray(self.tops) > 0
        code = query_of(self.document[top], self.offsets)
        for number, names in ((self.ranker, self.rankers), (self.period, self.periods), (self.part_number, self.parts)):
            code = code * len(names) + number[top]
        held = np.unique(self.part_number[top])
        return Origin(self.report, np.unique(code), tuple(str(self.parts[part]) for part in held))

    @property
    def sessions(self) -> pd.DataFrame:
        """Sessions by ``query`` (its number), ``ranker``, ``period`` and ``part`` (theirs), those that there were."""
        import pandas as pd

        top = np.asarray(self.tops) > 0
        frame = pd.DataFrame(
            {
                "query": query_of(self.document[top], self.offsets),
                "ranker": self.ranker[top],
                "period": self.period[top],
                "part": self.part_number[top],
                "sessions": np.asarray(self.tops)[top],
            }
        )
        return frame.groupby(["query", "ranker", "period", "part"], as_index=False, sort=True).sum()

    def part(self, name: str | int) -> Events:
        """The sessions of one part, by its ``name`` or number; lists and names stay as they are.

        Raises
        ------
        ValueError
            For a part that there is not, or that has no session.
        """
        if name in self.parts:
            number = self.parts.index(name)
        elif isinstance(name, (int, np.integer)) and 0 <= name < len(self.parts):
            number = int(name)
        else:
            raise ValueError(f"name is {name!r}: the parts are {', '.join(map(repr, self.parts))}")
        return self._only(self.part_number == number, f"part {name!r}")

    def subset(
        self,
        *,
        queries: Iterable[Any] | None = None,
        rankers: Sequence[Any] | None = None,
        periods: Sequence[Any] | None = None,
    ) -> Events:
        """The sessions of some ``queries``, ``rankers`` and ``periods``, by their names; lists and names stay.

        Raises
        ------
        ValueError
            For a name that there is not, or if no session is left.
        """
        chosen = np.ones(len(self.document), dtype=bool)
        query = query_of(self.document, self.offsets)
        for what, wanted, known, number in (
            ("queries", queries, self.queries.tolist(), query),
            ("rankers", rankers, list(self.rankers), self.ranker),
            ("periods", periods, list(self.periods), self.period),
        ):
            if wanted is None:
                continue
            at = {name: i for i, name in enumerate(known)}
            given = list(wanted)
            missing = [i for i, name in enumerate(given) if name not in at]
            if missing:
                raise ValueError(
                    f"{what}[{missing[0]}] is {given[missing[0]]!r}: there is none of that name; the first is "
                    f"{known[0]!r}"
                )
            chosen &= np.isin(number, [at[name] for name in given])
        return self._only(chosen, "what was chosen")

    def by_user(self) -> dict[int, Events]:
        """The sessions of each group of users, by its number: one group where users are not known."""
        groups = np.unique(np.asarray(self.user_group)).tolist()
        return {group: self._only(self.user_group == group, "a group of users") for group in groups}

    def _only(self, chosen: BoolArray, what: str) -> Events:
        if not chosen.any():
            raise ValueError(f"{what} has no session; choose more of them, or split more sessions")
        return replace(self, **{name: getattr(self, name)[chosen] for name in TERMS})

    def scores(self, named: Any) -> FloatArray:
        """Scores in the order of the documents, (n_docs,), from scores with names.

        ``named`` is a pandas Series whose index has two levels, query and document, or a data frame with the columns
        query, document and score.  So it does not matter how rows were sorted.

        Raises
        ------
        TypeError
            For scores without names.
        ValueError
            For a document without a score, one that has two, or a score that is no finite number.
        """
        import pandas as pd

        if isinstance(named, pd.DataFrame):
            missing = [name for name in ("query", "document", "score") if name not in named]
            if missing:
                raise ValueError(f"named: there is no column {missing[0]!r}; give query, document and score")
            named = named.set_index(["query", "document"])["score"]
        if not isinstance(named, pd.Series) or named.index.nlevels != 2:
            raise TypeError(
                f"named is {type(named).__name__}, without names of query and document: give a data frame with the "
                "columns query, document and score; scores of events.features are in order as they are"
            )
        if not named.index.is_unique:
            query, document = named.index[named.index.duplicated()].to_frame().iloc[0].tolist()
            raise ValueError(f"named: query {query!r}, document {document!r} has two scores; keep one")
        found: FloatArray = named.reindex(pd.MultiIndex.from_frame(self.index)).to_numpy(dtype=np.float64)
        if not np.isfinite(found).all():
            query, document = self.index.iloc[int(np.argmin(np.isfinite(found)))].tolist()
            why = "is no finite number" if (query, document) in named.index else "is missing"
            raise ValueError(
                f"named: the score of query {query!r}, document {document!r} {why}, and so are "
                f"{int((~np.isfinite(found)).sum()) - 1} others: score every candidate of the features"
            )
        return found

    def shown_scores(self, ranker: Any, *, otherwise: Any = None) -> FloatArray:
        """Minus the mean rank at which a ``ranker`` showed each document, (n_docs,): scores that give its pages again.

        What it did not show stands below, in a tie: judge by a metric that ends where its pages do, as ``dcg(10)``.
        In queries that it never served the pages of the ranker ``otherwise`` take its place.

        Raises
        ------
        ValueError
            For a name that no ranker has, or, without ``otherwise``, queries with sessions that it never served.
        """
        below = int(self.rank.max()) + 1
        scores = np.full(len(self.features), -float(below))
        left = np.bincount(query_of(self.document, self.offsets), minlength=self.n_queries) > 0
        for name in (ranker,) if otherwise is None else (ranker, otherwise):
            if name not in self.rankers:
                known = ", ".join(map(repr, self.rankers))
                raise ValueError(f"ranker is {name!r}: the rankers of the log are {known}")
            query = query_of(self.document, self.offsets)
            mine = (self.ranker == self.rankers.index(name)) & left[query]
            shown, places = (
                np.bincount(self.document[mine], weights, minlength=len(scores))
                for weights in (self.impressions[mine], (self.impressions * self.rank)[mine])
            )
            scores = np.where(shown > 0, -places / np.maximum(shown, 1), scores)
            left[query[mine]] = False
        if left.any():
            first = self.queries[left].tolist()
            raise ValueError(
                f"ranker: {ranker!r} never served {len(first)} of {self.n_queries} queries, {first[0]!r} the first: "
                "leave their sessions out, by events.subset(queries=…), or say whose pages stand there, by otherwise=…"
            )
        return scores

    def columns(self) -> dict[str, IntArray]:
        """The arguments of :class:`DisplayCounts`: impressions and clicks by query, document, rank and period."""
        (document, rank, period), impressions, clicks = _added(
            [self.document, self.rank, self.period], self.impressions, self.clicks
        )
        query = query_of(document, self.offsets)
        terms = {"document": document, "rank": rank, "period": period, "impressions": impressions, "clicks": clicks}
        return {"query": query, **terms}

    def log(self, user: User | None = None) -> ClickLog:
        """The counts of all rankers, periods and parts as a :class:`ClickLog`, examined as by ``user``.

        Without a user it says what was clicked and nothing of what was examined: weights are then refused, and so are
        learners and estimators that use them, until :func:`policy_aware` gives it exposures.

        Raises
        ------
        ValueError
            For a ``user`` who never examines a rank at which there are clicks.
        """
        (document, rank), impressions, clicks = _added([self.document, self.rank], self.impressions, self.clicks)
        asked = query_of(self.document, self.offsets)
        sessions = np.bincount(asked, np.asarray(self.tops), minlength=self.n_queries).astype(np.int64)
        return ClickLog(
            document=document,
            rank=rank,
            impressions=impressions,
            clicks=clicks,
            propensity=np.ones(len(rank)) if user is None else user.propensity(rank),
            sessions=sessions,
            offsets=self.offsets,
            examined=user is not None,
            origin=self.origin,
        )

    def displays(self) -> DisplayShares:
        """In which share of the sessions of its query each document stood at each rank: impressions over sessions."""
        return DisplayShares.of_log(self.log())


def _added(keys: list[IntArray], impressions: IntArray, clicks: IntArray) -> tuple[list[IntArray], IntArray, IntArray]:
    """Sums over terms of equal ``keys``, in the order of the keys."""
    order = np.lexsort(keys[::-1])
    sorted_keys = [key[order] for key in keys]
    new = np.append(True, np.any([key[1:] != key[:-1] for key in sorted_keys], axis=0))
    first = np.flatnonzero(new)
    sums = [np.add.reduceat(values[order], first) for values in (impressions, clicks)]
    return [key[first] for key in sorted_keys], sums[0], sums[1]
