"""Counts by stratum against loops over the rows, and what is refused."""

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from cfltr_core import ClickLog, DeterministicPolicy, MixturePolicy, PositionBasedUser, simulate_clicks
from cfltr_core.propensity.strata import DisplayCounts, count_rows, display_counts

COLUMNS = ("query", "period", "document", "rank", "impressions", "clicks")
ROW = st.tuples(
    st.integers(0, 2), st.integers(0, 1), st.integers(0, 2), st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)
)


def of_rows(rows: list[oracles.Row]) -> DisplayCounts:
    return DisplayCounts(**{name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)})


def rows_of(counts: DisplayCounts) -> list[tuple[int, ...]]:
    return list(zip(*(getattr(counts, name).tolist() for name in COLUMNS), strict=True))


@pytest.mark.oracle("strata.DisplayCounts", "strata.DisplayCounts.n_ranks", "strata.DisplayCounts.stratum",
                    "strata.DisplayCounts.cluster", "strata.DisplayCounts.subset")  # fmt: skip
@given(rows=st.lists(ROW, min_size=1, max_size=8), data=st.data())
def test_counts_are_sorted_into_strata_or_the_row_is_named(rows: list[oracles.Row], data: st.DataObject) -> None:
    fault = oracles.count_fault(rows)
    if fault is not None:
        refuses(f"{fault[0]}[{fault[1]}] is ", of_rows, rows)
        return
    counts = DisplayCounts(**{name: [row[i] for row in rows] for i, name in enumerate(COLUMNS)})
    groups = oracles.strata(rows)
    assert rows_of(counts) == sorted(rows)
    assert counts.n_ranks == max(row[3] for row in rows)
    assert counts.start.tolist() == np.cumsum([0, *map(len, groups.values())]).tolist()
    assert counts.stratum.tolist() == [i for i, group in enumerate(groups.values()) for _ in group]
    asked = sorted({row[0] for row in rows})
    assert counts.cluster.tolist() == [asked.index(row[0]) for row in sorted(rows)]
    chosen = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    if any(chosen):
        kept = [row for row, keep in zip(sorted(rows), chosen, strict=True) if keep]
        assert rows_of(counts.subset(chosen)) == kept
    else:
        refuses("chosen: no term is chosen", counts.subset, chosen)


@pytest.mark.oracle("strata.count_rows")
def test_rows_are_counted_as_by_a_loop() -> None:
    rng = np.random.default_rng(0)
    for n_rows in (1, 2, 7, 100):
        given = {
            "query": rng.integers(0, 3, n_rows), "period": rng.integers(0, 2, n_rows),
            "document": rng.integers(0, 4, n_rows), "rank": rng.integers(1, 5, n_rows),
            "clicked": rng.integers(0, 2, n_rows),
        }  # fmt: skip
        expected = oracles.counted_rows(*(column.tolist() for column in given.values()))
        assert rows_of(count_rows(**given)) == expected
        as_floats = {name: column.astype(np.float32) for name, column in given.items()}
        assert rows_of(count_rows(**as_floats)) == expected
        del given["period"]
        expected = oracles.counted_rows(given["query"], [0] * n_rows, *list(given.values())[1:])
        assert rows_of(count_rows(**given)) == [tuple(map(int, row)) for row in expected]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clicked": [0, 0.5, 1]}, r"^clicked\[1\] is 0\.5: expected 1 for a click"),
        ({"document": [0, 1, 1.5]}, r"^document\[2\] is 1\.5: expected a whole number"),
        ({"document": ["a", "b", "c"]}, r"^document\[0\] is 'a': .*pandas\.factorize"),
        ({"document": [0, 1, 2**61]}, r"^document goes up to 2305843009213693952: .*pandas\.factorize\(document\)"),
        ({"period": [0, 0, -2]}, r"^period\[2\] is -2: expected a whole number"),
        ({"query": [0, -1, 0]}, r"^query\[1\] is -1"),
    ],
)
def test_rows_that_are_refused(change: dict[str, list[float]], message: str) -> None:
    given = {"query": [0, 0, 0], "document": [0, 1, 2], "rank": [1, 2, 3], "clicked": [0, 0, 1]}
    with pytest.raises(ValueError, match=message):
        count_rows(**{**given, **change})  # type: ignore[arg-type]


def test_the_first_bad_row_is_named() -> None:
    refuses("rank[4] is 0", count_rows, query=[0] * 6, document=range(6), rank=[1, 2, 3, 4, 0, 0], clicked=[0] * 6)
    refuses("rank: there is no row", count_rows, query=[], document=[], rank=[], clicked=[])


def test_a_row_that_occurs_twice_is_named_with_its_twin() -> None:
    with pytest.raises(ValueError, match=r"^rank\[2\] is 3, but row 0 is of the same query, period, document and rank"):
        DisplayCounts(query=[1, 0, 1], document=[5, 5, 5], rank=[3, 3, 3], impressions=[1] * 3, clicks=[0] * 3)
    refuses("rank: there is no row", DisplayCounts, query=[], document=[], rank=[], impressions=[], clicks=[])
    counts = DisplayCounts(query=[0], document=[5], rank=[3], impressions=[1], clicks=[0])
    refuses("chosen: expected True or False for each of 1 terms", counts.subset, [0])


@pytest.mark.oracle("strata.display_counts")
def test_a_log_becomes_strata_and_each_period_its_own() -> None:
    offsets = [0, 3, 5]
    rankers = [DeterministicPolicy(rank, offsets) for rank in ([1, 2, 3, 1, 2], [2, 0, 1, 2, 1])]
    policy, user = MixturePolicy(rankers, [0.5, 0.5]), PositionBasedUser([1, 0.5, 0.25], epsilon_minus=0.2)
    rng = np.random.default_rng(0)
    logs = [simulate_clicks(policy, user, relevance=[1, 0, 1, 0, 1], sessions=[4, 2], rng=rng) for _ in range(2)]

    def rows(log: ClickLog, period: int) -> list[oracles.Row]:
        terms = zip(log.document, log.rank, log.impressions, log.clicks, strict=True)
        return [(oracles.list_of(int(d), offsets), period, int(d), int(r), int(n), int(c)) for d, r, n, c in terms]

    assert rows_of(display_counts(logs[0])) == sorted(rows(logs[0], 0))
    assert rows_of(display_counts(logs)) == sorted(rows(logs[0], 0) + rows(logs[1], 1))
    other = ClickLog(
        document=[0], rank=[1], impressions=[1], clicks=[0], propensity=[1.0], sessions=[1], offsets=[0, 1]
    )  # fmt: skip
    refuses("logs[1] has other offsets than logs[0]", display_counts, [logs[0], other])
    refuses("logs: expected a ClickLog", display_counts, [])
    refuses("logs[1] is dict: expected ClickLog; rows of your own go to count_rows", display_counts, [logs[0], {}])
