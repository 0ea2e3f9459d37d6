"""What several modules of the package share, λ with its metric, and weights of a log: against literal loops."""

import math

import numpy as np
import oracles
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refuses

import cfltr_core as cf
from cfltr_core import ClickLog, DeterministicPolicy
from cfltr_core.clicks.logs import require_exposed, require_single_display
from cfltr_core.clicks.policies import count_displays, every_page, nonzero_counts, place_values
from cfltr_core.ranking.ragged import query_of
from cfltr_core.ranking.rank_weight import RankWeights
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


SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=4, max_size=4)
OFFSETS = [0, 3, 4]
LOG = cf.ClickLog(
    document=[0, 1, 1, 3], rank=[1, 2, 3, 1], impressions=[9, 4, 5, 6], clicks=[5, 0, 2, 4],
    propensity=[1.0, 0.5, 0.25, 0.8], sessions=[9, 6], offsets=OFFSETS,
)  # fmt: skip
# No click can be where nothing is examined.
UNSEEN = cf.ClickLog(
    document=[0, 1], rank=[1, 2], impressions=[3, 3], clicks=[1, 0], propensity=[0.5, 0.0], sessions=[3], offsets=[0, 2]
)


@pytest.mark.oracle("rank_weight.RankWeights", "rank_weight.RankWeights.__len__")
@given(left=SCORES, right=SCORES)
def test_a_difference_compares_two_rankers(left: list[float], right: list[float]) -> None:
    one, other = (cf.rank_weights(scores, OFFSETS, metric=cf.dcg()) for scores in (left, right))
    loops = [oracles.rank_weights(scores, OFFSETS, oracles.dcg) for scores in (left, right)]
    difference = one - other
    assert isinstance(difference, RankWeights)
    assert len(difference) == 4
    np.testing.assert_allclose(difference, oracles.rank_difference(*loops), rtol=0, atol=1e-14)
    assert repr(difference) == "RankWeights(DCG at the ranks of 4 documents)"
    for estimate in (cf.naive, cf.ips, lambda log, given: cf.clipped(log, given, cap=2.0)):
        paired = estimate(LOG, difference)
        assert math.isclose(paired.value, estimate(LOG, one).value - estimate(LOG, other).value, abs_tol=1e-12)
        assert paired.metric is one.metric


def test_other_numbers_are_no_difference() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        cf.rank_weights([1.0], [0, 1], metric=cf.dcg()) - 3  # type: ignore[operator]


@pytest.mark.oracle("estimates.Estimate.report")
@pytest.mark.parametrize(("metric", "gain"), [(cf.dcg(), True), (cf.average_rank(), False)])
def test_an_estimate_reports_what_a_table_shows(metric, gain: bool) -> None:
    lam = cf.rank_weights([3.0, 2.0, 1.0, 0.0], OFFSETS, metric=metric)
    for estimate in (cf.naive, cf.ips, cf.self_normalised):
        found = estimate(LOG, lam)
        assert found.report() == oracles.report(found.value, gain)
        assert found.value == estimate(LOG, lam=lam.lam).value


@pytest.mark.oracle("estimates.Estimate.report_interval")
@pytest.mark.parametrize(("metric", "gain"), [(cf.dcg(), True), (cf.average_rank(), False)])
def test_what_a_table_shows_lies_in_the_interval_that_it_shows(metric, gain: bool) -> None:
    found = cf.ips(LOG, cf.rank_weights([3.0, 2.0, 1.0, 0.0], OFFSETS, metric=metric))
    for level in (0.5, 0.95):
        low, high = found.report_interval(level)
        reported = oracles.report(found.value, gain)
        assert low < found.report() < high
        np.testing.assert_allclose((low, high), oracles.normal_interval(reported, found.standard_error, level))


@pytest.mark.oracle("ragged.query_of")
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_query_of(sizes: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    documents = np.arange(offsets[-1])[::-1]
    assert query_of(documents, offsets).tolist() == [oracles.list_of(d, offsets.tolist()) for d in documents]


@pytest.mark.oracle("logs.ClickLog.weights", "logs.ClickLog.mass")
@pytest.mark.parametrize("log", [LOG, UNSEEN])
def test_weights_and_mass(log: cf.ClickLog) -> None:
    propensity = log.propensity.tolist()
    np.testing.assert_allclose(log.weights, oracles.weights_of(propensity), rtol=1e-15)
    np.testing.assert_allclose(log.mass, oracles.masses_of(log.clicks.tolist(), propensity), rtol=1e-15)


def test_a_log_without_clicks_has_no_mass() -> None:
    silent = cf.ClickLog(
        document=[0], rank=[1], impressions=[2], clicks=[0], propensity=[1.0], sessions=[2], offsets=[0, 1]
    )
    with pytest.raises(ValueError, match="log: there is no click in the log"):
        _ = silent.mass
