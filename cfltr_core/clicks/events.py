"""Your own click log: raw events become counts, checked, without a row of a user leaving the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from cfltr_core import checks
from cfltr_core.checks import IntArray
from cfltr_core.clicks.event_checks import check_features, check_filter, check_pages, check_rows
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_lists import event_lists, shown_lists
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
    gaps: Literal["error", "keep"] = "error",
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
    gaps : str
        "error" refuses a page whose positions have a gap.  "keep" takes positions for the slots of the page, where
        something else, an advertisement say, may stand between.  It also takes rows that are samples, each one
        impression of one slot with a session of its own; what needs pages then stays unchecked, and the report says so.
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
        check_rows(table, lists["index"])
        part_of(table[split_by], shares)  # where sessions cannot be dealt out, it says so before pages are looked at
        index = list_index(lists["index"])
        rows = event_rows(table, index)
        pages = page_table(rows, int(np.diff(lists["offsets"]).max()), gaps=gaps)
        summary = read = run_query(page_summary(pages))
        check_pages(rows, pages, summary)
        if unknown == "error":
            check_features(rows, summary)
        elif summary["unknown"].sum() > 0:
            table = table.anti_join(pages.filter(pages.unknown > 0), "session")
            summary = run_query(page_summary(pages.filter(pages.unknown == 0)))
            if summary["sessions"].sum() == 0:
                check_features(rows, read)  # nothing would be left; it names the first rows
        check_filter(summary)
        names = {name: _names(summary, name) for name in ("ranker", "period")}
        numbered = {name: _numbered(name, found) for name, found in names.items() if found != (None,)}
        counts = run_numbers(term_counts(table, index, shares, numbered, split_by=split_by, gaps=gaps))
    nothing = np.zeros_like(counts["row"])
    terms: dict[str, Any] = {
        "document": counts["row"],
        "rank": counts["position"],
        "part_number": counts["part"],
        "impressions": counts["impressions"],
        "clicks": counts["clicks"],
        **{name: counts.get(name, nothing) for name in (*names, "user_group")},
        "tops": counts.get("tops", np.where(counts["position"] == 1, counts["impressions"], 0)),
    }
    parts = ("all",) if split is None else PARTS
    lines = _report(terms, lists["offsets"], read=read, kept=summary, shares=dict(zip(parts, shares, strict=True)))
    if split is not None:
        whole = {"session": "whole sessions", "query": WHOLE_QUERIES}[split_by]
        given = " : ".join(f"{share:g}" for share in shares)
        lines["split"] = f"{given}, {whole}, by a number made of the {split_by}'s id alone"
    report = EventReport(lines=lines, dropped_sessions=int(read["unknown"].sum()))
    return Events(
        **lists, **terms, rankers=names["ranker"], periods=names["period"], parts=parts, report=report
    )  # fmt: skip


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


def _report(
    terms: Mapping[str, IntArray],
    offsets: IntArray,
    *,
    read: pd.DataFrame,
    kept: pd.DataFrame,
    shares: Mapping[str, float],
) -> dict[str, str]:
    """The lines of the report: ``terms`` of what was ``kept`` of the sessions that were ``read``, in parts."""
    n_queries, n_docs = len(offsets) - 1, int(offsets[-1])
    shown = np.bincount(terms["document"], minlength=n_docs) > 0
    unasked = n_queries - int(np.logical_or.reduceat(shown, offsets[:-1]).sum())
    total, before = (table.sum(numeric_only=True).astype(int) for table in (kept, read))
    dealt = np.bincount(terms["part_number"], terms["tops"], minlength=len(shares)).astype(int)
    lines = {
        "events": f"{total['rows']:,} in {total['sessions']:,} sessions, {terms['clicks'].sum():,} clicks, "
        f"{total['sessions'] - total['clicked']:,} sessions without a click",
        "positions": f"1 … {int(kept['positions'].max())}",
        "queries": f"{n_queries:,}, of which {unasked:,} without a session, "
        f"{(np.diff(offsets) == 1).sum():,} with one candidate",
        "documents": f"{n_docs:,}, of which {n_docs - shown.sum():,} never shown",
        "periods": f"{_changing(terms, offsets):,} queries showed other documents in one period than in another",
        "left out": f"{before['unknown']:,} sessions ({before['unknown_rows']:,} events), "
        f"{100 * before['unknown'] / before['sessions']:.3g} % of what was read: a document had no features",
    }
    if total["gaps"]:
        lines["positions"] += f", the slots of a page; {total['gaps']:,} sessions have an empty one above a document"
    if total["rows"] == total["sessions"] and total["gaps"]:
        lines["samples"] = (
            "each row is one slot of its page; without pages nobody can tell whether those without a click were left "
            "out, pages were cut at a click, or people stop after one"
        )
    for name in ("ranker", "period"):
        groups = kept.groupby(name).sum(numeric_only=True) if name in kept else kept[:0]
        for group, found in groups.astype(int, errors="ignore").iterrows():
            lines[f"{name} {group!r}"] = f"{found['sessions']:,} sessions, {found['clicked']:,} with a click"
    lines["parts"] = ", ".join(f"{name} {n:,}" for name, n in zip(shares, dealt, strict=True))
    lines["split"] = "none: all sessions are one part"
    return lines


def _changing(terms: Mapping[str, IntArray], offsets: IntArray) -> int:
    """Queries whose shown documents are not the same in all periods in which they were asked."""
    n_periods = int(terms["period"].max()) + 1
    document, period = np.divmod(_different(terms["document"] * n_periods + terms["period"]), n_periods)
    query = query_of(document, offsets)
    periods_asked = np.bincount(_different(query * n_periods + period) // n_periods, minlength=len(offsets) - 1)
    periods_shown = np.bincount(document, minlength=int(offsets[-1]))
    return len(_different(query[periods_shown[document] != periods_asked[query]]))


def _different(values: IntArray) -> IntArray:
    """The different ``values`` in ascending order: sorted once, which is several times faster than np.unique."""
    ascending = np.sort(values)
    return ascending[np.diff(ascending, prepend=-1) > 0]
