"""What is wrong with events, told with the first offending rows and the remedy.

The database counts the faults; only when there is one are its first rows fetched, the first in the order of session,
position and document, so that the message is the same wherever the events lie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_core.clicks.event_lists import EventLists, is_text
from cfltr_core.clicks.event_sources import run_query
from cfltr_core.clicks.event_sql import counted, found_twice, row_faults

if TYPE_CHECKING:
    import pandas as pd

# Rows that a message names.
SHOWN = 3
# A part of the log is called filtered when chance would leave its pages so with less than this probability.
CHANCE = 1e-6


def check_rows(table: Any, lists: EventLists) -> int:
    """Refuse events whose columns are of another kind, and rows that are no events; return how many rows there are.

    ``table`` is an Ibis table with the names of this package; the ``lists`` are those of its features.

    Raises
    ------
    ValueError
        Naming the column, how many rows it concerns, the first of them, and the remedy.

    Examples
    --------
    >>> import ibis
    >>> import pandas as pd
    >>> from cfltr_core.clicks.event_checks import check_rows
    >>> from cfltr_core.clicks.event_lists import event_lists
    >>> lists = event_lists(pd.DataFrame({"query": [7], "document": [1], "age": [3]}))
    >>> row = {"session": [1], "query": [7], "document": [1], "position": [0], "clicked": [1]}
    >>> check_rows(ibis.memtable(row), lists)
    Traceback (most recent call last):
    ValueError: source: position is 0 in 1 of 1 rows (session 1, query 7, document 1, position 0): positions start at \
