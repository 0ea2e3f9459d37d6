"""Interventions against every page that they can show."""

import itertools
from collections import Counter
from collections.abc import Callable

import numpy as np
import oracles
import pytest
from refusals import refuses

import cfltr_core as cf
from cfltr_core.propensity.interventions import InterventionCost, PlacePolicy

# Pages of three, one, four and two places; the last document of the third list is not shown.
OFFSETS = [0, 3, 4, 9, 11]
BASE = cf.DeterministicPolicy([2, 1, 3, 1, 4, 2, 1, 3, 0, 2, 1], OFFSETS)
SLICES = list(itertools.pairwise(OFFSETS))
USER = cf.PositionBasedUser([0.9, 0.5, 0.6, 0.2], epsilon_minus=0.1)
RELEVANCE = [1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1]


def base_page(query: int) -> tuple[int, ...]:
    low, high = SLICES[query]
    ((page, _),) = oracles.fixed_page(BASE.displayed_rank[low:high].tolist()).items()
    return page


PAIRS = {
    "landmark 1": [(1, 2), (1, 3), (1, 4)],
    "landmark 3": [(3, 1), (3, 2), (3, 4)],
    "adjacent": [(1, 2), (2, 3), (3, 4)],
    "any two": [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)],
    "one pair": [(4, 2)],
}
POLICIES: dict[str, tuple[PlacePolicy, list[oracles.Pages]]] = {
    **{
        f"top {n}": (cf.RandTopPolicy(BASE, n=n), [oracles.shuffled_pages(base_page(q), n) for q in range(4)])
        for n in (2, 3, 4)
    },
    **{
        f"{name}, {swap}": (policy, [oracles.swapped_pages(base_page(q), PAIRS[name], swap) for q in range(4)])
        for name, swap, policy in (
            ("landmark 1", 0.5, cf.SwapPolicy.landmark(BASE, 1)),
            ("landmark 3", 0.75, cf.SwapPolicy.landmark(BASE, 3, swap=0.75)),
            ("adjacent", 0.5, cf.SwapPolicy.adjacent(BASE)),
            ("any two", 1.0, cf.SwapPolicy.random_pairs(BASE, swap=1.0)),
            ("one pair", 0.1, cf.SwapPolicy(BASE, pairs=[(4, 2)], swap=0.1)),
        )
    },
}  # fmt: skip


@pytest.mark.oracle("policies.DeterministicPolicy.pages")
def test_pages_of_the_base() -> None:
    for (low, high), shown in zip(SLICES, BASE.pages.tolist(), strict=True):
        ((page, _),) = oracles.fixed_page(BASE.displayed_rank[low:high].tolist()).items()
        assert shown == [low + d for d in page] + [-1] * (BASE.cutoff - len(page))


@pytest.mark.oracle("interventions.RandTopPolicy", "interventions.SwapPolicy", "interventions.PlacePolicy.displays",
                    "interventions.PlacePolicy.display_mean", "interventions.PlacePolicy.arrangements",
                    "interventions.RandTopPolicy.arrangements", "interventions.SwapPolicy.arrangements",
                    "interventions.PlacePolicy.place_law", "interventions.RandTopPolicy.place_law")  # fmt: skip
@pytest.mark.parametrize("name", POLICIES)
def test_every_page_and_the_means_over_them(name: str) -> None:
    policy, pages = POLICIES[name]
    assert isinstance(policy, (cf.RandTopPolicy, cf.SwapPolicy))
    for query, (low, high) in enumerate(SLICES):
        expected = {tuple(low + d for d in page): p for page, p in pages[query].items()}
        found = list(policy.displays(query))
        assert len(found) == len(expected), "each page once"
        assert {page: p for p, page in found} == pytest.approx(expected, rel=1e-12)
        size = len(base_page(query))
        law = np.zeros((size, size))
        for p, places in policy.arrangements(size):
            for new, old in enumerate(places):
                law[old, new] += p
        np.testing.assert_allclose(policy.place_law(size), law, atol=1e-12)
        for value, weight in (
            (USER.propensity, lambda r: USER.examination[r - 1]),
            (cf.dcg(), lambda r: oracles.dcg(r)),
        ):
            mean = oracles.page_mean(pages[query], high - low, weight)
            np.testing.assert_allclose(policy.display_mean(value)[low:high], mean, atol=1e-12)


@pytest.mark.oracle("interventions.PlacePolicy.sample", "interventions.PlacePolicy.draw_places",
                    "interventions.RandTopPolicy.draw_places", "interventions.SwapPolicy.draw_places",
                    "interventions.SwapPolicy.impressions")  # fmt: skip
