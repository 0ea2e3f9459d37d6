"""Users who trust high ranks, and users who read from the top: against loops, and every decision enumerated."""

import itertools
import math
from collections import Counter

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cfltr_core as cf
from cfltr_core.clicks.other_users import CascadeUser

THETA = [1.0, 0.6, 0.3, 0.2]
NOISES: list[tuple[oracles.Noise, oracles.Noise]] = [
    (0.9, 0.2),
    ([0.9, 0.8, 0.8, 0.7], [0.5, 0.3, 0.2, 0.1]),
    (1.0, lambda r: 0.1 + 0.4 / r),
    (lambda r: 1.0 / r, [0.5, 0.1, 0.1, 0.0]),
]


@pytest.mark.oracle("users.User.propensity", "users.User.click_probability", "other_users.TrustUser",
                    "other_users.TrustUser.propensity", "other_users.TrustUser.line",
                    "other_users.TrustUser.click_probability")  # fmt: skip
@pytest.mark.parametrize(("plus", "minus"), NOISES)
@given(rank=st.lists(st.integers(0, 6), min_size=1, max_size=6), data=st.data())
def test_trust_user(plus: oracles.Noise, minus: oracles.Noise, rank: list[int], data: st.DataObject) -> None:
    """The table of examination ends at rank 4: below it nothing is asked of ε."""
    relevance = data.draw(st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=len(rank), max_size=len(rank)))
    user = cf.TrustUser(THETA, epsilon_plus=plus, epsilon_minus=minus)
    np.testing.assert_allclose(user.propensity(rank), [oracles.examined(THETA, r) for r in rank], rtol=1e-14)
    lines = [oracles.trust_line(THETA, plus, minus, r) for r in rank]
    np.testing.assert_allclose(np.transpose(user.line(rank)), lines, rtol=1e-13, atol=1e-16)
    clicks = [oracles.trusted(THETA, plus, minus, r, y) for r, y in zip(rank, relevance, strict=True)]
    np.testing.assert_allclose(user.click_probability(rank, relevance), clicks, rtol=1e-13, atol=1e-16)
    square = user.click_probability(np.reshape(rank, (1, -1)), np.reshape(relevance, (1, -1)))
    np.testing.assert_array_equal(square, [user.click_probability(rank, relevance)])


PROBABILITY = st.sampled_from([0.0, 0.3, 0.5, 1.0])


@pytest.mark.oracle("other_users.CascadeUser", "other_users.CascadeUser.page_click_probability")
@given(
    relevance=st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=4),
    stop=PROBABILITY,
    give_up=PROBABILITY,
    noise=st.sampled_from([(1.0, 0.0), (0.8, 0.2), (0.5, 0.5)]),
)
def test_cascade_rates(relevance: list[float], stop: float, give_up: float, noise: tuple[float, float]) -> None:
    user = CascadeUser(stop=stop, give_up=give_up, epsilon_plus=noise[0], epsilon_minus=noise[1])
    attraction = [noise[0] * y + noise[1] * (1 - y) for y in relevance]
    law = oracles.cascade_law(attraction, stop, give_up)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    rates = [math.fsum(p for clicks, p in law.items() if clicks[place]) for place in range(len(relevance))]
    np.testing.assert_allclose(user.page_click_probability(relevance), rates, atol=1e-14)
    np.testing.assert_allclose(user.page_click_probability([relevance, relevance])[1], rates, atol=1e-14)
    if stop == give_up:  # what stands above does not matter
        theta = [(1 - stop) ** place for place in range(len(relevance))]
        np.testing.assert_allclose(rates, np.multiply(theta, attraction), atol=1e-14)


@pytest.mark.oracle("other_users.CascadeUser.draw_page_clicks")
@pytest.mark.parametrize(("stop", "give_up"), [(1.0, 0.0), (0.5, 0.0), (0.6, 0.3)])
def test_cascade_draws_have_the_law_of_every_click_vector(stop: float, give_up: float) -> None:
    """All eight click vectors of a page of three, each within four standard errors."""
    user, n = CascadeUser(stop=stop, give_up=give_up, epsilon_plus=0.7, epsilon_minus=0.2), 200_000
    law = oracles.cascade_law([0.7, 0.2, 0.7], stop, give_up)
    clicks = user.draw_page_clicks(np.broadcast_to([1, 0, 1], (n, 3)), np.random.default_rng(1))
    found = Counter(map(tuple, clicks.astype(int).tolist()))
    for vector in itertools.product((0, 1), repeat=3):
        p = law.get(vector, 0.0)
        assert abs(found[vector] / n - p) <= 4 * math.sqrt(p * (1 - p) / n)
