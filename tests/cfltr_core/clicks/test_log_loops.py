"""Users, policies and click logs against loops: displayed ranks, exposure, counts, single clicks, their laws."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from strategies import Counts, Problem, counts, offsets, problems

import cfltr_core as cf
from cfltr_core.clicks.policies import shown_places

CURVES = [
    (cf.power_examination(1.0), lambda r: oracles.power(1.0, 0.0, r)),
    (cf.power_examination(0.7, shift=1.0), lambda r: oracles.power(0.7, 1.0, r)),
    ([1.0, 0.6, 0.3], [1.0, 0.6, 0.3]),
]


@pytest.mark.oracle("users.power_examination")
@given(eta=st.floats(0, 3), shift=st.floats(0, 2), rank=st.lists(st.integers(1, 200), min_size=1, max_size=5))
def test_power_examination(eta: float, shift: float, rank: list[int]) -> None:
    loops = [oracles.power(eta, shift, r) for r in rank]
    np.testing.assert_allclose(cf.power_examination(eta, shift)(np.array(rank, dtype=float)), loops, rtol=1e-12, atol=0)


@pytest.mark.oracle("users.PositionBasedUser", "users.PositionBasedUser.propensity",
                    "users.PositionBasedUser.attraction", "users.PositionBasedUser.click_probability")  # fmt: skip
@pytest.mark.parametrize(("curve", "reference"), CURVES)
@given(
    rank=st.lists(st.integers(0, 6), min_size=1, max_size=6),
    noise=st.sampled_from([(1.0, 0.0), (0.8, 0.1), (0.5, 0.5)]),
    data=st.data(),
)
def test_position_based_user(
    curve, reference, rank: list[int], noise: tuple[float, float], data: st.DataObject
) -> None:
    relevance = data.draw(st.lists(st.integers(0, 1), min_size=len(rank), max_size=len(rank)))
    user = cf.PositionBasedUser(curve, epsilon_plus=noise[0], epsilon_minus=noise[1])
    found = user.propensity(rank)
    np.testing.assert_allclose(found, [oracles.examined(reference, r) for r in rank], rtol=1e-14, atol=0)
    clicks = [oracles.clicked(reference, *noise, r, y) for r, y in zip(rank, relevance, strict=True)]
    np.testing.assert_allclose(user.click_probability(rank, relevance), clicks, rtol=1e-14, atol=0)
    examined_clicks = [oracles.clicked(lambda r: 1.0, *noise, 1, y) for y in relevance]
    np.testing.assert_allclose(user.attraction(relevance), examined_clicks, rtol=1e-14, atol=0)


@pytest.mark.oracle("policies.DeterministicPolicy", "policies.shown_places")
@given(cuts=offsets(longest=4), data=st.data())
def test_deterministic_policy_takes_exactly_the_rankings(cuts: list[int], data: st.DataObject) -> None:
    rank = data.draw(st.lists(st.integers(0, 3), min_size=cuts[-1], max_size=cuts[-1]))
    if oracles.is_display(rank, cuts):
        policy = cf.DeterministicPolicy(rank, cuts)
        assert policy.displayed_rank.tolist() == rank
        assert policy.offsets.tolist() == cuts
        shown = [sum(r > 0 for r in rank[low:high]) for low, high in pairwise(cuts)]
        assert shown_places(rank, policy.offsets, "rank")[1].tolist() == shown
    else:
        refuses("displayed_rank of query", cf.DeterministicPolicy, rank, cuts)


@pytest.mark.oracle("policies.DeterministicPolicy.rank_by")
@given(problem=problems(), cutoff=st.one_of(st.none(), st.integers(1, 4)), seed=st.integers(0, 99))
def test_rank_by(problem: Problem, cutoff: int | None, seed: int) -> None:
    policy = cf.DeterministicPolicy.rank_by(
        problem.scores, problem.offsets, rng=np.random.default_rng(seed), cutoff=cutoff
    )
    whole = cf.DeterministicPolicy.rank_by(problem.scores, problem.offsets, rng=np.random.default_rng(seed))
    for documents in oracles.lists(problem.offsets):
        assert oracles.is_order([problem.scores[d] for d in documents], [whole.displayed_rank[d] for d in documents])
    expected = [r if cutoff is None or r <= cutoff else 0 for r in whole.displayed_rank.tolist()]
    assert policy.displayed_rank.tolist() == expected
    for curve, reference in CURVES:
        loops = [oracles.examined(reference, r) for r in expected]
        np.testing.assert_allclose(policy.exposure(cf.PositionBasedUser(curve)), loops, rtol=1e-14, atol=0)


def world(problem: Counts) -> tuple[cf.DeterministicPolicy, cf.PositionBasedUser]:
    return cf.DeterministicPolicy(problem.rank, problem.offsets), cf.PositionBasedUser(cf.power_examination(1.0))


def single_clicks(problem: Counts) -> list[int]:
    return [d for d, n in enumerate(problem.clicks) for _ in range(n)]


@pytest.mark.oracle("logs.ClickLog")
@given(
    terms=st.lists(
        st.tuples(
            st.integers(-1, 5),
            st.integers(0, 3),
            st.integers(-1, 3),
            st.integers(-1, 3),
            st.sampled_from([0.0, 0.5, 1.0, 1.0, 1.5, -0.1, math.nan]),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_click_log_takes_exactly_the_possible_counts(terms: list[tuple]) -> None:
    document, rank, impressions, clicks, propensity = map(list, zip(*terms, strict=True))
    names = ("document", "rank", "impressions", "clicks", "propensity", "sessions", "offsets")
    given = dict(zip(names, (document, rank, impressions, clicks, propensity, [2, 3], [0, 2, 5]), strict=True))
    fault = oracles.click_log_fault(*given.values())
    if fault is None:
        log = cf.ClickLog(**given)
        for name, value in given.items():
            assert getattr(log, name).tolist() == value
    else:
        refuses(f"{fault[0]}[{fault[1]}] is", cf.ClickLog, **given)


@pytest.mark.oracle("logs.ClickLog.n_sessions", "logs.ClickLog.n_clicks", "logs.ClickLog.query",
                    "logs.aggregate_clicks")  # fmt: skip
@given(problem=counts(), seed=st.integers(0, 99))
def test_aggregate_clicks(problem: Counts, seed: int) -> None:
    policy, user = world(problem)
    documents = np.random.default_rng(seed).permutation(single_clicks(problem)).astype(int)
    log = cf.aggregate_clicks(documents, policy, user=user, sessions=problem.sessions)
    query = oracles.query_index(problem.offsets)
    shown = [d for d, r in enumerate(problem.rank) if r > 0 and problem.sessions[query[d]] > 0]
    assert log.document.tolist() == shown
    assert log.rank.tolist() == [problem.rank[d] for d in shown]
    assert log.clicks.tolist() == [problem.clicks[d] for d in shown]
    assert log.impressions.tolist() == [problem.sessions[query[d]] for d in shown]
    assert log.query.tolist() == [query[d] for d in shown]
    loops = [oracles.power(1.0, 0.0, problem.rank[d]) for d in shown]
    np.testing.assert_allclose(log.propensity, loops, rtol=1e-14, atol=0)
    assert (log.n_sessions, log.n_clicks) == (sum(problem.sessions), sum(problem.clicks))


@pytest.mark.oracle("simulation.simulate_clicks")
@given(problem=counts(), relevance=st.integers(0, 2**20), seed=st.integers(0, 99))
def test_simulated_logs_have_the_right_terms(problem: Counts, relevance: int, seed: int) -> None:
    policy, user = world(problem)
    binary = [relevance >> d & 1 for d in range(problem.offsets[-1])]
    log = cf.simulate_clicks(policy, user, relevance=binary, sessions=problem.sessions, rng=np.random.default_rng(seed))
    empty = cf.aggregate_clicks(np.empty(0, dtype=int), policy, user=user, sessions=problem.sessions)
    for name in ("document", "rank", "impressions", "propensity", "sessions", "offsets"):
        np.testing.assert_array_equal(getattr(log, name), getattr(empty, name))
    query = oracles.query_index(problem.offsets)
    for d, n in zip(log.document.tolist(), log.clicks.tolist(), strict=True):
        probability = oracles.clicked(lambda r: oracles.power(1.0, 0.0, r), 1.0, 0.0, problem.rank[d], binary[d])
        assert n <= problem.sessions[query[d]]
        # Certain clicks and impossible clicks leave no room for chance.
        if probability in (0.0, 1.0):
            assert n == probability * problem.sessions[query[d]]


@pytest.mark.parametrize(("plus", "minus"), [(1.0, 0.0), (0.9, 0.3)])
def test_simulated_counts_have_mean_and_variance_of_a_binomial(plus: float, minus: float) -> None:
    """40 000 queries of three documents with 6 sessions each: means within 5 standard errors, and variances too."""
    n, sessions = 40_000, 6
    rank, relevance, curve = [2, 1, 3], [1, 0, 1], [0.9, 0.6, 0.2]
    policy = cf.DeterministicPolicy(rank * n, np.arange(n + 1) * 3)
    user = cf.PositionBasedUser(curve, epsilon_plus=plus, epsilon_minus=minus)
    log = cf.simulate_clicks(
        policy, user, relevance=relevance * n, sessions=[sessions] * n, rng=np.random.default_rng(0)
    )
    drawn = log.clicks.reshape(n, 3)
    for d in range(3):
        p = oracles.clicked(curve, plus, minus, rank[d], relevance[d])
        law = [math.comb(sessions, c) * p**c * (1 - p) ** (sessions - c) for c in range(sessions + 1)]
        mean, variance = oracles.moments([(w, c) for c, w in enumerate(law)])
        fourth = math.fsum(w * (c - mean) ** 4 for c, w in enumerate(law))
        assert abs(drawn[:, d].mean() - mean) <= 5 * math.sqrt(variance / n)
        assert abs(((drawn[:, d] - mean) ** 2).mean() - variance) <= 5 * math.sqrt((fourth - variance**2) / n)
    # Documents of a query are clicked independently of each other.
    if minus > 0:
        correlation = np.corrcoef(drawn.T)
        assert np.abs(correlation[np.triu_indices(3, 1)]).max() <= 5 / math.sqrt(n)


@pytest.mark.oracle("simulation.draw_sessions")
def test_drawn_sessions_are_multinomial() -> None:
    """Every pair of queries of two sessions over three queries: 9 ways, 6 tables; 30 000 draws, 5 sigma."""
    rng, n = np.random.default_rng(0), 30_000
    seen = Counter(tuple(cf.draw_sessions(2, 3, rng=rng).tolist()) for _ in range(n))
    law: Counter[tuple[int, ...]] = Counter()
    for probability, log in oracles.every_drawn_log([[1.0]] * 3, [[1]] * 3, 1.0, 0.0, 2):
        law[oracles.tally(log, [1, 1, 1])[0]] += probability
    assert set(seen) == set(law)
    for table, p in law.items():
        assert abs(seen[table] - n * p) <= 5 * math.sqrt(n * p * (1 - p))
    assert cf.draw_sessions(10**9, 7, rng=rng).sum() == 10**9


@pytest.mark.oracle("loggers.fit_linear_ranker")
@pytest.mark.parametrize(
    ("fraction", "ridge", "least", "size"),
    [(1.0, 1.0, 20, 30), (0.5, 3.0, 5, 15), (0.0, 0.1, 7, 7), (0.01, 1.0, 99, 30)],
)
def test_fit_linear_ranker(fraction: float, ridge: float, least: int, size: int) -> None:
    """Normal equations solved by elimination on the queries that the same generator chooses; one column is constant."""
    rng = np.random.default_rng(3)
    cuts = np.concatenate([[0], np.cumsum(rng.integers(1, 6, size=30))])
    features = rng.normal(size=(cuts[-1], 4)).astype(np.float32)
    features[:, 2] = 0.25
    data = cf.RankingData(features, rng.integers(0, 3, size=cuts[-1]), offsets=cuts, threshold=2)
    found = cf.fit_linear_ranker(data, fraction, rng=np.random.default_rng(5), ridge=ridge, min_queries=least).weights
    chosen = sorted(np.random.default_rng(5).choice(30, size=size, replace=False).tolist())
    rows = oracles.document_index(chosen, cuts.tolist())
    loops = oracles.ridge_weights(features[rows].tolist(), [float(data.relevance[d] >= 2) for d in rows], ridge)
    assert found[2] == 0.0
    np.testing.assert_allclose(found, loops, rtol=1e-9, atol=1e-12)
