"""Argument checks: they raise exactly when a loop over the values finds a fault, and name the first one."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfltr_core import checks

NUMBERS = st.lists(
    st.one_of(st.floats(-3, 3), st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1.0])), min_size=1, max_size=6
)


@pytest.mark.oracle("checks.offsets_of")
@given(cuts=st.lists(st.integers(-1, 6), min_size=2, max_size=6), n_docs=st.integers(0, 6))
def test_offsets_of(cuts: list[int], n_docs: int) -> None:
    wrong = oracles.wrong_offset(cuts, n_docs)
    if wrong is None:
        found = checks.offsets_of(cuts, n_docs)
        assert found.dtype == np.int64
        assert found.tolist() == cuts
    else:
        with pytest.raises(ValueError, match=re.escape(f"offsets[{wrong}] is {cuts[wrong]}")):
            checks.offsets_of(cuts, n_docs)
    # Without a number of documents the end is free.
    if wrong == -1:
        assert checks.offsets_of(cuts).tolist() == cuts


@pytest.mark.oracle("checks.finite_vector")
@given(values=NUMBERS)
def test_finite_vector(values: list[float]) -> None:
    wrong = oracles.first_outside(values, -1e9, 1e9)
    if wrong is None:
        found = checks.finite_vector(values, len(values), "scores")
        assert found.dtype == np.float64
        assert found.tolist() == values
    else:
        with pytest.raises(ValueError, match=re.escape(f"scores[{wrong}] is {values[wrong]}")):
            checks.finite_vector(values, len(values), "scores")
    with pytest.raises(ValueError, match=r"scores: expected shape \(9,\)"):
        checks.finite_vector(values, 9, "scores")


@pytest.mark.oracle("checks.within")
@given(values=NUMBERS, low=st.floats(-1, 0), width=st.floats(0, 2))
def test_within(values: list[float], low: float, width: float) -> None:
    wrong = oracles.first_outside(values, low, low + width)
    if wrong is None:
        assert checks.within(values, low, low + width, "p", "why").tolist() == values
    else:
        with pytest.raises(ValueError, match=re.escape(f"p[{wrong}] is {np.float64(values[wrong])}") + ".*: why"):
            checks.within(values, low, low + width, "p", "why")
    if oracles.first_outside(values[:1], low, low + width) is None:
        assert checks.within(values[0], low, low + width, "p", "why") == values[0]
    else:
        with pytest.raises(ValueError, match=r"^p is "):
            checks.within(values[0], low, low + width, "p", "why")


@pytest.mark.oracle("checks.counts")
@given(values=NUMBERS)
def test_counts(values: list[float]) -> None:
    wrong = oracles.first_not_count(values)
    if wrong is None:
        found = checks.counts(values, len(values), "clicks")
        assert found.dtype == np.int64
        assert found.tolist() == values
    else:
        with pytest.raises(ValueError, match=re.escape(f"clicks[{wrong}] is ")):
            checks.counts(values, len(values), "clicks")
    whole = [int(v) if np.isfinite(v) else 7 for v in values]
    wrong = oracles.first_not_count(whole)
    if wrong is None:
        assert checks.counts(whole, len(whole), "clicks").tolist() == whole
    else:
        with pytest.raises(ValueError, match=re.escape(f"clicks[{wrong}] is {whole[wrong]}: expected 0 or more")):
            checks.counts(whole, len(whole), "clicks")
    with pytest.raises(ValueError, match=r"clicks: expected shape \(9,\)"):
        checks.counts(values, 9, "clicks")


@pytest.mark.oracle("checks.indices")
@given(
    values=st.one_of(
        st.lists(st.integers(-5, 5)),
        st.lists(st.booleans(), min_size=1),
        st.lists(st.integers(0, 5).map(float), min_size=1),
        st.lists(st.lists(st.integers(0, 5), min_size=2, max_size=2), min_size=1),
    )
)
def test_indices(values: list) -> None:
    """A mask or a float is refused, however whole: as an index it would mean something else."""
    expected = oracles.whole_numbers(values)
    if expected is None:
        with pytest.raises(ValueError, match=r"queries: expected a 1-d integer array.*np\.flatnonzero"):
            checks.indices(values, "queries")
    else:
        found = checks.indices(values, "queries")
        assert found.dtype == np.int64
        assert found.tolist() == expected


@pytest.mark.oracle("checks.generator")
def test_generator() -> None:
    for value in (np.random.default_rng(0), np.random, np.random.PCG64(0), 0, None, "seed"):
        if oracles.is_generator(value):
            assert checks.generator(value) is value
        else:
            with pytest.raises(TypeError, match=r"noise is .*: pass a numpy\.random\.Generator"):
                checks.generator(value, "noise")


@pytest.mark.oracle("checks.positive_int")
@given(value=st.integers(-3, 5), least=st.integers(0, 3))
def test_positive_int(value: int, least: int) -> None:
    if oracles.first_outside([value], least, np.inf) is None:
        assert checks.positive_int(value, "k", least) == value
        assert checks.positive_int(np.int32(value), "k", least) == value
    else:
        with pytest.raises(ValueError, match=f"k is {value}: expected a whole number of at least {least}"):
            checks.positive_int(value, "k", least)
    for other in (float(value), True, str(value), None):
        with pytest.raises(ValueError, match=r"k is .*: expected a whole number"):
            checks.positive_int(other, "k", least)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["float32", "float64", "int64", "bool", "object"]))
def test_features_are_a_matrix_of_numbers(n_docs: int, n_features: int, kind: str) -> None:
    given = np.ones((n_docs, n_features)).astype(kind)
    found = checks.feature_matrix(given, n_features)
    assert found.dtype == (kind if kind.startswith("float") else "float64")
    assert found.tolist() == [[1.0] * n_features] * n_docs
    with pytest.raises(ValueError, match=rf"features: expected shape \(n_docs, {n_features + 1}\)"):
        checks.feature_matrix(given, n_features + 1)
    assert checks.finite_scores(found.sum(axis=1), found).tolist() == [n_features] * n_docs
    broken = found.copy()
    broken[-1, -1] = np.inf
    with pytest.raises(ValueError, match=rf"features\[{n_docs - 1}, {n_features - 1}\] is inf: replace or drop"):
        checks.finite_scores(broken.sum(axis=1), broken)


def test_a_type_is_asked_for_by_name() -> None:
    assert checks.of_type(2.5, "width", float) == 2.5
    for value, found in (("dcg", "'dcg'"), ([1, 2], "list")):
        with pytest.raises(TypeError, match=rf"^width is {re.escape(found)}: expected float, such as 2\.5$"):
            checks.of_type(value, "width", float, "such as 2.5")


def test_a_value_in_one_line_names_no_address() -> None:
    @dataclass
    class Thing:
        curve: object
        width: object

    assert checks.one_line(Thing([1, 0.5, 1 / 3, 0.25], 2)) == "Thing(curve=[1, 0.5, 0.333, 0.25], width=2)"
    assert checks.one_line(Thing(np.ones(5), abs)) == "Thing(curve=[1, 1, 1, 1, …], width=a function of ranks)"
