"""Where propensities come from: clicks equal to their means, and how often intervals of random logs cover."""

from collections.abc import Sequence

import numpy as np
import pytest
from strata_logs import of_rows

import cfltr_core as cf

EXACT = 1e-12
CURVE = [0.9, 0.5, 0.3]
PLUS, MINUS = 0.8, 0.2


def in_proportion(trust: float = 0.0) -> cf.DisplayCounts:
    """Three documents at two or three ranks, unequal displays, clicks equal to their means; ε₋ grows by ``trust``/k."""
    rows = []
    for document, ranks in enumerate([(1, 2), (2, 3), (1, 2, 3)]):
        for k in ranks:
            n = 1_000 * (document + 1) * k
            attraction = PLUS if document == 1 else MINUS + trust / k
            rows.append((document // 2, document, k, n, round(n * CURVE[k - 1] * attraction)))
    return of_rows(rows)


@pytest.mark.parametrize("estimate", [cf.conditional_poisson, cf.all_pairs, cf.adjacent_chain, cf.pivot])
def test_from_clicks_equal_to_their_means_examination_is_found(estimate: object) -> None:
    truth = np.array(CURVE) / CURVE[0]
    np.testing.assert_allclose(estimate(in_proportion()).curve, truth, rtol=EXACT)  # type: ignore[operator]
    # Trust bias is no position bias: what is found then is another curve.
    assert np.abs(estimate(in_proportion(trust=0.2)).curve / truth - 1).max() > 0.1  # type: ignore[operator]


def simulated(seed: int, n_queries: int = 40, curve: Sequence[float] = (1, 0.6, 0.4, 0.2)) -> cf.DisplayCounts:
    """A log of three rankers, of which the first is the best, on lists of four: each query is new."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(n_queries + 1) * 4
    relevance = (rng.random(4 * n_queries) < 0.4).astype(np.int64)
    scores = [relevance + rng.normal(size=4 * n_queries) * noise for noise in (0.5, 1.0, 2.0)]
    rankers = [cf.DeterministicPolicy.rank_by(s, offsets, rng=rng) for s in scores]
    user = cf.PositionBasedUser(curve, epsilon_plus=0.8, epsilon_minus=0.2)
    policy = cf.MixturePolicy(rankers, [0.4, 0.3, 0.3])
    log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=rng.poisson(30, n_queries) + 1, rng=rng)
    return cf.display_counts(log)


@pytest.fixture(scope="module")
def logs() -> list[cf.DisplayCounts]:
    return [simulated(seed) for seed in range(150)]


@pytest.mark.parametrize("estimate", [cf.conditional_poisson, cf.all_pairs, cf.pivot, cf.adjacent_chain])
def test_intervals_cover_as_often_as_they_say(estimate: object, logs: list[cf.DisplayCounts]) -> None:
    """150 logs: the share of intervals that cover has a standard error of 1.8 %, a standard deviation one of 6 %."""
    truth = np.log([0.6, 0.4, 0.2])
    curves = [estimate(counts) for counts in logs]  # type: ignore[operator]
    found = np.array([curve.log_ratio[1:] for curve in curves])
    error = np.array([curve.standard_error[1:] for curve in curves])
    covered = (np.abs(found - truth) < 1.959964 * error).mean(axis=0)
    chance = np.sqrt(0.95 * 0.05 / len(logs))
    assert (np.abs(covered - 0.95) < 4 * chance).all(), covered
    assert (np.abs(found.mean(axis=0) - truth) < 4 * found.std(axis=0) / np.sqrt(len(logs)) + 0.02).all()
    # Means of squares, against the heavy tails of small logs.
    ratio = np.sqrt((error**2).mean(axis=0)) / found.std(axis=0)
    assert (np.abs(ratio - 1) < 4 / np.sqrt(2 * len(logs))).all(), ratio


def test_intervals_with_the_weights_of_the_design_cover_too() -> None:
    """200 logs of one population with few sessions a query; documents need not be seen at both ranks."""
    rng = np.random.default_rng(0)
    offsets = np.arange(101) * 4
    relevance = (rng.random(400) < 0.4).astype(np.int64)
    rankers = [cf.DeterministicPolicy.rank_by(relevance + rng.normal(size=400), offsets, rng=rng) for _ in range(2)]
    policy, curve = cf.MixturePolicy(rankers, [0.6, 0.4]), [1, 0.6, 0.4, 0.2]
    user, found = cf.PositionBasedUser(curve, epsilon_plus=0.8, epsilon_minus=0.2), []
    for _ in range(200):
        sessions = rng.multinomial(400, np.full(100, 0.01))
        log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=sessions, rng=rng)
        fit = cf.all_pairs(cf.display_counts(log), weighting="design", design=policy)
        found.append(np.abs(fit.log_ratio - np.log(curve))[1:] < 1.959964 * fit.standard_error[1:])
    covered = np.mean(found, axis=0)
    assert (np.abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)).all(), covered
