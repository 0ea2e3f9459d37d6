"""Slope and intercept of each rank against loops over pairs of sessions, and refusals."""

import itertools
import math

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from strata_logs import drawn, of_groups, of_rows

from cfltr_core import (
    DisplayCounts,
    TrustUser,
    trust_bias,
)
from cfltr_core.propensity import trust_bias as module
from cfltr_core.propensity.trust_bias import trust_moments
from cfltr_core.propensity.trust_curves import TrustCurve

Groups = dict[tuple[int, int], oracles.Stratum]
CELL = st.tuples(st.integers(1, 6), st.integers(0, 1))
GROUPS = st.dictionaries(
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.dictionaries(st.integers(1, 3), CELL, min_size=1, max_size=3),
    min_size=1,
    max_size=6,
)
SLOPE, INTERCEPT = [1.0, 0.7, 0.5, 0.3], [0.0, -0.1, -0.1, -0.05]


def simulated(seed: int, n_queries: int = 10, n_ranks: int = 3) -> Groups:
    """Two documents a query, seen at two ranks or more, with clicks on the lines of each rank."""
    law = lambda k, attraction: SLOPE[k - 1] * attraction + INTERCEPT[k - 1]  # noqa: E731
    found = drawn(seed, n_queries=n_queries, n_ranks=n_ranks, least=300, most=900, law=law)
    return {(query, document): group for (query, _, document), group in found.items()}


@pytest.mark.oracle("trust_bias.trust_moments")
@given(groups=GROUPS, data=st.data())
def test_the_quadratic_form(groups: Groups, data: st.DataObject) -> None:
    """Terms of one impression are left out; y² is made of two different sessions."""
    groups = {
        key: {k: (n, data.draw(st.integers(0, n))) for k, (n, _) in group.items()} for key, group in groups.items()
    }
    counts = of_groups(groups)
    n, number = counts.n_ranks, st.floats(-2, 2)
    weights = data.draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n, max_size=n))
    p, q = (data.draw(st.lists(number, min_size=n, max_size=n)) for _ in range(2))
    moments = trust_moments(counts, weights)
    at = np.array([*p, *q])
    expected = oracles.trust_value(list(groups.values()), weights, p, q)
    np.testing.assert_allclose(at @ moments.form @ at, expected, atol=1e-10)
    noise = [oracles.trust_noise(list(groups.values()), weights, k) for k in range(1, n + 1)]
    np.testing.assert_allclose(moments.noise, noise, atol=1e-12)
    for bad in ([1.0] * (n + 1), [0.0] * n, [math.nan] * n):
        refuses("weights", trust_moments, counts, bad)


@pytest.mark.oracle("trust_bias.trust_bias")
@pytest.mark.parametrize("n_ranks", [2, 3, 4])
def test_the_estimate(n_ranks: int) -> None:
    groups = simulated(n_ranks, n_ranks=n_ranks)
    curve = trust_bias(of_groups(groups))
    slope, intercept = oracles.trust_fit(list(groups.values()), n_ranks, rounds=2)
    np.testing.assert_allclose(curve.slope, slope, rtol=1e-6)
    np.testing.assert_allclose(curve.intercept, intercept, rtol=1e-6, atol=1e-9)
    assert (curve.slope[0], curve.intercept[0]) == (1.0, 0.0)


@pytest.mark.oracle("trust_bias.trust_bias", "trust_curves.TrustCurve.slope_error",
                    "trust_curves.TrustCurve.intercept_error")  # fmt: skip
