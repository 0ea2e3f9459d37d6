"""Strata of a log: how often each document of each query was shown, and clicked, at each rank.

A *stratum* is a (query, document), or a (query, document, period) when the log covers several periods.  What
distinguishes two ranks of one stratum is examination alone, if relevance does not change inside the stratum.  So the
estimators that assume nothing of relevance compare ranks within strata.  The strata that were shown at both of two
ranks are the *interventional set* of these ranks.

Source: Agarwal et al. 2019, "Estimating Position Bias without Intrusive Interventions", which the notes cite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.clicks.origins import Origin


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DisplayCounts:
    """Impressions n_sk and clicks c_sk of every stratum s at every rank k where it was shown, n_sk >= 1.

    The *terms* (s, k) are kept in the order of query, period, document and rank, whatever the order they came in.
    :func:`display_counts` makes them from logs, :func:`count_rows` from single rows.

    Parameters
    ----------
    query, document : (n_terms,)
        Whole numbers >= 0.  Documents of different queries are different, also if they have one number.
    rank : (n_terms,)
        Displayed rank, from 1.
    impressions, clicks : (n_terms,)
        1 <= impressions, 0 <= clicks <= impressions.
    period : (n_terms,), optional
        Whole numbers >= 0; one period if there is none.
    origin : Origin, optional
        Of which sessions of a log that was read; estimates keep it.

    Raises
    ------
    ValueError
        Naming the argument, the row and the remedy: for ranks that begin at 0, more clicks than impressions, no
        impression, or a (query, period, document, rank) that has two rows.

    Examples
    --------
    >>> import numpy as np
    >>> from cfltr_core.propensity.strata import DisplayCounts
    >>> counts = DisplayCounts(  # A stood at ranks 1 and 2, B below or above it
    ...     query=[0, 0, 0, 0], document=[0, 0, 1, 1], rank=[1, 2, 2, 1], impressions=[6, 4, 6, 4], clicks=[6, 2, 0, 0],
    ... )
    >>> counts, counts.n_ranks, counts.start  # the terms of a stratum stand together
    (DisplayCounts(8 clicks, 20 impressions, 2 strata, 2 ranks), 2, array([0, 2, 4]))
    >>> counts.rank, counts.stratum, counts.cluster
    (array([1, 2, 1, 2]), array([0, 0, 1, 1]), array([0, 0, 0, 0]))
    >>> counts.subset(counts.document == 0)
    DisplayCounts(8 clicks, 10 impressions, 1 strata, 2 ranks)
    """

    query: IntArray
    document: IntArray
    rank: IntArray
    impressions: IntArray
    clicks: IntArray
    period: IntArray | None = None
    origin: Origin | None = None
    start: IntArray = field(init=False)

    def __post_init__(self) -> None:
        n_terms = len(np.asarray(self.rank))
        period = np.zeros(n_terms, dtype=np.int64) if self.period is None else self.period
        given = {"query": self.query, "document": self.document, "period": period, "rank": self.rank}
        given |= {"impressions": self.impressions, "clicks": self.clicks}
        least = {"rank": (1, checks.FROM_1), "impressions": (1, "drop rows of what was not shown")}
        columns = {}
        for name, value in given.items():
            low, why = least.get(name, (0, "expected 0 or more"))
            columns[name] = checks.counts(value, n_terms, name, low=low, why=why)
        if n_terms == 0:
            raise ValueError("rank: there is no row, so nothing can be compared; give at least one displayed document")
        checks.refuse(columns["clicks"] > columns["impressions"], "clicks", columns["clicks"], checks.ONCE)
        keys = [columns[name] for name in ("query", "period", "document", "rank")]
        order = np.arange(n_terms)
        if not _ascending(keys):
            order = np.lexsort(keys[::-1])
            keys = [key[order] for key in keys]
        # The leftmost of the first three columns in which a term differs from the one above begins a stratum.
        new = np.append(True, np.any([key[1:] != key[:-1] for key in keys[:3]], axis=0))
        twice = ~new[1:] & (keys[3][1:] == keys[3][:-1])
        if twice.any():
            first, second = sorted(order[int(np.argmax(twice)) :][:2].tolist())
            raise ValueError(
                f"rank[{second}] is {columns['rank'][second]}, but row {first} is of the same query, period, document "
                "and rank: add up impressions and clicks of the two rows"
            )
        checks.keep(self, **{name: value[order] for name, value in columns.items()})
        checks.keep(self, start=np.append(np.flatnonzero(new), n_terms))

    def __repr__(self) -> str:
        what = f"{int(self.clicks.sum())} clicks, {int(self.impressions.sum())} impressions"
        return f"DisplayCounts({what}, {len(self.start) - 1} strata, {self.n_ranks} ranks)"

    @property
    def n_ranks(self) -> int:
        """The deepest rank that was shown."""
        return int(self.rank.max())

    @property
    def stratum(self) -> IntArray:
        """Stratum of each term, 0, 0, 1, …, shape (n_terms,)."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    @property
    def cluster(self) -> IntArray:
        """Queries of the terms numbered 0, 1, 2, … without a gap, shape (n_terms,): what standard errors cluster by."""
        return np.cumsum(np.append(0, np.diff(self.query) != 0))

    def subset(self, chosen: ArrayLike) -> DisplayCounts:
        """The terms that are ``chosen``, (n_terms,) True or False; ValueError for no term, or another shape."""
        mask = np.asarray(chosen)
        if mask.shape != self.rank.shape or mask.dtype != np.bool_:
            raise ValueError(f"chosen: expected True or False for each of {len(self.rank)} terms, got {mask.shape}")
        if not mask.any():
            raise ValueError("chosen: no term is chosen, so nothing can be compared; choose at least one")
        names = ("query", "document", "rank", "impressions", "clicks", "period")
        return DisplayCounts(**{name: getattr(self, name)[mask] for name in names}, origin=self.origin)


