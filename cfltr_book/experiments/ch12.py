"""What chapter 12 simulates: rankers that learn the top five from clicks on cut-off pages, and their rivals."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np

import cfltr_book as book
import cfltr_core as cf
from cfltr_book.experiments.learners import (
    ROUNDS,
    Array,
    K,
    click_regression,
    clicks_and_looks,
    climb,
    columns_of,
    doubly_robust,
    gains_of,
    grown,
    labels_as_log,
    learn,
    log_of,
    luce_slopes,
    only_shown,
)
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.learning.lambdaloss_fit import lambda_objective

MOST = 15_000  # documents of the training queries from which all but one table learn
USER = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_plus=1.0, epsilon_minus=0.1)
LEARNERS = ("oblivious", "policy-aware", "capped", "counted", "displayed only", "direct", "doubly robust")
FORESTS = (
    *("production", "ridge", "direct", "raw clicks", "position="),
    *("lambda_objective", "lambda_objective, raw", "lambda_objective, raw, displayed"),
)
ARMS = ("LambdaLoss", "SVM PropRank", "SVM PropDCG", "doubly robust", "policy gradient", "network", "trees")
Setting = dict[str, Any]
Scorer = Callable[[Array], Array]
# Training, validation and test queries, their features, and the ranks that the production ranker gives.
World = tuple[list[cf.RankingData], list[Array], list[Array]]


def decades(run: book.Run) -> tuple[int, ...]:
    """The numbers of clicks of a run's logs, from the smallest to the largest."""
    return tuple(10**m for m in range(8, 3, -run.size.stride))[::-1]


def ends(run: book.Run) -> tuple[int, ...]:
    """Every other number of clicks, the largest among them."""
    return decades(run)[::-2][::-1]


def base(run: book.Run) -> Setting:
    """The setting from which all others differ: the production ranker itself, on the page that never changes."""
    start = {"whole": False, "epsilon": 0.0, "n_clicks": decades(run)[-1]}
    return start | {"gains": "production", "production": "few labels"}


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


def page(data: cf.RankingData, rank: Array, whole: bool, epsilon: float) -> LoggingPolicy:
    """What is displayed: five places with a random last one in a share of sessions, or the whole list with swaps."""
    if not whole:
        return cf.EpsilonGreedyPolicy(rank, data.offsets, epsilon=np.array([0.0] * (K - 1) + [epsilon]))
    fixed = cf.DeterministicPolicy(rank, data.offsets)
    pairs = tuple((K, below) for below in range(K + 1, fixed.cutoff + 1))
    return cf.SwapPolicy(fixed, pairs=pairs, swap=epsilon) if epsilon else fixed


def judged(data: cf.RankingData, scores: Array) -> float:
    """The nDCG@5 of a ranker."""
    result = cf.ndcg(scores, data.offsets, relevance=data.binary, cutoff=K)
    return float(result.mean)


def learnt(
    run: book.Run, seed: int, setting: Setting, rng: np.random.Generator, most: float = MOST
) -> dict[str, float]:
    """One ranker: nDCG@5, sessions, clicks on hidden documents, and DCG@5 by held-out clicks."""
    (train, held, test), x, ranks = world(run, seed, rng, setting["production"], most)
    kind, n = setting["gains"], setting["n_clicks"]
    out = {"sessions": 0, "hidden": 0, "held_out": 0.0}
    if kind == "production":
        return {"ndcg": judged(test, -ranks[2].astype(float))} | out
    if kind == "labels":
        fit = learn(x[0], labels_as_log(train))
        return {"ndcg": judged(test, fit.decision_function(x[2]))} | out
    policy, judge = (
        page(data, rank, setting["whole"], setting["epsilon"]) for data, rank in ((train, ranks[0]), (held, ranks[1]))
    )
    log = run.simulate(policy, USER, relevance=train.binary, rng=rng, n_clicks=n)
    kept = run.simulate(judge, USER, relevance=held.binary, rng=rng, n_clicks=0.15 * n)
    way: dict[str, Any] = {"form": "difference"} if kind == "difference" else {}
    way |= {"truncation": kind} if kind in ("both", "beyond") else {}
    way |= {"cutoff": None} if kind == "no truncation" else {}
    if kind == "rerank":
        shown, part = only_shown(log, ranks[0])
        scores = learn(x[0][shown], part).decision_function(x[2])
        scores = np.where(ranks[2] <= K, 1 / (1 + np.exp(-scores)), -1.0 * ranks[2])
    else:
        fit = learn(x[0], gains_of(kind, log, policy.exposure(USER)), **way)
        scores = fit.decision_function(x[2])
        aware = gains_of("aware", kept, judge.exposure(USER))
        weights = cf.rank_weights(fit.decision_function(x[1]), held.offsets, metric=cf.dcg(K))
        out["held_out"] = float(-cf.self_normalised(aware, weights).value)
    hidden = log.clicks[ranks[0][log.document] > K].sum()
    return {"ndcg": judged(test, scores)} | out | {"sessions": int(log.n_sessions), "hidden": int(hidden)}


