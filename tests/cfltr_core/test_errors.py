"""Bad input: each public function names the argument, the place, the value and what to do, before any work.

What an argument must be is said by its type and by ``checks.BOUNDS``: from there the bad values of ``GOOD`` are made.
Arrays follow in ``ARRAYS``, one bad value each, and in ``TOGETHER`` what does not fit together.
"""

import dataclasses
import inspect
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_text import same_as_kept
from refusals import refused
from scipy import sparse
from small_logs import CUTS, LOG, POLICY, X

import cfltr_core as cf
from cfltr_book import Run, load_corpus
from cfltr_book.data.corpora import units_of
from cfltr_book.data.letor import read_collection, read_svmlight
from cfltr_book.data.letor.folders import fold_of
from cfltr_book.theory.convergence import convergence_bound, learning_rate_for, second_moment, steps_for_accuracy
from cfltr_book.theory.exact import enumerate_logs
from cfltr_book.theory.proofs import exact_runs, proof_steps
from cfltr_book.theory.regret import evaluation_steps, regret
from cfltr_book.theory.variances import ips_variance
from cfltr_core import checks
from cfltr_core.clicks.other_users import CascadeUser
from cfltr_core.clicks.simulation import sessions_for_clicks
from cfltr_core.evaluation.estimates import Estimate
from cfltr_core.learning.lambdaloss_fit import lambda_objective
from cfltr_core.learning.proprank import LinearFit
from cfltr_core.learning.samplers import ClickSampler, QuerySampler
from cfltr_core.learning.single_clicks import click_gradients, gradient_bounds
from cfltr_core.learning.torch_sampler import ClickLists, torch_sampler
from cfltr_core.propensity.all_pairs import all_pairs_likelihood
from cfltr_core.propensity.clicks_above import page_displays
from cfltr_core.ranking.ragged import lengths
from cfltr_core.ranking.rank_weight import RankWeights
from cfltr_core.sampling import AliasTable, Deck

ONES = [1.0, 1.0, 1.0]
DATA = cf.RankingData(X, [0, 1, 2], offsets=CUTS)
USER = cf.PositionBasedUser([1.0, 0.5, 0.25])
GREEDY = cf.EpsilonGreedyPolicy([1, 2, 1], CUTS, epsilon=[1.0, 0.0])
PLACKETT_LUCE = partial(cf.PlackettLucePolicy, offsets=CUTS, cutoff=2)
PAGES = PLACKETT_LUCE(ONES)
MIXED = cf.MixturePolicy([POLICY, GREEDY], [0.5, 0.5])
SHORT = cf.rank_weights([1.0], [0, 1], metric=cf.dcg())
SAMPLER = cf.click_sampler(LOG, "ips")
RUN = Run("smoke", "digits", 3)
LINEAR = cf.LinearRanker([1.0, 1.0])


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# Calls whose arguments a test changes by giving them again.
simulate = partial(cf.simulate_clicks, POLICY, USER, relevance=[1, 0, 1], sessions=[3, 3], rng=rng())
aggregate = partial(cf.aggregate_clicks, policy=POLICY, user=USER, sessions=[4, 2])
outcomes = partial(enumerate_logs, POLICY, USER, relevance=[1, 1, 1], sessions=[1, 1])
variance = partial(ips_variance, [1.0], [0.5], weights=[1.0], offsets=[0, 1], sessions=2)
moment = partial(second_moment, weights=[1.0, 2.0], gradient_norms=[1.0, 1.0], counts=[1, 1], sampling="uniform")
TWO = {"probability": [0.5, 0.5], "factor": [1.0, 1.0], "learning_rate": 0.1, "steps": 2, "n_features": 1}
runs = partial(exact_runs, lambda states: np.ones((len(states), 2, 1)), **TWO)
train = partial(cf.train_sgd, X, SAMPLER, learning_rates=0.1, steps=3, rng=rng())
of_log = partial(dataclasses.replace, LOG)

