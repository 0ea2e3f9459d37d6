"""Small tables of events, sound and damaged, and whether the package sees what a loop sees in them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import oracles
import pandas as pd
from oracles import Event

from cfltr_core.clicks.event_lists import event_lists
from cfltr_core.clicks.event_sources import event_table, run_query, without_deprecations
from cfltr_core.clicks.event_sql import (
    event_rows,
    found_twice,
    list_index,
    page_summary,
    page_table,
    row_faults,
    term_counts,
)

NAMES = ("session", "query", "document", "position", "clicked", "ranker", "period")
# Documents of each query: short lists, and one that is longer than a number of 64 bits has places.
LISTS = {0: 3, 1: 5, 2: 1, 3: 150}
KNOWN = {(query, 1000 * query + i) for query, n in LISTS.items() for i in range(n)}
# More sessions than a table has.
STRIDE = 10


def shoes(pages: Mapping[int, str], clicked: Collection[tuple[int, str]] = ()) -> pd.DataFrame:
    """Pages of one query, by session, and the documents on them that were clicked."""
    rows = [
        {"session": s, "query": "shoes", "document": d, "position": k, "clicked": int((s, d) in clicked)}
        for s, page in pages.items()
        for k, d in enumerate(page, start=1)
    ]
    return pd.DataFrame(rows)


def features(rng: np.random.Generator) -> pd.DataFrame:
    """The features of all lists, in any order."""
    pairs = sorted(KNOWN)
    frame = pd.DataFrame(pairs, columns=["query", "document"]).assign(x=rng.random(len(pairs)))
    return frame.sample(frac=1, random_state=int(rng.integers(1 << 30)))


def sound_page(rng: np.random.Generator, session: int, query: int | None = None) -> list[Event]:
    """One page as it should be."""
    asked = int(rng.integers(len(LISTS))) if query is None else query
    n = int(rng.integers(1, min(LISTS[asked], 6) + 1))
    if LISTS[asked] > 100 and rng.random() < 0.2:
        n = int(rng.integers(55, 70))
    documents = 1000 * asked + rng.permutation(LISTS[asked])[:n]
    ranker, period = "AB"[int(rng.integers(2))], int(rng.integers(2))
    return [
        (session, asked, int(d), float(k), float(rng.random() < 0.3), ranker, period)
        for k, d in enumerate(documents, start=1)
    ]


def with_value(event: Event, name: str, value: float | str | None) -> Event:
    """``event`` with another value in one column."""
    at = NAMES.index(name)
    return (*event[:at], value, *event[at + 1 :])  # type: ignore[return-value]


def damage(rng: np.random.Generator, table: list[Event]) -> list[Event]:
    """``table`` after one damage; some of them leave it sound."""
    out, i = list(table), int(rng.integers(len(table)))
    event, other = out[i], out[int(rng.integers(len(table)))]
    kind = int(rng.integers(16))
    if kind == 0 and len(out) > 1:
        del out[i]
    elif kind == 1:
        out.insert(int(rng.integers(len(out))), event)
    elif kind == 2:
        out[i] = with_value(event, "position", [0.0, -1.0, 1.5, None, 61.0, 62.0, 2.0][int(rng.integers(7))])
    elif kind == 3:
        out = [with_value(e, "position", None if e[3] is None else e[3] - 1) for e in out]
    elif kind == 4:
        out[i] = with_value(event, "clicked", [2.0, 0.5, None, -1.0, 1.0][int(rng.integers(5))])
    elif kind == 5:
        out[i] = with_value(event, "query", int(rng.integers(len(LISTS))))
    elif kind == 6:
        out[i] = with_value(event, "document", other[2])
    elif kind == 7:
        out[i] = with_value(event, "document", 999_999)
    elif kind == 8:
        out[i] = with_value(event, "ranker", "C")
    elif kind == 9:
        out[i] = with_value(event, "period", 7)
    elif kind == 10:
        out = [with_value(e, "session", other[0]) if e[0] == event[0] else e for e in out]
    elif kind == 11:
        out = [out[j] for j in rng.permutation(len(out))]
    elif kind == 12:
        out[i] = with_value(event, "position", other[3])
    elif kind == 13:
        last = max((e for e in out if e[0] == event[0]), key=lambda e: e[3] or 0)
        out = [e for e in out if e is not last] or out
    elif kind == 14:
        out = [with_value(e, "position", None if e[3] is None else e[3] + 1) if e[0] == event[0] else e for e in out]
    else:
        out = [e for e in out if e[0] != event[0] or e[4] == 1] or out
    return out


def tables(rng: np.random.Generator, n_tables: int) -> Iterator[list[Event]]:
    """Tables of one to three sessions after no, one or two damages; no two have a session in common."""
    for number in range(n_tables):
        table = [e for s in range(int(rng.integers(1, 4))) for e in sound_page(rng, STRIDE * number + s)]
        for _ in range(int(rng.integers(3))):
            table = damage(rng, table)
        yield table


def frame_of(events: list[Event]) -> pd.DataFrame:
    """Events as a data frame; nan where a value is missing."""
    return pd.DataFrame(events, columns=list(NAMES)).astype({"position": float, "clicked": float})


def wrong_tables(rng: np.random.Generator, n_tables: int) -> tuple[dict[str, int], list[str]]:
    """How many tables have which fault, by the loops, and where the package sees anything else.

    All tables lie in one, which the package looks at once: row by row, then, of those whose rows are sound, page by
    page; the sound ones are counted.
    """
    all_tables = list(tables(rng, n_tables))
    with without_deprecations():
        return _compare(all_tables, event_lists(features(rng)))


def _compare(all_tables: list[list[Event]], lists: dict[str, Any]) -> tuple[dict[str, int], list[str]]:
    seen: dict[str, int] = {}
    wrong: list[str] = []
    events = [event for table in all_tables for event in table]
    faults = [oracles.event_fault(event) for event in events]
    with event_table(frame_of(events)) as table:
        conditions = {f"fault_{i}": bad for i, (_, bad, _) in enumerate(row_faults(table).values())}
        names = list(row_faults(table))
        found = run_query(table.select(**conditions)).fillna(False).to_numpy(dtype=bool)
    for event, expected, flags in zip(events, faults, found, strict=True):
        first = names[int(np.argmax(flags))] if flags.any() else None
        if first != expected:
            wrong.append(f"{event}: {first!r}, the loop says {expected!r}")
    bad_tables = {event[0] // STRIDE for event, fault in zip(events, faults, strict=True) if fault}
    seen["a row"] = len(bad_tables)
    whole = [event for event in events if event[0] // STRIDE not in bad_tables]
    pages: dict[int, list[Event]] = {}
    for event in whole:
        pages.setdefault(event[0], []).append(event)
    expected_faults = {session: oracles.page_faults(page, KNOWN) for session, page in pages.items()}
    faulty = {session // STRIDE for session, found_here in expected_faults.items() if found_here}
    with event_table(frame_of(whole)) as table:
        rows = event_rows(table, list_index(lists["index"]))
        page = page_table(rows, int(np.diff(lists["offsets"]).max()))
        flags_of = run_query(page).set_index("session")
        twice = {
            "incomplete": set(run_query(found_twice(rows, page.filter(page.deep), "position")).session),
            "again": set(run_query(found_twice(rows, page.filter(page.again), "row")).session),
        }
        total = run_query(page_summary(page)).sum(numeric_only=True)
    for session, expected_here in expected_faults.items():
        row = flags_of.loc[session]
        got = {name for name in ("querys", "rankers", "periods", "incomplete") if row[name]}
        got |= {"unknown"} if row["unknown"] > 0 else set()
        got |= {name for name, sessions in twice.items() if session in sessions}
        # Of a session over two queries nothing else is asked.
        same = got == expected_here if "querys" not in got | expected_here else "querys" in got & expected_here
        if not same:
            wrong.append(f"session {session}: {sorted(got)}, the loop says {sorted(expected_here)}: {pages[session]}")
        for name in expected_here:
            seen[name] = seen.get(name, 0) + 1
    if int(total["sessions"]) != len(pages):
        wrong.append(f"{total['sessions']} pages, the loop says {len(pages)}")
    sound = [event for event in whole if event[0] // STRIDE not in faulty]
    seen["sound"] = len({event[0] // STRIDE for event in sound})
    with event_table(frame_of(sound)) as table:
        numbers = {
            name: _numbers(name, sorted({event[NAMES.index(name)] for event in sound})) for name in ("ranker", "period")
        }
        counts = run_query(term_counts(table, list_index(lists["index"]), [1.0], numbers))
    rankers = sorted({event[5] for event in sound})
    periods = sorted({event[6] for event in sound})
    keys = lists["index"].to_numpy()[counts["row"].to_numpy(dtype=int)]
    got_counts = {
        (int(q), int(d), int(k), rankers[int(r)], periods[int(p)]): [int(n), int(c)]
        for (q, d), k, r, p, n, c in zip(
            keys, *(counts[name] for name in ("position", "ranker", "period", "impressions", "clicks")), strict=True
        )
    }
    if got_counts != oracles.event_counts(sound):
        wrong.append("the counts of the sound tables differ from the loop's")
    return seen, wrong


def _numbers(name: str, values: list[object]) -> object:
    import ibis

    return ibis.memtable(pd.DataFrame({name: values, f"{name}_number": np.arange(len(values))}))
