"""Variances and estimated variances, against loops over every log."""

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
import oracles
import pytest

import cfltr_core as cf
from cfltr_book.theory.exact import mean_and_variance
from cfltr_book.theory.variances import ips_variance

EXACT = 1e-12

# Two queries of two and three documents, in the order in which they are shown.
OFFSETS = [0, 2, 5]
SIZES = [2, 3]
RANK = [1, 2, 2, 1, 3]
CURVE = [0.8, 0.5, 0.3]
THETA = [[0.8, 0.5], [0.5, 0.8, 0.3]]
RELEVANCE = [[1, 0], [1, 1, 0]]
FLAT_RELEVANCE = [1, 0, 1, 1, 0]
LAMBDA = [[1.0, -2.0], [3.0, 0.5, 2.0]]
FLAT_LAMBDA = np.array([1.0, -2.0, 3.0, 0.5, 2.0])
NOISES = [(1.0, 0.0), (0.9, 0.3)]
POLICY = cf.DeterministicPolicy(RANK, OFFSETS)

# Weight of a click on a document examined with probability θ, per estimator, and the package's estimator.
LINEAR = {
    "ips": (lambda p: 1 / p, lambda log, unit: cf.ips(log, lam=FLAT_LAMBDA, unit=unit)),
    "naive": (lambda p: 1.0, lambda log, unit: cf.naive(log, lam=FLAT_LAMBDA, unit=unit)),
    "clipped": (lambda p: min(1 / p, 1.6), lambda log, unit: cf.clipped(log, lam=FLAT_LAMBDA, cap=1.6, unit=unit)),
}


def weights(function) -> list[list[float]]:
    return [[function(p) for p in row] for row in THETA]


def values_of(logs: Iterable[tuple[float, tuple]], weight: list[list[float]]) -> list[tuple[float, float]]:
    """The estimate of each log, with the probability of the log."""
    return [(p, oracles.per_session(log, LAMBDA, weight)) for p, log in logs]


def rho(plus: float, minus: float) -> list[float]:
    """Click probability of each document."""
    return [
        oracles.clicked(CURVE, plus, minus, rank, relevance)
        for rank, relevance in zip(RANK, FLAT_RELEVANCE, strict=True)
    ]


def log_of(sessions: tuple[int, ...], clicks: tuple[int, ...]) -> cf.ClickLog:
    impressions = [sessions[q] for q in oracles.query_index(OFFSETS)]
    propensity = [p for row in THETA for p in row]
    return cf.ClickLog(
        document=range(5), rank=RANK, impressions=impressions, clicks=clicks, propensity=propensity, sessions=sessions,
        offsets=OFFSETS,
    )  # fmt: skip


@pytest.mark.oracle("exact.mean_and_variance", "variances.ips_variance")
@pytest.mark.parametrize(("plus", "minus"), NOISES)
@pytest.mark.parametrize("sessions", [[1, 1], [2, 1], [0, 2], [3, 0]])
def test_variance_with_fixed_sessions(plus: float, minus: float, sessions: list[int]) -> None:
    user = cf.PositionBasedUser(CURVE, epsilon_plus=plus, epsilon_minus=minus)
    for function, estimator in LINEAR.values():
        weight = weights(function)
        by_loops = oracles.moments(values_of(oracles.every_log(THETA, RELEVANCE, plus, minus, sessions), weight))

        def value(log: cf.ClickLog, estimator=estimator) -> float:
            return estimator(log, "query").value

        package = mean_and_variance(value, POLICY, user=user, relevance=FLAT_RELEVANCE, sessions=sessions)
        np.testing.assert_allclose(package, by_loops, rtol=0, atol=EXACT)
        flat = [w for row in weight for w in row]
        formula = ips_variance(FLAT_LAMBDA, rho(plus, minus), weights=flat, offsets=OFFSETS, sessions=sessions)
        assert abs(formula - by_loops[1]) <= EXACT


@pytest.mark.parametrize(("plus", "minus"), NOISES)
@pytest.mark.parametrize("n_sessions", [1, 2, 3])
def test_variance_when_sessions_draw_their_query(plus: float, minus: float, n_sessions: int) -> None:
    for function, _ in LINEAR.values():
        weight = weights(function)
        logs = oracles.every_drawn_log(THETA, RELEVANCE, plus, minus, n_sessions)
        mean, variance = oracles.moments(values_of(logs, weight))
        flat = [w for row in weight for w in row]
        found = ips_variance(FLAT_LAMBDA, rho(plus, minus), weights=flat, offsets=OFFSETS, sessions=n_sessions)
        assert abs(found - variance) <= EXACT
        click = np.array(rho(plus, minus))
        assert abs(mean - float(click @ (FLAT_LAMBDA * flat)) / 2) <= EXACT


@pytest.mark.parametrize(("plus", "minus"), NOISES)
@pytest.mark.parametrize("n_sessions", [2, 3])
@pytest.mark.parametrize("name", LINEAR)
def test_estimated_variance_is_unbiased(name: str, plus: float, minus: float, n_sessions: int) -> None:
    """Sessions that draw their query uniformly: E[standard_error²] = Var(estimate), with unit="session"."""
    function, estimator = LINEAR[name]
    weight = weights(function)
    outcomes: Counter[tuple] = Counter()
    logs = list(oracles.every_drawn_log(THETA, RELEVANCE, plus, minus, n_sessions))
    for probability, log in logs:
        outcomes[oracles.tally(log, SIZES)] += probability
    _, variance = oracles.moments(values_of(logs, weight))
    estimates = [(p, estimator(log_of(*table), "session").standard_error) for table, p in outcomes.items()]
    assert variance > 0.01
    assert abs(math.fsum(p * error**2 for p, error in estimates) - variance) <= EXACT


def test_sessions_that_are_all_alike_have_no_spread() -> None:
    """Every session clicks everything: the residuals are 0, and rounding must not make their squares negative."""
    rng = np.random.default_rng(0)
    for n in range(2, 60):
        lam = rng.normal(size=3)
        log = cf.ClickLog(
            document=[0, 1, 2], rank=[1, 2, 3], impressions=[n] * 3, clicks=[n] * 3, propensity=[1.0] * 3,
            sessions=[n], offsets=[0, 3],
        )  # fmt: skip
        for estimate in (cf.ips(log, lam=lam, unit="session"), cf.naive(log, lam=lam, unit="session")):
            assert abs(estimate.value - lam.sum()) <= EXACT
            assert 0.0 <= estimate.standard_error <= EXACT
