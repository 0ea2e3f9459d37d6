"""The generated corpora a third time, as whole arrays: every step at once, for all documents and in float64.

Frozen: so the corpora were made when their numbers were first published, in sixty bytes a feature value.  Imports only
numpy; what is drawn and computed here must come out of the package to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

FACTORS, NUISANCE, SHAPE, ANGLE = 8, 12, 2.0, 70.0

Part = tuple[np.ndarray, np.ndarray, np.ndarray]


def corpus(k: dict, seed: int, sizes: Sequence[int], n_features: int) -> list[Part]:
    """``(features, grades, offsets)`` of train, validation and test; ``k`` is an entry of profile_loops.CORPORA."""
    streams = [np.random.default_rng([seed, part]) for part in range(4)]
    rng = streams[0]
    direction = rng.normal(size=FACTORS)
    direction /= np.linalg.norm(direction)
    pairs = rng.permutation(FACTORS).reshape(-1, 2)
    loadings = np.zeros((n_features, FACTORS + NUISANCE))
    for row in loadings:
        row[rng.choice(FACTORS, size=2, replace=False)] = rng.normal(size=2)
        row[FACTORS + rng.choice(NUISANCE, size=2, replace=False)] = 2.0 * rng.normal(size=2)
    loadings /= np.linalg.norm(loadings, axis=1, keepdims=True)
    blur = 0.8 * rng.uniform(0.3, 1.7, size=n_features)
    warp = rng.choice(4, size=n_features, p=(0.4, 0.25, 0.2, 0.15))
    query_level = rng.random(n_features) < 0.15
    away = rng.normal(size=FACTORS)
    away -= (away @ direction) * direction
    away /= np.linalg.norm(away)
    other = np.cos(np.radians(ANGLE)) * direction + np.sin(np.radians(ANGLE)) * away

    parts = []
    for n_queries, rng in zip(sizes, streams[1:], strict=True):
        lengths = list_lengths(k, n_queries, rng)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        query = np.repeat(np.arange(n_queries), lengths)
        n_docs = len(query)
        topic = 0.5 * rng.normal(size=(n_queries, FACTORS + NUISANCE))
        factors = topic[query] + np.sqrt(0.75) * rng.normal(size=(n_docs, FACTORS + NUISANCE))
        z = factors[:, :FACTORS]
        left, right = pairs.T
        utility = (
            z @ direction
            + (z[:, left] * z[:, right]).sum(axis=1) / np.sqrt(len(left))
            + 0.4 * np.tanh(2.0 * z[:, left[0]])
            + k["noise"] * rng.standard_t(3, size=n_docs)
            + 0.35 * rng.normal(size=n_queries)[query]
        )
        signal = factors @ loadings.T + blur * rng.normal(size=(n_docs, n_features))
        shared = topic @ loadings.T + rng.normal(size=(n_queries, n_features))
        signal[:, query_level] = shared[query][:, query_level]
        if k["minority"]:
            turned = (rng.random(n_queries) < k["minority"])[query]
            utility[turned] += z[turned] @ (other - direction)
        grown = np.exp(np.minimum(signal, 5.0))
        shapes = (
            1.0 / (1.0 + np.exp(-1.5 * signal)),
            np.minimum(grown**1.2 / 20.0, 1.0),
            np.minimum(np.floor(grown), 10.0) / 10.0,
            (signal > 0.5).astype(np.float64),
        )
        parts.append((np.choose(warp, shapes).astype(np.float32), utility, offsets))
    cuts = np.quantile(parts[0][1], np.cumsum(k["shares"])[:-1])
    return [(features, np.searchsorted(cuts, u).astype(np.int8), offsets) for features, u, offsets in parts]


def list_lengths(k: dict, n_queries: int, rng: np.random.Generator) -> np.ndarray:
    mean, longest = k["longer"] * k["mean"] - 0.5, k["longer"] * k["longest"]
    if k["law"] == "gamma":
        drawn = rng.gamma(SHAPE, mean / SHAPE, size=n_queries)
    else:
        drawn = rng.beta(SHAPE, SHAPE * (longest / mean - 1.0), size=n_queries) * longest
    return 1 + np.minimum(drawn, longest - 1).astype(np.int64)