@pytest.mark.parametrize("name", POLICIES)
def test_drawn_pages_follow_the_law(name: str) -> None:
    policy, pages = POLICIES[name]
    rng, n = np.random.default_rng(3), 20_000
    for query, (low, _) in enumerate(SLICES):
        law = pages[query]
        shown = policy.sample(np.full(n, query), rng)
        assert shown.shape == (n, 4)
        seen = Counter(tuple(d - low for d in page if d >= 0) for page in shown.tolist())
        assert set(seen) <= set(law)
        for page, p in law.items():
            assert abs(seen[page] / n - p) <= 4 * np.sqrt(p * (1 - p) / n)
        places = policy.draw_places(np.full(3, len(base_page(query))), rng)
        assert np.sort(places, axis=1).tolist() == [[0, 1, 2, 3]] * 3
    document, rank, count = policy.impressions([n] * 4, rng)
    table = np.zeros((11, 4))
    table[document, rank - 1] = count
    for query, (low, high) in enumerate(SLICES):
        for place in range(4):
            p = np.array(oracles.page_mean(pages[query], high - low, lambda r, place=place: float(r == place + 1)))
            assert (abs(table[low:high, place] / n - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()
        assert (table[low:high].sum(axis=0) == n * (np.arange(4) < len(base_page(query)))).all()


@pytest.mark.oracle("interventions.intervention_cost", "interventions.InterventionCost.change",
                    "interventions.InterventionCost.worst_change", "interventions.PlacePolicy.worst_clicks",
                    "interventions.RandTopPolicy.worst_clicks")  # fmt: skip
@pytest.mark.parametrize("name", POLICIES)
def test_cost(name: str) -> None:
    policy, pages = POLICIES[name]
    attraction = [1.0 if relevant else 0.1 for relevant in RELEVANCE]
    theta = list(USER.examination)
    before, after, worst = [], [], []
    for query, (low, high) in enumerate(SLICES):
        here = attraction[low:high]
        clicks = {page: oracles.page_clicks(page, theta, here) for page in pages[query]}
        before.append(oracles.page_clicks(base_page(query), theta, here))
        after.append(sum(p * clicks[page] for page, p in pages[query].items()))
        worst.append(min(clicks.values()))
        size = len(base_page(query))
        shown = np.array([[here[d] for d in base_page(query)]])
        assert policy.worst_clicks(np.array(theta[:size]), shown) == pytest.approx(worst[-1:])
    cost = cf.intervention_cost(policy, USER, relevance=RELEVANCE)
    assert (cost.before, cost.after, cost.worst) == pytest.approx([np.mean(x) for x in (before, after, worst)])
    assert InterventionCost.change.fget(cost) == pytest.approx(np.sum(after) / np.sum(before) - 1)  # type: ignore[attr-defined]
    assert cost.worst_change == pytest.approx(np.sum(worst) / np.sum(before) - 1)


@pytest.mark.oracle("interventions.SwapPolicy.landmark", "interventions.SwapPolicy.adjacent",
                    "interventions.SwapPolicy.random_pairs")  # fmt: skip
def test_families_of_swaps() -> None:
    for policy, name in (
        (cf.SwapPolicy.landmark(BASE, 1), "landmark 1"), (cf.SwapPolicy.landmark(BASE, 3), "landmark 3"),
        (cf.SwapPolicy.adjacent(BASE), "adjacent"), (cf.SwapPolicy.random_pairs(BASE), "any two"),
    ):  # fmt: skip
        assert sorted(policy.pairs) == sorted((min(pair), max(pair)) for pair in PAIRS[name])
        pages = oracles.swapped_pages(base_page(2), PAIRS[name], 0.5)
        assert len(list(policy.displays(2))) == len(pages)


@pytest.mark.parametrize(
    ("start", "call"),
    [
        ("n is 5", lambda: cf.RandTopPolicy(BASE, n=5)),
        ("base is RandTopPolicy", lambda: cf.RandTopPolicy(POLICIES["top 2"][0], n=2)),
        ("base shows 1 places", lambda: cf.SwapPolicy.adjacent(cf.DeterministicPolicy([1], [0, 1]))),
        ("pairs: expected at least one", lambda: cf.SwapPolicy(BASE, pairs=[])),
        ("pairs[1] is (0, 1)", lambda: cf.SwapPolicy(BASE, pairs=[(1, 2), (0, 1)])),
        ("pairs[0] is (1, 5)", lambda: cf.SwapPolicy(BASE, pairs=[(1, 5)])),
        ("pairs[1] is (2, 1), which was given", lambda: cf.SwapPolicy(BASE, pairs=[(1, 2), (2, 1)])),
        ("rank is 5.0, outside [1, 4]", lambda: cf.SwapPolicy.landmark(BASE, 5)),
        ("relevance: no document can be clicked",
         lambda: cf.intervention_cost(POLICIES["top 2"][0], cf.PositionBasedUser([1.0]), relevance=[0] * 11)),
    ],
)  # fmt: skip
def test_what_is_refused(start: str, call: Callable[[], object]) -> None:
    refuses(start, call)
