"""What chapter 17 measures: weights and estimates on the logs of Open Bandit, on halves of them, and on made logs.

A *log* is a data frame of slots with the columns ``item``, ``position``, ``click`` and ``propensity``; the *target* is
the policy that it judges, and the other of the two.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

import cfltr_book as book
from cfltr_book.data.open_bandit import CAMPAIGNS, open_bandit
from cfltr_core.checks import FloatArray, IntArray

# Each log judges the other policy of its campaign.
TARGET = {"random": "bts", "bts": "random"}
NAMES = {"random": "random", "bts": "Thompson"}
# Fewer effective clicks than these are to be expected: the interval of the estimate would reach 0, as 1.96² = 3.84.
ENOUGH = 4
# The mean weight must be 1 within so many standard errors: of six logs one is refused by chance once in sixty times.
WITHIN = 3
CAP = 20
# Made logs: how sharply the policy prefers items, and how many rows it logs.
SHARPNESS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
ROWS = (2_000, 10_000, 50_000)
ITEMS = 40
CLICK_RATE = 0.005


class Verdict(NamedTuple):
    """What weights say before any estimate: their mean with its standard error, and the effective clicks to expect."""

    mean: float
    error: float
    effective: float
    largest: float
    clicks: float

    @property
    def kept(self) -> bool:
        """Whether the rule keeps the estimate."""
        return abs(self.mean - 1) <= WITHIN * self.error and self.clicks >= ENOUGH


def target_chances(log: pd.DataFrame, target: str, shown: pd.DataFrame) -> FloatArray:
    """π(a | k) of each row's item a at its position k under the ``target``.

    Random shows each of the n items with probability 1/n.  Thompson sampling changes all the time, so what stands here
    is its average over the week, the share of the slots at position k in its own log, ``shown``, that held the item.
    Neither looks at a click.
    """
    if target == "random":
        return np.full(len(log), 1 / log["item"].nunique())
    cells = shown.groupby(["position", "item"]).size()
    share = cells / cells.groupby("position").transform("sum")
    return share.reindex(pd.MultiIndex.from_frame(log[["position", "item"]])).fillna(0.0).to_numpy()


def judge(weight: FloatArray, click_rate: float) -> Verdict:
    """The diagnostics of a log with these weights; of the clicks only their rate is read, which all logs have."""
    mean, error = weight.mean(), weight.std(ddof=1) / np.sqrt(len(weight))
    effective = weight.sum() ** 2 / (weight**2).sum()
    return Verdict(mean, error, effective, weight.max() / weight.sum(), effective * click_rate)


def estimates(log: pd.DataFrame, chance: FloatArray, model: FloatArray, expected: FloatArray) -> pd.DataFrame:
    """The target's click rate by each estimate, a row each, with its standard error.

    Parameters
    ----------
    log : DataFrame
    chance : (n_rows,)
        Of the row's item under the target.
    model, expected : (n_rows,)
        A predicted click rate of the row's item, and its mean over the items that the target might show there.
    """
    weight, click = chance / log["propensity"].to_numpy(), log["click"].to_numpy()
    mean = (weight * click).sum() / weight.sum()
    parts = {
        "IPS": weight * click,
        "clipped": np.minimum(weight, CAP) * click,
        # Its standard error is that of a ratio.
        "self-normalised": mean + weight * (click - mean) / weight.mean(),
        "doubly robust": expected + weight * (click - model),
    }
    rows = {name: (part.mean(), part.std(ddof=1) / np.sqrt(len(part))) for name, part in parts.items()}
    return pd.DataFrame(rows, index=["rate", "error"]).T


def click_model(log: pd.DataFrame, chance_of: pd.DataFrame, *, clicks: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Predicted click rate of each row's item from the *other* half of the rows, and its mean under the target.

    The rate of an item is drawn to that of all by a prior of so many ``clicks``; even rows are predicted by odd ones and
    odd rows by even ones, so that no row predicts itself.  ``chance_of`` holds π(a | k), a row for each position and a
    column for each item.
    """
    half = np.arange(len(log)) % 2
    model, expected = np.zeros(len(log)), np.zeros(len(log))
    for part in (0, 1):
        learnt, judged = log[half != part], half == part
        rate = learnt["click"].mean()
        by_item = learnt.groupby("item")["click"].agg(["sum", "size"]).reindex(chance_of.columns, fill_value=0)
        shrunk = (by_item["sum"] + clicks) / (by_item["size"] + clicks / max(rate, 1e-12))
        model[judged] = shrunk.reindex(log["item"][judged]).to_numpy()
        expected[judged] = (chance_of @ shrunk).reindex(log["position"][judged]).to_numpy()
    return model, expected


def chances_of(target: str, shown: pd.DataFrame, items: IntArray) -> pd.DataFrame:
    """π(a | k) of the target: a row for each position, a column for each of the ``items``."""
    positions = sorted(shown["position"].unique())
    cells = pd.MultiIndex.from_product([positions, items], names=["position", "item"]).to_frame(index=False)
    return cells.assign(chance=target_chances(cells, target, shown)).pivot(
        index="position", columns="item", values="chance"
    )


@cache
def six_logs(whole: bool = False) -> dict[tuple[str, str], pd.DataFrame]:
    """Each log of Open Bandit by campaign and policy, with the column ``chance`` of its rows under the other policy."""
    logs = {key: rows for key, rows in open_bandit(whole=whole).groupby(["campaign", "policy"], observed=True)}
    return {
        (campaign, policy): rows.assign(
            chance=target_chances(rows, TARGET[policy], logs[campaign, TARGET[policy]])
        ).reset_index(drop=True)
        for (campaign, policy), rows in logs.items()
    }