def learnt_on_all(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """As :func:`learnt`, from all training queries."""
    return learnt(run, seed, setting, rng, most=np.inf)


def _svm(fitter: Callable[..., Any], x: Array, log: cf.ClickLog, held_x: Array, held_log: cf.ClickLog) -> Scorer:
    """A support vector machine, with the constant C that held-out clicks choose."""

    def fit(C: float, start: Any) -> Any:
        return fitter(x, log, C=C, start=start)

    chosen = cf.select_C(fit, [0.1, 1, 10], features=held_x, log=held_log, metric=cf.dcg(K), extend=2)
    scorer: Scorer = chosen.fit.decision_function
    return scorer


def _network(seed: int, x: Array, log: cf.ClickLog, held_x: Array, held_log: cf.ClickLog) -> Scorer:
    """LambdaLoss with a network of 50 hidden units, as good as its best epoch by held-out clicks."""
    scorer: Scorer = cf.fit_lambdaloss(
        x,
        log,
        cutoff=K,
        module=lambda: cf.two_layer(x.shape[1], hidden=50),
        learning_rate=[(25, 0.01), (15, 0.002)],
        validation=(held_x, held_log),
        seed=seed,
        progress=False,
    ).decision_function
    return scorer


def _trees(seed: int, x: Array, log: cf.ClickLog, held_x: Array, held_log: cf.ClickLog) -> Scorer | None:
    """Boosted trees where LightGBM is installed, else None; held-out clicks say how many."""
    if importlib.util.find_spec("lightgbm") is None:
        return None
    gbm = importlib.import_module("lightgbm")
    settings = {
        "objective": lambda_objective(log, cutoff=K),
        "seed": seed,
        "learning_rate": 0.1,
        "num_leaves": 15,
        "min_data_in_leaf": 50,
        "num_threads": 1,
        "deterministic": True,
        "verbose": -1,
    }
    forest = gbm.train(settings, gbm.Dataset(x, np.zeros(len(x))), 200)
    risk = {}
    for n in range(10, 201, 10):
        scores = forest.predict(held_x, num_iteration=n)
        weights = cf.rank_weights(scores, held_log.offsets, metric=cf.dcg(K))
        risk[n] = cf.self_normalised(held_log, weights).value
    best = min(risk, key=lambda n: risk[n])
    return lambda rows: np.asarray(forest.predict(rows, num_iteration=best))


def rival(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float | None]:
    """The nDCG@5 of one of :data:`ARMS`, from the very log of :data:`TOP_FIVE` with a random last place."""
    (train, held, test), x, ranks = world(run, seed, rng, "few labels")
    n, arm, logs = setting["n_clicks"], setting["arm"], []
    for part, rank, m in ((train, ranks[0], n), (held, ranks[1], 0.15 * n)):
        policy = page(part, rank, False, 1.0)
        log = run.simulate(policy, USER, relevance=part.binary, rng=rng, n_clicks=m)
        logs.append((log, policy.exposure(USER)))
    (log, p), aware = logs[0], [cf.policy_aware(*pair) for pair in logs]
    given = (x[0], aware[0], x[1], aware[1])
    gains = np.bincount(log.document, log.clicks / p[log.document], len(p))
    scorer: Scorer | None
    if arm == "LambdaLoss":
        scorer = learn(x[0], aware[0]).decision_function
    elif arm == "doubly robust":
        w = doubly_robust(x[0], log, p)
        scorer = lambda rows: rows @ w  # noqa: E731
    elif arm == "policy gradient":
        gains = gains / gains.sum()
        w = climb(x[0], lambda s: luce_slopes(s, gains, log.offsets, rng))
        scorer = lambda rows: rows @ w  # noqa: E731
    elif arm in ("SVM PropRank", "SVM PropDCG"):
        scorer = _svm(cf.fit_proprank if arm == "SVM PropRank" else cf.fit_propdcg, *given)
    else:
        scorer = {"network": _network, "trees": _trees}[arm](seed, *given)
    return {"ndcg": None if scorer is None else judged(test, scorer(x[2]))}


def learner(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """One of :data:`LEARNERS` from the very log of :data:`TOP_FIVE`: nDCG@5, sessions, clicks on hidden documents.

    "displayed only" compares the documents that the log displays with one another, by clicks per look, and then sorts
    all documents; "direct" sorts them by a regression of clicks per look. Neither is told that hidden is unwanted.
    """
    (train, _, test), x, ranks = world(run, seed, rng, "few labels")
    # Ranks are held fast step by step, so that rounding in single precision ends in another ranker.
    x = [some.astype(float) for some in x]
    arm, out = setting["arm"], {"sessions": 0, "hidden": 0}
    if arm == "production":
        return {"ndcg": judged(test, -ranks[2].astype(float))} | out
    if arm == "labels":
        return {"ndcg": judged(test, learn(x[0], labels_as_log(train)).decision_function(x[2]))} | out
    policy = page(train, ranks[0], False, setting["epsilon"])
    log = run.simulate(policy, USER, relevance=train.binary, rng=rng, n_clicks=setting["n_clicks"])
    exposure = policy.exposure(USER)
    clicks, looks = clicks_and_looks(log)
    if arm == "displayed only":
        shown = np.flatnonzero((looks > 0) | np.repeat(log.sessions == 0, np.diff(log.offsets)))
        part = log_of(gains_of("counted", log, exposure), shown)
        w = learn(x[0][shown], part).decision_function(np.eye(x[0].shape[1]))
    elif arm == "direct":
        w = click_regression(columns_of(x[0]), clicks, looks)[1:] / (x[0].std(axis=0) + 1e-12)
    elif arm == "doubly robust":
        w = doubly_robust(x[0], log, exposure)
    else:
        w = learn(x[0], gains_of(arm, log, exposure)).decision_function(np.eye(x[0].shape[1]))
    hidden = clicks[ranks[0] > K].sum()
    return {"ndcg": judged(test, x[2] @ w)} | {"sessions": int(log.n_sessions), "hidden": int(hidden)}


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
        w = click_regression(columns_of(x[0]), *clicks_and_looks(logs[0]))[1:] / (x[0].std(axis=0) + 1e-12)
        score = ten(x[2] @ w)
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


def settings_of_all(run: book.Run) -> list[Setting]:
    """Each page, kind of gains and number of clicks of which the chapter shows a ranker."""
    start, sizes, few = base(run), decades(run), ends(run)
    asked = [start, start | {"gains": "labels"}]
    asked += [start | {"n_clicks": n, "gains": g} for g in ("oblivious", "rerank") for n in sizes]
    asked += [
        start | {"epsilon": 1.0, "n_clicks": n, "gains": g}
        for n in sizes
        for g in ("oblivious", "policy-aware", "capped", "counted")
    ]
    asked += [
        start | {"epsilon": 0.01, "n_clicks": n, "gains": g} for n in sizes for g in ("oblivious", "policy-aware")
    ]
    asked += [start | {"whole": True, "n_clicks": n, "gains": "oblivious"} for n in few]
    asked += [
        start | {"whole": True, "epsilon": 0.9, "n_clicks": n, "gains": g}
        for n in few
        for g in ("oblivious", "policy-aware")
    ]
    asked += [start | {"epsilon": 1.0, "gains": g} for g in ("beyond", "both", "no truncation")]
    asked += [start | {"epsilon": 1.0, "n_clicks": n, "gains": "difference"} for n in few]
    no_room = start | {"production": "all labels"}
    return [*asked, no_room, no_room | {"epsilon": 1.0, "gains": "policy-aware"}]


def settings_at_size(run: book.Run) -> list[Setting]:
    """The few settings that are asked at the papers' size, too."""
    start, few = base(run), ends(run)
    pages = [*((1.0, n) for n in few), (0.01, few[-1])]
    return [
        *(start | {"gains": g} for g in ("production", "labels", "oblivious")),
        *(start | {"epsilon": e, "n_clicks": n, "gains": g} for e, n in pages for g in ("oblivious", "policy-aware")),
    ]


TOP_FIVE = book.Experiment(
    "top-five",
    learnt,
    settings=settings_of_all,
    stream=1201,
    seeds=attrgetter("seeds"),
    at_once=attrgetter("size.seeds"),
    rtol=5e-3,
)
RIVALS = book.Experiment(
    "arms",
    rival,
    settings=lambda run: [{"arm": arm, "n_clicks": n} for n in (10**5, 10**7) for arm in ARMS],
    stream=1201,
    seeds=attrgetter("seeds"),
    at_once=lambda run: 1,
    rtol=5e-3,
)
LEARNT_FROM = book.Experiment(
    "learners",
    learner,
    settings=settings_of_learners,
    stream=1201,
    seeds=attrgetter("seeds"),
    at_once=lambda run: 1,
    rtol=5e-3,
)
TREES = book.Experiment(
    "forests",
    forest,
    settings=lambda run: [{"production": p, "arm": arm} for p in ("few labels", "all labels") for arm in FORESTS],
    stream=1205,
    seeds=lambda run: run.seeds[:5],
    at_once=lambda run: 1,
    rtol=5e-3,
)
ALL_QUERIES = book.Experiment(
    "all-queries", learnt_on_all, settings=settings_at_size, stream=1204, seeds=lambda run: run.seeds[:1]
)
