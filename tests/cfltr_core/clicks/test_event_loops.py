"""Events against loops: counts, what is seen in damaged tables, and the round trip through a click log."""

import numpy as np
import oracles
import pandas as pd
import pytest

pytest.importorskip("ibis", reason="the extra logs is not installed")

import event_damage
import ibis
from event_damage import KNOWN, LISTS, frame_of, sound_page
from oracles import Event

import cfltr_core as cf
from cfltr_core.clicks.event_checks import check_features, check_filter, check_pages, check_rows
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_lists import event_lists, is_text
from cfltr_core.clicks.event_parts import part_of
from cfltr_core.clicks.event_sources import event_table, import_ibis, run_numbers, run_query, without_deprecations
from cfltr_core.clicks.event_sql import (
    counted,
    event_rows,
    found_twice,
    list_index,
    page_summary,
    page_table,
    row_faults,
    term_counts,
)
from cfltr_core.clicks.events import read_events

USER = cf.PositionBasedUser(lambda rank: 1 / rank)


def sound(seed: int, n: int = 60) -> list[Event]:
    """A log as it should be, of ``n`` sessions."""
    rng = np.random.default_rng(seed)
    return [event for session in range(n) for event in sound_page(rng, 3 * session)]


def features(seed: int = 0) -> pd.DataFrame:
    return event_damage.features(np.random.default_rng(seed))


def terms_of(events: Events) -> dict[tuple[int, int, int, str, int], list[int]]:
    """The counts by names, parts added up."""
    out: dict[tuple[int, int, int, str, int], list[int]] = {}
    index = events.index.values.tolist()
    for d, k, r, p, n, c in zip(
        events.document, events.rank, events.ranker, events.period, events.impressions, events.clicks, strict=True
    ):
        query, document = index[d]
        term = out.setdefault((query, document, int(k), events.rankers[r], events.periods[p]), [0, 0])
        term[0] += int(n)
        term[1] += int(c)
    return out


@pytest.mark.oracle("events.read_events", "event_counts.Events", "event_counts.Events.n_sessions",
                    "event_counts.Events.n_clicks", "event_counts.Events.n_queries", "event_counts.Events.queries",
                    "event_counts.Events.sessions", "event_counts.Events.part", "event_counts.Events.subset",
                    "event_counts.Events.columns", "event_counts.Events.log",
                    "event_counts.Events.displays")  # fmt: skip
@pytest.mark.parametrize("seed", range(2))
def test_counts_are_those_of_a_loop(seed: int) -> None:
    rows = sound(seed)
    events = read_events(frame_of(rows).sample(frac=1, random_state=seed), features(seed))
    assert isinstance(events, Events)
    expected = oracles.event_counts(rows)
    assert terms_of(events) == expected
    sessions = {row[0]: row for row in rows}
    assert (events.n_sessions, events.n_clicks) == (len(sessions), sum(row[4] for row in rows))
    assert events.n_queries == len(LISTS)
    assert events.queries.tolist() == sorted(LISTS)
    by_part = [events.part(name) for name in events.parts]
    assert sum(part.n_sessions for part in by_part) == len(sessions)
    for query, ranker, period, n in (
        events.sessions.groupby(["query", "ranker", "period"])["sessions"].sum().reset_index().values.tolist()
    ):
        key = (query, events.rankers[ranker], events.periods[period])
        assert n == sum((row[1], row[5], row[6]) == key for row in sessions.values())
    one = events.subset(queries=[3], rankers=["A"], periods=[0])
    assert terms_of(one) == {k: v for k, v in expected.items() if (k[0], *k[3:]) == (3, "A", 0)}
    log, counts = events.log(USER), cf.DisplayCounts(**events.columns())
    index = events.index.values.tolist()
    without_ranker: dict[tuple[int, int, int], list[int]] = {}
    for (query, document, k, _, _), (n, c) in expected.items():
        term = without_ranker.setdefault((query, document, k), [0, 0])
        term[0] += n
        term[1] += c
    got = {
        (*index[d], int(k)): [int(n), int(c)]
        for d, k, n, c in zip(log.document, log.rank, log.impressions, log.clicks, strict=True)
    }
    assert got == without_ranker
    np.testing.assert_array_equal(log.propensity, 1 / log.rank)
    assert log.sessions.tolist() == [sum(row[1] == q for row in sessions.values()) for q in sorted(LISTS)]
    assert int(counts.clicks.sum()) == events.n_clicks
    assert len(counts.rank) == len({(*k[:3], k[4]) for k in expected})
    shares = events.displays()
    for d, k, share in zip(shares.document, shares.rank, shares.share, strict=True):
        assert share == pytest.approx(oracles.display_share(rows, *index[d], int(k)), abs=1e-12)


@pytest.mark.oracle("event_sql.list_index", "event_sql.row_faults", "event_sql.event_rows", "event_sql.page_table",
                    "event_sql.page_summary", "event_sql.found_twice", "event_sql.term_counts",
                    "event_sources.event_table", "event_sources.import_ibis", "event_sources.run_query",
                    "event_sources.run_numbers", "event_sources.without_deprecations", "event_lists.event_lists",
                    "event_lists.is_text")  # fmt: skip
