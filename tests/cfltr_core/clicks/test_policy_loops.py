"""Stochastic policies on arbitrary small lists, against loops over their pages; counts of arbitrary many sessions."""

import math
import warnings
from collections import Counter

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Problem, problems

import cfltr_core as cf
from cfltr_core.clicks.simulation import sessions_for_clicks

USER = cf.PositionBasedUser(cf.power_examination(0.8), epsilon_plus=0.9, epsilon_minus=0.3)
THETA = lambda rank: oracles.power(0.8, 0.0, rank)  # noqa: E731
EPSILON = st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0]), min_size=1, max_size=5)
SCORES = st.floats(-3, 3, allow_nan=False)


@st.composite
def exploring(draw: st.DrawFn) -> tuple[cf.EpsilonGreedyPolicy, list[oracles.Pages]]:
    problem = draw(problems(longest=5))
    epsilon = draw(EPSILON)
    policy = cf.EpsilonGreedyPolicy.rank_by(
        problem.scores, problem.offsets, rng=np.random.default_rng(0), epsilon=epsilon
    )
    rows = oracles.lists(problem.offsets)
    return policy, [oracles.exploring_pages([policy.greedy_rank[d] for d in row], epsilon) for row in rows]


@st.composite
def plackett_luce(draw: st.DrawFn) -> tuple[cf.PlackettLucePolicy, list[oracles.Pages]]:
    problem = draw(problems(longest=5))
    scores = draw(st.lists(SCORES, min_size=problem.offsets[-1], max_size=problem.offsets[-1]))
    places, temperature = draw(st.integers(1, 6)), draw(st.sampled_from([0.2, 1.0, 10.0]))
    policy = cf.PlackettLucePolicy(scores, problem.offsets, cutoff=places, temperature=temperature)
    rows = oracles.lists(problem.offsets)
    return policy, [oracles.plackett_luce_pages([scores[d] for d in row], places, temperature) for row in rows]


def loops_of(pages: list[oracles.Pages], offsets: np.ndarray, value) -> list[float]:
    sizes = oracles.lengths(offsets.tolist())
    return [v for q, n in enumerate(sizes) for v in oracles.page_mean(pages[q], n, value)]


@pytest.mark.oracle("epsilon_greedy.EpsilonGreedyPolicy", "epsilon_greedy.EpsilonGreedyPolicy.rank_by")
@given(problem=problems(), epsilon=EPSILON, seed=st.integers(0, 99))
def test_greedy_ranking_is_by_score(problem: Problem, epsilon: list[float], seed: int) -> None:
    policy = cf.EpsilonGreedyPolicy.rank_by(
        problem.scores, problem.offsets, rng=np.random.default_rng(seed), epsilon=epsilon
    )
    for documents in oracles.lists(problem.offsets):
        assert oracles.is_order([problem.scores[d] for d in documents], [policy.greedy_rank[d] for d in documents])
    assert policy.epsilon.tolist() == epsilon
    never = cf.EpsilonGreedyPolicy(policy.greedy_rank, problem.offsets, epsilon=np.zeros(len(epsilon)))
    cut = [r if r <= len(epsilon) else 0 for r in policy.greedy_rank.tolist()]
    np.testing.assert_array_equal(never.exposure(USER), cf.DeterministicPolicy(cut, problem.offsets).exposure(USER))


@pytest.mark.oracle("policies.MixturePolicy")
@given(made=exploring(), share=st.sampled_from([0.0, 0.25, 1.0]), cutoff=st.integers(1, 6), seed=st.integers(0, 99))
def test_mixture(made: tuple, share: float, cutoff: int, seed: int) -> None:
    policy, pages = made
    scores = np.random.default_rng(seed).normal(size=policy.offsets[-1])
    other = cf.DeterministicPolicy.rank_by(scores, policy.offsets, rng=np.random.default_rng(seed), cutoff=cutoff)
    mixed = cf.MixturePolicy([policy, other], [share, 1 - share])
    rows = oracles.lists(policy.offsets.tolist())
    fixed = [oracles.fixed_page([other.displayed_rank[d] for d in row]) for row in rows]
    both = [oracles.mixed_pages(two, [share, 1 - share]) for two in zip(pages, fixed, strict=True)]
    np.testing.assert_allclose(mixed.exposure(USER), loops_of(both, policy.offsets, THETA), rtol=0, atol=1e-12)


