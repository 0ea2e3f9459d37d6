"""LambdaLoss against a double loop over all orders of tied documents; what it bounds; what is unbiased of it."""

import math
from itertools import pairwise, product
from typing import Any, get_args
from unittest.mock import patch

import numpy as np
import oracles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cfltr_core as cf
from cfltr_book.theory.exact import expectation
from cfltr_core.learning import lambda_pairs
from cfltr_core.learning.lambda_pairs import LambdaLists, Truncation, far_apart

CUTS = [0, 4, 5, 9, 12]
CUTOFFS = (None, 1, 2, 3, 9)
FORMS = ("linear", "difference")
TRUNCATIONS = get_args(Truncation)
EVERY = [(k, t, f) for k, t, f in product(CUTOFFS, TRUNCATIONS, FORMS) if k is not None or t == TRUNCATIONS[0]]
# Few values, so that there are ties, and values far apart.
SCORE = st.one_of(st.sampled_from([0.0, 1.0, -0.5]), st.floats(-30, 30))
GAIN = st.sampled_from([0.0, 0.0, 0.5, 1.0, 7.0])


def close(found: Any, expected: Any, tol: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=tol, atol=tol)


@pytest.mark.oracle("lambda_loss.lambda_loss", "lambda_pairs.LambdaLists.loss")
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    data=st.data(),
    which=st.sampled_from(EVERY),
    sigma=st.sampled_from([1.0, 0.3, 4.0]),
    block=st.sampled_from([1, 6, 1 << 13]),
)
def test_against_the_double_loop(sizes: list[int], data: Any, which: Any, sigma: float, block: int) -> None:
    (k, truncation, form), n = which, sum(sizes)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    s = data.draw(st.lists(SCORE, min_size=n, max_size=n))
    gains = data.draw(st.lists(GAIN, min_size=n, max_size=n))
    value, gradient, hessian = oracles.lambda_loss(s, offsets.tolist(), gains, k, truncation, form, sigma)
    given_: dict[str, Any] = {"cutoff": k, "truncation": truncation, "form": form, "sigma": sigma}
    with patch.object(lambda_pairs, "BLOCK", block):
        found = cf.lambda_loss(s, offsets, gains=gains, hessian=True, **given_)
        lists = LambdaLists(offsets, gains, **given_)
        again = lists.loss(np.array(s))
    close([found.value, *found.gradient, *found.hessian], [value, *gradient, *hessian])
    assert again.hessian is None
    close([again.value, *again.gradient], [value, *gradient])
    # A second call finds the lists as the first did.
    close(lists.loss(np.array(s)).gradient, gradient)


@pytest.mark.parametrize(("k", "truncation", "form"), EVERY)
def test_gradient_and_hessian_are_differences(k: int | None, truncation: str, form: str) -> None:
    rng = np.random.default_rng(3)
    s, gains = rng.permutation(12) / 3.0, rng.choice([0.0, 0.4, 1.0, 2.0], 12)
    given_: dict[str, Any] = {"gains": gains, "cutoff": k, "truncation": truncation, "form": form, "sigma": 1.3}
    found, step = cf.lambda_loss(s, CUTS, hessian=True, **given_), 1e-4
    for d in range(12):
        moved = [cf.lambda_loss(s + step * side * (np.arange(12) == d), CUTS, **given_) for side in (1, -1)]
        close(found.gradient[d], (moved[0].value - moved[1].value) / (2 * step), 1e-7)
        close(found.hessian[d], (moved[0].gradient[d] - moved[1].gradient[d]) / (2 * step), 1e-7)


