"""What chapter 7 simulates: populations with their logs, and what SVM PropRank and SVM PropDCG learn along C."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cfltr_book as book
import cfltr_core as cf
from cfltr_book.data.scales import Corpus

LAM = cf.dcg()
PATHS = ("proprank", "propdcg", "warm")
Array = NDArray[Any]
Setting = Mapping[str, Any]
# Queries, their logger, a log of the training queries and one of the validation queries.
World = tuple[Corpus, cf.LinearRanker, cf.ClickLog, cf.ClickLog]


def usual(run: book.Run) -> dict[str, Any]:
    """The setting from which all others differ."""
    return {"n_clicks": run.size.clicks[1], "eta": 1.0, "noise": 0.1, "assumed": 1.0, "weights": "ips"}


def logs_of(
    data: Corpus, logger: cf.LinearRanker, setting: Setting, rng: np.random.Generator
) -> tuple[cf.ClickLog, cf.ClickLog]:
    """A log of the training queries, and one of the validation queries."""
    user = cf.PositionBasedUser(cf.power_examination(setting["eta"]), epsilon_minus=setting["noise"])
    train, valid = data.train, data.validation
    pages = [
        cf.DeterministicPolicy.rank_by(logger.decision_function(part.features), part.offsets, rng=rng)
        for part in (train, valid)
    ]
    log = book.Run.simulate(pages[0], user, relevance=train.binary, n_clicks=setting["n_clicks"], rng=rng)
    share = max(1, round(log.n_sessions * valid.n_queries / train.n_queries))
    return log, book.Run.simulate(pages[1], user, relevance=valid.binary, n_sessions=share, rng=rng)


def labelled(part: cf.RankingData) -> cf.ClickLog:
    """Every relevant document clicked once, at propensity 1: all labels, as a log."""
    once = np.ones(part.n_docs, dtype=int)
    return cf.ClickLog(
        document=np.arange(part.n_docs),
        rank=once,
        impressions=once,
        propensity=once,
        clicks=part.binary.astype(int),
        sessions=np.ones(part.n_queries, int),
        offsets=part.offsets,
    )


def world(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> World:
    """The queries, their logger, and the logs; all labels if no clicks are wanted."""
    data = run.load(seed)
    logger = cf.fit_linear_ranker(data.train, 0.01, rng=rng)
    if setting["n_clicks"] == 0:
        return data, logger, labelled(data.train), labelled(data.validation)
    return data, logger, *logs_of(data, logger, setting, rng)


def clicked_part(part: cf.RankingData, log: cf.ClickLog) -> tuple[cf.RankingData, cf.ClickLog]:
    """The queries that have clicks, and their log: the others do not teach anything."""
    queries = np.unique(log.query[log.clicks > 0])
    some = part.subset(queries)
    inside = np.isin(log.query, queries)
    shift = some.offsets[np.searchsorted(queries, log.query[inside])] - part.offsets[log.query[inside]]
    columns = {name: getattr(log, name)[inside] for name in ("rank", "impressions", "clicks", "propensity")}
    document, sessions = log.document[inside] + shift, log.sessions[queries]
    return some, cf.ClickLog(document=document, sessions=sessions, offsets=some.offsets, **columns)


def stretch(log: cf.ClickLog) -> float:
    """The mean of c / c′ at w = 0: by so much the C of SVM PropDCG must be larger."""
    lengths = np.diff(log.offsets)[log.query]
    return float(np.average(1 / LAM.slope(lengths), weights=log.clicks))


def judged(scores: Array, part: cf.RankingData) -> tuple[float, float]:
    """DCG and average rank per relevant document."""
    risk = [
        cf.additive_metric(scores, part.offsets, relevance=part.binary, metric=metric)
        for metric in (LAM, cf.average_rank())
    ]
    dcg, rank = np.sum(risk, axis=1) / part.binary.sum()
    return -float(dcg), float(rank)


def tested(scorer: Any, part: cf.RankingData) -> tuple[float, float]:
    """As :func:`judged`, of anything that has a ``decision_function``."""
    return judged(scorer.decision_function(part.features), part)


def held_dcg(scorer: Any, part: cf.RankingData, log: cf.ClickLog) -> float:
    """The self-normalised estimate of DCG on validation clicks."""
    scores = scorer.decision_function(part.features)
    ranked = cf.rank_weights(scores, log.offsets, metric=LAM)
    return -float(cf.self_normalised(log, ranked).value)


def path_of(
    fit: Callable[..., Any],
    grid: Iterable[float],
    *,
    train: cf.RankingData,
    log: cf.ClickLog,
    data: Corpus,
    held_out: cf.ClickLog,
    warm: bool,
    **settings: float,
) -> list[tuple[float, float, float]]:
    """Estimate by validation clicks, test DCG and passes at every C of the grid, each begun at the last if ``warm``."""
    last, rows = None, []
    for C in grid:
        last = fit(train.features, log, C=C, start=last if warm else None, **settings)
        rows.append((held_dcg(last, data.validation, held_out), tested(last, data.test)[0], last.passes))
    return rows


def along_C(run: book.Run, seed: int, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """All of the grid for SVM PropRank, and for SVM PropDCG begun cold and warm: see :func:`path_of`."""
    data, _, log, held_out = world(run, seed, usual(run) | {**setting}, rng)
    train, log = clicked_part(data.train, log)
    grid = np.array(run.size.C_grid)
    given: dict[str, Any] = {"train": train, "log": log, "data": data, "held_out": held_out}
    dcg_grid = grid * stretch(log)
    rough: dict[str, Any] = given | {"gap": 0.05, "decrease": 0.03}
    paths = (
        path_of(cf.fit_proprank, grid, **given, warm=True, gap=0.05),
        path_of(cf.fit_propdcg, dcg_grid, **rough, warm=False),
        path_of(cf.fit_propdcg, dcg_grid, **rough, warm=True),
    )
    return {
        f"{name}_{what}_{i}": value
        for name, path in zip(PATHS, paths, strict=True)
        for i, row in enumerate(path)
        for what, value in zip(("held", "dcg", "passes"), row, strict=True)
    }


ALONG_C = book.Experiment(
    "along-c", along_C, settings=lambda run: [{"n_clicks": n} for n in run.size.clicks[:2]], stream=701, rtol=5e-3
)
