"""The affine correction and its standard errors against loops over queries and over sessions."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refuses
from strategies import Counts, counts, log_of

from cfltr_core import DeterministicPolicy, TrustUser, affine, aggregate_clicks
from cfltr_core.evaluation.estimators import corrected_clicks
from cfltr_core.propensity.trust_curves import TrustCurve

SMALL = counts(longest=3, most_sessions=3)
THETA, PLUS, MINUS = [1.0, 0.5, 0.3], [0.9, 0.8, 0.8], [0.5, 0.3, 0.1]
USER = TrustUser(THETA, epsilon_plus=PLUS, epsilon_minus=MINUS)


@pytest.mark.oracle("affine.affine", "estimators.corrected_clicks")
@given(problem=SMALL, unit=st.sampled_from(["query", "session"]), seed=st.integers(0, 99))
def test_affine(problem: Counts, unit: str, seed: int) -> None:
    """What is taken off a session is a document more, which is always clicked, in the loops of the standard error."""
    n = sum(problem.sessions)
    assume(n > 0)
    lam = np.random.default_rng(seed).normal(size=problem.offsets[-1])
    lines = [oracles.trust_line(THETA, PLUS, MINUS, r) if r else (1.0, 0.0) for r in problem.rank]
    offsets, clicks, coefficient = [0], [], []
    for query, documents in enumerate(oracles.lists(problem.offsets)):
        shown = [d for d in documents if problem.rank[d]]
        off = math.fsum(lam[d] * lines[d][1] / lines[d][0] for d in shown)
        clicks += [problem.clicks[d] for d in documents] + [problem.sessions[query]]
        coefficient += [lam[d] / lines[d][0] if problem.rank[d] else 0.0 for d in documents] + [-off]
        offsets.append(len(clicks))
    value = math.fsum(c * b for c, b in zip(clicks, coefficient, strict=True)) / n
    expected = oracles.standard_error(unit, clicks, offsets, problem.sessions, coefficient, value, n)
    log = log_of(problem, USER)
    found = affine(log, trust=USER, lam=lam, unit=unit)
    np.testing.assert_allclose([found.value, found.standard_error], [value, expected], rtol=1e-9, atol=1e-9)
    assert (found.n_sessions, found.n_clicks) == (n, sum(problem.clicks))
    slope, intercept = USER.line(log.rank)
    same = corrected_clicks(log, factor=1 / slope, expected=intercept, lam=lam, unit=unit)
    np.testing.assert_array_equal([same.value, same.standard_error], [found.value, found.standard_error])
    # A curve with the same lines, and nothing known of its error.
    slope, intercept = USER.line([1, 2, 3])
    curve = TrustCurve(slope=slope, intercept=intercept, covariance=np.full((6, 6), np.nan), strength=1.0)
    same = affine(log, trust=curve, lam=lam, unit=unit)
    np.testing.assert_array_equal([same.value, same.standard_error], [found.value, found.standard_error])


def test_what_is_refused() -> None:
    log = aggregate_clicks([0], DeterministicPolicy([1, 2, 3], [0, 3]), user=USER, sessions=[4])
    with pytest.raises(ValueError, match=r"^trust: its slope is 0 at rank 2, where the log has impressions"):
        affine(log, trust=TrustUser(THETA, epsilon_plus=PLUS, epsilon_minus=[0.5, 0.8, 0.1]), lam=[1.0] * 3)
    refuses("rank_weights, lam: give one of the two", affine, log, trust=USER)
    refuses("factor: expected shape (3,)", corrected_clicks, log, factor=[1.0], expected=0, lam=[1.0] * 3)
    refuses("expected[1] is nan", corrected_clicks, log, factor=1, expected=[0, math.nan, 0], lam=[1.0] * 3)