@pytest.mark.parametrize(("k", "truncation", "form"), EVERY)
def test_invariances(k: int | None, truncation: str, form: str) -> None:
    """To the order of documents and of lists, and to a constant added to a list's scores; forces cancel in a list."""
    rng = np.random.default_rng(5)
    s, gains = rng.integers(0, 4, 12) / 2.0, rng.choice([0.0, 0.5, 1.0], 12)
    given_: dict[str, Any] = {"cutoff": k, "truncation": truncation, "form": form, "hessian": True}
    found = cf.lambda_loss(s, CUTS, gains=gains, **given_)
    close(np.add.reduceat(found.gradient, CUTS[:-1]), np.zeros(4))
    blocks = [a + rng.permutation(b - a) for a, b in pairwise(CUTS)]
    turned = [blocks[q] for q in (2, 0, 3, 1)]
    order = np.concatenate(turned)
    other = cf.lambda_loss(s[order], np.cumsum([0, *map(len, turned)]), gains=gains[order], **given_)
    close(other.value, found.value)
    close(other.gradient, found.gradient[order])
    close(other.hessian, found.hessian[order])
    shifted = cf.lambda_loss(s + np.repeat([64.0, -2.0, 0.5, 8.0], np.diff(CUTS)), CUTS, gains=gains, **given_)
    close([shifted.value, *shifted.gradient], [found.value, *found.gradient])


@pytest.mark.parametrize("gap", [100.0, 1e4, 1e300])
@pytest.mark.parametrize(("k", "truncation", "form"), EVERY)
def test_finite_at_any_gap(k: int | None, truncation: str, form: str, gap: float) -> None:
    s, gains = np.array([gap, 0.0, -gap, 0.0]), [0.0, 1.0, 2.0, 0.5]
    found = cf.lambda_loss(s, [0, 4], gains=gains, cutoff=k, truncation=truncation, form=form, hessian=True)
    assert np.isfinite([found.value, *found.gradient, *found.hessian]).all()
    if gap <= 1e4:
        value, gradient, _ = oracles.lambda_loss(s.tolist(), [0, 4], gains, k, truncation, form)
        close([found.value, *found.gradient], [value, *gradient])


@pytest.mark.oracle("lambda_pairs.far_apart")
def test_how_far_scores_can_be_apart() -> None:
    for scores in ([0.0], [-3.0, 2.0], [1e307, -5e307]):
        assert far_apart(np.array(scores), 0.5) == oracles.far_apart(scores, 0.5)
    assert far_apart(np.array([1.7e308]), 1.0) == math.inf
    assert math.isnan(far_apart(np.array([math.nan, 1.0]), 1.0))


@pytest.mark.parametrize("form", FORMS)
def test_all_tied_is_the_mean_over_all_orders_whatever_the_length(form: str) -> None:
    """Pairs of one group have the mean weight of all pairs, by its definition; so far from 4 documents too."""
    n, k = 60, 5
    gains = np.random.default_rng(0).choice([0.0, 1.0, 3.0], n)
    weight = np.mean([oracles.pair_weight(r, q, k, "at_least_one") for r in range(1, n + 1) for q in range(1, n + 1)
                      if r != q])  # fmt: skip
    pair = gains[:, None] if form == "linear" else np.maximum(gains[:, None] - gains, 0)
    pair = pair * (1 - np.eye(n)) * weight
    with patch.object(lambda_pairs, "BLOCK", 100):
        found = cf.lambda_loss(np.zeros(n), [0, n], gains=gains, cutoff=k, form=form)
    close(found.value, pair.sum())
    close(found.gradient, (pair.sum(axis=0) - pair.sum(axis=1)) / (2 * np.log(2)))


def missed(k: int | None, truncation: str) -> cf.RankWeight:
    """What the pairs above a document weigh, by its rank: the metric that the linear form bounds."""
    return cf.RankWeight("missed", np.vectorize(oracles.missed(k, truncation), otypes=[float]), larger_is_better=False)


@given(st.lists(SCORE, min_size=12, max_size=12), st.lists(GAIN, min_size=12, max_size=12), st.sampled_from(EVERY))
@settings(max_examples=100)
def test_the_linear_form_bounds_its_metric(s: list[float], gains: list[float], which: Any) -> None:
    k, truncation, _ = which
    found = cf.lambda_loss(s, CUTS, gains=gains, cutoff=k, truncation=truncation).value
    lam = cf.rank_weights(s, CUTS, metric=missed(k, truncation)).lam
    assert found >= lam @ gains - 1e-12


