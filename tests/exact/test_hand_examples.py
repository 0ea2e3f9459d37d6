"""Small examples with the numbers worked out by hand."""

import numpy as np
import oracles
import pytest

import cfltr_core as cf


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
