"""Your own click log: raw events become counts, checked, without a row of a user leaving the database."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.clicks.event_checks import check_features, check_filter, check_pages, check_rows
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_lists import EventLists, event_lists, shown_lists
from cfltr_core.clicks.event_parts import part_of
from cfltr_core.clicks.event_report import EventReport
from cfltr_core.clicks.event_sources import event_table, import_ibis, run_numbers, run_query, without_deprecations
from cfltr_core.clicks.event_sql import event_rows, list_index, page_summary, page_table, term_counts
from cfltr_core.clicks.origins import WHOLE_QUERIES
from cfltr_core.ranking.ragged import query_of

if TYPE_CHECKING:
    import pandas as pd

PARTS = ("train", "validation", "test")
# Strata by period compare ranks within it: each needs many sessions.
MOST_PERIODS = 1000


def read_events(
    source: Any,
    features: Any = None,
    *,
    columns: Mapping[str, str] | None = None,
    split: Sequence[float] | None = (0.6, 0.2, 0.2),
    split_by: Literal["session", "query"] = "session",
    unknown: Literal["error", "drop"] = "error",
    memory: str = "1GB",
) -> Events:
    """Check and count raw events, one row for each displayed document: clicked or not.

    One expression in Ibis checks and counts.  DuckDB runs it inside this process, out of core; given an Ibis table,
    the database runs it where the table lies.  Only counts come back, and where something is wrong the first rows.

    A *session* is one page of one query.  Its rows have the columns ``session``, ``query``, ``document``, ``position``
    (from 1, without a gap) and ``clicked`` (1 or 0); where known ``ranker``, ``period`` (relevance may change from one
    to the next) and ``length`` (documents on the page).

    Parameters
    ----------
    source : data frame, path, or Ibis table
        A pandas data frame; Parquet or CSV files as a path, a folder, a glob or a list of paths; an Ibis table.
    features : data frame, path, or Ibis table, optional
        Columns ``query`` and ``document``, and numbers: the features.  Rows in any order, one for each candidate.
        Without them the candidates of a query are the documents that it showed, with one constant feature: enough to
        estimate a curve and to decide between rankers whose scores are given by name.
    columns : mapping, optional
        What the source calls a column, by the name it has here: ``{"position": "rank"}``.  With ``{"user": …}`` whole
        users are dealt to 64 groups, which are counted apart: who asks often makes sessions alike, and decisions allow
        for it.
    split : three shares, optional
        Of the sessions for *train*, *validation* and *test*.  A session's part follows from its id alone, for text by
        the database's MD5 (Druid, Impala and SQLite have none).  None makes one part, *all*.
    split_by : "session" or "query"
        Whether a part has whole sessions or whole queries.  By session a ranker is judged on the queries that it learnt
        from, and one that remembers them looks better than it is on queries to come; by query it is judged on others.
    unknown : str
        "error" refuses a displayed document without features; "drop" leaves its whole sessions out, and counts them.
    memory : str
        What DuckDB may hold at once, as in ``"1GB"``.  For an Ibis table of your own it means nothing.

    Raises
    ------
    ModuleNotFoundError
        Without the extra: ``pip install 'cfltr-core[logs]'``.
    ValueError, TypeError
        For anything that would make the counts wrong, naming the first offending session, query, document and position
        and the remedy: missing columns or values, text where numbers are due, positions from 0, pages with a gap or a
        duplicate, clicks that are neither 0 nor 1, documents without features, sessions over several queries; and logs
        that were filtered to pages with a click, or cut at the last one.

    Examples
    --------
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> features = pd.DataFrame({"query": ["shoes"] * 3, "document": ["A", "B", "C"], "age": [3, 1, 2]})
    >>> rows = pd.DataFrame({
    ...     "session": [1, 1, 1, 2, 2, 2], "query": ["shoes"] * 6, "document": list("ABCCAB"),
    ...     "position": [1, 2, 3, 1, 2, 3], "clicked": [1, 0, 0, 0, 0, 0],
    ... })
    >>> events = cf.read_events(rows, features, split=None)
    >>> events.log(cf.PositionBasedUser([1, 1/2, 1/3]))
    ClickLog(1 clicks in 2 sessions, 6 terms)
    >>> events.index.values.tolist()  # the rows of the features, and of every log
    [['shoes', 'A'], ['shoes', 'B'], ['shoes', 'C']]
    >>> events.report
    events       6 in 2 sessions, 1 clicks, 1 sessions without a click
    positions    1 … 3
    queries      1, of which 0 without a session, 0 with one candidate
    documents    3, of which 0 never shown
    periods      0 queries showed other documents in one period than in another
    left out     0 sessions (0 events), 0 % of what was read: a document had no features
    parts        all 2
    split        none: all sessions are one part
    >>> cf.read_events(rows[rows.session == 1], features)
    Traceback (most recent call last):
    ValueError: source: none of 1 sessions is without a click: the log was filtered, and what is examined cannot be \
