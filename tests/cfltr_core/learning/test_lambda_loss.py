"""LambdaLoss against a double loop over all orders of tied documents; what it bounds; what is unbiased of it."""

import math
from itertools import product
from typing import Any, get_args
from unittest.mock import patch

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cfltr_core as cf
from cfltr_core.learning import lambda_pairs
from cfltr_core.learning.lambda_pairs import LambdaLists, Truncation, far_apart

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


def test_no_gain_at_all() -> None:
    found = cf.lambda_loss([1.0, 2.0], [0, 2], gains=[0.0, 0.0], hessian=True)
    assert (found.value, found.gradient.tolist(), found.hessian.tolist()) == (0.0, [0.0, 0.0], [0.0, 0.0])
