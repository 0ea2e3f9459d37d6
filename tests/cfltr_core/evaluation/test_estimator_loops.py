"""Estimates, their errors and intervals on arbitrary small logs, against loops over queries and over sessions."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refuses
from strategies import Counts, counts, log_of

import cfltr_core as cf
from cfltr_core import DeterministicPolicy, PositionBasedUser, TrustUser, affine, aggregate_clicks, power_examination
from cfltr_core.evaluation.estimates import Estimate, ratio_error
from cfltr_core.evaluation.estimators import corrected_clicks
from cfltr_core.propensity.trust_curves import TrustCurve

# The session-wise reference runs through every way of handing out the clicks: few sessions, short lists.
SMALL = counts(longest=3, most_sessions=3)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
THETA = {0: 0.0, 1: 1.0, 2: 0.5, 3: 1 / 3}


@pytest.mark.oracle("estimators.ips", "estimators.naive", "estimators.clipped", "estimators.self_normalised")
@given(problem=SMALL, unit=st.sampled_from(["query", "session"]), seed=st.integers(0, 99), cap=st.floats(1, 4))
def test_estimates(problem: Counts, unit: str, seed: int, cap: float) -> None:
    n = sum(problem.sessions)
    observed = (problem.clicks, problem.offsets, problem.sessions)
    assume(n > 0)
    log = log_of(problem, cf.PositionBasedUser(cf.power_examination(1.0)))
    lam = np.random.default_rng(seed).normal(size=problem.offsets[-1])
    inverse = [1 / THETA[r] if r else 0.0 for r in problem.rank]
    for found, weight in (
        (cf.ips(log, lam=lam, unit=unit), inverse),
        (cf.naive(log, lam=lam, unit=unit), [1.0 if r else 0.0 for r in problem.rank]),
        (cf.clipped(log, lam=lam, cap=cap, unit=unit), [min(w, cap) for w in inverse]),
    ):
        a = [w * v for w, v in zip(weight, lam, strict=True)]
        value = math.fsum(c * b for c, b in zip(problem.clicks, a, strict=True)) / n
        expected = oracles.standard_error(unit, *observed, a, value, n)
        np.testing.assert_allclose([found.value, found.standard_error], [value, expected], **CLOSE)
        assert (found.n_sessions, found.n_clicks) == (n, sum(problem.clicks))
    found = cf.self_normalised(log, lam=lam, unit=unit)
    total = math.fsum(c * w for c, w in zip(problem.clicks, inverse, strict=True))
    if total == 0:
        assert math.isnan(found.value)
        assert math.isnan(found.standard_error)
    else:
        value = math.fsum(c * w * v for c, w, v in zip(problem.clicks, inverse, lam, strict=True)) / total
        residual = [(v - value) * w for v, w in zip(lam, inverse, strict=True)]
        expected = oracles.standard_error(unit, *observed, residual, 0.0, total)
        np.testing.assert_allclose([found.value, found.standard_error], [value, expected], **CLOSE)
    assert (found.n_sessions, found.n_clicks) == (n, sum(problem.clicks))


USER = PositionBasedUser(power_examination(1.0))


@pytest.mark.oracle("estimates.ratio_error")
@given(
    problem=counts(longest=3, most_sessions=3),
    unit=st.sampled_from(["query", "session"]),
    seed=st.integers(0, 99),
    centre=st.floats(-2, 2),
    denominator=st.floats(0.5, 9),
)
def test_ratio_error(problem: Counts, unit: str, seed: int, centre: float, denominator: float) -> None:
    """What is fixed in a session is, in the loops, one document more that is always clicked."""
    assume(sum(problem.sessions) > 0)
    log = log_of(problem, USER)
    rng = np.random.default_rng(seed)
    of_document, of_query = rng.normal(size=problem.offsets[-1]), rng.normal(size=len(problem.sessions))
    offsets, clicks, coefficient = [0], [], []
    fixed = np.zeros(len(log.document))
    for query, documents in enumerate(oracles.lists(problem.offsets)):
        terms = [t for t, d in enumerate(log.document.tolist()) if d in documents]
        if terms:
            fixed[terms[0]] = of_query[query] * problem.sessions[query]
        clicks += [problem.clicks[d] for d in documents] + [problem.sessions[query]]
        coefficient += [of_document[d] for d in documents] + [of_query[query] if terms else 0.0]
        offsets.append(len(clicks))
    expected = oracles.standard_error(unit, clicks, offsets, problem.sessions, coefficient, centre, denominator)
    found = ratio_error(log, of_document[log.document], centre=centre, denominator=denominator, unit=unit, fixed=fixed)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_a_ratio_has_no_other_unit() -> None:
    log = aggregate_clicks([0], DeterministicPolicy([1], [0, 1]), user=PositionBasedUser([1.0]), sessions=[4])
    refuses("unit is 'click': choose one of", ratio_error, log, log.weights, centre=0.0, denominator=1.0, unit="click")


@pytest.mark.oracle("estimates.Estimate.interval")
@given(value=st.floats(-5, 5), spread=st.floats(0, 3), level=st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]))
def test_interval(value: float, spread: float, level: float) -> None:
    found = Estimate(value, spread, 10, 5).interval(level)
    np.testing.assert_allclose(found, oracles.normal_interval(value, spread, level), rtol=0, atol=1e-12)


def test_intervals_are_of_95_percent_unless_another_level_is_given() -> None:
    estimate = Estimate(2.0, 1.0, 10, 5, cf.average_rank())
    assert estimate.interval() == estimate.report_interval() == pytest.approx((2 - 1.959964, 2 + 1.959964))


TRUSTED, PLUS, MINUS = [1.0, 0.5, 0.3], [0.9, 0.8, 0.8], [0.5, 0.3, 0.1]
TRUSTING = TrustUser(TRUSTED, epsilon_plus=PLUS, epsilon_minus=MINUS)


@pytest.mark.oracle("affine.affine", "estimators.corrected_clicks")
@given(problem=SMALL, unit=st.sampled_from(["query", "session"]), seed=st.integers(0, 99))
def test_affine(problem: Counts, unit: str, seed: int) -> None:
    """What is taken off a session is a document more, which is always clicked, in the loops of the standard error."""
    n = sum(problem.sessions)
    assume(n > 0)
    lam = np.random.default_rng(seed).normal(size=problem.offsets[-1])
    lines = [oracles.trust_line(TRUSTED, PLUS, MINUS, r) if r else (1.0, 0.0) for r in problem.rank]
    offsets, clicks, coefficient = [0], [], []
    for query, documents in enumerate(oracles.lists(problem.offsets)):
        shown = [d for d in documents if problem.rank[d]]
        off = math.fsum(lam[d] * lines[d][1] / lines[d][0] for d in shown)
        clicks += [problem.clicks[d] for d in documents] + [problem.sessions[query]]
        coefficient += [lam[d] / lines[d][0] if problem.rank[d] else 0.0 for d in documents] + [-off]
        offsets.append(len(clicks))
    value = math.fsum(c * b for c, b in zip(clicks, coefficient, strict=True)) / n
    expected = oracles.standard_error(unit, clicks, offsets, problem.sessions, coefficient, value, n)
    log = log_of(problem, TRUSTING)
    found = affine(log, trust=TRUSTING, lam=lam, unit=unit)
    np.testing.assert_allclose([found.value, found.standard_error], [value, expected], rtol=1e-9, atol=1e-9)
    assert (found.n_sessions, found.n_clicks) == (n, sum(problem.clicks))
    slope, intercept = TRUSTING.line(log.rank)
    same = corrected_clicks(log, factor=1 / slope, expected=intercept, lam=lam, unit=unit)
    np.testing.assert_array_equal([same.value, same.standard_error], [found.value, found.standard_error])
    # A curve with the same lines, and nothing known of its error.
    slope, intercept = TRUSTING.line([1, 2, 3])
    curve = TrustCurve(slope=slope, intercept=intercept, covariance=np.full((6, 6), np.nan), strength=1.0)
    same = affine(log, trust=curve, lam=lam, unit=unit)
    np.testing.assert_array_equal([same.value, same.standard_error], [found.value, found.standard_error])
    # What a log identifies: relevance is the click probability at rank 1, where the slope is 1 and the intercept 0.
    a, b = slope[0], intercept[0]
    curve = TrustCurve(slope=slope / a, intercept=intercept - b * slope / a, covariance=np.zeros((6, 6)), strength=1.0)
    mapped = affine(log, trust=curve, lam=lam, unit=unit)
    shown = math.fsum(v * w for v, w in zip(lam[log.document], log.impressions, strict=True)) / n
    np.testing.assert_allclose(mapped.value, a * found.value + b * shown, rtol=1e-9, atol=1e-9)


def test_what_is_refused() -> None:
    log = aggregate_clicks([0], DeterministicPolicy([1, 2, 3], [0, 3]), user=TRUSTING, sessions=[4])
    with pytest.raises(ValueError, match=r"^trust: its slope is 0 at rank 2, where the log has impressions"):
        affine(log, trust=TrustUser(TRUSTED, epsilon_plus=PLUS, epsilon_minus=[0.5, 0.8, 0.1]), lam=[1.0] * 3)
    refuses("rank_weights, lam: give one of the two", affine, log, trust=TRUSTING)
    refuses("factor: expected shape (3,)", corrected_clicks, log, factor=[1.0], expected=0, lam=[1.0] * 3)
    refuses("expected[1] is nan", corrected_clicks, log, factor=1, expected=[0, math.nan, 0], lam=[1.0] * 3)
