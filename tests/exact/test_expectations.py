"""Expectations of the estimators, against loops over every examination and click vector of every session."""

from __future__ import annotations

import math

import numpy as np
import oracles
import pytest

from cfltr_core import (
    DeterministicPolicy,
    PositionBasedUser,
    RankWeight,
    average_rank,
    clipped,
    dcg,
    enumerate_logs,
    expectation,
    ips,
    naive,
    power_examination,
    precision,
    rank_weights,
    rbp,
    self_normalised,
)

EXACT = 1e-12

# Two queries; the logger showed their documents at these places, and other rankers are judged.
OFFSETS = [0, 3, 7]
DISPLAYED = [2, 1, 3, 4, 1, 2, 3]
RELEVANCE = [1, 0, 1, 1, 0, 1, 0]
RANKERS = {
    "reversed": [2.0, 3.0, 1.0, 4.0, 1.0, 2.0, 3.0],
    "as shown": [-2.0, -1.0, -3.0, -4.0, -1.0, -2.0, -3.0],
    "with ties": [1.0, 1.0, 0.0, 2.0, 2.0, 2.0, 0.0],
}
WEIGHTS = {
    "average rank": (average_rank(), oracles.average_rank),
    "DCG": (dcg(), oracles.dcg),
    "DCG@2": (dcg(2), oracles.dcg_at(2)),
    "Prec@2": (precision(2), oracles.precision_at(2)),
    "RBP": (rbp(0.8), oracles.rbp(0.8)),
    "own": (RankWeight("own", lambda r: r**2 - 7.0), lambda r: r**2 - 7.0),
}
CURVES = {
    "eta 1": (power_examination(1.0), lambda r: oracles.power(1.0, 0.0, r)),
    "eta 1/2": (power_examination(0.5), lambda r: oracles.power(0.5, 0.0, r)),
    "eta 2": (power_examination(2.0), lambda r: oracles.power(2.0, 0.0, r)),
    "no bias": (power_examination(0.0), lambda r: 1.0),
    "shifted": (power_examination(1.0, shift=1.0), lambda r: oracles.power(1.0, 1.0, r)),
    "table": ([0.9, 0.4, 0.7, 0.1], [0.9, 0.4, 0.7, 0.1]),
    "own": (lambda r: 0.2 + 0.7 * np.exp(-r), lambda r: 0.2 + 0.7 * math.exp(-r)),
}
# (ε₊, ε₋): without noise, with missed clicks, with both kinds.
NOISES = [(1.0, 0.0), (0.7, 0.0), (0.9, 0.3)]


def rows(values: list) -> list[list]:
    """A flat list cut into the lists of the two queries."""
    return [[values[d] for d in documents] for documents in oracles.lists(OFFSETS)]


def judged() -> list[tuple[np.ndarray, list[list[float]]]]:
    """λ(rank) of every ranker under every metric: from the package, and from the loops."""
    return [
        (rank_weights(scores, OFFSETS, metric=weight), rows(oracles.rank_weights(scores, OFFSETS, reference)))
        for scores in RANKERS.values()
        for weight, reference in WEIGHTS.values()
    ]


def theta_of(reference: oracles.Curve) -> list[list[float]]:
    return rows([oracles.examined(reference, r) for r in DISPLAYED])


def by_loops(statistic, theta, plus, minus, sessions) -> list[float]:
    """E[statistic(log)] over every single examination and click vector; ``statistic`` returns a list."""
    total: list[float] | None = None
    for probability, log in oracles.every_log(theta, rows(RELEVANCE), plus, minus, sessions):
        values = [probability * value for value in statistic(log)]
        total = values if total is None else [a + b for a, b in zip(total, values, strict=True)]
    assert total is not None
    return total


def by_package(statistic, curve, plus, minus, sessions) -> np.ndarray:
    policy, user = (
        DeterministicPolicy(DISPLAYED, OFFSETS),
        PositionBasedUser(curve, epsilon_plus=plus, epsilon_minus=minus),
    )
    return expectation(statistic, policy, user=user, relevance=RELEVANCE, sessions=sessions)


