"""Argument checks: they raise exactly when a loop over the values finds a fault, and name the first one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from cfltr_core import RankWeight, checks
from cfltr_core.checks import Bounds

NUMBERS = st.lists(
    st.one_of(st.integers(-1, 3).map(float), st.floats(-3, 3), st.sampled_from([math.nan, math.inf, -math.inf])),
    min_size=1, max_size=6,
)  # fmt: skip
# What each element must be, in the order in which it is asked.
ELEMENTS = {
    "finite_vector": (lambda v: checks.finite_vector(v, len(v), "x"), [math.isfinite]),
    "within": (lambda v: checks.within(v, -1, 0.5, "x", "why"), [lambda v: -1 <= v <= 0.5]),
    "counts": (lambda v: checks.counts(v, len(v), "x"), [lambda v: v % 1 == 0, lambda v: v >= 0]),
}


@pytest.mark.parametrize("name", ELEMENTS)
@given(values=NUMBERS)
def test_the_first_element_that_is_refused_is_named(name: str, values: list[float]) -> None:
    check, rules = ELEMENTS[name]
    wrong = [i for holds in rules for i, value in enumerate(values) if not holds(value)]
    if wrong:
        refuses(f"x[{wrong[0]}] is ", check, values)
    else:
        assert check(values).tolist() == values


def test_vectors_have_a_kind_and_a_shape() -> None:
    for check, kind in ((checks.finite_vector, np.float64), (checks.counts, np.int64)):
        assert check([1.0, 2.0], 2, "x").dtype == check([1, 2], 2, "x").dtype == kind
        refuses("x: expected shape (9,)", check, [1.0, 2.0], 9, "x")
    refuses("x[1] is -2: expected 0 or more", checks.counts, [1, -2], 2, "x")
    refuses("x[1] is 2.0, outside [0, 1]: why", checks.within, [1.0, 2.0], 0, 1, "x", "why")
    assert checks.within(0.5, 0, 1, "x", "why") == 0.5
    refuses("x is nan, outside [0, 1]: why", checks.within, math.nan, 0, 1, "x", "why")


@given(cuts=st.lists(st.integers(-1, 6), min_size=2, max_size=6), n_docs=st.integers(0, 6))
def test_offsets_of(cuts: list[int], n_docs: int) -> None:
    falls = [i for i, (low, high) in enumerate(pairwise(cuts), start=1) if high <= low]
    wrong = ([0] * (cuts[0] != 0) + falls + [-1] * (cuts[-1] != n_docs))[:1]
    if wrong:
        refuses(f"offsets[{wrong[0]}] is {cuts[wrong[0]]}", checks.offsets_of, cuts, n_docs)
    if wrong in ([], [-1]):  # without a number of documents the end is free
        found = checks.offsets_of(cuts)
        assert (found.dtype, found.tolist()) == (np.int64, cuts)


def test_a_mask_or_a_float_is_no_index_however_whole() -> None:
    for whole in ([], [3, -1], np.array([2], dtype=np.int8)):
        found = checks.indices(whole, "queries")
        assert (found.dtype, found.tolist()) == (np.int64, list(whole))
    for other in ([True, False], [1.0, 2.0], [[1, 2]]):
        refuses("queries: expected a 1-d integer array", checks.indices, other, "queries")


def test_generators_words_and_numbers() -> None:
    rng = np.random.default_rng(0)
    assert checks.generator(rng) is rng
    for other in (np.random, np.random.PCG64(0), None):
        refuses("noise is", checks.generator, other, "noise")
    assert checks.positive_int(3, "k", 3) == checks.positive_int(np.int32(3), "k", 3) == 3
    for other in (2, 3.0, True, "3", None):
        refuses(f"k is {other!r}: expected a whole number of at least 3", checks.positive_int, other, "k", 3)
    assert (checks.positive(0.5, "C"), checks.one_of("b", "kind", ("a", "b"))) == (0.5, "b")
    refuses("C is 0: expected a finite number > 0", checks.positive, 0, "C")
    refuses("kind is 'c': choose one of 'a', 'b'", checks.one_of, "c", "kind", ("a", "b"))


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["float32", "float64", "int64", "bool", "object"]))
def test_features_are_a_matrix_of_numbers(n_docs: int, n_features: int, kind: str) -> None:
    given = np.ones((n_docs, n_features)).astype(kind)
    found = checks.feature_matrix(given, n_features)
    assert found.dtype == (kind if kind.startswith("float") else "float64")
    assert found.tolist() == [[1.0] * n_features] * n_docs
    refuses(f"features: expected shape (n_docs, {n_features + 1})", checks.feature_matrix, given, n_features + 1)
    assert checks.finite_scores(found.sum(axis=1), found).tolist() == [n_features] * n_docs
    broken = found.copy()
    broken[-1, -1] = np.inf
    with pytest.raises(ValueError, match=rf"features\[{n_docs - 1}, {n_features - 1}\] is inf: replace or drop"):
        checks.finite_scores(broken.sum(axis=1), broken)


def test_a_type_is_asked_for_by_name() -> None:
    assert checks.of_type(2.5, "width", float) == checks.of_type(2.5, "width", float | Bounds) == 2.5
    for value, found in (("dcg", "'dcg'"), ([1, 2], "list")):
        refuses(f"width is {found}: expected float or Bounds", checks.of_type, value, "width", float | Bounds)
        refuses(f"metric is {found}: expected RankWeight, such as dcg()", checks.of_type, value, "metric", RankWeight)


ENDS = st.one_of(
    st.integers(-3, 3), st.floats(-3, 3), st.sampled_from([math.nan, math.inf, -math.inf, True, "1", None])
)


@given(low=st.integers(-2, 1), width=st.integers(0, 2), value=ENDS, whole=st.booleans())
@pytest.mark.parametrize("ends", ["[]", "[)", "(]", "()"])
def test_bounds(ends: str, low: int, width: int, value: object, whole: bool) -> None:
    """With an end or without it, whole numbers or all: no truth value, no text and nothing that is not a number."""
    bounds = Bounds(low, low + width, ends, whole)
    inside = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    inside = inside and (low <= value if ends[0] == "[" else low < value)
    inside = inside and (value <= low + width if ends[1] == "]" else value < low + width)
    assert (value in bounds) == inside
    if inside:
        assert checks.number(value, "n", bounds) == value
    else:
        refuses(f"n is {value!r}: expected a", checks.number, value, "n", bounds)


def test_bounds_in_words() -> None:
    assert str(Bounds(2, whole=True)) == "a whole number of at least 2"
    assert str(Bounds(0, ends="()")) == "a finite number > 0"
    assert str(Bounds(0, 1, "(]")) == "a number > 0 and <= 1"
    assert str(Bounds(1, ends="[]")) == "a number >= 1"


def some_function(
    cutoff: int, level: float = 0.5, *, ties: Literal["a", "b"], metric: RankWeight | None = None, plain: object = 1
) -> None:
    """The types of its arguments are read."""


def test_what_an_argument_must_be_is_read_from_its_type_and_its_name() -> None:
    assert checks.rules_of(some_function) == {
        "cutoff": (checks.WHOLE, False),
        "level": (checks.BOUNDS["level"], False),
        "ties": (("a", "b"), False),
        "metric": (RankWeight, True),
    }
    given = {"cutoff": 1, "level": 0.5, "ties": "b", "metric": None, "plain": "anything"}
    checks.arguments(some_function, given)
    for name, value in (("cutoff", 0), ("level", 1.0), ("ties", "c"), ("metric", "dcg")):
        refuses(f"{name} is {value!r}:", checks.arguments, some_function, given | {name: value})


def test_fields_are_checked_kept_and_of_a_shape() -> None:
    @dataclass(frozen=True)
    class Thing:
        cutoff: int
        curve: object = None

    thing = Thing(2)
    checks.fields(thing)
    checks.keep(thing, cutoff=0, curve=np.ones((2, 1)))
    refuses("cutoff is 0: expected a whole number of at least 1", checks.fields, thing)
    checks.shapes(thing, curve=(2, 1))
    refuses("curve: expected shape (3,), got (2, 1)", checks.shapes, thing, curve=(3,))


@given(st.lists(st.lists(st.booleans(), min_size=2, max_size=2), min_size=1, max_size=4))
def test_the_first_bad_value_is_named(rows: list[list[bool]]) -> None:
    bad, values = np.array(rows), np.arange(2.0 * len(rows)).reshape(-1, 2)
    places = [(i, j) for i, row in enumerate(rows) for j in range(2) if row[j]]
    if not places:
        checks.refuse(bad, "x", values, "why")
        return
    i, j = places[0]
    refuses(f"x[{i}, {j}] is {2.0 * i + j}: why", checks.refuse, bad, "x", values, "why")
    refuses("x is 3.5: why", checks.refuse, np.array(True), "x", 3.5, "why")


@given(st.lists(st.integers(-1, 4), max_size=4), st.integers(1, 2))
def test_increasing(values: list[int], least: int) -> None:
    if len(values) >= least and values[0] > 0 and all(a < b for a, b in pairwise(values)):
        assert checks.increasing(values, "grid", least).tolist() == values
    else:
        refuses("grid is", checks.increasing, values, "grid", least)


def test_noise_is_in_order() -> None:
    for plus in (0.0, 0.5, 1.0, 1.5):
        for minus in (-0.5, 0.0, 0.5, 1.0):
            for apart in (False, True):
                if 0 <= minus <= plus <= 1 and plus > 0 and not (apart and minus == plus):
                    checks.noise(plus, minus, apart=apart)
                else:
                    with pytest.raises(ValueError, match=rf"^epsilon_plus={plus}, epsilon_minus={minus}: expected"):
                        checks.noise(plus, minus, apart=apart)


def test_a_value_in_one_line_names_no_address() -> None:
    @dataclass
    class Thing:
        curve: object
        width: object

    assert checks.one_line(Thing([1, 0.5, 1 / 3, 0.25], 2)) == "Thing(curve=[1, 0.5, 0.333, 0.25], width=2)"
    assert checks.one_line(Thing(np.ones(5), abs)) == "Thing(curve=[1, 1, 1, 1, …], width=a function of ranks)"
