"""What must go wrong: each assumption of unbiasedness broken once, with the size of the damage computed by loops."""

import dataclasses
import math

import numpy as np
import oracles

import cfltr_core as cf
from cfltr_book.theory.exact import expectation

EXACT = 1e-12


def mean_of(estimate, weights, policy, user, relevance, sessions: int = 1) -> np.ndarray:
    """The mean over all logs of an estimate by each of some weights."""
    return expectation(
        lambda log: [estimate(log, lam=lam).value for lam in weights],
        policy, user=user, relevance=relevance, sessions=[sessions],
    )  # fmt: skip


def test_dividing_by_clicks_is_biased() -> None:
    """Two relevant documents, p = 1 and ½, λ = 2 and 1: the risk is 3; per session 3, per click 2."""
    policy, user = cf.DeterministicPolicy([1, 2], [0, 2]), cf.PositionBasedUser([1.0, 0.5])
    lam = np.array([2.0, 1.0])
    (per_session,) = mean_of(cf.ips, [lam], policy, user, [1, 1])
    per_click = expectation(
        lambda log: cf.ips(log, lam=lam).value * log.n_sessions / log.n_clicks,
        policy, user=user, relevance=[1, 1], sessions=[1],
    )  # fmt: skip
    loop_session = loop_click = 0.0
    for probability, log in oracles.every_log([[1.0, 0.5]], [[1, 1]], 1.0, 0.0, [1]):
        value = oracles.per_session(log, [[2.0, 1.0]], [[1.0, 2.0]])
        loop_session += probability * value
        loop_click += probability * value / sum(log[0][1])
    assert abs(per_session - 3.0) <= EXACT
    assert abs(loop_session - 3.0) <= EXACT
    assert abs(per_click - 2.0) <= EXACT
    assert abs(loop_click - 2.0) <= EXACT


def test_naive_estimate_prefers_the_wrong_ranking() -> None:
    """Relevant documents at displayed ranks 1, 2, 3 of 4: the naive estimate favours whoever keeps the first one up."""
    policy, user = cf.DeterministicPolicy([1, 2, 3, 4], [0, 4]), cf.PositionBasedUser([1.0, 0.1, 0.1, 0.1])
    relevance = [1, 1, 1, 0]
    # Ranks (1, 3, 4, 2) and (3, 1, 2, 4); the second is better.
    rankers = ([4.0, 2.0, 1.0, 3.0], [2.0, 4.0, 3.0, 1.0])
    lam = [cf.rank_weights(scores, [0, 4], metric=cf.average_rank()) for scores in rankers]
    truth = [oracles.additive_metric(scores, relevance, [0, 4], oracles.average_rank)[0] for scores in rankers]
    biased, repaired = (mean_of(estimate, lam, policy, user, relevance) for estimate in (cf.naive, cf.ips))
    assert truth == [8.0, 6.0]
    np.testing.assert_allclose(repaired, truth, rtol=0, atol=EXACT)
    np.testing.assert_allclose(biased, [1 + 0.3 + 0.4, 3 + 0.1 + 0.2], rtol=0, atol=EXACT)


def test_a_relevant_document_that_is_never_examined_is_missing_from_the_estimate() -> None:
    relevance, scores = [1, 1, 0, 1], [1.0, 2.0, 3.0, 4.0]
    lam = cf.rank_weights(scores, [0, 4], metric=cf.dcg())
    loops = oracles.rank_weights(scores, [0, 4], oracles.dcg)
    truth = math.fsum(v * r for v, r in zip(loops, relevance, strict=True))
    hidden = [
        # Not shown at all, or shown where nobody looks.
        (cf.DeterministicPolicy([3, 1, 2, 0], [0, 4]), cf.PositionBasedUser(cf.power_examination(1.0))),
        (cf.DeterministicPolicy([3, 1, 2, 4], [0, 4]), cf.PositionBasedUser([1.0, 0.5, 0.25])),
        (cf.DeterministicPolicy([3, 1, 2, 4], [0, 4]), cf.PositionBasedUser([1.0, 0.5, 0.25, 0.0])),
    ]
    for policy, user in hidden:
        assert policy.exposure(user)[3] == 0.0
        (found,) = mean_of(cf.ips, [lam], policy, user, relevance, sessions=2)
        assert abs(found - (truth - loops[3])) <= EXACT
        assert abs(found - truth) > 0.5


