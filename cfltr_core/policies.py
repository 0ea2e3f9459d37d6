"""Logging policies: which ranking a session is shown, and the exposure that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.metrics import ranks
from cfltr_core.ragged import RankingData, document_index
from cfltr_core.users import PositionBasedUser


@dataclass(frozen=True, eq=False, repr=False)
class DeterministicPolicy:
    """Shows every session of a query the same ranking.

    Parameters
    ----------
    displayed_rank : (n_docs,)
        1-based place of each document; 0 = not shown.  The shown documents of a query hold the places
        1, 2, …, m, each once.
    offsets : (n_queries + 1,)
    """

    displayed_rank: IntArray
    offsets: IntArray

    def __post_init__(self) -> None:
        offsets = checks.offsets_of(self.offsets)
        rank = checks.counts(self.displayed_rank, int(offsets[-1]), "displayed_rank")
        query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        shown = rank > 0
        order = np.lexsort((rank[shown], query[shown]))
        sizes = np.bincount(query[shown], minlength=len(offsets) - 1)
        expected = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
        if not np.array_equal(rank[shown][order], expected):
            bad = int(query[shown][order][np.argmax(rank[shown][order] != expected)])
            raise ValueError(
                f"displayed_rank of query {bad} is {rank[offsets[bad] : offsets[bad + 1]].tolist()}: "
                "the shown documents must hold the places 1, 2, … once each (0 = not shown)"
            )
        object.__setattr__(self, "offsets", offsets)
        object.__setattr__(self, "displayed_rank", rank)

    def __repr__(self) -> str:
        shown = int((self.displayed_rank > 0).sum())
        of = f"{shown} of {len(self.displayed_rank)} documents shown"
        return f"DeterministicPolicy({len(self.offsets) - 1} queries, {of})"

    @classmethod
    def rank_by(
        cls, scores: ArrayLike, offsets: ArrayLike, rng: np.random.Generator, cutoff: int | None = None
    ) -> DeterministicPolicy:
        """Show documents by descending score, ties broken once at random, the first ``cutoff`` of them."""
        place = ranks(scores, offsets, ties="random", rng=rng).astype(np.int64)
        if cutoff is not None:
            place = np.where(place <= checks.positive_int(cutoff, "cutoff"), place, 0)
        return cls(place, np.asarray(offsets))

    def exposure(self, user: PositionBasedUser) -> FloatArray:
        """P(examined) of each document under this policy, shape (n_docs,); 0 for documents not shown."""
        return user.propensity(self.displayed_rank)


def fit_linear_ranker(
    data: RankingData,
    fraction: float,
    rng: np.random.Generator,
    ridge: float = 1.0,
    min_queries: int = 20,
) -> FloatArray:
    """Weights of a linear ranker: ridge regression of binary relevance on a random share of the queries.

    ``f(d) = w · x_d``; w minimises Σ (relevance − mean − z·v)² + ridge · ‖v‖² over standardised features z
    and is then expressed in raw features.  This is the *logger* of the experiments: Agarwal et al. 2018 use 1 % of
    the labelled queries, Jagerman & de Rijke 2020 0.1 %; at least ``min_queries`` are taken.  With
    ``fraction=1`` it is the full-information linear ranker.

    Returns
    -------
    (n_features,) float64; scores are ``data.features @ w``.
    """
    checks.within(fraction, 0, 1, "fraction", "a share of the queries")
    if not ridge > 0:
        raise ValueError(f"ridge is {ridge}: expected a number > 0")
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
    return np.asarray(v / scale)
