"""What users, pages and shares of displays refuse, by the name of the argument and the place in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cfltr_core as cf

CUTS = [0, 3, 5]
SHARES = {"document": [0, 1], "rank": [1, 2], "share": [1.0, 0.5], "offsets": CUTS}
HALF = cf.DisplayShares(**SHARES)
OTHER = cf.DisplayShares(document=[0], rank=[1], share=[1.0], offsets=[0, 3])
ROWS = {
    "page": [0, 0, 1],
    "query": [0, 0, 1],
    "document": [4, 5, 6],
    "rank": [1, 2, 1],
    "impressions": [[2, 1], [2, 1], [1, 0]],
    "clicks": [[1, 0], [2, 1], [0, 0]],
}
SIMULATED = {"relevance": [1.0, 0.0], "sessions": [2], "rng": np.random.default_rng(0)}
PAGES = cf.simulate_pages(
    cf.DeterministicPolicy([1, 2, 3, 1, 2], CUTS),
    cf.PositionBasedUser([1.0, 0.6, 0.3]),
    relevance=[1, 0, 1, 0, 1],
    sessions=[1, 1],
    rng=np.random.default_rng(0),
)


def shares(**changes: Any) -> cf.DisplayShares:
    return cf.DisplayShares(**{**SHARES, **changes})


def rows(**changes: Any) -> cf.PageCounts:
    return cf.PageCounts(**{**ROWS, **changes})


def counted(query: Any, shown: Any, clicked: Any) -> cf.PageCounts:
    return cf.count_pages(query, shown, clicked=clicked)


def simulated(**changes: Any) -> cf.PageCounts:
    return cf.simulate_pages(cf.DeterministicPolicy([1, 2], [0, 2]), cf.CascadeUser(), **{**SIMULATED, **changes})


def trusting(**changes: Any) -> cf.TrustUser:
    return cf.TrustUser(**{"examination": [1.0, 0.6, 0.3, 0.2], **changes})


def asked(**changes: Any) -> Any:
    """A curve of noise is checked when it is asked."""
    return trusting(**changes).click_probability([1, 2, 3, 4], [1] * 4)


mixed = cf.DisplayShares.mixed

# What the message begins with, and what is refused; arrays of wrong shapes and single numbers are those of test_errors.
REFUSED: list[tuple[str, Callable[[], Any]]] = [
    ("document[1] is 5", lambda: shares(document=[0, 5])),
    ("rank[0] is 1, but another term is of the same", lambda: shares(document=[0, 0], rank=[1, 1])),
    ("share: those of document 4 add up to 1.25", lambda: shares(document=[4, 4], share=[0.5, 0.75])),
    ("share: those of rank 2 in query 1 add up to 1.5", lambda: shares(document=[3, 4], rank=[2, 2])),
    ("parts: expected the shares of at least one", lambda: mixed([], [])),
    ("parts[1] has other offsets than parts[0]", lambda: mixed([HALF, OTHER], [0.5, 0.5])),
    ("traffic: expected shape (2,) or (2, 2), got (1,)", lambda: mixed([HALF, HALF], [1.0])),
    ("traffic adds up to 0.75: divide it by its sum", lambda: mixed([HALF, HALF], [0.5, 0.25])),
    ("traffic[:, 1] adds up to 1.5", lambda: mixed([HALF] * 2, [[0.5, 1.0], [0.5] * 2])),
    ("user is list: expected a user, of an estimated", lambda: HALF.exposure([1.0, 0.5])),
    ("user is list: expected a user, of an estimated", lambda: HALF.exposure_slope([1.0, 0.5])),
    ("pages.document[2] is 2: it is of another query", lambda: cf.DisplayShares.of_pages(PAGES, offsets=[0, 2, 5])),
    ("rank: there is no row", lambda: rows(**{name: [] for name in ROWS})),
    ("page[2] is 2: number pages 0, 1, 2", lambda: rows(page=[0, 0, 2])),
    ("rank[1] is 3: the rows of a page", lambda: rows(rank=[1, 3, 1])),
    ("rank[2] is 2", lambda: rows(rank=[1, 2, 2])),
    ("query[1] is 1: a page is of one query", lambda: rows(query=[0, 1, 1])),
    ("document[1] is 4: the document stands on its page", lambda: rows(document=[4, 4, 6])),
    ("document[1] is -5", lambda: rows(document=[4, -5, 6])),
    ("impressions[1, 1] is 2: places of a page", lambda: rows(impressions=[[2, 1], [2, 2], [1, 0]])),
    ("clicks[1, 1] is 2: more clicks than impressions", lambda: rows(clicks=[[1, 0], [2, 2], [0, 0]])),
    ("clicks: expected shape (3, 2), the two halves", lambda: rows(clicks=[1, 0, 0])),
    ("shown: expected a row of whole numbers for each", lambda: counted([0], [3, 4], [0, 0])),
    ("shown: expected a row of whole numbers", lambda: counted([0], [[0.5, 1.0]], [[0, 0]])),
    ("query: expected shape (1,)", lambda: counted([0, 0], [[3, 4]], [[0, 0]])),
    ("clicked: expected shape (1, 2), as shown", lambda: counted([0], [[3, 4]], [[0]])),
    ("shown[0, 1] is -2", lambda: counted([0], [[3, -2]], [[0, 0]])),
    ("shown[0, 1] is 4: it stands below an empty place", lambda: counted([0], [[-1, 4]], [[0, 0]])),
    ("clicked[0, 1] is 2", lambda: counted([0], [[3, 4]], [[0, 2]])),
    ("clicked[0, 1] is 1: nothing is shown there", lambda: counted([0], [[3, -1]], [[0, 1]])),
    ("shown: no session was shown anything", lambda: counted([0], [[-1, -1]], [[0, 0]])),
    ("shown[1, 1] is 3: the document stands on this", lambda: counted([0, 0], [[4, 3], [3, 3]], [[0, 0]] * 2)),
    ("shown: the rows have different lengths", lambda: counted([0, 0], [[4, 3], [3]], [[0, 0]] * 2)),
    ("clicked: the rows have different lengths", lambda: counted([0], [[3, 4]], [[1, 0], [1]])),
    ("sessions: there is no session", lambda: simulated(sessions=[0])),
    ("epsilon_plus is 1.5, outside [0, 1]", lambda: trusting(epsilon_plus=1.5)),
    ("epsilon_minus: expected a number, or one for each", lambda: trusting(epsilon_minus=[])),
    ("epsilon_minus is 0.4 at rank 2, above", lambda: trusting(epsilon_plus=0.3, epsilon_minus=[0.2, 0.4])),
    ("epsilon_minus is 0.2 at rank 2", lambda: trusting(epsilon_plus=[0.9, 0.1, 0.9], epsilon_minus=[0.2, 0.2])),
    ("epsilon_minus ends at rank 2, but rank 4 is", lambda: asked(epsilon_minus=[0.2, 0.2])),
    ("epsilon_minus[1] is 2.0, outside [0, 1]", lambda: asked(epsilon_minus=lambda r: r)),
    ("epsilon_minus is 0.3 at rank 3, above", lambda: asked(epsilon_plus=0.2, epsilon_minus=lambda r: r / 10)),
    ("epsilon_plus=0.2, epsilon_minus=0.4: expected", lambda: cf.CascadeUser(epsilon_plus=0.2, epsilon_minus=0.4)),
    ("relevance: expected the relevances of a page", lambda: cf.CascadeUser().page_click_probability(1.0)),
    ("rng is int", lambda: cf.CascadeUser().draw_page_clicks([0, 1], 3)),
]


@pytest.mark.parametrize(("message", "call"), REFUSED, ids=[message for message, _ in REFUSED])
def test_what_is_refused(message: str, call: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, TypeError), match="^" + re.escape(message)):
        call()
