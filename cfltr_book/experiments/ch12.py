"""What chapter 12 simulates: rankers that learn the top five from clicks on cut-off pages, by several losses; trees."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

import cfltr_book as book
import cfltr_core as cf
from cfltr_book.experiments.learners import (
    ROUNDS,
    Array,
    K,
    clicks_and_looks,
    direct,
    doubly_robust,
    gains_of,
    grown,
    labels_as_log,
    learn,
    log_of,
    weights_by,
)
from cfltr_core.clicks.policies import LoggingPolicy

MOST = 15_000  # documents of the training queries from which all but one table learn
USER = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_plus=1.0, epsilon_minus=0.1)
LEARNERS = ("oblivious", "policy-aware", "capped", "counted", "displayed only", "direct", "doubly robust")
FORESTS = (
    *("production", "ridge", "direct", "raw clicks", "position="),
    *("lambda_objective", "lambda_objective, raw", "lambda_objective, raw, displayed"),
)
# What gains divide by, and which loss is learnt from them; the first loss is that of all other tables.
GAINS = ("oblivious", "policy-aware")
LOSSES = ("at least one", "both", "beyond", "no truncation", "within five", "monotonic", "difference")
CORPORA = ("yahoo-like", "istella-like", "digits")  # of which tables are kept
MANY = 10**8  # clicks, the number of the slides
Setting = dict[str, Any]
# Training, validation and test queries, their features, and the ranks that the production ranker gives.
World = tuple[list[cf.RankingData], list[Array], list[Array]]


def world(run: book.Run, seed: int, rng: np.random.Generator, production: str, most: float = MOST) -> World:
    """Training queries with ``most`` documents, held-out and test queries, and who ranked them.

    The ``production`` ranker learns from "all labels" of these training queries, or from "few labels", those of 1 %.
    """
    data = run.load(seed)
    chosen = rng.permutation(data.train.n_queries)
    enough = np.diff(data.train.offsets)[chosen].cumsum() <= most
    parts = [data.train.subset(np.sort(chosen[enough])), data.validation, data.test]
    x = [part.features for part in parts]
    ranker = (
        learn(x[0], labels_as_log(parts[0]))
        if production == "all labels"
        else cf.fit_linear_ranker(data.train, 0.01, rng=rng)
    )
    scores = [ranker.decision_function(some) for some in x]
    ranks = [
        cf.ranks(s, part.offsets, ties="random", rng=rng).astype(int) for s, part in zip(scores, parts, strict=True)
    ]
    return parts, x, ranks


def page(data: cf.RankingData, rank: Array, places: int, epsilon: float) -> LoggingPolicy:
    """What is displayed: so many places with a random last one in a share of sessions.

    With 0 places it is the whole list, of which the fifth changes place with a random lower one in that share.
    """
    if places:
        return cf.EpsilonGreedyPolicy(rank, data.offsets, epsilon=np.array([0.0] * (places - 1) + [epsilon]))
    fixed = cf.DeterministicPolicy(rank, data.offsets)
    pairs = tuple((K, below) for below in range(K + 1, fixed.cutoff + 1))
    return cf.SwapPolicy(fixed, pairs=pairs, swap=epsilon) if epsilon else fixed


def judged(data: cf.RankingData, scores: Array, k: int = K) -> float:
    """The nDCG@``k`` of a ranker."""
    result = cf.ndcg(scores, data.offsets, relevance=data.binary, cutoff=k)
    return float(result.mean)


def by_loss(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """The nDCG@5 of a ranker from 10^8 clicks on one of several pages, by one of :data:`LOSSES`."""
    (train, _, test), x, ranks = world(run, seed, rng, setting["production"])
    if setting["gains"] == "production":
        return {"ndcg": judged(test, -ranks[2].astype(float))}
    policy = page(train, ranks[0], setting["places"], setting["epsilon"])
    log = run.simulate(policy, USER, relevance=train.binary, rng=rng, n_clicks=MANY)
    aware = gains_of(setting["gains"], log, policy.exposure(USER))
    # Ranks are held fast step by step, so that rounding in single precision ends in another ranker.
    w = weights_by(setting["loss"], x[0].astype(float), aware)
    return {"ndcg": judged(test, x[2].astype(float) @ w)}


def learnt_on_all(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """One ranker from all training queries: nDCG@5, sessions, clicks on hidden documents."""
    (train, _, test), x, ranks = world(run, seed, rng, setting["production"], np.inf)
    kind, out = setting["gains"], {"sessions": 0, "hidden": 0}
    if kind == "production":
        return {"ndcg": judged(test, -ranks[2].astype(float))} | out
    if kind == "labels":
        fit = learn(x[0], labels_as_log(train))
        return {"ndcg": judged(test, fit.decision_function(x[2]))} | out
    policy = page(train, ranks[0], K, setting["epsilon"])
    log = run.simulate(policy, USER, relevance=train.binary, rng=rng, n_clicks=setting["n_clicks"])
    fit = learn(x[0], gains_of(kind, log, policy.exposure(USER)))
    hidden = int(log.clicks[ranks[0][log.document] > K].sum())
    return {"ndcg": judged(test, fit.decision_function(x[2])), "sessions": int(log.n_sessions), "hidden": hidden}


def learner(
    run: book.Run, seed: int, setting: Setting, rng: np.random.Generator, most: float = MOST
) -> dict[str, float]:
    """One of :data:`LEARNERS`: nDCG@5, sessions, clicks on hidden documents.

    "displayed only" compares the documents that the log displays with one another, by clicks per look, and then sorts
    all documents; "direct" sorts them by a regression of clicks per look. Neither is told that hidden is unwanted.
    """
    (train, _, test), x, ranks = world(run, seed, rng, "few labels", most)
    # Ranks are held fast step by step, so that rounding in single precision ends in another ranker.
    x = [some.astype(float) for some in x]
    arm, out = setting["arm"], {"sessions": 0, "hidden": 0}
    if arm == "production":
        return {"ndcg": judged(test, -ranks[2].astype(float))} | out
    if arm == "labels":
        return {"ndcg": judged(test, learn(x[0], labels_as_log(train)).decision_function(x[2]))} | out
    policy = page(train, ranks[0], K, setting["epsilon"])
    log = run.simulate(policy, USER, relevance=train.binary, rng=rng, n_clicks=setting["n_clicks"])
    exposure = policy.exposure(USER)
    clicks, looks = clicks_and_looks(log)
    if arm == "displayed only":
        shown = np.flatnonzero((looks > 0) | np.repeat(log.sessions == 0, np.diff(log.offsets)))
        part = log_of(gains_of("counted", log, exposure), shown)
        w = learn(x[0][shown], part).decision_function(np.eye(x[0].shape[1]))
    elif arm == "direct":
        w = direct(x[0], log)
    elif arm == "doubly robust":
        w = doubly_robust(x[0], log, exposure)
    else:
        w = learn(x[0], gains_of(arm, log, exposure)).decision_function(np.eye(x[0].shape[1]))
    hidden = clicks[ranks[0] > K].sum()
    return {"ndcg": judged(test, x[2] @ w)} | {"sessions": int(log.n_sessions), "hidden": int(hidden)}


def learner_of_all(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """As :func:`learner`, from all training queries."""
    return learner(run, seed, setting, rng, most=np.inf)


def top_k(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """The nDCG@k of a ranker that learnt the top k, from labels or 10^8 clicks on pages of five.

    The last place is random in every session for "policy-aware", and the page never changes for the other arms.
    """
    (train, _, test), x, ranks = world(run, seed, rng, "few labels")
    # Ranks are held fast step by step, so that rounding in single precision ends in another ranker.
    x = [some.astype(float) for some in x]
    arm, k = setting["arm"], setting["k"]
    if arm == "labels":
        return {"ndcg": judged(test, learn(x[0], labels_as_log(train), cutoff=k).decision_function(x[2]), k)}
    policy = page(train, ranks[0], K, float(arm == "policy-aware"))
    log = run.simulate(policy, USER, relevance=train.binary, rng=rng, n_clicks=MANY)
    if arm == "direct":
        return {"ndcg": judged(test, x[2] @ direct(x[0], log), k)}
    fit = learn(x[0], gains_of(arm, log, policy.exposure(USER)), cutoff=k)
    return {"ndcg": judged(test, fit.decision_function(x[2]), k)}


def covered(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """How often an interval of 95 % covers a ranker's true lead in DCG@5 over the deployed one, counted in clicks.

    The ranker is the regression of clicks per look, from 10^6 clicks on pages whose last place is random in a tenth of
    the sessions.  It is judged fifty times, by clicks on such pages of a fifth of the held-out queries, drawn anew each
    time; true is its lead on all of them.  "heavy" counts the clicks that weigh over 50, "below" is the share of
    intervals that lie wholly below the truth.
    """
    (train, held, _), x, ranks = world(run, seed, rng, "few labels")
    log = run.simulate(page(train, ranks[0], K, 0.1), USER, relevance=train.binary, rng=rng, n_clicks=1_000_000)
    scores = x[1].astype(float) @ direct(x[0].astype(float), log)
    added = [np.where(rank <= K, 1 / np.log2(1 + rank), 0) for rank in (cf.ranks(scores, held.offsets), ranks[1])]
    lead = added[0] - added[1]
    clicked = USER.epsilon_minus + (USER.epsilon_plus - USER.epsilon_minus) * held.binary
    truth = (lead * clicked).sum() / held.n_queries
    heavy, low, high = np.zeros((3, 50))
    for i in range(50):
        chosen = np.sort(rng.choice(held.n_queries, held.n_queries // 5, replace=False))
        mine = np.isin(np.repeat(np.arange(held.n_queries), np.diff(held.offsets)), chosen)
        part = held.subset(chosen)
        policy = page(part, ranks[1][mine], K, 0.1)
        exposure = policy.exposure(USER)
        log = run.simulate(policy, USER, relevance=part.binary, rng=rng, n_clicks=setting["n_clicks"])
        low[i], high[i] = cf.ips(cf.policy_aware(log, exposure), lam=lead[mine], unit="query").interval(0.95)
        heavy[i] = log.clicks[exposure[log.document] < 1 / 50].sum()
    return {"heavy": heavy.mean(), "covered": ((low <= truth) & (truth <= high)).mean(), "below": (high < truth).mean()}


def settings_of_learners(run: book.Run) -> list[Setting]:
    """Three pages and four sizes of log, and the learners that the page allows; the two references first."""
    del run
    asked: list[Setting] = [{"epsilon": 0.0, "n_clicks": 0, "arm": arm} for arm in ("production", "labels")]
    for epsilon in (0.0, 0.01, 1.0):
        # A page that never changes gives hidden documents no exposure by which anything could be divided.
        arms = LEARNERS if epsilon else ("oblivious", "displayed only", "direct")
        asked += [{"epsilon": epsilon, "n_clicks": 10**m, "arm": arm} for m in (4, 5, 6, 8) for arm in arms]
    return asked


def forest(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float | None]:
    """The nDCG@10 of trees from 30,000 sessions on pages of ten that never change, among them the rivals of LightGBM.

    The number of rounds is the one that clicks on other queries prefer, by self-normalised DCG@10; ``last`` is the
    nDCG@10 of all rounds.
    """
    (train, held, test), x, ranks = world(run, seed, rng, setting["production"])
    x = [some.astype(float) for some in x]
    logs = []
    for part, rank, sessions in ((train, ranks[0], 30_000), (held, ranks[1], 4_500)):
        policy = cf.DeterministicPolicy(np.where(rank <= 10, rank, 0), part.offsets)
        each = np.full(part.n_queries, max(1, round(sessions / part.n_queries)))
        logs.append(cf.simulate_clicks(policy, USER, relevance=part.binary, sessions=each, rng=rng))

    def ten(scores: Array) -> float:
        return float(cf.ndcg(scores, test.offsets, relevance=test.binary, cutoff=10).mean)

    arm = setting["arm"]
    if arm == "production":
        score = ten(-ranks[2].astype(float))
        return {"ndcg": score, "last": score, "rounds": 0}
    if arm == "ridge":
        score = ten(x[2] @ direct(x[0], logs[0]))
        return {"ndcg": score, "last": score, "rounds": 0}
    if importlib.util.find_spec("lightgbm") is None:
        return {"ndcg": None, "last": None, "rounds": None}
    trees = grown(arm, x[0], logs[0], importlib.import_module("lightgbm"), seed)
    risk = {}
    for n in range(10, ROUNDS + 1, 10):
        weights = cf.rank_weights(trees.predict(x[1], num_iteration=n), held.offsets, metric=cf.dcg(10))
        risk[n] = cf.self_normalised(logs[1], weights).value
    best = min(risk, key=lambda n: risk[n])
    return {"ndcg": ten(trees.predict(x[2], num_iteration=best)), "last": ten(trees.predict(x[2])), "rounds": best}


def settings_by_loss(run: book.Run) -> list[Setting]:
    """Longer and shorter pages, losses on the page of five, and controls: whole lists, and nothing left to learn."""
    del run
    base: Setting = {"places": K, "epsilon": 0.0, "gains": "oblivious", "loss": "at least one"}
    base |= {"production": "few labels"}
    aware: Setting = base | {"epsilon": 1.0, "gains": "policy-aware"}
    asked = [one | {"places": places} for places in (2, 10, 20) for one in (base, aware)]
    asked += [aware | {"loss": loss} for loss in LOSSES[1:]]
    asked += [base | {"places": 0}, *(base | {"places": 0, "epsilon": 0.9, "gains": g} for g in GAINS[:2])]
    return [*asked, *(aware | {"production": "all labels", "gains": g} for g in ("production", "policy-aware"))]


def settings_at_size(run: book.Run) -> list[Setting]:
    """The few settings that are asked at the papers' size, too."""
    sizes = [10**m for m in range(8, 3, -2 * run.size.stride)][::-1]
    logs = [*((1.0, n) for n in sizes), (0.01, MANY)]
    start: Setting = {"epsilon": 0.0, "n_clicks": MANY, "gains": "production", "production": "few labels"}
    return [
        *(start | {"gains": g} for g in ("production", "labels", "oblivious")),
        *(start | {"epsilon": e, "n_clicks": n, "gains": g} for e, n in logs for g in GAINS[:2]),
    ]