def _ascending(keys: Sequence[IntArray]) -> bool:
    """Whether the rows stand in the order of the first key, then of the second …; equal rows do."""
    rising = np.ones(len(keys[0]) - 1, dtype=bool)
    for key in keys[::-1]:
        rising = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & rising)
    return bool(rising.all())


def display_counts(logs: ClickLog | Sequence[ClickLog] | Events) -> DisplayCounts:
    """Strata of a click log: one (query, document) each, or one (query, document, period) each of several ``logs``.

    Several logs are those of successive periods on the same lists.  A document then forms a new stratum in each
    period, so that its relevance may change from one to the next, and the ranker may have followed it.  Events, which
    :func:`read_events` counts from your own log, have their periods in themselves.

    Raises
    ------
    ValueError
        For no log, logs on different lists, logs without an impression, or a term that occurs twice.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_core.propensity.strata import display_counts
    >>> a_b_c, c_a_b = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.DeterministicPolicy([2, 3, 1], [0, 3])
    >>> policy, user = cf.MixturePolicy([a_b_c, c_a_b], shares=[0.5, 0.5]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> rng = np.random.default_rng(0)
    >>> log = cf.simulate_clicks(policy, user, relevance=[1, 0, 1], sessions=[100], rng=rng)
    >>> display_counts(log).rank.reshape(3, 2)  # each document at the two ranks that the rankers give it
    array([[1, 2],
           [2, 3],
           [1, 3]])
    >>> display_counts([log, log])  # last week and this week
    DisplayCounts(296 clicks, 600 impressions, 6 strata, 3 ranks)
    """
    if isinstance(logs, Events):
        return DisplayCounts(**logs.columns(), origin=logs.origin)
    parts = [logs] if isinstance(logs, ClickLog) else list(logs)
    if not parts:
        raise ValueError("logs: expected a ClickLog, or one for each period, got none")
    for i, log in enumerate(parts):
        if not isinstance(log, ClickLog):
            raise TypeError(
                f"logs[{i}] is {type(log).__name__}: expected ClickLog; rows of your own go to count_rows(…)"
            )
        if not np.array_equal(log.offsets, parts[0].offsets):
            raise ValueError(f"logs[{i}] has other offsets than logs[0]: periods are logs on the same lists")
    seen = [log.impressions > 0 for log in parts]
    columns = {
        name: np.concatenate([getattr(log, name)[s] for log, s in zip(parts, seen, strict=True)])
        for name in ("query", "document", "rank", "impressions", "clicks")
    }
    period = np.repeat(np.arange(len(parts)), [int(s.sum()) for s in seen])
    return DisplayCounts(**columns, period=period, origin=parts[0].origin if len(parts) == 1 else None)