def test_the_wrong_examination_curve_is_biased() -> None:
    """Clicks under eta = 1, weights under eta = ½: every document counts θ / θ̂ = rank^−½ times."""
    shown, relevance, scores = [2, 1, 3], [1, 1, 1], [3.0, 1.0, 2.0]
    policy, user = cf.DeterministicPolicy(shown, [0, 3]), cf.PositionBasedUser(cf.power_examination(1.0))
    lam = cf.rank_weights(scores, [0, 3], metric=cf.average_rank())
    assumed = cf.PositionBasedUser(cf.power_examination(0.5)).propensity(np.array(shown))
    found = expectation(
        lambda log: cf.ips(dataclasses.replace(log, propensity=assumed), lam=lam).value,
        policy, user=user, relevance=relevance, sessions=[1],
    )  # fmt: skip
    theta = [[oracles.power(1.0, 0.0, r) for r in shown]]
    weight = [[1 / oracles.power(0.5, 0.0, r) for r in shown]]
    by_loops = math.fsum(
        p * oracles.per_session(log, [[1.0, 3.0, 2.0]], weight)
        for p, log in oracles.every_log(theta, [relevance], 1.0, 0.0, [1])
    )
    assert abs(found - by_loops) <= EXACT
    assert abs(found - (1.0 * 2**-0.5 + 3.0 + 2.0 * 3**-0.5)) <= EXACT
    assert found < 6.0 - 1.0


def test_noise_moves_the_value_but_not_the_order_of_two_rankings() -> None:
    """Binary relevance: the shift ε₋ Σ λ is the same for every permutation, so that the order stays."""
    policy = cf.DeterministicPolicy([1, 2, 3], [0, 3])
    user = cf.PositionBasedUser(cf.power_examination(1.0), epsilon_plus=0.9, epsilon_minus=0.4)
    better, worse = [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]
    lam = [cf.rank_weights(scores, [0, 3], metric=cf.dcg()) for scores in (better, worse)]
    found = mean_of(cf.ips, lam, policy, user, [0, 0, 1])
    truth = [oracles.additive_metric(s, [0, 0, 1], [0, 3], oracles.dcg)[0] for s in (better, worse)]
    assert abs((found[0] - found[1]) - 0.5 * (truth[0] - truth[1])) <= EXACT
    # 0.5 Δ + 0.4 Σ λ with Δ = −1 and Σ λ = −(1 + 1/log₂ 3 + 1/2): the value itself is off.
    assert abs(found[0] - (-0.5 - 0.4 * (1.5 + 1 / math.log2(3)))) <= EXACT
    assert abs(found[0] - truth[0]) > 0.3


def test_noise_with_hidden_documents_can_turn_the_order_round() -> None:
    """Shown A (relevant) and B, hidden C: the shift ε₋ (λ_A + λ_B) is no longer the same for every permutation."""
    policy = cf.DeterministicPolicy([1, 2, 0], [0, 3])
    user = cf.PositionBasedUser([1.0, 0.5], epsilon_plus=0.9, epsilon_minus=0.6)
    # Ranks (A, B, C) = (1, 3, 2) and (2, 1, 3); the first is better: Δ = 1 against 2.
    lam = [cf.rank_weights(scores, [0, 3], metric=cf.average_rank()) for scores in ([3.0, 1.0, 2.0], [2.0, 3.0, 1.0])]
    found = mean_of(cf.ips, lam, policy, user, [1, 0, 0])
    by_loops = [
        math.fsum(
            p * oracles.per_session(log, [ranks], [[1.0, 2.0]])
            for p, log in oracles.every_log([[1.0, 0.5]], [[1, 0]], 0.9, 0.6, [1])
        )
        for ranks in ([1.0, 3.0], [2.0, 1.0])
    ]
    np.testing.assert_allclose(found, by_loops, rtol=0, atol=EXACT)
    np.testing.assert_allclose(found, [0.3 * 1 + 0.6 * 4, 0.3 * 2 + 0.6 * 3], rtol=0, atol=EXACT)