def test_damaged_tables_are_seen_as_by_a_loop() -> None:
    """2,000 of them: the right counts, or the right fault (benchmarks/events.py does more)."""
    seen, wrong = event_damage.wrong_tables(np.random.default_rng(0), 2000)
    assert wrong == []
    # Every fault came up, and sound tables did.
    assert min(seen[name] for name in ("a row", "sound", "incomplete", "again", "unknown", "querys", "rankers")) >= 20
    # The same by hand: two pages, the second with a gap and a document twice.
    rows = [(1, 0, 0, 1.0, 0.0, "A", 0), (2, 0, 0, 1.0, 1.0, "A", 0), (2, 0, 0, 3.0, 0.0, "A", 0)]
    with without_deprecations(), event_table(frame_of(rows)) as table:
        lists = event_lists(features())
        assert not is_text(lists["index"]["query"])
        assert set(map(tuple, lists["index"].values.tolist())) == KNOWN
        conditions = [bad for _, bad, _ in row_faults(table).values()]
        assert not run_query(table.select(**{f"f{i}": bad for i, bad in enumerate(conditions)})).to_numpy().any()
        joined = event_rows(table, list_index(lists["index"]))
        pages = page_table(joined, 3)
        total = run_query(page_summary(pages)).iloc[0]
        page = [row for row in rows if row[0] == 2]
        assert {name for name in ("incomplete", "again") if total[name]} == oracles.page_faults(page, KNOWN)
        assert run_query(found_twice(joined, pages, "row")).session.tolist() == [2]
        names = {"ranker": import_ibis().memtable({"ranker": ["A"], "ranker_number": [0]})}
        terms = term_counts(table.filter(table.session == 1), list_index(lists["index"]), [1.0], names)
        counts = run_numbers(terms)
        assert counts["impressions"].tolist() == [n for n, _ in oracles.event_counts(rows[:1]).values()]
        assert {name: column.tolist() for name, column in counts.items()} == run_query(terms).to_dict("list")


@pytest.mark.oracle("event_checks.check_rows", "event_checks.check_pages", "event_checks.check_features",
                    "event_checks.check_filter")  # fmt: skip
@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_table_is_refused_or_counted(seed: int) -> None:
    """Whole readings, among sound sessions: which of the checks speaks, and what comes of what is sound."""
    rng = np.random.default_rng(1000 + seed)
    extra = [event_damage.with_value(e, "session", e[0] + 10**6) for e in sound(seed)]
    (table,) = event_damage.tables(rng, 1)
    rows = extra + table
    speaks = {
        fault
        for fault, found in (
            (check_rows, any(oracles.event_fault(row) for row in rows)),
            *(
                (check_features if fault == "unknown" else check_pages, True)
                for session in {row[0] for row in table}
                if not any(oracles.event_fault(row) for row in rows)
                for fault in oracles.page_faults([row for row in table if row[0] == session], KNOWN)
            ),
        )
        if found
    }
    # The log as a whole is as it should be.
    check_filter(pd.DataFrame({"sessions": [60], "rows": [200], "clicked": [40], "ending": [9]}))
    if not speaks:
        assert terms_of(read_events(frame_of(rows), features())) == oracles.event_counts(rows)
        return
    with pytest.raises(ValueError, match="source: ") as found:
        read_events(frame_of(rows), features())
    assert any(entry.name in {check.__name__ for check in speaks} for entry in found.traceback)


@pytest.mark.oracle("event_sql.counted")
def test_conditions_are_counted_where_they_hold() -> None:
    values = [0, 1, None, 0, 5, None]
    table = ibis.memtable(pd.DataFrame({"position": pd.array(values, dtype="Int64")}))
    found = run_query(table.aggregate(zero=counted(table.position == 0), none=counted(table.position.isnull()))).iloc[0]
    assert found["zero"] == oracles.times_held([None if value is None else value == 0 for value in values])
    assert found["none"] == oracles.times_held([value is None for value in values])


@pytest.mark.oracle("event_parts.part_of")
def test_parts_have_their_shares_whatever_the_ids_are() -> None:
    shares, n = [0.6, 0.2, 0.2], 40_000
    ids = np.arange(n)
    for session in (ids, ids * 1000 + 7, 2 * ids - n, ids.astype(str)):
        table = ibis.memtable(pd.DataFrame({"session": session, "odd": ids % 2}))
        part = run_query(table.select("session", "odd", part=part_of(table.session, shares)))
        for odd in (0, 1):
            found = np.bincount(part.part[part.odd == odd], minlength=3) / (n / 2)
            # Four standard errors of a fair draw.
            assert (abs(found - shares) < 4 * np.sqrt(np.multiply(shares, np.subtract(1, shares)) / (n / 2))).all()
    assert [oracles.session_part(s, shares) for s in (0, 1, -5, 12345, 2**40)] == run_query(
        (whole := ibis.memtable({"session": [0, 1, -5, 12345, 2**40]})).select(
            "session", part=part_of(whole.session, shares)
        )
    ).set_index("session").loc[[0, 1, -5, 12345, 2**40], "part"].tolist()
    assert [oracles.session_part(s, shares) for s in ("a", "b", "1")] == run_query(
        (text := ibis.memtable({"session": ["a", "b", "1"]})).select("session", part=part_of(text.session, shares))
    ).set_index("session").loc[["a", "b", "1"], "part"].tolist()
