"""What chapter 5 simulates: SVMs that learn from raw, capped and full clicks, and what wrong weights do to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

import cfltr_book as book
import cfltr_core as cf
from cfltr_core.checks import FloatArray
from cfltr_core.learning.proprank import LinearFit
from cfltr_core.learning.selection import Selection

# The strengths from which each learner chooses, and the most that a capped click counts.
GRID = (0.01, 0.1, 1.0, 10.0, 100.0)
CAP = 5.0
# Clicks on the training queries of each log, in units of the smallest size of the scale.
FACTORS = (1, 3, 10, 30)
# What the SVM is told of the exponent of position bias, which is 1.
ASSUMED = (0.5, 1.1, 1.5, 2.0)
TERMS = ("document", "rank", "propensity", "impressions", "clicks")
CURVE = cf.power_examination(1.0)
USER = cf.PositionBasedUser(CURVE, epsilon_minus=0.1)
ROBOT = cf.PositionBasedUser(CURVE, epsilon_minus=1.0)


def average_rank(ranker: cf.LinearRanker, part: cf.RankingData) -> float:
    """The mean rank of a relevant document, by labels."""
    scores = ranker.decision_function(part.features)
    ranks = cf.additive_metric(scores, part.offsets, relevance=part.binary, metric=cf.average_rank())
    return float(ranks.sum() / part.binary.sum())


@dataclass(frozen=True, eq=False)
class World:
    """One population: its queries, the deployed ranker (the logger), and its pages for training and validation.

    ``before`` is the average rank of a relevant document of the test queries by the logger.
    """

    data: Any
    logger: cf.LinearRanker
    pages: tuple[cf.DeterministicPolicy, cf.DeterministicPolicy]
    before: float

    @property
    def parts(self) -> tuple[cf.RankingData, cf.RankingData]:
        """The queries to learn from, and those whose clicks choose C."""
        return self.data.train, self.data.validation

    def places_gained(self, ranker: cf.LinearRanker) -> float:
        """How many places a relevant document of the test queries rises over the logger, on average."""
        return self.before - average_rank(ranker, self.data.test)


@dataclass(frozen=True, eq=False)
class Month:
    """Last month's clicks: features (n_docs, n_features), their log, the scores of the deployed ranker, and labels."""

    features: FloatArray
    log: cf.ClickLog
    deployed: FloatArray
    relevance: FloatArray


@cache
def world(run: book.Run, seed: int) -> World:
    """The population of one seed; its logger has learnt from the labels of few training queries."""
    rng, data = run.rng(seed, 511), run.load(seed)
    logger = cf.fit_linear_ranker(data.train, 0.01, rng=rng)
    pages = [
        cf.DeterministicPolicy.rank_by(logger.decision_function(part.features), part.offsets, rng=rng)
        for part in (data.train, data.validation)
    ]
    return World(data, logger, (pages[0], pages[1]), average_rank(logger, data.test))


def sizes(run: book.Run) -> list[int]:
    """The expected clicks on training queries of each log."""
    return [factor * run.size.clicks[0] for factor in FACTORS]


def draw(
    run: book.Run, w: World, n_clicks: float, rng: np.random.Generator, user: cf.PositionBasedUser = USER
) -> tuple[cf.ClickLog, cf.ClickLog]:
    """Logs of training and validation queries, with as many clicks a query on both."""
    per_query = n_clicks / w.data.train.n_queries
    train, held_out = (
        run.simulate(page, user, relevance=part.binary, rng=rng, n_clicks=per_query * part.n_queries)
        for part, page in zip(w.parts, w.pages, strict=True)
    )
    return train, held_out


@cache
def month(run: book.Run) -> Month:
    """What the first seed's population clicked on the pages of its training queries: a log of the largest size."""
    w = world(run, run.seed)
    log, _ = draw(run, w, sizes(run)[-1], run.rng(run.seed, 515))
    train = w.data.train
    return Month(train.features, log, w.logger.decision_function(train.features), np.asarray(train.binary))


