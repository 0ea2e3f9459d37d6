"""The test of what clicks above do: against loops over pages, its size and power, and what must not be done."""

import dataclasses
import math

import numpy as np
import oracles
import pytest
from refusals import refuses

import cfltr_core as cf
from cfltr_core.clicks.other_users import CascadeUser
from cfltr_core.clicks.pages import PageCounts
from cfltr_core.propensity.clicks_above import page_displays

PLACES = 4
NOISE = {"epsilon_plus": 0.9, "epsilon_minus": 0.1}
POSITION = cf.PositionBasedUser([1 / k for k in range(1, PLACES + 1)], **NOISE)
CASCADE = CascadeUser(**NOISE)


def simulated(user: cf.PositionBasedUser | CascadeUser, seed: int, n_queries: int, sessions: int) -> PageCounts:
    """Pages of four of six documents, by three rankers of little skill."""
    rng, offsets = np.random.default_rng(seed), np.arange(n_queries + 1) * 6
    relevance = (rng.random(6 * n_queries) < 0.4).astype(float)
    rankers = [
        cf.DeterministicPolicy.rank_by(relevance + rng.normal(size=6 * n_queries), offsets, rng=rng, cutoff=PLACES)
        for _ in range(3)
    ]
    policy = cf.MixturePolicy(rankers, [1 / 3] * 3)
    return cf.simulate_pages(policy, user, relevance=relevance, sessions=[sessions] * n_queries, rng=rng)


def single_sessions(seed: int) -> tuple[list[int], list[list[int]], list[list[int]]]:
    """Twelve queries of three documents, pages of three in any of four orders, clicks at random."""
    rng = np.random.default_rng(seed)
    orders = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [1, 0, 2]]
    query = np.repeat(np.arange(12), 30).tolist()
    shown = [orders[i] for i in rng.integers(4, size=len(query))]
    clicked = (rng.random((len(query), 3)) < [0.7, 0.5, 0.4]).astype(int).tolist()
    return query, shown, clicked


@pytest.mark.oracle("clicks_above.page_displays")
def test_pages_as_strata() -> None:
    query, shown, clicked = single_sessions(0)
    expected: dict[tuple[int, int, int], list[int]] = {}
    for (q, page), ((impressions,), places) in oracles.page_table(query, shown, clicked).items():
        for place, document in enumerate(page):
            cell = expected.setdefault((q, document, place + 1), [0, 0])
            for h in (0, 1):
                cell[0] += impressions[h]
                cell[1] += places[place][h]
    counts = page_displays(cf.count_pages(query, shown, clicked=clicked))
    rows = zip(counts.query, counts.document, counts.rank, counts.impressions, counts.clicks, strict=True)
    assert {(q, d, k): [n, c] for q, d, k, n, c in rows} == {key: cell for key, cell in expected.items() if cell[0]}
    # The second page was shown in no session.
    unseen = PageCounts(
        page=[0, 1], query=[0, 0], document=[7, 7], rank=[1, 2], impressions=[[2, 1], [0, 0]], clicks=[[1, 0], [0, 0]]
    )
    assert page_displays(unseen).rank.tolist() == [1]


@pytest.mark.oracle("clicks_above.clicks_above_test")
def test_against_loops() -> None:
    query, shown, clicked = single_sessions(3)
    pages = cf.count_pages(query, shown, clicked=clicked)
    test = cf.clicks_above_test(pages)
    rows = oracles.above_rows(oracles.page_table(query, shown, clicked), 0)

    def slopes(mine: list[oracles.Above], at: list[float]) -> list[float]:
        return oracles.differences(lambda v: oracles.above_value(mine, [0.0, *v[:2]], v[2]), at)

    # Newton's method in the loops.
    at, step = np.zeros(3), 1e-4
    for _ in range(8):
        hessian = [
            [(a - b) / (2 * step) for a, b in zip(slopes(rows, up.tolist()), slopes(rows, down.tolist()), strict=True)]
            for up, down in ((at + step * e, at - step * e) for e in np.eye(3))
        ]
        at = at - np.linalg.solve(hessian, slopes(rows, at.tolist()))
    assert test.slope == pytest.approx(at[2], abs=1e-6)
    inverse = np.linalg.inv(hessian)
    influence = [(-inverse @ slopes([row for row in rows if row[0][0] == q], at.tolist())).tolist() for q in range(12)]
    error = math.sqrt(oracles.outer_sum(influence, 12)[2][2])
    assert test.standard_error == pytest.approx(error, rel=1e-4)
    assert test.z == pytest.approx(test.slope / test.standard_error, rel=1e-12)
    assert test.queries == 12
    assert test.p_value == pytest.approx(2 * (1 - oracles.student_cdf(abs(test.z), 11)), abs=1e-6)
    table = oracles.page_table(query, shown, clicked)
    kept = [i for i, (q, row) in enumerate(zip(query, shown, strict=True)) if min(table[q, tuple(row)][0][0]) > 0]
    both = cf.count_pages(*([column[i] for i in kept] for column in (query, shown)), clicked=[clicked[i] for i in kept])
    fitted = dataclasses.replace(both, impressions=both.impressions * [0, 1], clicks=both.clicks * [0, 1])
    curve = cf.conditional_poisson(page_displays(fitted))
    np.testing.assert_allclose(test.curve.curve, curve.curve, rtol=1e-9)


def test_size_and_power() -> None:
    """200 logs of the position model: rejected as often as 5 % allow (four standard errors); cascades always."""
    tests = [cf.clicks_above_test(simulated(POSITION, seed, 60, 24)) for seed in range(200)]
    rejected = np.mean([test.p_value < 0.05 for test in tests])
    assert abs(rejected - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200)
    assert abs(np.mean([test.z for test in tests])) < 4 / math.sqrt(200)
    cascades = [cf.clicks_above_test(simulated(CASCADE, seed, 100, 30)) for seed in range(20)]
    assert all(test.z < -4 and test.p_value < 1e-3 for test in cascades)


def test_what_is_refused() -> None:
    refuses("pages is DisplayCounts: expected", cf.clicks_above_test, page_displays(simulated(POSITION, 0, 5, 20)))
    pages = cf.count_pages([0, 0], [[0, 1], [1, 0]], clicked=[[1, 0], [1, 1]])
    refuses("pages: no page was shown in both halves; show pages more than once", cf.clicks_above_test, pages)
    one = cf.count_pages([0] * 4, [[0, 1, 2]] * 4, clicked=[[1, 0, 1]] * 4)
    refuses("counts: no two ranks can be compared, because every document was shown at", cf.clicks_above_test, one)
    # Two pages a query, and each document at each rank has the same clicks above it: nothing varies but the rank.
    alike = cf.count_pages(
        [0] * 8 + [1] * 8, [[0, 1], [1, 0]] * 8, clicked=[[1, 0]] * 4 + [[1, 1]] * 4 + [[1, 0]] * 4 + [[1, 1]] * 4
    )
    refuses("pages: wherever a document stands at a rank, as much was clicked above it", cf.clicks_above_test, alike)
