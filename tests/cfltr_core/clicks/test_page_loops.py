"""Counts by page against loops over sessions; simulated pages against the law of every click vector."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfltr_core import (
    CascadeUser,
    DeterministicPolicy,
    MixturePolicy,
    PageCounts,
    PositionBasedUser,
    count_pages,
    simulate_pages,
)
from cfltr_core.clicks import pages as pages_module

Session = tuple[int, list[int], list[int]]


@st.composite
def sessions(draw: st.DrawFn, places: int = 3) -> list[Session]:
    """Sessions of two queries on three documents; pages end early, or are empty."""
    out = []
    for _ in range(draw(st.integers(1, 12))):
        m = draw(st.integers(0, places)) if out else draw(st.integers(1, places))
        page = draw(st.permutations(range(3)))[:m]
        clicks = draw(st.lists(st.integers(0, 1), min_size=m, max_size=m))
        out.append((draw(st.integers(0, 1)), page + [-1] * (places - m), clicks + [0] * (places - m)))
    return out


@pytest.mark.oracle(
    "pages.count_pages", "pages.PageCounts", "pages.PageCounts.n_pages", "pages.PageCounts.clicks_above"
)
@given(log=sessions())
def test_count_pages(log: list[Session]) -> None:
    query, shown, clicked = map(list, zip(*log, strict=True))
    table = oracles.page_table(query, shown, clicked)
    found = count_pages(query, shown, clicked=clicked)
    assert isinstance(found, PageCounts)
    assert found.n_pages == len(table)
    seen = set()
    for number in range(found.n_pages):
        rows = found.page == number
        key = (int(found.query[rows][0]), tuple(found.document[rows].tolist()))
        seen.add(key)
        (impressions,), places = table[key]
        assert found.rank[rows].tolist() == list(range(1, len(places) + 1))
        assert found.impressions[rows].tolist() == [impressions] * len(places)
        assert found.clicks[rows].tolist() == places
        above = [
            [oracles.mean_above(impressions[half], [c[half] for c in places], place) for half in (0, 1)]
            for place in range(len(places))
        ]
        np.testing.assert_allclose(found.clicks_above[rows], above, rtol=1e-14)
    assert seen == set(table)


@pytest.mark.oracle("pages.simulate_pages")
@pytest.mark.parametrize("user", [CascadeUser(stop=0.7, epsilon_plus=0.8, epsilon_minus=0.2), "position"])
def test_simulated_pages(user: CascadeUser | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates of each document on each page within four standard errors; the second query is shorter than a page."""
    monkeypatch.setattr(pages_module, "BLOCK", 7_000)
    offsets, relevance = [0, 3, 5], [1, 0, 1, 0, 1]
    rankers = [DeterministicPolicy(rank, offsets) for rank in ([1, 2, 3, 1, 2], [3, 1, 2, 2, 1])]
    policy, n = MixturePolicy(rankers, [0.6, 0.4]), 40_000
    theta, attraction = [1.0, 0.5, 0.2], [0.8 * y + 0.2 * (1 - y) for y in relevance]
    if isinstance(user, CascadeUser):
        someone: CascadeUser | PositionBasedUser = user
    else:
        someone = PositionBasedUser(theta, epsilon_plus=0.8, epsilon_minus=0.2)
    found = simulate_pages(policy, someone, relevance=relevance, sessions=[n, n], rng=np.random.default_rng(0))
    assert found.impressions[found.rank == 1].sum() == 2 * n
    assert (np.abs(np.diff(found.impressions, axis=1)) <= 1).all(), "sessions go to the halves in turn"
    assert {tuple(found.document[found.page == i].tolist()) for i in range(4)} == {(0, 1, 2), (1, 2, 0), (3, 4), (4, 3)}
    for number in range(found.n_pages):
        rows = found.page == number
        page = found.document[rows].tolist()
        if isinstance(user, CascadeUser):
            law = oracles.cascade_law([attraction[d] for d in page], 0.7, 0.0)
            rates = [math.fsum(p for clicks, p in law.items() if clicks[i]) for i in range(len(page))]
        else:
            rates = [oracles.clicked(theta, 0.8, 0.2, i + 1, relevance[d]) for i, d in enumerate(page)]
        for half in (0, 1):
            size = found.impressions[rows, half]
            gap = np.abs(found.clicks[rows, half] / size - rates)
            assert (gap <= 4 * np.sqrt(np.multiply(rates, np.subtract(1, rates)) / size)).all()


