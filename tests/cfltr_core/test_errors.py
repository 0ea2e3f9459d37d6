"""Bad input: each public function names the argument, where it goes wrong, and what to do."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse
from small_logs import CUTS, LOG, POLICY

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
    clipped,
    dcg,
    draw_sessions,
    enumerate_logs,
    expand_clicks,
    fit_deep,
    fit_linear_ranker,
    fit_propdcg,
    fit_proprank,
    ips,
    ips_variance,
    naive,
    ndcg,
    policy_aware,
    power_examination,
    precision,
    query_index,
    rank_weights,
    ranks,
    rbp,
    segment_sum,
    select_C,
    self_normalised,
    sessions_for_clicks,
    simulate_clicks,
    surrogate_ranks,
    two_layer,
)
from cfltr_core.evaluation.estimates import Estimate
from cfltr_core.learning.proprank import LinearFit
from cfltr_core.ranking.ragged import lengths, relevant_queries, segment_max

LINEAR = LinearRanker([1.0, 1.0])
RNG = np.random.default_rng(0)
USER = PositionBasedUser(power_examination(1.0))
DATA = RankingData(np.zeros((3, 2)), [0, 1, 2], offsets=CUTS)
EMPTY = ClickLog(document=[], rank=[], impressions=[], clicks=[], propensity=[], sessions=[0, 0], offsets=CUTS)
# Document 0 shown at two ranks, as a stochastic policy would.
EXPLORING = EpsilonGreedyPolicy([1, 2, 1], CUTS, epsilon=[1.0, 0.0])
TWICE = ClickLog(
    document=[0, 0],
    rank=[1, 2],
    impressions=[2, 2],
    clicks=[1, 1],
    propensity=[1.0, 0.5],
    sessions=[4, 2],
    offsets=CUTS,
)
SILENT = dataclasses.replace(LOG, clicks=[0, 0, 0])
X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
WIDER = LinearFit(np.zeros(3), primal=1.0, dual=1.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0)
NO_SLOPE = RankWeight("log", np.log)
FALLING = RankWeight("falling", lambda r: -r, derivative=lambda r: -np.ones_like(r))


def data(**changes) -> RankingData:
    fields = {"features": np.zeros((3, 2)), "relevance": [0, 1, 2], "offsets": CUTS, "threshold": 1}
    return RankingData(**{**fields, **changes})


def log(**changes) -> ClickLog:
    return dataclasses.replace(LOG, **changes)


CASES: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    # offsets, wherever they enter
    "offsets not 1-d": (lambda: lengths([[0, 1]]), ValueError, r"offsets: expected a 1-d integer array.*\(1, 2\)"),
    "offsets of floats": (lambda: lengths([0.0, 1.0]), ValueError, "offsets: expected a 1-d integer array.*float64"),
    "offsets too short": (lambda: query_index([0]), ValueError, "offsets: expected a 1-d integer array of n_queries"),
    "offsets from 1": (lambda: query_index([1, 2]), ValueError, r"offsets\[0\] is 1: the first list must start at"),
    "empty list": (lambda: lengths([0, 2, 2]), ValueError, r"offsets\[2\] is 2, not larger.*drop empty queries first"),
    "offsets backwards": (
        lambda: lengths([0, 3, 2]),
        ValueError,
        r"offsets\[2\] is 2, not larger than offsets\[1\] = 3",
    ),
    "wrong end, sum": (
        lambda: segment_sum([1, 2], [0, 1]),
        ValueError,
        r"offsets\[-1\] is 1 but there are 2 documents",
    ),
    "wrong end, max": (lambda: segment_max([1], [0, 2]), ValueError, r"offsets\[-1\] is 2 but there are 1 documents"),
    "wrong end, relevant": (lambda: relevant_queries([1], [0, 2]), ValueError, r"offsets\[-1\] is 2"),
    "wrong end, ranks": (lambda: ranks([1.0], [0, 2]), ValueError, r"offsets\[-1\] is 2 but there are 1 documents"),
    "wrong end, ndcg": (
        lambda: ndcg([1.0], [0, 2], relevance=[1]),
        ValueError,
        r"offsets\[-1\] is 2 but there are 1 documents",
    ),
    "wrong end, data": (lambda: data(offsets=[0, 2]), ValueError, r"offsets\[-1\] is 2 but there are 3 documents"),
    # RankingData
    "flat features": (lambda: data(features=[0.0] * 3), ValueError, r"features: expected shape \(n_docs, n_features\)"),
    "feature NaN": (
        lambda: data(features=[[0, 0], [0, math.nan], [0, 0]]),
        ValueError,
        r"features\[1, 1\] is nan: replace non-finite values",
    ),
    "feature too large": (
        lambda: data(features=[[0, 0], [0, 0], [1e300, 0]]),
        ValueError,
        r"features\[2, 0\] is inf: replace non-finite values, or cap them",
    ),
    "grades too few": (lambda: data(relevance=[0, 1]), ValueError, r"relevance: expected shape \(3,\), got \(2,\)"),
    "grade negative": (lambda: data(relevance=[0, -1, 0]), ValueError, r"relevance\[1\] is -1: expected 0 or more"),
    "grade fractional": (lambda: data(relevance=[0, 0, 0.5]), ValueError, r"relevance\[2\] is 0.5: expected a whole"),
    "grade too large": (lambda: data(relevance=[0, 31, 0]), ValueError, r"relevance\[1\] is 31.*\[0, 30\]: grades are"),
    "grade enormous": (
        lambda: data(relevance=[0, 1e300, 0]),
        ValueError,
        r"relevance\[1\] is 1e\+300: expected a whole",
    ),
    "threshold 0": (lambda: data(threshold=0), ValueError, "threshold is 0: expected a whole number of at least 1"),
    "no such query": (lambda: DATA.subset([0, 2]), ValueError, r"queries\[1\] is 2.*, outside \[0, 1\]: no such query"),
    "query from the end": (lambda: DATA.subset([-1]), ValueError, r"queries\[0\] is -1.*no such query"),
    "mask of queries": (lambda: DATA.subset([True, False]), ValueError, "queries: .*dtype bool.*np.flatnonzero"),
    "no query": (lambda: DATA.subset([]), ValueError, "queries: no query was chosen"),
    # metrics
    "scores 2-d": (
        lambda: ranks([[1.0, 2.0]], [0, 2]),
        ValueError,
        r"scores: expected shape \(n_docs,\), got \(1, 2\)",
    ),
    "score NaN": (lambda: ranks([1, math.nan], [0, 2]), ValueError, r"scores\[1\] is nan: replace or drop non-finite"),
    "score infinite": (
        lambda: ndcg([math.inf, 0.0], [0, 2], relevance=[1, 0]),
        ValueError,
        r"scores\[0\] is inf: replace or drop non-finite",
    ),
    "ties": (
        lambda: ranks([1.0], [0, 1], ties="file order"),
        ValueError,
        "ties is 'file order': choose one of 'average', 'random', 'optimistic', 'pessimistic'",
    ),
    "ties in weights": (
        lambda: rank_weights([1.0], [0, 1], metric=dcg(), ties="last"),
        ValueError,
        "ties is 'last': choose one of",
    ),
    "no generator": (
        lambda: ranks([1.0], [0, 1], ties="random"),
        TypeError,
        r"rng is NoneType: pass a numpy\.random\.Gen",
    ),
    "seed for generator": (
        lambda: rank_weights([1.0], [0, 1], metric=dcg(), ties="random", rng=3),
        TypeError,
        r"rng is int: pass a numpy\.random\.Generator, e\.g\. np\.random\.default_rng\(0\)",
    ),
    "rank 0": (lambda: dcg()([1, 0]), ValueError, r"rank\[1\] is 0.*: ranks start at 1"),
    "rank NaN": (lambda: average_rank()(math.nan), ValueError, "rank is nan.*: ranks start at 1"),
    "weight of another shape": (
        lambda: RankWeight("mine", lambda r: r.sum())([1, 2]),
        ValueError,
        r"rank weight 'mine' returned shape \(\) for ranks of shape \(2,\).*must map an array",
    ),
    "weight not finite": (
        lambda: rank_weights([1, 2], [0, 2], metric=RankWeight("mine", lambda r: np.where(r == 2, np.inf, r))),
        ValueError,
        "rank weight 'mine' is not finite at rank 2",
    ),
    "cutoff 0": (lambda: dcg(0), ValueError, "cutoff is 0: expected a whole number of at least 1"),
    "cutoff fraction": (lambda: dcg(2.5), ValueError, r"cutoff is 2\.5: expected a whole number"),
    "precision at 0": (lambda: precision(0), ValueError, "cutoff is 0: expected a whole number of at least 1"),
    "persistence 1": (lambda: rbp(1.0), ValueError, r"persistence is 1\.0: that of RBP lies strictly between 0 and 1"),
    "persistence NaN": (lambda: rbp(math.nan), ValueError, "persistence is nan: that of RBP"),
    "relevance too short": (
        lambda: additive_metric([1.0, 2.0], [0, 2], relevance=[1.0], metric=dcg()),
        ValueError,
        r"relevance: expected shape \(2,\), one number per document, got \(1,\)",
    ),
    "relevance NaN": (
        lambda: additive_metric([1.0, 2.0], [0, 2], relevance=[1.0, math.nan], metric=dcg()),
        ValueError,
        r"relevance\[1\] is nan: replace or drop",
    ),
    "ndcg k": (
        lambda: ndcg([1.0], [0, 1], relevance=[1], cutoff=0),
        ValueError,
        "cutoff is 0: expected a whole number of at least 1",
    ),
    "ndcg gain": (
        lambda: ndcg([1.0], [0, 1], relevance=[1], gain="log"),
        ValueError,
        "gain is 'log': choose one of 'exponential', 'linear'",
    ),
    "ndcg empty": (
        lambda: ndcg([1.0], [0, 1], relevance=[1], empty="skip"),
        ValueError,
        "empty is 'skip': choose one of 'drop', 'zero', 'one'",
    ),
    "ndcg grades": (
        lambda: ndcg([1.0, 2.0], [0, 2], relevance=[1, 0.5]),
        ValueError,
        r"relevance\[1\] is 0.5: expected a whole",
    ),
    "ndcg large grade": (
        lambda: ndcg([1.0], [0, 1], relevance=[31]),
        ValueError,
        r"relevance\[0\] is 31.*needs small grades",
    ),
    # users
    "eta negative": (lambda: power_examination(-1.0), ValueError, r"eta is -1\.0: the exponent of position bias"),
    "eta NaN": (lambda: power_examination(math.nan), ValueError, "eta is nan: the exponent of position bias"),
    "shift negative": (
        lambda: power_examination(1.0, -0.5),
        ValueError,
        r"shift is -0\.5: expected a finite number >= 0",
    ),
    "noise reversed": (
        lambda: PositionBasedUser([1.0], epsilon_plus=0.1, epsilon_minus=0.5),
        ValueError,
        r"epsilon_plus=0\.1, epsilon_minus=0\.5: expected 0 <= epsilon_minus <= epsilon_plus <= 1",
    ),
    "never clicks": (
        lambda: PositionBasedUser([1.0], epsilon_plus=0.0, epsilon_minus=0.0),
        ValueError,
        "epsilon_plus > 0",
    ),
    "noise above 1": (lambda: PositionBasedUser([1.0], epsilon_plus=1.5), ValueError, r"epsilon_plus=1\.5"),
    "no curve": (lambda: PositionBasedUser([]), ValueError, "examination: expected one probability per rank, e.g."),
    "curve above 1": (
        lambda: PositionBasedUser([1.0, 1.2]),
        ValueError,
        r"examination\[1\] is 1\.2, outside \[0, 1\]: examination is a probability",
    ),
    "function above 1": (
        lambda: PositionBasedUser(lambda r: 2 / r).propensity([4, 1]),
        ValueError,
        r"examination\[1\] is 2\.0, outside \[0, 1\]: the curve must return probabilities",
    ),
    "rank below 0": (
        lambda: USER.propensity([1, -1]),
        ValueError,
        r"displayed_rank\[1\] is -1.*ranks start at 1; 0 means not shown",
    ),
    "half a rank in a table": (
        lambda: PositionBasedUser([1.0, 0.5]).propensity([1, 1.5]),
        ValueError,
        r"displayed_rank is 1\.5: a table of examination has whole ranks only",
    ),
    "graded relevance": (
        lambda: USER.click_probability([1, 2], [1, 3]),
        ValueError,
        r"relevance\[1\] is 3.*the user model takes binary relevance",
    ),
    # policies
    "places repeated": (
        lambda: DeterministicPolicy([1, 1, 1], CUTS),
        ValueError,
        r"displayed_rank of query 0 is \[1, 1\]: the shown documents must hold the places 1, 2, …",
    ),
    "place skipped": (
        lambda: DeterministicPolicy([1, 2, 2], CUTS),
        ValueError,
        r"displayed_rank of query 1 is \[2\]: the shown documents",
    ),
    "places too few": (lambda: DeterministicPolicy([1, 2], CUTS), ValueError, r"displayed_rank: expected shape \(3,\)"),
    "place negative": (
        lambda: DeterministicPolicy([1, -2, 1], CUTS),
        ValueError,
        r"displayed_rank\[1\] is -2: expected 0",
    ),
    "place fractional": (
        lambda: DeterministicPolicy([1, 1.5, 1], CUTS),
        ValueError,
        r"displayed_rank\[1\] is 1\.5: expected a whole number",
    ),
    "display cutoff": (
        lambda: DeterministicPolicy.rank_by([1.0], [0, 1], rng=RNG, cutoff=0),
        ValueError,
        "cutoff is 0: expected",
    ),
    "greedy ranks with a gap": (
        lambda: EpsilonGreedyPolicy([1, 3, 1], CUTS, epsilon=[1.0]),
        ValueError,
        r"displayed_rank of query 0 is \[1, 3\]: the shown documents must hold the places",
    ),
    "greedy rank 0": (
        lambda: EpsilonGreedyPolicy([1, 2, 0], CUTS, epsilon=[1.0]),
        ValueError,
        r"greedy_rank\[2\] is 0: rank every document, it can be explored",
    ),
    "epsilon above 1": (
        lambda: EpsilonGreedyPolicy([1, 2, 1], CUTS, epsilon=[0.0, 1.5]),
        ValueError,
        r"epsilon\[1\] is 1\.5, outside \[0, 1\]: a probability for each place",
    ),
    "one epsilon for all": (
        lambda: EpsilonGreedyPolicy([1, 2, 1], CUTS, epsilon=0.1),
        ValueError,
        r"epsilon: expected one probability per place, got shape \(\)",
    ),
    "no place": (
        lambda: EpsilonGreedyPolicy([1, 2, 1], CUTS, epsilon=[]),
        ValueError,
        r"epsilon: expected one .* \(0,\)",
    ),
    "temperature 0": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, cutoff=2, temperature=0.0),
        ValueError,
        r"temperature is 0\.0: expected a finite number > 0",
    ),
    "temperature too low": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, cutoff=2, temperature=1e-3),
        ValueError,
        r"temperature is 0\.001: document 0 would have a probability below .*; raise it, or show .*EpsilonGreedyPolicy",
    ),
    "Plackett-Luce without places": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, cutoff=0),
        ValueError,
        "cutoff is 0: expected a whole number of at least 1",
    ),
    "Plackett-Luce score NaN": (
        lambda: PlackettLucePolicy([1.0, math.nan, 3.0], CUTS, cutoff=2),
        ValueError,
        r"scores\[1\] is nan: replace or drop",
    ),
    "one page to estimate from": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, cutoff=2).estimate_exposure(USER, 1, rng=RNG),
        ValueError,
        "n_displays is 1: expected a whole number of at least 2",
    ),
    "displays of no query": (lambda: list(EXPLORING.displays(-1)), ValueError, "query is -1: expected a whole number"),
    "displays of one query too far": (lambda: list(POLICY.displays(2)), ValueError, r"query is 2\.0, outside \[0, 1\]"),
    "mixed displays of no query": (
        lambda: list(MixturePolicy([POLICY, EXPLORING], [0.5, 0.5]).displays(5)),
        ValueError,
        r"query is 5\.0, outside \[0, 1\]: no such query",
    ),
    "displays of a list": (
        lambda: list(PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, cutoff=2).displays([0])),
        ValueError,
        r"query is \[0\]: expected a whole number",
    ),
    "mixture of nothing": (lambda: MixturePolicy([], []), ValueError, "shares: expected one number for each of 0"),
    "share missing": (
        lambda: MixturePolicy([POLICY, EXPLORING], [1.0]),
        ValueError,
        r"shares: expected one number for each of 2 policies, got \(1,\)",
    ),
    "share negative": (
        lambda: MixturePolicy([POLICY, EXPLORING], [1.5, -0.5]),
        ValueError,
        r"shares\[0\] is 1\.5, outside \[0, 1\]: each share is a probability",
    ),
    "shares of less than 1": (
        lambda: MixturePolicy([POLICY, EXPLORING], [0.5, 0.4]),
        ValueError,
        r"shares add up to 0\.9: divide them by their sum",
    ),
    "mixture of other lists": (
        lambda: MixturePolicy([POLICY, DeterministicPolicy([1, 2, 3], [0, 3])], [0.5, 0.5]),
        ValueError,
        r"policies\[1\] has other offsets than policies\[0\]: mix policies on the same lists",
    ),
    "value of a rank not finite": (
        lambda: EXPLORING.display_mean(lambda rank: np.where(rank == 2, np.nan, rank)),
        ValueError,
        r"value of the ranks\[1\] is nan",
    ),
    "sampled query": (lambda: EXPLORING.sample([0, 2], RNG), ValueError, r"queries\[1\] is 2.*no such query"),
    "sampled without generator": (lambda: EXPLORING.sample([0], 3), TypeError, "rng is int: pass a numpy"),
    "counted sessions": (lambda: EXPLORING.impressions([3], RNG), ValueError, r"sessions: expected shape \(2,\)"),
    "counted without generator": (lambda: EXPLORING.impressions([3, 3], None), TypeError, "rng is NoneType: pass"),
    "fraction above 1": (
        lambda: fit_linear_ranker(DATA, 1.5, rng=RNG).weights,
        ValueError,
        r"fraction is 1\.5, outside \[0, 1\]: a share of the queries",
    ),
    "ridge 0": (
        lambda: fit_linear_ranker(DATA, 0.5, rng=RNG, ridge=0.0).weights,
        ValueError,
        r"ridge is 0\.0: expected a finite number > 0",
    ),
    "min_queries 0": (
        lambda: fit_linear_ranker(DATA, 0.5, rng=RNG, min_queries=0).weights,
        ValueError,
        "min_queries is 0: expected a whole number of at least 1",
    ),
    "ranker without generator": (
        lambda: fit_linear_ranker(DATA, 0.5, rng=0).weights,
        TypeError,
        "rng is int: pass a numpy",
    ),
    # logs
    "document outside": (lambda: log(document=[0, 1, 3]), ValueError, r"document\[2\] is 3.*no such document"),
    "displayed rank 0": (lambda: log(rank=[1, 0, 1]), ValueError, r"rank\[1\] is 0.*displayed ranks start at 1"),
    "a term twice": (
        lambda: log(document=[1, 0, 1], rank=[1, 1, 1]),
        ValueError,
        r"rank\[2\] is 1, but term 0 is of the same document and rank: add up impressions and clicks",
    ),
    "ranks too few": (lambda: log(rank=[1, 2]), ValueError, r"rank: expected shape \(3,\), got \(2,\)"),
    "clicks negative": (lambda: log(clicks=[3, -1, 2]), ValueError, r"clicks\[1\] is -1: expected 0 or more"),
    "clicks fractional": (lambda: log(clicks=[3, 0.5, 2]), ValueError, r"clicks\[1\] is 0\.5: expected a whole number"),
    "more clicks than shown": (lambda: log(clicks=[3, 5, 2]), ValueError, r"clicks\[1\] is 5: more clicks than impr"),
    "more shown than asked": (
        lambda: log(impressions=[4, 4, 3]),
        ValueError,
        r"impressions\[2\] is 3: more impressions than sessions of the query",
    ),
    "propensity above 1": (
        lambda: log(propensity=[1.0, 1.1, 1.0]),
        ValueError,
        r"propensity\[1\] is 1\.1, outside \[0, 1\]: a propensity is a probability; clip ratios above 1",
    ),
    "propensity negative": (lambda: log(propensity=[1.0, -0.1, 1.0]), ValueError, r"propensity\[1\] is -0\.1, outside"),
    "propensity NaN": (lambda: log(propensity=[1.0, math.nan, 1.0]), ValueError, r"propensity\[1\] is nan, outside"),
    "propensities too few": (
        lambda: log(propensity=[1.0]),
        ValueError,
        r"propensity: expected shape \(3,\), got \(1,\)",
    ),
    "clicked but never examined": (
        lambda: log(propensity=[1.0, 0.0, 1.0]),
        ValueError,
        r"propensity\[1\] is 0\.0: the document was clicked, so it can be examined: correct the examination curve",
    ),
    "sessions too few": (lambda: log(sessions=[4]), ValueError, r"sessions: expected shape \(2,\), got \(1,\)"),
    "sessions negative": (lambda: log(sessions=[4, -2]), ValueError, r"sessions\[1\] is -2: expected 0 or more"),
    "no clicks wanted": (
        lambda: sessions_for_clicks(POLICY, USER, n_clicks=0, relevance=[1, 1, 1]),
        ValueError,
        "n_clicks is 0: expected a finite number > 0",
    ),
    "endless clicks": (
        lambda: sessions_for_clicks(POLICY, USER, n_clicks=math.inf, relevance=[1, 1, 1]),
        ValueError,
        "n_clicks is inf",
    ),
    "nothing to click": (
        lambda: sessions_for_clicks(POLICY, USER, n_clicks=10, relevance=[0, 0, 0]),
        ValueError,
        "relevance: no document can be clicked under this policy and user",
    ),
    "relevance of two": (
        lambda: sessions_for_clicks(POLICY, USER, n_clicks=10, relevance=[1, 0]),
        ValueError,
        r"relevance: expected shape \(3,\), one number per document, got \(2,\)",
    ),
    "no sessions": (
        lambda: draw_sessions(0, 3, rng=RNG),
        ValueError,
        "n_sessions is 0: expected a whole number of at least 1",
    ),
    "half a session": (
        lambda: draw_sessions(2.5, 3, rng=RNG),
        ValueError,
        r"n_sessions is 2\.5: expected a whole number",
    ),
    "no queries": (
        lambda: draw_sessions(3, 0, rng=RNG),
        ValueError,
        "n_queries is 0: expected a whole number of at least 1",
    ),
    "sessions without generator": (lambda: draw_sessions(3, 2, rng=None), TypeError, "rng is NoneType: pass a numpy"),
    "simulated sessions too few": (
        lambda: simulate_clicks(POLICY, USER, relevance=[1, 0, 1], sessions=[3], rng=RNG),
        ValueError,
        r"sessions: expected shape \(2,\), got \(1,\)",
    ),
    "simulated grades": (
        lambda: simulate_clicks(POLICY, USER, relevance=[1, 2, 1], sessions=[3, 3], rng=RNG),
        ValueError,
        r"relevance\[1\] is 2\.0, outside \[0, 1\]: the user model takes binary relevance",
    ),
    "simulated relevance too short": (
        lambda: simulate_clicks(POLICY, USER, relevance=[1, 0], sessions=[3, 3], rng=RNG),
        ValueError,
        r"relevance: expected shape \(3,\), one number per document, got \(2,\)",
    ),
    "simulation without generator": (
        lambda: simulate_clicks(POLICY, USER, relevance=[1, 0, 1], sessions=[3, 3], rng=0),
        TypeError,
        "rng is int: pass a numpy",
    ),
    "expansion without generator": (lambda: expand_clicks(LOG, 0), TypeError, "rng is int: pass a numpy"),
    "expansion of two places": (
        lambda: expand_clicks(TWICE, RNG),
        ValueError,
        "log: document 0 was shown at more than one rank; this is exact only when every document has one displayed",
    ),
    "click outside": (
        lambda: aggregate_clicks([0, 3], POLICY, user=USER, sessions=[4, 2]),
        ValueError,
        r"documents\[1\] is 3.*no such document",
    ),
    "click on a mask": (
        lambda: aggregate_clicks([True, False, True], POLICY, user=USER, sessions=[4, 2]),
        ValueError,
        r"documents: expected a 1-d integer array of indices, .*dtype bool; turn a mask into indices",
    ),
    "NaN in features": (
        lambda: LINEAR.decision_function([[1.0, 2.0], [1.0, math.nan]]),
        ValueError,
        r"features\[1, 1\] is nan: replace or drop",
    ),
    "text in features": (
        lambda: LINEAR.decision_function([["1", "a"]]),
        ValueError,
        r"features\[0, 1\] is 'a', which is no number: encode or drop this column",
    ),
    "a sparse matrix": (
        lambda: LINEAR.decision_function(sparse.csr_matrix(np.eye(2))),
        ValueError,
        r"features is a csr_matrix: pass an array, as features\.toarray\(\) gives it",
    ),
    "a metric's name": (
        lambda: rank_weights([1, 2, 3], CUTS, metric="dcg"),
        TypeError,
        r"metric is 'dcg': expected RankWeight, such as dcg\(\)",
    ),
    **{
        f"a metric's name, {learner.__name__}": (
            lambda learner=learner, more=more: learner(np.eye(3)[:, :2], LOG, metric="dcg", **more),
            TypeError,
            r"metric is 'dcg': expected RankWeight, such as dcg\(\)",
        )
        for learner, more in ((fit_propdcg, {"C": 1.0}), (fit_deep, {"module": lambda: two_layer(2, 2)}))
    },
    "a list for a log that gets an exposure": (
        lambda: policy_aware([1, 2], [1.0, 1.0]),
        TypeError,
        "log is list: expected ClickLog",
    ),
    "a list for a log": (lambda: ips([1, 2], lam=np.ones(3)), TypeError, "log is list: expected ClickLog"),
    "grades for relevance": (
        lambda: simulate_clicks(POLICY, USER, relevance=[0, 2, 1], sessions=[1, 1], rng=RNG),
        ValueError,
        r"relevance\[1\] is 2\.0, outside \[0, 1\]: the user model takes binary relevance, as data\.binary is",
    ),
    "click on a hidden document": (
        lambda: aggregate_clicks([1], DeterministicPolicy([1, 0, 1], CUTS), user=USER, sessions=[4, 2]),
        ValueError,
        "documents: document 1 was clicked but not shown by the policy: .* so add 1 to ranks that start at 0",
    ),
    "more clicks than sessions": (
        lambda: aggregate_clicks([2, 2, 2], POLICY, user=USER, sessions=[4, 2]),
        ValueError,
        "documents: document 2 has 3 clicks in 2 sessions of its query; count at most one click per session",
    ),
    "aggregated sessions too few": (
        lambda: aggregate_clicks([0], POLICY, user=USER, sessions=[4]),
        ValueError,
        r"sessions: expected shape \(2,\), got \(1,\)",
    ),
    "click that cannot be": (
        lambda: aggregate_clicks([1], POLICY, user=PositionBasedUser([1.0]), sessions=[4, 2]),
        ValueError,
        r"propensity\[1\] is 0\.0: the document was clicked, so it can be examined",
    ),
    # estimators
    "no session": (lambda: ips(EMPTY, lam=[1.0] * 3), ValueError, "log: there is no session in the log"),
    "weights too few": (lambda: naive(LOG, lam=[1.0]), ValueError, r"lam: expected shape \(3,\).*got \(1,\)"),
    "weight NaN": (lambda: ips(LOG, lam=[1.0, math.nan, 1.0]), ValueError, r"lam\[1\] is nan: replace or drop"),
    "unit": (
        lambda: ips(LOG, lam=[1.0] * 3, unit="click"),
        ValueError,
        "unit is 'click': choose one of 'query', 'session'",
    ),
    "bare scores": (
        lambda: ips(LOG, [1.0, 2.0, 3.0]),
        TypeError,
        "rank_weights is list: expected what rank_weights",
    ),
    "neither rank weights nor λ": (lambda: naive(LOG), TypeError, "rank_weights, lam: give one of the two"),
    "rank weights and λ": (
        lambda: clipped(LOG, rank_weights(X[:, 0], LOG.offsets, metric=dcg()), lam=[1.0] * 3, cap=2.0),
        TypeError,
        "rank_weights, lam: give one of the two",
    ),
    "two metrics": (
        lambda: (
            rank_weights([1.0, 2.0], [0, 2], metric=dcg()) - rank_weights([1.0, 2.0], [0, 2], metric=average_rank())
        ),
        ValueError,
        "other: average rank is subtracted from DCG: compare two rankers by one metric",
    ),
    "two lists": (
        lambda: rank_weights([1.0, 2.0], [0, 2], metric=dcg()) - rank_weights([1.0], [0, 1], metric=dcg()),
        ValueError,
        "other: it has 1 documents, not 2: rank the same documents",
    ),
    "report of bare numbers": (
        lambda: ips(LOG, lam=[1.0] * 3).report(),
        ValueError,
        "metric: the estimate was made from bare numbers",
    ),
    "interval of bare numbers": (
        lambda: ips(LOG, lam=[1.0] * 3).report_interval(),
        ValueError,
        "metric: the estimate was made from bare numbers",
    ),
    "unit without clicks": (
        lambda: self_normalised(dataclasses.replace(LOG, clicks=[0, 0, 0]), lam=[1.0] * 3, unit="click"),
        ValueError,
        "unit is 'click': choose one of 'query', 'session'",
    ),
    "sessions of two places": (
        lambda: ips(TWICE, lam=[1.0] * 3, unit="session"),
        ValueError,
        "log: document 0 was shown at more than one rank",
    ),
    "sessions that show another ranking": (
        lambda: ips(log(impressions=[4, 3, 2]), lam=[1.0] * 3, unit="session"),
        ValueError,
        r"log: impressions\[1\] is 3, but its query had 4 sessions; .*same ranking.*use unit=\"query\"",
    ),
    "expansion of sessions that show another ranking": (
        lambda: expand_clicks(log(impressions=[4, 3, 2]), RNG),
        ValueError,
        r"log: impressions\[1\] is 3, but its query had 4 sessions; this is exact only when every session",
    ),
    "sessions of a random page": (
        lambda: ips(
            simulate_clicks(EXPLORING, USER, relevance=[1, 1, 1], sessions=[9, 9], rng=RNG),
            lam=[1.0] * 3,
            unit="session",
        ),
        ValueError,
        r"log: document 0 was shown at more than one rank|log: impressions\[\d\] is \d, but its query had 9 sessions",
    ),
    "exposure above 1": (
        lambda: policy_aware(LOG, [0.5, 1.5, 1.0]),
        ValueError,
        r"exposure\[1\] is 1\.5, outside \[0, 1\]: exposure is a probability",
    ),
    "exposures too few": (
        lambda: policy_aware(LOG, [0.5]),
        ValueError,
        r"exposure: expected shape \(3,\), one number per document, got \(1,\)",
    ),
    "clicked but without exposure": (
        lambda: policy_aware(LOG, [0.5, 0.0, 1.0]),
        ValueError,
        r"exposure\[1\] is 0, but the document was clicked: .*the policy that filled the log",
    ),
    "clip below 1": (
        lambda: clipped(LOG, lam=[1.0] * 3, cap=0.5),
        ValueError,
        r"cap is 0\.5: expected a largest weight >= 1",
    ),
    "clip NaN": (
        lambda: clipped(LOG, lam=[1.0] * 3, cap=math.nan),
        ValueError,
        "cap is nan: expected a largest weight >= 1",
    ),
    "level 1": (lambda: Estimate(0.0, 1.0, 2, 1).interval(1.0), ValueError, r"level is 1\.0: expected a probability"),
    "variance without sessions": (
        lambda: ips_variance([1.0], [0.5], weights=[1.0], offsets=[0, 1], sessions=[0]),
        ValueError,
        "the sum of sessions is 0: expected a whole number of at least 1",
    ),
    "variance of half a session": (
        lambda: ips_variance([1.0], [0.5], weights=[1.0], offsets=[0, 1], sessions=2.5),
        ValueError,
        r"sessions is 2\.5: expected a whole number of at least 1",
    ),
    "variance, probability": (
        lambda: ips_variance([1.0], [1.5], weights=[1.0], offsets=[0, 1], sessions=2),
        ValueError,
        r"click_probability\[0\] is 1\.5, outside \[0, 1\]: a probability",
    ),
    "variance, weight": (
        lambda: ips_variance([1.0], [0.5], weights=[math.inf], offsets=[0, 1], sessions=2),
        ValueError,
        r"weights\[0\] is inf: replace or drop",
    ),
    # bounds
    "bound of score NaN": (
        lambda: surrogate_ranks([1.0, math.nan, 0.0], CUTS, documents=[0]),
        ValueError,
        r"scores\[1\] is nan: replace or drop non-finite",
    ),
    "bound of scores too few": (
        lambda: surrogate_ranks([1.0], CUTS, documents=[0]),
        ValueError,
        r"scores: expected shape \(3,\), one number per document, got \(1,\)",
    ),
    "bound of no list": (
        lambda: surrogate_ranks([1.0] * 3, [0, 2, 2], documents=[0]),
        ValueError,
        r"offsets\[2\] is 2, not larger.*drop empty queries first",
    ),
    "bound of no such document": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, documents=[0, 3]),
        ValueError,
        r"documents\[1\] is 3.*, outside \[0, 2\]: no such document",
    ),
    "bound of a mask": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, documents=[True, False, True]),
        ValueError,
        r"documents: expected a 1-d integer array of indices, .*dtype bool; turn a mask into indices",
    ),
    "unknown surrogate": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, documents=[0], surrogate="exponential"),
        ValueError,
        "surrogate is 'exponential': choose one of 'hinge', 'logistic'",
    ),
    "sigma 0": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, documents=[0], surrogate="logistic", sigma=0.0),
        ValueError,
        r"sigma is 0\.0: expected a finite number > 0",
    ),
    "sigma NaN": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, documents=[0], surrogate="logistic", sigma=math.nan),
        ValueError,
        "sigma is nan: expected a finite number > 0",
    ),
    "smoothing negative": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, documents=[0], smoothing=-0.1),
        ValueError,
        r"smoothing is -0\.1, outside \[0, 2\]: 0 is the hinge itself; beyond 2 a document would compete with itself",
    ),
    "smoothing beyond 2": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, documents=[0], smoothing=2.1),
        ValueError,
        r"smoothing is 2\.1, outside \[0, 2\]",
    ),
    "negative weight of a bound": (
        lambda: bound_loss([1.0] * 3, CUTS, documents=[0, 2], weights=[1.0, -1.0]),
        ValueError,
        r"weights\[1\] is -1\.0, outside \[0, inf\]: a negative weight would turn the bound round",
    ),
    "infinite weight of a bound": (
        lambda: bound_loss([1.0] * 3, CUTS, documents=[0, 2], weights=[1.0, math.inf]),
        ValueError,
        r"weights\[1\] is inf: replace or drop",
    ),
    "weights of a bound too few": (
        lambda: bound_loss([1.0] * 3, CUTS, documents=[0, 2], weights=[1.0]),
        ValueError,
        r"weights: expected shape \(2,\).*got \(1,\)",
    ),
    "bound on a weight without derivative": (
        lambda: bound_loss([1.0] * 3, CUTS, documents=[0], weights=None, metric=NO_SLOPE),
        ValueError,
        r"rank weight 'log' has no derivative: give RankWeight\(…, derivative=…\) to learn with it",
    ),
    "slope at rank 0": (lambda: dcg().slope([1.0, 0.0]), ValueError, r"rank\[1\] is 0\.0.*ranks start at 1"),
    "slope of another shape": (
        lambda: RankWeight("mine", np.log, derivative=lambda r: 1.0).slope([1.0, 2.0]),
        ValueError,
        r"rank weight 'mine' returned shape \(\) for ranks of shape \(2,\)",
    ),
    # ranking machines
    "no click to learn from": (
        lambda: fit_proprank(X, SILENT),
        ValueError,
        "log: there is no click in the log, so nothing can be learnt",
    ),
    "no click for PropDCG": (lambda: fit_propdcg(X, SILENT), ValueError, "log: there is no click in the log"),
    "C 0": (lambda: fit_proprank(X, LOG, C=0), ValueError, "C is 0: expected a finite number > 0"),
    "C NaN": (lambda: fit_proprank(X, LOG, C=math.nan), ValueError, "C is nan: expected a finite number > 0"),
    "C infinite": (lambda: fit_propdcg(X, LOG, C=math.inf), ValueError, "C is inf: expected a finite number > 0"),
    "C negative": (lambda: fit_propdcg(X, LOG, C=-1.0), ValueError, r"C is -1\.0: expected a finite number > 0"),
    "training feature NaN": (
        lambda: fit_proprank([[0, 0], [0, 0], [0, math.nan]], LOG),
        ValueError,
        r"features\[2, 1\] is nan: replace or drop non-finite values",
    ),
    "training feature far down": (
        lambda: fit_proprank(
            np.append(np.zeros((9000, 1)), [[math.inf]], axis=0),
            ClickLog(
                document=[0], rank=[1], impressions=[1], clicks=[1], propensity=[1.0], sessions=[1], offsets=[0, 9001]
            ),
        ),
        ValueError,
        r"features\[9000, 0\] is inf",
    ),
    "training features flat": (
        lambda: fit_proprank([0.0] * 3, LOG),
        ValueError,
        r"features: expected shape \(n_docs, n_features\), got \(3,\)",
    ),
    "no training feature": (
        lambda: fit_proprank(np.zeros((3, 0)), LOG),
        ValueError,
        r"features: expected shape \(n_docs, n_features\), got \(3, 0\)",
    ),
    "training features too few": (
        lambda: fit_proprank(X[:2], LOG),
        ValueError,
        "features: there are 2 documents, but the log has 2 lists of 3 documents",
    ),
    "gap 0": (lambda: fit_proprank(X, LOG, gap=0), ValueError, "gap is 0: expected a share"),
    "gap NaN": (lambda: fit_proprank(X, LOG, gap=math.nan), ValueError, "gap is nan: expected a share"),
    "tol of PropDCG": (
        lambda: fit_propdcg(X, LOG, decrease=0.0),
        ValueError,
        r"decrease is 0\.0: expected a finite number > 0",
    ),
    "gap of PropDCG": (
        lambda: fit_propdcg(X, LOG, gap=-1.0),
        ValueError,
        r"gap is -1\.0: expected a share of what",
    ),
    "no round": (lambda: fit_propdcg(X, LOG, max_rounds=0), ValueError, "max_rounds is 0: expected a whole"),
    "start of another width": (
        lambda: fit_proprank(X, LOG, start=WIDER),
        ValueError,
        "start has 3 weights, but there are 2 features",
    ),
    "start of another width, PropDCG": (
        lambda: fit_propdcg(X, LOG, start=WIDER),
        ValueError,
        "start has 3 weights, but there are 2 features",
    ),
    "scores of another width": (
        lambda: WIDER.decision_function(X),
        ValueError,
        r"features: expected shape \(n_docs, 3\), got \(3, 2\)",
    ),
    "scores of one row": (
        lambda: WIDER.decision_function([1.0, 2.0, 3.0]),
        ValueError,
        r"features: expected shape .*got \(3,\)",
    ),
    "precision cannot be learnt": (
        lambda: fit_propdcg(X, LOG, metric=precision(3)),
        ValueError,
        "rank weight 'Prec@3' is neither convex nor concave: it lies above its chord between ranks 3 and 4, and below "
        r"it between 2\.5 and 3\.5\. Use a weight of one curvature, such as DCG without a cut-off",
    ),
    "DCG@k cannot be learnt": (
        lambda: fit_propdcg(X, LOG, metric=dcg(5)),
        ValueError,
        r"rank weight 'DCG@5' is neither convex nor concave: it lies above .* between ranks .*, and below it between",
    ),
    "falling weight": (
        lambda: fit_propdcg(X, LOG, metric=FALLING),
        ValueError,
        r"rank weight 'falling' decreases between ranks 1 and 1\.5: a bound on the rank bounds the risk only if λ",
    ),
    "weight without derivative": (
        lambda: fit_propdcg(X, LOG, metric=NO_SLOPE),
        ValueError,
        "rank weight 'log' has no derivative",
    ),
    "grid of one": (
        lambda: select_C(lambda C, start: WIDER, [1.0], features=X, log=LOG),
        ValueError,
        r"grid is \[1\.0\]: expected at least two values of C, positive and increasing",
    ),
    "grid unsorted": (
        lambda: select_C(lambda C, start: WIDER, [1.0, 0.1], features=X, log=LOG),
        ValueError,
        r"grid is \[1\.0, 0\.1\]: expected at least two values of C, positive and increasing",
    ),
    "grid repeated": (lambda: select_C(lambda C, start: WIDER, [1, 1], features=X, log=LOG), ValueError, "grid is"),
    "grid of 0": (
        lambda: select_C(lambda C, start: WIDER, [0, 1], features=X, log=LOG),
        ValueError,
        r"grid is \[0, 1\]",
    ),
    "grid NaN": (lambda: select_C(lambda C, start: WIDER, [1, math.nan], features=X, log=LOG), ValueError, "grid is"),
    "no validation click": (
        lambda: select_C(lambda C, start: WIDER, [1, 2], features=X, log=SILENT),
        ValueError,
        "log: there is no click in the log",
    ),
    "other validation lists": (
        lambda: select_C(lambda C, start: WIDER, [1, 2], features=X[:2], log=LOG),
        ValueError,
        "features: there are 2 documents, but the log has 2 lists of 3 documents",
    ),
    # enumeration
    "too many outcomes": (
        lambda: next(enumerate_logs(POLICY, USER, relevance=[1, 1, 1], sessions=[2000, 2000])),
        ValueError,
        "sessions, relevance: 8012006001 outcomes are too many to enumerate.*use fewer documents or sessions",
    ),
    "too many displays": (
        lambda: next(
            enumerate_logs(
                EpsilonGreedyPolicy(range(1, 10), [0, 9], epsilon=[1.0] * 4), USER, relevance=[1] * 9, sessions=[2]
            )
        ),
        ValueError,
        # 9 · 8 · 7 · 6 pages, and two sessions that may show the same.
        f"sessions, relevance: {3024 * 3025 // 2} outcomes are too many to enumerate.*use fewer documents or sessions",
    ),
    "enumerated sessions": (
        lambda: next(enumerate_logs(POLICY, USER, relevance=[1, 1, 1], sessions=[1])),
        ValueError,
        r"sessions: expected shape \(2,\), got \(1,\)",
    ),
    "enumerated relevance": (
        lambda: next(enumerate_logs(POLICY, USER, relevance=[1, 1], sessions=[1, 1])),
        ValueError,
        r"relevance: expected shape \(3,\), one number per document, got \(2,\)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str) -> None:
    call, kind, message = CASES[case]
    with pytest.raises(kind, match=message):
        call()


def test_the_unbroken_arguments_are_accepted() -> None:
    """Each case breaks one thing: without it there is nothing to complain about."""
    assert data().n_docs == DATA.subset([1, 0]).n_docs == 3
    assert log().n_clicks == 6
    assert simulate_clicks(POLICY, USER, relevance=[1, 0, 1], sessions=[3, 3], rng=RNG).n_sessions == 6
    assert aggregate_clicks([0, 2], POLICY, user=USER, sessions=[4, 2]).n_clicks == 2
    assert math.isfinite(ips(TWICE, lam=[1.0] * 3, unit="query").value)
    assert math.isfinite(ips(log(impressions=[4, 3, 2]), lam=[1.0] * 3, unit="query").standard_error)
    assert ips_variance([1.0], [0.5], weights=[1.0], offsets=[0, 1], sessions=np.int64(2)) == 0.125
    assert surrogate_ranks([1.0] * 3, CUTS, documents=[0], surrogate="logistic", sigma=0.5).tolist() == [2.0]
    assert surrogate_ranks([1.0] * 3, CUTS, documents=[0], smoothing=2.0).tolist() == [2.0]
    assert fit_proprank(X, LOG).gap <= 1e-3
    assert fit_propdcg(X, LOG).gap <= 1e-3
    narrow = LinearFit(np.zeros(2), primal=1.0, dual=1.0, at_zero=2.0, least=0.0, passes=0.0, C=1.0)
    assert len(select_C(lambda C, start: narrow, [1, 2], features=X, log=LOG).estimates) == 2
    assert sum(p for p, _ in enumerate_logs(POLICY, USER, relevance=[1, 1, 1], sessions=[1, 1])) == 1.0
