"""Small logs of ragged lists that tests of the learners share: clicks of many weights, lists without any."""

from cfltr_core import ClickLog

OFFSETS = [0, 4, 5, 12, 17]
DOCUMENT = [0, 2, 4, 5, 6, 11, 12, 16]
CLICKS = [3, 1, 2, 0, 4, 1, 7, 2]
PROPENSITY = [1.0, 0.25, 1.0, 0.5, 0.2, 0.1, 0.5, 1 / 7]


def clicks_in(offsets: list[int]) -> ClickLog:
    """The clicks above on 17 documents, in lists that may go on after them."""
    return ClickLog(
        document=DOCUMENT, rank=[1, 4, 1, 2, 5, 7, 2, 5], impressions=[9] * 8, clicks=CLICKS, propensity=PROPENSITY,
        sessions=[9] * (len(offsets) - 1), offsets=offsets,
    )  # fmt: skip


# One click on each of two ranks of document 0 count together; list 1 has no click, list 2 one document.
TWO_RANKS = ClickLog(
    document=[0, 0, 2, 4, 7, 9, 12], rank=[1, 2, 3, 1, 1, 2, 5], impressions=[3, 3, 6, 5, 2, 4, 4],
    clicks=[2, 1, 1, 0, 2, 3, 1], propensity=[1.0, 0.5, 0.25, 1.0, 1.0, 0.5, 0.125], sessions=[6, 5, 2, 4],
    offsets=[0, 4, 7, 8, 13],
)  # fmt: skip
