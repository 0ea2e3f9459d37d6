"""Counts by page against loops over sessions; simulated pages against the law of every click vector."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cfltr_core as cf
from cfltr_core.clicks import pages as pages_module
from cfltr_core.clicks.other_users import CascadeUser
from cfltr_core.clicks.pages import PageCounts

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


@pytest.mark.oracle("pages.count_pages", "pages.PageCounts", "pages.PageCounts.n_pages",
                    "pages.PageCounts.clicks_above")  # fmt: skip
@given(log=sessions())
def test_count_pages(log: list[Session]) -> None:
    query, shown, clicked = map(list, zip(*log, strict=True))
    table = oracles.page_table(query, shown, clicked)
    found = cf.count_pages(query, shown, clicked=clicked)
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
    rankers = [cf.DeterministicPolicy(rank, offsets) for rank in ([1, 2, 3, 1, 2], [3, 1, 2, 2, 1])]
    policy, n = cf.MixturePolicy(rankers, [0.6, 0.4]), 40_000
    theta, attraction = [1.0, 0.5, 0.2], [0.8 * y + 0.2 * (1 - y) for y in relevance]
    if isinstance(user, CascadeUser):
        someone: CascadeUser | cf.PositionBasedUser = user
    else:
        someone = cf.PositionBasedUser(theta, epsilon_plus=0.8, epsilon_minus=0.2)
    found = cf.simulate_pages(policy, someone, relevance=relevance, sessions=[n, n], rng=np.random.default_rng(0))
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


@pytest.mark.oracle("pages.distinct_rows")
@given(st.lists(st.tuples(*[st.integers(-1, 3)] * 3), min_size=1, max_size=12))
def test_distinct_rows_are_those_of_the_loop(rows: list[tuple[int, ...]]) -> None:
    table = np.array(rows)
    found, which = pages_module.distinct_rows(table)
    expected, expected_which = oracles.distinct_rows(table)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(which, expected_which)
