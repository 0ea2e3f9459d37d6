"""What chapter 6 simulates: SVM PropDCG and its rivals on the same logs, the course of its rounds, and its weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

import cfltr_book as book
import cfltr_core as cf
from cfltr_core.checks import FloatArray
from cfltr_core.learning.proprank import LinearFit

Learner = Callable[[float, LinearFit | None], Any]

DCG = cf.dcg()
# From these, and from none, held-out clicks choose the most that a click counts; 1 are raw clicks.
CAPS = (1.0, 3.0, 10.0, np.inf)
# How closely rounds are solved while C is chosen, and how much of the fall a round must bring for another to follow.
GAP, DECREASE = 0.05, 0.03
ROUNDS = 10
MOST_QUERIES = (1000, 333)
USER = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_minus=0.1)
ARMS = ("PropRank", "PropRank, capped", "PropDCG")
# Other ways to train SVM PropDCG, on the middle log: the logistic cost, two starts, and C after C begun warm.
WAYS = ("logistic", "from PropRank", "warm")


@dataclass(frozen=True, eq=False)
class World:
    """One population: queries to learn from, to choose by and to test on, and the pages of the deployed ranker."""

    train: cf.RankingData
    held_out: cf.RankingData
    test: cf.RankingData
    logger: cf.LinearRanker
    pages: tuple[cf.DeterministicPolicy, cf.DeterministicPolicy]


@dataclass(frozen=True, eq=False)
class Month:
    """Last month's clicks: features (n_docs, n_features), their log, and the scores of the deployed ranker."""

    features: NDArray[np.float32]
    log: cf.ClickLog
    deployed: FloatArray


@cache
def world(run: book.Run, seed: int) -> World:
    """The population of one seed; its deployed ranker has learnt from the labels of few training queries."""
    rng, data = run.rng(seed, 611), run.load(seed)
    logger = cf.fit_linear_ranker(data.train, 0.01, rng=rng)
    train, held_out = (
        part.subset(np.arange(min(most, part.n_queries)))
        for part, most in zip((data.train, data.validation), MOST_QUERIES, strict=True)
    )
    pages = [
        cf.DeterministicPolicy.rank_by(logger.decision_function(part.features), part.offsets, rng=rng)
        for part in (train, held_out)
    ]
    return World(train, held_out, data.test, logger, (pages[0], pages[1]))


def draw(run: book.Run, w: World, n_clicks: float, rng: np.random.Generator) -> tuple[cf.ClickLog, cf.ClickLog]:
    """Logs of training and held-out queries, with as many clicks a query on both; all labels if no clicks are asked."""
    parts = (w.train, w.held_out)
    if n_clicks == 0:
        return cf.label_log(w.train), cf.label_log(w.held_out)
    train, held_out = (
        run.simulate(page, USER, relevance=part.binary, rng=rng, n_clicks=n_clicks * part.n_queries / w.train.n_queries)
        for part, page in zip(parts, w.pages, strict=True)
    )
    return train, held_out


@cache
def month(run: book.Run) -> Month:
    """What the first seed's population clicked on the pages of its training queries: a log of the second size."""
    w = world(run, run.seed)
    log, _ = draw(run, w, run.size.clicks[1], run.rng(run.seed, 612))
    return Month(w.train.features, log, w.logger.decision_function(w.train.features))


def capped(log: cf.ClickLog, cap: float) -> cf.ClickLog:
    """The log with weights 1/p of at most ``cap``."""
    return replace(log, propensity=np.maximum(log.propensity, 1 / cap))


def stretch(log: cf.ClickLog) -> float:
    """The mean of c / c′ at w = 0, where 1 + S is the length of a list: so much larger is the C of SVM PropDCG."""
    lengths = np.diff(log.offsets)[log.query]
    return float(np.average(1 / DCG.slope(lengths), weights=log.clicks))


def fit_logistic(features: ArrayLike, log: cf.ClickLog, C: float) -> cf.LinearRanker:
    """The objective of SVM PropDCG with the logistic cost in place of the hinge, minimised directly from w = 0."""
    x = np.asarray(features, dtype=np.float64)
    clicked = log.mass > 0
    documents, weights = log.document[clicked], C * log.mass[clicked]

    def value(w: FloatArray) -> tuple[float, FloatArray]:
        bound = cf.bound_loss(
            x @ w, log.offsets, documents=documents, weights=weights, metric=DCG, surrogate="logistic"
        )
        return float(w @ w / 2 + bound.value), w + bound.gradient @ x

    options = {"maxiter": 200, "ftol": GAP * 1e-5}
    return cf.LinearRanker(minimize(value, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options=options).x)


