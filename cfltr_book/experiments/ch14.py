"""What chapter 14 simulates: clicks that are drawn by weight and their rivals, on logs of simulated users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import cfltr_book as book
import cfltr_core as cf
from cfltr_book.theory.convergence import second_moment
from cfltr_core.learning.bounds import Bound
from cfltr_core.learning.proprank import LinearFit
from cfltr_core.learning.samplers import ClickSampler, QuerySampler
from cfltr_core.learning.single_clicks import click_gradients, gradient_bounds
from cfltr_core.sampling import AliasTable

# Learning rates of all methods, from Eq. 31.
RATES = np.outer(10.0 ** np.arange(-5, -1), [1, 3]).ravel()[:-1]
# Three ways to draw single clicks, which take as many steps, and three rivals, which score as many documents.
Clicks = Literal["ips", "countersample", "biased"]
CLICKS: tuple[Clicks, ...] = get_args(Clicks)
RIVALS = ("length", "query", "mass")
Array = NDArray[Any]
Setting = dict[str, Any]
Sampler = ClickSampler | QuerySampler


def steps_of(run: book.Run) -> int:
    """The number of steps that single clicks take."""
    return run.size.clicks[1] // 2


def marks(run: book.Run) -> Array:
    """The steps at which the excess risk is measured."""
    return np.unique(np.geomspace(steps_of(run) / 1000, steps_of(run), 6).astype(int))


def world(run: book.Run, seed: int, eta: float = 1.0) -> tuple[cf.RankingData, cf.ClickLog]:
    """Queries of one seed, and a log of their clicks under position bias ``eta``."""
    whole, rng = run.load(seed).train, run.rng(seed, 1401)
    ranker = cf.fit_linear_ranker(whole, 0.001, rng=rng)
    part = whole.subset(range(min(whole.n_queries, run.size.generated[1] // 4)))
    policy = cf.DeterministicPolicy.rank_by(ranker.decision_function(part.features), part.offsets, rng=rng)
    user = cf.PositionBasedUser(cf.power_examination(eta), epsilon_minus=0.1)
    return part, run.simulate(policy, user, relevance=part.binary, n_clicks=run.size.clicks[-1], rng=rng)


def clicked(train: cf.RankingData, log: cf.ClickLog) -> tuple[Array, Array, Array, Array, Array]:
    """Of each clicked document: index, share of the clicks, (1/n) Σ w, G, and query."""
    at = np.flatnonzero(log.clicks)
    d = log.document[at]
    G = gradient_bounds(train.features, train.offsets, documents=d)
    return d, log.clicks[at] / log.n_clicks, log.mass[at], G, log.query[at]


def minimiser(train: cf.RankingData, log: cf.ClickLog, largest: float = 1e4, gap: float = 1e-2) -> LinearFit:
    """SVM PropRank with the largest C at which its certificate closes."""
    for C in (1e4, 1e3, 1e2):
        try:
            return cf.fit_proprank(train.features, log, C=min(C, largest), gap=gap, max_passes=2000)
        except RuntimeError:
            pass
    return cf.fit_proprank(train.features, log, C=1.0, gap=0.05)


@dataclass(frozen=True)
class Excess:
    """The excess risk on a log: over ``floor``, and never said to be less than ``least``."""

    train: cf.RankingData
    log: cf.ClickLog
    floor: float
    least: float

    def bound(self, w: Array) -> Bound:
        """The risk of ``w``, and its gradient in the scores."""
        scores = self.train.features @ w
        return cf.bound_loss(scores, self.train.offsets, documents=self.log.document, weights=self.log.mass)

    def level(self, risk: float) -> float:
        """The logarithm (base 10) of what a ``risk`` has in excess."""
        return float(np.log10(max(risk - self.floor, self.least)))

    def above(self, w: Array) -> float:
        """The :meth:`level` of the risk of ``w``."""
        return self.level(self.bound(w).value)


def excess_on(train: cf.RankingData, log: cf.ClickLog) -> tuple[Excess, Array]:
    """The excess risk over what is certified, and the minimiser w*.

    Within twice the norm of w* no risk lies below the floor; ``least`` is how far the risk of w* lies above it.
    """
    fit = minimiser(train, log, largest=1e3, gap=1e-3)
    star = fit.weights
    floor = float(log.mass.sum() + (fit.dual - 2 * star @ star) / fit.C)
    found = Excess(train, log, floor, least=1e-12)
    return replace(found, least=max(found.bound(star).value - floor, found.least)), star


class Course(NamedTuple):
    """One method at its best learning rate: steps, documents scored and log10 excess risk at the marks."""

    steps: Array
    documents: Array
    rate: float
    levels: list[float]


def at_best(
    run: book.Run, sampler: Sampler, excess: Excess, steps: float, rng: np.random.Generator, runs: int = 1
) -> Course:
    """The course at the learning rate with the least excess risk after ``steps``, the mean over ``runs``.

    The marks lie where they lie in :func:`steps_of`, in proportion.
    """
    wanted = np.maximum(1, np.round(marks(run) * steps / steps_of(run))).astype(int)
    record, at = np.unique(wanted, return_inverse=True)
    path = cf.train_sgd(
        excess.train.features,
        sampler,
        learning_rates=RATES,
        rng=rng,
        steps=int(record[-1]),
        record=[*map(int, record)],
        runs=runs,
    )

    def mean(row: Array, k: int) -> float:
        return float(np.mean([excess.above(one[k]) for one in row]))

    best = int(np.argmin([mean(path.average[-1], k) for k in range(len(RATES))]))
    levels = [mean(path.average[i], best) for i in at]
    return Course(path.steps[at], path.documents.mean(axis=1)[at], RATES[best], levels)


def cost(sampler: Sampler, train: cf.RankingData) -> float:
    """Documents that a step scores, in the mean."""
    lists = np.diff(train.offsets)
    if isinstance(sampler, QuerySampler):
        return float(sampler.probability @ lists)
    query = np.searchsorted(train.offsets, sampler.document, side="right") - 1
    return float(sampler.table.probabilities() @ lists[query])


def by_length(train: cf.RankingData, log: cf.ClickLog) -> ClickSampler:
    """Clicks by w G."""
    d, _, mass, G, _ = clicked(train, log)
    law = mass * G
    factor = np.divide(law.sum() * mass, law, out=np.zeros(len(d)), where=law > 0)
    return ClickSampler(d, AliasTable.build(law), factor=factor, offsets=train.offsets)


def full_gradient(excess: Excess, passes: int) -> Array:
    """log10 of the lowest excess risk that L-BFGS has seen, pass after pass."""
    x, seen = excess.train.features.astype(float), []

    def objective(w: Array) -> tuple[float, Array]:
        bound = excess.bound(w)
        seen.append(excess.level(bound.value))
        return bound.value, bound.gradient @ x

    minimize(objective, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B", options={"maxfun": passes})
    return np.minimum.accumulate(seen[:passes])


def plain_gradient(excess: Excess, passes: int) -> float:
    """The lowest that steps against the full gradient have seen, the best of seven learning rates."""
    x, seen = excess.train.features.astype(float), []
    for rate in np.geomspace(1e-3, 1, 7):
        w = np.zeros(x.shape[1])
        for _ in range(passes):
            bound = excess.bound(w)
            seen.append(excess.level(bound.value))
            w = w - rate * (bound.gradient @ x)
    return min(seen)


def batch_solver(excess: Excess, passes: int) -> float:
    """The lowest that :func:`cfltr_core.fit_proprank` certifies with as many passes, at the best C; NaN without one.

    Two multiplications with the features, there and back, score all documents once.
    """

    def certified() -> Iterator[float]:
        for C in (10, 100, 1000):
            for gap in (0.3, 0.1, 0.03, 0.01, 0.003, 0.001):
                try:
                    fit = cf.fit_proprank(excess.train.features, excess.log, C=C, gap=gap, max_passes=2 * passes)
                except RuntimeError:
                    break
                if fit.passes <= 2 * passes:
                    yield excess.above(fit.weights)

    return min(certified(), default=np.nan)


def ratios(train: cf.RankingData, log: cf.ClickLog, star: Array, rng: np.random.Generator) -> tuple[float, float]:
    """log10 of the ratio of second moments at w*: with the weights of the clicks, and with weights dealt by chance."""
    at = np.flatnonzero(log.clicks)
    w = np.repeat(log.weights[at], log.clicks[at])  # of each single click
    slopes = click_gradients(train.features, train.offsets, documents=log.document[at], w=star)
    length = np.repeat(np.linalg.norm(slopes, axis=1), log.clicks[at])
    ones = np.ones(len(w), dtype=int)

    def moments(w: Array) -> float:
        uniform, weighted = (
            second_moment(w, sampling=kind, gradient_norms=length, counts=ones) for kind in ("uniform", "weighted")
        )
        return float(np.log10(uniform / weighted))

    return moments(w), moments(rng.permutation(w))


def measured(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """All methods on one log: their courses, and what is to foretell how much CounterSample gains.

    With position bias the learning seeds have the rivals, too; what a cell does not measure is NaN.
    """
    train, log = world(run, seed, setting["eta"])
    excess, star = excess_on(train, log)
    samplers: dict[str, Sampler] = {name: cf.click_sampler(log, name) for name in CLICKS}
    steps, runs = steps_of(run), 1
    if setting["eta"] == 0:  # the weights are all 1: two independent runs of one method, with less noise
        del samplers["biased"]
        steps, runs = steps // 2, 8
    elif seed in run.learning_seeds:
        whole = cf.query_sampler(log, gradient_bounds_of=train.features), cf.query_sampler(log)
        samplers |= zip(RIVALS, (by_length(train, log), *whole), strict=True)
    courses, single = {}, cost(samplers["countersample"], train)
    for k, (name, sampler) in enumerate(samplers.items()):
        mine = steps * (single / cost(sampler, train) if name in RIVALS else 1)
        courses[name] = at_best(run, sampler, excess, mine, run.rng(seed, [1408, k]), runs)
    ours, ips = courses["countersample"], courses["ips"]
    out = {"docs": train.n_docs, "lowest": excess.bound(star).value, "floor": excess.floor, "least": excess.least}
    none = np.full(len(marks(run)), np.nan)
    for name in (*CLICKS, *RIVALS):
        course = courses.get(name, Course(none, none, np.nan, [*none]))
        out[f"{name} rate"] = course.rate
        out |= {f"{name} {j}": level for j, level in enumerate(course.levels)}
        out |= {f"{name} documents {j}": number for j, number in enumerate(course.documents)}
    out |= dict.fromkeys(("passes", "plain", "solver"), np.nan)
    if "query" in courses:
        scored = min(courses[name].documents[-1] for name in ("ips", "countersample", "length", "query"))
        passes = int(max(1, scored // train.n_docs))
        out |= {"passes": passes, "plain": plain_gradient(excess, passes), "solver": batch_solver(excess, passes)}
    weights = cf.weight_summary(log)
    out["bounds"] = 2 * np.log10(weights.maximum / weights.mean)
    out["cv"] = 2 * np.log10(weights.rms / weights.mean)
    out["moments"], out["shuffled"] = ratios(train, log, star, rng) if setting["eta"] > 0 else (np.nan, np.nan)
    # How many times fewer steps bring CounterSample where IPS-SGD ends.
    lowest, taken = np.minimum.accumulate(ours.levels), np.log10(ours.steps)
    out["steps"] = taken[-1] - np.interp(-ips.levels[-1], -lowest, taken)
    return out


def last_click_only(log: cf.ClickLog) -> cf.ClickLog:
    """The log in which one document per query keeps its clicks: the lowest that was clicked."""
    at = np.flatnonzero(log.clicks)
    at = at[np.argsort(-log.rank[at], kind="stable")]
    kept = at[np.unique(log.query[at], return_index=True)[1]]
    alone = np.zeros_like(log.clicks)
    alone[kept] = log.clicks[kept]
    return replace(log, clicks=alone)


def _measured_alone(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """log10 excess risk of clicks by w G and of whole queries, where a query has nothing to be shared."""
    train, log = world(run, seed)
    log = last_click_only(log)
    excess, _ = excess_on(train, log)
    whole = cf.query_sampler(log, gradient_bounds_of=train.features)
    ways: dict[str, Sampler] = {"length": by_length(train, log), "query": whole}
    return {
        name: at_best(run, way, excess, steps_of(run), run.rng(seed, [1410, k])).levels[-1]
        for k, (name, way) in enumerate(ways.items())
    }


def quality(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """The nDCG@10 of CounterSample and of the minimiser of the risk, where another exponent is ``believed``."""
    train, log = world(run, seed)
    log = replace(log, propensity=cf.power_examination(setting["believed"])(log.rank.astype(float)))
    sampler, test = cf.click_sampler(log, "countersample"), run.load(seed).test
    path = cf.train_sgd(train.features, sampler, learning_rates=RATES, steps=steps_of(run), rng=rng)
    mean = min(path.average[-1, 0], key=lambda w: Excess(train, log, floor=0, least=0).bound(w).value)
    found = {"countersample": mean, "minimiser": minimiser(train, log).weights}
    return {name: cf.ndcg(test.features @ w, test.offsets, relevance=test.relevance).mean for name, w in found.items()}


# The last digits decide where the solver, whose certificate is the floor, has closed its gap.
LOGS = book.Experiment(
    "logs",
    measured,
    settings=lambda run: [{"eta": 1.0}, {"eta": 0.0}],
    stream=1409,
    seeds=attrgetter("seeds"),
    rtol=5e-3,
)
ALONE = book.Experiment("alone", _measured_alone, settings=lambda run: [{}], stream=1410, rtol=5e-3)
WRONG = book.Experiment(
    "wrong",
    quality,
    settings=lambda run: [{"believed": exponent} for exponent in (0.0, 0.5, 1.0, 1.5, 2.0)],
    stream=1411,
    seeds=lambda run: run.learning_seeds[:3],
    rtol=5e-3,
)
