"""What users, pages and logs refuse, by the argument and the place in it: names, fractions and missing values, too."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from cfltr_core import (
    ClickLog,
    DeterministicPolicy,
    DisplayShares,
    PositionBasedUser,
    TrustUser,
    aggregate_clicks,
    checks,
    count_pages,
    simulate_pages,
)
from cfltr_core.clicks.other_users import CascadeUser
from cfltr_core.clicks.pages import PageCounts

HALF = DisplayShares(document=[0, 1], rank=[1, 2], share=[1.0, 0.5], offsets=[0, 3, 5])
ROWS = {
    "page": [0, 0, 1],
    "query": [0, 0, 1],
    "document": [4, 5, 6],
    "rank": [1, 2, 1],
    "impressions": [[2, 1], [2, 1], [1, 0]],
    "clicks": [[1, 0], [2, 1], [0, 0]],
}
SIMULATED = {"relevance": [1.0, 0.0], "sessions": [2], "rng": np.random.default_rng(0)}


def rows(**changes: Any) -> PageCounts:
    return PageCounts(**{**ROWS, **changes})


def counted(query: Any, shown: Any, clicked: Any) -> PageCounts:
    return count_pages(query, shown, clicked=clicked)


def simulated(**changes: Any) -> PageCounts:
    return simulate_pages(DeterministicPolicy([1, 2], [0, 2]), CascadeUser(), **{**SIMULATED, **changes})


def trusting(**changes: Any) -> TrustUser:
    return TrustUser(**{"examination": [1.0, 0.6, 0.3, 0.2], **changes})


def asked(relevance: Any = (1, 1, 1, 1), **changes: Any) -> Any:
    """A curve of noise is checked when it is asked."""
    return trusting(**changes).click_probability([1, 2, 3, 4][: len(relevance)], relevance)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: HALF.exposure([1.0, 0.5]), "user is list: expected a user, of an estimated curve curve.user()"),
    (lambda: HALF.exposure_slope([1.0, 0.5]), "user is list: expected a user, of an estimated curve curve.user()"),
    (lambda: rows(**{name: [] for name in ROWS}), "rank: there is no row"),
    (lambda: rows(page=[0, 0, 2]), "page[2] is 2: number pages 0, 1, 2"),
    (lambda: rows(rank=[3, 1, 1]), "rank[1] is 1: the ranks of a page ascend from 1"),
    (lambda: rows(rank=[1, 2, 0]), "rank[2] is 0"),
    (lambda: rows(query=[0, 1, 1]), "query[1] is 1: a page is of one query"),
    (lambda: rows(document=[4, 4, 6]), "document[1] is 4: the document stands on its page already"),
    (lambda: rows(document=[4, -5, 6]), "document[1] is -5: expected 0 or more"),
    (lambda: rows(impressions=[[2, 1], [2, 2], [1, 0]]), "impressions[1, 1] is 2: places of a page"),
    (lambda: rows(clicks=[[1, 0], [2, 2], [0, 0]]), "clicks[1, 1] is 2: more clicks than impressions"),
    (lambda: rows(clicks=[1, 0, 0]), "clicks: expected shape (3, 2), the two halves, got (3,)"),
    (lambda: counted([0], [3, 4], [0, 0]), "shown: expected a row of whole numbers for each session"),
    (lambda: counted([0], [[0.5, 1.0]], [[0, 0]]), "shown: expected a row of whole numbers"),
    (lambda: counted([0, 0], [[3, 4]], [[0, 0]]), "query: expected shape (1,)"),
    (lambda: counted([0], [[3, 4]], [[0]]), "clicked: expected shape (1, 2), as shown"),
    (lambda: counted([0], [[3, -2]], [[0, 0]]), "shown[0, 1] is -2: expected the number of a document"),
    (lambda: counted([0], [[-1, 4]], [[0, 0]]), "shown[0, 1] is 4: it stands below an empty place"),
    (lambda: counted([0], [[3, 4]], [[0, 2]]), "clicked[0, 1] is 2: expected 1 for a click"),
    (lambda: counted([0], [[3, -1]], [[0, 1]]), "clicked[0, 1] is 1: nothing is shown there"),
    (lambda: counted([0], [[-1, -1]], [[0, 0]]), "shown: no session was shown anything"),
    (lambda: counted([0, 0], [[4, 3], [3, 3]], [[0, 0]] * 2), "shown[1, 1] is 3: the document stands on this page alr"),
    (lambda: counted([0, 0], [[4, 3], [3]], [[0, 0]] * 2), "shown: the rows have different lengths; fill shorter"),
    (lambda: counted([0], [[3, 4]], [[1, 0], [1]]), "clicked: the rows have different lengths"),
    (lambda: simulated(sessions=[0]), "sessions: there is no session"),
    (lambda: trusting(epsilon_plus=1.5), "epsilon_plus is 1.5, outside [0, 1]"),
    (lambda: trusting(epsilon_minus=[[0.5]]), "epsilon_minus: expected a number, or one for each rank"),
    (lambda: trusting(epsilon_minus=[]), "epsilon_minus: expected a number, or one for each rank"),
    (lambda: trusting(epsilon_plus=0.3, epsilon_minus=[0.2, 0.4]), "epsilon_minus is 0.4 at rank 2, above"),
    (lambda: trusting(epsilon_plus=[0.9, 0.1, 0.9], epsilon_minus=[0.2, 0.2]), "epsilon_minus is 0.2 at rank 2"),
    (lambda: asked([2]), "relevance[0] is 2"),
    (lambda: asked(epsilon_minus=[0.2, 0.2]), "epsilon_minus ends at rank 2, but rank 4 is examined"),
    (lambda: asked(epsilon_minus=lambda r: r), "epsilon_minus[1] is 2.0, outside [0, 1]: the curve must return"),
    (lambda: asked(epsilon_plus=0.2, epsilon_minus=lambda r: r / 10), "epsilon_minus is 0.3 at rank 3, above"),
    (lambda: CascadeUser(epsilon_plus=0.2, epsilon_minus=0.4), "epsilon_plus=0.2, epsilon_minus=0.4: expected"),
    (lambda: CascadeUser().page_click_probability(1.0), "relevance: expected the relevances of a page"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_refused(call: Callable[[], Any], message: str) -> None:
    refuses(message, call)


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