def learner(arm: str, features: ArrayLike, log: cf.ClickLog, start: LinearFit | None = None) -> Learner:
    """How an arm trains at one C, which may be given a neighbour's solution to begin from."""
    if arm.startswith("PropRank"):
        return lambda C, near: cf.fit_proprank(features, log, C=C, gap=GAP, start=near)
    if arm == "logistic":
        return lambda C, near: fit_logistic(features, log, C)

    def rounds(C: float, near: LinearFit | None) -> LinearFit:
        begun = near if arm == "warm" else start
        return cf.fit_propdcg(features, log, C=C, gap=GAP, decrease=DECREASE, start=begun)

    return rounds


def judged(ranker: Any, part: cf.RankingData) -> tuple[float, float]:
    """DCG and mean rank of a relevant document, by labels."""
    scores = ranker.decision_function(part.features)
    risks = [
        cf.additive_metric(scores, part.offsets, relevance=part.binary, metric=metric).sum() / part.binary.sum()
        for metric in (DCG, cf.average_rank())
    ]
    return -float(risks[0]), float(risks[1])


def choose(run: book.Run, arm: str, w: World, logs: tuple[cf.ClickLog, cf.ClickLog]) -> tuple[Any, dict[str, Any]]:
    """The ranker of an arm whose C, and cap, has the best uncapped estimate of DCG on held-out clicks; and these."""
    log, held_out = logs
    start = choose(run, "PropRank", w, logs)[0] if arm == "from PropRank" else None
    scale = 1.0 if arm.startswith("PropRank") else stretch(log)
    grid, found = [scale * C for C in run.size.C_grid], []
    for cap in CAPS if "capped" in arm else (np.inf,):
        learn = learner(arm, w.train.features, capped(log, cap), start)
        chosen = cf.select_C(learn, grid, features=w.held_out.features, log=held_out, extend=1)
        C = min(chosen.estimates, key=chosen.estimates.__getitem__)
        found.append((chosen.estimates[C], cap, C, chosen.fit))
    estimate, cap, C, fit = min(found, key=lambda one: one[0])
    rounds = len(getattr(fit, "objective", [0])) - 1
    return fit, {"held_out": -estimate, "cap": cap, "C": C, "rounds": rounds}


