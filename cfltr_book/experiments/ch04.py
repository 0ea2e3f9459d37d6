"""What chapter 4 simulates: how loose bounds are when all scores are stretched, and steps down the slope of one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd

import cfltr_book as book
import cfltr_core as cf
from cfltr_core.checks import FloatArray

# What all scores are multiplied by; their standard deviation is 1 before.
FACTORS = np.geomspace(0.1, 10, 9)
SURROGATES: tuple[Literal["hinge", "logistic"], ...] = ("hinge", "logistic")
# Steps after which rankers are judged.
MARKS = (0, 1, 2, 5, 10, 20, 50)
# How often relevance is shuffled anew for the control: chance moves a single one too far.
SHUFFLES = 2
USER = cf.PositionBasedUser(cf.power_examination(1.0))


@dataclass(frozen=True, eq=False)
class World:
    """One population: queries to learn from, and others to judge by.

    ``features`` and ``later_features`` are in units of their standard deviation on the first queries, ``deployed`` are
    the weights of the ranker that fills the logs, for features in these units.
    """

    queries: cf.RankingData
    features: FloatArray
    later: cf.RankingData
    later_features: FloatArray
    deployed: FloatArray


@dataclass(frozen=True, eq=False)
class Month:
    """Last month's clicks: features (n_docs, n_features) and log of some queries, and of others, set aside."""

    features: FloatArray
    log: cf.ClickLog
    later_features: FloatArray
    later_log: cf.ClickLog
    deployed: FloatArray


@cache
def world(run: book.Run, seed: int) -> World:
    """The population of one seed: at most 500 of its training queries, and its test queries."""
    data = run.load(seed)
    ranker = cf.fit_linear_ranker(data.train, 0.01, rng=run.rng(seed, 406))
    train = data.train.subset(np.arange(min(500, data.train.n_queries)))
    mean, spread = train.features.mean(axis=0, dtype=float), train.features.std(axis=0, dtype=float)
    deployed = ranker.weights * spread
    spread[spread < 1e-6] = np.inf  # a constant feature says nothing
    features, later = ((part.features - mean) / spread for part in (train, data.test))
    return World(train, features, data.test, later, deployed)


def _click_log(
    run: book.Run, queries: cf.RankingData, scores: FloatArray, relevance: FloatArray, rng: np.random.Generator
) -> cf.ClickLog:
    """A log of the middle size at η = 1, of the ranker with these scores; without noise."""
    policy = cf.DeterministicPolicy.rank_by(scores, queries.offsets, rng=rng)
    return run.simulate(policy, USER, relevance=relevance, n_clicks=run.size.clicks[1], rng=rng)


@cache
def month(run: book.Run) -> Month:
    """What the first seed's population clicked."""
    w, rng = world(run, run.seed), run.rng(run.seed, 407)
    logs = [
        _click_log(run, queries, x @ w.deployed, queries.binary, rng)
        for queries, x in ((w.queries, w.features), (w.later, w.later_features))
    ]
    return Month(w.features, logs[0], w.later_features, logs[1], w.deployed)


def descend(
    x: FloatArray, log: cf.ClickLog, w: FloatArray, metric: cf.RankWeight, *, steps: int = 50
) -> list[FloatArray]:
    """The weights before and after each step of length 1/t down the slope; the path ends where nothing is pulled.

    Longer steps, such as 1/√t, jump to and fro across kinks, so that where they end depends on how a machine rounds.
    """
    path, clicked = [w], log.clicks > 0
    documents, weights = log.document[clicked], (log.clicks * log.weights)[clicked]
    for t in range(1, steps + 1):
        at = cf.bound_loss(x @ path[-1], log.offsets, documents=documents, weights=weights, metric=metric)
        slope = x.T @ at.gradient
        length = np.linalg.norm(slope)
        if length == 0:
            break
        path.append(path[-1] - slope / (length * t))
    return path


