"""Intervals and the standard error of a ratio on arbitrary small logs, against loops over queries and over sessions."""

import numpy as np
import oracles
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import refuses
from strategies import Counts, counts, log_of

from cfltr_core import DeterministicPolicy, PositionBasedUser, aggregate_clicks, power_examination
from cfltr_core.evaluation.estimates import Estimate, ratio_error

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


def test_interval_has_95_per_cent_unless_told() -> None:
    low, high = Estimate(1.0, 2.0, 10, 5).interval()
    assert abs(low - (1.0 - 2.0 * 1.959963984540054)) <= 1e-12
    assert abs(high - (1.0 + 2.0 * 1.959963984540054)) <= 1e-12