EMPTY = cf.ClickLog(document=[], rank=[], impressions=[], clicks=[], propensity=[], sessions=[0, 0], offsets=CUTS)
# Document 0 shown at two ranks, as a stochastic policy would.
TWICE = cf.ClickLog(
    document=[0, 0], rank=[1, 2], impressions=[2, 2], clicks=[1, 1], propensity=[1.0, 0.5], sessions=[4, 2],
    offsets=CUTS,
)  # fmt: skip
SILENT = dataclasses.replace(LOG, clicks=[0, 0, 0])
WIDER = LinearFit(np.zeros(3), primal=1.0, dual=1.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0)
NARROW = LinearFit(np.zeros(2), primal=1.0, dual=1.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0)
NO_SLOPE = cf.RankWeight("log", np.log)
FALLING = cf.RankWeight("falling", lambda r: -r, derivative=lambda r: -np.ones_like(r))
MOVED = cf.display_counts(TWICE)
SHOWN = cf.simulate_pages(GREEDY, USER, relevance=[1, 0, 1], sessions=[40, 40], rng=rng())
SEEN = page_displays(SHOWN)
TRUSTED = cf.DisplayCounts(query=[0] * 6, document=[0, 0, 1, 1, 2, 2], rank=[1, 2] * 3, impressions=[900] * 6,
                           clicks=[810, 500, 450, 300, 90, 80])  # fmt: skip
LAM = cf.rank_weights(ONES, CUTS, metric=cf.dcg())
PATH, BEST = train(record=[0, 3]), cf.certified_optimum(X, LOG)
NARROWEST = cf.certified_optimum(X[:, :1], LOG)
OPTIMA = {"label_optimum": BEST, "log_optimum": BEST}
GIVEN = {"relevance": [1, 0, 1], "sessions": [3, 3]}

