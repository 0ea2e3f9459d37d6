"""Interventional sets against loops over strata: click rates, pivot, chain and AllPairs with their covariances."""

import itertools
import math

import numpy as np
import oracles
import pytest
from refusals import refuses
from strata_logs import drawn, of_groups

import cfltr_core as cf
from cfltr_core.propensity.all_pairs import all_pairs_likelihood
from cfltr_core.propensity.interventional_sets import PairCounts, PairRule, pair_terms, query_influence, summed_pairs

Groups = dict[tuple[int, int, int], oracles.Stratum]
WEIGHTS = {"harmonic": oracles.harmonic, "documents": oracles.by_document}
RANKS = (1, 2, 3, 4)


def groups_of(counts: cf.DisplayCounts) -> Groups:
    columns = (counts.query, counts.period, counts.document, counts.rank, counts.impressions, counts.clicks)
    return oracles.strata([tuple(map(int, row)) for row in zip(*columns, strict=True)])  # type: ignore[misc]


def simulated(seed: int) -> cf.DisplayCounts:
    return of_groups(drawn(seed, n_queries=10, documents=3))


@pytest.mark.oracle("interventional_sets.pair_counts", "interventional_sets.summed_pairs")
@pytest.mark.parametrize("weighting", WEIGHTS)
def test_sets(weighting: str) -> None:
    counts = simulated(0)
    groups = list(groups_of(counts).values())
    terms = pair_terms(counts, weighting=weighting, design=None)  # type: ignore[arg-type]
    for pairs in (cf.pair_counts(counts, weighting=weighting), summed_pairs(terms)):  # type: ignore[arg-type]
        for k, j in itertools.product(RANKS, RANKS):
            expected = oracles.pair_sums(groups, k, j, WEIGHTS[weighting]) if k != j else (0, 0, 0)
            found = (pairs.clicks[k - 1, j - 1], pairs.misses[k - 1, j - 1], pairs.sets[k - 1, j - 1])
            assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.oracle("interventional_sets.pair_terms")
def test_terms_are_those_of_the_strata() -> None:
    counts = simulated(4)
    terms = pair_terms(counts, weighting="harmonic", design=None)
    rows = [
        (int(terms.cluster[t]), 0, stratum, int(terms.place[t]) + 1, int(terms.impressions[t]), int(terms.clicks[t]))
        for stratum, (first, end) in enumerate(itertools.pairwise(terms.start.tolist()))
        for t in range(first, end)
    ]
    found, expected = oracles.strata(rows), groups_of(counts)  # type: ignore[arg-type]
    assert [key[0] for key in found] == [key[0] for key in expected]
    assert list(found.values()) == list(expected.values())
    assert (terms.n_ranks, terms.share) == (4, None)


@pytest.mark.oracle("interventional_sets.query_influence")
@pytest.mark.parametrize("weighting", WEIGHTS)
def test_sums_of_a_rule_by_query(weighting: str) -> None:
    """Any factors: those of the second rank of a pair count with a minus, and so does the whole in ``minus``."""
    counts, rng = simulated(5), np.random.default_rng(5)
    clicks, misses = rng.normal(size=(2, 4, 4))
    plus, minus = rng.integers(-1, 4, size=(2, 4, 4))
    terms = pair_terms(counts, weighting=weighting, design=None)  # type: ignore[arg-type]
    sums, used, n_queries = query_influence(terms, PairRule(clicks, misses, plus, minus))
    groups, speaks, heard = groups_of(counts), set(), set()
    expected, clicked = np.zeros((10, 4)), np.zeros((10, 4))
    for query, (k, j) in itertools.product(range(10), itertools.combinations(RANKS, 2)):
        mine = [group for key, group in groups.items() if key[0] == query]
        here, there = (oracles.pair_sums(mine, *pair, WEIGHTS[weighting]) for pair in ((k, j), (j, k)))
        a, b = (k - 1, j - 1), (j - 1, k - 1)
        value = clicks[a] * here[0] + misses[a] * here[1] - clicks[b] * there[0] - misses[b] * there[1]
        for sign, column in ((1, plus[a]), (-1, minus[a])):
            if column >= 0:
                expected[query, column] += sign * value
                speaks |= {query} if here[2] else set()
                both = [key for key, group in groups.items() if key[0] == query and {k, j} <= {*group}]
                heard |= set(itertools.product(both, (k, j)))
    np.testing.assert_allclose(sums, expected, rtol=1e-10, atol=1e-12)
    for key, rank in heard:
        clicked[key[0], rank - 1] += groups[key][rank][1]
    assert used.tolist() == clicked.tolist()
    assert n_queries == len(speaks)