@cache
def descents(run: book.Run) -> pd.DataFrame:
    """Fifty steps on the hinge bound of DCG from w = 0: a row for each seed, ``shuffle`` and step.

    ``guaranteed`` is the bound on the log as a gain per session, ``estimate`` what IPS says of it, and ``test`` the
    true DCG of a test query.  Shuffle 0 is none; the others deal relevance anew within each list before users click.
    """
    metric = cf.dcg()

    def walk(seed: int, shuffle: int, rng: np.random.Generator) -> list[list[float]]:
        w = world(run, seed)
        offsets, relevant = w.queries.offsets, np.asarray(w.queries.binary)
        for _ in range(shuffle):
            relevant = relevant[np.lexsort((rng.random(len(relevant)), cf.query_index(offsets)))]
        log = _click_log(run, w.queries, w.features @ w.deployed, relevant, rng)
        weights = log.clicks * log.weights / log.n_sessions
        path = descend(w.features, log, np.zeros(w.features.shape[1]), metric)
        rows = []
        for step in MARKS:
            at = path[min(step, len(path) - 1)]
            scores = w.features @ at
            bound = cf.bound_loss(scores, offsets, documents=log.document, weights=weights, metric=metric)
            judged = cf.rank_weights(scores, offsets, metric=metric)
            test = cf.additive_metric(w.later_features @ at, w.later.offsets, relevance=w.later.binary, metric=metric)
            rows.append([-bound.value, cf.ips(log, judged).report(), -float(test.mean())])
        return rows

    found = run.each_seed(walk, range(SHUFFLES + 1), stream=403)
    rows = [
        (seed, shuffle, step, *values)
        for seed, of_seed in zip(run.seeds, found, strict=True)
        for shuffle, marks in enumerate(of_seed)
        for step, values in zip(MARKS, marks, strict=True)
    ]
    return pd.DataFrame(rows, columns=["seed", "shuffle", "step", "guaranteed", "estimate", "test"])


def taught_by_labels(run: book.Run) -> float:
    """The true DCG of a test query, by a linear regression on all labels of the queries that were learnt from."""

    def dcg_of(seed: int, rng: np.random.Generator) -> float:
        w = world(run, seed)
        ranker = cf.fit_linear_ranker(w.queries, 1.0, rng=rng)
        scores = ranker.decision_function(w.later.features)
        found = cf.additive_metric(scores, w.later.offsets, relevance=w.later.binary, metric=cf.dcg())
        return -float(found.mean())

    return float(np.mean(run.each_seed(dcg_of, stream=408)))


@cache
def stretched(run: book.Run) -> pd.DataFrame:
    """Bounds of a linear ranker that has learnt from all labels, on test queries, when all its scores are multiplied.

    A row for each seed, ``metric``, ``surrogate`` and ``factor``: ``bound`` and ``truth`` per relevant document, the
    average rank as a risk and DCG as a gain.
    """
    metrics = {"average rank": cf.average_rank(), "DCG": cf.dcg()}

    def judge(seed: int, rng: np.random.Generator) -> list[tuple[str, str, float, float, float]]:
        data = run.load(seed)
        test, relevant = data.test, np.flatnonzero(data.test.binary)
        scores = cf.fit_linear_ranker(data.train, 1.0, rng=rng).decision_function(test.features)
        scores = scores / max(scores.std(), 1e-12)
        ranks_of = {
            surrogate: {
                float(k): cf.surrogate_ranks(k * scores, test.offsets, documents=relevant, surrogate=surrogate)
                for k in FACTORS
            }
            for surrogate in SURROGATES
        }
        rows: list[tuple[str, str, float, float, float]] = []
        for name, metric in metrics.items():
            truth = metric.report(cf.rank_weights(scores, test.offsets, metric=metric).lam[relevant].mean())
            for surrogate in SURROGATES:
                for factor, ranks in ranks_of[surrogate].items():
                    bound = metric.report(metric(ranks).mean())
                    rows.append((name, surrogate, factor, float(bound), float(truth)))
        return rows

    found = run.each_seed(judge, stream=401)
    rows = [(seed, *row) for seed, of_seed in zip(run.seeds, found, strict=True) for row in of_seed]
    return pd.DataFrame(rows, columns=["seed", "metric", "surrogate", "factor", "bound", "truth"])
