"""What is wrong with events, told with the first offending rows and the remedy.

The database counts the faults; only when there is one are its first rows fetched, the first in the order of session,
position and document, so that the message is the same wherever the events lie.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_core.clicks.event_lists import is_text
from cfltr_core.clicks.event_sources import run_query
from cfltr_core.clicks.event_sql import counted, found_twice, row_faults

if TYPE_CHECKING:
    import pandas as pd

# Rows that a message names.
SHOWN = 3
# A part of the log is called filtered when chance would leave its pages so with less than this probability.
CHANCE = 1e-6


def check_rows(table: Any, index: pd.DataFrame) -> None:
    """Refuse events whose columns are of another kind, and rows that are no events.

    ``table`` is an Ibis table with the names of this package; ``index`` has query and document of each row of features.

    Raises
    ------
    ValueError
        Naming the column, how many rows it concerns, the first of them, and the remedy.

    Examples
    --------
    >>> import ibis
    >>> import pandas as pd
    >>> from cfltr_core.clicks.event_checks import check_rows
    >>> index = pd.DataFrame({"query": [7], "document": [1]})
    >>> row = {"session": [1], "query": [7], "document": [1], "position": [0], "clicked": [1]}
    >>> check_rows(ibis.memtable(row), index)
    Traceback (most recent call last):
    ValueError: source: position is 0 in 1 of 1 rows (session 1, query 7, document 1, position 0): positions start at \
1; add 1 to positions that start at 0
    """
    _check_kinds(table, index)
    faults = row_faults(table)
    numbers = {f"fault_{i}": counted(bad).coalesce(0) for i, (_, bad, _) in enumerate(faults.values())}
    found = run_query(table.aggregate(rows=table.count(), **numbers)).iloc[0]
    if found["rows"] == 0:
        raise ValueError("source: there is no row, so nothing can be counted; check the path, or what was selected")
    for i, (what, (column, bad, remedy)) in enumerate(faults.items()):
        if found[f"fault_{i}"] > 0:
            first = run_query(_in_order(table.filter(bad)).limit(SHOWN))
            raise ValueError(
                f"source: {what} in {int(found[f'fault_{i}'])} of {found['rows']} rows "
                f"({_rows_said(first, column)}): {remedy}"
            )


def _check_kinds(table: Any, index: pd.DataFrame) -> None:
    """Numbers where numbers are due, names where names are; queries and documents of one kind with the features'."""
    for name in table.columns:
        column, kind = table[name], table[name].type()
        number = (kind.is_boolean() and name == "clicked") or (kind.is_numeric() and not kind.is_boolean())
        day = name == "period" and (kind.is_date() or kind.is_timestamp())
        if name in ("position", "length", "clicked") and not number:
            words = column.notnull() & column.try_cast("float64").isnull() if kind.is_string() else column.notnull()
            where = _where(table, words, name) or _where(table, column.notnull(), name)
            raise ValueError(f"source: column {name!r} holds {kind}, not numbers{where}: correct it, and cast the rest")
        if name not in ("position", "length", "clicked") and not (kind.is_integer() or kind.is_string() or day):
            # A missing value makes pandas turn whole numbers into others, and is the better message.
            missing = column.isnull() | column.isnan() if kind.is_floating() else column.isnull()
            if where := _where(table, missing, name):
                raise ValueError(
                    f"source: {name} is missing{where}: fill in the {name}, or leave the whole session out"
                )
            raise ValueError(
                f"source: column {name!r} holds {kind}{_where(table, column.notnull())}: names are whole numbers or "
                "text; cast it to one of them"
            )
    for name in ("query", "document"):
        kind = table[name].type()
        text = is_text(index[name])
        if kind.is_string() != text:
            theirs = "text" if text else "whole numbers"
            raise ValueError(
                f"source: column {name!r} holds {kind}, but in the features it is {theirs} "
                f"({index[name].iloc[0]!r}): cast one of them, so that they can be compared"
            )


