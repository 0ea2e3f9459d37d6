"""Small examples with the numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import oracles
import pytest

import cfltr_core as cf


def test_rank_0_means_not_shown() -> None:
    """A curve is never asked about rank 0, where 1 / 0 would arise; a table ends after its last rank."""
    asked: list[float] = []

    def curve(rank: np.ndarray) -> np.ndarray:
        asked.extend(rank.tolist())
        return 1.0 / rank

    assert cf.PositionBasedUser(curve).propensity([0, 2, 1]).tolist() == [0.0, 0.5, 1.0]
    assert min(asked) >= 1
    table = cf.PositionBasedUser([1.0, 0.25])
    assert table.propensity([0, 1, 2, 3, 100]).tolist() == [0.0, 1.0, 0.25, 0.0, 0.0]
    assert table.propensity(2) == 0.25
    assert table.examination == (1.0, 0.25)


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
    data = cf.RankingData(features, rng.integers(0, 3, size=cuts[-1]), offsets=cuts, threshold=2)
    found = cf.fit_linear_ranker(data, fraction, rng=np.random.default_rng(5), ridge=ridge, min_queries=least).weights
    chosen = sorted(np.random.default_rng(5).choice(30, size=size, replace=False).tolist())
    rows = oracles.document_index(chosen, cuts.tolist())
    loops = oracles.ridge_weights(features[rows].tolist(), [float(data.relevance[d] >= 2) for d in rows], ridge)
    assert found[2] == 0.0
    np.testing.assert_allclose(found, loops, rtol=1e-9, atol=1e-12)


def test_the_logger_of_the_experiments_has_ridge_1_and_at_least_20_queries() -> None:
    rng = np.random.default_rng(0)
    data = cf.RankingData(rng.normal(size=(120, 3)), rng.integers(0, 2, size=120), offsets=np.arange(41) * 3)
    default = cf.fit_linear_ranker(data, 0.01, rng=np.random.default_rng(1)).weights
    stated = cf.fit_linear_ranker(data, 0.5, rng=np.random.default_rng(1), ridge=1.0, min_queries=1).weights
    np.testing.assert_array_equal(default, stated)


def test_the_weight_of_dcg_as_two_lines_of_the_lecture_notes_print_it_is_right_at_rank_1_only() -> None:
    rank = np.arange(1, 6)
    printed = np.log2(1 + 1 / rank)
    assert np.array_equal(np.isclose(-cf.dcg()(rank), printed), rank == 1)
