"""What chapter 2 simulates: a shop with two rankers, and many logs of it, to see how far each estimate is off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

import cfltr_book as book
import cfltr_core as cf
from cfltr_book.theory.variances import ips_variance
from cfltr_core.checks import BoolArray, FloatArray, IntArray
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.ranking.rank_weight import RankWeights

SEVERITIES = (1.0, 1.5, 2.0)
# How the sessions of a log are divided among its queries.
REGIMES = ("queries come back", "one session a query", "popular queries")
EQUAL = REGIMES[:2]
# From so many expected effective clicks on the chapter trusts a normal interval.
ENOUGH = 400
# Entries of :class:`Logs` that are made at a time, of some hundred bytes each.
AT_ONCE = 10_000_000


@dataclass(frozen=True, eq=False)
class World:
    """One population: its queries, the deployed ranker (the logger), a new ranker, and the relevant documents.

    ``policy`` is what the logger shows; ``old`` and ``new`` are the rank weights of both rankers for DCG.  ``relevant``
    holds the relevant documents query by query, and ``number`` how many each query has.
    """

    queries: cf.RankingData
    policy: cf.DeterministicPolicy
    old: RankWeights
    new: RankWeights
    relevant: IntArray
    number: IntArray

    @property
    def relevance(self) -> FloatArray:
        """1 for each relevant document, 0 for the others."""
        return np.asarray(self.queries.binary)

    def truth(self, weights: RankWeights) -> float:
        """What IPS estimates: DCG per query, or a difference of two."""
        return -float(weights.lam[self.relevant].sum() / self.queries.n_queries)

    def of_query(self, values: FloatArray) -> FloatArray:
        """The sum of the values of the documents of each query."""
        return np.add.reduceat(values, self.queries.offsets[:-1])


@cache
def world(run: book.Run, seed: int) -> World:
    """The population of one seed: the logger learnt from the labels of few training queries, the new ranker of all."""
    rng, data = run.rng(seed, 201), run.load(seed)
    queries = data.validation
    fits = [cf.fit_linear_ranker(data.train, share, rng=rng) for share in (0.01, 1)]
    scores = [fit.decision_function(queries.features) for fit in fits]
    policy = cf.DeterministicPolicy.rank_by(scores[0], queries.offsets, rng=rng)
    old, new = (cf.rank_weights(one, queries.offsets, metric=cf.dcg()) for one in scores)
    relevant = np.flatnonzero(queries.binary)
    number = np.bincount(cf.query_index(queries.offsets)[relevant], minlength=queries.n_queries)
    return World(queries, policy, old, new, relevant, number)


def user_with(eta: float) -> cf.PositionBasedUser:
    """A user without noise who examines rank r with probability r^−η."""
    return cf.PositionBasedUser(cf.power_examination(eta))


def sessions_for(w: World, eta: float, n_clicks: float) -> int:
    """How many sessions give so many clicks on average."""
    return sessions_for_clicks(w.policy, user_with(eta), relevance=w.relevance, n_clicks=n_clicks)


class Logs:
    """Many logs at once: clicks on the relevant documents, which alone are clicked where there is no noise.

    ``queries`` and ``sessions`` (n_logs, n_rows) say what is asked in each log, and how often.  ``document``,
    ``propensity`` and ``clicks`` have one entry for each row and each of its relevant documents.
    """

    def __init__(self, w: World, eta: float, queries: IntArray, sessions: IntArray, rng: np.random.Generator) -> None:
        self.sessions, flat = sessions, queries.ravel()
        number = w.number[flat]
        self.row = np.repeat(np.arange(flat.size), number)
        place = np.arange(len(self.row)) - np.repeat(np.cumsum(number) - number, number)
        self.document = w.relevant[np.repeat((np.cumsum(w.number) - w.number)[flat], number) + place]
        self.propensity = w.policy.displayed_rank[self.document] ** -float(eta)
        self.clicks = rng.binomial(sessions.ravel()[self.row], self.propensity)

    def _by_row(self, values: FloatArray) -> FloatArray:
        """Σ clicks · values in each row: (n_logs, n_rows)."""
        sums = np.bincount(self.row, self.clicks * values, minlength=self.sessions.size).astype(np.float64)
        return sums.reshape(self.sessions.shape)

    def mean(self, values: FloatArray) -> FloatArray:
        """The same per session of each log: (n_logs,)."""
        return np.asarray(self._by_row(values).sum(axis=1) / self.sessions.sum(axis=1))


def coec(w: World, logs: Logs, queries: IntArray, gain: FloatArray) -> FloatArray:
    """DCG by COEC in each log: each click over the click rate of its rank, in units of the rate at rank 1."""
    n_logs, n_rows = logs.sessions.shape
    lengths = np.diff(w.queries.offsets)[queries]
    ranks = w.policy.displayed_rank[logs.document] - 1
    deepest = int(lengths.max())
    at = logs.row // n_rows * deepest + ranks
    clicks, gains = (np.bincount(at, logs.clicks * x, n_logs * deepest) for x in (1.0, gain[logs.document]))
    # A query is shown at each rank down to its last document.
    log_of = np.repeat(np.arange(n_logs), n_rows)
    ends = np.bincount(log_of * deepest + lengths.ravel() - 1, logs.sessions.ravel(), n_logs * deepest)
    shown = np.cumsum(ends.reshape(n_logs, deepest)[:, ::-1], axis=1)[:, ::-1]
    clicks, gains = clicks.reshape(shown.shape), gains.reshape(shown.shape)
    first = clicks[:, :1] / shown[:, :1]
    weighted = np.divide(first * shown * gains, clicks, out=np.zeros_like(gains), where=clicks > 0)
    return np.asarray(weighted.sum(axis=1) / shown[:, 0])


def coec_in_the_long_run(w: World, gain: FloatArray) -> float:
    """What COEC makes of a gain per query when the log is endless: relevant documents at rank r count a₁ / a_r.

    Here a_r is the share of relevant documents among those that the logger puts at rank r, and a₁ that of rank 1.
    """
    rank = w.policy.displayed_rank
    shown = np.bincount(rank)
    attraction = np.bincount(rank[w.relevant], minlength=len(shown)) / np.maximum(shown, 1)
    return float((gain[w.relevant] * attraction[1] / attraction[rank[w.relevant]]).sum() / w.queries.n_queries)


@cache
def errors(run: book.Run) -> pd.DataFrame:
    """How far estimates of the difference new − logger are off, at η = 1: a row for each seed, log size and method.

    ``error`` is the root mean squared error over many logs of the same queries, divided by the true difference in
    DCG.
    """
    smallest, repeats = run.size.clicks[0], max(20, run.size.repetitions // 2)
    sizes = (smallest // 100, smallest // 10, *run.size.clicks)
    rows = []
    for seed in run.seeds:
        w = world(run, seed)
        gain, truth, n = (w.old - w.new).lam, w.truth(w.new - w.old), w.queries.n_queries
        for index, clicks in enumerate(sizes):
            rng = run.rng(seed, [205, index])
            asked = rng.multinomial(sessions_for(w, 1.0, clicks), np.full(n, 1 / n), size=repeats)
            queries = np.tile(np.arange(n), (repeats, 1))
            logs = Logs(w, 1.0, queries, asked, rng)
            found = {
                "naive": logs.mean(gain[logs.document]),
                "COEC": coec(w, logs, queries, gain),
                "ips": logs.mean(gain[logs.document] / logs.propensity),
            }
            for method, values in found.items():
                rows.append((seed, clicks, method, np.sqrt(np.mean((values - truth) ** 2)) / abs(truth)))
    return pd.DataFrame(rows, columns=["seed", "clicks", "method", "error"])


def asked_queries(
    w: World, regime: str, total: int, n_logs: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Which queries each log holds, drawn from the population, and with how many sessions."""
    if regime == "one session a query":
        shape = n_logs, total
        return rng.integers(w.queries.n_queries, size=shape), np.ones(shape, dtype=np.int64)
    n = w.queries.n_queries
    popularity = 1 / np.arange(1, n + 1) if regime == "popular queries" else np.ones(n)
    sessions = rng.multinomial(total, popularity / popularity.sum(), size=n_logs)
    return rng.integers(n, size=sessions.shape), sessions


