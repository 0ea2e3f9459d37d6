"""How the claims of chapter 4 are measured: what lies above a rank and a risk, how far, and what its slope teaches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch04 import MARKS, SURROGATES, descents, stretched
from cfltr_book.theory.exact import enumerate_logs
from cfltr_core.checks import FloatArray

Arrays = Mapping[str, FloatArray]
EXACTLY: dict[str, Any] = {"rtol": 0.0, "atol": 1e-12}

# One query with four documents, three of them relevant, and users who examine rank r with probability 1/r.
SHOWN = cf.DeterministicPolicy(np.array([2, 1, 4, 3]), np.array([0, 4]))
RELEVANT = np.array([1.0, 0.0, 1.0, 1.0])
# Scorers with many ties, and the metrics by which they are judged.
SCORERS = [np.array(scores) * 0.7 for scores in product([-1.0, 0.0, 1.0], repeat=4)]
METRICS = (cf.average_rank(), cf.dcg(), cf.precision(2), cf.rbp(0.8))


def _lists(run: Run) -> list[FloatArray]:
    """Lists of 1 to 20 scores, narrow and wide, the first 360 of them with many ties and the others without."""
    rng = run.rng(run.seed, 400)
    kinds = list(product((1, 2, 5, 20), (1e-3, 1.0, 1e4)))
    tied = [np.asarray(rng.integers(-2, 3, size=n) * wide) for n, wide in kinds for _ in range(30)]
    return tied + [np.asarray(rng.normal(size=n) * wide) for n, wide in kinds for _ in range(12)]


def _cuts(lists: list[FloatArray]) -> FloatArray:
    return np.cumsum([0, *map(len, lists)])


def _surrogate_ranks(lists: list[FloatArray], **how: Any) -> FloatArray:
    scores = np.concatenate(lists)
    return cf.surrogate_ranks(scores, _cuts(lists), documents=np.arange(len(scores)), **how)


def _logistic(lists: list[FloatArray]) -> FloatArray:
    return np.array([_surrogate_ranks(lists, surrogate="logistic", sigma=sigma) for sigma in (0.1, 1.0, 10.0)])


def _worst_rank(lists: list[FloatArray]) -> FloatArray:
    """The rank where every tie is broken against the document."""
    return cf.ranks(np.concatenate(lists), _cuts(lists), ties="pessimistic").astype(float)


@measures("A18-hinge-rank", section="bound")
def hinge_rank(run: Run) -> Arrays:
    """Ranks with ties broken in the worst way and at random, and hinge surrogate ranks, on 504 lists."""
    lists = _lists(run)
    broken = cf.ranks(np.concatenate(lists), _cuts(lists), ties="random", rng=run.rng(run.seed, 404))
    return {"lower": np.array([_worst_rank(lists), broken]), "upper": np.tile(_surrogate_ranks(lists), (2, 1))}


@measures("N-logistic-bound", section="bound")
def logistic_bound(run: Run) -> Arrays:
    """The same for the logistic surrogate at three steepnesses."""
    lists = _lists(run)
    return {"lower": np.tile(_worst_rank(lists), (3, 1)), "upper": _logistic(lists)}


@measures("B-logistic-natural", section="bound")
def logistic_natural(run: Run) -> Arrays:
    """With the natural logarithm the sums are smaller by ln 2; it fails with ties and without."""
    lists = _lists(run)
    natural = 1 + (_logistic(lists) - 1) * np.log(2)
    without_ties = np.arange(natural.shape[1]) >= sum(map(len, lists[:360]))
    assert (natural[1] < _worst_rank(lists))[without_ties].any()
    return {"lower": np.tile(_worst_rank(lists), (3, 1)), "upper": natural}


@measures("B-between-ranks", section="bound")
def between_ranks(run: Run) -> Arrays:
    """Step 2: for both surrogates, lists in which a document of rank m has the surrogate rank m + u."""
    lists = _lists(run)
    for ranks in (_surrogate_ranks(lists), *_logistic(lists)):  # step 1
        assert (_worst_rank(lists) <= np.floor(ranks + 1e-9)).all()

    def lead_that_costs(cost: float, surrogate: str) -> float:
        """The lead of a rival that costs so much: the inverse of the surrogate."""
        return cost - 1 if surrogate == "hinge" else float(np.log(np.expm1(cost * np.log(2))))

    left, right = [], []
    for m, u, surrogate in product(range(1, 8), (0.1, 0.3, 0.99), SURROGATES):
        rivals = [lead_that_costs(u, surrogate)] if m == 1 else [0.0] * (m - 2) + [lead_that_costs(1 + u, surrogate)]
        scores = np.array([0.0, *rivals])
        found = cf.surrogate_ranks(scores, [0, len(scores)], documents=[0], surrogate=surrogate)
        assert np.isclose(found[0], m + u)
        left.append(cf.ranks(scores, [0, len(scores)], ties="pessimistic")[0])
        right.append(np.floor(found[0]))
    return {"left": np.array(left, dtype=float), "right": np.array(right)}


def _lams(metric: cf.RankWeight) -> tuple[FloatArray, FloatArray]:
    """λ of ranks and λ of surrogate ranks: one row for each scorer."""
    exact = [cf.rank_weights(scores, [0, 4], metric=metric).lam for scores in SCORERS]
    ranks = [cf.surrogate_ranks(scores, [0, 4], documents=range(4)) for scores in SCORERS]
    return np.array(exact), np.array([metric(one) for one in ranks])


def _all_lams() -> tuple[FloatArray, FloatArray]:
    exact, bound = zip(*map(_lams, METRICS), strict=True)
    return np.concatenate(exact), np.concatenate(bound)


def _every_log(mistakes: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """The probability of each log of one session, and the weighted clicks on each document in it."""
    user = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_minus=mistakes)
    chance, logs = zip(*enumerate_logs(SHOWN, user, relevance=RELEVANT, sessions=[1]), strict=True)
    return np.array(chance), np.array([np.bincount(log.document, log.clicks * log.weights, 4) for log in logs])


@measures("A18-eq7-bound", section="bound")
def eq7_bound(run: Run) -> Arrays:
    """Every log of one session, 81 scorers, four metrics; a weight that does not increase breaks step 3."""
    exact, bound = _lams(cf.RankWeight("bent", lambda r: -((r - 2.5) ** 2)))
    assert (exact > bound + 0.1).any()
    exact, bound = _all_lams()
    assert (exact <= bound + 1e-12).all()  # step 3
    _, clicks = _every_log()
    return {"lower": clicks @ exact.T, "upper": clicks @ bound.T}


@measures("B-bound-in-expectation", section="bound")
def bound_in_expectation(run: Run) -> Arrays:
    """Step 4: the mean over all logs is the bound that full information would give."""
    exact, bound = _all_lams()
    chance, clicks = _every_log()
    expected = chance @ clicks @ bound.T
    assert np.allclose(expected, bound @ RELEVANT, **EXACTLY)
    return {"lower": exact @ RELEVANT, "upper": expected}


@measures("N-lower-bound-gain", section="bound")
def lower_bound_gain(run: Run) -> Arrays:
    """DCG as a gain, on every log."""
    exact, bound = _lams(cf.dcg())
    _, clicks = _every_log()
    return {"lower": clicks @ -bound.T, "upper": clicks @ -exact.T}


@measures("B-bound-constant-scorer", section="bound")
def bound_constant_scorer(run: Run) -> Arrays:
    """Two lists, of three and of four documents, each with one score."""
    return {"left": _surrogate_ranks([np.full(3, 3.2), np.full(4, 3.2)]), "right": np.repeat([3.0, 4.0], [3, 4])}


@measures("B-hinge-tighter", section="learning")
def hinge_tighter(run: Run) -> Arrays:
    """The bound on average rank at the factor that suits it best, seed by seed."""
    frame = stretched(run).query("metric == 'average rank'")
    best = frame.groupby(["seed", "surrogate"])["bound"].min().unstack()
    return {"lower": best["hinge"].to_numpy(), "upper": best["logistic"].to_numpy()}


def _log_dcg(run: Run, step: int, chosen: Callable[[pd.Series], pd.Series]) -> FloatArray:
    """The logarithm of the DCG of test queries after so many steps, seed by seed, the mean over the shuffles chosen."""
    frame = descents(run)
    frame = frame[(frame["step"] == step) & chosen(frame["shuffle"])]
    return np.asarray(np.log(frame["test"]).groupby(frame["seed"]).mean(), dtype=np.float64)


@measures("B-bound-learns", section="learning")
def bound_learns(run: Run) -> Arrays:
    """The end and the start of the steps."""
    larger, smaller = (_log_dcg(run, step, lambda shuffle: shuffle == 0) for step in (MARKS[-1], MARKS[0]))
    return {"larger": larger, "smaller": smaller}


@measures("control-bound-shuffled", section="learning")
def bound_shuffled(run: Run) -> Arrays:
    """The same where relevance was shuffled."""
    left, right = (_log_dcg(run, step, lambda shuffle: shuffle > 0) for step in (MARKS[-1], MARKS[0]))
    return {"left": left, "right": right}


def _interpolated_precision(k: int) -> cf.RankWeight:
    """The weight of Prec@k, linear between the ranks ``k`` and k + 1."""
    return cf.RankWeight(f"Prec@{k}, interpolated", lambda x: -np.clip(k + 1 - x, 0, 1) / k)


@measures("A18-bound-continuous", section="fails")
def bound_continuous(run: Run) -> Arrays:
    """What a change of one score by 1e-9 does to four bounds."""
    ranks = [cf.surrogate_ranks([first, 1.0, 0.0], [0, 3], documents=[0]) for first in (1.0, 1.0 - 1e-9)]
    metrics = (cf.precision(2), cf.average_rank(), cf.dcg(), cf.rbp(0.8))
    assert np.ptp([_interpolated_precision(2)(rank) for rank in ranks]) < 1e-8
    return {"lower": np.array([np.ptp([metric(rank) for rank in ranks]) for metric in metrics]), "upper": np.zeros(4)}


@measures("B-interpolated-bound", section="fails")
def interpolated_bound(run: Run) -> Arrays:
    """For five cut-offs: it holds, it is valid, it is nowhere looser, and it changes no faster than it may."""
    rng, lists, x = run.rng(run.seed, 405), _lists(run), np.linspace(1, 15, 1401)
    worst, hinge = _worst_rank(lists), _surrogate_ranks(lists)
    lower, upper = [], []
    for k in (1, 2, 3, 5, 10):
        metric, formula = _interpolated_precision(k), cf.precision(k)
        bend = np.diff(metric(x), 2)
        assert (bend.max() < 1e-9) == (k == 1)  # concave for k = 1 only
        steps = np.where(np.floor(x + 1e-9) <= k, -1 / k, 0)
        assert (steps - 1e-3 > -np.clip(k + 1.5 - x, 0, 1) / k).any()  # what lies below the steps is no bound
        lower += [formula(worst), steps, metric(x)]
        upper += [metric(hinge), metric(x), formula(x)]
        for _ in range(200):
            scores, change = rng.normal(size=12), rng.normal(size=12) * 10.0 ** rng.uniform(-9, 0)
            one, two = (metric(_surrogate_ranks([s])) for s in (scores, scores + change))
            lower.append(abs(two - one))
            upper.append(np.full(12, 2 * 11 / k * abs(change).max()))
    return {"lower": np.concatenate(lower), "upper": np.concatenate(upper)}


@measures("B-noisy-bound", section="fails")
def noisy_bound(run: Run) -> Arrays:
    """Three rates of mistakes; the last sum depends on the scorer, and with ranks in place of bounds it does not."""
    exact, bound = _lams(cf.average_rank())
    assert np.ptp(bound.sum(axis=1)) > 1
    assert np.ptp(exact.sum(axis=1)) < 1e-9
    _, bound = _all_lams()
    left, right = [], []
    for mistakes in (0.1, 0.3, 0.6):
        chance, clicks = _every_log(mistakes)
        left.append(chance @ clicks @ bound.T)
        right.append((1 - mistakes) * bound @ RELEVANT + mistakes * bound.sum(axis=1))
    return {"left": np.array(left), "right": np.array(right)}


@measures("B-all-surrogate-ranks", section="fails")
def all_surrogate_ranks(run: Run) -> Arrays:
    """The sum over a list, and what its pairs exceed the margin by; lists of scores up to 100."""
    lists = [scores for scores in _lists(run) if abs(scores).max() <= 100]
    apart = [np.maximum(0, abs(scores[:, None] - scores) - 1).sum() / 2 for scores in lists]
    return {
        "left": np.array([_surrogate_ranks([scores]).sum() for scores in lists]),
        "right": np.array([len(scores) ** 2 + more for scores, more in zip(lists, apart, strict=True)]),
    }
