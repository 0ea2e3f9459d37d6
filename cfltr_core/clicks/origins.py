"""Which sessions of a log something was made from, so that nothing is judged on what it was learnt from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfltr_core.checks import IntArray
from cfltr_core.clicks.event_report import EventReport

# How the report says that parts were split by query.
WHOLE_QUERIES = "whole queries"


@dataclass(frozen=True, eq=False)
class Origin:
    """Sessions of a log that was read: counts and curves keep it of the :class:`Events` that they were made from.

    Parameters
    ----------
    report : EventReport
        Of the log: two logs of the same report are taken for one.
    cells : (n_cells,)
        Numbers of (query, ranker, period, part), those that have sessions.
    parts : tuple of str
        Their parts.

    Examples
    --------
    >>> import pandas as pd
    >>> import cfltr_core as cf
    >>> rows = pd.DataFrame({"session": range(40), "query": 7, "document": 1, "position": 1, "clicked": [0, 1] * 20})
    >>> events = cf.read_events(rows, pd.DataFrame({"query": [7], "document": [1], "age": [3]}))
    >>> train, test = (cf.display_counts(events.part(name)).origin for name in ("train", "test"))
    >>> train.meets(test), train.meets(events.log().origin), train.parts, train.whole_queries
    (False, True, ('train',), False)
    """

    report: EventReport
    cells: IntArray
    parts: tuple[str, ...]

    @property
    def whole_queries(self) -> bool:
        """Whether the log was split by query, so that other parts have other queries."""
        return WHOLE_QUERIES in self.report.lines["split"]

    def meets(self, other: Origin | None) -> bool:
        """Whether this and the ``other`` have sessions of one query, ranker, period and part of the same log."""
        return other is not None and self.report == other.report and bool(np.isin(self.cells, other.cells).any())
