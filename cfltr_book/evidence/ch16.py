"""How the claims of chapter 16 are measured: what a log says of a ranker, and what it cannot know."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch16 import backtest, phones, remembered
from cfltr_core.checks import FloatArray

Arrays = Mapping[str, FloatArray]

# Four products, pages of three, three rankers; what each product is worth, and how attractive it is.
THETA = np.array([1, 1 / 2, 1 / 3])
PAGES = [(0, 1, 2), (3, 2, 0), (1, 0, 2)]
GAMMA = np.array([1.0, 0.2, 0.7, 0.9])
WORTH = np.array([0.3, -0.8, 0.4, 1.0])


def _mean_over_clicks(pages: tuple[tuple[int, ...], ...], weight: FloatArray) -> float:
    """The exact mean of Σ click · worth · weight / sessions over all clicks; ``weight`` has a row a session."""
    total = 0.0
    for clicked in product((0, 1), repeat=weight.size):
        chance, value = 1.0, 0.0
        for i, click in enumerate(clicked):
            session, place = divmod(i, len(THETA))
            document = pages[session][place]
            p = THETA[place] * GAMMA[document]
            chance *= p if click else 1 - p
            value += click * WORTH[document] * weight[session, place] / len(pages)
        total += chance * value
    return total


@measures("B-shares-unbiased", section="proof")
def shares_unbiased(run: Run) -> Arrays:
    """Every two pages of the three rankers: each shown product with its attraction; weights of the rank give another.

    What never-shown products add lies between the bounds of the proof, whatever their attraction is.
    """
    left, right, by_rank = [], [], []
    for two in product(PAGES, repeat=2):
        exposure = np.zeros(4)
        for page in two:
            exposure[list(page)] += THETA / 2
        left.append(_mean_over_clicks(two, 1 / exposure[np.array(two)]))
        by_rank.append(_mean_over_clicks(two, np.tile(1 / THETA, (2, 1))))
        right.append(WORTH[exposure > 0] @ GAMMA[exposure > 0])
        unseen = WORTH * (exposure == 0)
        for attraction in (np.zeros(4), GAMMA, np.ones(4)):  # step 3
            assert np.minimum(unseen, 0).sum() <= unseen @ attraction <= np.maximum(unseen, 0).sum()
    assert np.abs(np.subtract(by_rank, right)).max() > 0.1
    return {"left": np.array(left), "right": np.array(right)}


@measures("B-theta-gradient", section="proof")
def theta_gradient(run: Run) -> Arrays:
    """Central differences of the estimate of the hand example by each log θ, and the slopes of the package."""
    clicks, place = np.array([18 + 2, 0, 6 + 3, 6]), np.array([[0, 1, 2, 9], [2, 9, 1, 0]])
    gain = (1 / np.log2(2 + place) * (place < 3)) @ np.eye(4)
    gap, share = gain[1] - gain[0], np.zeros((4, 3))
    for traffic, of_page in zip((3 / 4, 1 / 4), place, strict=True):
        on_page = np.flatnonzero(of_page < 3)
        share[on_page, of_page[on_page]] += traffic

    def estimate(log_theta: FloatArray) -> float:
        return float((clicks * gap / (share @ np.exp(log_theta))).sum() / 24)

    u, step = np.log(THETA), 1e-4
    slopes = [(estimate(u + e) - estimate(u - e)) / (2 * step) for e in step * np.eye(3)]
    document, at = np.nonzero(share)
    given = cf.DisplayShares(document=document, rank=at + 1, share=share[document, at], offsets=np.array([0, 4]))
    user = cf.PositionBasedUser(THETA.tolist())
    worth = clicks * gap / given.exposure(user) ** 2 / 24
    J = np.bincount(at, worth[document] * given.exposure_slope(user))
    return {"left": np.array([*-np.array(slopes), J.sum()]), "right": np.array([*J, estimate(u)])}


def _column(frame: pd.DataFrame, column: str, **where: str) -> FloatArray:
    """A value a seed: the rows with these words."""
    for name, word in where.items():
        frame = frame[frame[name] == word]
    return np.asarray(frame[column], dtype=np.float64)


@measures("B-hidden-falls-short", section="backtest")
def hidden_falls_short(run: Run) -> Arrays:
    """The rival's true gain and what a log without its sessions makes of it, shop by shop."""
    where = {"log": "without the rival's sessions"}
    return {name: _column(backtest(run), of, **where) for name, of in (("larger", "truth"), ("smaller", "difference"))}


@measures("control-shown-rival", section="backtest")
def shown_rival(run: Run) -> Arrays:
    """The same with the rival's own sessions in the log."""
    where = {"log": "with the rival's sessions"}
    return {name: _column(backtest(run), of, **where) for name, of in (("left", "difference"), ("right", "truth"))}


@measures("B-memory-by-session", section="learn")
def memory_by_session(run: Run) -> Arrays:
    """The gain of memory on other sessions of the queries that it knows, and on other queries."""
    sides = (("larger", "session"), ("smaller", "query"))
    return {name: _column(remembered(run), "difference", ranker="memory", judged=judged) for name, judged in sides}


@measures("control-memory-rival", section="learn")
def memory_rival(run: Run) -> Arrays:
    """The same of the rival."""
    sides = (("left", "session"), ("right", "query"))
    return {name: _column(remembered(run), "difference", ranker="rival", judged=judged) for name, judged in sides}


@measures("B-phones-mislead", section="fails")
def phones_mislead(run: Run) -> Arrays:
    """The rival's gain by device and as one, where it met more phones than the others."""
    sides = (("larger", "by device"), ("smaller", "as one"))
    return {name: _column(phones(run), "difference", world="rival on phones", counted=at) for name, at in sides}


@measures("control-phones-alike", section="fails")
def phones_alike(run: Run) -> Arrays:
    """The same where all rankers met as many."""
    sides = (("left", "by device"), ("right", "as one"))
    return {name: _column(phones(run), "difference", world="alike", counted=at) for name, at in sides}


@measures("B-phones-mislead-ab", section="fails")
def phones_mislead_ab(run: Run) -> Arrays:
    """The difference of own sessions, within devices and over all, where the rival met more phones than the others."""
    sides = (("larger", "by device"), ("smaller", "as one"))
    return {name: _column(phones(run), "ab", world="rival on phones", counted=at) for name, at in sides}


@measures("control-phones-alike-ab", section="fails")
def phones_alike_ab(run: Run) -> Arrays:
    """The same where all rankers met as many."""
    sides = (("left", "by device"), ("right", "as one"))
    return {name: _column(phones(run), "ab", world="alike", counted=at) for name, at in sides}
