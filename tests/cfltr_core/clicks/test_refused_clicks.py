"""What users, pages and shares of displays refuse, by the name of the argument and the place in it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from refusals import refuses

from cfltr_core import DeterministicPolicy, DisplayShares, TrustUser, count_pages, simulate_pages
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
