"""What was seen when events were read: a small table, so that nothing is left out in silence."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EventReport:
    """Counts of what was read, and of what was left out; printing it shows a table.

    Parameters
    ----------
    rows, sessions, clicks : int
        Events that were counted, pages, and clicks.
    without_click : int
        Pages without a click.
    positions : int
        The deepest position.
    queries, unasked, single : int
        Queries with candidates; of these, without a session, and with one candidate, which teach nothing.
    documents, unseen : int
        Candidates; of these, never shown.
    changing : int
        Queries that showed other documents in one period than in another.
    dropped_sessions, dropped_rows : int
        Left out because a document had no features.
    groups : tuple of (name, sessions, clicked sessions)
        Of each ranker and period, where they are known.
    parts : tuple of (name, sessions)
    split : str
        How sessions were dealt to the parts.

    Examples
    --------
    >>> from cfltr_core.clicks.event_report import EventReport
    >>> print(EventReport(
    ...     rows=12, sessions=4, clicks=4, without_click=1, positions=3, queries=1, unasked=0, single=0, documents=3,
    ...     unseen=0, changing=0, dropped_sessions=1, dropped_rows=3, groups=(("ranker 'A'", 4, 3),),
    ...     parts=(("all", 4),), split="none",
    ... ))
    events       12 in 4 sessions, 4 clicks, 1 sessions without a click
    positions    1 … 3
    queries      1, of which 0 without a session, 0 with one candidate
    documents    3, of which 0 never shown
    periods      0 queries showed other documents in one period than in another
    left out     1 sessions (3 events), 20 % of what was read: a document had no features
    ranker 'A'   4 sessions, 3 with a click
    parts        all 4
    split        none
    """

    rows: int
    sessions: int
    clicks: int
    without_click: int
    positions: int
    queries: int
    unasked: int
    single: int
    documents: int
    unseen: int
    changing: int
    dropped_sessions: int
    dropped_rows: int
    groups: tuple[tuple[str, int, int], ...]
    parts: tuple[tuple[str, int], ...]
    split: str

    def __str__(self) -> str:
        lines = [
            (
                "events",
                f"{self.rows:,} in {self.sessions:,} sessions, {self.clicks:,} clicks, {self.without_click:,} sessions "
                "without a click",
            ),
            ("positions", f"1 … {self.positions}"),
            (
                "queries",
                f"{self.queries:,}, of which {self.unasked:,} without a session, {self.single:,} with one candidate",
            ),
            ("documents", f"{self.documents:,}, of which {self.unseen:,} never shown"),
            ("periods", f"{self.changing:,} queries showed other documents in one period than in another"),
            (
                "left out",
                f"{self.dropped_sessions:,} sessions ({self.dropped_rows:,} events), "
                f"{_share(self.dropped_sessions, self.sessions)} of what was read: a document had no features",
            ),
            *((name, f"{n:,} sessions, {k:,} with a click") for name, n, k in self.groups),
            ("parts", ", ".join(f"{name} {n:,}" for name, n in self.parts)),
            ("split", self.split),
        ]
        width = max(12, *(len(name) for name, _ in lines))
        return "\n".join(f"{name:{width}s} {text}" for name, text in lines)

    def __repr__(self) -> str:
        return str(self)


def _share(dropped: int, kept: int) -> str:
    """The share of what was dropped in per cent, with as many digits as tell it from none and from all."""
    part = dropped / (kept + dropped) if dropped else 0.0
    return f"{100 * part:.2g} %" if part < 0.995 else f"{100 * part:.4g} %"