# One call of everything that takes numbers, words or objects, which is accepted; the tests break one argument of it.
GOOD: list[partial[object]] = [
    partial(AliasTable([1.0], [0]).draw, 3, rng()),
    partial(Estimate(0.0, 1.0, 2, 1).interval, level=0.9),
    partial(Estimate(0.0, 1.0, 2, 1, cf.dcg()).report_interval, level=0.9),
    partial(cf.additive_metric, ONES, CUTS, relevance=[1, 0, 1], metric=cf.dcg(), ties="random", rng=rng()),
    partial(cf.bound_loss, ONES, CUTS, documents=[0], metric=cf.dcg(), surrogate="hinge", sigma=1.0, smoothing=0.5),
    partial(CascadeUser, stop=0.5, give_up=0.5, epsilon_plus=0.9, epsilon_minus=0.1),
    partial(cf.RandTopPolicy, POLICY, n=2),
    partial(cf.SwapPolicy, POLICY, pairs=[(1, 2)], swap=0.5),
    partial(cf.SwapPolicy.landmark, POLICY, 1, swap=0.5),
    partial(cf.adjacent_chain, MOVED, weighting="documents"),
    partial(cf.affine, LOG, LAM, trust=cf.TrustUser([1.0, 0.5]), unit="query"),
    partial(cf.all_pairs, MOVED, weighting="documents"),
    partial(cf.certified_optimum, X, LOG, strengths=[1.0, 10.0], gap=0.1, max_passes=100),
    partial(cf.choose_safely, {"new": LAM}, LAM, log=LOG, shares=cf.DisplayShares.of_log(LOG), smallest=0.1, user=USER,
            level=0.9, cutoff=2, rule="exposure"),
    partial(cf.click_rates, MOVED, places=2),
    partial(cf.cross_fitted, X, LOG, user=USER, folds=2, ridge=1.0),
    partial(cf.decide, LAM, LAM, log=LOG, shares=cf.DisplayShares.of_log(LOG), smallest=0.1, user=USER, level=0.9,
            cutoff=2),
    partial(cf.doubly_robust, LOG, LAM, guess=[0.5] * 3, shares=cf.DisplayShares.of_log(LOG), user=USER, cap=2.0),
    partial(evaluation_steps, 100, batch=2, epochs=1, every=10),
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
    partial(cf.regression_em, SEEN, X, iterations=1, tolerance=0.0),
    partial(cf.shrunk_power, MOVED, tau=1.0),
    partial(cf.simulate_pages, GREEDY, USER, **GIVEN, rng=rng()),
    partial(cf.dual_learning, [LOG, of_log(rank=[2, 1, 1])], X, rng=rng(), decay=0.0, steps=4, batch=1,
            learning_rate=1.0),
    partial(cf.trust_bias, TRUSTED),
    partial(cf.two_towers, SEEN, X, combine="additive", decay=0.0, steps=1, seed=0),
    partial(cf.click_sampler, LOG, "ips", cap=2.0, uniform_share=0.5),
    partial(cf.clipped, LOG, LAM, cap=2.0, unit="query"),
    partial(convergence_bound, 1.0, 1.0, weight=1.0, steps=4),
    partial(cf.dcg, 2),
    partial(cf.DeterministicPolicy.rank_by, ONES, CUTS, rng=rng(), cutoff=1),
    partial(cf.draw_sessions, 3, 2, rng=rng()),
    runs,
    partial(cf.fit_deep, X, LOG, module=lambda: cf.two_layer(3, 2), metric=cf.dcg(), surrogate="hinge", sigma=1.0,
            method="direct", round_epochs=1, optimizer="adam", weight_decay=0.0, batch_documents=5, epochs=1),
    partial(cf.fit_linear_ranker, DATA, 0.5, rng=rng(), ridge=1.0, min_queries=1),
    partial(cf.fit_propdcg, X, LOG, C=1.0, metric=cf.dcg(), decrease=0.1, gap=0.1, max_rounds=1),
    partial(cf.fit_proprank, X, LOG, C=1.0, gap=0.1, max_passes=100),
    partial(cf.ips, LOG, LAM, unit="query"),
    partial(learning_rate_for, 1.0, 1.0, weight=1.0, steps=4),
    partial(cf.naive, LOG, LAM, unit="query"),
    partial(cf.ndcg, ONES, CUTS, relevance=[1, 0, 1], cutoff=2, gain="linear", empty="zero"),
    partial(PAGES.estimate_exposure, USER, 2, rng=rng()),
    partial(cf.PlackettLucePolicy, ONES, CUTS, cutoff=2, temperature=1.0),
    partial(cf.policy_aware, LOG, ONES),
    partial(cf.precision, 2),
    partial(proof_steps, runs(), lambda w: w[:, 0], risk_gradient=lambda w: np.ones((len(w), 1)), optimum=[1.0],
            radius=1.0, gradient_bound=1.0, moment_bound=1.0),
    partial(cf.query_sampler, LOG, cap=2.0, uniform_share=0.5),
    partial(cf.rank_weights, ONES, CUTS, metric=cf.dcg(), ties="random", rng=rng()),
    partial(cf.RankingData, X, [0, 1, 2], offsets=CUTS, threshold=1),
    partial(cf.ranks, ONES, CUTS, ties="random", rng=rng()),
    partial(cf.rbp, 0.5),
    partial(second_moment, [1.0], [1.0], counts=[1], sampling="uniform"),
    partial(cf.select_C, lambda C, start: WIDER, [1.0, 2.0], features=X, log=LOG, metric=cf.dcg(), extend=0),
    partial(cf.self_normalised, LOG, LAM, unit="query"),
    partial(sessions_for_clicks, POLICY, USER, relevance=[1, 0, 1], n_clicks=3.0),
    partial(cf.simulate_clicks, POLICY, USER, **GIVEN, rng=rng()),
    partial(steps_for_accuracy, 1.0, 1.0, weight=1.0, accuracy=0.5),
    partial(cf.surrogate_ranks, ONES, CUTS, documents=[0], surrogate="hinge", sigma=1.0, smoothing=0.5),
    partial(cf.train_sgd, X, SAMPLER, learning_rates=0.1, steps=1, rng=rng(), batch=1, runs=1, optimizer="sgd"),
    partial(cf.two_layer, 2, 2, activation="tanh"),
    partial(regret, PATH, DATA, **OPTIMA, iterate="last", cutoff=2),
    partial(regret(PATH, DATA, **OPTIMA).average, "total"),
    partial(BEST.floor, 1.0),
    partial(torch_sampler, SAMPLER, steps=1, batch=1),
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
    elsewhere = {"check_log", "clicks_above_test", "read_events"}
    called = {getattr(call.func, "__name__", "") for call in GOOD}
    for name in set(cf.__all__) - called - elsewhere:
        function = getattr(cf, name)
        rules = checks.rules_of(function) if inspect.isfunction(function) else {}
        assert not any(isinstance(rule, (checks.Bounds, tuple)) for rule, _ in rules.values()), name


TERMS = {"query": [0, 0], "document": [0, 1], "rank": [1, 2]}
# The same for what takes arrays only; the last ones take them element by element, in any shape.
ARRAYS: list[partial[object]] = [
    partial(AliasTable, [0.5, 1.0], [1, 0]),
    partial(AliasTable.build, [1.0, 2.0]),
    partial(cf.ClickLog, **vars(LOG)),
    partial(ClickLists, X, SAMPLER),
    partial(cf.DisplayShares, document=[0, 1], rank=[1, 2], share=[1.0, 0.5], offsets=CUTS),
    partial(cf.DisplayCounts, **TERMS, impressions=[3, 3], clicks=[1, 2]),
    partial(cf.count_rows, **TERMS, clicked=[1, 0]),
    partial(cf.count_pages, [0, 1], [[0, 1], [2, 3]], clicked=[[0, 1], [1, 0]]),
    partial(all_pairs_likelihood, cf.pair_counts(MOVED), [0.0, -0.5]),
    partial(cf.TrustUser, [1.0, 0.5], epsilon_minus=[0.2, 0.1]),
    partial(ClickSampler, [0, 1], AliasTable([1.0, 1.0], [0, 1]), factor=[1.0, 2.0], offsets=CUTS),
    partial(cf.DeterministicPolicy, [1, 2, 1], CUTS),
    partial(cf.EpsilonGreedyPolicy, [1, 2, 1], CUTS, epsilon=[1.0, 0.5]),
    partial(cf.LinearRanker, [1.0, 1.0]),
    partial(LINEAR.decision_function, [[1.0, 2.0]]),
    partial(cf.MixturePolicy, [POLICY, GREEDY], [0.5, 0.5]),
    partial(cf.PositionBasedUser, [1.0, 0.5]),
    partial(QuerySampler, ONES, CUTS, law=[1.0, 1.0]),
    partial(RankWeights, ONES, cf.dcg()),
    partial(cf.aggregate_clicks, [0, 2], POLICY, user=USER, sessions=[4, 2]),
    partial(click_gradients, X, CUTS, documents=[0, 2], w=ONES),
    partial(enumerate_logs, POLICY, USER, relevance=[1, 0, 1], sessions=[1, 1]),
    partial(gradient_bounds, X, CUTS, documents=[0, 2]),
    partial(ips_variance, [1.0, 2.0], [0.5, 0.5], weights=[1.0, 1.0], offsets=[0, 1, 2], sessions=[1, 1]),
    partial(lengths, CUTS),
    partial(cf.query_index, CUTS),
    partial(cf.query_sampler, LOG, gradient_bounds_of=X),
    partial(second_moment, [1.0, 2.0], [1.0, 1.0], counts=[1, 2], sampling="uniform"),
    partial(cf.segment_sum, ONES, CUTS),
    partial(cf.train_sgd, X, SAMPLER, learning_rates=[0.1, 1.0], steps=3, rng=rng(), record=[1, 3]),
    *(partial(estimate, LOG, lam=ONES) for estimate in (cf.ips, cf.naive, cf.self_normalised)),
    *(partial(thing.sample, [0, 1], rng()) for thing in (POLICY, GREEDY, PAGES, MIXED)),
    *(partial(thing.impressions, [1, 1], rng()) for thing in (POLICY, GREEDY, PAGES, MIXED)),
    *(ELEMENTWISE := [
        partial(cf.average_rank(), [1, 2]), partial(cf.average_rank().slope, [1, 2]), partial(USER.attraction, [1, 0]),
        partial(USER.click_probability, [1, 2], [1, 0]), partial(USER.propensity, [1, 2]),
        partial(CascadeUser().page_click_probability, [1, 0]),
    ]),
]  # fmt: skip
# An element that an array of this name refuses, beside NaN.
BEYOND = {
    **dict.fromkeys(("click_probability", "epsilon", "examination", "exposure", "guess", "keep", "propensity"), 2.0),
    **dict.fromkeys(("alias", "documents", "queries", "record"), 9), "relevance": 31, "offsets": 1,
    **dict.fromkeys(("clicks", "counts", "displayed_rank", "document", "impressions", "sessions"), -1),
    **dict.fromkeys(("greedy_rank", "rank"), 0),
    **dict.fromkeys(("gains", "gradient_norms", "law", "learning_rates", "mass", "probability", "shares"), -1.0),
}  # fmt: skip
# Arrays of any length, and what a function takes, broken though it is.
ANY_LENGTH = {"documents", "epsilon", "epsilon_minus", "examination", "grid", "learning_rates", "pairs", "queries"}
ANY_LENGTH |= {"record", "strengths"}
TAKEN = {
    "additive_metric": {"relevance beyond"},
    "segment_sum": {"values element"},
    "train_sgd": {"learning_rates nested"},
    "RankWeights": {"lam short"},
    **{name: {"weights short", "features short"} for name in ("build", "decision_function", "LinearRanker")},
    **{name: {"offsets short"} for name in ("ClickSampler", "DisplayShares", "lengths", "query_index")},
}


def arrays_of(call: partial[object]) -> dict[str, np.ndarray]:
    """The arguments of a call that are arrays of numbers."""
    given = inspect.signature(call.func).bind(*call.args, **call.keywords).arguments
    listed = {name: np.asarray(value) for name, value in given.items() if isinstance(value, (list, np.ndarray))}
    return {name: array for name, array in listed.items() if array.dtype.kind in "iuf"}


def broken(name: str, array: np.ndarray) -> dict[str, Any]:
    """The array with another last element, nested in another one, and one element too short."""
    others = {"element": math.nan} | ({"beyond": BEYOND[name]} if name in BEYOND else {})
    last = {how: np.append(array.ravel()[:-1], bad).reshape(array.shape) for how, bad in others.items()}
    return last | {"nested": array[None], "short": array[:-1]}


@pytest.mark.parametrize("call", GOOD + ARRAYS, ids=lambda call: getattr(call.func, "__qualname__", "metric"))
def test_a_bad_array_is_named(call: partial[object]) -> None:
    """A place in it, or a query, may follow.  Of arrays that do not fit together any may be named."""
    taken = TAKEN.get(getattr(call.func, "__name__", ""), set()) | {f"{name} short" for name in ANY_LENGTH}
    for name, array in arrays_of(call).items():
        for how, value in broken(name, array).items():
            if f"{name} {how}" in taken or (call in ELEMENTWISE and how in ("nested", "short")):
                continue
            given = inspect.signature(call.func).bind(*call.args, **call.keywords)
            given.arguments[name] = value
            words = r"[\w.]+" if how in ("nested", "short") else name
            with pytest.raises((ValueError, TypeError), match=rf"^{words}(\[| is |: | of query | sums to |, )"):
                list(call.func(*given.args, **given.kwargs))  # type: ignore[call-overload]


# What the message must begin with, and calls that break just this.
NAMED: list[tuple[str, Callable[[], object]]] = [
    ("alias", partial(AliasTable, [1.0], [0.5])),
    ("examination", partial(cf.PositionBasedUser(lambda r: 2 * r).propensity, [1])),
    ("law", partial(QuerySampler, ONES, CUTS, law=[0.0, 0.0])),
    ("lam", partial(RankWeights, [[1.0]], cf.dcg())),
    ("n_features", partial(read_svmlight, "no such file", 0)),
    ("probability", partial(runs, probability=1.0)),
    *(("query", lambda policy=policy, query=query: list(policy.displays(query)))
      for policy, query in ((PAGES, 2), (GREEDY, -1), (MIXED, 2), (POLICY, 0.5))),
    ("queries", partial(GREEDY.sample, [True, False], rng())),
    *(("rank_weights", partial(estimate, LOG, SHORT)) for estimate in (cf.ips, cf.naive)),
    *(("record", partial(train, record=record)) for record in ([], [2, 1])),
    ("relevance", partial(simulate, relevance=[1, 0, 2])),
    ("relevance", lambda: next(outcomes(relevance=[1, 0, 2]))),
    ("relevance", partial(cf.ndcg, ONES, CUTS, relevance=[0, 0, 31])),
    ("replacement", partial(cf.click_sampler, LOG, "countersample", replacement=False)),
    *(("seed", call) for call in (partial(Run, "smoke", "digits", -1), partial(RUN.load, -1), partial(RUN.rng, -1, 0),
      partial(load_corpus, "digits", "smoke", seed=-1), partial(read_collection, ".", -1), partial(fold_of, ".", -1))),
    ("seeds", partial(RUN.setting_of, [1, -1])),
    ("seeds", partial(units_of, "digits", [1, -1])),
    ("sessions", partial(variance, sessions=0)),
    ("stream", partial(RUN.rng, 1, -1)),
    ("stream", partial(RUN.rng, 1, [0, -1])),
    ("the sum of counts", partial(moment, counts=[0, 0])),
    ("the sum of sessions", partial(variance, sessions=[0])),
    ("value of the ranks", partial(POLICY.display_mean, lambda rank: rank * math.nan)),
    ("value of the ranks", partial(GREEDY.display_mean, lambda rank: rank[:0])),
    ("weights", partial(moment, weights=[1.0, 0.0])),
    ("weights", partial(cf.bound_loss, ONES, CUTS, documents=[0], weights=[-1.0])),
    ("weights sum to 0.0", partial(AliasTable.build, [])),
    ("keep", partial(AliasTable, [], [])),
    ("strengths", partial(cf.certified_optimum, X, LOG, strengths=[])),
    ("strengths", partial(cf.certified_optimum, X, LOG, strengths=[10.0, 1.0])),
    ("seed", partial(torch_sampler, SAMPLER, steps=1, seed=-1)),
    ("data", lambda: cf.label_log(cf.RankingData(X, [0, 0, 0], offsets=CUTS))),
    ("path", partial(regret, PATH, cf.RankingData(X[:, :2], [0, 1, 2], offsets=CUTS), **OPTIMA)),
    *((name, partial(regret, PATH, DATA, **OPTIMA | {name: NARROWEST})) for name in OPTIMA),
    ("steps", lambda: regret(train(record=[0]), DATA, **OPTIMA).average()),
    *(("scores", partial(cf.lambda_loss, scores, CUTS, gains=ONES, sigma=sigma))
      for scores, sigma in (([1.7e308, -1.7e308, 0.0], 1.0), ([1e308, 0.0, 0.0], 10.0))),
    *(("log", partial(learn, log=SILENT)) for learn in (
        cf.weight_summary, cf.query_sampler, lambda_objective, partial(cf.click_sampler, method="ips"),
        partial(cf.fit_lambdaloss, X), partial(cf.certified_optimum, X), partial(cf.fit_proprank, X),
        partial(cf.fit_propdcg, X), partial(cf.fit_deep, X, module=lambda: cf.two_layer(3)),
        partial(cf.select_C, lambda C, start: WIDER, [1, 2], features=X))),
    ("features", partial(cf.fit_proprank, X[0], LOG)),
    ("gradient_bounds_of", partial(cf.query_sampler, LOG, gradient_bounds_of=np.ones((3, 1)))),
    *(("counts", partial(Deck, counts)) for counts in ([], [0, 0], [1, 0.5], [1, -1])),
    *(("table", partial(ClickSampler, [0, 1], table, factor=[1, 1], offsets=CUTS))
      for table in (Deck([1]), AliasTable([1.0], [0]))),
    ("steps[1]", partial(convergence_bound, 1, 1.0, weight=1.0, steps=[4, 0])),
    # What does not fit together, or is no array of that kind.
    ("offsets", partial(lengths, [[0, 1]])),
    ("offsets", partial(lengths, [0.0, 1.0])),
    ("offsets", partial(cf.query_index, [0])),
    ("features", partial(cf.RankingData, [[0], [1e300]], [0, 1], offsets=[0, 2])),
    ("features",
     lambda: cf.fit_proprank(np.append(np.zeros((9000, 1)), [[math.inf]], axis=0), of_log(offsets=[0, 2, 9001]))),
    ("features", partial(LINEAR.decision_function, [["1", "a"]])),
    ("features", partial(LINEAR.decision_function, sparse.csr_matrix(np.eye(2)))),
    ("queries", partial(DATA.subset, [])),
    ("queries", partial(DATA.subset, [True, False])),
    ("rng", partial(cf.ranks, ONES, CUTS, ties="random")),
    ("rank weight 'mine'", partial(cf.RankWeight("mine", np.sum), [1, 2])),
    ("rank weight 'mine'", partial(cf.RankWeight("mine", np.log, derivative=np.sum).slope, [1, 2])),
    ("rank weight 'mine'", partial(cf.RankWeight("mine", lambda r: np.where(r == 2, np.inf, r)), [1, 2])),
    ("rank weight 'log'", partial(cf.bound_loss, ONES, CUTS, documents=[0], metric=NO_SLOPE)),
    ("rank weight 'log'", partial(cf.fit_propdcg, X, LOG, metric=NO_SLOPE)),
    ("rank weight 'falling'", partial(cf.fit_propdcg, X, LOG, metric=FALLING)),
    ("rank weight 'Prec@3'", partial(cf.fit_propdcg, X, LOG, metric=cf.precision(3))),
    ("epsilon_plus", partial(cf.PositionBasedUser, [1.0], epsilon_plus=0.1, epsilon_minus=0.5)),
    ("examination", partial(cf.PositionBasedUser, [])),
    ("displayed_rank", partial(cf.PositionBasedUser([1.0, 0.5]).propensity, [1, 1.5])),
    ("displayed_rank", partial(cf.DeterministicPolicy, [1, 1, 1], CUTS)),
    ("displayed_rank", partial(cf.DeterministicPolicy, [1, 2, 2], CUTS)),
    ("greedy_rank", partial(cf.EpsilonGreedyPolicy, [1, 2, 0], CUTS, epsilon=[1.0])),
    ("epsilon", partial(cf.EpsilonGreedyPolicy, [1, 2, 1], CUTS, epsilon=[])),
    ("temperature", partial(PLACKETT_LUCE, [1, 2, 3], temperature=1e-3)),
    ("shares", partial(cf.MixturePolicy, [], [])),
    ("shares", partial(cf.MixturePolicy, [POLICY, GREEDY], [0.5, 0.4])),
    ("policies", partial(cf.MixturePolicy, [POLICY, cf.DeterministicPolicy([1, 2, 3], [0, 3])], [0.5, 0.5])),
    ("relevance", partial(sessions_for_clicks, POLICY, USER, n_clicks=9, relevance=[0] * 3)),
    ("documents",
     partial(cf.aggregate_clicks, [1], cf.DeterministicPolicy([1, 0, 1], CUTS), user=USER, sessions=[4, 2])),
    ("documents", partial(aggregate, [2, 2, 2])),
    ("log", partial(cf.ips, TWICE, lam=ONES, unit="session")),
    ("log", partial(cf.ips, of_log(impressions=[4, 3, 2]), lam=ONES, unit="session")),
    ("log", partial(cf.ips, EMPTY, lam=ONES)),
    ("rank_weights, lam", partial(cf.naive, LOG)),
    ("rank_weights, lam", partial(cf.clipped, LOG, LAM, lam=ONES, cap=2.0)),
    ("other", lambda: LAM - cf.rank_weights(ONES, CUTS, metric=cf.average_rank())),
    ("other", lambda: LAM - SHORT),
    ("metric", cf.ips(LOG, lam=ONES).report),
    ("metric", cf.ips(LOG, lam=ONES).report_interval),
    ("exposure", partial(cf.policy_aware, LOG, [1.0, 0.0, 1.0])),
    ("start", partial(cf.fit_proprank, X, LOG, start=NARROW)),
    ("start", partial(cf.fit_propdcg, X, LOG, start=NARROW)),
    ("grid", partial(cf.select_C, lambda C, start: WIDER, [1, 1], features=X, log=LOG)),
    ("sessions, relevance", lambda: next(outcomes(sessions=[2000, 2000]))),
    ("sessions, relevance",
     # 9 · 8 · 7 · 6 pages, and two sessions that may show the same: 3024 · 3025 / 2.
     lambda: next(enumerate_logs(cf.EpsilonGreedyPolicy(range(1, 10), [0, 9], epsilon=[1.0] * 4), USER,
                                    relevance=[1] * 9, sessions=[2]))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call"), NAMED)
def test_a_message_begins_with_the_name(name: str, call: Callable[[], object]) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"^{re.escape(name)}(?!\w)"):
        call()


def test_the_messages_as_they_are_kept() -> None:
    """With the place, what was found and the remedy."""
    text = "".join(f"{refused(call)}\n" for _, call in NAMED)
    same_as_kept(Path(__file__).with_name("messages.txt"), text)


def test_the_unbroken_arguments_are_accepted() -> None:
    """Each case breaks one thing: without it there is nothing to complain about."""
    assert DATA.subset([1, 0]).n_docs == of_log().n_clicks // 2 == 3
    assert simulate().n_sessions == aggregate([0, 2]).n_clicks + 4 == 6
    assert math.isfinite(cf.ips(TWICE, lam=ONES, unit="query").value)
    assert math.isfinite(cf.ips(of_log(impressions=[4, 3, 2]), lam=ONES, unit="query").standard_error)
    assert variance(sessions=np.int64(2)) == 0.125
    assert max(cf.fit_proprank(X, LOG).gap, cf.fit_propdcg(X, LOG).gap) <= 1e-3
    fitted = cf.select_C(lambda C, start: WIDER, [1, 2], features=X, log=LOG)
    assert len(fitted.estimates) == 2
    assert sum(p for p, _ in outcomes()) == 1.0
