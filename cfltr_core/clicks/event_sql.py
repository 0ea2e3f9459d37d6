"""The one expression that checks and counts events, in Ibis: DuckDB runs it here, other databases where they are.

Nothing here looks at a row: every function takes an Ibis table and returns another, which the database computes when
it is asked.  No name or value is pasted into SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_core import checks
from cfltr_core.clicks.event_parts import part_of
from cfltr_core.clicks.event_sources import import_ibis

if TYPE_CHECKING:
    import pandas as pd

# A sum of different powers of two below this one is exact as a floating-point number, which no database lets overflow.
BITS = 51
# Lists longer than that are looked at through three such sums, of lengths without a common divisor.
LENGTHS = (51, 49, 47)
# Users are dealt to so many groups, by whose spread a variance is told: whole users are in one.
USER_GROUPS = 64
# No page is that long: what is larger is no position.
DEEPEST = 1_000_000_000


def list_index(index: pd.DataFrame) -> Any:
    """The candidates as an Ibis table: query and document, the row of the features, its place in the list from 0.

    ``index`` has the columns ``query`` and ``document`` of each row of the features, in their order.

    Examples
    --------
    >>> import pandas as pd
    >>> from cfltr_core.clicks.event_sources import run_query
    >>> from cfltr_core.clicks.event_sql import list_index
    >>> run_query(list_index(pd.DataFrame({"query": [1, 2, 2], "document": [5, 5, 7]}))).values.tolist()
    [[1, 5, 0, 0], [2, 5, 1, 0], [2, 7, 2, 1]]
    """
    named = index.rename(columns={"query": "of_query", "document": "of_document"})
    place = index.groupby("query").cumcount().to_numpy()
    return import_ibis().memtable(named.assign(row=np.arange(len(index)), place=place))


def row_faults(table: Any) -> dict[str, tuple[str, Any, str]]:
    """What may be wrong with a single event: the column, a condition on ``table``, and the remedy, the worst first.

    Conditions hold where something is wrong; a missing value makes none of the others true.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sql import row_faults
    >>> kinds = {"session": "int64", "query": "string", "document": "string", "position": "float64", "clicked": "int8"}
    >>> list(row_faults(ibis.table(kinds, name="events")))[-4:]
    ['position is no whole number', 'position is 0', 'position is negative', 'clicked is neither 0 nor 1']
    """
    out: dict[str, tuple[str, Any, str]] = {}
    position, clicked = table.position, table.clicked
    out["a click has no position"] = (
        "position",
        position.isnull() & (clicked == (True if clicked.type().is_boolean() else 1)),
        "a click without an impression: give each click the position at which its document was displayed",
    )
    for name in table.columns:
        column = table[name]
        missing = column.isnull() | column.isnan() if column.type().is_floating() else column.isnull()
        out[f"{name} is missing"] = (name, missing, f"fill in the {name}, or leave the whole session out")
    for name in ("position", "length"):
        if name not in table.columns:
            continue
        column = table[name]
        whole = f"expected a whole number from 1; correct the {name}"
        if not column.type().is_integer():
            out[f"{name} is no whole number"] = (name, (column % 1 != 0) | (column > DEEPEST), whole)
        zero = "positions start at 1; add 1 to positions that start at 0" if name == "position" else whole
        out[f"{name} is 0"] = (name, column == 0, zero)
        out[f"{name} is negative"] = (name, column < 0, whole)
        if column.type().is_integer():
            out[f"{name} is too large"] = (name, column > DEEPEST, whole)
    if not clicked.type().is_boolean():
        out["clicked is neither 0 nor 1"] = (
            "clicked",
            (clicked != 0) & (clicked != 1),
            checks.CLICK,
        )
    return out


def event_rows(table: Any, index: Any) -> Any:
    """Events with whole positions and clicks, and the row and the place of their document; null if it has no features.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sql import event_rows
    >>> kinds = {"session": "int64", "query": "string", "document": "string", "position": "float64", "clicked": "int8"}
    >>> index = ibis.table({"of_query": "string", "of_document": "string", "row": "int64", "place": "int64"}, name="x")
    >>> list(event_rows(ibis.table(kinds, name="events"), index).columns)
    ['session', 'query', 'document', 'position', 'clicked', 'row', 'place']
    """
    joined = _whole(table).left_join(index, [("query", "of_query"), ("document", "of_document")])
    return joined.select(*table.columns, "row", "place")


def _whole(table: Any) -> Any:
    """Positions, clicks and lengths as whole numbers, which was checked."""
    columns = {name: table[name] for name in ("position", "clicked", "length") if name in table.columns}
    numbers = {name: column.ifelse(1, 0) if column.type().is_boolean() else column for name, column in columns.items()}
    return table.mutate(**{name: column.cast("int64") for name, column in numbers.items()})


def counted(condition: Any) -> Any:
    """In how many rows the ``condition`` holds: no database minds that, and some cast no condition to a number.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sources import run_query
    >>> from cfltr_core.clicks.event_sql import counted
    >>> table = ibis.memtable({"position": [0, 1, None]})
    >>> run_query(table.aggregate(zero=counted(table.position == 0))).zero.tolist()
    [1]
    """
    return condition.ifelse(1, 0).sum()


def of_first(rows: Any) -> Any:
    """Whether a row is the first of its page: each page has one.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sources import run_query
    >>> from cfltr_core.clicks.event_sql import counted, of_first
    >>> rows = ibis.memtable({"session": [1, 1, 2], "position": [2, 4, 3]}).mutate(first=of_first)
    >>> sorted(run_query(rows.filter(rows.first)).position)
    [2, 3]
    """
    return rows.position == rows.position.min().over(import_ibis().window(group_by="session"))


def page_table(rows: Any, longest: int, *, gaps: str = "error") -> Any:
    """One row for each session: what tells whether its page is whole, and how it was clicked.

    A sum of n powers of two has n bits set if and only if they are different: a carry makes two bits one.  So a whole
    page has n rows, the deepest at n, and Σ 2^position = 2 + 4 + … + 2ⁿ; and the documents of a page are different if
    Σ 2^place has as many bits as there are documents.  That is exact (a sum with repeated powers may be rounded, but
    not down to one of different powers), needs a few bytes a page, and is the same on every database.

    ``longest`` is the length of the longest list.  In a longer list than 51 documents places share powers, so that
    different documents may look like one: ``again`` is then a doubt, which :func:`found_twice` settles.  With ``gaps``
    that are kept a page is whole if its positions are different: ``clash`` says where they may not be.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sql import page_table
    >>> kinds = dict.fromkeys(("session", "query", "document", "position", "clicked", "row", "place"), "int64")
    >>> list(page_table(ibis.table(kinds, name="rows"), longest=10).columns)[:5]
    ['session', 'rows', 'positions', 'incomplete', 'deep']
    """

    def power(key: Any, length: int) -> Any:
        return _power(key % length).cast("float64")

    measured = {
        "rows": rows.count(),
        "positions": rows.position.max(),
        "places": power(rows.position, BITS).sum(),
        "last_click": (rows.clicked * rows.position).max(),
        "known": rows.row.count(),
    }
    varying = [name for name in ("query", "ranker", "period", "length", "user") if name in rows.columns]
    for name in varying:
        measured |= {f"{name}_low": rows[name].min(), f"{name}_high": rows[name].max()}
    masks = LENGTHS if longest > BITS else (BITS,)
    for length in masks:
        measured |= {f"sum_{length}": power(rows.place, length).sum()}
    pages = rows.group_by("session").agg(**measured)
    deep = pages.positions >= BITS
    # 2 + 4 + … + 2ⁿ, asked for where it fits only.
    complete = 2 * _power(deep.ifelse(0, pages.positions)) - 2
    incomplete = (pages.rows != pages.positions) | (~deep & (pages.places != complete.cast("float64")))
    whole = {"incomplete": incomplete, "deep": deep}
    again = _repeated(pages[f"sum_{masks[0]}"], pages.known)
    for length in masks[1:]:
        again &= _repeated(pages[f"sum_{length}"], pages.known)
    return pages.select(
        "session",
        "rows",
        "positions",
        **(whole if gaps == "error" else {"clash": _repeated(pages.places, pages.rows)}),
        last_click=pages.last_click,
        unknown=pages.rows - pages.known,
        again=again,
        **{f"{name}s": pages[f"{name}_low"] != pages[f"{name}_high"] for name in varying},
        **{name: pages[f"{name}_low"] for name in ("ranker", "period") if name in varying},
        **({"short": pages.rows != pages.length_low} if "length" in varying else {}),
    )


def _power(exponent: Any) -> Any:
    """2**exponent for exponents below ``BITS``: shifted down from one that every database takes for 64 bits.

    A 1 would be a number of 32 bits to some of them, and some shift by no number of 64.
    """
    return import_ibis().literal(2 ** (BITS - 1), "int64") >> (BITS - 1 - exponent).cast("int32")


def _repeated(total: Any, n: Any) -> Any:
    """Whether a ``total`` of ``n`` powers of two below 2**BITS has one of them twice; null is the total of none."""
    large = total >= 2.0**BITS
    # Only what is below is surely a whole number of 64 bits.
    return large.coalesce(False) | (n > _bits_set(large.ifelse(0.0, total).coalesce(0.0).cast("int64")))


def _bits_set(bits: Any) -> Any:
    """How many bits of a whole number >= 0 are set: added up in pairs, then in fours …"""
    for step, mask in ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F)):
        bits = (bits & mask) + ((bits >> step) & mask)
    for step in (8, 16, 32):
        bits = bits + (bits >> step)
    return bits & 0x7F


def found_twice(rows: Any, sessions: Any, key: str) -> Any:
    """The ``sessions`` whose page has a ``key`` of its ``rows`` twice: exact, by counting each; null is no key.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sources import run_query
    >>> from cfltr_core.clicks.event_sql import found_twice
    >>> rows = ibis.memtable({"session": [1, 1, 2, 2], "document": ["A", "A", "A", "B"]})
    >>> run_query(found_twice(rows, rows.select("session"), "document")).session.tolist()
    [1]
    """
    chosen = rows.filter(rows[key].notnull()).semi_join(sessions, "session").select("session", key)
    table = chosen.group_by("session", key).agg(times=chosen.count())
    return table.filter(table.times > 1).select("session").distinct()


def page_summary(pages: Any) -> Any:
    """How many pages are sound, clicked and faulty, one row for each ranker and period.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sql import page_summary, page_table
    >>> kinds = dict.fromkeys(("session", "query", "document", "position", "clicked", "row", "place"), "int64")
    >>> summary = page_summary(page_table(ibis.table(kinds, name="rows"), longest=10))
    >>> list(summary.columns)[:5]
    ['group', 'sessions', 'rows', 'positions', 'gaps']
    """
    ibis = import_ibis()
    groups = [name for name in ("ranker", "period") if name in pages.columns]
    faults = ("incomplete", "again", "deep", "clash", "short", "querys", "rankers", "periods", "lengths", "users")
    return pages.group_by(*groups, **({} if groups else {"group": ibis.literal(0)})).agg(
        sessions=pages.count(),
        rows=pages.rows.sum(),
        positions=pages.positions.max(),
        gaps=counted(pages.rows < pages.positions),
        clicked=counted(pages.last_click > 0),
        ending=counted(pages.last_click == pages.positions),
        unknown=counted(pages.unknown > 0),
        unknown_rows=((pages.unknown > 0).ifelse(pages.rows, 0)).sum(),
        **{name: counted(pages[name]) for name in faults if name in pages.columns},
    )


def term_counts(
    table: Any,
    index: Any,
    shares: Sequence[float],
    names: Mapping[str, Any],
    dialect: str | None = None,
    *,
    split_by: str = "session",
    gaps: str = "error",
) -> Any:
    """Impressions and clicks of every document, by position, ranker, period and part: all that leaves the database.

    Parameters
    ----------
    table : Ibis table
        Events whose documents all have features.
    index : Ibis table
        Of :func:`list_index`.
    shares : (n_parts,)
        Of the parts; with ``dialect`` as for :func:`~cfltr_core.clicks.event_parts.part_of`.
    names : mapping
        For ``ranker`` and ``period``, where they are known, an Ibis table of the name and its number.
    split_by : str
        The column by whose values sessions are dealt to the parts.
    gaps : str
        With "keep" it is counted as well how many impressions were the first of their page, ``tops``.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sources import run_query
    >>> from cfltr_core.clicks.event_sql import term_counts
    >>> index = ibis.memtable({"of_query": [7], "of_document": [5], "row": [0], "place": [0]})
    >>> events = {"session": [1, 2], "query": [7, 7], "document": [5, 5], "position": [1, 1], "clicked": [0, 1]}
    >>> run_query(term_counts(ibis.memtable(events), index, [1.0], {})).values.tolist()
    [[0, 1, 0, 2, 1]]
    """
    rows = _whole(table)
    if gaps == "keep":
        rows = rows.mutate(is_top=of_first)
    keys = ["query", "document", "position", *names]
    dealt = {"part": part_of(rows[split_by], shares, dialect=dialect).cast("int8")}
    if "user" in rows.columns:
        groups = [1 / USER_GROUPS] * USER_GROUPS
        dealt["user_group"] = part_of(rows["user"], groups, dialect=dialect).cast("int8")
    numbers = {"impressions": rows.count(), "clicks": rows.count(where=rows.clicked == 1)}
    if gaps == "keep":
        numbers["tops"] = counted(rows.is_top)
    counts = rows.group_by(*keys, **dealt).agg(**numbers)
    # Names become numbers after the counting, when there are few of them.
    counts = counts.join(index, [("query", "of_query"), ("document", "of_document")])
    for name, numbered in names.items():
        counts = counts.join(numbered.rename(**{f"of_{name}": name}), [(name, f"of_{name}")])
    of_names = {name: counts[f"{name}_number"] for name in names}
    found = counts.select("row", "position", *dealt, *numbers, **of_names)
    return found.order_by("row", "position", *names, *dealt)