def check_pages(rows: Any, pages: Any, summary: pd.DataFrame) -> None:
    """Refuse pages that are not whole: ``summary`` has the counts, ``pages`` the sessions, ``rows`` their events.

    Raises
    ------
    ValueError
        For a session over several queries, rankers, periods or users, two documents at one position, a position that is
        missing, a document that a page has twice, or a page that is shorter than its length.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_checks import check_pages
    >>> from cfltr_core.clicks.event_sources import run_query
    >>> from cfltr_core.clicks.event_sql import page_summary, page_table
    >>> rows = ibis.memtable({"session": [5, 5], "query": [7, 7], "document": [1, 2], "position": [1, 3],
    ...                       "clicked": [1, 0], "row": [0, 1], "place": [0, 1]})
    >>> pages = page_table(rows, longest=2)
    >>> check_pages(rows, pages, run_query(page_summary(pages)))
    Traceback (most recent call last):
    ValueError: source: a page is not whole in 1 of 1 sessions (session 5, query 7: position 3 where 2 is due): \
keep all displayed documents of a page once, clicked or not, and number them 1, 2, …; who asks twice has two pages, \
each with an id of its own; where something else stood between, or each row is a sample, gaps="keep" keeps the slots
    """
    total = summary.sum(numeric_only=True)
    for fault, (what, detail, remedy) in PAGE_FAULTS.items():
        count = int(total.get(fault, 0))
        if count == 0:
            continue
        sessions = pages.filter(pages[fault])
        if fault in TWICE:
            sessions = found_twice(rows, sessions, TWICE[fault])
            count = len(run_query(sessions))
        if count > 0:
            first = sessions.select("session").order_by("session").limit(1)
            page = run_query(_in_order(rows.semi_join(first, "session")).limit(1000))
            where = ", ".join(f"{name} {_said(page[name].iloc[0])}" for name in ("session", "query"))
            raise ValueError(
                f"source: {what} in {count} of {int(total['sessions'])} sessions ({where}: {detail(page)}): {remedy}"
            )


def _different(name: str) -> Callable[[pd.DataFrame], str]:
    """What says which different values of a column a page has."""
    return lambda page: f"{name} {', '.join(map(repr, dict.fromkeys(page[name].tolist())))}"


def _out_of_place(page: pd.DataFrame) -> str:
    """The first position that is not one more than the number of those above."""
    wrong = (f"position {k} where {due} is due" for due, k in enumerate(page["position"], start=1) if k != due)
    return next(wrong, f"below position {len(page)}")


def _twice(name: str, other: str, where: str) -> Callable[[pd.DataFrame], str]:
    """What says which value of a column a page has twice first, and what stands there in the ``other`` column."""

    def detail(page: pd.DataFrame) -> str:
        value = page.loc[page[name].duplicated(), name].iloc[0]
        return f"{name} {_said(value)} {where} {', '.join(map(_said, page.loc[page[name] == value, other]))}"

    return detail


WHOLE = (
    "a page is not whole",
    _out_of_place,
    "keep all displayed documents of a page once, clicked or not, and number them 1, 2, …; who asks twice has two "
    "pages, each with an id of its own; where something else stood between, or each row is a sample, "
    'gaps="keep" keeps the slots',
)
# What may be wrong with a page, by the column of ``pages`` that says so: fault, what it shows on a page, remedy.
PAGE_FAULTS: dict[str, tuple[str, Callable[[pd.DataFrame], str], str]] = {
    "querys": (
        "there are several queries",
        _different("query"),
        "a session is one page of one query; give each page an id of its own",
    ),
    "rankers": (
        "there are several rankers",
        _different("ranker"),
        "one ranker shows a page; give each page an id of its own",
    ),
    "periods": (
        "there are several periods",
        _different("period"),
        "a page is shown at one time; take the period of its first event",
    ),
    "lengths": ("there are several lengths", _different("length"), "a page has one length; correct it"),
    "users": (
        "there are several users",
        _different("user"),
        "a page is shown to one person; give each page an id of its own",
    ),
    "incomplete": WHOLE,
    "deep": WHOLE,
    "clash": (
        "two documents stand at one position",
        _twice("position", "document", "has documents"),
        "correct the positions; who asks twice has two pages, each with an id of its own",
    ),
    "again": (
        "a page has a document twice",
        _twice("document", "position", "at positions"),
        "keep one of its places, or give the two displays documents of their own",
    ),
    "short": (
        "a page has not its length",
        lambda page: f"length {page['length'].iloc[0]}, but {len(page)} rows",
        "keep all displayed documents of a page, clicked or not",
    ),
}
# These columns say only that a page may be wrong: whether it has one of these twice is counted row by row.
TWICE = {"deep": "position", "clash": "position", "again": "row"}