def effective_clicks(w: World, eta: float, logs: Logs, queries: IntArray) -> tuple[FloatArray, FloatArray]:
    """Of the difference of both rankers in each log: effective clicks that came, and those to be expected.

    Expected are as many clicks as came, dealt to all displays in proportion to examination.
    """
    change, p = np.abs((w.new - w.old).lam), w.policy.exposure(user_with(eta))
    weight = change[logs.document] / logs.propensity
    heavy = np.maximum(logs._by_row(weight**2).sum(axis=1), 1e-300)  # 0 effective clicks where none came
    came = logs._by_row(weight).sum(axis=1) ** 2 / heavy
    looks, plain, squares = ((logs.sessions * w.of_query(x)[queries]).sum(axis=1) for x in (p, change, change**2 / p))
    n_clicks = logs._by_row(np.ones(len(logs.row))).sum(axis=1)
    return came, n_clicks / looks * plain**2 / squares


def covers(logs: Logs, values: FloatArray, truth: float) -> BoolArray:
    """Whether the normal interval of 95 % by query, of the mean of ``values`` per session, covers the truth."""
    total, n = logs._by_row(values), logs.sessions.sum(axis=1)
    mean = total.sum(axis=1) / n
    residual = total - mean[:, None] * logs.sessions
    units = np.maximum((logs.sessions > 0).sum(axis=1), 2)
    error = np.sqrt(units / (units - 1) * (residual**2).sum(axis=1)) / n
    return np.asarray(np.abs(mean - truth) <= 1.959963984540054 * error)


