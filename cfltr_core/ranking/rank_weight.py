"""Rank weights λ(r), what a relevant document at rank r adds to the risk, and their values under one ranker.

Risk is minimised: every λ here increases with the rank.  Ranks are 1-based.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray


@dataclass(frozen=True)
class RankWeight:
    """A rank weight λ(r): what one relevant document at rank r adds to the risk Δ = Σ_d λ(rank(d)) · relevance(d).

    Source: Agarwal et al. 2018, Eq. 1 and Table 1.

    Parameters
    ----------
    name : str
        Shown in tables.
    function : callable
        Maps an array of ranks (floats >= 1) to weights of the same shape.
    larger_is_better : bool
        True when the metric is a gain, so that one reports ``-risk`` (DCG); False for average rank.
    derivative : callable or None
        λ′(r) for real r >= 1; learning needs it, judging does not.

    Raises
    ------
    ValueError
        When it is called: for a rank below 1, or where λ is not finite or not of the shape of the ranks.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> reciprocal = cf.RankWeight("1/rank", lambda r: -1 / r, derivative=lambda r: 1 / r**2)
    >>> reciprocal([1, 2, 4])
    array([-1.  , -0.5 , -0.25])
    >>> reciprocal.slope([1, 2, 4])
    array([1.    , 0.25  , 0.0625])
    >>> reciprocal.report([-1.25, -0.5])  # a gain is shown with its sign turned
    array([1.25, 0.5 ])
    """

    name: str
    function: Callable[[FloatArray], FloatArray]
    larger_is_better: bool = field(default=True, kw_only=True)
    derivative: Callable[[FloatArray], FloatArray] | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        return f"RankWeight({self.name})"

    def __call__(self, rank: ArrayLike) -> FloatArray:
        """λ at ``rank`` (any shape, float64, >= 1)."""
        return self._at(self.function, rank)

    def slope(self, rank: ArrayLike) -> FloatArray:
        """λ′ at ``rank`` (any shape, float64, real numbers >= 1); ValueError for a λ without ``derivative``."""
        if self.derivative is None:
            raise ValueError(
                f"rank weight {self.name!r} has no derivative: give RankWeight(…, derivative=…) to learn with it"
            )
        return self._at(self.derivative, rank)

    def _at(self, function: Callable[[FloatArray], FloatArray], rank: ArrayLike) -> FloatArray:
        r = checks.within(rank, 1, np.inf, "rank", "ranks start at 1")
        out = np.asarray(function(r), dtype=np.float64)
        if out.shape != r.shape:
            raise ValueError(
                f"rank weight {self.name!r} returned shape {out.shape} for ranks of shape {r.shape}: "
                "it must map an array of ranks to an array of the same shape"
            )
        for bad in r[~np.isfinite(out)]:
            raise ValueError(f"rank weight {self.name!r} is not finite at rank {bad:g}: it must be at every rank")
        return out

    def report(self, risk: ArrayLike) -> FloatArray:
        """The number a table shows: −``risk`` for gains, ``risk`` itself for average rank; same shape."""
        return np.asarray(risk, dtype=np.float64) * (-1.0 if self.larger_is_better else 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class RankWeights:
    """λ(rank(d)) of each document under one ranker, and the metric it belongs to.

    Estimators take this rather than a bare array, which could be scores or ranks.  The difference of two is one again:
    an estimate from it compares two rankers on the same clicks.  NumPy takes it for its array ``lam``.

    Parameters
    ----------
    lam : (n_docs,) finite
        λ at the rank of each document; :func:`~cfltr_core.ranking.metrics.rank_weights` computes it from scores.
    metric : RankWeight
        λ itself.

    Raises
    ------
    ValueError
        For values that are no finite vector; from a difference, for two metrics or two numbers of documents.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> deployed = cf.rank_weights([3, 2, 1], [0, 3], metric=cf.average_rank())  # A B C
    >>> proposed = cf.rank_weights([2, 1, 3], [0, 3], metric=cf.average_rank())  # C A B
    >>> deployed
    RankWeights(average rank at the ranks of 3 documents)
    >>> (proposed - deployed).lam
    array([ 1.,  1., -2.])
    >>> (proposed - deployed).gain
    array([-1., -1.,  2.])
    """

    lam: FloatArray
    metric: RankWeight

    def __post_init__(self) -> None:
        checks.keep(self, lam=checks.finite_vector(self.lam, None, "lam"))

    def __repr__(self) -> str:
        return f"RankWeights({self.metric.name} at the ranks of {len(self)} documents)"

    def __len__(self) -> int:
        return len(self.lam)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.lam, dtype=dtype, copy=copy)

    @property
    def gain(self) -> FloatArray:
        """What each document adds to the metric if it is relevant, larger being better: −λ."""
        return -self.lam

    def __sub__(self, other: RankWeights) -> RankWeights:
        """λ of this ranker minus λ of another, by the same metric and on the same documents."""
        if not isinstance(other, RankWeights):
            return NotImplemented
        if other.metric.name != self.metric.name:
            raise ValueError(
                f"other: {other.metric.name} is subtracted from {self.metric.name}: compare two rankers by one metric"
            )
        if len(other) != len(self):
            raise ValueError(f"other: it has {len(other)} documents, not {len(self)}: rank the same documents")
        return RankWeights(self.lam - other.lam, self.metric)


def average_rank() -> RankWeight:
    """λ(r) = r: the sum of the ranks of the relevant documents (smaller is better).

    Source: Agarwal et al. 2018, Table 1, "AvgRank".

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.additive_metric([3, 2, 1], [0, 3], relevance=[1, 0, 1], metric=cf.average_rank())
    array([4.])
    """
    return RankWeight("average rank", lambda r: r.copy(), larger_is_better=False, derivative=np.ones_like)


def dcg(cutoff: int | None = None) -> RankWeight:
    """λ(r) = −1 / log₂(1 + r), and 0 beyond rank ``cutoff`` if one is given.

    Source: Agarwal et al. 2018, Table 1.  Their derivative in §4.1 is that of the natural logarithm; base 2, the
    convention, gives ln 2 times as much.

    Raises
    ------
    ValueError
        For a cutoff that is no whole number from 1.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.dcg()([1, 2, 3]).round(3)
    array([-1.   , -0.631, -0.5  ])
    >>> cf.dcg(cutoff=2)([1, 2, 3]).round(3)
    array([-1.   , -0.631,  0.   ])
    """
    checks.arguments(dcg, locals())

    def derivative(r: FloatArray) -> FloatArray:
        return np.asarray(np.log(2.0) / ((1.0 + r) * np.log1p(r) ** 2))

    if cutoff is None:
        return RankWeight("DCG", lambda r: -1.0 / np.log2(1.0 + r), derivative=derivative)
    return RankWeight(
        f"DCG@{cutoff}",
        lambda r: np.where(r <= cutoff, -1.0 / np.log2(1.0 + r), 0.0),
        derivative=lambda r: np.where(r <= cutoff, derivative(r), 0.0),
    )


def precision(cutoff: int) -> RankWeight:
    """λ(r) = −1[r <= k] / k, with k the ``cutoff``: the share of relevant documents among the first k.

    Its ``derivative`` is 0, as almost everywhere: no learner moves along it.

    Source: Agarwal et al. 2018, Table 1, "Prec@k".

    Raises
    ------
    ValueError
        For a cutoff that is no whole number from 1.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.precision(cutoff=2)([1, 2, 3])
    array([-0.5, -0.5,  0. ])
    """
    checks.arguments(precision, locals())
    return RankWeight(f"Prec@{cutoff}", lambda r: np.where(r <= cutoff, -1.0 / cutoff, 0.0), derivative=np.zeros_like)


def rbp(persistence: float) -> RankWeight:
    """λ(r) = −(1 − ϱ) ϱ^(r−1), rank-biased precision with ``persistence`` 0 < ϱ < 1: its sum over all ranks is −1.

    Source: Moffat & Zobel 2008.  Table 1 of Agarwal et al. 2018 prints −(1 − p)/p^r, which decreases in r.

    Raises
    ------
    ValueError
        For a persistence that is not strictly between 0 and 1.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> cf.rbp(persistence=0.5)([1, 2, 3])
    array([-0.5  , -0.25 , -0.125])
    """
    checks.arguments(rbp, locals())
    stays, leaves = persistence, 1.0 - persistence
    return RankWeight(
        f"RBP({persistence:g})",
        lambda r: -leaves * stays ** (r - 1.0),
        derivative=lambda r: -leaves * np.log(stays) * stays ** (r - 1.0),
    )
