"""What chapter 3 simulates: metrics of a page, what plugging in expects, and rankers chosen by one for another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import multinomial

import cfltr_book as book
import cfltr_core as cf
from cfltr_book.experiments.ch02 import World, sessions_for, user_with, world
from cfltr_core.checks import FloatArray

METRICS = ("average rank", "DCG", "Prec@2", "RBP(0.8)", "reciprocal rank", "ERR", "average precision", "nDCG")
CHOOSERS = (cf.average_rank(), cf.dcg(), cf.dcg(10), cf.rbp(0.5), cf.precision(1))
# How many sets of twelve rankers each population has, and how many logs of each size judge one.
SETS, LOGS = 4, 25
# The light ranker learns from this share of the training queries; the heavy one, from all, sorts so many places anew.
LIGHT, RERANKED = 0.03, 10


def by_rank(x: FloatArray) -> FloatArray:
    """The eight :data:`METRICS` of relevances in page order, (..., n): shape (..., 8); average rank as a sum.

    Any numbers may stand for relevances, as IPS estimates do; where a metric divides by 0 it is 0.
    """
    r, above = np.arange(1, x.shape[-1] + 1), np.cumsum(x, axis=-1) - x
    discount, total = 1 / np.log2(1 + r), x.sum(axis=-1)
    ideal = np.sort(x)[..., ::-1] @ discount

    def unsatisfied(share: float) -> FloatArray:
        """The probability that nothing above each rank satisfied, if a relevant document does with ``share``."""
        kept = np.cumprod(1 - share * x, axis=-1)
        return np.concatenate([np.ones_like(kept[..., :1]), kept[..., :-1]], axis=-1)

    def over(value: FloatArray, divisor: FloatArray) -> FloatArray:
        return np.divide(value, divisor, out=np.zeros_like(divisor), where=divisor != 0)

    values = (
        x @ r,
        x @ discount,
        x[..., :2].sum(axis=-1) / 2,
        x @ (0.2 * 0.8 ** (r - 1)),
        (x / r * unsatisfied(1)).sum(axis=-1),
        (x / 2 / r * unsatisfied(0.5)).sum(axis=-1),
        over((x / r * (1 + above)).sum(axis=-1), total),
        over(x @ discount, ideal),
    )
    return np.stack(values, axis=-1)


@cache
def plug_in_means() -> pd.DataFrame:
    """What plugging in expects of the page C B A for *rain boots*, in so many sessions: exactly, over all logs.

    A row for each number of ``sessions``: columns of reciprocal rank and nDCG where all of them are of one query, so
    that its clicks are pooled.  Customers look at A, half of them at B too, a third at B and C; the truth is 1.
    """
    rows = []
    for sessions in (1, 2, 4, 8, 16, 32, 64, 128):
        ends = np.array([(a, b, sessions - a - b) for a in range(sessions + 1) for b in range(sessions + 1 - a)])
        chance = multinomial.pmf(ends, sessions, [1 / 2, 1 / 6, 1 / 3])  # who stops at A, at B, at C
        reached = ends[:, ::-1].cumsum(axis=1)[:, :2] / sessions  # the shares that look at C, and at B
        values = by_rank(np.column_stack([3 * reached[:, 0], 2 * reached[:, 1], 0 * chance]))
        rows.append((sessions, *(chance @ values[:, [METRICS.index(m) for m in ("reciprocal rank", "nDCG")]])))
    return pd.DataFrame(rows, columns=["sessions", "reciprocal rank", "nDCG"])


def mrr(scores: FloatArray, queries: cf.RankingData, rng: np.random.Generator) -> float:
    """MRR of a ranker from labels, ties in random order; a query without a relevant document adds 0."""
    rank = cf.ranks(scores, queries.offsets, ties="random", rng=rng)
    relevant = np.flatnonzero(queries.binary)
    first = np.full(queries.n_queries, np.inf)
    np.minimum.at(first, cf.query_index(queries.offsets)[relevant], rank[relevant])
    return float(np.mean(1 / first))


@cache
def choices(run: book.Run) -> pd.DataFrame:
    """How much MRR is lost by choosing among twelve rankers by another metric.

    A row for each ``seed``, number of ``clicks`` (0: chosen with labels) and ``chooser``; ``lost`` is a share of the
    largest MRR of the twelve, a mean over sets of rankers and over logs.  The logs are of the population's logger at
    η = 1, without noise.
    """

    def lost(seed: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(np.mean([_losses(run, seed, rng) for _ in range(SETS)], axis=0))

    sizes = (0, run.size.clicks[0] // 10, *run.size.clicks)
    rows = [
        (seed, clicks, chooser.name, found[i][j])
        for seed, found in zip(run.seeds, run.each_seed(lost, stream=301), strict=True)
        for i, clicks in enumerate(sizes)
        for j, chooser in enumerate(CHOOSERS)
    ]
    return pd.DataFrame(rows, columns=["seed", "clicks", "chooser", "lost"])


def _losses(run: book.Run, seed: int, rng: np.random.Generator) -> FloatArray:
    """One set of twelve rankers: the loss by each size of log (first: labels) and chooser."""
    w, train = world(run, seed), run.load(seed).train
    fits = [cf.fit_linear_ranker(train, 0.01, rng=rng) for _ in range(12)]
    scores = [fit.decision_function(w.queries.features) for fit in fits]
    value = np.array([mrr(one, w.queries, rng) for one in scores])
    weights = [[cf.rank_weights(s, w.queries.offsets, metric=metric) for s in scores] for metric in CHOOSERS]
    gain = -np.array([[one.lam[w.relevant] for one in of_metric] for of_metric in weights])
    clicks = [run.size.clicks[0] // 10, *run.size.clicks]
    estimates = [gain.sum(axis=2)[..., None], *(gain @ _weighted_clicks(w, n, rng) for n in clicks)]
    missed = (value.max() - value) / value.max()
    return np.array([missed[found.argmax(axis=1)].mean(axis=1) for found in estimates])


def _weighted_clicks(w: World, n_clicks: int, rng: np.random.Generator) -> FloatArray:
    """Clicks over propensity on each relevant document, in :data:`LOGS` logs: (n_relevant, n_logs)."""
    n, query = w.queries.n_queries, np.repeat(np.arange(w.queries.n_queries), w.number)
    asked = rng.multinomial(sessions_for(w, 1.0, n_clicks), np.full(n, 1 / n), size=LOGS)
    rank = w.policy.displayed_rank[w.relevant]
    return np.asarray((rng.binomial(asked[:, query], 1 / rank) * rank).T)


@dataclass(frozen=True, eq=False)
class Month:
    """A log of the shop of chapter 2, the relevance that nobody knows, and three rankers, by their scores.

    ``deployed`` filled the log.  ``light`` sorts everything, and has learnt from few labels.  ``heavy`` has learnt from
    all, but is too slow for more than the first ten places of the deployed page: it sorts these anew.
    """

    log: cf.ClickLog
    relevance: FloatArray
    deployed: FloatArray
    light: FloatArray
    heavy: FloatArray


@cache
def month(run: book.Run) -> Month:
    """The month of the first seed's population: a log at η = 1, ten times as long as that of chapter 2 at scale ci."""
    w, train, rng = world(run, run.seed), run.load(run.seed).train, run.rng(run.seed, 302)
    light, best = (cf.fit_linear_ranker(train, share, rng=rng) for share in (LIGHT, 1.0))
    scores, place = best.decision_function(w.queries.features), w.policy.displayed_rank
    heavy = np.where(place <= RERANKED, scores - scores.min() + 1, -place).astype(np.float64)
    clicks = run.size.clicks[-1] // 10
    log = run.simulate(w.policy, user_with(1.0), relevance=w.relevance, n_clicks=clicks, rng=run.rng(run.seed, 303))
    return Month(log, w.relevance, -place.astype(np.float64), light.decision_function(w.queries.features), heavy)