@cache
def coverage(run: book.Run, regimes: tuple[str, ...] = EQUAL) -> pd.DataFrame:
    """How often the interval of the difference new − logger keeps its promise, where each log draws its queries.

    A row for each seed, regime of ``regimes``, ``eta``, ``clicks`` and log: ``came`` and ``expected`` are its effective
    clicks, ``covered`` says whether the interval covers the true difference.
    """
    small, n_logs = run.size.clicks[0] // 10, max(10, run.size.repetitions // 2)
    sizes = (small, 4 * small, *run.size.clicks[:2])
    frames = []
    for seed in run.seeds:
        w = world(run, seed)
        change, truth = (w.old - w.new).lam, w.truth(w.new - w.old)
        for regime in regimes:
            at = REGIMES.index(regime)
            shorter = sizes[:-1] if regime == "one session a query" else sizes  # it has a row for each session
            for eta in SEVERITIES:
                for index, clicks in enumerate(shorter):
                    rng, total = run.rng(seed, [221, at, index, round(2 * eta)]), sessions_for(w, eta, clicks)
                    rows = total if regime == "one session a query" else w.queries.n_queries
                    together = max(1, int(AT_ONCE / (rows * w.number.mean())))
                    for start in range(0, n_logs, together):
                        queries, sessions = asked_queries(w, regime, total, min(together, n_logs - start), rng)
                        logs = Logs(w, eta, queries, sessions, rng)
                        came, expected = effective_clicks(w, eta, logs, queries)
                        covered = covers(logs, change[logs.document] / logs.propensity, truth)
                        frames.append(
                            pd.DataFrame(
                                {"seed": seed, "regime": regime, "eta": eta, "clicks": clicks, "came": came,
                                 "expected": expected, "covered": covered}
                            )
                        )  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def coverage_groups(run: book.Run) -> pd.DataFrame:
    """The logs of :func:`coverage` in groups: a row for each panel of the figure, regime and group of 20 logs or more.

    They are sorted by the effective clicks *expected*; and, those of equal traffic with fewer than :data:`ENOUGH`, by
    how many times as many *came*.  Each group goes from its ``start`` to that of the next.
    """
    frame, every = coverage(run), coverage(run, REGIMES)
    short = frame[frame["expected"] < ENOUGH]
    panels = (
        ("expected", every, every["expected"], (0, 25, 50, 100, 200, 400, 800, 1600)),
        ("came", short, short["came"] / short["expected"], (0, 0.5, 0.7, 1, 1.4, 2, 2.8)),
    )
    rows = []
    for panel, logs, values, starts in panels:
        start = np.array(starts, dtype=float)[np.searchsorted(starts, values, side="right") - 1]
        for (regime, at), covered in logs["covered"].groupby([logs["regime"], start]):
            if len(covered) >= 20:
                rows.append((panel, regime, at, covered.mean(), len(covered)))
    return pd.DataFrame(rows, columns=["sorted_by", "regime", "start", "covered", "logs"])


@cache
def caps(run: book.Run) -> pd.DataFrame:
    """The clipped difference new − logger in DCG, by formula: a row for each seed, ``eta``, log size and cap.

    ``bias``, ``sd`` and ``error``, the root of the sum of their squares, are relative to the true difference.  Each
    session draws its query.  The caps are powers of two, and the last of each ``eta`` clips nothing.
    """
    smallest = run.size.clicks[0]
    deepest = max(int(np.diff(world(run, seed).queries.offsets).max()) for seed in run.seeds)
    rows = []
    for seed, eta in product(run.seeds, (1.0, 2.0)):
        w = world(run, seed)
        p, change = w.policy.exposure(user_with(eta)), w.new - w.old
        truth = w.truth(change)
        for cap in 2.0 ** np.arange(np.ceil(eta * np.log2(deepest)) + 1):
            weights = np.minimum(1 / p, cap)
            bias = (-change.lam * (weights * p - 1))[w.relevant].sum() / w.queries.n_queries
            of_one = ips_variance(change.lam, p * w.relevance, weights=weights, offsets=w.queries.offsets, sessions=1)
            for clicks in (smallest // 10, *run.size.clicks):
                sd = np.sqrt(of_one / sessions_for(w, eta, clicks))
                rows.append((seed, eta, clicks, cap, bias / abs(truth), sd / abs(truth)))
    table = pd.DataFrame(rows, columns=["seed", "eta", "clicks", "cap", "bias", "sd"])
    return table.assign(error=np.hypot(table["bias"], table["sd"]))


@cache
def month(run: book.Run) -> cf.ClickLog:
    """Last month's log of the shop, at η = 1: what the first seed's population clicked."""
    w = world(run, run.seed)
    n_clicks = run.size.clicks[1]
    return run.simulate(w.policy, user_with(1.0), relevance=w.relevance, n_clicks=n_clicks, rng=run.rng(run.seed, 204))


def by_seed(frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]) -> FloatArray:
    """A statistic of the rows of each seed, in the order of the seeds."""
    return np.array([statistic(rows) for _, rows in frame.groupby("seed")])