@given(st.lists(SCORE, min_size=5, max_size=5, unique=True), st.lists(GAIN, min_size=5, max_size=5))
def test_the_difference_form_bounds_less(s: list[float], gains: list[float]) -> None:
    found = cf.lambda_loss(s, [0, 5], gains=gains, cutoff=2, form="difference").value
    rank = cf.ranks(s, [0, 5]).astype(int)
    least = sum(
        min(gains[d], gains[e]) * oracles.pair_weight(rank[d], rank[e], 2, "at_least_one")
        for d in range(5)
        for e in range(d)
    )
    lam = cf.rank_weights(s, [0, 5], metric=missed(2, "at_least_one")).lam
    assert found >= lam @ gains - least - 1e-12


def test_what_a_document_at_rank_30_gets() -> None:
    gains = np.zeros(40)
    gains[29] = 1.0
    pull = {
        t: -cf.lambda_loss(-np.arange(40.0) / 10, [0, 40], gains=gains, cutoff=5, truncation=t).gradient[29]
        for t in TRUNCATIONS
    }
    assert pull["both"] == 0.0
    assert 0 < pull["at_least_one"] < pull["beyond"]


@pytest.mark.oracle("lambda_loss.click_gains")
def test_gains_of_a_log() -> None:
    log = cf.ClickLog(
        document=[0, 1, 1, 3, 4], rank=[1, 2, 3, 1, 2], impressions=[9, 4, 5, 6, 6], clicks=[5, 1, 2, 4, 0],
        propensity=[1.0, 0.5, 0.25, 0.8, 0.0], sessions=[9, 6, 0], offsets=[0, 3, 5, 7],
    )  # fmt: skip
    expected = oracles.click_gains(
        log.document.tolist(), log.clicks.tolist(), log.propensity.tolist(), [9, 6, 0], [0, 3, 5, 7]
    )
    found = cf.click_gains(log)
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert found.dtype == np.float64


USER = cf.PositionBasedUser([1.0, 0.5, 0.25])
POLICY = cf.EpsilonGreedyPolicy([1, 2, 3, 4, 1], [0, 4, 5], epsilon=[0, 0.2, 1.0])
RELEVANT = [0, 1, 1, 0, 1]
AT = [0.3, 0.3, 0.9, -1.0, 2.0]


def expected_loss(form: str, truncation: str, sessions: int, aware: bool = True) -> np.ndarray:
    """Value and gradient, in the mean over every page and every click of some sessions."""
    exposure = POLICY.exposure(USER)

    def statistic(log: cf.ClickLog) -> np.ndarray:
        gains = cf.click_gains(cf.policy_aware(log, exposure) if aware else log)
        found = cf.lambda_loss(AT, POLICY.offsets, gains=gains, cutoff=2, truncation=truncation, form=form)
        return np.array([found.value, *found.gradient])

    return expectation(statistic, POLICY, user=USER, relevance=RELEVANT, sessions=[sessions, 1])


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_the_linear_form_is_unbiased(truncation: str) -> None:
    value, gradient, _ = oracles.lambda_loss(AT, [0, 4, 5], RELEVANT, 2, truncation)
    for sessions in (1, 2):
        close(expected_loss("linear", truncation, sessions), [value, *gradient])


def test_oblivious_gains_are_not() -> None:
    value, _, _ = oracles.lambda_loss(AT, [0, 4, 5], RELEVANT, 2)
    assert expected_loss("linear", "at_least_one", 1, aware=False)[0] < 0.9 * value


@pytest.mark.parametrize("truncation", TRUNCATIONS)
def test_the_difference_form_is_biased_upwards_and_less_with_more_sessions(truncation: str) -> None:
    value, _, _ = oracles.lambda_loss(AT, [0, 4, 5], RELEVANT, 2, truncation, "difference")
    excess = [expected_loss("difference", truncation, n)[0] / value - 1 for n in (1, 2)]
    assert excess[0] > 1.1 * excess[1] > 0.05


def test_no_gain_at_all() -> None:
    found = cf.lambda_loss([1.0, 2.0], [0, 2], gains=[0.0, 0.0], hessian=True)
    assert (found.value, found.gradient.tolist(), found.hessian.tolist()) == (0.0, [0.0, 0.0], [0.0, 0.0])
