"""Names, fractions and missing values where the number of a document or a count is expected: each is told apart."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from cfltr_core import ClickLog, DeterministicPolicy, PositionBasedUser, aggregate_clicks, checks

CUTS = [0, 2, 3]
POLICY = DeterministicPolicy([2, 1, 1], CUTS)
USER = PositionBasedUser([1.0, 0.5])
ROW = "the row of a document among the features, 0 … 2"
LOOK_UP = f"expected {ROW}; look names up in the order of the rows, as in pandas.Index(names).get_indexer(clicked)"


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (["a", "c"], f"documents[0] is 'a': {LOOK_UP}"),
        (np.array([1, "c"], dtype=object), f"documents[1] is 'c': {LOOK_UP}"),
        ([0, None], f"documents[1] is None: {LOOK_UP}"),
        (pd.Series(["a", "c"], dtype="category"), f"documents[0] is 'a': {LOOK_UP}"),
        ([0, 2**70], f"documents[1] is {2**70}: {LOOK_UP}"),
        ([0.0, 1.5], f"documents[1] is 1.5: expected a whole number, {ROW}; drop missing ones"),
        (pd.Series([0, 2, None]), f"documents[2] is nan: expected a whole number, {ROW}; drop missing ones"),
        ([0, -1], "documents[1] is -1.0, outside [0, 2]: no such document; −1 is what a look-up gives for a name"),
    ],
)
def test_a_click_on_what_is_no_row_is_named(documents: object, message: str) -> None:
    refuses(message, aggregate_clicks, documents, POLICY, user=USER, sessions=[4, 2])


@pytest.mark.parametrize("sessions", [["4", "2"], pd.Series(["4", "2"]), np.array(["4", "2"], dtype=object)])
def test_sessions_that_are_text(sessions: object) -> None:
    refuses("sessions[0] is '4': expected a whole", aggregate_clicks, [0, 2], POLICY, user=USER, sessions=sessions)


@pytest.mark.parametrize(
    "whole", [[2, 1], [2.0, 1.0], np.array([2, 1], dtype=object), pd.Series([2, 1], dtype="Int64")]
)
def test_whole_numbers_are_taken_in_any_clothes(whole: object) -> None:
    assert aggregate_clicks(whole, POLICY, user=USER, sessions=np.array([4, 2], dtype=object)).clicks.tolist() == [
        0,
        1,
        1,
    ]


def test_a_log_of_names_is_refused_by_its_argument() -> None:
    one = np.ones(2, dtype=int)
    rest = {"impressions": one, "clicks": one, "propensity": np.ones(2), "sessions": [1, 1], "offsets": CUTS}
    refuses(f"document[0] is 'a': {LOOK_UP}", ClickLog, document=["a", "c"], rank=one, **rest)
    refuses("rank[1] is 'two': expected a", ClickLog, document=[0, 2], rank=np.array([1, "two"], dtype=object), **rest)


@given(
    st.lists(st.one_of(st.integers(-5, 5), st.integers(), st.text(max_size=2), st.none(), st.just(10**30)), max_size=5)
)
def test_the_first_that_is_no_number_is_named(values: list) -> None:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    wrong = [i for i, value in enumerate(values) if not (isinstance(value, int) and -(2**63) <= value < 2**63)]
    if wrong:
        message = f"ids[{wrong[0]}] is {values[wrong[0]]!r}: expected a row"
        refuses(message, checks.numbers, array, "ids", "a row")
    else:
        found = checks.numbers(array, "ids", "a row")
        assert (found.dtype, found.tolist()) == (np.int64, values)


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint16, np.int64, np.float32, np.float64])
def test_numbers_stay_as_they_are(kind: type) -> None:
    array = np.array([0, 1], dtype=kind)
    assert checks.numbers(array, "ids", "a row") is array