def three_views(log: cf.ClickLog, assumed: float = 1.0) -> dict[str, cf.ClickLog]:
    """The log as raw clicks, over the propensities r^-``assumed``, and with weights capped at :data:`CAP`."""
    propensity = np.asarray(log.rank**-assumed, dtype=np.float64)
    return {
        "raw": replace(log, propensity=np.ones(len(log.document))),
        "full": replace(log, propensity=propensity),
        "capped": replace(log, propensity=np.maximum(propensity, 1 / CAP)),
    }


def learn(
    features: ArrayLike, log: cf.ClickLog, held_out: ArrayLike, held_out_log: cf.ClickLog
) -> tuple[Selection, dict[float, LinearFit]]:
    """An SVM for each strength of :data:`GRID`, and which of them the held-out clicks choose."""
    tried: dict[float, LinearFit] = {}

    def train(C: float, start: LinearFit | None) -> LinearFit:
        tried[C] = cf.fit_proprank(features, log, C=C, gap=0.01, start=start)
        return tried[C]

    return cf.select_C(train, GRID, features=held_out, log=held_out_log, extend=0), tried


def _rows(w: World, logs: tuple[cf.ClickLog, cf.ClickLog]) -> list[tuple[float, float, float, bool]]:
    """Of each strength: C, the held-out estimate of DCG per click, the places gained, and whether it was chosen."""
    (train, held_out), (log, held_out_log) = w.parts, logs
    chosen, tried = learn(train.features, log, held_out.features, held_out_log)
    return [(C, -chosen.estimates[C], w.places_gained(fit), fit is chosen.fit) for C, fit in sorted(tried.items())]


COLUMNS = ["C", "held_out", "places", "chosen"]


@cache
def learned(run: book.Run) -> pd.DataFrame:
    """Three learners on logs of four sizes: a row for each seed, ``clicks``, ``learner`` and C.

    ``held_out`` is the self-normalised estimate of DCG from held-out clicks, as the learner weighs them, ``places``
    what was gained over the logger on test queries, by labels, and ``effective`` the effective clicks of the log.
    """

    def of_one_log(seed: int, n_clicks: int, rng: np.random.Generator) -> list[list[Any]]:
        w = world(run, seed)
        logs = draw(run, w, n_clicks, rng)
        weighed = logs[0].clicks * logs[0].weights
        effective = weighed.sum() ** 2 / (weighed @ logs[0].weights)
        views = [three_views(log) for log in logs]
        return [
            [effective, learner, *row]
            for learner in views[0]
            for row in _rows(w, (views[0][learner], views[1][learner]))
        ]

    found = run.each_seed(of_one_log, sizes(run), stream=512, by_seed=True)
    rows = [
        (seed, clicks, *row)
        for seed, of_seed in zip(run.seeds, found, strict=True)
        for clicks, of_log in zip(sizes(run), of_seed, strict=True)
        for row in of_log
    ]
    return pd.DataFrame(rows, columns=["seed", "clicks", "effective", "learner", *COLUMNS])


@cache
def all_labels(run: book.Run) -> pd.DataFrame:
    """The same SVM on all labels of the training queries, C = 10: ``places`` gained, a row for each seed."""

    def of_labels(seed: int, rng: np.random.Generator) -> float:
        w = world(run, seed)
        return w.places_gained(cf.fit_proprank(w.data.train.features, cf.label_log(w.data.train), C=10.0, gap=0.01))

    return pd.DataFrame({"seed": run.seeds, "places": run.each_seed(of_labels, stream=513)})