def test_its_error_is_what_each_query_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query counts a little more, a little less, in the loops: the slopes of the estimate make the covariance."""
    monkeypatch.setattr(module, "REWEIGHTED", 0)
    groups, step = simulated(5, n_queries=8), 1e-4
    curve = trust_bias(of_groups(groups))
    moved = []
    for query in range(8):
        ends = [
            np.concatenate(
                oracles.trust_fit(
                    list(groups.values()), 3, 0, copies=[1.0 + sign * step * (key[0] == query) for key in groups]
                )
            )
            for sign in (1, -1)
        ]
        moved.append(((ends[0] - ends[1]) / (2 * step)).tolist())
    expected = np.array(oracles.outer_sum(moved, 8))
    np.testing.assert_allclose(curve.covariance, expected, rtol=1e-4, atol=1e-10)
    errors = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(curve.slope_error, errors[:3], rtol=1e-4, atol=1e-10)
    np.testing.assert_allclose(curve.intercept_error, errors[3:], rtol=1e-4, atol=1e-10)
    assert curve.slope_error[0] == curve.intercept_error[0] == 0


def test_one_query_has_no_error() -> None:
    rows = {"query": [0] * 6, "document": [0, 0, 1, 1, 2, 2], "rank": [1, 2] * 3, "impressions": [900] * 6}
    curve = trust_bias(DisplayCounts(**rows, clicks=[810, 500, 450, 300, 90, 80]))
    assert np.isnan(curve.strength)
    assert curve.slope_error[0] == 0
    assert np.isnan(curve.slope_error[1])


def test_ranks_that_are_not_linked_are_not_known() -> None:
    groups = simulated(0)
    apart = {(10, document): {4: (500, 100 + 80 * document), 5: (500, 90)} for document in range(3)}
    once = {(10, 7): {3: (1, 1), 4: (300, 30)}}
    curve = trust_bias(of_groups(groups | apart | once))
    np.testing.assert_allclose(curve.slope[:3], trust_bias(of_groups(groups)).slope, rtol=1e-9)
    assert np.isnan(curve.slope[3:]).all()
    assert np.isnan(curve.intercept_error[3:]).all()
    assert "Only ranks of one group are on one scale: ranks 1–3; ranks 4–5. To join them, show" in curve.diagnosis
    assert "1 of" in curve.notes[1]
    refuses("displayed_rank[1] is 4: it is not linked with rank 1. Only ranks", curve.line, [1, 4])


@pytest.mark.oracle("trust_curves.TrustCurve", "trust_curves.TrustCurve.line", "trust_curves.TrustCurve.user",
                    "trust_curves.TrustCurve.diagnosis")  # fmt: skip
def test_curves_and_their_users() -> None:
    curve = TrustCurve(
        slope=np.array(SLOPE), intercept=np.array(INTERCEPT), covariance=np.zeros((8, 8)), strength=9.0,
        notes=("A.", "B."),
    )  # fmt: skip
    assert curve.diagnosis == "A.\nB."
    lines = np.transpose(curve.line([4, 1, 4]))
    assert lines.tolist() == [[SLOPE[k - 1], INTERCEPT[k - 1]] for k in (4, 1, 4)]
    user = curve.user(epsilon_plus=0.9, epsilon_minus=0.2)
    assert isinstance(user, TrustUser)
    plus, minus = ([min(max(a * e + b, 0.0), 1.0) for a, b in zip(SLOPE, INTERCEPT, strict=True)] for e in (0.9, 0.2))
    for rank, relevance in itertools.product(range(1, 5), (0, 1)):
        expected = oracles.trusted([1.0] * 4, plus, minus, rank, relevance)
        assert user.click_probability([rank], [relevance]) == pytest.approx(expected, rel=1e-14)
    refuses("epsilon_plus=0.2, epsilon_minus=0.2: expected", curve.user, epsilon_plus=0.2, epsilon_minus=0.2)
    refuses("displayed_rank[0] is 5", curve.line, [5])
    for name, value in (("intercept", np.zeros(3)), ("covariance", np.zeros((4, 4)))):
        given = {"slope": np.ones(4), "intercept": np.zeros(4), "covariance": np.zeros((8, 8)), name: value}
        refuses(f"{name}: expected shape", TrustCurve, **given, strength=1.0)


def test_logs_that_are_refused() -> None:
    rows = {"document": [0, 0, 1, 1], "rank": [1, 2] * 2, "impressions": [900] * 4}
    with pytest.raises(ValueError, match=r"^counts: no rank is linked with rank 1 by two documents.*: rank 1; rank 2"):
        trust_bias(DisplayCounts(query=[0] * 2, document=[0, 0], rank=[1, 2], impressions=[9, 9], clicks=[6, 3]))
    # One attraction: any line through one point.
    refuses("counts: the documents", trust_bias, DisplayCounts(query=[0, 0, 1, 1], **rows, clicks=[450, 200, 450, 200]))
    refuses("counts: at rank 2 what is", trust_bias, DisplayCounts(query=[0] * 4, **rows, clicks=[810, 100, 100, 810]))
    # No click at rank 2; warnings are errors here.
    few = {"query": [0] * 6, "document": [0, 0, 1, 1, 2, 2], "rank": [1, 2] * 3, "impressions": [6, 4, 5, 7, 4, 3]}
    refuses("counts: at rank 2 what is", trust_bias, DisplayCounts(**few, clicks=[1, 0, 1, 0, 4, 0]))


def test_without_noise_the_lines_come_back() -> None:
    """So many impressions that the noise is nothing: the truth up to the scale of rank 1."""
    lines = [oracles.trust_line([1.0, 0.5, 0.4], [0.9, 0.85, 0.8], [0.6, 0.3, 0.2], k) for k in (1, 2, 3)]
    groups = [(query, document) for query in range(4) for document in range(3)]
    rows = [
        (q, d, k, 10**12, round(10**12 * (s * (0.1 + 0.07 * (3 * q + d)) + i)))
        for q, d in groups
        for k, (s, i) in enumerate(lines, start=1)
        if k != 1 + d
    ]
    curve = trust_bias(of_rows(rows))
    (a, b), *_ = lines
    np.testing.assert_allclose(curve.slope, [s / a for s, _ in lines], atol=1e-8)
    np.testing.assert_allclose(curve.intercept, [i - b * s / a for s, i in lines], atol=1e-8)