@given(made=st.one_of(exploring(), plackett_luce()), data=st.data(), seed=st.integers(0, 99))
def test_pages_and_their_counts(made: tuple, data: st.DataObject, seed: int) -> None:
    """Every page is one of the loops; every place of a page is counted once per session."""
    policy, pages = made
    n_queries, rng = len(policy.offsets) - 1, np.random.default_rng(seed)
    queries = data.draw(st.lists(st.integers(0, n_queries - 1), max_size=9))
    drawn = policy.sample(queries, rng)
    assert drawn.shape == (len(queries), policy.cutoff)
    for q, row in zip(queries, drawn.tolist(), strict=True):
        page = tuple(d - int(policy.offsets[q]) for d in row if d >= 0)
        assert pages[q][page] > 0
        assert row[len(page) :] == [-1] * (policy.cutoff - len(page))
    sessions = data.draw(st.lists(st.integers(0, 300), min_size=n_queries, max_size=n_queries))
    document, rank, count = policy.impressions(sessions, rng)
    assert len(set(zip(document.tolist(), rank.tolist(), strict=True))) == len(document)
    assert (count > 0).all()
    held: Counter = Counter()
    for d, r, c in zip(document.tolist(), rank.tolist(), count.tolist(), strict=True):
        held[oracles.query_index(policy.offsets.tolist())[d], r] += c
    for q, n in enumerate(oracles.lengths(policy.offsets.tolist())):
        for r in range(1, policy.cutoff + 1):
            assert held[q, r] == (sessions[q] if r <= n else 0)


@pytest.mark.oracle("estimators.policy_aware", "simulation.simulate_clicks")
@given(made=st.one_of(exploring(), plackett_luce()), seed=st.integers(0, 99))
def test_simulated_logs_and_their_estimates(made: tuple, seed: int) -> None:
    policy, pages = made
    rng = np.random.default_rng(seed)
    n_docs, n_queries = int(policy.offsets[-1]), len(policy.offsets) - 1
    relevance, lam = rng.integers(0, 2, size=n_docs), rng.normal(size=n_docs)
    log = cf.simulate_clicks(policy, USER, relevance=relevance, sessions=np.full(n_queries, 40), rng=rng)
    chance = loops_of(pages, policy.offsets, THETA)
    aware = cf.policy_aware(log, policy.exposure(USER))
    for found, weight in (
        (cf.ips(aware, lam=lam), lambda d, r: 1 / chance[d]),
        (cf.ips(log, lam=lam), lambda d, r: 1 / THETA(r)),
        (cf.naive(aware, lam=lam), lambda d, r: 1.0),
    ):
        terms = zip(log.document.tolist(), log.rank.tolist(), log.clicks.tolist(), strict=True)
        totals = [0.0] * n_queries
        for d, r, c in terms:
            totals[oracles.query_index(policy.offsets.tolist())[d]] += c * weight(d, r) * lam[d] if c else 0.0
        value = math.fsum(totals) / (40 * n_queries)
        assert math.isclose(found.value, value, rel_tol=1e-9, abs_tol=1e-9)
        if n_queries > 1:
            squares = math.fsum((total - 40 * value) ** 2 for total in totals)
            error = math.sqrt(n_queries / (n_queries - 1) * squares) / (40 * n_queries)
            assert math.isclose(found.standard_error, error, rel_tol=1e-7, abs_tol=1e-9)
    assert (log.propensity == USER.propensity(log.rank)).all()
    np.testing.assert_allclose(aware.propensity, [chance[d] for d in log.document.tolist()], rtol=0, atol=1e-12)


@pytest.mark.oracle("simulation.sessions_for_clicks")
@given(made=exploring(), n_clicks=st.floats(0.1, 1e6))
def test_sessions_for_clicks(made: tuple, n_clicks: float) -> None:
    policy, pages = made
    relevance = [d % 2 for d in range(int(policy.offsets[-1]))]
    chance = loops_of(pages, policy.offsets, THETA)
    expected = math.fsum(
        oracles.clicked(lambda r, c=c: c, 0.9, 0.3, 1, y) for c, y in zip(chance, relevance, strict=True)
    )
    found = sessions_for_clicks(policy, USER, n_clicks=n_clicks, relevance=relevance)
    target = n_clicks * (len(policy.offsets) - 1) / expected
    assert type(found) is int
    assert found == 1 if target < 1 else abs(found - target) <= 0.5 + 1e-9 * target


def test_ranks_that_start_at_0_are_noticed_and_cut_off_pages_are_not() -> None:
    sizes = [2, 3, 5] * 4
    offsets = np.cumsum([0, *sizes])
    from_0 = np.concatenate([np.arange(n)[::-1] for n in sizes])
    said = r"^displayed_rank is 0 for one document of each of 12 lists, .* 4 documents and the shortest 1: .*add 1 to"
    with pytest.warns(UserWarning, match=said):
        cf.DeterministicPolicy(from_0, offsets)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf.DeterministicPolicy(from_0 + 1, offsets)
        # Each has one list in which nothing, or more than one document, is hidden; or nothing to tell it from a page
        # that is cut off, or too few lists.
        for cutoff in range(1, 5):
            cf.DeterministicPolicy(np.where(from_0 + 1 <= cutoff, from_0 + 1, 0), offsets)
        cf.DeterministicPolicy(np.tile([1, 2, 0], 12), np.arange(0, 37, 3))
        cf.DeterministicPolicy(from_0[: offsets[9]], offsets[:10])