def risks(sessions: list[int]) -> list[float]:
    """Mean over the sessions of Δ(f | q) = Σ λ(rank) · relevance, for every ranker and metric."""
    out = []
    for scores in RANKERS.values():
        for _, reference in WEIGHTS.values():
            delta = oracles.additive_metric(scores, RELEVANCE, OFFSETS, reference)
            out.append(math.fsum(n * value for n, value in zip(sessions, delta, strict=True)) / sum(sessions))
    return out


@pytest.mark.oracle("estimators.ips")
@pytest.mark.parametrize("name", CURVES)
def test_ips_is_unbiased_without_noise(name: str) -> None:
    curve, reference = CURVES[name]
    theta, lams = theta_of(reference), judged()
    inverse = [[1 / p for p in row] for row in theta]
    for sessions in ([1, 1], [2, 1]):
        package = by_package(lambda log: [ips(log, lam=lam).value for lam, _ in lams], curve, 1.0, 0.0, sessions)
        loops = by_loops(
            lambda log: [oracles.per_session(log, lam, inverse) for _, lam in lams], theta, 1.0, 0.0, sessions
        )
        np.testing.assert_allclose(package, loops, rtol=0, atol=EXACT)
        np.testing.assert_allclose(package, risks(sessions), rtol=0, atol=EXACT)


@pytest.mark.parametrize(("plus", "minus"), NOISES)
@pytest.mark.parametrize("name", ["eta 1", "table"])
def test_noise_scales_and_shifts_the_risk(name: str, plus: float, minus: float) -> None:
    """E[IPS] = (ε₊ − ε₋) Δ + ε₋ Σ_d λ(rank(d))."""
    curve, reference = CURVES[name]
    theta, lams = theta_of(reference), judged()
    inverse = [[1 / p for p in row] for row in theta]
    package = by_package(lambda log: [ips(log, lam=lam).value for lam, _ in lams], curve, plus, minus, [1, 1])
    loops = by_loops(
        lambda log: [oracles.per_session(log, lam, inverse) for _, lam in lams], theta, plus, minus, [1, 1]
    )
    constant = [math.fsum(map(math.fsum, lam)) / 2 for _, lam in lams]
    expected = [(plus - minus) * delta + minus * c for delta, c in zip(risks([1, 1]), constant, strict=True)]
    np.testing.assert_allclose(package, loops, rtol=0, atol=EXACT)
    np.testing.assert_allclose(package, expected, rtol=0, atol=EXACT)


@pytest.mark.oracle("estimators.naive", "estimators.clipped")
@pytest.mark.parametrize("name", CURVES)
def test_naive_and_clipped_have_the_expectation_of_their_weights(name: str) -> None:
    """E[naive] = Σ θ λ rel, E[clipped] = Σ θ min(1/θ, c) λ rel."""
    curve, reference = CURVES[name]
    theta, lams = theta_of(reference), judged()
    estimators = {
        1.0: lambda log, lam: naive(log, lam=lam).value,
        1.5: lambda log, lam: clipped(log, lam=lam, cap=1.5).value,
        3.0: lambda log, lam: clipped(log, lam=lam, cap=3.0).value,
    }
    for cap, estimator in estimators.items():
        weight = [[min(1 / p, cap) for p in row] for row in theta]
        package = by_package(lambda log, e=estimator: [e(log, lam) for lam, _ in lams], curve, 1.0, 0.0, [1, 1])
        loops = by_loops(
            lambda log, w=weight: [oracles.per_session(log, lam, w) for _, lam in lams], theta, 1.0, 0.0, [1, 1]
        )
        expected = [
            math.fsum(
                theta[q][d] * weight[q][d] * lam[q][d] * rows(RELEVANCE)[q][d]
                for q in range(2)
                for d in range(len(lam[q]))
            )
            / 2
            for _, lam in lams
        ]
        np.testing.assert_allclose(package, loops, rtol=0, atol=EXACT)
        np.testing.assert_allclose(package, expected, rtol=0, atol=EXACT)