def _arm(run: book.Run, seed: int, setting: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    w = world(run, seed)
    ranker, about = choose(run, setting["arm"], w, draw(run, w, setting["clicks"], rng))
    dcg, rank = judged(ranker, w.test)
    return {"dcg": dcg, "rank": rank, **about}


def sizes(run: book.Run) -> tuple[int, ...]:
    """The expected clicks of each log."""
    return tuple(run.size.clicks[:3])


def _settings(run: book.Run) -> list[dict[str, Any]]:
    asked = [(clicks, arm) for clicks in sizes(run) for arm in ARMS]
    asked += [(sizes(run)[1], arm) for arm in WAYS] + [(0, arm) for arm in ("PropRank", "PropDCG")]
    return [{"clicks": clicks, "arm": arm} for clicks, arm in asked]


# What each arm reaches on test queries, with the C, and the cap, that held-out clicks chose; 0 clicks are all labels.
COMPARED = book.Experiment("compared", _arm, settings=_settings, stream=613, seeds=lambda run: run.seeds, rtol=5e-3)


@cache
def compared(run: book.Run) -> pd.DataFrame:
    """The table of :data:`COMPARED`, once a run: each time that it is read, some of its cells are computed again."""
    return run.table(COMPARED)


def course(features: ArrayLike, log: cf.ClickLog, C: float, rounds: int, gap: float) -> list[FloatArray]:
    """The weights before the first round, w = 0, and after each round, solved to a gap of ``gap``."""
    x = np.asarray(features, dtype=np.float64)
    fit, found = None, [np.zeros(x.shape[1])]
    for _ in range(rounds):
        ranks = cf.surrogate_ranks(x @ found[-1], log.offsets, documents=log.document)
        p = log.propensity / DCG.slope(ranks)
        fit = cf.fit_proprank(features, replace(log, propensity=p / p.max()), C=C / p.max(), gap=gap, start=fit)
        found.append(fit.weights)
    return found


def objective(features: ArrayLike, log: cf.ClickLog, C: float, w: FloatArray) -> float:
    """F of SVM PropDCG at the weights w."""
    ranks = cf.surrogate_ranks(np.asarray(features) @ w, log.offsets, documents=log.document)
    return float(w @ w / 2 + C * log.mass @ DCG(ranks))


def _rounds(run: book.Run, seed: int, setting: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    w = world(run, seed)
    log, _ = draw(run, w, sizes(run)[1], rng)
    x, C, row = w.train.features, setting["C"] * stretch(log), {}
    for k, weights in enumerate(course(x, log, C, ROUNDS, gap=5e-3)):
        ranked = cf.rank_weights(x @ weights, log.offsets, metric=DCG)
        row[f"F_{k}"] = objective(x, log, C, weights)
        row[f"clicks_{k}"] = -cf.self_normalised(log, ranked).value
        row[f"test_{k}"] = judged(cf.LinearRanker(weights), w.test)[0]
    return row


# F, the estimate of DCG on the clicks that were trained on and DCG on test queries, before the first round and after
# each of ten, on the middle logs of :data:`COMPARED`.  C is in units of :func:`stretch`.
COURSES = book.Experiment(
    "courses", _rounds, settings=lambda run: [{"C": C} for C in run.size.C_grid], stream=613, rtol=5e-3
)


@cache
def courses(run: book.Run) -> pd.DataFrame:
    """The table of :data:`COURSES`, once a run."""
    return run.table(COURSES)


PLACES = ("1 to 3", "4 to 10", "from 11 on")


@cache
def weighed(run: book.Run) -> pd.DataFrame:
    """How the weight of the middle log lies, as SVM PropDCG ends: a row for each ``kind``, ``place`` and ``rank``.

    ``weight`` is the sum over ``clicks`` clicks, in units of the mean click of its kind: 1/p, 1/p capped at 10 (as most
    of these logs chose), 1/p times the λ′ of the last round, and the same factors λ′ *dealt* to the clicked documents
    at random, the mean of fifty deals.  ``rank`` is where the document was shown, which is 1/p, and ``place`` where the
    new ranker puts it.
    """
    chosen = compared(run)
    chosen = chosen[(chosen["arm"] == "PropDCG") & (chosen["clicks"] == sizes(run)[1])].set_index("seed")["C"]

    def of_seed(seed: int, rng: np.random.Generator) -> dict[str, list[Any]]:
        w, chance = world(run, seed), run.rng(seed, 614)
        log, _ = draw(run, w, sizes(run)[1], rng)
        fit = cf.fit_propdcg(w.train.features, log, C=chosen[seed], gap=GAP, decrease=DECREASE)
        scores = fit.decision_function(w.train.features)
        place = cf.rank_weights(scores, log.offsets, metric=cf.average_rank()).lam[log.document]

        def of_terms(factors: FloatArray) -> FloatArray:
            every = np.zeros(w.train.n_docs)
            every[fit.documents] = factors
            return every[log.document]

        effective = fit.effective_weights
        factors = {
            "1/p": np.ones(len(place)),
            "capped": np.minimum(log.weights, 10) / log.weights,
            "λ′/p": of_terms(effective),
            "dealt": np.mean([of_terms(chance.permutation(effective)) for _ in range(50)], axis=0),
        }
        frames = []
        for kind, factor in factors.items():
            weight = log.clicks * log.weights * factor
            columns = {
                "kind": kind, "place": np.select([place <= 3, place <= 10], PLACES[:2], PLACES[2]), "rank": log.rank,
                "clicks": log.clicks, "weight": weight / weight.sum() * log.n_clicks,
            }  # fmt: skip
            frames.append(pd.DataFrame(columns).groupby(["kind", "place", "rank"], as_index=False).sum())
        return dict(pd.concat(frames).assign(seed=seed).to_dict("list"))

    found = run.each_seed(of_seed, stream=613, seeds=run.learning_seeds)
    return pd.concat(map(pd.DataFrame, found), ignore_index=True)


def rarest(run: book.Run, kind: str, share: float = 0.01) -> FloatArray:
    """What the clicks with the largest 1/p, a ``share`` of all, hold of the weight of a kind, seed by seed."""
    frame, held = weighed(run), []
    for _, rows in frame[frame["kind"] == kind].groupby("seed"):
        by_rank = rows.groupby("rank")[["clicks", "weight"]].sum().sort_index(ascending=False).cumsum()
        clicks, weight = (np.append(0, by_rank[name] / by_rank[name].iloc[-1]) for name in ("clicks", "weight"))
        held.append(np.interp(share, clicks, weight))
    return np.array(held)
