"""What was seen when events were read: a small table, so that nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EventReport:
    """What was read, and what was left out; printing it shows a table.

    Parameters
    ----------
    lines : mapping
        What was found, in words, by what it is about.
    dropped_sessions : int
        Left out because a document had no features.

    Examples
    --------
    >>> from cfltr_core.clicks.event_report import EventReport
    >>> EventReport(lines={"documents": "3, of which 0 never shown", "parts": "all 4"}, dropped_sessions=0)
    documents    3, of which 0 never shown
    parts        all 4
    """

    lines: Mapping[str, str]
    dropped_sessions: int

    def __repr__(self) -> str:
        width = max(12, *map(len, self.lines))
        return "\n".join(f"{name:{width}s} {text}" for name, text in self.lines.items())
