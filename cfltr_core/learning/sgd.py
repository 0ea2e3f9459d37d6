"""Stochastic gradient descent of a linear scorer on a click log, by the draws of ``samplers``.

Source: Jagerman & de Rijke 2020, Algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.learning.bounds import SortedLists
from cfltr_core.learning.samplers import ClickSampler, Draws, QuerySampler, matched
from cfltr_core.sampling import term_draws

Optimizer = Literal["sgd", "adam", "adagrad"]
# A list with more pairs of a clicked document and another is sorted, for each rate; the others go pair by pair.  With
# 20 rates and every document clicked sorting takes a third of the time in lists of 120, an eighth in lists of 440.
PAIRS = 1 << 16
# What a step of SGD needs to go on: the gradient, (runs, features, rates), and how many documents each run has scored.
Step = Iterator[tuple[FloatArray, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class SGDPath:
    """Weights at the recorded ``steps`` t: ``last`` w_{t+1}, ``average`` (1/t) Σ_{s ≤ t} w_s, (record, runs, rates, d).

    At t = 0, before the first step, both are w_1 = 0.
    ``documents`` (record, runs) counts the documents scored until then, the cost of a run on any machine.
    :func:`train_sgd` makes it.
    """

    steps: IntArray
    last: FloatArray
    average: FloatArray
    documents: IntArray

    def __repr__(self) -> str:
        return f"SGDPath({len(self.steps)} records of {self.last.shape[1]} runs × {self.last.shape[2]} rates)"


def train_sgd(
    features: ArrayLike,
    sampler: ClickSampler | QuerySampler,
    *,
    learning_rates: ArrayLike,
    steps: int,
    rng: np.random.Generator,
    batch: int = 1,
    runs: int = 1,
    optimizer: Optimizer = "sgd",
    record: Sequence[int] | None = None,
) -> SGDPath:
    """SGD w_{t+1} = w_t − α · factor_i · ∇f_i(w_t) from w_1 = 0, on f_i(w) = 1 + Σ_{y ≠ d} max(0, 1 − ⟨w, x_d − x_y⟩).

    All learning rates see the same clicks and are trained as one matrix problem, so that a list is gathered and
    scored once for the whole grid; ``runs`` are independent sequences of clicks, trained side by side.

    Source: Jagerman & de Rijke 2020, Algorithms 1 and 2, which return the average; their Eq. 2 is f_i plus 1, since its
    sum includes the clicked document itself.

    Parameters
    ----------
    features : (n_docs, n_features) finite
    sampler : ClickSampler or QuerySampler
        From :func:`click_sampler` or :func:`query_sampler`, or your own; it knows the lists.
    learning_rates : (n_rates,)
        α > 0, not scaled by anything.
    steps : int
        T.
    rng : numpy.random.Generator
        Draws the clicks.
    batch : int
        Clicks, or queries, per step; their scaled gradients are averaged.
    runs : int
    optimizer : "sgd", "adam" or "adagrad"
        With PyTorch's default settings.
    record : increasing steps between 0 and ``steps``; only the last if it is left out
        When the weights are kept.  It changes no number: a longer run begins as the shorter one did.

    Returns
    -------
    SGDPath

    Raises
    ------
    ValueError
        For features that are not finite or do not match the lists of the sampler, a learning rate that is not > 0, an
        unknown optimizer, or steps to record that do not increase.
    TypeError
        For an ``rng`` that is no numpy.random.Generator.

    Examples
    --------
    >>> import numpy as np
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> sampler, features = cf.click_sampler(log, "countersample"), np.array([[1.0, 0.2], [0.0, 0.5], [1.0, 0.7]])
    >>> path = cf.train_sgd(features, sampler, learning_rates=[0.1], steps=200, rng=np.random.default_rng(0))
    >>> path.last.shape  # records, runs, rates, features
    (1, 1, 1, 2)
    >>> int(np.argmin(features @ path.average[-1, 0, 0]))  # B, which nobody clicked, comes last
    1
    """
    checks.arguments(train_sgd, locals())
    x = matched(features, sampler.offsets, "sampler.offsets")
    alpha = np.atleast_1d(np.asarray(learning_rates, dtype=np.float64))
    checks.within(alpha, np.finfo(np.float64).tiny, 1e100, "learning_rates", "a learning rate is a number > 0")
    shape, kept = (runs, batch), _record(record, steps)
    w = np.zeros((shape[0], x.shape[1], alpha.size))
    move = optimizer_of(optimizer, w)
    summed, scored = np.zeros_like(w), 0
    records: list[tuple[FloatArray, FloatArray, Any]] = []

    def note(mean: FloatArray) -> None:
        records.append((w.swapaxes(1, 2).copy(), mean.swapaxes(1, 2).copy(), np.broadcast_to(scored, shape[:1])))

    if 0 in kept:
        note(w)
    draws = sampler.draws
    alone = bool((np.diff(draws.first) == 1).all())
    gradients = _by_query if not alone else _singly if shape == (1, 1) else _together
    for step, (gradient, count) in enumerate(gradients(x, draws, shape, w, rng), start=1):
        summed += w
        move(gradient, step, alpha.ravel())
        scored = scored + count  # a number, or one for each run
        if step in kept:
            note(summed / step)
        if step == steps:
            break
    last, average, documents = (np.array(values) for values in zip(*records, strict=True))
    return SGDPath(np.array(sorted(kept)), last, average, documents.astype(np.int64))


def _record(record: Sequence[int] | None, steps: int) -> set[int]:
    wanted = checks.indices([steps] if record is None else record, "record")
    checks.within(wanted, 0, steps, "record", "steps are counted from 1, and 0 is before the first")
    if len(wanted) == 0 or (np.diff(wanted) <= 0).any():
        raise ValueError("record: expected increasing steps, at least one")
    return set(wanted.tolist())


def _singly(x: NDArray[Any], draws: Draws, shape: tuple[int, int], w: FloatArray, rng: np.random.Generator) -> Step:
    """Gradients of one click a step, for weights that change in between.  A list is a slice: nothing is gathered."""
    out = np.empty_like(w)
    weights, gradient, double = w[0], out[0], x.dtype == np.float64  # views: a step is a dozen small calls
    for chunk in term_draws(draws.table, shape, rng):
        columns = (column[chunk[:, 0]].tolist() for column in (draws.start, draws.stop, draws.own, draws.factor))
        for low, high, d, scale in zip(*columns, strict=True):
            rows = x[low:high] if double else x[low:high].astype(np.float64)
            scores = rows @ weights
            active = (scores > scores[d] - 1.0).astype(np.float64)
            active[d] -= np.add.reduce(active, axis=0)  # the own document cancels
            np.matmul(rows.T, active, out=gradient)
            gradient *= scale
            yield out, high - low


def _together(x: NDArray[Any], draws: Draws, shape: tuple[int, int], w: FloatArray, rng: np.random.Generator) -> Step:
    """The same for items of one click each: the lists of a step stand below each other, run after run."""
    runs, batch = shape
    segment = np.arange(runs * batch)
    out = np.empty_like(w)
    for chunk in term_draws(draws.table, shape, rng):
        for items in chunk:
            index, first, width = draws.lists_of(items)
            rows = x[index].astype(np.float64, copy=False)
            place, own = np.repeat(segment, width), draws.own[items] + first
            parts = [slice(*edge) for edge in pairwise([*first[::batch].tolist(), len(rows)])]
            scores = np.concatenate([rows[part] @ w[run] for run, part in enumerate(parts)])
            active = (scores > (scores[own] - 1.0)[place]).astype(np.float64)
            active[own] -= np.add.reduceat(active, first, axis=0)
            active *= (draws.factor[items] / batch)[place][:, None]
            for run, part in enumerate(parts):
                np.matmul(rows[part].T, active[part], out=out[run])
            yield out, np.add.reduceat(width, segment[::batch])


def _by_query(x: NDArray[Any], draws: Draws, shape: tuple[int, int], w: FloatArray, rng: np.random.Generator) -> Step:
    """The same for items with any number of clicks, one list after the other."""
    runs, batch = shape
    out = np.empty_like(w)
    for chunk in term_draws(draws.table, shape, rng):
        for items in chunk.reshape(-1, runs, batch):
            out.fill(0)
            for weights, gradient, run in zip(w, out, items.tolist(), strict=True):
                for i in run:
                    clicked = slice(draws.first[i], draws.first[i + 1])
                    rows = x[draws.start[i] : draws.stop[i]].astype(np.float64, copy=False)
                    gradient += rows.T @ _push(rows @ weights, draws.own[clicked], draws.factor[clicked] / batch)
            yield out, (draws.stop - draws.start)[items].sum(axis=1)


def _push(scores: FloatArray, own: IntArray, scale: FloatArray) -> FloatArray:
    """Σ_d scale_d Σ_y [s_y > s_d − 1] (e_y − e_d) over the clicked documents ``own`` of a list, for each rate."""
    size, rates = scores.shape
    if len(own) * size > PAIRS:
        first = size * np.arange(rates + 1)
        lists = SortedLists(first, (first[:-1, None] + own).ravel())
        _, pull = lists.sums(scores.T.ravel(), lambda terms, _: np.tile(scale, rates)[terms])
        return -pull.reshape(rates, size).T
    active = (scores > scores[own][:, None] - 1.0) * scale[:, None, None]  # clicked × list × rates
    force: FloatArray = active.sum(axis=0)
    force[own] -= active.sum(axis=1)  # the own document cancels
    return force


def optimizer_of(name: str, w: FloatArray) -> Callable[[FloatArray, int, float | FloatArray], None]:
    """The update of ``w`` in place from a gradient, the number of the step, from 1, and the learning rate α.

    ``name`` is "sgd", "adam" or "adagrad", with PyTorch's default settings.
    """
    if name == "sgd":

        def sgd(g: FloatArray, step: int, alpha: float | FloatArray) -> None:
            np.subtract(w, g * alpha, out=w)

        return sgd
    first, second = np.zeros_like(w), np.zeros_like(w)
    if name == "adagrad":

        def adagrad(g: FloatArray, step: int, alpha: float | FloatArray) -> None:
            np.add(second, g * g, out=second)
            np.subtract(w, alpha * g / (np.sqrt(second) + 1e-10), out=w)

        return adagrad

    def adam(g: FloatArray, step: int, alpha: float | FloatArray) -> None:
        np.add(0.9 * first, 0.1 * g, out=first)
        np.add(0.999 * second, 0.001 * g * g, out=second)
        size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        np.subtract(w, alpha * first / (1 - 0.9**step) / size, out=w)

    return adam
