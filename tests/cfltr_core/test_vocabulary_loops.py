"""λ with its metric, weights of a log, linear rankers in files: against literal loops."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cfltr_core as cf
from cfltr_core.ranking.ragged import query_of
from cfltr_core.ranking.rank_weight import RankWeights

SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=4, max_size=4)
OFFSETS = [0, 3, 4]
LOG = cf.ClickLog(
    document=[0, 1, 1, 3], rank=[1, 2, 3, 1], impressions=[9, 4, 5, 6], clicks=[5, 0, 2, 4],
    propensity=[1.0, 0.5, 0.25, 0.8], sessions=[9, 6], offsets=OFFSETS,
)  # fmt: skip
# No click can be where nothing is examined.
UNSEEN = cf.ClickLog(
    document=[0, 1], rank=[1, 2], impressions=[3, 3], clicks=[1, 0], propensity=[0.5, 0.0], sessions=[3], offsets=[0, 2]
)


@pytest.mark.oracle("rank_weight.RankWeights", "rank_weight.RankWeights.__len__")
@given(left=SCORES, right=SCORES)
def test_a_difference_compares_two_rankers(left: list[float], right: list[float]) -> None:
    one, other = (cf.rank_weights(scores, OFFSETS, metric=cf.dcg()) for scores in (left, right))
    loops = [oracles.rank_weights(scores, OFFSETS, oracles.dcg) for scores in (left, right)]
    difference = one - other
    assert isinstance(difference, RankWeights)
    assert len(difference) == 4
    np.testing.assert_allclose(difference, oracles.rank_difference(*loops), rtol=0, atol=1e-14)
    assert repr(difference) == "RankWeights(DCG at the ranks of 4 documents)"
    for estimate in (cf.naive, cf.ips, lambda log, given: cf.clipped(log, given, cap=2.0)):
        paired = estimate(LOG, difference)
        assert math.isclose(paired.value, estimate(LOG, one).value - estimate(LOG, other).value, abs_tol=1e-12)
        assert paired.metric is one.metric


def test_other_numbers_are_no_difference() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        cf.rank_weights([1.0], [0, 1], metric=cf.dcg()) - 3  # type: ignore[operator]


@pytest.mark.oracle("estimates.Estimate.report")
@pytest.mark.parametrize(("metric", "gain"), [(cf.dcg(), True), (cf.average_rank(), False)])
def test_an_estimate_reports_what_a_table_shows(metric, gain: bool) -> None:
    lam = cf.rank_weights([3.0, 2.0, 1.0, 0.0], OFFSETS, metric=metric)
    for estimate in (cf.naive, cf.ips, cf.self_normalised):
        found = estimate(LOG, lam)
        assert found.report() == oracles.report(found.value, gain)
        assert found.value == estimate(LOG, lam=lam.lam).value


@pytest.mark.oracle("estimates.Estimate.report_interval")
@pytest.mark.parametrize(("metric", "gain"), [(cf.dcg(), True), (cf.average_rank(), False)])
def test_what_a_table_shows_lies_in_the_interval_that_it_shows(metric, gain: bool) -> None:
    found = cf.ips(LOG, cf.rank_weights([3.0, 2.0, 1.0, 0.0], OFFSETS, metric=metric))
    for level in (0.5, 0.95):
        low, high = found.report_interval(level)
        reported = oracles.report(found.value, gain)
        assert low < found.report() < high
        np.testing.assert_allclose((low, high), oracles.normal_interval(reported, found.standard_error, level))


@pytest.mark.oracle("ragged.query_of")
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_query_of(sizes: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    documents = np.arange(offsets[-1])[::-1]
    assert query_of(documents, offsets).tolist() == [oracles.list_of(d, offsets.tolist()) for d in documents]


@pytest.mark.oracle("logs.ClickLog.weights", "logs.ClickLog.mass")
@pytest.mark.parametrize("log", [LOG, UNSEEN])
def test_weights_and_mass(log: cf.ClickLog) -> None:
    propensity = log.propensity.tolist()
    np.testing.assert_allclose(log.weights, oracles.weights_of(propensity), rtol=1e-15)
    np.testing.assert_allclose(log.mass, oracles.masses_of(log.clicks.tolist(), propensity), rtol=1e-15)


def test_a_log_without_clicks_has_no_mass() -> None:
    silent = cf.ClickLog(
        document=[0], rank=[1], impressions=[2], clicks=[0], propensity=[1.0], sessions=[2], offsets=[0, 1]
    )
    with pytest.raises(ValueError, match="log: there is no click in the log"):
        _ = silent.mass