ROWS = {
    "page": [0, 0, 1],
    "query": [0, 0, 1],
    "document": [4, 5, 6],
    "rank": [1, 2, 1],
    "impressions": [[2, 1], [2, 1], [1, 0]],
    "clicks": [[1, 0], [2, 1], [0, 0]],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({name: [] for name in ROWS}, r"^rank: there is no row"),
        ({"page": [0, 0, 2]}, r"^page\[2\] is 2: number pages 0, 1, 2"),
        ({"rank": [1, 3, 1]}, r"^rank\[1\] is 3: the rows of a page have the ranks 1, 2"),
        ({"rank": [1, 2, 2]}, r"^rank\[2\] is 2"),
        ({"query": [0, 1, 1]}, r"^query\[1\] is 1: a page is of one query"),
        ({"document": [4, 4, 6]}, r"^document\[1\] is 4: the document stands on its page already"),
        ({"impressions": [[2, 1], [2, 2], [1, 0]]}, r"^impressions\[1, 1\] is 2: places of a page"),
        ({"clicks": [[1, 0], [2, 2], [0, 0]]}, r"^clicks\[1, 1\] is 2: more clicks than impressions"),
        ({"clicks": [1, 0, 0]}, r"^clicks: expected shape \(3, 2\), the two halves, got \(3,\)"),
        ({"document": [4, -5, 6]}, r"^document\[1\] is -5: expected 0 or more"),
    ],
)
def test_pages_that_are_refused(changed: dict, message: str) -> None:
    assert PageCounts(**ROWS).n_pages == 2
    with pytest.raises(ValueError, match=message):
        PageCounts(**{**ROWS, **changed})


@pytest.mark.parametrize(
    ("query", "shown", "clicked", "message"),
    [
        ([0], [3, 4], [0, 0], r"^shown: expected a row of whole numbers for each session"),
        ([0], [[0.5, 1.0]], [[0, 0]], r"^shown: expected a row of whole numbers"),
        ([0, 0], [[3, 4]], [[0, 0]], r"^query: expected shape \(1,\)"),
        ([0], [[3, 4]], [[0]], r"^clicked: expected shape \(1, 2\), as shown"),
        ([0], [[3, -2]], [[0, 0]], r"^shown\[0, 1\] is -2: expected the number of a document"),
        ([0], [[-1, 4]], [[0, 0]], r"^shown\[0, 1\] is 4: it stands below an empty place"),
        ([0], [[3, 4]], [[0, 2]], r"^clicked\[0, 1\] is 2: expected 1 for a click"),
        ([0], [[3, -1]], [[0, 1]], r"^clicked\[0, 1\] is 1: nothing is shown there"),
        ([0], [[-1, -1]], [[0, 0]], r"^shown: no session was shown anything"),
        (
            [0, 0],
            [[4, 3], [3, 3]],
            [[0, 0]] * 2,
            r"^shown\[1, 1\] is 3: the document stands on this page already; keep",
        ),
        ([0, 0], [[4, 3], [3]], [[0, 0]] * 2, r"^shown: the rows have different lengths; fill shorter pages up"),
        ([0], [[3, 4]], [[1, 0], [1]], r"^clicked: the rows have different lengths"),
    ],
)
def test_sessions_that_are_refused(query: list, shown: list, clicked: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_pages(query, shown, clicked=clicked)


@pytest.mark.parametrize(
    ("changed", "kind", "message"),
    [
        ({"relevance": [1.0]}, ValueError, r"^relevance: expected shape \(2,\)"),
        ({"relevance": [1.0, 2.0]}, ValueError, r"^relevance\[1\] is 2"),
        ({"sessions": [1, 1]}, ValueError, r"^sessions: expected shape \(1,\)"),
        ({"sessions": [0]}, ValueError, r"^sessions: there is no session"),
        ({"rng": 3}, TypeError, r"^rng is int"),
    ],
)
def test_simulations_that_are_refused(changed: dict, kind: type[Exception], message: str) -> None:
    given = {"relevance": [1.0, 0.0], "sessions": [2], "rng": np.random.default_rng(0)}
    with pytest.raises(kind, match=message):
        simulate_pages(DeterministicPolicy([1, 2], [0, 2]), CascadeUser(), **{**given, **changed})


@pytest.mark.oracle("pages.distinct_rows")
@given(st.lists(st.tuples(*[st.integers(-1, 3)] * 3), min_size=1, max_size=12))
def test_distinct_rows_are_those_of_the_loop(rows: list[tuple[int, ...]]) -> None:
    table = np.array(rows)
    found, which = pages_module.distinct_rows(table)
    expected, expected_which = oracles.distinct_rows(table)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(which, expected_which)
