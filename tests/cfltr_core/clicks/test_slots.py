"""Pages with gaps, where something else stands between, and rows that are samples, against literal loops."""

from typing import Any

import numpy as np
import oracles
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_core.clicks.event_sources import event_table, run_query, without_deprecations
from cfltr_core.clicks.event_sql import of_first
from cfltr_core.evaluation.estimands import ab_sums, click_line
from cfltr_core.logs.session_checks import ignored_columns

THETA = [1.0, 0.8, 0.6, 0.5, 0.4]
FEATURES = pd.DataFrame([(q, d, 1.0) for q in range(8) for d in range(4)], columns=["query", "document", "x"])
NAMES = ["session", "query", "document", "position", "clicked", "ranker", "period"]


def log_with_gaps(seed: int = 0, sessions: int = 400) -> pd.DataFrame:
    """Pages of three of four documents of two rankers in five slots; where they stand has nothing to do with either."""
    rng, rows = np.random.default_rng(seed), []
    for session in range(sessions):
        query, ranker, period = (int(n) for n in rng.integers([8, 2, 2]))
        page = np.roll(np.arange(4), query + ranker)[:3]
        slots = ([1, 2, 3], [1, 3, 4], [2, 4, 5])[int(rng.integers(3))]
        for document, slot in zip(page.tolist(), slots, strict=True):
            clicked = rng.random() < [0.9, 0.2, 0.7, 0.4][document] * THETA[slot - 1]
            rows.append((session, query, document, slot, int(clicked), "AB"[ranker], period))
    return pd.DataFrame(rows, columns=NAMES)


def filled(rows: pd.DataFrame) -> pd.DataFrame:
    """The same pages with a document that nobody clicks in every empty slot above one."""
    pages = rows.groupby("session")
    between = [
        (session, page["query"].iloc[0], 100 + slot, slot, 0, page["ranker"].iloc[0], page["period"].iloc[0])
        for session, page in pages
        for slot in set(range(1, page["position"].max())) - set(page["position"])
    ]
    return pd.concat([rows, pd.DataFrame(between, columns=NAMES)], ignore_index=True)


ROWS = log_with_gaps()
KEPT = cf.read_events(ROWS, FEATURES, split=None, gaps="keep")


@pytest.mark.oracle("event_sql.of_first")
def test_the_first_of_a_page_is_not_always_at_rank_1() -> None:
    with without_deprecations(), event_table(ROWS) as table:
        found = run_query(table.filter(of_first))
    expected = oracles.first_positions(list(ROWS.itertuples(index=False, name=None)))
    assert dict(zip(found["session"], found["position"], strict=True)) == expected


@pytest.mark.oracle("event_counts.Events.sessions", "event_counts.Events.n_sessions", "event_counts.Events.displays")
def test_slots_and_sessions_are_those_of_a_loop() -> None:
    events = cf.read_events(ROWS, FEATURES, gaps="keep")
    assert sum(events.part(name).n_sessions for name in events.parts) == events.n_sessions == 400
    assert "400 sessions" in events.report.lines["events"]
    gapped = sum(page["position"].max() > len(page) for _, page in ROWS.groupby("session"))
    assert events.report.lines["positions"].startswith(f"1 … 5, the slots of a page; {gapped} sessions")
    rows = list(ROWS.itertuples(index=False, name=None))
    counts = oracles.event_counts(rows)
    names = [(int(q), int(d)) for q, d in events.index.values.tolist()]
    found: dict[tuple[int, int, int, str, int], list[int]] = {}
    terms = (events.document, events.rank, events.ranker, events.period, events.impressions, events.clicks)
    for document, rank, ranker, period, *numbers in zip(*terms, strict=True):
        key = (*names[document], int(rank), events.rankers[ranker], events.periods[period])
        found[key] = [int(a + b) for a, b in zip(found.get(key, [0, 0]), numbers, strict=True)]
    assert found == counts
    asked = {(row[0], row[1], row[5], row[6]) for row in rows}
    table = events.sessions.groupby(["query", "ranker", "period"])["sessions"].sum()
    for (query, ranker, period), n in table.items():
        key = (query, events.rankers[ranker], events.periods[period])
        assert n == sum(one[1:] == key for one in asked)
    shares = events.displays()
    for document, rank, share in zip(shares.document, shares.rank, shares.share, strict=True):
        assert share == pytest.approx(oracles.display_share(rows, *names[document], int(rank)), rel=1e-12)
    assert not events.samples


