"""How far SGD is from the end of its way, in nDCG: against optima that are certified.

    regret(t) = nDCG(w_labels) − nDCG(w_t) = [nDCG(w_labels) − nDCG(w_log)] + [nDCG(w_log) − nDCG(w_t)]

with w_labels the optimum of the surrogate on the labels and w_log that of R_IPS on the log at hand.  The first part is
what the log lacks, and no way of training can mend it; only the second speaks of convergence.  It may be negative: the
optimum of a surrogate of the average rank is not that of nDCG, and who is late may gain by stopping early.
Source: Jagerman & de Rijke 2020, Eq. 29; the split is derived in this book.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.learning.certified import CertifiedOptimum
from cfltr_core.learning.sgd import SGDPath
from cfltr_core.ranking.metrics import ndcg
from cfltr_core.ranking.ragged import RankingData

Iterate = Literal["average", "last"]
Part = Literal["total", "training"]
# Rankers that are scored together, and documents that are taken to double precision at once.
TOGETHER, BLOCK = 16, 1 << 13


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Regret:
    """nDCG along a path, and of the two optima; :func:`regret` makes it.

    ``steps`` (record,) and ``ndcg`` (record, runs, rates) are those of the path, ``of_labels`` and ``of_log`` the nDCG
    of the optima.
    """

    steps: IntArray
    ndcg: FloatArray
    of_labels: float
    of_log: float

    def __repr__(self) -> str:
        return f"Regret({len(self.steps)} records, {self.log_part:.4f} of it the log's)"

    @property
    def log_part(self) -> float:
        """nDCG(w_labels) − nDCG(w_log), which no way of training on this log can change."""
        return self.of_labels - self.of_log

    @property
    def training(self) -> FloatArray:
        """nDCG(w_log) − nDCG(w_t), (record, runs, rates): what is left of the way, or negative."""
        return np.asarray(self.of_log - self.ndcg)

    @property
    def total(self) -> FloatArray:
        """nDCG(w_labels) − nDCG(w_t) = ``log_part`` + ``training``, (record, runs, rates)."""
        return np.asarray(self.of_labels - self.ndcg)

    def average(self, part: Part = "total") -> FloatArray:
        """Regret(T) = (1/T) Σ_{t ≤ T} regret(t), (runs, rates), of a ``part``: the "total" or that of the "training".

        A record stands for the steps since the record before it, and the one before the first step for none.

        Source: Jagerman & de Rijke 2020, Eq. 29.

        Raises
        ------
        ValueError
            For another part, or if nothing was recorded after the first step.
        """
        checks.arguments(Regret.average, locals())
        values = {"total": self.total, "training": self.training}[part]
        if self.steps[-1] == 0:
            raise ValueError("steps: only the weights before the first step were recorded, which have no average")
        return np.asarray(np.average(values, axis=0, weights=np.diff(self.steps, prepend=0)))


def regret(
    path: SGDPath,
    test: RankingData,
    *,
    label_optimum: CertifiedOptimum,
    log_optimum: CertifiedOptimum,
    iterate: Iterate = "average",
    cutoff: int = 10,
) -> Regret:
    """nDCG of the weights of a path, beside that of the optima of the labels and of the log.

    Queries without a relevant document are dropped, as in the released code.  What is certified of the optima is their
    surrogate risk, not their nDCG.

    Source: Jagerman & de Rijke 2020, Eq. 29, whose w* is the last iterate of SGD on graded labels.

    Parameters
    ----------
    path : SGDPath
    test : RankingData
        Queries to judge by, with their grades.
    label_optimum, log_optimum : CertifiedOptimum
        Of :func:`cfltr_core.learning.certified.label_log`, and of the log that the path was trained on.
    iterate : "average" or "last"
        w̄_t, as in the paper, or w_{t+1}.
    cutoff : int
        Of nDCG.

    Returns
    -------
    Regret

    Raises
    ------
    ValueError
        For another iterate, weights that do not fit the features, or a cutoff below 1.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> from cfltr_book.theory.regret import regret
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> data = cf.RankingData([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]], [1, 0, 1], offsets=[0, 3])
    >>> sampler, rng = cf.click_sampler(log, "ips"), np.random.default_rng(0)
    >>> path = cf.train_sgd(data.features, sampler, learning_rates=0.1, steps=40, rng=rng, record=[0, 20, 40])
    >>> best, of_log = (cf.certified_optimum(data.features, one) for one in (cf.label_log(data), log))
    >>> found = regret(path, data, label_optimum=best, log_optimum=of_log)
    >>> found.total.ravel().round(3), round(found.log_part, 3)  # at w = 0 all are tied
    (array([0.129, 0.   , 0.   ]), 0.0)
    >>> np.array_equal(found.total, found.log_part + found.training)
    True
    >>> found.average().round(3)  # the start counts for no step
    array([[0.]])
    """
    checks.arguments(regret, locals())
    weights, width = path.average if iterate == "average" else path.last, test.features.shape[1]
    optima = {"label_optimum": label_optimum.weights, "log_optimum": log_optimum.weights}
    for name, given in {"path": weights, **optima}.items():
        if given.shape[-1] != width:
            raise ValueError(f"{name}: it has {given.shape[-1]} weights for {width} features")
    rows = np.concatenate([np.stack([*optima.values()]), weights.reshape(-1, width)])
    values = np.empty(len(rows))
    for i, scores in enumerate(_scores(test.features, rows)):
        values[i] = ndcg(scores, test.offsets, relevance=test.relevance, cutoff=cutoff).mean
    return Regret(
        steps=path.steps,
        ndcg=values[2:].reshape(weights.shape[:-1]),
        of_labels=float(values[0]),
        of_log=float(values[1]),
    )


def evaluation_steps(n_clicks: int, *, batch: int = 1, epochs: int = 5, every: int = 10_000) -> IntArray:
    """The steps at which 0, ``every``, 2 · ``every``, … clicks have been drawn, up to ``epochs`` passes over a log.

    They are what ``record`` of :func:`cfltr_core.learning.sgd.train_sgd` takes; the last is its ``steps``.
    Where a batch does not end at a mark, the step that passes it counts.

    Source: the released code of Jagerman & de Rijke 2020: with 1,000,000 clicks, 501 evaluations.

    Parameters
    ----------
    n_clicks : int
        Of the log.
    batch : int
        Clicks per step.
    epochs : int
        So many times n_clicks clicks are drawn in all, with or without replacement.
    every : int
        Clicks from one evaluation to the next.

    Raises
    ------
    ValueError
        For numbers that are no whole numbers >= 1.

    Examples
    --------
    >>> from cfltr_book.theory.regret import evaluation_steps
    >>> evaluation_steps(1_000, batch=10, epochs=2, every=500)
    array([  0,  50, 100, 150, 200])
    >>> len(evaluation_steps(1_000_000))
    501
    """
    checks.arguments(evaluation_steps, locals())
    drawn = np.append(np.arange(0, n_clicks * epochs, every), n_clicks * epochs)
    return np.asarray(np.unique(-(-drawn // batch)), dtype=np.int64)


def _scores(features: NDArray[Any], rows: FloatArray) -> Iterator[FloatArray]:
    """Yield the scores of all documents by each of ``rows``, (n_rankers, n_features), in double precision."""
    for begin in range(0, len(rows), TOGETHER):
        some = rows[begin : begin + TOGETHER]
        scores = np.empty((len(some), len(features)))
        for low in range(0, len(features), BLOCK):
            scores[:, low : low + BLOCK] = some @ features[low : low + BLOCK].astype(np.float64, copy=False).T
        yield from scores
