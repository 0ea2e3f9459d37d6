"""What single sessions say of a log beyond its counts: sums over sessions, and counts by page, made where they lie.

Clicks of one session are independent under the position model, given what was displayed.  With p̂ the click rate of a
document at its rank, the rates of the places of a page are independent too, so that Π (1 − p̂) over the page has
exactly the mean Π (1 − p): the number of pages without a click that independence implies, with no model of examination
or attraction.  The same holds for Π p̂, pages on which everything is clicked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_parts import part_of
from cfltr_core.clicks.event_sources import import_ibis, run_query
from cfltr_core.clicks.event_sql import counted, event_rows, list_index
from cfltr_core.clicks.pages import PageCounts
from cfltr_core.ranking.ragged import query_of

if TYPE_CHECKING:
    import pandas as pd

# Stands for the logarithm of 0, with a power that is 0 to every digit.
NEVER = -1e4
# A page of fewer places may be clicked all over by anybody.
LEAST_PLACES = 3
# Pages of which the clicks above are compared: those with most sessions.
MOST_PAGES = 50_000
# Places by which pages are told apart, and of which clicks are counted one by one: two columns each.
MOST_PLACES = 50
# Where a page has no document.
NOBODY = -1


@dataclass(frozen=True, kw_only=True)
class SessionSums:
    """What :func:`session_sums` adds up: a row of ``groups`` for each ranker and period, and the ``pages``.

    Parameters
    ----------
    groups : data frame
    pages : PageCounts or None
        Those that both halves of the sessions were shown, at most 50,000; None if there is none.
    """

    groups: pd.DataFrame
    pages: PageCounts | None


def session_sums(table: Any, events: Events) -> SessionSums:
    """Add up over sessions what tells of filters, cuts and bots, and count pages in two halves of the sessions.

    ``none`` pages have no click, where independence implies ``none_expected``; ``none_excess`` is the sum of

        r_s = 1[no click] − Π_k (1 − p̂_k) (1 − Σ_k (x_k − p̂_k)/(1 − p̂_k)),

    in which x_k are the clicks of session s.  It has mean 0, as their difference has, but not the noise of the rates,
    and its terms are uncorrelated from session to session: ``none_variance`` is Σ r_s² n/(n − 1), with n the fewest
    sessions of a rate of the page; a rate of one session is that session's click, and says nothing.  ``all`` and
    ``all_expected`` are pages of three places or more, not short, on which all is clicked, with ``all_clicks``.
    ``short`` are pages shorter than another of their query, ranker and period; ``short_excess`` is the clicks at
    their last place beyond its rate.

    Sessions with a document that has no features are left out, as when ``events`` were read with ``unknown="drop"``.
    A session's half follows from its id alone, as its part does.

    Parameters
    ----------
    table : Ibis table
        The rows of :func:`~cfltr_core.clicks.event_sources.event_table`.
    events : Events
        Of the same rows.

    Examples
    --------
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> from cfltr_core.clicks.event_sources import event_table
    >>> from cfltr_core.logs.session_sums import session_sums
    >>> rows = pd.DataFrame({"session": [1, 1, 2, 2], "query": 7, "document": [1, 2] * 2, "position": [1, 2] * 2,
    ...                      "clicked": [1, 0, 0, 1]})
    >>> events = cf.read_events(pd.concat([rows, rows.assign(session=rows.session + 2, clicked=0)]),
    ...                         pd.DataFrame({"query": 7, "document": [1, 2], "age": [3, 1]}), split=None)
    >>> with event_table(rows) as table:
    ...     sums = session_sums(table, events)
    >>> sums.groups[["sessions", "clicks", "none", "none_expected"]].values.tolist()
    [[2.0, 2.0, 0.0, 0.5]]
    """
    rows = _rated_rows(table, events)
    sessions = _session_table(rows, events)
    return SessionSums(groups=run_query(_groups(sessions)), pages=_page_counts(sessions, events))


def _rated_rows(table: Any, events: Events) -> Any:
    """The rows with the row of their document and, as ``rate``, how often it is clicked at its position."""
    rows = event_rows(table, list_index(events.index))
    if events.report.dropped_sessions:
        rows = rows.anti_join(rows.filter(rows.row.isnull()), "session")
    terms = rows.group_by("row", "position").agg(shown=rows.count(), rate=rows.clicked.mean())
    return rows.join(terms, ["row", "position"])


def _session_table(rows: Any, events: Events) -> Any:
    """One row for each session: its clicks, and what the rates of its ``rows`` imply."""
    ibis = import_ibis()
    always, never = rows.rate >= 1, rows.rate <= 0
    sessions = rows.group_by("session").agg(
        query=rows["query"].min(),
        places=rows.count(),
        clicks=rows.clicked.sum(),
        least=rows.shown.min(),
        log_none=always.ifelse(NEVER, (1 - always.ifelse(0.0, rows.rate)).ln()).sum(),
        log_all=never.ifelse(NEVER, never.ifelse(1.0, rows.rate).ln()).sum(),
        linear=always.ifelse(0.0, (rows.clicked - rows.rate) / (1 - always.ifelse(0.0, rows.rate))).sum(),
        last_click=rows.clicked.argmax(rows.position),
        last_rate=rows.rate.argmax(rows.position),
        **{f"click_{k}": (rows.position == k).ifelse(rows.clicked, 0).sum() for k in _places(events)},
        **{f"shown_{k}": (rows.position == k).ifelse(rows.row, NOBODY).max() for k in _places(events)},
        **{name: rows[name].min() for name in ("ranker", "period") if name in rows.columns},
    )
    kind = [name for name in ("query", "ranker", "period") if name in sessions.columns]
    return sessions.mutate(longest=sessions.places.max().over(ibis.window(group_by=kind)))


def _groups(sessions: Any) -> Any:
    """Sums over the ``sessions`` of each ranker and period."""
    ibis = import_ibis()
    s = sessions
    no_click = (s.clicks == 0).ifelse(1.0, 0.0)
    implied = s.log_none.exp()
    residual = no_click - implied * (1 - s.linear)
    # A rate of one session is that session's click: it says nothing.
    own = (s.least / (s.least - 1.0).nullif(0)).coalesce(0.0)
    short = s.places < s.longest
    # A page that was cut at its last click is no bot's.
    whole = (s.places >= LEAST_PLACES) & ~short
    last = short.ifelse(s.last_click - s.last_rate, 0.0)
    groups = [name for name in ("ranker", "period") if name in sessions.columns]
    return sessions.group_by(*groups, **({} if groups else {"group": ibis.literal(0)})).agg(
        sessions=s.count(),
        clicks=s.clicks.sum(),
        none=no_click.sum(),
        none_expected=implied.sum(),
        none_excess=residual.sum(),
        none_variance=(residual * residual * own).sum(),
        all=counted(whole & (s.clicks == s.places)),
        all_expected=whole.ifelse(s.log_all.exp(), 0.0).sum(),
        all_clicks=(whole & (s.clicks == s.places)).ifelse(s.clicks, 0).sum(),
        short=counted(short),
        short_excess=last.sum(),
        short_variance=(last * last * own).sum(),
    )


def _page_counts(sessions: Any, events: Events) -> PageCounts | None:
    """Pages that both halves of the ``sessions`` were shown, those with most sessions first; None if there is none."""
    ibis = import_ibis()
    half = part_of(sessions.session, [0.5, 0.5])
    places = _places(events)
    halves = {f"n_{h}": counted(half == h) for h in (0, 1)}
    clicks = {f"clicks_{k}_{h}": (half == h).ifelse(sessions[f"click_{k}"], 0).sum() for k in places for h in (0, 1)}
    shown = [f"shown_{k}" for k in places]
    pages = sessions.group_by(*shown).agg(**halves, **clicks)
    pages = pages.filter((pages.n_0 > 0) & (pages.n_1 > 0))
    frame = run_query(pages.order_by(ibis.desc(pages.n_0 + pages.n_1), *shown).limit(MOST_PAGES))
    if len(frame) == 0:
        return None
    row = frame[shown].to_numpy().astype(np.int64)
    page, place = np.nonzero(row != NOBODY)
    table = np.stack([frame[[f"clicks_{k}_{h}" for k in places]].to_numpy() for h in (0, 1)], axis=2)
    return PageCounts(
        page=np.unique(page, return_inverse=True)[1],
        query=query_of(row[page, place], events.offsets),
        document=row[page, place],
        rank=place + 1,
        impressions=frame[["n_0", "n_1"]].to_numpy().astype(np.int64)[page],
        clicks=table[page, place].astype(np.int64),
    )


def _places(events: Events) -> range:
    """The places by which pages are told apart, and of which clicks are counted one by one."""
    return range(1, min(int(events.rank.max()), MOST_PLACES) + 1)