1; add 1 to positions that start at 0
    """
    _check_kinds(table, lists)
    faults = row_faults(table)
    numbers = {f"fault_{i}": counted(bad).coalesce(0) for i, (_, bad, _) in enumerate(faults.values())}
    found = run_query(table.aggregate(rows=table.count(), **numbers)).iloc[0]
    n_rows = int(found["rows"])
    if n_rows == 0:
        raise ValueError("source: there is no row, so nothing can be counted; check the path, or what was selected")
    for i, (what, (column, bad, remedy)) in enumerate(faults.items()):
        if found[f"fault_{i}"] > 0:
            first = run_query(_in_order(table.filter(bad)).limit(SHOWN))
            raise ValueError(
                f"source: {what} in {int(found[f'fault_{i}'])} of {n_rows} rows ({_rows_said(first, column)}): {remedy}"
            )
    return n_rows


def _check_kinds(table: Any, lists: EventLists) -> None:
    """Numbers where numbers are due, names where names are; queries and documents of one kind with the features'."""
    for name in table.columns:
        kind = table[name].type()
        if name in ("position", "length", "clicked"):
            if kind.is_numeric() and (name == "clicked" or not kind.is_boolean()):
                continue
            if name == "clicked" and kind.is_boolean():
                continue
            bad = table[name].try_cast("float64").isnull() & table[name].notnull() if kind.is_string() else None
            first = run_query(_in_order(table.filter(bad)).limit(1)) if bad is not None else None
            if first is None or len(first) == 0:
                first = run_query(_in_order(table).limit(1))
            where = f" ({_rows_said(first, name)})" if len(first) else ""
            raise ValueError(f"source: column {name!r} holds {kind}, not numbers{where}: correct it, and cast the rest")
        dated = name == "period" and (kind.is_date() or kind.is_timestamp())
        if not (kind.is_integer() or kind.is_string() or dated):
            # A missing value makes pandas turn whole numbers into others, and is the better message.
            missing = table[name].isnull() | table[name].isnan() if kind.is_floating() else table[name].isnull()
            first = run_query(_in_order(table.filter(missing)).limit(1))
            if len(first):
                raise ValueError(
                    f"source: {name} is missing ({_rows_said(first, name)}): fill in the {name}, or leave the whole "
                    "session out"
                )
            first = run_query(_in_order(table).limit(1))
            where = f" ({_rows_said(first)})" if len(first) else ""
            raise ValueError(
                f"source: column {name!r} holds {kind}{where}: names are whole numbers or text; cast it to one of them"
            )
    for name in ("query", "document"):
        kind = table[name].type()
        text = is_text(lists.index[name])
        if kind.is_string() != text:
            theirs = "text" if text else "whole numbers"
            raise ValueError(
                f"source: column {name!r} holds {kind}, but in the features it is {theirs} "
                f"({lists.index[name].iloc[0]!r}): cast one of them, so that they can be compared"
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
    ValueError: source: a page is not whole in 1 of 1 sessions (session 5, query 7: positions 1, 3; 2 is missing): \
keep all displayed documents of a page, clicked or not; number them without what is no result
    """
    total = summary.sum(numeric_only=True)
    n_pages = int(total["sessions"])
    for column, what, remedy in (
        ("querys", "there are several queries", "a session is one page of one query; give each page an id of its own"),
        ("rankers", "there are several rankers", "one ranker shows a page; give each page an id of its own"),
        ("periods", "there are several periods", "a page is shown at one time; take the period of its first event"),
        ("lengths", "there are several lengths", "a page has one length; correct it"),
        ("users", "there are several users", "a page is shown to one person; give each page an id of its own"),
    ):
        if total.get(column, 0) > 0:
            page = _first_page(rows, pages.filter(pages[column]))
            said = ", ".join(map(repr, dict.fromkeys(page[column[:-1]].tolist())))
            _refuse(what, int(total[column]), n_pages, page, f"{column[:-1]} {said}", remedy)
    places = pages.filter(pages.incomplete)
    count = int(total["incomplete"])
    if count == 0 and total["deep"] > 0:
        # Too long for a number of 64 bits: counted one by one.
        places = found_twice(rows, pages.filter(pages.deep), "position")
        count = len(run_query(places))
    if count > 0:
        page = _first_page(rows, places)
        positions = page["position"].tolist()
        twice = [at for i, at in enumerate(positions) if at in positions[:i]]
        if twice:
            documents = page.loc[page["position"] == twice[0], "document"].tolist()[:SHOWN]
            _refuse(
                "a page has two documents at one position, or is not whole,",
                count,
                n_pages,
                page,
                f"documents {', '.join(map(repr, documents))} at position {twice[0]}",
                "keep each display once; who asks twice has two pages, each with an id of its own",
            )
        missing = next(at for at in range(1, len(positions) + 2) if at not in positions)
        _refuse(
            "a page is not whole",
            count,
            n_pages,
            page,
            f"positions {', '.join(map(str, positions[:10]))}; {missing} is missing",
            "keep all displayed documents of a page, clicked or not; number them without what is no result",
        )
    if total["again"] > 0:
        doubtful = found_twice(rows, pages.filter(pages.again), "row")
        count = len(run_query(doubtful))
        if count > 0:
            page = _first_page(rows, doubtful)
            documents = page["document"].tolist()
            twice = next(name for i, name in enumerate(documents) if name in documents[:i])
            at = page.loc[page["document"] == twice, "position"].tolist()
            _refuse(
                "a page has a document twice",
                count,
                n_pages,
                page,
                f"document {twice!r} at positions {', '.join(map(str, at))}",
                "keep one of its places, or give the two displays documents of their own",
            )
    if total.get("short", 0) > 0:
        page = _first_page(rows, pages.filter(pages.short))
        _refuse(
            "a page has not its length",
            int(total["short"]),
            n_pages,
            page,
            f"length {page['length'].iloc[0]}, but {len(page)} rows",
            "keep all displayed documents of a page, clicked or not",
        )


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
        ``sessions``, ``clicked``, ``ending`` and ``positions`` of each ``ranker`` and ``period``.

    Raises
    ------
    ValueError
        For no click, no page without a click, or pages that all end in a click.

    Examples
    --------
    >>> import pandas as pd
    >>> from cfltr_core.clicks.event_checks import check_filter
    >>> check_filter(pd.DataFrame({"sessions": [90], "clicked": [90], "ending": [8], "positions": [10]}))
    Traceback (most recent call last):
    ValueError: source: none of 90 sessions is without a click: the log was filtered, and what is examined cannot be \
told from it; take it again with the pages on which nothing was clicked
    """
    total = summary.sum(numeric_only=True)
    sessions, clicked, ending = (int(total[name]) for name in ("sessions", "clicked", "ending"))
    if clicked == 0:
        raise ValueError(f"source: none of {sessions} sessions has a click, so nothing can be learnt; check clicked")
    filtered = (
        "the log was filtered, and what is examined cannot be told from it; take it again with the pages on which "
        "nothing was clicked"
    )
    cut = (
        "the pages were cut at the last click, and what is examined cannot be told from them; take the log again with "
        "all displayed documents"
    )
    if clicked == sessions:
        raise ValueError(f"source: none of {sessions} sessions is without a click: {filtered}")
    if summary["positions"].max() > 1 and ending == clicked:
        raise ValueError(f"source: all {clicked} pages with a click end in one: {cut}")
    for name in ("ranker", "period"):
        groups = summary.groupby(name, sort=True).sum(numeric_only=True) if name in summary else summary[:0]
        for group, (n, k, e) in zip(groups.index, groups[["sessions", "clicked", "ending"]].to_numpy(), strict=True):
            if _by_chance(n, k, sessions, clicked) < CHANCE:
                raise ValueError(f"source: none of {n} sessions of {name} {group!r} is without a click: {filtered}")
            if _by_chance(k, e, clicked, ending) < CHANCE:
                raise ValueError(f"source: all {k} pages of {name} {group!r} with a click end in one: {cut}")


def _by_chance(n: int, hits: int, of: int, all_hits: int) -> float:
    """How likely all ``n`` of a group are hits at the rate of the others; 1 if they are not, or there are no others."""
    if hits < n or n in (0, of):
        return 1.0
    # One more of either kind: a rate of 1 is never certain.
    return float(np.exp(n * np.log((all_hits - hits + 1) / (of - n + 2))))


def _refuse(what: str, count: int, n_pages: int, page: pd.DataFrame, detail: str, remedy: str) -> None:
    first = page.iloc[0]
    raise ValueError(
        f"source: {what} in {count} of {n_pages} sessions (session {_said(first['session'])}, query "
        f"{_said(first['query'])}: {detail}): {remedy}"
    )


def _first_page(rows: Any, sessions: Any) -> pd.DataFrame:
    """The rows of the first of ``sessions``."""
    first = sessions.select("session").order_by("session").limit(1)
    return run_query(_in_order(rows.semi_join(first, "session")).limit(1000))


def _in_order(rows: Any) -> Any:
    return rows.order_by("session", "query", "position", "document")


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
