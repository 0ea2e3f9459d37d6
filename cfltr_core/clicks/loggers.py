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
    """A linear ranker f(d) = w · x_d by ridge regression of binary relevance on a random share of the queries.

    v minimises Σ_d (relevance_d − mean − z_d · v)² + ridge · ‖v‖² over standardised features z; w is v expressed in
    raw features.  This is the *logger* of the experiments.  With ``fraction=1`` it is the full-information linear
    ranker.

    Source: the role, not the method, of the production ranker of Agarwal et al. 2018, §5.1 (1 % of the labelled
    queries) and the logging policy of Jagerman & de Rijke 2020, §6.3 (0.1 %).

    Parameters
    ----------
    data : RankingData
        Labelled queries.
    fraction : float
        Share of the queries that is used, in [0, 1]; at least ``min_queries`` of them are, or all there are.
    rng : numpy.random.Generator
        Draws the queries.
    ridge : float
        > 0.
    min_queries : int
        At least 1.

    Returns
    -------
    LinearRanker
        ``ranker.decision_function(data.features)`` are its scores.

    Raises
    ------
    ValueError
        For a fraction outside [0, 1], a ridge that is not > 0, or a ``min_queries`` below 1.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> data = cf.RankingData([[3, 0], [1, 0], [2, 0]], [1, 0, 1], offsets=[0, 3])
    >>> ranker = cf.fit_linear_ranker(data, fraction=1, rng=np.random.default_rng(0))
    >>> cf.ranks(ranker.decision_function(data.features), data.offsets)
    array([1., 3., 2.])
    """
    checks.arguments(fit_linear_ranker, locals())
    size = min(data.n_queries, max(min_queries, round(fraction * data.n_queries)))
    chosen = np.sort(rng.choice(data.n_queries, size=size, replace=False))
    rows = document_index(chosen, data.offsets)
    x = data.features[rows].astype(np.float64)
    y = data.binary[rows]
    scale = x.std(axis=0)
    # A constant column carries no order; its weight is 0, not 0/0.
    scale[scale < 1e-12] = np.inf
    z = (x - x.mean(axis=0)) / scale
    v = np.linalg.solve(z.T @ z + ridge * np.eye(z.shape[1]), z.T @ (y - y.mean()))
    return LinearRanker(v / scale)
