"""A message about a bad argument begins with the name of that argument, as the caller wrote it.

``test_errors.py`` reads whole messages; this table has every argument that is checked, one bad value each.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from small_logs import CUTS, LOG, POLICY, X

from cfltr_book import Run, load_corpus
from cfltr_book.data.corpora import units_of
from cfltr_book.data.letor import ReaderOptions, read_collection, read_svmlight
from cfltr_book.data.letor.folders import fold_of
from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    EpsilonGreedyPolicy,
    LinearRanker,
    MixturePolicy,
    PlackettLucePolicy,
    PositionBasedUser,
    RankingData,
    RankWeights,
    additive_metric,
    aggregate_clicks,
    average_rank,
    bound_loss,
    click_sampler,
    clipped,
    dcg,
    draw_sessions,
    enumerate_logs,
    exact_runs,
    expand_clicks,
    fit_linear_ranker,
    fit_propdcg,
    fit_proprank,
    ips,
    ips_variance,
    naive,
    ndcg,
    policy_aware,
    precision,
    proof_steps,
    query_index,
    query_sampler,
    rank_weights,
    ranks,
    segment_sum,
    self_normalised,
    sessions_for_clicks,
    simulate_clicks,
    surrogate_ranks,
    train_sgd,
)
from cfltr_core.learning.convergence import (
    click_gradients,
    convergence_bound,
    gradient_bounds,
    learning_rate_for,
    second_moment,
    steps_for_accuracy,
)
from cfltr_core.learning.samplers import ClickSampler, QuerySampler
from cfltr_core.ranking.ragged import lengths, segment_max
from cfltr_core.sampling import AliasTable

ONES = [1.0, 1.0, 1.0]
DATA = RankingData(X, [0, 1, 2], offsets=CUTS)
USER = PositionBasedUser([1.0, 0.5, 0.25])
GREEDY = EpsilonGreedyPolicy([1, 2, 1], CUTS, epsilon=[1.0, 0.0])
PAGES = PlackettLucePolicy(ONES, CUTS, cutoff=2)
MIXED = MixturePolicy([POLICY, GREEDY], [0.5, 0.5])
SHORT = rank_weights([1.0], [0, 1], metric=dcg())
SAMPLER = click_sampler(LOG, "ips")
RUN = Run("smoke", "digits", 3)
BACKWARDS = [0, 3, 2]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def simulate(**changes: Any) -> object:
    return simulate_clicks(
        POLICY, USER, **{"relevance": [1, 0, 1], "sessions": [3, 3], "rng": rng(), **changes}
    )  # fmt: skip


def aggregate(documents: Any = (0, 2), **changes: Any) -> object:
    return aggregate_clicks(documents, POLICY, **{"user": USER, "sessions": [4, 2], **changes})


def outcomes(**changes: Any) -> object:
    return list(enumerate_logs(POLICY, USER, **{"relevance": [1, 1, 1], "sessions": [1, 1], **changes}))


def variance(lam: Any = (1.0,), rho: Any = (0.5,), **changes: Any) -> float:
    return ips_variance(lam, rho, **{"weights": [1.0], "offsets": [0, 1], "sessions": 2, **changes})


def rate(**changes: Any) -> object:
    given = {"radius": 1.0, "gradient_bound": 1.0, "weight": 1.0, "steps": 4} | changes
    return learning_rate_for(given.pop("radius"), given.pop("gradient_bound"), **given)


def bound(**changes: Any) -> object:
    given = {"radius": 1.0, "gradient_bound": 1.0, "weight": 1.0, "steps": 4} | changes
    return convergence_bound(given.pop("radius"), given.pop("gradient_bound"), **given)


def enough(**changes: Any) -> object:
    given = {"radius": 1.0, "gradient_bound": 1.0, "weight": 1.0, "accuracy": 0.5} | changes
    return steps_for_accuracy(given.pop("radius"), given.pop("gradient_bound"), **given)


def moment(**changes: Any) -> float:
    given = {"weights": [1.0, 2.0], "gradient_norms": [1.0, 1.0], "counts": [1, 1], "sampling": "uniform"} | changes
    return second_moment(given.pop("weights"), given.pop("gradient_norms"), **given)


def gradients(features: Any = X, offsets: Any = CUTS, **changes: Any) -> object:
    return click_gradients(features, offsets, **{"documents": [0], "w": ONES, **changes})


def runs(probability: Any = (0.5, 0.5), **changes: Any) -> Any:
    given = {"factor": [1.0, 1.0], "learning_rate": 0.1, "steps": 2, "n_features": 1} | changes
    return exact_runs(lambda states: np.ones((len(states), 2, 1)), probability, **given)


def proof(**changes: Any) -> object:
    given = {"optimum": [1.0], "radius": 1.0, "gradient_bound": 1.0, "moment_bound": 1.0} | changes
    return proof_steps(runs(), lambda w: w[:, 0], risk_gradient=lambda w: np.ones((len(w), 1)), **given)


def train(features: Any = X, sampler: Any = SAMPLER, **changes: Any) -> object:
    return train_sgd(features, sampler, **{"learning_rates": 0.1, "steps": 3, "rng": rng(), **changes})


def ranker(data: Any = DATA, fraction: Any = 0.5, **changes: Any) -> object:
    return fit_linear_ranker(data, fraction, **{"rng": rng(), "min_queries": 1, **changes})


def surrogate(scores: Any = ONES, offsets: Any = CUTS, **changes: Any) -> object:
    return surrogate_ranks(scores, offsets, **{"documents": [0], **changes})


def loss(scores: Any = ONES, offsets: Any = CUTS, **changes: Any) -> object:
    return bound_loss(scores, offsets, **{"documents": [0], **changes})


def of_log(**changes: Any) -> ClickLog:
    return dataclasses.replace(LOG, **changes)


def pages(scores: Any = ONES, offsets: Any = CUTS, **changes: Any) -> object:
    return PlackettLucePolicy(scores, offsets, **{"cutoff": 2, **changes})


def of_sampler(**changes: Any) -> object:
    given = {"document": [0], "table": AliasTable([1.0], [0]), "factor": [1.0], "offsets": CUTS} | changes
    return ClickSampler(given.pop("document"), given.pop("table"), **given)


def of_queries(mass: Any = ONES, offsets: Any = CUTS, law: Any = (1.0, 1.0)) -> object:
    return QuerySampler(mass, offsets, law=law)


# What the message must begin with, and calls that break just this argument.
CASES: dict[str, list[Callable[[], object]]] = {
    "accuracy": [partial(enough, accuracy=0)],
    "alias": [
        partial(AliasTable, [1.0], [0, 0]), partial(AliasTable, [1.0], [0.5]), partial(AliasTable, [1.0], [1]),
    ],
    "batch": [partial(train, batch=0)],
    "C": [partial(fit_proprank, X, LOG, C=0), partial(fit_propdcg, X, LOG, C=0)],
    "cap": [partial(clipped, LOG, lam=ONES, cap=0.5), partial(ReaderOptions, cap=0)],
    "click_probability": [
        partial(variance, rho=[1.0, 1.0]), partial(variance, rho=[math.nan]), partial(variance, rho=[2]),
    ],
    "clicks": [partial(of_log, clicks=[1]), partial(of_log, clicks=[0, 0, -1]), partial(of_log, clicks=[9, 0, 0])],
    "counts": [partial(moment, counts=[1]), partial(moment, counts=[1, -1]), partial(moment, counts=[1, 0.5])],
    "cutoff": [
        partial(dcg, 0), partial(precision, 0), partial(ndcg, ONES, CUTS, relevance=[1, 0, 0], cutoff=0),
        partial(DeterministicPolicy.rank_by, ONES, CUTS, rng=rng(), cutoff=0), partial(pages, cutoff=0),
    ],
    "decrease": [partial(fit_propdcg, X, LOG, decrease=0)],
    "displayed_rank": [
        partial(DeterministicPolicy, [1, 2], CUTS), partial(DeterministicPolicy, [1, -2, 1], CUTS),
        partial(DeterministicPolicy, [1, 3, 1], CUTS), partial(USER.propensity, [1, -1]),
        partial(USER.click_probability, [1, -1], [1, 1]),
    ],
    "document": [
        partial(of_log, document=[0, 1, 3]), partial(of_log, document=[0, 1, -1]),
        partial(of_log, document=[0, 1, 0.5]),
        partial(of_log, document=["a", "b", "c"]), partial(of_sampler, document=[[0]]),
        partial(of_sampler, document=[3]),
        partial(of_sampler, document=[-1]),
    ],
    "documents": [
        partial(aggregate, ["a"]), partial(aggregate, [[0]]), partial(aggregate, [3]), partial(aggregate, [-1]),
        partial(aggregate, [0.5]), partial(gradients, documents=[3]), partial(gradients, documents=[[0]]),
        partial(gradient_bounds, X, CUTS, documents=[-1]), partial(surrogate, documents=[3]),
        partial(surrogate, documents=[[0]]), partial(loss, documents=[-1]),
    ],
    "drop": [partial(ReaderOptions, drop=(0,))],
    "empty": [partial(ndcg, ONES, CUTS, relevance=[1, 0, 0], empty="skip")],
    "epsilon": [partial(EpsilonGreedyPolicy, [1, 2, 1], CUTS, epsilon=[2.0])],
    "examination": [
        partial(PositionBasedUser, [1.0, 2.0]), partial(PositionBasedUser(lambda r: 2 * r).propensity, [1]),
    ],
    "exposure": [partial(policy_aware, LOG, [1.0]), partial(policy_aware, LOG, [1.0, 2.0, 1.0])],
    "factor": [
        partial(runs, factor=[1.0]), partial(runs, factor=[1.0, math.inf]), partial(of_sampler, factor=[1.0, 1.0]),
    ],
    "features": [
        partial(fit_proprank, X[0], LOG), partial(fit_proprank, X * math.nan, LOG), partial(fit_proprank, X[:2], LOG),
        partial(gradients, X[0]), partial(train, X[0]),
        partial(RankingData, X[0], [0, 1, 2], offsets=CUTS), partial(LinearRanker([1.0]).decision_function, X),
    ],
    "fraction": [partial(ranker, fraction=2.0)],
    "gain": [partial(ndcg, ONES, CUTS, relevance=[1, 0, 0], gain="log")],
    "gap": [partial(fit_proprank, X, LOG, gap=1), partial(fit_propdcg, X, LOG, gap=1)],
    "gradient_bound": [
        partial(rate, gradient_bound=0), partial(bound, gradient_bound=0), partial(enough, gradient_bound=0),
        partial(proof, gradient_bound=0),
    ],
    "gradient_bounds_of": [partial(query_sampler, LOG, gradient_bounds_of=X[0])],
    "gradient_norms": [partial(moment, gradient_norms=[1.0]), partial(moment, gradient_norms=[1.0, -1.0])],
    "impressions": [partial(of_log, impressions=[4]), partial(of_log, impressions=[9, 4, 2])],
    "keep": [partial(AliasTable, [2.0], [0]), partial(AliasTable, [[1.0]], [0])],
    "lam": [
        partial(ips, LOG, lam=[1.0]), partial(naive, LOG, lam=[math.nan] * 3), partial(self_normalised, LOG, lam=[1.0]),
        partial(variance, lam=[1.0, 1.0]), partial(RankWeights, [[1.0]], dcg()),
        partial(RankWeights, [math.nan], dcg()),
    ],
    "law": [
        partial(of_queries, law=[1.0]), partial(of_queries, law=[1.0, -1.0]), partial(of_queries, law=[0.0, 0.0]),
    ],
    "learning_rate": [partial(runs, learning_rate=0)],
    "learning_rates": [partial(train, learning_rates=0), partial(train, learning_rates=[1.0, math.inf])],
    "log.offsets": [partial(query_sampler, LOG, gradient_bounds_of=X[:2])],
    "mass": [partial(of_queries, mass=[1.0]), partial(of_queries, mass=[1.0, -1.0, 0.0])],
    "max_rounds": [partial(fit_propdcg, X, LOG, max_rounds=0)],
    "method": [partial(click_sampler, LOG, "naive")],
    "min_queries": [partial(ranker, min_queries=0)],
    "moment_bound": [partial(proof, moment_bound=0)],
    "n_clicks": [partial(sessions_for_clicks, POLICY, USER, n_clicks=0, relevance=ONES)],
    "n_displays": [partial(PAGES.estimate_exposure, USER, 1, rng=rng())],
    "n_features": [partial(runs, n_features=0), partial(read_svmlight, "no such file", 0)],
    "n_queries": [partial(draw_sessions, 3, 0, rng=rng())],
    "n_sessions": [partial(draw_sessions, 0, 3, rng=rng())],
    "offsets": [
        partial(lengths, BACKWARDS), partial(query_index, BACKWARDS), partial(segment_sum, ONES, BACKWARDS),
        partial(segment_max, ONES, BACKWARDS), partial(ranks, ONES, BACKWARDS), partial(pages, ONES, BACKWARDS),
        partial(RankingData, X, [0, 1, 2], offsets=BACKWARDS), partial(DeterministicPolicy, [1, 2, 1], BACKWARDS),
        partial(EpsilonGreedyPolicy, [1, 2, 1], BACKWARDS, epsilon=[1.0]), partial(of_log, offsets=BACKWARDS),
        partial(variance, offsets=BACKWARDS), partial(gradients, X, BACKWARDS), partial(surrogate, ONES, BACKWARDS),
        partial(of_sampler, offsets=BACKWARDS), partial(of_queries, ONES, BACKWARDS),
        partial(gradients, X, [0, 2]), partial(segment_sum, ONES, [0, 2]), partial(ranks, ONES, [0, 2]),
    ],
    "optimizer": [partial(train, optimizer="momentum")],
    "optimum": [partial(proof, optimum=[1.0, 1.0])],
    "probability": [partial(runs, [2.0, -1.0]), partial(runs, [0.5, 0.4]), partial(runs, 1.0)],
    "propensity": [partial(of_log, propensity=[1.0]), partial(of_log, propensity=[1.0, 0.5, 2.0])],
    "queries": [
        partial(DATA.subset, [2]), partial(DATA.subset, [[0]]), partial(PAGES.sample, [2], rng()),
        partial(GREEDY.sample, [True, False], rng()), partial(MIXED.sample, [-1], rng()),
        partial(POLICY.sample, [9], rng()),
    ],
    "query": [
        lambda: list(PAGES.displays(2)), lambda: list(GREEDY.displays(-1)), lambda: list(MIXED.displays(2)),
        lambda: list(POLICY.displays(0.5)),
    ],
    "radius": [partial(rate, radius=0), partial(bound, radius=0), partial(enough, radius=0), partial(proof, radius=0)],
    "rank": [
        partial(of_log, rank=[1]), partial(of_log, rank=[1, 2, 0]), partial(average_rank(), [0]),
        partial(average_rank().slope, [0]),
    ],
    "rank_weights": [partial(ips, LOG, SHORT), partial(naive, LOG, SHORT), partial(clipped, LOG, SHORT, cap=2.0)],
    "record": [
        partial(train, record=[4]), partial(train, record=[-1]), partial(train, record=[[1]]),
        partial(train, record=[]),
    ],
    "relevance": [
        partial(RankingData, X, [0], offsets=CUTS), partial(RankingData, X, [0, 0, 31], offsets=CUTS),
        partial(additive_metric, ONES, CUTS, relevance=[1], metric=dcg()), partial(ndcg, ONES, CUTS, relevance=[1]),
        partial(ndcg, ONES, CUTS, relevance=[31, 0, 0]), partial(USER.attraction, [2]),
        partial(simulate, relevance=[1]),
        partial(simulate, relevance=[1, 0, 2]), partial(outcomes, relevance=[1]),
        partial(outcomes, relevance=[1, 0, 2]),
        partial(sessions_for_clicks, POLICY, USER, n_clicks=5, relevance=[1]),
    ],
    "replacement": [partial(click_sampler, LOG, "countersample", replacement=False)],
    "ridge": [partial(ranker, ridge=0)],
    "rng": [
        partial(ranks, ONES, CUTS, ties="random"), partial(AliasTable([1.0], [0]).draw, 3, 0), partial(train, rng=0),
        partial(simulate, rng=0), partial(expand_clicks, LOG, 0), partial(draw_sessions, 3, 3, rng=0),
        partial(ranker, rng=0), partial(PAGES.sample, [0], 0), partial(GREEDY.impressions, [1, 1], 0),
        partial(PAGES.estimate_exposure, USER, 2, rng=0), partial(MIXED.sample, [0], 0),
    ],
    "runs": [partial(train, runs=0)],
    "sampler.offsets": [partial(train, X[:2])],
    "sampling": [partial(moment, sampling="ips")],
    "scores": [
        partial(ranks, [math.nan, 0.0, 0.0], CUTS), partial(pages, [1.0]), partial(surrogate, [1.0]),
        partial(loss, [math.inf, 0.0, 0.0]), partial(ndcg, [[1.0]], [0, 1], relevance=[1]),
    ],
    "seed": [
        partial(Run, "smoke", "digits", -1), partial(RUN.load, -1), partial(RUN.rng, -1, 0),
        partial(load_corpus, "digits", "smoke", seed=-1), partial(read_collection, ".", -1), partial(fold_of, ".", -1),
    ],
    "seeds": [partial(RUN.setting_of, [1, -1]), partial(units_of, "digits", [1, -1])],
    "sessions": [
        partial(of_log, sessions=[4]), partial(simulate, sessions=[3]), partial(aggregate, sessions=[4]),
        partial(outcomes, sessions=[1]), partial(variance, sessions=0), partial(variance, sessions=[1, 1]),
        partial(GREEDY.impressions, [1], rng()), partial(MIXED.impressions, [1], rng()),
    ],
    "shares": [partial(MixturePolicy, [POLICY, GREEDY], [2.0, -1.0])],
    "sigma": [partial(surrogate, sigma=0)],
    "smoothing": [partial(surrogate, smoothing=3)],
    "steps": [partial(rate, steps=0), partial(bound, steps=0), partial(runs, steps=0), partial(train, steps=0)],
    "stream": [partial(RUN.rng, 1, -1), partial(RUN.rng, 1, [0, -1])],
    "surrogate": [partial(surrogate, surrogate="exponential")],
    "temperature": [partial(pages, temperature=0)],
    "the sum of counts": [partial(moment, counts=[0, 0])],
    "the sum of sessions": [partial(variance, sessions=[0])],
    "threshold": [partial(RankingData, X, [0, 1, 2], offsets=CUTS, threshold=0), partial(ReaderOptions, threshold=0)],
    "ties": [partial(ranks, ONES, CUTS, ties="last")],
    "unit": [partial(ips, LOG, lam=ONES, unit="click"), partial(self_normalised, LOG, lam=ONES, unit="click")],
    "value of the ranks": [
        partial(POLICY.display_mean, lambda rank: rank * math.nan), partial(GREEDY.display_mean, lambda rank: rank[:0]),
    ],
    "w": [partial(gradients, w=[1.0])],
    "weight": [partial(rate, weight=0), partial(bound, weight=0), partial(enough, weight=0)],
    "weights": [
        partial(AliasTable.build, [1.0, -1.0]), partial(LinearRanker, [math.nan]), partial(LinearRanker, [[1.0]]),
        partial(variance, weights=[1.0, 1.0]), partial(moment, weights=[1.0, 0.0]), partial(loss, weights=[1.0, 1.0]),
        partial(loss, weights=[-1.0]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, calls in CASES.items() for number in range(len(calls))]
)
def test_a_message_begins_with_the_name_of_the_argument(name: str, number: int) -> None:
    with pytest.raises((ValueError, TypeError)) as found:
        CASES[name][number]()
    message = str(found.value)
    assert message.startswith(name)
    rest = message.removeprefix(name)
    # A place in it, or a query, may follow; then what is wrong with it.
    assert rest.startswith(("[", ": ", " is ", " of query ", " sums to ", ", ")), message