@cache
def all_estimates(whole: bool = False) -> pd.DataFrame:
    """Four estimates of each log, and of the three campaigns together: a row for each log and method.

    ``truth`` is the click rate of the target's own log, and ``truth_error`` its standard error.
    """
    logs, frames = six_logs(whole), []
    for policy, target in TARGET.items():
        parts = []
        for campaign in CAMPAIGNS:
            log, shown = logs[campaign, policy], logs[campaign, target]
            items = np.union1d(log["item"], shown["item"])
            model, expected = click_model(log, chances_of(target, shown, items))
            parts.append((campaign, log, model, expected, shown["click"].to_numpy()))
        columns = list(zip(*parts, strict=True))[1:]
        pooled = (pd.concat(columns[0], ignore_index=True), *(np.concatenate(one) for one in columns[1:]))
        for campaign, log, model, expected, own in [*parts, ("together", *pooled)]:
            found = estimates(log, log["chance"].to_numpy(), model, expected)
            kept = judge((log["chance"] / log["propensity"]).to_numpy(), log["click"].mean()).kept
            truth = {"truth": own.mean(), "truth_error": own.std(ddof=1) / np.sqrt(len(own))}
            frames.append(
                found.rename_axis("method").reset_index().assign(campaign=campaign, policy=policy, kept=kept, **truth)
            )
    return pd.concat(frames, ignore_index=True)


@cache
def halves(run: book.Run) -> pd.DataFrame:
    """IPS on halves of each log against halves of the target's own log: a row for each seed, log and half.

    Halves are drawn without replacement, so that they differ from the whole as much as the whole differs from what all
    such logs would say.  ``agrees`` tells whether the estimate and the target's click rate in its half are within 1.96
    standard errors of their difference, ``kept`` whether the rule keeps the estimate.
    """
    number = max(2, run.size.repetitions // 4)

    def drawn(seed: int, key: tuple[str, str], rng: np.random.Generator) -> list[list[float]]:
        campaign, policy = key
        log, own = six_logs()[campaign, policy], six_logs()[campaign, TARGET[policy]]["click"].to_numpy()
        weight, click = (log["chance"] / log["propensity"]).to_numpy(), log["click"].to_numpy()
        rows = []
        for _ in range(number):
            half = rng.permutation(len(log))[: len(log) // 2]
            own_half = own[rng.permutation(len(own))[: len(own) // 2]]
            verdict, part = judge(weight[half], click[half].mean()), weight[half] * click[half]
            error = np.hypot(*(one.std(ddof=1) / np.sqrt(len(one)) for one in (part, own_half)))
            off = part.mean() - own_half.mean()
            rows.append([verdict.mean, verdict.clicks, verdict.kept, off, abs(off) <= 1.96 * error])
        return rows

    keys = [(campaign, policy) for campaign in CAMPAIGNS for policy in TARGET]
    found = run.each_seed(drawn, keys, stream=1701)
    rows = [
        (seed, *key, *row)
        for seed, of_seed in zip(run.seeds, found, strict=True)
        for key, of_key in zip(keys, of_seed, strict=True)
        for row in of_key
    ]
    columns = ["seed", "campaign", "policy", "mean_weight", "effective_clicks", "kept", "off", "agrees"]
    return pd.DataFrame(rows, columns=columns).astype({"kept": bool, "agrees": bool})


@cache
def made_logs(run: book.Run) -> pd.DataFrame:
    """Logs whose truth is known, of policies that prefer some items: a row for each seed, sharpness, size and log.

    Forty items are clicked with rates about :data:`CLICK_RATE`.  The logging policy draws item a with probability
    ∝ exp(sharpness · z_a), in which z_a follows the item's click rate and chance in equal parts; the target is uniform.
    ``covered`` tells whether the 95 % interval of IPS holds the true click rate, ``kept`` whether the rule keeps it.
    """
    number = max(2, run.size.repetitions // 8)

    def made(seed: int, setting: tuple[float, int], rng: np.random.Generator) -> list[list[float]]:
        sharpness, n = setting
        rate = rng.gamma(2, CLICK_RATE / 2, size=ITEMS)
        taste = np.log(rate) - np.log(rate).mean()
        z = (taste / taste.std() + rng.standard_normal(ITEMS)) / np.sqrt(2)
        policy = np.exp(sharpness * z) / np.exp(sharpness * z).sum()
        weight, rows = 1 / ITEMS / policy, []
        for _ in range(number):
            shown = rng.multinomial(n, policy)
            clicks = rng.binomial(shown, rate)
            mean, square = clicks @ weight / n, clicks @ weight**2 / n
            error = np.sqrt((square - mean**2) / (n - 1))
            verdict = judge(np.repeat(weight, shown), clicks.sum() / n)
            covered = abs(mean - rate.mean()) <= 1.96 * error
            rows.append([verdict.clicks, verdict.kept, covered])
        return rows

    settings = [(sharpness, n) for sharpness in SHARPNESS for n in ROWS]
    found = run.each_seed(made, settings, stream=1702)
    rows = [
        (seed, *setting, *row)
        for seed, of_seed in zip(run.seeds, found, strict=True)
        for setting, of_setting in zip(settings, of_seed, strict=True)
        for row in of_setting
    ]
    columns = ["seed", "sharpness", "rows", "effective_clicks", "kept", "covered"]
    return pd.DataFrame(rows, columns=columns).astype({"kept": bool, "covered": bool})
