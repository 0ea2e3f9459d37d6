"""How the claims of chapter 1 are measured: what the naive estimate expects, and what it prefers."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations, product

import numpy as np
import pandas as pd

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch01 import (
    NOISE,
    blends_preferred,
    clicks_of_a_log,
    orders,
    orders_by_size,
    world,
    wrong_curves,
)
from cfltr_book.theory.exact import expectation
from cfltr_core.checks import FloatArray, IntArray

Arrays = Mapping[str, FloatArray]

# One query with four documents, every ranking of them, and users who examine rank r with probability 1/r.
SHOWN = cf.DeterministicPolicy(np.array([2, 1, 4, 3]), np.array([0, 4]))
USER = cf.PositionBasedUser(cf.power_examination(1.0))
THETA = SHOWN.exposure(USER)
RANKINGS = [np.array(places) for places in permutations([1, 2, 3, 4])]


def _gain(rank: IntArray) -> FloatArray:
    """DCG's weight of each rank: minus the risk that the package computes with."""
    return -cf.dcg()(rank)


def _expected_naive(rank: IntArray, relevance: FloatArray, sessions: int) -> float:
    """The naive estimate of a ranking, averaged over every log that is possible."""
    lam = -_gain(rank)
    return float(
        expectation(
            lambda log: -cf.naive(log, lam=lam).value, SHOWN, user=USER, relevance=relevance, sessions=[sessions]
        )
    )


def _shared_and_pull(attraction: FloatArray) -> tuple[float, FloatArray]:
    """The mean examination, and of each ranking the sum of attractions times the covariance; means by attraction."""
    gains = np.array([_gain(rank) for rank in RANKINGS])
    share = attraction / attraction.sum()
    mean, mean_gain = THETA @ share, gains @ share
    return float(mean), attraction.sum() * ((THETA - mean) * (gains - mean_gain[:, None])) @ share


@measures("N-naive-expectation", section="naive")
def naive_expectation(run: Run) -> Arrays:
    """Every step of the proof on four documents, of which three are relevant, in three sessions."""
    relevance = np.array([1.0, 0.0, 1.0, 1.0])
    # Step 2: one session, every vector of examinations; a click is examined and relevant.
    vectors = [np.array(vector) for vector in product([0, 1], repeat=4)]
    chances = [np.prod(np.where(vector, THETA, 1 - THETA)) for vector in vectors]
    assert np.isclose(sum(chances), 1, rtol=0, atol=1e-12)
    click_rate = sum(chance * vector * relevance for chance, vector in zip(chances, vectors, strict=True))
    assert np.allclose(click_rate, THETA * relevance, rtol=0, atol=1e-12)
    # Step 3: the expected clicks of each document in three sessions.
    clicks = expectation(lambda log: log.clicks, SHOWN, user=USER, relevance=relevance, sessions=[3])
    assert np.allclose(clicks, 3 * THETA * relevance, rtol=0, atol=1e-12)
    # Steps 1 and 4: the expected estimate of all rankings, term by term and as a whole.
    enumerated = [_expected_naive(rank, relevance, sessions=3) for rank in RANKINGS]
    assert np.allclose(enumerated, [clicks @ _gain(rank) / 3 for rank in RANKINGS])
    closed = [(THETA * _gain(rank) * relevance).sum() for rank in RANKINGS]
    # The truth times a constant, and the pull.
    truth = np.array([_gain(rank) @ relevance for rank in RANKINGS])
    shared, pull = _shared_and_pull(relevance)
    assert np.allclose(shared * truth + pull, closed, rtol=0, atol=1e-12)
    # With noise: a document counts by its attraction, and all rankings have the same sum of gains.
    for miss, mistake in ((0.0, 0.3), (0.2, 0.1)):
        attraction = mistake + (1 - miss - mistake) * relevance
        noisy = np.array([(THETA * _gain(rank) * attraction).sum() for rank in RANKINGS])
        shared, pull = _shared_and_pull(attraction)
        expected = shared * ((1 - miss - mistake) * truth + mistake * _gain(np.arange(1, 5)).sum()) + pull
        assert np.allclose(noisy, expected, rtol=0, atol=1e-12)
    return {"left": np.array(enumerated), "right": np.array(closed)}


@measures("N-naive-rearrangement", section="naive")
def naive_rearrangement(run: Run) -> Arrays:
    """If all documents are relevant the logged ranking wins, swap by swap."""
    estimates = np.array([_expected_naive(rank, np.ones(4), sessions=1) for rank in RANKINGS])
    is_logged = np.array([np.array_equal(rank, SHOWN.displayed_rank) for rank in RANKINGS])
    # Step 3: the true gain is the same for all.
    assert np.ptp([_gain(rank).sum() for rank in RANKINGS]) < 1e-12
    # Step 2: undoing an inversion changes the sum by the product of two steps.
    for rank in RANKINGS:
        for d, e in permutations(range(4), 2):
            if THETA[d] > THETA[e] and rank[d] > rank[e]:
                undone = rank.copy()
                undone[[d, e]] = rank[[e, d]]
                change = THETA @ _gain(undone) - THETA @ _gain(rank)
                steps = (THETA[d] - THETA[e]) * (_gain(rank[e]) - _gain(rank[d]))
                assert np.isclose(change, steps, rtol=0, atol=1e-12)
                assert change > 0
    # So every other ranking is worse, by the smallest of these products at least.
    least_lead = -np.diff(np.sort(THETA)[::-1]).max() * -np.diff(_gain(np.arange(1, 5))).max()
    return {"lower": estimates[~is_logged], "upper": np.full(23, estimates[is_logged].item() - least_lead)}


