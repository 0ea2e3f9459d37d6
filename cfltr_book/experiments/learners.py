"""How the rankers of chapter 12 learn from a log of a cut-off page, whatever the log is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cfltr_core as cf
from cfltr_core.learning.lambda_pairs import LambdaLists
from cfltr_core.learning.lambdaloss_fit import LambdaFit, lambda_objective
from cfltr_core.learning.networks import DeepFit
from cfltr_core.ranking.ragged import length_groups

K = 5  # places of a page
ROUNDS = 100  # of boosted trees from a page of ten
Array = NDArray[Any]


def gains_of(kind: str, log: cf.ClickLog, exposure: Array) -> cf.ClickLog:
    """The log with the propensities that a kind of gains divides by."""
    if kind == "oblivious":
        return log
    if kind == "counted":  # from the displays in this log
        looks = log.impressions * log.propensity
        seen = np.bincount(log.document, looks, minlength=log.offsets[-1])
        sessions = np.repeat(np.maximum(log.sessions, 1), np.diff(log.offsets))
        exposure = seen / sessions
    if kind == "capped":
        exposure = np.maximum(exposure, 1 / released_cap(log.n_clicks))
    return cf.policy_aware(log, np.minimum(exposure, 1))


def learn(features: Array, log: cf.ClickLog, **way: Any) -> LambdaFit | DeepFit:
    """A linear scorer by LambdaLoss; ``way`` changes what the experiment does."""
    rates = [(25, 0.05), (15, 0.01)]  # epochs at each rate
    usual: dict[str, Any] = {"cutoff": K, "learning_rate": rates}
    return cf.fit_lambdaloss(features, log, **(usual | way))


def released_cap(n_clicks: float) -> float:
    """The largest weight in the released code for Yahoo, where the log has so many clicks."""
    x = np.log10(max(n_clicks, 1)) - 4
    return max(1.0, float(1 - 3 * x + 32 * x**2))


def labels_as_log(data: cf.RankingData) -> cf.ClickLog:
    """A log in which every relevant document was displayed first, once, and clicked."""
    ones = np.ones(data.n_docs, dtype=int)
    return cf.ClickLog(
        document=np.arange(data.n_docs),
        rank=ones,
        impressions=ones,
        clicks=data.binary.astype(int),
        propensity=ones,
        sessions=np.ones(data.n_queries, dtype=int),
        offsets=data.offsets,
    )


def log_of(log: cf.ClickLog, shown: Array) -> cf.ClickLog:
    """The log as one of lists that hold only some documents, those that it displays among them."""
    return cf.ClickLog(
        document=np.searchsorted(shown, log.document),
        rank=log.rank,
        impressions=log.impressions,
        clicks=log.clicks,
        propensity=log.propensity,
        sessions=log.sessions,
        offsets=np.searchsorted(shown, log.offsets),
    )


def climb(x: Array, slopes: Callable[[Array], Array]) -> Array:
    """The weights after forty steps of Adam, those of :func:`learn`, along any slopes in scores."""
    spread = x.std(axis=0, dtype=float)
    dead = spread <= 1e-12 * np.abs(x).max(axis=0)
    spread = np.where(dead, 1, spread)
    unit = np.where(dead, 0, x / spread)
    w, mean, square = np.zeros((3, x.shape[1]))
    for step in range(1, 41):
        slope = slopes(unit @ w) @ unit
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        size = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        w = w - (0.05 if step <= 25 else 0.01) * size
    return np.asarray(w / spread)


def corrected(guess: Array, log: cf.ClickLog, exposure: Array) -> Array:
    """Guesses of all gains, corrected by clicks; times sessions, as clicks / p are."""
    sessions = np.repeat(log.sessions, np.diff(log.offsets))
    clicks, looks = clicks_and_looks(log)
    return np.asarray(sessions * guess + (clicks - guess * looks) / exposure)


def clicks_and_looks(log: cf.ClickLog) -> tuple[Array, Array]:
    """The clicks on each document, and how often users will have looked at it."""
    n = log.offsets[-1]
    looks = np.bincount(log.document, log.impressions * log.propensity, minlength=n)
    return np.bincount(log.document, log.clicks, minlength=n), looks


def columns_of(x: Array) -> Array:
    """A constant and the features in their standard deviations, from their means."""
    return np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-12)])


def click_regression(columns: Array, clicks: Array, looks: Array) -> Array:
    """The weights of a ridge regression of clicks per look, in which a document counts by its looks."""
    penalty = 10 * looks.mean() * np.eye(columns.shape[1])
    return np.asarray(np.linalg.solve(columns.T @ (looks[:, None] * columns) + penalty, columns.T @ clicks))


def direct(x: Array, log: cf.ClickLog) -> Array:
    """The weights of features in a regression of clicks per look: whoever was never displayed is left out."""
    return np.asarray(click_regression(columns_of(x), *clicks_and_looks(log))[1:] / (x.std(axis=0) + 1e-12))


def cross_fitted(x: Array, log: cf.ClickLog) -> Array:
    """Clicks per look by ridge regression on the features of four fifths of the queries, for the last fifth."""
    query = np.repeat(np.arange(len(log.sessions)), np.diff(log.offsets))
    columns, (clicks, looks) = columns_of(x), clicks_and_looks(log)
    guess = np.zeros(len(x))
    for fold in range(5):
        mine = query % 5 != fold
        w = click_regression(columns[mine], clicks[mine], looks[mine])
        guess = guess + np.where(mine, 0, np.clip(columns @ w, 0, 1))
    return guess


def doubly_robust(x: Array, log: cf.ClickLog, exposure: Array) -> Array:
    """The weights that LambdaLoss learns from doubly robust gains."""
    gains = corrected(cross_fitted(x, log), log, exposure)
    gains = gains / np.abs(gains).sum()

    def part_slopes(scores: Array, some: Array) -> Array:
        return cf.lambda_loss(scores, log.offsets, gains=np.maximum(some, 0), cutoff=K).gradient

    # The loss is linear in the gains: what is negative is taken off.
    return climb(x, lambda scores: part_slopes(scores, gains) - part_slopes(scores, -gains))


def within(offsets: Array, gains: Array, k: int) -> LambdaLists:
    """LambdaLoss of pairs at most ``k`` ranks apart; the last of them has what is left of the steps of the discount."""
    lists = LambdaLists(offsets, gains)
    lists.delta[k + 1 :] = 0
    lists.delta[k : k + 1] = 1 / np.log2(k + 1)
    return lists


def monotonic_slopes(scores: Array, gains: Array, offsets: Array) -> Array:
    """The slopes of minus the gains over log2(1 + r), with r a logistic bound of the rank."""
    slopes = np.zeros(len(scores))
    for _, index in length_groups(offsets):
        s, g = scores[index], gains[index]
        gaps = s[:, None, :] - s[:, :, None]  # of the others, above each document
        bound = np.logaddexp(0, gaps).sum(axis=2) / np.log(2)  # beside itself a document counts 1
        push = g / (np.log2(1 + bound) ** 2 * (1 + bound) * np.log(2) ** 2)
        pulls = push[:, :, None] / (1 + np.exp(-gaps))
        slopes[index] = pulls.sum(axis=1) - pulls.sum(axis=2)
    return slopes


def weights_by(loss: str, x: Array, log: cf.ClickLog) -> Array:
    """The weights of a linear scorer that learns from the gains of a log by one of several losses."""
    gains = np.bincount(log.document, log.clicks * log.weights, minlength=len(x))
    gains = gains / gains.sum()
    if loss == "within five":
        lists = within(log.offsets, gains, K)
        return climb(x, lambda scores: lists.loss(scores).gradient)
    if loss == "monotonic":
        return climb(x, lambda scores: monotonic_slopes(scores, gains, log.offsets))
    ways: dict[str, dict[str, Any]] = {
        "at least one": {},
        "both": {"truncation": "both"},
        "beyond": {"truncation": "beyond"},
        "no truncation": {"cutoff": None},
        "difference": {"form": "difference"},
    }
    return np.asarray(learn(x, log, **ways[loss]).weights)


def grown(arm: str, x: Array, log: cf.ClickLog, gbm: Any, seed: int) -> Any:
    """Boosted trees from a page that never changes, as LightGBM or the book offers them: an arm of ``FORESTS``."""
    settings: dict[str, Any] = {
        "seed": seed,
        "learning_rate": 0.1,
        "num_leaves": 15,
        "min_data_in_leaf": 50,
        "num_threads": 1,
        "deterministic": True,
        "verbose": -1,
    }
    clicks, looks = clicks_and_looks(log)
    rows = np.flatnonzero(looks > 0)  # documents that were displayed
    if arm.startswith("lambda_objective"):
        log = cf.policy_aware(log, np.ones(len(x))) if "raw" in arm else log
        if "displayed" in arm:
            x, log = x[rows], log_of(log, rows)
        settings["objective"] = lambda_objective(log, cutoff=10)
        return gbm.train(settings, gbm.Dataset(x, np.zeros(len(x))), ROUNDS)
    if arm == "direct":
        settings["objective"] = "poisson"
        rate = clicks[rows] / looks[rows]
        return gbm.train(settings, gbm.Dataset(x[rows], rate, weight=looks[rows]), ROUNDS)
    settings |= {"objective": "lambdarank", "label_gain": list(range(31)), "lambdarank_truncation_level": 10}
    ranks = np.zeros(len(x), dtype=int)
    ranks[log.document] = log.rank
    data = gbm.Dataset(
        x[rows],
        np.minimum(clicks[rows], 30),  # LightGBM has 31 labels, unless told otherwise
        group=np.diff(np.searchsorted(rows, log.offsets)),
        position=ranks[rows] if arm == "position=" else None,
    )
    return gbm.train(settings, data, ROUNDS)