# Each cell takes all threads; learners round otherwise on other processors.
one_by_one = partial(book.Experiment, seeds=attrgetter("seeds"), at_once=lambda run: 1, rtol=5e-3)
BY_LOSS = one_by_one(
    "losses",
    by_loss,
    settings=settings_by_loss,
    stream=1201,
)
LEARNT_FROM = one_by_one(
    "learners",
    learner,
    settings=settings_of_learners,
    stream=1201,
)
MORE_QUERIES = one_by_one(
    "more-queries",
    learner_of_all,
    settings=lambda run: [
        {"epsilon": 0.0, "n_clicks": n, "arm": arm}
        for arm, n in (("labels", 0), *((arm, MANY) for arm in ("oblivious", "displayed only", "direct")))
    ],
    stream=1201,
)
TOP_K = one_by_one(
    "top-k",
    top_k,
    settings=lambda run: [
        {"k": k, "arm": arm} for k in (1, 3, 5, 10) for arm in ("labels", "oblivious", "direct", "policy-aware")
    ],
    stream=1201,
)
COVERED = one_by_one(
    "heavy-clicks",
    covered,
    settings=lambda run: [{"n_clicks": n} for n in (1_000, 3_000, 10_000, 30_000, 100_000)],
    stream=1211,
    rtol=0.05,
)
TREES = one_by_one(
    "forests",
    forest,
    settings=lambda run: [{"production": p, "arm": arm} for p in ("few labels", "all labels") for arm in FORESTS],
    stream=1205,
    seeds=lambda run: run.seeds[:5],
)
ALL_QUERIES = book.Experiment(
    "all-queries", learnt_on_all, settings=settings_at_size, stream=1204, seeds=lambda run: run.seeds[:1]
)


