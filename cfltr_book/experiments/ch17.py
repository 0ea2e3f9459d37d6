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
from cfltr_core.checks import FloatArray

# Each log judges the other policy of its campaign.
TARGET = {"random": "bts", "bts": "random"}
# Fewer effective clicks than these are to be expected: the interval of the estimate would reach 0, as 1.96² = 3.84.
ENOUGH = 4
# The mean weight must be 1 within so many standard errors: of six logs one is refused by chance once in sixty times.
WITHIN = 3
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
    clicks: float

    @property
    def kept(self) -> bool:
        """Whether the rule keeps the estimate."""
        return abs(self.mean - 1) <= WITHIN * self.error and self.clicks >= ENOUGH


def chances(target: str, shown: pd.DataFrame, n_items: int) -> pd.DataFrame:
    """π(a | k) of the ``target``: a row for each position k, a column for each of ``n_items`` items a.

    Random shows every item with the same probability.  Thompson sampling changes all the time, so what stands here is
    its average over the week: of the slots at position k in its own log, ``shown``, the share that held the item.
    Neither looks at a click.
    """
    table = pd.crosstab(shown["position"], shown["item"], normalize="index")
    table = table.reindex(columns=range(n_items), fill_value=0.0)
    if target == "random":
        table[:] = 1 / n_items
    return table


def judge(weight: FloatArray, click_rate: float) -> Verdict:
    """The diagnostics of a log with these weights; of the clicks only their rate is read, which all logs have."""
    mean, error = weight.mean(), weight.std(ddof=1) / np.sqrt(len(weight))
    effective = weight.sum() ** 2 / (weight**2).sum()
    return Verdict(mean, error, effective, effective * click_rate)


def click_model(log: pd.DataFrame, table: pd.DataFrame, *, clicks: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Predicted click rate of each row's item, and the mean prediction of what the target might show in its place.

    The rate of an item is learnt from the *other* half of the rows, even ones from odd ones and the reverse, so that no
    row predicts itself; a prior of so many ``clicks`` draws it to the rate of all.  ``table`` holds the chances of the
    target (:func:`chances`).
    """
    half = np.arange(len(log)) % 2
    item, place = log["item"].to_numpy(), log["position"].to_numpy() - 1
    model, expected = np.zeros(len(log)), np.zeros(len(log))
    for part in (0, 1):
        learnt, judged = log[half != part], half == part
        by_item = learnt.groupby("item")["click"].agg(["sum", "size"]).reindex(table.columns, fill_value=0)
        rate = max(learnt["click"].mean(), 1e-12)
        shrunk = ((by_item["sum"] + clicks) / (by_item["size"] + clicks / rate)).to_numpy()
        model[judged] = shrunk[item[judged]]
        expected[judged] = (table.to_numpy() @ shrunk)[place[judged]]
    return model, expected


@cache
def six_logs() -> dict[tuple[str, str], pd.DataFrame]:
    """Each small log of Open Bandit by campaign and policy, with the ``weight`` of its rows for the other policy."""
    by_key = dict(iter(open_bandit().groupby(["campaign", "policy"], observed=True)))
    logs = {}
    for (campaign, policy), log in by_key.items():
        target = TARGET[policy]
        table = chances(target, by_key[campaign, target], int(log["item"].max()) + 1)
        chance = table.to_numpy()[log["position"] - 1, log["item"]]
        logs[campaign, policy] = log.assign(weight=chance / log["propensity"]).reset_index(drop=True)
    return logs


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
        weight, click = log["weight"].to_numpy(), log["click"].to_numpy()
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

    Forty items are clicked with rates about :data:`CLICK_RATE`.  The sharp policy draws item a with probability
    ∝ exp(sharpness · z_a), in which z_a follows the item's click rate and chance in equal parts.  ``logged`` says
    whether it fills the log and random, which is uniform, is the target, or the reverse.  ``effective_clicks`` are
    those that the rule counts, by the click rate of the log.  ``covered`` tells whether the 95 % interval of IPS holds
    the true click rate, ``clear`` whether it lies above 0, ``kept`` whether the rule keeps the estimate.  ``errors`` is
    how many standard errors the estimate is off, ``errors_of_gain`` the same for the target less the logging policy.
    """
    number = max(2, run.size.repetitions // 8)

    def off(weight: FloatArray, clicks: FloatArray, n: int, truth: float) -> tuple[float, bool]:
        """By how many standard errors IPS misses the truth, and whether its interval is above 0."""
        mean, square = clicks @ weight / n, clicks @ weight**2 / n
        error = np.sqrt((square - mean**2) / (n - 1))
        return abs(mean - truth) / error if error > 0 else np.inf, mean > 1.96 * error

    def made(seed: int, setting: tuple[float, int], rng: np.random.Generator) -> list[list[float | str]]:
        sharpness, n = setting
        rate = rng.gamma(2, CLICK_RATE / 2, size=ITEMS)
        taste = np.log(rate) - np.log(rate).mean()
        z = (taste / taste.std() + rng.standard_normal(ITEMS)) / np.sqrt(2)
        sharp, random = np.exp(sharpness * z) / np.exp(sharpness * z).sum(), np.full(ITEMS, 1 / ITEMS)
        rows: list[list[float | str]] = []
        for name, policy, target in (("sharp", sharp, random), ("random", random, sharp)):
            weight = target / policy
            for _ in range(number):
                shown = rng.multinomial(n, policy)
                clicks = rng.binomial(shown, rate)
                verdict = judge(np.repeat(weight, shown), clicks.sum() / n)
                errors, clear = off(weight, clicks, n, target @ rate)
                of_gain, _ = off(weight - 1, clicks, n, (target - policy) @ rate)
                rows.append([name, verdict.clicks, verdict.kept, errors <= 1.96, clear, errors, of_gain])
        return rows

    settings = [(sharpness, n) for sharpness in SHARPNESS for n in ROWS]
    found = run.each_seed(made, settings, stream=1702)
    rows = [
        (seed, *setting, *row)
        for seed, of_seed in zip(run.seeds, found, strict=True)
        for setting, of_setting in zip(settings, of_seed, strict=True)
        for row in of_setting
    ]
    columns = ["seed", "sharpness", "rows", "logged", "effective_clicks", "kept", "covered", "clear"]
    columns += ["errors", "errors_of_gain"]
    return pd.DataFrame(rows, columns=columns).astype({"kept": bool, "covered": bool, "clear": bool})
