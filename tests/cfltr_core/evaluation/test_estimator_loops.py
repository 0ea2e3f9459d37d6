"""Estimates and their standard errors on arbitrary small logs, against loops over queries and over sessions."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Counts, counts, log_of

import cfltr_core as cf

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