def test_the_weights_of_the_design() -> None:
    """1/P(rank) of every document that the policy might show at both ranks, whether or not it did."""
    offsets = [0, 3, 6]
    rankers = [cf.DeterministicPolicy(rank, offsets) for rank in ([1, 2, 3, 1, 2, 3], [2, 1, 0, 3, 1, 2])]
    policy = cf.MixturePolicy(rankers, [0.7, 0.3])
    user, rng = cf.PositionBasedUser([1, 0.5, 0.25], epsilon_minus=0.3), np.random.default_rng(1)
    log = cf.simulate_clicks(policy, user, relevance=[1, 0, 1, 0, 1, 1], sessions=[3, 2], rng=rng)
    pages = [oracles.fixed_page(r.displayed_rank[:3].tolist()) for r in rankers]
    other = [oracles.fixed_page(r.displayed_rank[3:].tolist()) for r in rankers]
    law = [oracles.mixed_pages(part, [0.7, 0.3]) for part in (pages, other)]
    share = {
        (q * 3 + d, k): oracles.page_mean(law[q], 3, lambda r, k=k: float(r == k))[d]
        for q in range(2) for d in range(3) for k in (1, 2, 3)
    }  # fmt: skip
    clicks, misses, sets = (np.zeros((3, 3)) for _ in range(3))
    shown = set(log.document.tolist())
    for k, j in itertools.permutations((1, 2, 3), 2):
        for d in shown:
            if share[d, k] > 0 and share[d, j] > 0:
                sets[k - 1, j - 1] += 1
                for i in np.flatnonzero((log.document == d) & (log.rank == k)):
                    clicks[k - 1, j - 1] += log.clicks[i] / share[d, k]
                    misses[k - 1, j - 1] += (log.impressions[i] - log.clicks[i]) / share[d, k]
    pairs = cf.pair_counts(cf.display_counts(log), weighting="design", design=policy)
    np.testing.assert_allclose(pairs.clicks, clicks, rtol=1e-12)
    np.testing.assert_allclose(pairs.misses, misses, rtol=1e-12)
    np.testing.assert_array_equal(pairs.sets, sets)
    refuses("design: document", cf.pair_counts, cf.display_counts(log), weighting="design", design=rankers[0])
    refuses(
        "design: one policy cannot", cf.pair_counts, cf.display_counts([log, log]), weighting="design", design=policy
    )
    for given in ({"weighting": "design"}, {"design": policy}):
        refuses("design: give the policy that filled the log with", cf.all_pairs, cf.display_counts(log), **given)


@pytest.mark.oracle("harvesting.pivot", "harvesting.adjacent_chain")
@pytest.mark.parametrize("weighting", WEIGHTS)
@pytest.mark.parametrize("rank", [*RANKS, None])
def test_pivot_and_chain(weighting: str, rank: int | None) -> None:
    """Each rank against the pivot, or against the one above it: then what is above moves all that is below."""
    counts, weight = simulated(1 if rank else 2), WEIGHTS[weighting]
    groups = groups_of(counts)
    curve = cf.pivot(counts, rank, weighting=weighting) if rank else cf.adjacent_chain(counts, weighting=weighting)  # type: ignore[arg-type]
    logs, moves = np.zeros(4), np.zeros((10, 4))
    for k in RANKS:
        other, touched = (rank, slice(k - 1, k)) if rank else (k - 1, slice(k - 1, 4))
        if other and other != k:
            above, below = (
                oracles.pair_sums(list(groups.values()), *pair, weight) for pair in ((k, other), (other, k))
            )
            logs[touched] += math.log(above[0] / below[0])
            for query, move in oracles.ratio_influence(groups, k, other, weight).items():
                moves[query, touched] += move
    spread = oracles.outer_sum(moves.tolist(), int(moves.any(axis=1).sum()))
    ratio, covariance = oracles.relative(logs.tolist(), spread)
    np.testing.assert_allclose(curve.log_ratio, ratio, atol=1e-12)
    np.testing.assert_allclose(curve.covariance, covariance, rtol=1e-9, atol=1e-13)
    refuses("rank is 5.0, outside [1, 4]", cf.pivot, counts, 5)


def test_what_pivot_and_chain_cannot_compare_but_the_log_can() -> None:
    """Links 1–3 and 3–2: no document at 1 and 2, none at adjacent ranks but 2 and 3."""
    terms = {"query": [0, 0, 1, 1], "document": [0, 0, 1, 1], "rank": [1, 3, 2, 3], "impressions": [9] * 4}
    counts = cf.DisplayCounts(**terms, clicks=[8, 2, 6, 3])
    assert cf.pivot(counts).components == ((1, 3), (2,))
    assert "The pivot at rank 1 cannot compare rank 2 with rank 1, but the log can" in cf.pivot(counts).diagnosis
    assert cf.adjacent_chain(counts).components == ((1,), (2, 3))
    np.testing.assert_allclose(cf.all_pairs(counts).curve, [1, 1 / 2, 1 / 4], rtol=1e-9)
    np.testing.assert_allclose(cf.pivot(counts, 3).curve, [1, 1 / 2, 1 / 4], rtol=1e-12)


