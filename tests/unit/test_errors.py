"""Bad input: each public function names the argument, where it goes wrong, and what to do."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    EpsilonGreedyPolicy,
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
)
from cfltr_core.estimators import Estimate
from cfltr_core.proprank import LinearFit
from cfltr_core.ragged import lengths, relevant_queries, segment_max

RNG = np.random.default_rng(0)
CUTS = [0, 2, 3]
POLICY = DeterministicPolicy([1, 2, 1], CUTS)
USER = PositionBasedUser(power_examination(1.0))
DATA = RankingData(np.zeros((3, 2)), [0, 1, 2], CUTS)
LOG = ClickLog([0, 1, 2], [1, 2, 1], [4, 4, 2], [3, 1, 2], [1.0, 0.5, 1.0], [4, 2], CUTS)
EMPTY = ClickLog([], [], [], [], [], [0, 0], CUTS)
# Document 0 shown at two ranks, as a stochastic policy would.
EXPLORING = EpsilonGreedyPolicy([1, 2, 1], CUTS, [1.0, 0.0])
TWICE = ClickLog([0, 0], [1, 2], [2, 2], [1, 1], [1.0, 0.5], [4, 2], CUTS)
SILENT = dataclasses.replace(LOG, clicks=[0, 0, 0])
X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
WIDER = LinearFit(np.zeros(3), 1.0, 1.0, 2.0, 0.0, 0.0, None, 1.0)
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
    "wrong end, ndcg": (lambda: ndcg([1.0], [1], [0, 2]), ValueError, r"offsets\[-1\] is 2 but there are 1 documents"),
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
        lambda: ndcg([math.inf, 0.0], [1, 0], [0, 2]),
        ValueError,
        r"scores\[0\] is inf: replace or drop non-finite",
    ),
    "ties": (
        lambda: ranks([1.0], [0, 1], "file order"),
        ValueError,
        "ties is 'file order': choose one of average, random, optimistic, pessimistic",
    ),
    "ties in weights": (
        lambda: rank_weights([1.0], [0, 1], dcg(), "last"),
        ValueError,
        "ties is 'last': choose one of",
    ),
    "no generator": (lambda: ranks([1.0], [0, 1], "random"), TypeError, r"rng is NoneType: pass a numpy\.random\.Gen"),
    "seed for generator": (
        lambda: rank_weights([1.0], [0, 1], dcg(), "random", 3),
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
        lambda: rank_weights([1, 2], [0, 2], RankWeight("mine", lambda r: np.where(r == 2, np.inf, r))),
        ValueError,
        "rank weight 'mine' is not finite at rank 2",
    ),
    "cutoff 0": (lambda: dcg(0), ValueError, "cutoff is 0: expected a whole number of at least 1"),
    "cutoff fraction": (lambda: dcg(2.5), ValueError, r"cutoff is 2\.5: expected a whole number"),
    "precision at 0": (lambda: precision(0), ValueError, "k is 0: expected a whole number of at least 1"),
    "persistence 1": (lambda: rbp(1.0), ValueError, r"p is 1\.0: the persistence of RBP lies strictly between 0 and 1"),
    "persistence NaN": (lambda: rbp(math.nan), ValueError, "p is nan: the persistence of RBP"),
    "relevance too short": (
        lambda: additive_metric([1.0, 2.0], [1.0], [0, 2], dcg()),
        ValueError,
        r"relevance: expected shape \(2,\), one number per document, got \(1,\)",
    ),
    "relevance NaN": (
        lambda: additive_metric([1.0, 2.0], [1.0, math.nan], [0, 2], dcg()),
        ValueError,
        r"relevance\[1\] is nan: replace or drop",
    ),
    "ndcg k": (lambda: ndcg([1.0], [1], [0, 1], k=0), ValueError, "k is 0: expected a whole number of at least 1"),
    "ndcg gain": (
        lambda: ndcg([1.0], [1], [0, 1], gain="log"),
        ValueError,
        "gain is 'log': choose 'exponential'.*'linear'",
    ),
    "ndcg empty": (
        lambda: ndcg([1.0], [1], [0, 1], empty="skip"),
        ValueError,
        "empty is 'skip': choose 'drop', 'zero' or",
    ),
    "ndcg grades": (lambda: ndcg([1.0, 2.0], [1, 0.5], [0, 2]), ValueError, r"relevance\[1\] is 0.5: expected a whole"),
    "ndcg large grade": (lambda: ndcg([1.0], [31], [0, 1]), ValueError, r"relevance\[0\] is 31.*needs small grades"),
    # users
    "eta negative": (lambda: power_examination(-1.0), ValueError, r"eta is -1\.0: the exponent of position bias"),
    "eta NaN": (lambda: power_examination(math.nan), ValueError, "eta is nan: the exponent of position bias"),
    "shift negative": (
        lambda: power_examination(1.0, -0.5),
        ValueError,
        r"shift is -0\.5: expected a finite number >= 0",
    ),
    "noise reversed": (
        lambda: PositionBasedUser([1.0], 0.1, 0.5),
        ValueError,
        r"epsilon_plus=0\.1, epsilon_minus=0\.5: expected 0 <= epsilon_minus <= epsilon_plus <= 1",
    ),
    "never clicks": (lambda: PositionBasedUser([1.0], 0.0, 0.0), ValueError, "epsilon_plus > 0"),
    "noise above 1": (lambda: PositionBasedUser([1.0], 1.5), ValueError, r"epsilon_plus=1\.5"),
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
    "display cutoff": (lambda: DeterministicPolicy.rank_by([1.0], [0, 1], RNG, 0), ValueError, "cutoff is 0: expected"),
    "greedy ranks with a gap": (
        lambda: EpsilonGreedyPolicy([1, 3, 1], CUTS, [1.0]),
        ValueError,
        r"displayed_rank of query 0 is \[1, 3\]: the shown documents must hold the places",
    ),
    "greedy rank 0": (
        lambda: EpsilonGreedyPolicy([1, 2, 0], CUTS, [1.0]),
        ValueError,
        r"greedy_rank\[2\] is 0: rank every document, it can be explored",
    ),
    "epsilon above 1": (
        lambda: EpsilonGreedyPolicy([1, 2, 1], CUTS, [0.0, 1.5]),
        ValueError,
        r"epsilon\[1\] is 1\.5, outside \[0, 1\]: a probability for each place",
    ),
    "one epsilon for all": (
        lambda: EpsilonGreedyPolicy([1, 2, 1], CUTS, 0.1),
        ValueError,
        r"epsilon: expected one probability per place, got shape \(\)",
    ),
    "no place": (lambda: EpsilonGreedyPolicy([1, 2, 1], CUTS, []), ValueError, r"epsilon: expected one .* \(0,\)"),
    "temperature 0": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, 2, 0.0),
        ValueError,
        r"temperature is 0\.0: expected a finite number > 0",
    ),
    "temperature too low": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, 2, 1e-3),
        ValueError,
        r"temperature is 0\.001: document 0 would have a probability below .*; raise it, or show .*EpsilonGreedyPolicy",
    ),
    "Plackett-Luce without places": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, 0),
        ValueError,
        "cutoff is 0: expected a whole number of at least 1",
    ),
    "Plackett-Luce score NaN": (
        lambda: PlackettLucePolicy([1.0, math.nan, 3.0], CUTS, 2),
        ValueError,
        r"scores\[1\] is nan: replace or drop",
    ),
    "one page to estimate from": (
        lambda: PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, 2).estimate_exposure(USER, 1, RNG),
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
        lambda: list(PlackettLucePolicy([1.0, 2.0, 3.0], CUTS, 2).displays([0])),
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
        lambda: fit_linear_ranker(DATA, 1.5, RNG),
        ValueError,
        r"fraction is 1\.5, outside \[0, 1\]: a share of the queries",
    ),
    "ridge 0": (
        lambda: fit_linear_ranker(DATA, 0.5, RNG, ridge=0.0),
        ValueError,
        r"ridge is 0\.0: expected a number > 0",
    ),
    "min_queries 0": (
        lambda: fit_linear_ranker(DATA, 0.5, RNG, min_queries=0),
        ValueError,
        "min_queries is 0: expected a whole number of at least 1",
    ),
    "ranker without generator": (lambda: fit_linear_ranker(DATA, 0.5, 0), TypeError, "rng is int: pass a numpy"),
    # logs
    "document outside": (lambda: log(document=[0, 1, 3]), ValueError, r"document\[2\] is 3.*no such document"),
    "displayed rank 0": (lambda: log(rank=[1, 0, 1]), ValueError, r"rank\[1\] is 0.*displayed ranks start at 1"),
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
        lambda: sessions_for_clicks(0, POLICY, USER, [1, 1, 1]),
        ValueError,
        "n_clicks is 0: expected a number > 0",
    ),
    "endless clicks": (lambda: sessions_for_clicks(math.inf, POLICY, USER, [1, 1, 1]), ValueError, "n_clicks is inf"),
    "nothing to click": (
        lambda: sessions_for_clicks(10, POLICY, USER, [0, 0, 0]),
        ValueError,
        "relevance: no document can be clicked under this policy and user",
    ),
    "relevance of two": (
        lambda: sessions_for_clicks(10, POLICY, USER, [1, 0]),
        ValueError,
        r"relevance: expected shape \(3,\), one number per document, got \(2,\)",
    ),
    "no sessions": (
        lambda: draw_sessions(0, 3, RNG),
        ValueError,
        "n_sessions is 0: expected a whole number of at least 1",
    ),
    "half a session": (lambda: draw_sessions(2.5, 3, RNG), ValueError, r"n_sessions is 2\.5: expected a whole number"),
    "no queries": (
        lambda: draw_sessions(3, 0, RNG),
        ValueError,
        "n_queries is 0: expected a whole number of at least 1",
    ),
    "sessions without generator": (lambda: draw_sessions(3, 2, None), TypeError, "rng is NoneType: pass a numpy"),
    "simulated sessions too few": (
        lambda: simulate_clicks(POLICY, USER, [1, 0, 1], [3], RNG),
        ValueError,
        r"sessions: expected shape \(2,\), got \(1,\)",
    ),
    "simulated grades": (
        lambda: simulate_clicks(POLICY, USER, [1, 2, 1], [3, 3], RNG),
        ValueError,
        r"relevance\[1\] is 2\.0, outside \[0, 1\]: the user model takes binary relevance",
    ),
    "simulated relevance too short": (
        lambda: simulate_clicks(POLICY, USER, [1, 0], [3, 3], RNG),
        ValueError,
        r"relevance: expected shape \(3,\), one number per document, got \(2,\)",
    ),
    "simulation without generator": (
        lambda: simulate_clicks(POLICY, USER, [1, 0, 1], [3, 3], 0),
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
        lambda: aggregate_clicks([0, 3], POLICY, USER, [4, 2]),
        ValueError,
        r"documents\[1\] is 3.*no such document",
    ),
    "click on a mask": (
        lambda: aggregate_clicks([True, False, True], POLICY, USER, [4, 2]),
        ValueError,
        r"documents: expected a 1-d integer array of indices, .*dtype bool; turn a mask into indices",
    ),
    "click on a hidden document": (
        lambda: aggregate_clicks([1], DeterministicPolicy([1, 0, 1], CUTS), USER, [4, 2]),
        ValueError,
        "documents: document 1 was clicked but not shown by the policy",
    ),
    "more clicks than sessions": (
        lambda: aggregate_clicks([2, 2, 2], POLICY, USER, [4, 2]),
        ValueError,
        "documents: document 2 has 3 clicks in 2 sessions of its query; count at most one click per session",
    ),
    "aggregated sessions too few": (
        lambda: aggregate_clicks([0], POLICY, USER, [4]),
        ValueError,
        r"sessions: expected shape \(2,\), got \(1,\)",
    ),
    "click that cannot be": (
        lambda: aggregate_clicks([1], POLICY, PositionBasedUser([1.0]), [4, 2]),
        ValueError,
        r"propensity\[1\] is 0\.0: the document was clicked, so it can be examined",
    ),
    # estimators
    "no session": (lambda: ips(EMPTY, [1.0] * 3), ValueError, "log: there is no session in the log"),
    "weights too few": (lambda: naive(LOG, [1.0]), ValueError, r"rank_weight: expected shape \(3,\).*got \(1,\)"),
    "weight NaN": (lambda: ips(LOG, [1.0, math.nan, 1.0]), ValueError, r"rank_weight\[1\] is nan: replace or drop"),
    "unit": (lambda: ips(LOG, [1.0] * 3, unit="click"), ValueError, "unit is 'click': choose 'query' or 'session'"),
    "unit without clicks": (
        lambda: self_normalised(dataclasses.replace(LOG, clicks=[0, 0, 0]), [1.0] * 3, unit="click"),
        ValueError,
        "unit is 'click': choose 'query' or 'session'",
    ),
    "sessions of two places": (
        lambda: ips(TWICE, [1.0] * 3, unit="session"),
        ValueError,
        "log: document 0 was shown at more than one rank",
    ),
    "sessions that show another ranking": (
        lambda: ips(log(impressions=[4, 3, 2]), [1.0] * 3, unit="session"),
        ValueError,
        r"log: impressions\[1\] is 3, but its query had 4 sessions; .*same ranking.*use unit=\"query\"",
    ),
    "expansion of sessions that show another ranking": (
        lambda: expand_clicks(log(impressions=[4, 3, 2]), RNG),
        ValueError,
        r"log: impressions\[1\] is 3, but its query had 4 sessions; this is exact only when every session",
    ),
    "sessions of a random page": (
        lambda: ips(simulate_clicks(EXPLORING, USER, [1, 1, 1], [9, 9], RNG), [1.0] * 3, unit="session"),
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
    "clip below 1": (lambda: clipped(LOG, [1.0] * 3, 0.5), ValueError, r"clip is 0\.5: expected a largest weight >= 1"),
    "clip NaN": (lambda: clipped(LOG, [1.0] * 3, math.nan), ValueError, "clip is nan: expected a largest weight >= 1"),
    "level 1": (lambda: Estimate(0.0, 1.0, 2, 1).interval(1.0), ValueError, r"level is 1\.0: expected a probability"),
    "variance without sessions": (
        lambda: ips_variance([1.0], [0.5], [1.0], [0, 1], [0]),
        ValueError,
        "the sum of sessions is 0: expected a whole number of at least 1",
    ),
    "variance of half a session": (
        lambda: ips_variance([1.0], [0.5], [1.0], [0, 1], 2.5),
        ValueError,
        r"sessions is 2\.5: expected a whole number of at least 1",
    ),
    "variance, probability": (
        lambda: ips_variance([1.0], [1.5], [1.0], [0, 1], 2),
        ValueError,
        r"click_probability\[0\] is 1\.5, outside \[0, 1\]: a probability",
    ),
    "variance, weight": (
        lambda: ips_variance([1.0], [0.5], [math.inf], [0, 1], 2),
        ValueError,
        r"weight\[0\] is inf: replace or drop",
    ),
    # bounds
    "bound of score NaN": (
        lambda: surrogate_ranks([1.0, math.nan, 0.0], CUTS, [0]),
        ValueError,
        r"scores\[1\] is nan: replace or drop non-finite",
    ),
    "bound of scores too few": (
        lambda: surrogate_ranks([1.0], CUTS, [0]),
        ValueError,
        r"scores: expected shape \(3,\), one number per document, got \(1,\)",
    ),
    "bound of no list": (
        lambda: surrogate_ranks([1.0] * 3, [0, 2, 2], [0]),
        ValueError,
        r"offsets\[2\] is 2, not larger.*drop empty queries first",
    ),
    "bound of no such document": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, [0, 3]),
        ValueError,
        r"documents\[1\] is 3.*, outside \[0, 2\]: no such document",
    ),
    "bound of a mask": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, [True, False, True]),
        ValueError,
        r"documents: expected a 1-d integer array of indices, .*dtype bool; turn a mask into indices",
    ),
    "unknown surrogate": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, [0], "exponential"),
        ValueError,
        "surrogate is 'exponential': choose 'hinge' or 'logistic'",
    ),
    "sigma 0": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, [0], "logistic", 0.0),
        ValueError,
        r"sigma is 0\.0: expected a number > 0",
    ),
    "sigma NaN": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, [0], "logistic", math.nan),
        ValueError,
        "sigma is nan: expected a number > 0",
    ),
    "smoothing negative": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, [0], smoothing=-0.1),
        ValueError,
        r"smoothing is -0\.1, outside \[0, 2\]: 0 is the hinge itself; beyond 2 a document would compete with itself",
    ),
    "smoothing beyond 2": (
        lambda: surrogate_ranks([1.0] * 3, CUTS, [0], smoothing=2.1),
        ValueError,
        r"smoothing is 2\.1, outside \[0, 2\]",
    ),
    "negative weight of a bound": (
        lambda: bound_loss([1.0] * 3, CUTS, [0, 2], [1.0, -1.0]),
        ValueError,
        r"weights\[1\] is -1\.0, outside \[0, inf\]: a negative weight would turn the bound round",
    ),
    "infinite weight of a bound": (
        lambda: bound_loss([1.0] * 3, CUTS, [0, 2], [1.0, math.inf]),
        ValueError,
        r"weights\[1\] is inf: replace or drop",
    ),
    "weights of a bound too few": (
        lambda: bound_loss([1.0] * 3, CUTS, [0, 2], [1.0]),
        ValueError,
        r"weights: expected shape \(2,\).*got \(1,\)",
    ),
    "bound on a weight without derivative": (
        lambda: bound_loss([1.0] * 3, CUTS, [0], None, NO_SLOPE),
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
        lambda: fit_proprank(X, CUTS, SILENT),
        ValueError,
        "log: there is no click in the log, so nothing can be learnt",
    ),
    "no click for PropDCG": (lambda: fit_propdcg(X, CUTS, SILENT), ValueError, "log: there is no click in the log"),
    "C 0": (lambda: fit_proprank(X, CUTS, LOG, 0), ValueError, "C is 0: expected a number > 0"),
    "C NaN": (lambda: fit_proprank(X, CUTS, LOG, math.nan), ValueError, "C is nan: expected a number > 0"),
    "C infinite": (lambda: fit_propdcg(X, CUTS, LOG, math.inf), ValueError, "C is inf: expected a number > 0"),
    "C negative": (lambda: fit_propdcg(X, CUTS, LOG, -1.0), ValueError, r"C is -1\.0: expected a number > 0"),
    "training feature NaN": (
        lambda: fit_proprank([[0, 0], [0, 0], [0, math.nan]], CUTS, LOG),
        ValueError,
        r"features\[2, 1\] is nan: replace or drop non-finite values",
    ),
    "training feature far down": (
        lambda: fit_proprank(
            np.append(np.zeros((9000, 1)), [[math.inf]], axis=0),
            [0, 9001],
            ClickLog([0], [1], [1], [1], [1.0], [1], [0, 9001]),
        ),
        ValueError,
        r"features\[9000, 0\] is inf",
    ),
    "training features flat": (
        lambda: fit_proprank([0.0] * 3, CUTS, LOG),
        ValueError,
        r"features: expected shape \(n_docs, n_features\), got \(3,\)",
    ),
    "no training feature": (
        lambda: fit_proprank(np.zeros((3, 0)), CUTS, LOG),
        ValueError,
        r"features: expected shape \(n_docs, n_features\), got \(3, 0\)",
    ),
    "training features too few": (
        lambda: fit_proprank(X[:2], CUTS, LOG),
        ValueError,
        r"offsets\[-1\] is 3 but there are 2 documents",
    ),
    "other lists than the log": (
        lambda: fit_proprank(X, [0, 1, 3], LOG),
        ValueError,
        "offsets: 2 lists of 3 documents, but the log has 2 lists of 3 documents or other cuts",
    ),
    "fewer lists than the log": (
        lambda: fit_propdcg(X, [0, 3], LOG),
        ValueError,
        "offsets: 1 lists of 3 documents, but the log has 2 lists of 3 documents",
    ),
    "tol 0": (lambda: fit_proprank(X, CUTS, LOG, tol=0), ValueError, "tol is 0: expected a relative gap > 0"),
    "tol NaN": (lambda: fit_proprank(X, CUTS, LOG, tol=math.nan), ValueError, "tol is nan: expected a relative gap"),
    "tol of PropDCG": (
        lambda: fit_propdcg(X, CUTS, LOG, tol=0.0),
        ValueError,
        r"tol is 0\.0: expected a relative decrease > 0",
    ),
    "inner tol": (
        lambda: fit_propdcg(X, CUTS, LOG, inner_tol=-1.0),
        ValueError,
        r"inner_tol is -1\.0: expected a relative gap > 0",
    ),
    "no round": (lambda: fit_propdcg(X, CUTS, LOG, max_rounds=0), ValueError, "max_rounds is 0: expected a whole"),
    "start of another width": (
        lambda: fit_proprank(X, CUTS, LOG, start=WIDER),
        ValueError,
        "start has 3 weights, but there are 2 features",
    ),
    "start of another width, PropDCG": (
        lambda: fit_propdcg(X, CUTS, LOG, start=WIDER),
        ValueError,
        "start has 3 weights, but there are 2 features",
    ),
    "scores of another width": (
        lambda: WIDER.score(X),
        ValueError,
        r"features: expected shape \(n_docs, 3\), got \(3, 2\)",
    ),
    "scores of one row": (lambda: WIDER.score([1.0, 2.0, 3.0]), ValueError, r"features: expected shape .*got \(3,\)"),
    "precision cannot be learnt": (
        lambda: fit_propdcg(X, CUTS, LOG, weight=precision(3)),
        ValueError,
        "rank weight 'Prec@3' is neither convex nor concave: it lies above its chord between ranks 3 and 4, and below "
        r"it between 2\.5 and 3\.5\. Use a weight of one curvature, such as DCG without a cut-off",
    ),
    "DCG@k cannot be learnt": (
        lambda: fit_propdcg(X, CUTS, LOG, weight=dcg(5)),
        ValueError,
        r"rank weight 'DCG@5' is neither convex nor concave: it lies above .* between ranks .*, and below it between",
    ),
    "falling weight": (
        lambda: fit_propdcg(X, CUTS, LOG, weight=FALLING),
        ValueError,
        r"rank weight 'falling' decreases between ranks 1 and 1\.5: a bound on the rank bounds the risk only if λ",
    ),
    "weight without derivative": (
        lambda: fit_propdcg(X, CUTS, LOG, weight=NO_SLOPE),
        ValueError,
        "rank weight 'log' has no derivative",
    ),
    "grid of one": (
        lambda: select_C(lambda C, start: WIDER, [1.0], X, CUTS, LOG),
        ValueError,
        r"grid is \[1\.0\]: expected at least two values of C, positive and increasing",
    ),
    "grid unsorted": (
        lambda: select_C(lambda C, start: WIDER, [1.0, 0.1], X, CUTS, LOG),
        ValueError,
        r"grid is \[1\.0, 0\.1\]: expected at least two values of C, positive and increasing",
    ),
    "grid repeated": (lambda: select_C(lambda C, start: WIDER, [1, 1], X, CUTS, LOG), ValueError, "grid is"),
    "grid of 0": (lambda: select_C(lambda C, start: WIDER, [0, 1], X, CUTS, LOG), ValueError, r"grid is \[0, 1\]"),
    "grid NaN": (lambda: select_C(lambda C, start: WIDER, [1, math.nan], X, CUTS, LOG), ValueError, "grid is"),
    "no validation click": (
        lambda: select_C(lambda C, start: WIDER, [1, 2], X, CUTS, SILENT),
        ValueError,
        "log: there is no click in the log",
    ),
    "other validation lists": (
        lambda: select_C(lambda C, start: WIDER, [1, 2], X, [0, 3], LOG),
        ValueError,
        "offsets: 1 lists of 3 documents, but the log has 2 lists",
    ),
    # enumeration
    "too many outcomes": (
        lambda: next(enumerate_logs(POLICY, USER, [1, 1, 1], [2000, 2000])),
        ValueError,
        "sessions, relevance: 8012006001 outcomes are too many to enumerate.*use fewer documents or sessions",
    ),
    "too many displays": (
        lambda: next(enumerate_logs(EpsilonGreedyPolicy(range(1, 13), [0, 12], [1.0] * 6), USER, [1] * 12, [2])),
        ValueError,
        "sessions, relevance: .* outcomes are too many to enumerate.*use fewer documents or sessions",
    ),
    "enumerated sessions": (
        lambda: next(enumerate_logs(POLICY, USER, [1, 1, 1], [1])),
        ValueError,
        r"sessions: expected shape \(2,\), got \(1,\)",
    ),
    "enumerated relevance": (
        lambda: next(enumerate_logs(POLICY, USER, [1, 1], [1, 1])),
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
    assert simulate_clicks(POLICY, USER, [1, 0, 1], [3, 3], RNG).n_sessions == 6
    assert aggregate_clicks([0, 2], POLICY, USER, [4, 2]).n_clicks == 2
    assert math.isfinite(ips(TWICE, [1.0] * 3, unit="query").value)
    assert math.isfinite(ips(log(impressions=[4, 3, 2]), [1.0] * 3, unit="query").standard_error)
    assert ips_variance([1.0], [0.5], [1.0], [0, 1], np.int64(2)) == 0.125
    assert surrogate_ranks([1.0] * 3, CUTS, [0], "logistic", 0.5).tolist() == [2.0]
    assert surrogate_ranks([1.0] * 3, CUTS, [0], smoothing=2.0).tolist() == [2.0]
    assert fit_proprank(X, CUTS, LOG).gap <= 1e-3
    assert fit_propdcg(X, CUTS, LOG).gap <= 1e-3
    narrow = LinearFit(np.zeros(2), 1.0, 1.0, 2.0, 0.0, 0.0, None, 1.0)
    assert len(select_C(lambda C, start: narrow, [1, 2], X, CUTS, LOG).estimates) == 2
    assert sum(p for p, _ in enumerate_logs(POLICY, USER, [1, 1, 1], [1, 1])) == 1.0
