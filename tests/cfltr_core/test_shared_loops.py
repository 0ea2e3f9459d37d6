"""What several modules of the package share, against literal loops."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refuses

from cfltr_core import ClickLog, DeterministicPolicy
from cfltr_core.clicks.logs import require_exposed, require_single_display
from cfltr_core.clicks.policies import count_displays, every_page, nonzero_counts, place_values
from cfltr_core.sampling import alias_tables

# Small whole numbers make columns that are exactly full, and surpluses that end exactly with a deficit.
WEIGHT = st.one_of(st.floats(0.0, 1e3), st.integers(0, 6).map(float))


@pytest.mark.oracle("policies.count_displays", "policies.nonzero_counts")
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_displays_are_counted(sizes: list[int], places: int, seed: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rank = np.concatenate([np.where(np.arange(n) < places, np.arange(1, n + 1), 0) for n in sizes])
    policy, rng = DeterministicPolicy(rank, offsets), np.random.default_rng(seed)
    places = policy.cutoff
    sessions, pages = rng.integers(0, 5, size=len(sizes)), []
    sessions[0] += 1

    def sample(queries: np.ndarray) -> np.ndarray:
        drawn = np.full((len(queries), places), -1)
        for row, query in zip(drawn, queries.tolist(), strict=True):
            page = rng.permutation(np.arange(offsets[query], offsets[query + 1]))[:places]
            row[: len(page)] = page
        pages.extend(drawn.tolist())
        return drawn

    counts = count_displays(sample, sessions, policy)
    loops = oracles.counted_displays(pages, int(offsets[-1]), places)
    assert counts.tolist() == loops
    assert len(pages) == sessions.sum()
    assert list(zip(*(a.tolist() for a in nonzero_counts(counts)), strict=True)) == oracles.positive_entries(loops)


@pytest.mark.oracle("policies.every_page")
@pytest.mark.parametrize("places", [1, 2, 3, 5])
def test_every_page_of_a_law(places: int) -> None:
    """A law that depends on what remains: documents ∝ e^score; and one that never shows the second of two."""
    scores = [0.3, 1.2, -0.7, 0.1]

    def law(remaining: list[int], place: int) -> list[float]:
        weights = [math.exp(scores[d]) for d in remaining]
        return [w / math.fsum(weights) for w in weights]

    found = {page: probability for probability, page in every_page([0, 1, 2, 3], places, law=law)}
    loops = oracles.plackett_luce_pages(scores, places, 1.0)
    assert found.keys() == loops.keys()
    assert all(math.isclose(found[page], loops[page], rel_tol=1e-14) for page in loops)
    assert list(every_page([7, 5], 1, law=lambda remaining, place: [1.0, 0.0])) == [(1.0, (7,))]


@pytest.mark.oracle("policies.place_values")
def test_values_of_places() -> None:
    rank = np.array([1.0, 2.0, 5.0])
    assert place_values(lambda r: 1 / r, rank).tolist() == [oracles.average_rank(1 / r) for r in rank]
    assert place_values(lambda r: 3.0, rank).tolist() == [3.0] * 3
    refuses("value of the ranks[0] is nan", place_values, lambda r: np.nan, rank)


@pytest.mark.oracle("sampling.alias_tables")
@given(st.lists(st.lists(WEIGHT, min_size=1, max_size=12), min_size=1, max_size=4))
@example([[0.0, 0.0, 1.0, 1.0]])
@example([[1.0, 2.0, 3.0, 4.0, 10.0]])
def test_alias_tables_hold_the_law_of_each_list(lists: list[list[float]]) -> None:
    lists = [weights if sum(weights) > 0 else [1.0] * len(weights) for weights in lists]
    law = [w / sum(weights) for weights in lists for w in weights]
    offsets = np.concatenate([[0], np.cumsum([len(weights) for weights in lists])])
    keep, other = alias_tables(np.array(law), offsets)
    found = oracles.alias_law(keep.tolist(), other.tolist(), offsets.tolist())
    np.testing.assert_allclose(found, law, rtol=0, atol=1e-12)


@pytest.mark.oracle("logs.require_single_display")
@pytest.mark.parametrize(
    ("document", "rank", "impressions"),
    [([0, 1, 2], [2, 1, 1], [3, 3, 2]), ([0, 0, 2], [1, 2, 1], [1, 2, 2]), ([0, 1, 2], [2, 1, 1], [3, 2, 2])],
)
def test_single_display_is_required(document: list[int], rank: list[int], impressions: list[int]) -> None:
    log = ClickLog(
        document=document, rank=rank, impressions=impressions, clicks=[0] * 3, propensity=[1.0] * 3, sessions=[3, 2],
        offsets=[0, 2, 3],
    )  # fmt: skip
    raised = False
    try:
        require_single_display(log)
    except ValueError:
        raised = True
    assert raised == (not oracles.shows_one_ranking(document, impressions, [3, 2], [0, 2, 3]))


@pytest.mark.oracle("logs.require_exposed")
@given(st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0.0, 0.5]), st.booleans()), min_size=1, max_size=4))
def test_a_click_without_exposure_is_named(terms: list[tuple[int, float, bool]]) -> None:
    n, (clicks, exposure, of) = len(terms), map(list, zip(*terms, strict=True))
    every = {"document": range(n), "rank": range(1, n + 1), "impressions": [1] * n, "propensity": [1.0] * n}
    log = ClickLog(**every, clicks=clicks, sessions=[1], offsets=[0, n])  # type: ignore[arg-type]
    blind = [d for d in range(n) if oracles.is_positive(clicks[d]) and exposure[d] == 0 and of[d]]
    said = ""
    try:
        require_exposed(log, np.array(exposure), "remedy", of=np.array(of))
    except ValueError as error:
        said = str(error)
    where = blind[0] if blind else None
    assert said == ("" if where is None else f"exposure of document {where} is 0, but log.clicks[{where}] is 1: remedy")