@dataclass(frozen=True, eq=False)
class Month:
    """Clicks of a month on pages whose last place is random in a tenth of the sessions.

    For each document of the ``log``, ``features`` has a row and ``exposure`` a number; so has ``deployed``, the scores
    of the ranker that made the pages.
    """

    features: Array
    log: cf.ClickLog
    exposure: Array
    deployed: Array


@cache
def months(run: book.Run) -> tuple[Month, Month]:
    """The first seed's training queries in a month, and other queries, on whose clicks nothing was learnt."""
    parts, x, ranks = world(run, run.seed, run.rng(run.seed, 1202), "few labels")
    rng, found = run.rng(run.seed, 1203), []
    for part, some, rank in zip(parts[:2], x, ranks, strict=False):
        policy = page(part, rank, K, 0.1)
        log = run.simulate(policy, USER, relevance=part.binary, rng=rng, n_clicks=1_000_000)
        found.append(Month(some, log, policy.exposure(USER), -rank.astype(float)))
    return found[0], found[1]


@cache
def table(run: book.Run, experiment: book.Experiment) -> pd.DataFrame:
    """``run.table``, asked once: each time it computes some kept cells again, and a page reads each table often."""
    return run.table(experiment)


def everywhere(run: book.Run, experiment: book.Experiment) -> pd.DataFrame:
    """A table of the run's corpus, and where it is kept those of other corpora, with a column ``corpus``.

    There is a column ``behind``, too: the nDCG less that of the ranker that learnt from labels, on the same seed and
    for the same k, in the same table or else in :data:`LEARNT_FROM`.
    """
    found, names = [], CORPORA if table(run, experiment).attrs["kept"] else ()
    for name in dict.fromkeys([run.corpus, *names]):
        both = experiment, LEARNT_FROM
        tables = [table(run, one) if name == run.corpus else one.kept_table(run.scale, name) for one in both]
        source = next((some for some in tables if some is not None and "labels" in set(some.get("arm", []))), None)
        if tables[0] is None or source is None:
            continue
        keys = [key for key in ("seed", "k") if key in tables[0]]
        labels = source.loc[source["arm"] == "labels", [*keys, "ndcg"]].rename(columns={"ndcg": "behind"})
        rows = tables[0].assign(corpus=name).merge(labels, how="left", on=keys)
        found.append(rows.assign(behind=rows["ndcg"] - rows["behind"]))
    return pd.concat(found, ignore_index=True)