@measures("B-naive-best-of-all", section="naive")
def naive_best_of_all(run: Run) -> Arrays:
    """The naive optimum over all rankings, for every relevance at eight levels of noise."""
    noises = [0.0, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9]  # 0.5: some click probabilities are equal
    labels = [np.array(label, dtype=float) for label in product([0, 1], repeat=4)]
    found = np.array([[_naive_optimum(label, noise) for label in labels] for noise in noises], dtype=float)
    assert found[0].all()  # without noise the naive optimum is always truly best
    assert not found[1:].all()  # with noise it is not
    return {"left": found[..., 0], "right": found[..., 1]}


def _naive_optimum(relevance: FloatArray, noise: float) -> tuple[bool, bool]:
    """(is every naive optimum truly best?, does the condition of the theorem hold?)"""
    user = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_minus=noise)
    rho = SHOWN.exposure(user) * user.attraction(relevance)
    gains = np.array([_gain(rank) for rank in RANKINGS])
    naive, truth = gains @ rho, gains @ relevance
    liked = naive > naive.max() - 1e-12
    best = truth > truth.max() - 1e-12
    # Step 2: the optima are the rankings that sort by the chance of a click.
    assert np.array_equal(liked, [np.all(np.diff(rho[np.argsort(rank)]) < 1e-12) for rank in RANKINGS])
    # Step 4: the truly best are those with the relevant documents in the first places.
    places = set(range(1, 1 + int(relevance.sum())))
    assert np.array_equal(best, [set(rank[relevance == 1]) == places for rank in RANKINGS])
    weakest = rho[relevance == 1].min(initial=np.inf)
    return bool(np.all(best[liked])), bool(weakest > rho[relevance == 0].max(initial=-np.inf))


def _by_seed(frame: pd.DataFrame, column: str, **where: float | str) -> FloatArray:
    """A column of the rows that have these values, seed by seed."""
    for name, value in where.items():
        frame = frame[frame[name] == value]
    return np.asarray(frame.sort_values("seed")[column], dtype=np.float64)


def _true_blends(run: Run) -> FloatArray:
    """The share of the five blends that truly are better, seed by seed."""
    return np.array([blends_preferred(world(run, seed).truth) for seed in run.seeds])


def _tau(run: Run, noise: float, method: str) -> FloatArray:
    """Kendall's τ by logs of the usual size at η = 1, seed by seed."""
    return _by_seed(orders_by_size(run), "tau", noise=noise, clicks=clicks_of_a_log(run), method=method)


@measures("N-naive-confirms-logger", section="contenders")
def naive_confirms_logger(run: Run) -> Arrays:
    """The share of blends that the naive estimate prefers, and the share that is truly better."""
    return {"larger": _by_seed(orders(run), "blends", eta=1.0, method="naive"), "smaller": _true_blends(run)}


@measures("control-blend-without-bias", section="contenders")
def blend_without_bias(run: Run) -> Arrays:
    """The same where everybody examines everything."""
    return {"left": _by_seed(orders(run), "blends", eta=0.0, method="naive"), "right": _true_blends(run)}


@measures("B-naive-misorders", section="contenders")
def naive_misorders(run: Run) -> Arrays:
    """Kendall's τ by IPS and by the naive estimate, at η = 1."""
    return {
        "larger": _by_seed(orders(run), "tau", eta=1.0, method="ips"),
        "smaller": _by_seed(orders(run), "tau", eta=1.0, method="naive"),
    }


@measures("control-naive-without-bias", section="contenders")
def naive_without_bias(run: Run) -> Arrays:
    """Kendall's τ by the naive estimate without bias, and by IPS with it."""
    return {
        "left": _by_seed(orders(run), "tau", eta=0.0, method="naive"),
        "right": _by_seed(orders(run), "tau", eta=1.0, method="ips"),
    }


@measures("B-ever-clicked-with-noise", section="contenders")
def ever_clicked_with_noise(run: Run) -> Arrays:
    """Kendall's τ by IPS and by the rival, where some clicks are mistakes."""
    return {"larger": _tau(run, NOISE, "ips"), "smaller": _tau(run, NOISE, "ever clicked")}


@measures("B-ever-clicked-without-noise", section="contenders")
def ever_clicked_without_noise(run: Run) -> Arrays:
    """Kendall's τ by the rival and by IPS, where no click is a mistake."""
    return {"left": _tau(run, 0.0, "ever clicked"), "right": _tau(run, 0.0, "ips")}


@measures("B-weak-curve-confirms-logger", section="contenders")
def weak_curve_confirms_logger(run: Run) -> Arrays:
    """The share of blends that IPS prefers by a curve that is a quarter too weak, and the share truly better."""
    return {"larger": _by_seed(wrong_curves(run), "blends", assumed=0.75), "smaller": _true_blends(run)}