@cache
def wrong_exponents(run: book.Run) -> pd.DataFrame:
    """What a wrong exponent does, on the third log of each seed: a row for each seed, ``assumed``, ``capped`` and C.

    The SVM, and the held-out clicks that choose its C, take rank r to be examined with probability r^-``assumed``.
    The right exponent, 1, and 0, which are raw clicks, come from :func:`learned`.
    """
    clicks, seeds = sizes(run)[2], run.learning_seeds

    def believe(seed: int, assumed: float, rng: np.random.Generator) -> list[list[Any]]:
        w = world(run, seed)
        views = [three_views(log, assumed) for log in draw(run, w, clicks, rng)]
        return [
            [name == "capped", *row]
            for name in ("full", "capped")
            for row in _rows(w, (views[0][name], views[1][name]))
        ]

    found = run.each_seed(believe, ASSUMED, stream=512, seeds=seeds, by_seed=True)
    rows = [
        (seed, assumed, *row)
        for seed, of_seed in zip(seeds, found, strict=True)
        for assumed, of_one in zip(ASSUMED, of_seed, strict=True)
        for row in of_one
    ]
    frame = learned(run)
    frame = frame[(frame["clicks"] == clicks) & frame["seed"].isin(seeds)]
    known = [
        frame[frame["learner"] == learner].assign(assumed=assumed, capped=capped)
        for learner, assumed, capped in (
            ("raw", 0.0, False), ("raw", 0.0, True), ("full", 1.0, False), ("capped", 1.0, True)
        )
    ]  # fmt: skip
    columns = ["seed", "assumed", "capped", *COLUMNS]
    return pd.concat([pd.DataFrame(rows, columns=columns), *(one[columns] for one in known)], ignore_index=True)


def deal(log: cf.ClickLog, rng: np.random.Generator) -> cf.ClickLog:
    """The same clicks and the same weights, but the weights are dealt to the clicks at random."""
    clicked = np.flatnonzero(log.clicks)
    term = np.repeat(clicked, log.clicks[clicked])
    weights = np.bincount(term, rng.permutation(log.weights[term]), minlength=len(log.clicks))
    propensity = np.ones(len(log.clicks))
    propensity[clicked] = log.clicks[clicked] / weights[clicked]
    return replace(log, propensity=np.minimum(propensity, 1))  # rounding may leave a weight of 1 below it


def together(log: cf.ClickLog, other: cf.ClickLog) -> cf.ClickLog:
    """The terms of two logs of the same pages as one log."""
    table = pd.concat([pd.DataFrame({name: getattr(one, name) for name in TERMS}) for one in (log, other)])
    table = table.groupby(["document", "rank", "propensity"], as_index=False).sum()
    columns: dict[str, Any] = {name: table[name].to_numpy() for name in TERMS}
    return replace(log, sessions=log.sessions + other.sessions, **columns)


@cache
def controls(run: book.Run) -> pd.DataFrame:
    """Places gained from two logs that hold no more than another one: a row for each seed, ``control`` and C.

    *dealt*: the largest log, its weights dealt to its clicks at random.  *robots*: the smallest log, and clicks of
    robots, who click on whatever they look at, until it has as many clicks as the largest.
    """
    few, *_, many = sizes(run)

    def measure(seed: int, control: str, rng: np.random.Generator) -> list[Any]:
        w, again = world(run, seed), run.rng(seed, 516)
        if control == "dealt":
            train, held_out = (deal(log, again) for log in draw(run, w, many, rng))
        else:
            pairs = zip(draw(run, w, few, rng), draw(run, w, many - few, again, ROBOT), strict=True)
            train, held_out = (together(*pair) for pair in pairs)
        return _rows(w, (train, held_out))

    kinds = ["dealt", "robots"]
    found = run.each_seed(measure, kinds, stream=512, by_seed=True)
    rows = [
        (seed, kind, *row)
        for (seed, of_seed), (at, kind) in product(zip(run.seeds, found, strict=True), enumerate(kinds))
        for row in of_seed[at]
    ]
    return pd.DataFrame(rows, columns=["seed", "control", *COLUMNS])
