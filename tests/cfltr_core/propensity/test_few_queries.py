"""Intervals from few queries: Student's quantile, for as many queries of equal weight as the clicks amount to."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import oracles
import pytest
from refusals import refuses

import cfltr_core as cf
from cfltr_core.propensity.conditional_poisson import by_rank
from cfltr_core.propensity.curves import PropensityCurve, effective_queries, grouped_curve, student_quantile

THETA = np.array([1, 1 / 2, 1 / 3, 1 / 4])


def simulated(rng: np.random.Generator, n_queries: int) -> cf.DisplayCounts:
    """Three documents a query, at all four ranks; some queries are asked much more often than others."""
    shape = (n_queries, 3, 4)
    query, document, place = np.indices(shape).reshape(3, -1)
    often = rng.choice([10, 40], n_queries)[query]
    liked = rng.uniform(0.05, 0.95, (n_queries, 3))[query, document]
    shown = 1 + rng.poisson(often)
    return cf.DisplayCounts(
        query=query, document=3 * query + document, rank=place + 1, impressions=shown,
        clicks=rng.binomial(shown, liked * THETA[place]),
    )  # fmt: skip


@pytest.mark.oracle("curves.effective_queries")
@pytest.mark.parametrize("estimate", [cf.all_pairs, cf.adjacent_chain, cf.click_rates])
def test_how_many_queries_the_clicks_amount_to(estimate: Callable[[cf.DisplayCounts], PropensityCurve]) -> None:
    counts = simulated(np.random.default_rng(1), 7)
    clicks = [[0.0] * 4 for _ in range(7)]
    for q, k, c in zip(counts.query, counts.rank, counts.clicks, strict=True):
        clicks[q][k - 1] += c
    expected = oracles.effective_queries(clicks)
    np.testing.assert_allclose(effective_queries(clicks), expected, rtol=1e-12)
    queries = estimate(counts).queries
    assert queries is not None
    np.testing.assert_allclose(queries, expected, rtol=1e-12)
    assert effective_queries([[0, 3], [0, 0]]).tolist() == [0, 1]


@pytest.mark.oracle("conditional_poisson.StratifiedPoisson.noise")
def test_how_many_queries_the_parts_of_the_variance_amount_to() -> None:
    """The conditional Poisson curve: by loops over terms, from its own θ̂."""
    counts = simulated(np.random.default_rng(1), 7)
    curve = cf.conditional_poisson(counts)
    rows = (counts.query, counts.document, counts.rank, counts.impressions, counts.clicks)
    parts = oracles.query_noise(list(zip(*(x.tolist() for x in rows), strict=True)), curve.curve.tolist(), 7)
    assert curve.queries is not None
    assert curve.queries[0] == np.inf
    np.testing.assert_allclose(curve.queries[1:], oracles.effective_queries([row[1:] for row in parts]), rtol=1e-6)
    regression = by_rank(counts, [1, 2, 3, 4])
    found = regression.noise(*regression.fit())
    np.testing.assert_allclose(found, parts, rtol=1e-6, atol=1e-15)


def test_the_pivot_counts_the_strata_that_it_used() -> None:
    """Of two documents only the first was shown at rank 1, so that only its query speaks."""
    terms = {"query": [0, 0, 1, 1], "document": [0, 0, 1, 1], "rank": [1, 2, 2, 3], "impressions": [9] * 4}
    queries = cf.pivot(cf.DisplayCounts(**terms, clicks=[4, 3, 5, 2])).queries
    assert queries is not None
    assert queries.tolist() == [1, 1, 0]


@pytest.mark.oracle("curves.student_quantile")
def test_intervals_by_the_law_of_student() -> None:
    u, error = np.array([0.0, -0.7, -1.2]), np.array([0.0, 0.1, 0.2])
    given = {"covariance": np.diag(error**2), "component": np.zeros(3, dtype=np.int64), "clicks": np.ones(3)}
    curve = grouped_curve("by hand", u, **given, queries=np.array([9.0, 30.0, 4.5]))  # type: ignore[arg-type]
    for k, degrees in ((1, 8.0), (2, 3.5)):  # the smaller of rank k and rank 1, less one
        t = oracles.bisect(lambda x, df=degrees: oracles.student_cdf(x, df), 0.95, 0.0, 40.0)
        assert student_quantile(degrees, 0.9) == pytest.approx(t, rel=1e-6)
        ends = [u[k] - t * error[k], u[k] + t * error[k]]
        np.testing.assert_allclose(np.log(curve.interval(0.9)[k]), ends, rtol=1e-6)
        np.testing.assert_allclose(np.log(curve.ratio(k + 1, 1, level=0.9)[1:]), ends, rtol=1e-6)
    assert curve.interval()[0].tolist() == [1, 1]
    plain = replace(curve, queries=None)
    assert (curve.interval()[1:, 1] > plain.interval()[1:, 1]).all()
    many = replace(curve, queries=np.full(3, 200.0))
    np.testing.assert_allclose(np.log(many.interval()[1:] / many.curve[1:, None]),
                               np.log(plain.interval()[1:] / plain.curve[1:, None]), rtol=0.01)  # fmt: skip
    alone = replace(curve, queries=np.array([9.0, 1.0, 9.0]))
    assert alone.interval()[1].tolist() == [0, np.inf]
    assert alone.ratio(2, 2)[1:] == (1, 1)
    refuses("queries: expected shape (3,), got (2,)", replace, curve, queries=np.ones(2))
