"""Small examples with the numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest

from cfltr_core import (
    DeterministicPolicy,
    PositionBasedUser,
    RankingData,
    aggregate_clicks,
    dcg,
    fit_linear_ranker,
    ips,
    ips_variance,
    naive,
    ndcg,
    power_examination,
    ranks,
    self_normalised,
    sessions_for_clicks,
)


def test_examination_curves() -> None:
    assert power_examination(1.0)(np.array([1.0, 2.0, 4.0])).tolist() == [1.0, 0.5, 0.25]
    assert power_examination(2.0)(np.array([1.0, 2.0, 4.0])).tolist() == [1.0, 0.25, 0.0625]
    assert power_examination(1.0, shift=1.0)(np.array([1.0, 3.0])).tolist() == [0.5, 0.25]
    assert power_examination(0.0)(np.array([1.0, 99.0])).tolist() == [1.0, 1.0]


def test_rank_0_means_not_shown() -> None:
    """A curve is never asked about rank 0, where 1 / 0 would arise; a table ends after its last rank."""
    asked: list[float] = []

    def curve(rank: np.ndarray) -> np.ndarray:
        asked.extend(rank.tolist())
        return 1.0 / rank

    assert PositionBasedUser(curve).propensity([0, 2, 1]).tolist() == [0.0, 0.5, 1.0]
    assert min(asked) >= 1
    table = PositionBasedUser([1.0, 0.25])
    assert table.propensity([0, 1, 2, 3, 100]).tolist() == [0.0, 1.0, 0.25, 0.0, 0.0]
    assert table.propensity(2) == 0.25
    assert table.examination == (1.0, 0.25)


def test_click_probability_by_hand() -> None:
    user = PositionBasedUser([1.0, 0.5], epsilon_plus=0.8, epsilon_minus=0.2)
    np.testing.assert_allclose(user.click_probability([1, 2, 1, 2], [1, 1, 0, 0]), [0.8, 0.4, 0.2, 0.1], rtol=1e-15)


def test_ranks_by_hand() -> None:
    scores, cuts = [3.0, 1.0, 1.0, 5.0, 9.0], [0, 4, 5]
    assert ranks(scores, cuts).tolist() == [2, 3.5, 3.5, 1, 1]
    assert ranks(scores, cuts, ties="optimistic").tolist() == [2, 3, 3, 1, 1]
    assert ranks(scores, cuts, ties="pessimistic").tolist() == [2, 4, 4, 1, 1]


def test_ndcg_by_hand() -> None:
    """Grades 2, 0, 1 in this order: (3 + 1/2) / (3 + 1/log₂ 3); a second query without a relevant document."""
    scores, grades, cuts = [3.0, 2.0, 1.0, 1.0], [2, 0, 1, 0], [0, 3, 4]
    value = 3.5 / (3 + 1 / math.log2(3))
    found = ndcg(scores, cuts, relevance=grades)
    assert abs(found.mean - value) <= 1e-15
    assert found.share_dropped == 0.5
    assert math.isnan(found.per_query[1])
    assert abs(ndcg(scores, cuts, relevance=grades, empty="zero").mean - value / 2) <= 1e-15
    assert abs(ndcg(scores, cuts, relevance=grades, empty="one").mean - (value + 1) / 2) <= 1e-15
    assert ndcg(scores, cuts, relevance=grades, empty="one").share_dropped == 0.0
    nothing = ndcg([1.0], [0, 1], relevance=[0])
    assert math.isnan(nothing.mean)
    assert nothing.share_dropped == 1.0


def test_estimates_by_hand() -> None:
    """Two queries of two documents, 4 + 2 sessions, clicks 3, 1 and 2, 0; λ = rank; η = 1.

    naive (3·1 + 1·2 + 2·2) / 6 = 1.5;  IPS (3·1 + 1·2·2 + 2·2) / 6 = 11/6;  self-normalised 11 / (3 + 2 + 2) = 11/7.
    """
    policy, user = DeterministicPolicy([1, 2, 1, 2], [0, 2, 4]), PositionBasedUser(power_examination(1.0))
    log = aggregate_clicks([0, 1, 2, 0, 2, 0], policy, user=user, sessions=[4, 2])
    lam = [1.0, 2.0, 2.0, 1.0]
    assert naive(log, lam=lam).value == 1.5
    assert abs(ips(log, lam=lam).value - 11 / 6) <= 1e-15
    assert abs(self_normalised(log, lam=lam).value - 11 / 7) <= 1e-15
    # Residuals per query: 7 − 4·11/6 = −1/3 and 4 − 2·11/6 = 1/3; √(2 · 2/9) / 6 = 1/9.
    assert abs(ips(log, lam=lam).standard_error - 1 / 9) <= 1e-15


def test_variance_by_hand() -> None:
    """ρ = ½, λ / p = 4 on one document: 4 sessions give ¼ · ¼ · 16 = 1; two queries, one of them empty of clicks."""
    assert ips_variance([2.0], [0.5], weights=[2.0], offsets=[0, 1], sessions=[4]) == 1.0
    assert ips_variance([2.0], [0.5], weights=[2.0], offsets=[0, 1], sessions=4) == 1.0
    # Within: mean (4, 0) = 2; between: Var(2, 0) = 1; both over 4 sessions.
    assert ips_variance([2.0, 7.0], [0.5, 0.0], weights=[2.0, 1.0], offsets=[0, 1, 2], sessions=4) == 0.75


def test_sessions_for_clicks_by_hand() -> None:
    """Two queries with 1 + ½ and 1 expected clicks: 1.25 per session."""
    policy, user = DeterministicPolicy([1, 2, 1], [0, 2, 3]), PositionBasedUser(power_examination(1.0))
    assert sessions_for_clicks(policy, user, n_clicks=1000, relevance=[1, 1, 1]) == 800
    assert sessions_for_clicks(policy, user, n_clicks=0.001, relevance=[1, 1, 1]) == 1


@pytest.mark.oracle("loggers.fit_linear_ranker")
@pytest.mark.parametrize(
    ("fraction", "ridge", "least", "size"),
    [(1.0, 1.0, 20, 30), (0.5, 3.0, 5, 15), (0.0, 0.1, 7, 7), (0.01, 1.0, 99, 30)],
)
def test_fit_linear_ranker(fraction: float, ridge: float, least: int, size: int) -> None:
    """Normal equations solved by elimination on the queries that the same generator chooses; one column is constant."""
    rng = np.random.default_rng(3)
    cuts = np.concatenate([[0], np.cumsum(rng.integers(1, 6, size=30))])
    features = rng.normal(size=(cuts[-1], 4)).astype(np.float32)
    features[:, 2] = 0.25
    data = RankingData(features, rng.integers(0, 3, size=cuts[-1]), offsets=cuts, threshold=2)
    found = fit_linear_ranker(data, fraction, rng=np.random.default_rng(5), ridge=ridge, min_queries=least).weights
    chosen = sorted(np.random.default_rng(5).choice(30, size=size, replace=False).tolist())
    rows = oracles.document_index(chosen, cuts.tolist())
    loops = oracles.ridge_weights(features[rows].tolist(), [float(data.relevance[d] >= 2) for d in rows], ridge)
    assert found[2] == 0.0
    np.testing.assert_allclose(found, loops, rtol=1e-9, atol=1e-12)


def test_the_logger_of_the_experiments_has_ridge_1_and_at_least_20_queries() -> None:
    rng = np.random.default_rng(0)
    data = RankingData(rng.normal(size=(120, 3)), rng.integers(0, 2, size=120), offsets=np.arange(41) * 3)
    default = fit_linear_ranker(data, 0.01, rng=np.random.default_rng(1)).weights
    stated = fit_linear_ranker(data, 0.5, rng=np.random.default_rng(1), ridge=1.0, min_queries=1).weights
    np.testing.assert_array_equal(default, stated)


def test_fit_linear_ranker_finds_the_order_of_a_linear_world() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(4000, 3))
    utility = features @ [2.0, -1.0, 0.0]
    data = RankingData(features, utility > 0, offsets=np.arange(401) * 10)
    weights = fit_linear_ranker(data, 1.0, rng=rng).weights
    assert abs(weights[1] / weights[0] + 0.5) < 0.05
    assert abs(weights[2] / weights[0]) < 0.05


def test_the_weight_of_dcg_as_two_lines_of_the_lecture_notes_print_it_is_right_at_rank_1_only() -> None:
    rank = np.arange(1, 6)
    printed = np.log2(1 + 1 / rank)
    assert np.array_equal(np.isclose(-dcg()(rank), printed), rank == 1)
