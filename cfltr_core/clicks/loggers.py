"""Loggers: rankers learnt from a few labels, whose pages fill the logs of the experiments."""

from __future__ import annotations

import numpy as np

from cfltr_core import checks
from cfltr_core.ranking.linear import LinearRanker
from cfltr_core.ranking.ragged import RankingData, document_index


def fit_linear_ranker(
    data: RankingData,
    fraction: float,
    *,
    rng: np.random.Generator,
    ridge: float = 1.0,
    min_queries: int = 20,
) -> LinearRanker:
    """A linear ranker by ridge regression of binary relevance on a random share of the queries.

    ``f(d) = w · x_d``; w minimises Σ (relevance − mean − z·v)² + ridge · ‖v‖² over standardised features z
    and is then expressed in raw features.  This is the *logger* of the experiments: Agarwal et al. 2018 use 1 % of
    the labelled queries, Jagerman & de Rijke 2020 0.1 %; at least ``min_queries`` are taken.  With
    ``fraction=1`` it is the full-information linear ranker.

    Returns
    -------
    LinearRanker
        ``ranker.decision_function(data.features)`` are its scores.
    """
    checks.within(fraction, 0, 1, "fraction", "a share of the queries")
    checks.positive(ridge, "ridge")
    size = min(data.n_queries, max(checks.positive_int(min_queries, "min_queries"), round(fraction * data.n_queries)))
    chosen = np.sort(checks.generator(rng).choice(data.n_queries, size=size, replace=False))
    rows = document_index(chosen, data.offsets)
    x = data.features[rows].astype(np.float64)
    y = data.binary[rows]
    scale = x.std(axis=0)
    # A constant column carries no order; its weight is 0, not 0/0.
    scale[scale < 1e-12] = np.inf
    z = (x - x.mean(axis=0)) / scale
    v = np.linalg.solve(z.T @ z + ridge * np.eye(z.shape[1]), z.T @ (y - y.mean()))
    return LinearRanker(v / scale)