@pytest.mark.oracle("estimators.self_normalised")
@pytest.mark.parametrize(("plus", "minus"), NOISES)
@pytest.mark.parametrize("name", ["eta 1", "table", "shifted"])
def test_self_normalised_given_at_least_one_click(name: str, plus: float, minus: float) -> None:
    """A log without clicks has no self-normalised estimate (NaN): compared is E[estimate | a click], and P(a click)."""
    curve, reference = CURVES[name]
    theta, lams = theta_of(reference), judged()
    inverse = [[1 / p for p in row] for row in theta]

    def package_statistic(log) -> list[float]:
        values = [self_normalised(log, lam=lam).value for lam, _ in lams]
        assert all(math.isnan(v) == (log.n_clicks == 0) for v in values)
        return [0.0] * (len(values) + 1) if log.n_clicks == 0 else [*values, 1.0]

    def loop_statistic(log) -> list[float]:
        values = [oracles.self_normalised(log, lam, inverse) for _, lam in lams]
        return [0.0] * (len(values) + 1) if math.isnan(values[0]) else [*values, 1.0]

    package = by_package(package_statistic, curve, plus, minus, [1, 1])
    loops = np.array(by_loops(loop_statistic, theta, plus, minus, [1, 1]))
    assert abs(package[-1] - loops[-1]) <= EXACT
    np.testing.assert_allclose(package[:-1] / package[-1], loops[:-1] / loops[-1], rtol=0, atol=EXACT)


@pytest.mark.oracle("exact.expectation")
@pytest.mark.parametrize("name", ["eta 1", "table"])
def test_three_sessions_with_noise(name: str) -> None:
    """Several sessions of one query: the counts carry all that the single clicks do."""
    curve, reference = CURVES[name]
    theta = theta_of(reference)
    lams = judged()[:3]
    inverse = [[1 / p for p in row] for row in theta]
    policy, user = (
        DeterministicPolicy(DISPLAYED[:3], OFFSETS[:2]),
        PositionBasedUser(curve, epsilon_plus=0.9, epsilon_minus=0.3),
    )
    package = expectation(
        lambda log: [[ips(log, lam=lam.lam[:3]).value, naive(log, lam=lam.lam[:3]).value] for lam, _ in lams],
        policy,
        user=user,
        relevance=RELEVANCE[:3],
        sessions=[3],
    )
    total = np.zeros((3, 2))
    for probability, log in oracles.every_log(theta[:1], rows(RELEVANCE)[:1], 0.9, 0.3, [3]):
        for i, (_, lam) in enumerate(lams):
            total[i, 0] += probability * oracles.per_session(log, lam, inverse)
            total[i, 1] += probability * oracles.per_session(log, lam, [[1.0] * 3])
    np.testing.assert_allclose(package, total, rtol=0, atol=EXACT)


@pytest.mark.oracle("exact.enumerate_logs")
@pytest.mark.parametrize(("plus", "minus"), NOISES)
def test_enumerated_logs_have_the_probabilities_of_the_loops(plus: float, minus: float) -> None:
    curve, reference = CURVES["table"]
    policy, user = (
        DeterministicPolicy(DISPLAYED, OFFSETS),
        PositionBasedUser(curve, epsilon_plus=plus, epsilon_minus=minus),
    )
    sessions = [2, 1]
    package: dict[tuple[int, ...], float] = {}
    for probability, log in enumerate_logs(policy, user, relevance=RELEVANCE, sessions=sessions):
        key = tuple(log.clicks.tolist())
        assert key not in package
        assert log.sessions.tolist() == sessions
        assert log.impressions.tolist() == [2, 2, 2, 1, 1, 1, 1]
        assert log.rank.tolist() == DISPLAYED
        np.testing.assert_array_equal(log.propensity, [p for row in theta_of(reference) for p in row])
        package[key] = probability
    loops: dict[tuple[int, ...], float] = {}
    for probability, log in oracles.every_log(theta_of(reference), rows(RELEVANCE), plus, minus, sessions):
        asked, clicks = oracles.tally(log, [3, 4])
        assert asked == tuple(sessions)
        loops[clicks] = loops.get(clicks, 0.0) + probability
    assert set(package) == set(loops)
    for key, probability in loops.items():
        assert abs(package[key] - probability) <= EXACT
    assert abs(math.fsum(package.values()) - 1.0) <= EXACT