def count_rows(
    *,
    query: ArrayLike,
    document: ArrayLike,
    rank: ArrayLike,
    clicked: ArrayLike,
    period: ArrayLike | None = None,
) -> DisplayCounts:
    """Strata of your own log, from one row for each document that was displayed: clicked or not.

    One sort counts them, of a number of eight bytes for each row.  A log that memory cannot hold goes to
    :func:`~cfltr_core.clicks.events.read_events`.  Rows may be samples, one impression of one slot each:
    no page is looked at, so nothing is said of pages that were left out or cut.

    Parameters
    ----------
    query, document : (n_rows,)
        Whole numbers >= 0, as ``pandas.factorize`` gives them for names.
    rank : (n_rows,)
        Where the row's document was displayed, from 1.
    clicked : (n_rows,)
        1 or 0.
    period : (n_rows,), optional
        Whole numbers >= 0.

    Raises
    ------
    ValueError
        Naming the argument and the row: for what is no whole number, ranks that start at 0, clicks that are neither
        0 nor 1, arrays of different lengths or without rows, or numbers too large to be packed into 62 bits.

    Examples
    --------
    >>> from cfltr_core.propensity.strata import count_rows
    >>> counts = count_rows(query=[7, 7, 7, 7], document=[0, 1, 0, 1], rank=[1, 2, 2, 1], clicked=[1, 0, 1, 0])
    >>> counts.document, counts.rank, counts.impressions, counts.clicks
    (array([0, 0, 1, 1]), array([1, 2, 1, 2]), array([1, 1, 1, 1]), array([1, 1, 0, 0]))
    """
    given = {"query": query, "period": period, "document": document, "rank": rank, "clicked": clicked}
    n_rows = len(np.asanyarray(rank))
    if n_rows == 0:
        raise ValueError("rank: there is no row, so nothing can be counted")
    columns, largest = {}, {}
    for name, values in given.items():
        if values is not None:
            columns[name], largest[name] = _whole_numbers(values, n_rows, name)
    keys = [name for name in columns if name != "clicked"]
    bits = {name: max(1, largest[name].bit_length()) for name in keys}
    if sum(bits.values()) > 62:
        widest = max(keys, key=lambda name: bits[name])
        raise ValueError(
            f"{widest} goes up to {largest[widest]}: too large to be packed with the others; "
            f"number what occurs from 0, as in pandas.factorize({widest})[0]"
        )
    # The click is the last bit: one sort brings the rows of a term together.
    code = np.zeros(n_rows, dtype=np.int64)
    for name in keys:
        code <<= bits[name]
        code |= columns[name].astype(np.int64, copy=False)
    code <<= 1
    code |= columns["clicked"].astype(np.int64, copy=False)
    code.sort()
    first = np.flatnonzero(np.append(True, np.diff(code >> 1) != 0))
    impressions, clicks, code = np.diff(first, append=n_rows), np.add.reduceat(code & 1, first), code[first] >> 1
    terms: dict[str, Any] = {}
    for name in keys[::-1]:
        terms[name], code = code & ((1 << bits[name]) - 1), code >> bits[name]
    return DisplayCounts(**terms, impressions=impressions, clicks=clicks)


def _whole_numbers(values: ArrayLike, n_rows: int, name: str) -> tuple[NDArray[Any], int]:
    """A column of rows, checked, and the largest of its numbers."""
    column = checks.numbers(np.asanyarray(values), name, "a whole number, as pandas.factorize gives for names")
    if column.shape != (n_rows,):
        raise ValueError(f"{name}: expected shape ({n_rows},), one number a row, got {column.shape}")
    usual = (0, np.inf, "expected a whole number of 0 or more; drop rows without one")
    low, high, why = {"rank": (1, np.inf, checks.FROM_1), "clicked": (0, 1, checks.CLICK)}.get(name, usual)
    whole = column == np.floor(column) if column.dtype.kind == "f" else True
    checks.refuse(~((column >= low) & (column <= high) & whole), name, column, why)
    return column, int(column.max())
