"""How the claims of chapter 2 are measured: what IPS expects, how it varies, and which intervals keep their promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pandas as pd

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch02 import ENOUGH, REGIMES, by_seed, coec_in_the_long_run, coverage, errors, world
from cfltr_book.theory import variances
from cfltr_book.theory.exact import enumerate_logs, expectation
from cfltr_core.checks import FloatArray

Arrays = Mapping[str, FloatArray]
EXACTLY: dict[str, Any] = {"rtol": 0.0, "atol": 1e-12}

# Two queries with three documents each, as they are shown (0: not at all), and users who examine rank r with 1/r.
CUTS = np.array([0, 3, 6])
SHOWN = cf.DeterministicPolicy(np.array([2, 1, 3, 1, 0, 2]), CUTS)
USER = cf.PositionBasedUser(cf.power_examination(1.0))
RELEVANT = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
PROPENSITY = SHOWN.exposure(USER)
WEIGHTS = np.divide(1, PROPENSITY, out=np.zeros(6), where=PROPENSITY > 0)
# Rank weights of every pair of rankings by four metrics; those of DCG are the second 36.
ORDERS = [np.array(first + second) for first, second in product(permutations([1, 2, 3]), repeat=2)]
JUDGED = [metric(order) for metric in (cf.average_rank(), cf.dcg(), cf.precision(2), cf.rbp(0.8)) for order in ORDERS]


def _ips(lam: FloatArray) -> Callable[[cf.ClickLog], float]:
    return lambda log: cf.ips(log, lam=lam).value


def _risk(lam: FloatArray, relevance: FloatArray) -> float:
    """Both queries are equally likely."""
    return float(lam @ relevance / 2)


def _expected(statistic: Callable[[cf.ClickLog], float], relevance: FloatArray) -> float:
    """The mean over all logs of two sessions that draw their query."""
    draws = [(0.25, [2, 0]), (0.5, [1, 1]), (0.25, [0, 2])]
    given: dict[str, Any] = {"user": USER, "relevance": relevance}
    return sum(chance * float(expectation(statistic, SHOWN, sessions=n, **given)) for chance, n in draws)


@measures("A18-ips-unbiased", section="unbiased")
def ips_unbiased(run: Run) -> Arrays:
    """The five steps of the proof, and the expected estimate of 36 rankings by four metrics."""
    case: dict[str, Any] = {"user": USER, "relevance": RELEVANT, "sessions": [1, 2]}
    asked = np.repeat([1, 2], 3)
    lam = JUDGED[7]
    for _, log in enumerate_logs(SHOWN, **case):
        clicks = np.bincount(log.document, log.clicks, minlength=6)
        assert np.isclose(_ips(lam)(log), (clicks * WEIGHTS * lam).sum() / 3, **EXACTLY)  # step 1
    counts = expectation(lambda log: np.bincount(log.document, log.clicks, minlength=6), SHOWN, **case)
    assert np.allclose(counts, asked * PROPENSITY * RELEVANT, **EXACTLY)  # step 2
    assert np.allclose(counts * WEIGHTS, asked * RELEVANT, **EXACTLY)  # step 3
    for lam in JUDGED[36:72]:  # step 4
        given = expectation(_ips(lam), SHOWN, **case)
        assert np.isclose(given, (asked * lam * RELEVANT).sum() / 3, **EXACTLY)
    return {
        "left": np.array([_expected(_ips(lam), RELEVANT) for lam in JUDGED]),  # step 5
        "right": np.array([_risk(lam, RELEVANT) for lam in JUDGED]),
    }


@measures("J20-per-click-unbiased", section="unbiased")
def per_click_unbiased(run: Run) -> Arrays:
    """Two relevant documents, λ = 2 and 1, examined with probability 1 and ½: the risk is 3."""
    page, lam = cf.DeterministicPolicy(np.array([1, 2]), np.array([0, 2])), np.array([2.0, 1.0])
    case: dict[str, Any] = {"user": USER, "relevance": np.ones(2), "sessions": [1]}
    assert np.isclose(expectation(_ips(lam), page, **case), 3, **EXACTLY)
    per_click = expectation(lambda log: _ips(lam)(log) * log.n_sessions / log.n_clicks, page, **case)
    return {"left": np.array([per_click]), "right": np.array([3.0])}


@measures("B-ips-variance", section="variance")
def ips_variance(run: Run) -> Arrays:
    """Of weights with several caps, the first of them the naive estimate and the last IPS, in two sessions."""
    lam, caps = cf.dcg()(np.array([1, 3, 2, 3, 1, 2])), (1, 1.5, 2, 10)

    def spread(cap: float) -> float:
        mean = _expected(lambda log: cf.clipped(log, lam=lam, cap=cap).value, RELEVANT)
        return _expected(lambda log: (cf.clipped(log, lam=lam, cap=cap).value - mean) ** 2, RELEVANT)

    closed = [
        variances.ips_variance(lam, PROPENSITY * RELEVANT, weights=np.minimum(WEIGHTS, cap), offsets=CUTS, sessions=2)
        for cap in caps
    ]
    return {"left": np.array([spread(cap) for cap in caps]), "right": np.array(closed)}


def _by_size(run: Run, method: str) -> Arrays:
    table = errors(run).query("method == @method").pivot(index="seed", columns="clicks", values="error")
    return {"x": table.columns.to_numpy(dtype=np.float64), "errors": table.to_numpy()}


@measures("A18-ips-consistent", section="size")
def ips_consistent(run: Run) -> Arrays:
    """The error of the difference new − logger in DCG by IPS, by log size and seed."""
    return _by_size(run, "ips")


@measures("N-naive-inconsistent", section="size")
def naive_inconsistent(run: Run) -> Arrays:
    """The same by the naive estimate."""
    return _by_size(run, "naive")


@measures("B-coec-overrates", section="size")
def coec_overrates(run: Run) -> Arrays:
    """The true lead and a tenth, and the lead that COEC comes to, seed by seed."""
    worlds = [world(run, seed) for seed in run.seeds]
    return {
        "lower": np.array([1.1 * w.truth(w.new - w.old) for w in worlds]),
        "upper": np.array([coec_in_the_long_run(w, (w.old - w.new).lam) for w in worlds]),
    }


def _covered(frame: pd.DataFrame) -> float:
    """The share of these logs whose interval covers the truth; the promise, where there is no such log."""
    return float(frame["covered"].mean()) if len(frame) else 0.95


@measures("B-gate-expected", section="intervals")
def gate_expected(run: Run) -> Arrays:
    """The coverage of all logs in which enough effective clicks were to be expected, seed by seed."""
    return {"values": by_seed(coverage(run), lambda rows: _covered(rows[rows["expected"] >= ENOUGH]))}


@measures("B-gate-traffic", section="intervals")
def gate_traffic(run: Run) -> Arrays:
    """The same where few queries have most of the traffic, and what is promised."""
    popular = coverage(run, REGIMES[2:])
    smaller = by_seed(popular, lambda rows: _covered(rows[rows["expected"] >= ENOUGH]))
    return {"larger": np.full(len(smaller), 0.95), "smaller": smaller}


@measures("B-effective-clicks-that-came", section="intervals")
def effective_clicks_that_came(run: Run) -> Arrays:
    """The coverage of logs that show a hundred effective clicks where fewer were expected, and what is promised."""

    def showing_more(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[(rows["came"] >= 100) & (rows["expected"] < 100)]

    smaller = by_seed(coverage(run), lambda rows: _covered(showing_more(rows)))
    return {"larger": np.full(len(smaller), 0.95), "smaller": smaller}


@measures("J20-positivity", section="fails")
def positivity(run: Run) -> Arrays:
    """The document that is not shown is relevant after all."""
    hidden = RELEVANT + np.eye(6)[4]
    return {
        "left": np.array([_expected(_ips(lam), hidden) for lam in JUDGED]),
        "right": np.array([_risk(lam, hidden) - lam[4] / 2 for lam in JUDGED]),
    }


# All rankings of four documents, two of them relevant, and four levels of noise: (ε₊, ε₋).
FULL = cf.DeterministicPolicy(np.array([2, 1, 4, 3]), np.array([0, 4]))
TWO_OF_FOUR = np.array([1.0, 0.0, 1.0, 0.0])
RANKINGS = np.array([cf.dcg()(np.array(order)) for order in permutations([1, 2, 3, 4])])
NOISES = ((1.0, 0.0), (1.0, 0.1), (0.9, 0.2), (0.7, 0.3))


def _under_noise(plus: float, minus: float) -> FloatArray:
    """The expected IPS estimate of each ranking."""
    user = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_plus=plus, epsilon_minus=minus)
    case: dict[str, Any] = {"user": user, "relevance": TWO_OF_FOUR, "sessions": [1]}
    return np.array([float(expectation(_ips(lam), FULL, **case)) for lam in RANKINGS])


@measures("A18-noise-affine", section="fails")
def noise_affine(run: Run) -> Arrays:
    """The expected estimate of each ranking at each level of noise, and the closed form."""
    constant, risks = cf.dcg()(np.arange(1, 5)).sum(), RANKINGS @ TWO_OF_FOUR
    return {
        "left": np.array([_under_noise(*noise) for noise in NOISES]),
        "right": np.array([(plus - minus) * risks + minus * constant for plus, minus in NOISES]),
    }


@measures("A18-noise-keeps-order", section="fails")
def noise_keeps_order(run: Run) -> Arrays:
    """Which of every two rankings is ahead: −1, 0 or 1."""
    first, second = np.array(list(combinations(range(len(RANKINGS)), 2))).T

    def ahead(values: FloatArray) -> FloatArray:
        return np.asarray(np.sign((values[first] - values[second]).round(12)))

    return {
        "left": np.array([ahead(_under_noise(*noise)) for noise in NOISES]),
        "right": np.array([ahead(RANKINGS @ TWO_OF_FOUR)] * len(NOISES)),
    }


@measures("B-trust-affine", section="fails")
def trust_affine(run: Run) -> Arrays:
    """All six pages of the shop, over all eight outcomes of one session in which high ranks are trusted."""
    theta, relevance = np.array([1, 1 / 2, 1 / 3]), np.array([0.2, 0.5, 0.6])
    plus, minus = np.array([0.98, 0.97, 0.96]), np.array([0.65, 0.33, 0.22])
    rate = theta * (minus + (plus - minus) * relevance)
    clicked = np.array(list(product([0, 1], repeat=3)))
    chance = np.where(clicked, rate, 1 - rate).prod(axis=1)
    corrected = (clicked - theta * minus) / (theta * (plus - minus))
    pages = np.array([cf.dcg()(np.array(order)) for order in permutations([1, 2, 3])])
    return {"left": pages @ (chance @ corrected), "right": pages @ relevance}
