"""Bad input: each public function names the argument, the place, the value and what to do, before any work.

What an argument must be is said by its type and by ``checks.BOUNDS``: from there the bad values of ``GOOD`` are made.
Arrays follow in ``ARRAYS``, one bad value each, and in ``TOGETHER`` what does not fit together.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from small_logs import CUTS, LOG, POLICY, X

import cfltr_core as cf
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
    RankWeight,
    additive_metric,
    aggregate_clicks,
    average_rank,
    bound_loss,
    checks,
    click_sampler,
    clipped,
    dcg,
    draw_sessions,
    enumerate_logs,
    exact_runs,
    fit_deep,
    fit_linear_ranker,
    fit_propdcg,
    fit_proprank,
    ips,
    naive,
    ndcg,
    policy_aware,
    precision,
    query_index,
    query_sampler,
    rank_weights,
    ranks,
    rbp,
    segment_sum,
    select_C,
    self_normalised,
    simulate_clicks,
    surrogate_ranks,
    train_sgd,
    two_layer,
)
from cfltr_core.clicks.other_users import CascadeUser
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.evaluation.estimates import Estimate
from cfltr_core.evaluation.variances import ips_variance
from cfltr_core.learning.convergence import (
    click_gradients,
    convergence_bound,
    gradient_bounds,
    learning_rate_for,
    second_moment,
    steps_for_accuracy,
)
from cfltr_core.learning.lambdaloss_fit import lambda_objective
from cfltr_core.learning.proprank import LinearFit
from cfltr_core.learning.samplers import ClickSampler, QuerySampler
from cfltr_core.propensity.clicks_above import page_displays
from cfltr_core.ranking.ragged import lengths, relevant_queries, segment_max
from cfltr_core.ranking.rank_weight import RankWeights
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
LINEAR = LinearRanker([1.0, 1.0])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def simulate(**changes: Any) -> ClickLog:
    return simulate_clicks(
        POLICY, USER, **{"relevance": [1, 0, 1], "sessions": [3, 3], "rng": rng(), **changes}
    )  # fmt: skip


def aggregate(documents: Any = (0, 2), **changes: Any) -> ClickLog:
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


EMPTY = ClickLog(document=[], rank=[], impressions=[], clicks=[], propensity=[], sessions=[0, 0], offsets=CUTS)
# Document 0 shown at two ranks, as a stochastic policy would.
TWICE = ClickLog(
    document=[0, 0], rank=[1, 2], impressions=[2, 2], clicks=[1, 1], propensity=[1.0, 0.5], sessions=[4, 2],
    offsets=CUTS,
)  # fmt: skip
SILENT = dataclasses.replace(LOG, clicks=[0, 0, 0])
WIDER = LinearFit(np.zeros(3), primal=1.0, dual=1.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0)
NARROW = LinearFit(np.zeros(2), primal=1.0, dual=1.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0)
NO_SLOPE = RankWeight("log", np.log)
FALLING = RankWeight("falling", lambda r: -r, derivative=lambda r: -np.ones_like(r))
MOVED = cf.display_counts(TWICE)
SHOWN = cf.simulate_pages(GREEDY, USER, relevance=[1, 0, 1], sessions=[40, 40], rng=rng())
LAM = rank_weights(ONES, CUTS, metric=dcg())
TWO = {"factor": [1.0, 1.0], "learning_rate": 0.1, "steps": 2, "n_features": 1}
RATES = {"weight": 1.0}
GIVEN = {"relevance": [1, 0, 1], "sessions": [3, 3]}

# One call of everything that takes numbers, words or objects, which is accepted; the tests break one argument of it.
GOOD: list[partial[object]] = [
    partial(AliasTable([1.0], [0]).draw, 3, rng()),
    partial(Estimate(0.0, 1.0, 2, 1).interval, level=0.9),
    partial(Estimate(0.0, 1.0, 2, 1, dcg()).report_interval, level=0.9),
    partial(additive_metric, ONES, CUTS, relevance=[1, 0, 1], metric=dcg(), ties="random", rng=rng()),
    partial(bound_loss, ONES, CUTS, documents=[0], metric=dcg(), surrogate="hinge", sigma=1.0, smoothing=0.5),
    partial(CascadeUser, stop=0.5, give_up=0.5, epsilon_plus=0.9, epsilon_minus=0.1),
    partial(cf.RandTopPolicy, POLICY, n=2),
    partial(cf.SwapPolicy, POLICY, pairs=[(1, 2)], swap=0.5),
    partial(cf.SwapPolicy.landmark, POLICY, 1, swap=0.5),
    partial(cf.adjacent_chain, MOVED, weighting="documents"),
    partial(cf.affine, LOG, LAM, trust=cf.TrustUser([1.0, 0.5]), unit="query"),
    partial(cf.all_pairs, MOVED, weighting="documents"),
    partial(cf.certified_optimum, X, LOG, gap=0.1, max_passes=100),
    partial(cf.choose_safely, {"new": LAM}, LAM, log=LOG, shares=cf.DisplayShares.of_log(LOG), smallest=0.1, user=USER,
            level=0.9, cutoff=2, rule="exposure"),
    partial(cf.click_rates, MOVED, places=2),
    partial(cf.cross_fitted, X, LOG, user=USER, folds=2, ridge=1.0),
    partial(cf.decide, LAM, LAM, log=LOG, shares=cf.DisplayShares.of_log(LOG), smallest=0.1, user=USER, level=0.9,
            cutoff=2),
    partial(cf.doubly_robust, LOG, LAM, guess=[0.5] * 3, shares=cf.DisplayShares.of_log(LOG), user=USER, cap=2.0),
    partial(cf.evaluation_steps, 100, batch=2, epochs=1, every=10),
    partial(cf.expectation_maximisation, MOVED, iterations=1, tolerance=0.0),
    partial(cf.fit_lambdaloss, X, LOG, cutoff=1, truncation="both", form="linear", sigma=1.0, weight_decay=0.0,
            batch_documents=5, epochs=1),
    partial(cf.intervention_cost, cf.RandTopPolicy(POLICY, n=2), USER, relevance=[1, 0, 1]),
    partial(cf.lambda_loss, ONES, CUTS, gains=ONES, cutoff=1, truncation="both", form="linear", sigma=1.0),
    partial(lambda_objective, LOG, cutoff=1, truncation="both", form="linear", sigma=1.0),
    partial(page_displays, SHOWN),
    partial(cf.pair_counts, MOVED, weighting="documents"),
    partial(cf.pivot, MOVED, 1, weighting="documents"),
    partial(cf.power_examination, 1.0, shift=0.0),
    partial(cf.conditional_poisson(MOVED).interval, level=0.9),
    partial(cf.conditional_poisson(MOVED).ratio, 1, 2, level=0.9),
    partial(cf.rank_links, MOVED),
    partial(cf.regression_em, MOVED, X, iterations=1, tolerance=0.0),
    partial(cf.shrunk_power, MOVED, tau=1.0),
    partial(cf.simulate_pages, GREEDY, USER, **GIVEN, rng=rng()),
    partial(cf.two_towers, MOVED, X, combine="additive", decay=0.0, steps=1, seed=0),
    partial(click_sampler, LOG, "ips"),
    partial(clipped, LOG, LAM, cap=2.0, unit="query"),
    partial(convergence_bound, 1.0, 1.0, weight=1.0, steps=4),
    partial(dcg, 2),
    partial(DeterministicPolicy.rank_by, ONES, CUTS, rng=rng(), cutoff=1),
    partial(draw_sessions, 3, 2, rng=rng()),
    partial(exact_runs, lambda states: np.ones((len(states), 2, 1)), [0.5, 0.5], **TWO),
    partial(fit_deep, X, LOG, module=lambda: two_layer(3, 2), metric=dcg(), surrogate="hinge", sigma=1.0,
            method="direct", round_epochs=1, optimizer="adam", weight_decay=0.0, batch_documents=5, epochs=1),
    partial(fit_linear_ranker, DATA, 0.5, rng=rng(), ridge=1.0, min_queries=1),
    partial(fit_propdcg, X, LOG, C=1.0, metric=dcg(), decrease=0.1, gap=0.1, max_rounds=1),
    partial(fit_proprank, X, LOG, C=1.0, gap=0.1, max_passes=100),
    partial(ips, LOG, LAM, unit="query"),
    partial(learning_rate_for, 1.0, 1.0, weight=1.0, steps=4),
    partial(naive, LOG, LAM, unit="query"),
    partial(ndcg, ONES, CUTS, relevance=[1, 0, 1], cutoff=2, gain="linear", empty="zero"),
    partial(PAGES.estimate_exposure, USER, 2, rng=rng()),
    partial(PlackettLucePolicy, ONES, CUTS, cutoff=2, temperature=1.0),
    partial(policy_aware, LOG, ONES),
    partial(precision, 2),
    partial(query_sampler, LOG),
    partial(rank_weights, ONES, CUTS, metric=dcg(), ties="random", rng=rng()),
    partial(RankingData, X, [0, 1, 2], offsets=CUTS, threshold=1),
    partial(ranks, ONES, CUTS, ties="random", rng=rng()),
    partial(rbp, 0.5),
    partial(second_moment, [1.0], [1.0], counts=[1], sampling="uniform"),
    partial(select_C, lambda C, start: WIDER, [1.0, 2.0], features=X, log=LOG, metric=dcg(), extend=0),
    partial(self_normalised, LOG, LAM, unit="query"),
    partial(sessions_for_clicks, POLICY, USER, relevance=[1, 0, 1], n_clicks=3.0),
    partial(simulate_clicks, POLICY, USER, **GIVEN, rng=rng()),
    partial(steps_for_accuracy, 1.0, 1.0, weight=1.0, accuracy=0.5),
    partial(surrogate_ranks, ONES, CUTS, documents=[0], surrogate="hinge", sigma=1.0, smoothing=0.5),
    partial(train_sgd, X, SAMPLER, learning_rates=0.1, steps=1, rng=rng(), batch=1, runs=1, optimizer="sgd"),
    partial(two_layer, 2, 2, activation="tanh"),
]  # fmt: skip


def rules_of(call: partial[object]) -> dict[str, Any]:
    """What each argument of a call must be, where it is a number, a word, a generator or an object."""
    function: Any = call.func.__init__ if isinstance(call.func, type) else call.func
    return {name: rule for name, (rule, _) in checks.rules_of(getattr(function, "__func__", function)).items()}


def bad_values(rule: Any) -> list[Any]:
    """Values that a rule refuses, the nearest ones first."""
    if isinstance(rule, tuple):
        return [f"{rule[-1]}s", "", 7]
    if not isinstance(rule, checks.Bounds):
        return ["dcg", [1.0, 2.0], 0]
    below = rule.low - 1 if rule.whole else rule.low if rule.ends[0] == "(" else np.nextafter(rule.low, -math.inf)
    above = [] if rule.high == math.inf else [rule.high if rule.ends[1] == ")" else np.nextafter(rule.high, math.inf)]
    return [below, *above, math.nan, True, "1", [1.0], *([rule.low + 0.5] if rule.whole else [])]


@pytest.mark.parametrize("call", GOOD, ids=lambda call: getattr(call.func, "__qualname__", "metric"))
def test_a_bad_number_word_or_object_is_named(call: partial[object]) -> None:
    call()
    for name, rule in rules_of(call).items():
        for value in bad_values(rule):
            given = inspect.signature(call.func).bind(*call.args, **call.keywords)
            given.arguments[name] = value
            with pytest.raises((ValueError, TypeError), match=f"^{name} is "):
                call.func(*given.args, **given.kwargs)


def test_all_public_functions_are_called_here() -> None:
    """But for those whose arguments come from a database, or from long work; tests of their rooms break these."""
    elsewhere = {"check_log", "clicks_above_test", "dual_learning", "read_events", "regret"}
    called = {getattr(call.func, "__name__", "") for call in GOOD}
    for name in set(cf.__all__) - called - elsewhere:
        function = getattr(cf, name)
        rules = checks.rules_of(function) if inspect.isfunction(function) else {}
        assert not any(isinstance(rule, (checks.Bounds, tuple)) for rule, _ in rules.values()), name


# What the message must begin with, and calls that break just this array.
ARRAYS: dict[str, list[Callable[[], object]]] = {
    "alias": [
        partial(AliasTable, [1.0], [0, 0]), partial(AliasTable, [1.0], [0.5]), partial(AliasTable, [1.0], [1]),
    ],
    "click_probability": [
        partial(variance, rho=[1.0, 1.0]), partial(variance, rho=[math.nan]), partial(variance, rho=[2]),
    ],
    "clicks": [partial(of_log, clicks=[1]), partial(of_log, clicks=[0, 0, -1]), partial(of_log, clicks=[9, 0, 0])],
    "counts": [partial(moment, counts=[1]), partial(moment, counts=[1, -1]), partial(moment, counts=[1, 0.5])],
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
    "learning_rates": [partial(train, learning_rates=0), partial(train, learning_rates=[1.0, math.inf])],
    "log.offsets": [partial(query_sampler, LOG, gradient_bounds_of=X[:2])],
    "mass": [partial(of_queries, mass=[1.0]), partial(of_queries, mass=[1.0, -1.0, 0.0])],
    "n_features": [partial(read_svmlight, "no such file", 0)],
    "offsets": [
        partial(lengths, BACKWARDS), partial(query_index, BACKWARDS), partial(segment_sum, ONES, BACKWARDS),
        partial(segment_max, ONES, BACKWARDS), partial(ranks, ONES, BACKWARDS), partial(pages, ONES, BACKWARDS),
        partial(RankingData, X, [0, 1, 2], offsets=BACKWARDS), partial(DeterministicPolicy, [1, 2, 1], BACKWARDS),
        partial(EpsilonGreedyPolicy, [1, 2, 1], BACKWARDS, epsilon=[1.0]), partial(of_log, offsets=BACKWARDS),
        partial(variance, offsets=BACKWARDS), partial(gradients, X, BACKWARDS), partial(surrogate, ONES, BACKWARDS),
        partial(of_sampler, offsets=BACKWARDS), partial(of_queries, ONES, BACKWARDS),
        partial(gradients, X, [0, 2]), partial(segment_sum, ONES, [0, 2]), partial(ranks, ONES, [0, 2]),
    ],
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
    "sampler.offsets": [partial(train, X[:2])],
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
    "stream": [partial(RUN.rng, 1, -1), partial(RUN.rng, 1, [0, -1])],
    "the sum of counts": [partial(moment, counts=[0, 0])],
    "the sum of sessions": [partial(variance, sessions=[0])],
    "threshold": [partial(ReaderOptions, threshold=0)],
    "value of the ranks": [
        partial(POLICY.display_mean, lambda rank: rank * math.nan), partial(GREEDY.display_mean, lambda rank: rank[:0]),
    ],
    "w": [partial(gradients, w=[1.0])],
    "weights": [
        partial(AliasTable.build, [1.0, -1.0]), partial(LinearRanker, [math.nan]), partial(LinearRanker, [[1.0]]),
        partial(variance, weights=[1.0, 1.0]), partial(moment, weights=[1.0, 0.0]), partial(loss, weights=[1.0, 1.0]),
        partial(loss, weights=[-1.0]),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "number"), [(name, number) for name, calls in ARRAYS.items() for number in range(len(calls))]
)
def test_a_message_begins_with_the_name_of_the_array(name: str, number: int) -> None:
    """A place in it, or a query, may follow; then what is wrong with it."""
    with pytest.raises((ValueError, TypeError), match=rf"^{re.escape(name)}(\[| is |: | of query | sums to |, )"):
        ARRAYS[name][number]()


# What the message matches, and a call whose arguments do not fit together, or are no array of that kind.
TOGETHER: list[tuple[str, Callable[[], object]]] = [
    (r"offsets: expected a 1-d integer array.*\(1, 2\)", partial(lengths, [[0, 1]])),
    ("offsets: expected a 1-d integer array.*float64", partial(lengths, [0.0, 1.0])),
    ("offsets: expected a 1-d integer array of n_queries", partial(query_index, [0])),
    (r"offsets\[0\] is 1: the first list must start at", partial(query_index, [1, 2])),
    (r"offsets\[2\] is 2, not larger.*drop empty queries first", partial(lengths, [0, 2, 2])),
    (r"offsets\[-1\] is 2", partial(relevant_queries, [1], [0, 2])),
    (r"features\[1, 1\] is nan: replace", partial(RankingData, [[0, 0], [0, math.nan]], [0, 1], offsets=[0, 2])),
    (r"features\[1, 0\] is inf: replace", partial(RankingData, [[0], [1e300]], [0, 1], offsets=[0, 2])),
    (r"features\[9000, 0\] is inf", partial(fit_proprank, np.append(np.zeros((9000, 1)), [[math.inf]], axis=0),
     ClickLog(document=[0], rank=[1], impressions=[1], clicks=[1], propensity=[1.0], sessions=[1], offsets=[0, 9001]))),
    (r"features\[0, 1\] is 'a', which is no number", partial(LINEAR.decision_function, [["1", "a"]])),
    (r"features is a csr_matrix: .*toarray\(\)", partial(LINEAR.decision_function, sparse.csr_matrix(np.eye(2)))),
    ("queries: no query was chosen", partial(DATA.subset, [])),
    ("queries: .*dtype bool.*np.flatnonzero", partial(DATA.subset, [True, False])),
    ("rng is NoneType: pass a numpy", partial(ranks, ONES, CUTS, ties="random")),
    (r"rank weight 'mine' returned shape \(\) for ranks of shape \(2,\).*must map",
     partial(RankWeight("mine", lambda r: r.sum()), [1, 2])),
    (r"rank weight 'mine' returned shape \(\)", partial(RankWeight("mine", np.log, derivative=np.sum).slope, [1, 2])),
    ("rank weight 'mine' is not finite at rank 2: it must",
     partial(RankWeight("mine", lambda r: np.where(r == 2, np.inf, r)), [1, 2])),
    ("rank weight 'log' has no derivative: give", partial(bound_loss, ONES, CUTS, documents=[0], metric=NO_SLOPE)),
    ("rank weight 'log' has no derivative: give", partial(fit_propdcg, X, LOG, metric=NO_SLOPE)),
    (r"rank weight 'falling' decreases between ranks 1 and 1\.5", partial(fit_propdcg, X, LOG, metric=FALLING)),
    (r"rank weight 'Prec@3' is neither .* ranks 3 and 4, and below it between 2\.5 and 3\.5\. Use a weight of",
     partial(fit_propdcg, X, LOG, metric=precision(3))),
    (r"epsilon_plus=0\.1, epsilon_minus=0\.5: expected 0 <= epsilon_minus <= epsilon_plus",
     partial(PositionBasedUser, [1.0], epsilon_plus=0.1, epsilon_minus=0.5)),
    ("epsilon_plus=.*epsilon_plus > 0", partial(PositionBasedUser, [1.0], epsilon_plus=0.0)),
    (r"epsilon_plus=1\.5", partial(PositionBasedUser, [1.0], epsilon_plus=1.5)),
    ("examination: expected one probability per rank, e.g.", partial(PositionBasedUser, [])),
    (r"displayed_rank is 1\.5: .* whole ranks only", partial(PositionBasedUser([1.0, 0.5]).propensity, [1, 1.5])),
    (r"displayed_rank of query 0 is \[1, 1\]: the shown documents must", partial(DeterministicPolicy, [1, 1, 1], CUTS)),
    (r"displayed_rank of query 1 is \[2\]: the shown", partial(DeterministicPolicy, [1, 2, 2], CUTS)),
    (r"greedy_rank\[2\] is 0: rank every document", partial(EpsilonGreedyPolicy, [1, 2, 0], CUTS, epsilon=[1.0])),
    ("epsilon: expected one", partial(EpsilonGreedyPolicy, [1, 2, 1], CUTS, epsilon=[])),
    (r"temperature is 0\.001: document 0 .*EpsilonGreedyPolicy", partial(pages, [1.0, 2.0, 3.0], temperature=1e-3)),
    ("shares: expected one number for each of 0", partial(MixturePolicy, [], [])),
    (r"shares add up to 0\.9: divide them", partial(MixturePolicy, [POLICY, GREEDY], [0.5, 0.4])),
    (r"policies\[1\] has other offsets than policies\[0\]",
     partial(MixturePolicy, [POLICY, DeterministicPolicy([1, 2, 3], [0, 3])], [0.5, 0.5])),
    (r"rank\[2\] is 1, but term 0 is of the same document and rank: add up",
     partial(of_log, document=[1, 0, 1], rank=[1, 1, 1])),
    (r"clicks\[1\] is 5: more clicks than impr", partial(of_log, clicks=[3, 5, 2])),
    (r"impressions\[2\] is 3: more impressions than sessions", partial(of_log, impressions=[4, 4, 3])),
    (r"propensity\[1\] is 0\.0: the document was clicked", partial(of_log, propensity=[1.0, 0.0, 1.0])),
    ("relevance: no document can be", partial(sessions_for_clicks, POLICY, USER, n_clicks=9, relevance=[0] * 3)),
    ("documents: document 1 was clicked but not shown by the policy: .* so add 1 to ranks that start at 0",
     partial(aggregate_clicks, [1], DeterministicPolicy([1, 0, 1], CUTS), user=USER, sessions=[4, 2])),
    ("documents: document 2 has 3 clicks in 2 sessions of its query; count at most one", partial(aggregate, [2, 2, 2])),
    ("log: document 0 was shown at more than one rank; this is exact only",
     partial(ips, TWICE, lam=ONES, unit="session")),
    (r'log: impressions\[1\] is 3, but its query had 4 sessions; .*same ranking.*use unit="query"',
     partial(ips, of_log(impressions=[4, 3, 2]), lam=ONES, unit="session")),
    ("log: there is no session in the log", partial(ips, EMPTY, lam=ONES)),
    ("log: there is no click in the log, so nothing can be learnt", partial(fit_proprank, X, SILENT)),
    ("log: there is no click in the log", partial(fit_propdcg, X, SILENT)),
    ("log: there is no click in the log", partial(select_C, lambda C, start: WIDER, [1, 2], features=X, log=SILENT)),
    ("rank_weights, lam: give one of the two", partial(naive, LOG)),
    ("rank_weights, lam: give one of the two", partial(clipped, LOG, LAM, lam=ONES, cap=2.0)),
    ("other: average rank is subtracted from DCG: compare",
     lambda: LAM - rank_weights(ONES, CUTS, metric=average_rank())),
    ("other: it has 1 documents, not 3: rank the same documents", lambda: LAM - SHORT),
    ("metric: the estimate was made from bare numbers", ips(LOG, lam=ONES).report),
    ("metric: the estimate was made from bare numbers", ips(LOG, lam=ONES).report_interval),
    (r"exposure\[1\] is 0, but the document was clicked: .*the policy", partial(policy_aware, LOG, [1.0, 0.0, 1.0])),
    ("start has 2 weights, but there are 3 features", partial(fit_proprank, X, LOG, start=NARROW)),
    ("start has 2 weights, but there are 3 features", partial(fit_propdcg, X, LOG, start=NARROW)),
    *((r"grid is \[.*: expected at least 2 numbers, positive and increasing",
       partial(select_C, lambda C, start: WIDER, grid, features=X, log=LOG))
      for grid in ([1.0], [1.0, 0.1], [1, 1], [0, 1], [1, math.nan])),
    ("sessions, relevance: 8012006001 outcomes are too many .*use fewer", partial(outcomes, sessions=[2000, 2000])),
    # 9 · 8 · 7 · 6 pages, and two sessions that may show the same.
    (f"sessions, relevance: {3024 * 3025 // 2} outcomes are too many", lambda: next(enumerate_logs(
        EpsilonGreedyPolicy(range(1, 10), [0, 9], epsilon=[1.0] * 4), USER, relevance=[1] * 9, sessions=[2]))),
]  # fmt: skip


@pytest.mark.parametrize(("message", "call"), TOGETHER)
def test_what_does_not_fit_together_is_said_with_its_remedy(message: str, call: Callable[[], object]) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        call()


def test_the_unbroken_arguments_are_accepted() -> None:
    """Each case breaks one thing: without it there is nothing to complain about."""
    assert DATA.subset([1, 0]).n_docs == of_log().n_clicks // 2 == 3
    assert simulate().n_sessions == aggregate().n_clicks + 4 == 6
    assert math.isfinite(ips(TWICE, lam=ONES, unit="query").value)
    assert math.isfinite(ips(of_log(impressions=[4, 3, 2]), lam=ONES, unit="query").standard_error)
    assert variance(sessions=np.int64(2)) == 0.125
    assert surrogate(surrogate="logistic", sigma=0.5).tolist() == surrogate(smoothing=2.0).tolist() == [2.0]
    assert max(fit_proprank(X, LOG).gap, fit_propdcg(X, LOG).gap) <= 1e-3
    fitted = select_C(lambda C, start: WIDER, [1, 2], features=X, log=LOG)
    assert len(fitted.estimates) == 2
    assert sum(p for p, _ in outcomes()) == 1.0