def check_features(rows: Any, summary: pd.DataFrame) -> None:
    """Refuse events whose document has no features; ``rows`` and ``summary`` are those of :func:`check_pages`.

    Raises
    ------
    ValueError
        Naming the first such rows.

    Examples
    --------
    >>> import ibis
    >>> import pandas as pd
    >>> from cfltr_core.clicks.event_checks import check_features
    >>> row = {"session": [5], "query": [7], "document": [1], "position": [1], "row": [None]}
    >>> rows = ibis.memtable(pd.DataFrame(row))
    >>> check_features(rows, pd.DataFrame({"sessions": [1], "unknown": [1]}))
    Traceback (most recent call last):
    ValueError: source: a displayed document has no features in 1 of 1 sessions (session 5, query 7, document 1, \
position 1): add its row to the features, its ids written as in the events, or leave its sessions out, counted, with \
unknown="drop"
    """
    total = summary.sum(numeric_only=True)
    if total["unknown"] > 0:
        first = run_query(_in_order(rows.filter(rows.row.isnull())).limit(SHOWN))
        raise ValueError(
            f"source: a displayed document has no features in {int(total['unknown'])} of {int(total['sessions'])} "
            f"sessions ({_rows_said(first)}): add its row to the features, its ids written as in the events, or leave "
            'its sessions out, counted, with unknown="drop"'
        )


def check_filter(summary: pd.DataFrame) -> None:
    """Refuse a log from which pages without a click were taken out, or what stands below the last click of a page.

    No click is as likely at a deep position as it was if pages were kept for having one: examination would be wrong by
    a quarter, and no test of the clicks that are left can tell.  A ranker or a period that alone was filtered is
    refused too, when the pages of the others show that chance cannot have made it so.

    Parameters
    ----------
    summary : data frame
        ``sessions``, ``rows``, ``clicked`` and ``ending`` of each ``ranker`` and ``period``.

    Raises
    ------
    ValueError
        For no click, no page without a click, or pages that all end in a click.

    Examples
    --------
    >>> import pandas as pd
    >>> from cfltr_core.clicks.event_checks import check_filter
    >>> check_filter(pd.DataFrame({"sessions": [90], "rows": [900], "clicked": [90], "ending": [8]}))
    Traceback (most recent call last):
    ValueError: source: none of 90 sessions is without a click: the log was filtered, and what is examined cannot be \
told from it; take it again with the pages on which nothing was clicked
    """
    total = summary.sum(numeric_only=True)
    sessions, clicked, ending = (int(total[name]) for name in ("sessions", "clicked", "ending"))
    if clicked == 0:
        raise ValueError(f"source: none of {sessions} sessions has a click, so nothing can be learnt; check clicked")
    groups: list[tuple[Any, ...]] = [("", sessions, clicked, ending)]
    for name in ("ranker", "period"):
        found = summary.groupby(name).sum(numeric_only=True) if name in summary else summary[:0]
        groups += [
            (f" of {name} {group!r}", *map(int, numbers))
            for group, *numbers in found[["sessions", "clicked", "ending"]].itertuples()
        ]
    for whose, n, k, e in groups:
        if _chance_of_all(n, k, sessions, clicked) < CHANCE:
            raise ValueError(
                f"source: none of {n} sessions{whose} is without a click: the log was filtered, and what is examined "
                "cannot be told from it; take it again with the pages on which nothing was clicked"
            )
        if total["rows"] > sessions and _chance_of_all(k, e, clicked, ending) < CHANCE:
            raise ValueError(
                f"source: all {k} pages{whose} with a click end in one: the pages were cut at the last click, and what "
                "is examined cannot be told from them; take the log again with all displayed documents"
            )


def _chance_of_all(n: int, hits: int, of: int, all_hits: int) -> float:
    """How likely all ``n`` of a group are hits at the rate of the others; 1 if they are not, 0 without others."""
    if hits < n:
        return 1.0
    # One more of either kind: a rate of 1 is never certain.
    return float(np.exp(n * np.log((all_hits - hits + 1) / (of - n + 2)))) if n < of else 0.0


def _in_order(rows: Any) -> Any:
    return rows.order_by("session", "query", "position", "document")


def _where(table: Any, bad: Any, name: str = "session") -> str:
    """The first of the rows that are ``bad``, in brackets; nothing where none is."""
    first = run_query(_in_order(table.filter(bad)).limit(1))
    return f" ({_rows_said(first, name)})" if len(first) else ""


def _rows_said(rows: pd.DataFrame, also: str = "session") -> str:
    """The first rows, as a message names them: their four names, and the column that is wrong."""
    names = dict.fromkeys(("session", "query", "document", "position", also))
    return "; ".join(
        ", ".join(f"{name} {_said(row[name])}" for name in names if name in rows) for _, row in rows.iterrows()
    )


def _said(value: Any) -> str:
    """A value as the source has it: nothing is missing, 3 and not 3.0."""
    if value is None or type(value).__name__ in ("NAType", "NaTType") or value != value:
        return "missing"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return repr(value.item() if isinstance(value, np.generic) else value)
