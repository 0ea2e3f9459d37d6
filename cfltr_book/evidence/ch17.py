"""How the claims of chapter 17 are measured: what logged propensities give, and what the rule keeps and refuses."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd

from cfltr_book import Run
from cfltr_book.data.open_bandit import CAMPAIGNS
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch17 import halves, made_logs, six_logs
from cfltr_core.checks import FloatArray

Arrays = Mapping[str, FloatArray]

# Three items with these click rates, a target, and a policy that prefers an item by its clicks so far.
CLICK_RATE = np.array([0.5, 0.2, 0.7])
TARGET = np.array([0.2, 0.3, 0.5])
ROWS = 3


def learnt_policy(shown: tuple[int, ...], clicked: tuple[int, ...]) -> FloatArray:
    """π of the next row after these items were shown and clicked or not."""
    liking = np.ones(3)
    for item, click in zip(shown, clicked, strict=True):
        liking[item] += 2 * click
    return np.asarray(liking / liking.sum())


@measures("B-logged-weights", section="weights")
def logged_weights(run: Run) -> Arrays:
    """The mean of both over every log of three rows, with the steps of the proof."""
    total = np.zeros(3)
    products = []
    for shown, clicked in product(product(range(3), repeat=ROWS), product((0, 1), repeat=ROWS)):
        chance, weights, terms = 1.0, [], []
        for row in range(ROWS):
            policy = learnt_policy(shown[:row], clicked[:row])
            # Step 1: given the past, the mean of the weight is 1 and that of the weighted click is the target's rate.
            assert np.isclose(policy @ (TARGET / policy), 1, rtol=0, atol=1e-12)
            assert np.isclose(policy @ (TARGET / policy * CLICK_RATE), TARGET @ CLICK_RATE, rtol=0, atol=1e-12)
            item, click = shown[row], clicked[row]
            chance *= policy[item] * (CLICK_RATE[item] if click else 1 - CLICK_RATE[item])
            weights.append(TARGET[item] / policy[item])
            terms.append(weights[-1] * click)
        total += chance * np.array([1, np.mean(terms), np.mean(weights)])
        off = np.array(terms) - TARGET @ CLICK_RATE
        products.append(chance * off[0] * off[2])
    assert np.isclose(total[0], 1, rtol=0, atol=1e-12)
    # Step 3: rows depend on each other, and yet their errors are uncorrelated.
    assert np.isclose(sum(products), 0, rtol=0, atol=1e-12)
    return {"left": total[1:], "right": np.array([TARGET @ CLICK_RATE, 1.0])}


@measures("B-averaged-propensities", section="weights")
def averaged_propensities(run: Run) -> Arrays:
    """Of a policy with three states, and of one that never changes."""
    found, closed = [], []
    for policies in (np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2]]), np.tile(TARGET, (3, 1))):
        shown = policies.mean(axis=0)  # chance that a row shows the item
        found.append(sum((policies[:, item] @ policies[:, item] / 3) / shown[item] for item in range(3)))
        closed.append(1 + (policies.var(axis=0) / shown).sum())
    assert found[0] > 1.2
    assert np.isclose(found[1], 1, rtol=0, atol=1e-12)
    return {"left": np.array(found), "right": np.array(closed)}


@measures("B-slots-looked-at", section="slots")
def slots_looked_at(run: Run) -> Arrays:
    """The logarithms of the click rates of the third and the first slot, campaign by campaign."""
    rates = np.array([_rates(six_logs()[campaign, "random"]) for campaign in CAMPAIGNS])
    return {"left": np.log(rates[:, 2]), "right": np.log(rates[:, 0])}


def _rates(log: pd.DataFrame) -> FloatArray:
    """Click rate of the positions 1, 2 and 3."""
    return np.asarray(log.groupby("position")["click"].mean())


def _share(frame: pd.DataFrame, column: str) -> FloatArray:
    """Seed by seed, the share of the rows in which a column is true."""
    return np.asarray(frame.groupby("seed")[column].mean(), dtype=np.float64)


@measures("B-thompson-refused", section="rule")
def thompson_refused(run: Run) -> Arrays:
    """The share of the halves of Thompson logs that the rule keeps."""
    return {"values": _share(halves(run).query("policy == 'bts'"), "kept")}


@measures("B-rule-agreement", section="rule")
def rule_agreement(run: Run) -> Arrays:
    """How often estimate and on-policy rate agree, where the rule keeps the half and where it refuses it."""
    frame = halves(run)
    return {"larger": _share(frame[frame["kept"]], "agrees"), "smaller": _share(frame[~frame["kept"]], "agrees")}


@measures("B-rule-covers", section="rule")
def rule_covers(run: Run) -> Arrays:
    """How often intervals hold the truth on made logs, kept and refused."""
    frame = made_logs(run)
    return {"larger": _share(frame[frame["kept"]], "covered"), "smaller": _share(frame[~frame["kept"]], "covered")}


def _by_chance(run: Run, frame: pd.DataFrame, column: str, stream: int) -> Arrays:
    """The share of the rows in which a column is true, where a coin keeps as many of a seed's rows as the rule does."""
    parts = []
    for seed, rows in frame.groupby("seed"):
        parts.append(rows.assign(kept=run.rng(int(seed), stream).permutation(rows["kept"].to_numpy())))
    drawn = pd.concat(parts)
    return {"left": _share(drawn[drawn["kept"]], column), "right": _share(drawn[~drawn["kept"]], column)}


@measures("control-rule-by-chance", section="rule")
def rule_by_chance(run: Run) -> Arrays:
    """How often intervals hold the truth on made logs, kept and refused by a coin."""
    return _by_chance(run, made_logs(run), "covered", 1703)


@measures("control-halves-by-chance", section="rule")
def halves_by_chance(run: Run) -> Arrays:
    """How often estimate and on-policy rate agree, of halves that a coin keeps and refuses."""
    return _by_chance(run, halves(run), "agrees", 1704)
