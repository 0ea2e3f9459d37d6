"""Sums of hinges over sorted lists, and the shape of rank weights: what the learners rely on beside the values."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cfltr_core import RankWeight
from cfltr_core.learning.bounds import SortedLists
from cfltr_core.learning.propdcg import curvature


def literal(scores: list[float], cuts: list[int], document: int) -> float:
    query = next(q for q in range(len(cuts) - 1) if cuts[q] <= document < cuts[q + 1])
    return sum(
        max(0.0, 1 - (scores[document] - scores[y])) for y in range(cuts[query], cuts[query + 1]) if y != document
    )


def test_a_price_is_asked_of_sums_that_are_not_negative() -> None:
    """Where a document wins by far the sum is 0, and rounding must not leave less: a price may be a root."""
    rng = np.random.default_rng(0)
    exact = 0
    for size in (1.0, 1e3, 1e6):
        cuts = np.concatenate([[0], np.cumsum(rng.integers(1, 9, size=30))])
        scores = rng.normal(size=int(cuts[-1])) * size
        documents = rng.integers(0, int(cuts[-1]), size=80)
        asked: dict[int, float] = {}

        def price(terms: np.ndarray, sums: np.ndarray, asked: dict[int, float] = asked) -> np.ndarray:
            asked.update(zip(terms.tolist(), sums.tolist(), strict=True))
            return 2.0 + np.sqrt(sums)

        total, force = SortedLists(cuts, documents).sums(scores, price)
        assert min(asked.values()) >= 0
        assert [asked[term] for term in range(80)] == total.tolist()
        expected = [literal(scores.tolist(), cuts.tolist(), d) for d in documents.tolist()]
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-8 * size)
        exact += expected.count(0.0)
        pull = [0.0] * len(scores)
        for d, s in zip(documents.tolist(), total.tolist(), strict=True):
            query = int(np.searchsorted(cuts, d, side="right")) - 1
            for y in range(cuts[query], cuts[query + 1]):
                if y != d and scores[y] > scores[d] - 1:
                    pull[d] += 2 + s**0.5
                    pull[y] -= 2 + s**0.5
        np.testing.assert_allclose(force, pull, rtol=1e-7, atol=1e-7 * size)
    assert exact > 20


def grid(longest: int) -> list[float]:
    """Half ranks to 64, then 200 in equal ratios to four times the longest list, at least to 68."""
    end = 4 * max(17, longest)
    return [1 + i / 2 for i in range(126)] + [64 * (end / 64) ** (i / 199) for i in range(200)]


@pytest.mark.parametrize(("longest", "from_rank"), [(1, 5.0), (17, 66.0), (100, 63.4), (1000, 3000.0), (20, 64.0)])
def test_messages_name_the_ranks_where_a_weight_turns(longest: int, from_rank: float) -> None:
    r = grid(longest)
    falling = RankWeight("falling", lambda rank: rank - 3 * np.maximum(0, rank - from_rank))
    i = next(
        i for i in range(len(r)) if r[i + 1] - 3 * max(0, r[i + 1] - from_rank) < r[i] - 3 * max(0, r[i] - from_rank)
    )
    with pytest.raises(ValueError, match=re.escape(f"decreases between ranks {r[i]:g} and {r[i + 1]:g}: a bound")):
        curvature(falling, longest)
    bent = RankWeight("bent", lambda rank: rank + np.maximum(0, rank - 3) - np.maximum(0, rank - from_rank))
    above = next(i for i in range(len(r)) if r[i] < from_rank < r[i + 2])
    message = (
        f"it lies above its chord between ranks {r[above]:g} and {r[above + 2]:g}, and below it between 2.5 and 3.5."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        curvature(bent, longest)


def test_a_bend_that_rounding_could_make_is_none() -> None:
    for slope, kind in ((1e-8, "convex"), (1e-13, "linear"), (-1e-8, "concave")):
        bent = RankWeight("bent", lambda r, slope=slope: (r - 1) + slope * 67 * np.maximum(0, r - 30.0))
        assert curvature(bent, 1) == kind