told from it; take it again with the pages on which nothing was clicked
    """
    checks.arguments(read_events, locals())
    shares = _shares(split)
    import_ibis()
    with without_deprecations():
        known = None if features is None else event_lists(features, columns)
    with without_deprecations(), event_table(source, columns, memory=memory) as table:
        lists = shown_lists(table) if known is None else known
        n_rows = check_rows(table, lists)
        part_of(table[split_by], shares)  # where sessions cannot be dealt out, it says so before pages are looked at
        index = list_index(lists)
        rows = event_rows(table, index)
        pages = page_table(rows, int(np.diff(lists.offsets).max()))
        summary = run_query(page_summary(pages))
        check_pages(rows, pages, summary)
        dropped = (0, 0)
        if unknown == "error":
            check_features(rows, summary)
        elif summary["unknown"].sum() > 0:
            dropped = (int(summary["unknown"].sum()), int(summary["unknown_rows"].sum()))
            table = table.anti_join(pages.filter(pages.unknown > 0), "session")
            pages = pages.filter(pages.unknown == 0)
            before, summary = summary, run_query(page_summary(pages))
            if len(summary) == 0 or summary["sessions"].sum() == 0:
                check_features(rows, before)  # nothing would be left; it names the first rows
        check_filter(summary)
        names = {name: _names(summary, name) for name in ("ranker", "period")}
        numbered = {name: _numbered(name, found) for name, found in names.items() if found != (None,)}
        counts = run_numbers(term_counts(table, index, shares, numbered, split_by=split_by))
    parts = ("all",) if split is None else PARTS
    said = "none: all sessions are one part"
    if split is not None:
        whole = {"session": "whole sessions", "query": WHOLE_QUERIES}[split_by]
        said = " : ".join(f"{share:g}" for share in shares)
        said = f"{said}, {whole}, by a number made of the {split_by}'s id alone"
    return _events(lists, counts, names, parts, summary=summary, n_rows=n_rows, dropped=dropped, split=said)


def _shares(split: Sequence[float] | None) -> list[float]:
    """The shares of the parts, checked."""
    if split is None:
        return [1.0]
    shares = checks.within(list(split), 0, 1, "split", "a share of the sessions")
    if shares.shape != (len(PARTS),) or abs(shares.sum() - 1) > 1e-9:
        raise ValueError(f"split is {split!r}: expected three shares that add up to 1, of {', '.join(PARTS)}; or None")
    return [float(share) for share in shares]


def _names(summary: pd.DataFrame, name: str) -> tuple[Any, ...]:
    """The names of rankers or periods, in order; one None where there are none."""
    if name not in summary:
        return (None,)
    found = tuple(sorted(summary[name].unique().tolist()))
    if name == "period" and len(found) > MOST_PERIODS:
        raise ValueError(
            f"source: there are {len(found)} periods, from {found[0]!r} to {found[-1]!r}: ranks are compared within a "
            "period; make them months, as in frame.assign(period=frame['time'].dt.strftime('%Y-%m')) of pandas, "
            "or table.mutate(period=table.time.truncate('M')) of Ibis"
        )
    return found


def _numbered(name: str, found: tuple[Any, ...]) -> Any:
    """Names and their numbers as an Ibis table."""
    import pandas as pd

    return import_ibis().memtable(pd.DataFrame({name: list(found), f"{name}_number": np.arange(len(found))}))


def _events(
    lists: EventLists,
    counts: Mapping[str, IntArray],
    names: Mapping[str, tuple[Any, ...]],
    parts: tuple[str, ...],
    *,
    summary: pd.DataFrame,
    n_rows: int,
    dropped: tuple[int, int],
    split: str,
) -> Events:
    """The counts that came back as Events with their report."""
    nothing = np.zeros_like(counts["row"])
    table = {
        "document": counts["row"],
        "rank": counts["position"],
        **{name: counts.get(name, nothing) for name in names},
        "part_number": counts["part"],
        "user_group": counts.get("user_group", nothing),
        "impressions": counts["impressions"],
        "clicks": counts["clicks"],
    }
    order = _order([table[name] for name in ("document", "rank", "ranker", "period", "part_number", "user_group")])
    table = {name: column[order] for name, column in table.items()}
    top = table["rank"] == 1
    n_queries = len(lists.offsets) - 1
    asked = _different(query_of(table["document"][top], lists.offsets))
    groups = [
        (f"{name} {group!r}", int(found["sessions"]), int(found["clicked"]))
        for name in ("ranker", "period")
        if name in summary
        for group, found in summary.groupby(name).sum(numeric_only=True).iterrows()
    ]
    report = EventReport(
        rows=n_rows - dropped[1],
        sessions=int(summary["sessions"].sum()),
        clicks=int(table["clicks"].sum()),
        without_click=int((summary["sessions"] - summary["clicked"]).sum()),
        positions=int(summary["positions"].max()),
        queries=n_queries,
        unasked=n_queries - len(asked),
        single=int((np.diff(lists.offsets) == 1).sum()),
        documents=len(lists.index),
        unseen=len(lists.index) - len(_different(table["document"])),
        changing=_changing(table, lists),
        dropped_sessions=dropped[0],
        dropped_rows=dropped[1],
        groups=tuple(groups),
        parts=tuple(
            (name, int(table["impressions"][top & (table["part_number"] == i)].sum())) for i, name in enumerate(parts)
        ),
        split=split,
    )
    return Events(
        features=lists.features,
        feature_names=lists.names,
        offsets=lists.offsets,
        index=lists.index,
        rankers=names["ranker"],
        periods=names["period"],
        parts=parts,
        report=report,
        **table,
    )


def _order(keys: Sequence[np.ndarray]) -> np.ndarray:
    """The order of the first key, then of the second …: as one number, which sorts several times faster."""
    widths = [int(key.max()) + 1 for key in keys]
    if math.prod(widths) >= 2**63:
        return np.lexsort(keys[::-1])
    code = np.zeros(len(keys[0]), dtype=np.int64)
    for key, width in zip(keys, widths, strict=True):
        code = code * width + key
    return np.argsort(code, kind="stable")


def _changing(table: Mapping[str, np.ndarray], lists: EventLists) -> int:
    """Queries whose shown documents are not the same in all periods in which they were asked."""
    n_periods = int(table["period"].max()) + 1
    document, period = np.divmod(_different(table["document"] * n_periods + table["period"]), n_periods)
    asked = _different(query_of(document, lists.offsets) * n_periods + period) // n_periods
    times = np.bincount(asked, minlength=len(lists.offsets) - 1)
    of_shown = np.bincount(document, minlength=len(lists.index))
    shown = np.flatnonzero(of_shown)
    query = query_of(shown, lists.offsets)
    return len(_different(query[of_shown[shown] != times[query]]))


def _different(values: IntArray) -> IntArray:
    """The different ``values`` in ascending order: sorted once, which is several times faster than np.unique."""
    ascending = np.sort(values)
    return ascending[np.append(True, ascending[1:] != ascending[:-1])] if len(ascending) else ascending
