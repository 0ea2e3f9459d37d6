"""The last value that is accepted and the first that is refused, and numbers that must be taken to double precision."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import refuses
from small_logs import CUTS, POLICY, SILENT, X

import cfltr_core as cf
from cfltr_book import mean_interval
from cfltr_book.data.letor import ReaderOptions
from cfltr_book.theory import exact
from cfltr_book.theory.convergence import convergence_bound, second_moment
from cfltr_book.theory.exact import expectation, mean_and_variance
from cfltr_book.theory.proofs import exact_runs, proof_steps
from cfltr_core.learning.samplers import ClickSampler, QuerySampler
from cfltr_core.learning.single_clicks import click_gradients, gradient_bounds
from cfltr_core.sampling import AliasTable

USER = cf.PositionBasedUser([1.0, 0.5])
LARGEST = float(np.finfo(np.float32).max)
TINY = float(np.finfo(np.float64).tiny)
SMALLEST = float(np.nextafter(0.0, 1.0))
BELOW_1, ABOVE_1 = float(np.nextafter(1.0, 0.0)), float(np.nextafter(1.0, 2.0))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def terms(**changes: Any) -> cf.ClickLog:
    one = {"document": [0], "rank": [1], "impressions": [4], "clicks": [4], "propensity": [1.0], "sessions": [4, 0]}
    return cf.ClickLog(**{**one, "offsets": CUTS, **changes})


def runs(probability: Any, **changes: Any) -> object:
    given = {"factor": [1.0, 1.0], "learning_rate": 0.1, "steps": 2, "n_features": 1} | changes
    return exact_runs(lambda states: np.ones((len(states), 2, 1)), probability, **given)


# A function of one number, the values at the edge that it takes, and those beyond that it refuses.
EDGES: dict[str, tuple[Callable[[Any], object], list[Any], list[Any]]] = {
    "a rank": (cf.average_rank(), [1], [BELOW_1]),
    "a place that explores": (
        lambda v: cf.EpsilonGreedyPolicy([1, 2, 1], CUTS, epsilon=[v]), [0.0, 1.0], [-SMALLEST, ABOVE_1],
    ),
    "shares": (
        lambda v: cf.MixturePolicy([POLICY, POLICY], [0.5, 0.5 + v]), [9e-10, -9e-10], [1.1e-9, -1.1e-9],
    ),
    "propensity of a clicked term": (lambda v: terms(propensity=[v]), [SMALLEST * 1e10, 1.0], [0.0, ABOVE_1]),
    "propensity of a term": (lambda v: terms(propensity=[v], clicks=[0]), [0.0, 1.0], [-SMALLEST, ABOVE_1]),
    "grade": (lambda v: cf.RankingData([[1.0]], [v], offsets=[0, 1]), [0, 30], [-1, 31]),
    "feature": (
        lambda v: cf.RankingData([[v]], [1], offsets=[0, 1]), [LARGEST, -LARGEST], [2 * LARGEST, math.inf, math.nan],
    ),
    "subset": (lambda v: cf.RankingData(X, [0, 1, 2], offsets=CUTS).subset([v]), [0, 1], [-1, 2]),
    "document of a bound": (lambda v: cf.surrogate_ranks([1.0] * 3, CUTS, documents=[v]), [0, 2], [-1, 3]),
    "steps of a bound": (lambda v: convergence_bound(1.0, 1.0, weight=1.0, steps=v), [1], [BELOW_1]),
    "weight of a moment": (
        lambda v: second_moment([v], [1.0], counts=[1], sampling="uniform"), [TINY, 1e100], [0.0, TINY / 2],
    ),
    "norm of a moment": (
        lambda v: second_moment([1.0], [v], counts=[1], sampling="uniform"), [0.0], [-SMALLEST, math.inf],
    ),
    "law of the draws": (lambda v: runs([0.5, 0.5 + v]), [9e-10, -9e-10], [1.1e-9, -1.1e-9]),
    "sequences": (lambda v: runs([0.5, 0.5], steps=v), [1], [0, 21, 40]),
    "keep": (lambda v: AliasTable([v], [0]), [0.0, 1.0], [-SMALLEST, ABOVE_1]),
    "alias": (lambda v: AliasTable([1.0, 1.0], [0, v]), [0, 1], [-1, 2]),
    "weight of a table": (lambda v: AliasTable.build([1.0, v]), [0.0, 1e308], [-SMALLEST, math.inf]),
    "clicked document": (
        lambda v: ClickSampler([v], AliasTable([1.0], [0]), factor=[1.0], offsets=CUTS), [0, 2], [-1, 3],
    ),
    "mass": (lambda v: QuerySampler([v, 1, 1], CUTS, law=[1, 1]), [0.0], [-SMALLEST, math.inf]),
    "law of the queries": (lambda v: QuerySampler([1, 1, 1], CUTS, law=[1, v]), [0.0], [-SMALLEST, math.inf]),
    "cap of the reader": (lambda v: ReaderOptions(cap=v), [SMALLEST, LARGEST], [0.0, 2 * LARGEST, True]),
    "dropped feature": (lambda v: ReaderOptions(drop=(v,)), [1], [0]),
    "threshold of the reader": (lambda v: ReaderOptions(threshold=v), [1, None], [0]),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_the_edge_is_where_it_is_said_to_be(name: str) -> None:
    function, accepted, refused = EDGES[name]
    for value in accepted:
        function(value)
    for value in refused:
        with pytest.raises((ValueError, TypeError)):
            function(value)


# --- what is computed in double precision, whatever came in -----------------------------------------------------


TENTH = float(np.float32(0.1))  # no decimal, but a number of both precisions


def test_single_precision_is_taken_to_double() -> None:
    values = np.array([0.1, 0.7, 1e-4], dtype=np.float32)
    exact = [float(value) for value in values]
    mean = math.fsum(exact) / 3
    assert mean_interval(values)[0] == pytest.approx(mean, rel=1e-15)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in exact) / 2 / 3)
    low = mean - 0.95 / math.sqrt(2 * 0.975 * 0.025) * spread  # Student, two degrees of freedom
    assert mean_interval(values)[1] == pytest.approx(low, rel=1e-12)
    assert mean_interval(values, units=np.array([1, 1, 2], dtype=np.int8))[0] == pytest.approx(
        (math.fsum(exact[:2]) / 2 + exact[2]) / 2, rel=1e-15
    )
    for metric, sign in ((cf.dcg(), -1), (cf.average_rank(), 1)):
        for risk in (values, values.tolist(), np.float32(0.1), 3, [True, False]):
            shown = metric.report(risk)
            assert shown.dtype == np.float64
            assert shown.tolist() == (sign * np.array(risk, dtype=np.float64)).tolist()
    assert cf.rank_weights(values, [0, 3], metric=cf.dcg()).lam.dtype == np.float64
    assert cf.ranks(values, [0, 3]).dtype == np.float64


def test_an_expectation_is_of_double_precision() -> None:
    experiment = {"user": USER, "relevance": [1, 0, 1], "sessions": [1, 1]}
    mean = expectation(lambda log: np.float32(0.1), POLICY, **experiment)
    assert (mean.dtype, mean.shape) == (np.float64, ())
    assert float(mean) == pytest.approx(TENTH, rel=1e-15)
    mean, variance = mean_and_variance(lambda log: np.full(2, 0.1, dtype=np.float32), POLICY, **experiment)
    assert (mean.dtype, variance.dtype) == (np.float64, np.float64)
    np.testing.assert_allclose(mean, TENTH, rtol=1e-15)
    assert (variance <= 1e-30).all()
    assert expectation(lambda log: log.clicks[0] > 0, POLICY, **experiment) == pytest.approx(1.0)
    assert expectation(lambda log: [0, 2], POLICY, **experiment).tolist() == pytest.approx([0.0, 2.0])


# --- what an estimate says of itself -------------------------------------------------------------------------------


def test_an_estimate_from_a_silent_log_is_not_a_number_but_knows_its_metric() -> None:
    for metric in (cf.dcg(), cf.average_rank()):
        found = cf.self_normalised(SILENT, cf.rank_weights([1.0, 2.0, 3.0], CUTS, metric=metric))
        assert math.isnan(found.value)
        assert math.isnan(found.standard_error)
        assert (found.n_sessions, found.n_clicks, found.metric) == (6, 0, metric)
        assert math.isnan(found.report())
    assert cf.self_normalised(SILENT, lam=[1.0] * 3).metric is None


def test_gradients_of_another_shape_are_told() -> None:
    for shape, message in (
        ((3, 2, 1), r"^gradients returned shape \(3, 2, 1\), expected \(1, 2, 1\)$"),
        ((1, 2, 2), r"^gradients returned shape \(1, 2, 2\), expected \(1, 2, 1\)$"),
        ((1, 2, 1), r"^gradients returned shape \(1, 2, 1\), expected \(2, 2, 1\)$"),  # of the second step
    ):
        with pytest.raises(ValueError, match=message):
            exact_runs(
                lambda states, shape=shape: np.ones(shape), [0.5, 0.5], factor=[1.0, 1.0], learning_rate=0.1, steps=2,
                n_features=1,
            )  # fmt: skip


def test_without_a_bound_on_the_moment_it_is_the_square_of_the_other() -> None:
    found = runs([0.25, 0.75], factor=[1.0, 3.0], learning_rate=0.5)
    given = {"risk_gradient": lambda w: np.ones((len(w), 1)), "optimum": [-1.0], "radius": 2.0, "gradient_bound": 3.0}
    proof = proof_steps(found, lambda w: w[:, 0], **given)
    assert proof.moment == proof.bound == 2.0**2 / (2 * 0.5 * 2) + 0.5 / 2 * 3.0**2
    assert proof_steps(found, lambda w: w[:, 0], **given, moment_bound=7.0).moment == 2.0 + 0.25 * 7.0


def test_the_last_number_of_outcomes_that_is_tried() -> None:
    """Two million, of sequences of clicks as of logs; the next is refused before anything is computed."""
    exact._require_few(2_000_000)
    refuses("sessions, relevance: 2000001 outcomes", exact._require_few, 2_000_001)

    def never(states: np.ndarray) -> np.ndarray:
        raise AssertionError("computed")

    many = {"learning_rate": 0.1, "steps": 1, "n_features": 1}
    n = 2_000_001
    refuses("steps is 1: 2000001^1 sequences are", exact_runs, never, np.full(n, 1 / n), factor=np.ones(n), **many)
    with pytest.raises(AssertionError, match="computed"):
        exact_runs(never, np.full(n - 1, 1 / (n - 1)), factor=np.ones(n - 1), **many)


def test_gradients_of_single_precision_features_are_computed_in_double() -> None:
    """1 + 2⁻²⁰ times 1 + 2⁻²⁰ and sums of many documents do not fit into single precision."""
    x = (1 + np.arange(40, dtype=np.float32)[:, None] * np.float32(2.0**-20)) * np.ones((1, 2), dtype=np.float32)
    w = [1 / 3, -1 / 7]
    exact_x = x.astype(np.float64).tolist()
    scores = [row[0] * w[0] + row[1] * w[1] for row in exact_x]
    for document in (0, 39):
        active = [y for y in range(40) if y != document and scores[document] - scores[y] < 1]
        expected = [math.fsum(exact_x[y][f] - exact_x[document][f] for y in active) for f in range(2)]
        found = click_gradients(x, [0, 40], documents=[document], w=w)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-13)
        lengths = [math.dist(exact_x[y], exact_x[document]) for y in range(40)]
        np.testing.assert_allclose(gradient_bounds(x, [0, 40], documents=[document]), math.fsum(lengths), rtol=1e-13)