@pytest.mark.oracle("all_pairs.all_pairs_likelihood")
@pytest.mark.parametrize("seed", range(3))
def test_profile_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    off = 1 - np.eye(4)
    clicks, misses = rng.uniform(1, 30, (4, 4)) * off, rng.uniform(1, 90, (4, 4)) * off
    if seed == 1:
        clicks[0, 1] = clicks[1, 0] = clicks[2, 3] = 0.0
    pairs = PairCounts(clicks, misses, off.astype(np.int64))
    for u in (np.zeros(4), rng.normal(size=4), 9 * rng.normal(size=4)):
        value, gradient, minus_hessian = all_pairs_likelihood(pairs, u)

        def by_loop(at: list[float]) -> float:
            return oracles.all_pairs_value(clicks.tolist(), misses.tolist(), at)

        assert value == pytest.approx(by_loop(u.tolist()), rel=1e-10)
        np.testing.assert_allclose(gradient, oracles.differences(by_loop, u.tolist()), atol=2e-5)
        for i in range(4):
            move = 1e-6 * np.eye(4)[i]
            up, down = (all_pairs_likelihood(pairs, u + sign * move)[1] for sign in (1, -1))
            np.testing.assert_allclose(minus_hessian[i], (down - up) / 2e-6, atol=1e-4)


@pytest.mark.oracle("all_pairs.all_pairs")
@pytest.mark.parametrize("weighting", WEIGHTS)
def test_all_pairs(weighting: str) -> None:
    counts, weight = simulated(3), WEIGHTS[weighting]
    groups = groups_of(counts)
    curve = cf.all_pairs(counts, weighting=weighting)  # type: ignore[arg-type]
    sums = {pair: oracles.pair_sums(list(groups.values()), *pair, weight) for pair in itertools.permutations(RANKS, 2)}
    tables = [[[sums[k, j][i] if k != j else 0.0 for j in RANKS] for k in RANKS] for i in (0, 1)]
    slope = oracles.differences(lambda u: oracles.all_pairs_value(*tables, u), curve.log_ratio.tolist())
    np.testing.assert_allclose(slope, 0, atol=1e-4)
    expected = oracles.all_pairs_sandwich(groups, curve.log_ratio.tolist(), weight)
    np.testing.assert_allclose(curve.covariance, expected, rtol=1e-6, atol=1e-12)
    clicks = [sum(group[k][1] for group in groups.values() if k in group) for k in RANKS]
    assert curve.clicks.tolist() == clicks


def test_all_pairs_where_nobody_passes_the_first_rank_by() -> None:
    """Every display at rank 1 is clicked: without a bound θ₁ would grow for ever, with it θ₂/θ₁ is 12/20."""
    terms = {"query": [0, 0], "document": [0, 0], "rank": [1, 2], "impressions": [20, 20]}
    curve = cf.all_pairs(cf.DisplayCounts(**terms, clicks=[20, 12]))
    np.testing.assert_allclose(curve.curve, [1, 12 / 20], rtol=1e-6)


@pytest.mark.oracle("harvesting.click_rates")
def test_click_rates() -> None:
    offsets = [0, 3, 5, 9]
    policy = cf.EpsilonGreedyPolicy([1, 2, 3, 1, 2, 1, 2, 3, 4], offsets, epsilon=[0.8, 0.5, 0.0])
    user, rng = cf.PositionBasedUser([1, 0.5, 0.25], epsilon_minus=0.3), np.random.default_rng(1)
    log = cf.simulate_clicks(policy, user, relevance=[1, 0, 1, 0, 1, 1, 1, 0, 0], sessions=[30, 40, 50], rng=rng)
    counts = cf.display_counts(log)
    columns = (counts.query, counts.period, counts.document, counts.rank, counts.impressions, counts.clicks)
    rows = [tuple(map(int, row)) for row in zip(*columns, strict=True)]
    for places in (None, 2, 3):
        curve = cf.click_rates(counts, places=places)
        expected = [oracles.rate_ratio(rows, k, places) for k in range(1, len(curve.curve) + 1)]  # type: ignore[arg-type]
        np.testing.assert_allclose(curve.curve, expected, rtol=1e-12)
        # A query more or less: the derivative of the estimate in the weight of each query.
        moves = []
        for query in range(3):
            ends = []
            for factor in (1 + 1e-6, 1 - 1e-6):
                scaled = [(*r[:4], r[4] * factor, r[5] * factor) if r[0] == query else r for r in rows]
                ends.append([math.log(oracles.rate_ratio(scaled, k, places)) for k in range(1, len(expected) + 1)])  # type: ignore[arg-type]
            moves.append([(a - b) / 2e-6 for a, b in zip(*ends, strict=True)])
        used = 2 if places == 3 else 3
        np.testing.assert_allclose(curve.covariance, oracles.outer_sum(moves, used), rtol=1e-5, atol=1e-10)
    assert "Queries showed between 2 and 3 ranks" in cf.click_rates(counts).diagnosis
    assert cf.click_rates(counts, places=3).diagnosis == ""
    refuses("places is 4.0, outside [1, 3]", cf.click_rates, counts, places=4)
    with pytest.raises(ValueError, match=r"^places is 2: no query showed all ranks from 1 to 2"):
        cf.click_rates(
            cf.DisplayCounts(query=[0, 1], document=[0, 1], rank=[1, 2], impressions=[9, 9], clicks=[1, 1]), places=2
        )
