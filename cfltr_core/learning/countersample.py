"""Stochastic gradient descent on a click log: Biased-SGD, IPS-SGD and CounterSample for a linear scorer.

The three differ in how a click is drawn and how its gradient is scaled (w = 1/p, M̄ the mean weight of a click):

    biased           uniform over clicks     1
    ips              uniform over clicks     w_i        Algorithm 1
    countersample    proportional to w_i     M̄          Algorithm 2

Clicks are drawn from counts: with replacement, a term with c clicks is drawn c times as often, which is the same law;
without, it comes c times in every epoch.  ``query_sampling`` draws whole queries instead, ``torch_sampler`` serves the
same draws to a DataLoader.
Source: Jagerman & de Rijke 2020, Algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cfltr_core import checks
from cfltr_core.checks import FloatArray, IntArray
from cfltr_core.clicks.logs import ClickLog
from cfltr_core.learning.convergence import weight_summary
from cfltr_core.learning.query_sampling import QuerySampler, Step, query_steps
from cfltr_core.ranking.ragged import query_of
from cfltr_core.sampling import AliasTable, Deck, term_draws

Method = Literal["biased", "ips", "countersample"]
Optimizer = Literal["sgd", "adam", "adagrad"]


@dataclass(frozen=True, eq=False, repr=False)
class ClickSampler:
    """How one step of SGD picks a click and scales its gradient: term t with probability P(t), ∇f_t times factor_t.

    It is unbiased for (1/n) Σ_t clicks_t w_t ∇f_t if P(t) · factor_t = clicks_t w_t / n for every term t.

    Source: Jagerman & de Rijke 2020, Algorithms 1 and 2, Theorem 2.

    Parameters
    ----------
    document : (n_terms,)
        The clicked document of each term.
    table : AliasTable or Deck
        The law of the draws over terms, with replacement or without.
    factor : (n_terms,)
        Factor of the gradient of a term when it is drawn.
    offsets : (n_queries + 1,)
        The lists of the documents, those of the log.

    Raises
    ------
    ValueError
        For documents that do not exist, or arrays and a table that disagree on the number of terms.

    Examples
    --------
    A sampler of one's own: A and C equally often, and the gradient of C twice as strong.

    >>> import cfltr_core as cf
    >>> from cfltr_core.learning.countersample import ClickSampler
    >>> from cfltr_core.sampling import AliasTable, Deck, term_draws
    >>> ClickSampler([0, 2], AliasTable.build([1, 1]), factor=[1, 2], offsets=[0, 3])
    ClickSampler(2 terms)
    """

    document: IntArray
    table: AliasTable | Deck
    factor: FloatArray = field(kw_only=True)
    offsets: IntArray = field(kw_only=True)

    def __post_init__(self) -> None:
        document = checks.indices(self.document, "document")
        factor = checks.finite_vector(self.factor, len(document), "factor")
        offsets = checks.offsets_of(self.offsets)
        checks.within(document, 0, int(offsets[-1]) - 1, "document", "no such document")
        size = len(self.table.counts if isinstance(self.table, Deck) else self.table.keep)
        if size != len(document):
            raise ValueError(f"table: it has {size} categories for {len(document)} terms")
        object.__setattr__(self, "document", document)
        object.__setattr__(self, "factor", factor)
        object.__setattr__(self, "offsets", offsets)

    def __repr__(self) -> str:
        return f"ClickSampler({len(self.document)} terms)"


def click_sampler(log: ClickLog, method: Method, *, replacement: bool = True) -> ClickSampler:
    """The sampler of Biased-SGD, IPS-SGD or CounterSample on a log: P(t) and factor_t, with w = 1/p and M̄ = mean of w.

    ===============  ================================  ========
    ``method``       P(t)                              factor_t
    ===============  ================================  ========
    "biased"         clicks_t / n                      1
    "ips"            clicks_t / n                      w_t
    "countersample"  clicks_t w_t / Σ_s clicks_s w_s   M̄
    ===============  ================================  ========

    Source: Jagerman & de Rijke 2020, Algorithm 1, Algorithm 2 and Eq. 19–20; "biased" is the Biased-SGD of §6.5.

    Parameters
    ----------
    log : ClickLog
    method : "biased", "ips" or "countersample"
    replacement : bool
        Without it, every epoch of n draws has each of the n clicks once, in an order of its own.  An epoch at fixed
        weights then has the gradient of the objective exactly, whatever the order.

    Returns
    -------
    ClickSampler
        Of the terms with clicks, in the order of the log.

    Raises
    ------
    ValueError
        For a log without clicks, an unknown method, or "countersample" without replacement: if every click comes once
        in an epoch, none comes in proportion to its weight, and M̄ times the gradient of Biased-SGD is what is left.

    Examples
    --------
    >>> import cfltr_core as cf
    >>> policy, user = cf.DeterministicPolicy([1, 2, 3], [0, 3]), cf.PositionBasedUser([1, 1/2, 1/3])
    >>> log = cf.aggregate_clicks([0] * 6 + [2] * 2, policy, user=user, sessions=[6])
    >>> ips, countersample = cf.click_sampler(log, "ips"), cf.click_sampler(log, "countersample")
    >>> ips.table.probabilities(), ips.factor  # of A and C
    (array([0.75, 0.25]), array([1., 3.]))
    >>> countersample.table.probabilities(), countersample.factor
    (array([0.5, 0.5]), array([1.5, 1.5]))
    >>> cf.click_sampler(log, "ips", replacement=False).table
    Deck(8 cards of 2 categories)
    """
    summary = weight_summary(log)
    clicked = np.flatnonzero(log.clicks)
    counts, weights = log.clicks[clicked], log.weights[clicked]
    laws = {
        "biased": (counts, np.ones(len(clicked))),
        "ips": (counts, weights),
        "countersample": (counts * weights, np.full(len(clicked), summary.mean)),
    }
    law, factor = laws[checks.one_of(method, "method", laws)]
    if not replacement and method == "countersample":
        raise ValueError(
            "replacement is False: CounterSample draws a click in proportion to its weight, but without replacement "
            'every click comes once in an epoch, which leaves M̄ times the gradient of "biased"; draw with replacement, '
            'or use "ips"'
        )
    table = AliasTable.build(law) if replacement else Deck(counts)
    return ClickSampler(log.document[clicked], table, factor=factor, offsets=log.offsets)


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
        When the weights are kept; :func:`cfltr_core.learning.regret.evaluation_steps` spaces them evenly.  It changes
        no number: a longer run begins as the shorter one did.

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
    x = np.asarray(features)
    if x.ndim != 2 or not np.isfinite(x).all():
        raise ValueError(f"features: expected shape (n_docs, n_features) and finite numbers, got shape {x.shape}")
    cuts = checks.offsets_of(sampler.offsets, len(x), "sampler.offsets")
    alpha = np.atleast_1d(np.asarray(learning_rates, dtype=np.float64))
    checks.within(alpha, np.finfo(np.float64).tiny, 1e100, "learning_rates", "a learning rate is a number > 0")
    total = checks.positive_int(steps, "steps")
    shape = (checks.positive_int(runs, "runs"), checks.positive_int(batch, "batch"))
    kept = _record(record, total)
    w = np.zeros((shape[0], x.shape[1], alpha.size))
    move = _optimizer(optimizer, w, alpha.ravel())
    summed, scored = np.zeros_like(w), 0
    last, average, documents = [], [], []
    if 0 in kept:
        last.append(w.swapaxes(1, 2).copy())
        average.append(w.swapaxes(1, 2).copy())
        documents.append(scored)
    for step, (gradient, count) in enumerate(_steps(x, cuts, sampler, shape, w, checks.generator(rng)), start=1):
        summed += w
        move(gradient, step)
        scored = scored + count  # a number, or one for each run
        if step in kept:
            last.append(w.swapaxes(1, 2).copy())
            average.append(summed.swapaxes(1, 2) / step)
            documents.append(scored)
        if step == total:
            break
    counts = np.array([np.broadcast_to(one, shape[:1]) for one in documents], dtype=np.int64)
    return SGDPath(np.array(sorted(kept)), np.array(last), np.array(average), counts)


def _record(record: Sequence[int] | None, steps: int) -> set[int]:
    wanted = checks.indices([steps] if record is None else record, "record")
    checks.within(wanted, 0, steps, "record", "steps are counted from 1, and 0 is before the first")
    if len(wanted) == 0 or (np.diff(wanted) <= 0).any():
        raise ValueError("record: expected increasing steps, at least one")
    return set(wanted.tolist())


def _steps(
    x: NDArray[Any],
    cuts: IntArray,
    sampler: ClickSampler | QuerySampler,
    shape: tuple[int, int],
    w: FloatArray,
    rng: Any,
) -> Step:
    if isinstance(sampler, QuerySampler):
        return query_steps(x, cuts, sampler, shape, w, rng)
    return (_single_clicks if shape == (1, 1) else _click_batches)(x, cuts, sampler, shape, w, rng)


def _single_clicks(
    x: NDArray[Any], cuts: IntArray, sampler: ClickSampler, shape: tuple[int, int], w: FloatArray, rng: Any
) -> Step:
    """Gradients of one click a step, for weights that change in between.  A list is a slice: nothing is gathered."""
    query = query_of(sampler.document, cuts)
    start, stop = cuts[query], cuts[query + 1]
    own = sampler.document - start
    out = np.empty_like(w)
    weights, gradient, double = w[0], out[0], x.dtype == np.float64  # views: a step is a dozen small calls
    for chunk in term_draws(sampler.table, shape, rng):
        terms = chunk[:, 0]
        for low, high, d, scale in zip(
            start[terms].tolist(),
            stop[terms].tolist(),
            own[terms].tolist(),
            sampler.factor[terms].tolist(),
            strict=True,
        ):
            rows = x[low:high] if double else x[low:high].astype(np.float64)
            scores = rows @ weights
            active = (scores > scores[d] - 1.0).astype(np.float64)
            active[d] -= np.add.reduce(active, axis=0)  # the own document cancels
            np.matmul(rows.T, active, out=gradient)
            gradient *= scale
            yield out, high - low


def _click_batches(
    x: NDArray[Any], cuts: IntArray, sampler: ClickSampler, shape: tuple[int, int], w: FloatArray, rng: Any
) -> Step:
    """The same for several runs and several clicks a step: their lists stand below each other, run after run."""
    runs, batch = shape
    each = runs * batch
    query = query_of(sampler.document, cuts)
    width, start = np.diff(cuts)[query], cuts[query]
    segment = np.arange(each)
    out = np.empty_like(w)
    for chunk in term_draws(sampler.table, shape, rng):
        for terms in chunk:
            sizes = width[terms]
            first = np.cumsum(sizes) - sizes
            index = np.arange(int(sizes.sum())) + np.repeat(start[terms] - first, sizes)
            rows = x[index].astype(np.float64, copy=False)
            place = np.repeat(segment, sizes)
            edges = [*first[::batch].tolist(), len(rows)]
            parts = [slice(*edge) for edge in pairwise(edges)]
            scores = np.concatenate([rows[part] @ w[run] for run, part in enumerate(parts)])
            own = sampler.document[terms] - start[terms] + first
            active = (scores > (scores[own] - 1.0)[place]).astype(np.float64)
            active[own] -= np.add.reduceat(active, first, axis=0)  # the own document cancels
            active *= (sampler.factor[terms] / batch)[place][:, None]
            for run, part in enumerate(parts):
                np.matmul(rows[part].T, active[part], out=out[run])
            yield out, np.add.reduceat(sizes, segment[::batch])


def _optimizer(name: str, w: FloatArray, alpha: FloatArray) -> Callable[[FloatArray, int], None]:
    """The update of ``w`` (runs, features, rates) in place from a gradient and the number of the step."""
    if name == "sgd":

        def sgd(g: FloatArray, step: int) -> None:
            np.subtract(w, g * alpha, out=w)

        return sgd
    first, second = np.zeros_like(w), np.zeros_like(w)
    if name == "adagrad":

        def adagrad(g: FloatArray, step: int) -> None:
            np.add(second, g * g, out=second)
            np.subtract(w, alpha * g / (np.sqrt(second) + 1e-10), out=w)

        return adagrad
    if name != "adam":
        raise ValueError(f"optimizer is {name!r}: choose sgd, adam or adagrad")

    def adam(g: FloatArray, step: int) -> None:
        np.add(0.9 * first, 0.1 * g, out=first)
        np.add(0.999 * second, 0.001 * g * g, out=second)
        size = np.sqrt(second / (1 - 0.999**step)) + 1e-8
        np.subtract(w, alpha * first / (1 - 0.9**step) / size, out=w)

    return adam