def test_an_empty_slot_is_as_good_as_a_document_that_nobody_clicks() -> None:
    """The curve, the lines of the report that pages make, and the sums of two rankers' own sessions."""
    every = filled(ROWS)
    lists = pd.concat([FEATURES, every[["query", "document"]].drop_duplicates()]).drop_duplicates(["query", "document"])
    whole = cf.read_events(every, lists.fillna(1.0), split=None)
    curves = [cf.conditional_poisson(cf.display_counts(events)) for events in (KEPT, whole)]
    np.testing.assert_allclose(curves[0].log_ratio, curves[1].log_ratio, rtol=1e-7)
    np.testing.assert_allclose(curves[0].covariance, curves[1].covariance, rtol=1e-6, atol=1e-12)
    frames = [
        cf.check_log(events, rows, rng=np.random.default_rng(0)).frame.set_index("check")
        for events, rows in ((KEPT, ROWS), (whole, every))
    ]
    for check in ("pages without a click", "ignored columns", "trust in high ranks", "clicks above"):
        assert frames[0].loc[check, "value"] == frames[1].loc[check, "value"], check
    line = click_line(5, None, cf.PositionBasedUser(THETA))
    sums = [ab_sums(events, ("A", "B"), metric=cf.dcg(5), line=line) for events in (KEPT, whole)]
    np.testing.assert_allclose(sums[0].sessions, sums[1].sessions, rtol=1e-12)
    np.testing.assert_allclose(sums[0].totals, sums[1].totals, rtol=1e-12)


def test_pages_without_a_gap_are_read_alike() -> None:
    rows = ROWS.assign(position=ROWS.groupby("session").cumcount() + 1)
    one, other = (cf.read_events(rows, FEATURES, gaps=gaps) for gaps in ("error", "keep"))
    for name in ("document", "rank", "ranker", "period", "part_number", "impressions", "clicks", "tops"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.report == other.report


def test_columns_that_chose_the_ranker_are_found_by_the_first_of_a_page() -> None:
    rows = ROWS.assign(device=np.where(ROWS["ranker"] == "A", "phone", "desk"))
    with without_deprecations(), event_table(rows, rest=True) as table:
        line = ignored_columns(table, KEPT, alpha=0.003)
    assert line.remedy.startswith("'device' had a say in which ranker served: 100%")


@pytest.mark.parametrize(
    ("change", "given", "message"),
    [
        ({}, {}, 'gaps="keep" keeps the slots'),
        ({"position": 2}, {"gaps": "keep"}, "two documents stand at one position in 400 of 400 sessions (session 0, "),
        ({"position": 60}, {"gaps": "keep"}, "position 60 has documents "),
        ({"document": 1}, {"gaps": "keep"}, "a page has a document twice in 400 of 400 sessions"),
    ],
)
def test_what_is_wrong_with_slots_is_said(change: dict[str, Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="source: ") as found:
        cf.read_events(ROWS.assign(**change), FEATURES, **given)
    assert message in str(found.value)


@pytest.mark.oracle("event_counts.Events.samples")
def test_rows_that_are_samples_are_taken_and_what_they_cannot_tell_is_said() -> None:
    """Of each page one slot, drawn by chance, as in logs of single impressions."""
    rows = log_with_gaps(1, sessions=1_200).groupby("session").sample(1, random_state=0)
    with pytest.raises(ValueError, match=r'each row is a sample, gaps="keep" keeps the slots'):
        cf.read_events(rows, FEATURES)
    events = cf.read_events(rows, FEATURES, split=None, gaps="keep")
    first = oracles.first_positions(list(rows.itertuples(index=False, name=None)))
    assert events.samples
    assert events.n_sessions == len(rows) == len(first)
    assert events.report.lines["samples"].startswith("each row is one slot of its page; without pages nobody can tell")
    codes = {name: rows[name].to_numpy() for name in ("query", "document", "period")}
    counts = cf.count_rows(**codes, rank=rows["position"].to_numpy(), clicked=rows["clicked"].to_numpy())
    same = cf.display_counts(events)
    for name in ("rank", "impressions", "clicks"):
        np.testing.assert_array_equal(getattr(same, name), getattr(counts, name))
    frame = cf.check_log(events, rows, rng=np.random.default_rng(0)).frame.set_index("check")
    unchecked = frame.index[frame["value"].str.startswith("Not checked: each row is a sample")]
    assert set(unchecked) == {"pages without a click", "rows missing", "bots", "clicks above"}
