"""Stochastic policies and the policy-aware estimator, against loops over every display, examination and click."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import oracles
import pytest

from cfltr_core import (
    DeterministicPolicy,
    EpsilonGreedyPolicy,
    MixturePolicy,
    PlackettLucePolicy,
    PositionBasedUser,
    average_rank,
    clipped,
    dcg,
    enumerate_logs,
    expectation,
    ips,
    naive,
    policy_aware,
    power_examination,
    precision,
    rank_weights,
    self_normalised,
)

EXACT = 1e-12

# Two queries, of four documents and of one: the second list is shorter than any page.
OFFSETS = [0, 4, 5]
GREEDY = [2, 1, 4, 3, 1]
SCORES = [0.3, 1.2, -0.7, 0.1, 0.0]
RELEVANCE = [1, 0, 1, 1, 1]
CURVE = [0.9, 0.6, 0.4]
USER = PositionBasedUser(CURVE)
RANKERS = {"reversed": [2.0, 1.0, 4.0, 3.0, 1.0], "with ties": [1.0, 1.0, 0.0, 2.0, 0.0]}
WEIGHTS = {
    "average rank": (average_rank(), oracles.average_rank),
    "DCG@2": (dcg(2), oracles.dcg_at(2)),
    "Prec@3": (precision(3), oracles.precision_at(3)),
}


def both(reference) -> list[oracles.Pages]:
    """Pages of both queries, from a function of the slice of the list."""
    return [reference(slice(0, 4)), reference(slice(4, 5))]


def deterministic() -> tuple[DeterministicPolicy, list[oracles.Pages]]:
    shown = [2, 1, 0, 3, 1]
    return DeterministicPolicy(shown, OFFSETS), both(lambda part: oracles.fixed_page(shown[part]))


def exploring(*epsilon: float) -> tuple[EpsilonGreedyPolicy, list[oracles.Pages]]:
    policy = EpsilonGreedyPolicy(GREEDY, OFFSETS, epsilon=epsilon)
    return policy, both(lambda part: oracles.exploring_pages(GREEDY[part], epsilon))


def plackett_luce(places: int, temperature: float) -> tuple[PlackettLucePolicy, list[oracles.Pages]]:
    policy = PlackettLucePolicy(SCORES, OFFSETS, cutoff=places, temperature=temperature)
    return policy, both(lambda part: oracles.plackett_luce_pages(SCORES[part], places, temperature))


def mixture() -> tuple[MixturePolicy, list[oracles.Pages]]:
    parts, shares = (deterministic(), exploring(0.0, 0.5), plackett_luce(3, 1.0)), [0.5, 0.2, 0.3]
    policy = MixturePolicy([policy for policy, _ in parts], shares)
    return policy, [oracles.mixed_pages([pages[q] for _, pages in parts], shares) for q in range(2)]


POLICIES = {
    "deterministic": deterministic,
    "random last place": lambda: exploring(0.0, 1.0),
    "explores the last place sometimes": lambda: exploring(0.0, 0.0, 0.3),
    "epsilon-greedy": lambda: exploring(0.3, 0.3, 0.3),
    "explores at random": lambda: exploring(1.0, 1.0, 1.0),
    "uneven": lambda: exploring(0.2, 0.0, 0.7, 0.4),
    "longer than the lists": lambda: exploring(0.4, 0.1, 0.4, 0.2, 0.3, 0.5),
    "Plackett-Luce": lambda: plackett_luce(2, 1.0),
    "Plackett-Luce, hot": lambda: plackett_luce(3, 50.0),
    "Plackett-Luce, cold": lambda: plackett_luce(3, 0.1),
    "Plackett-Luce, longer than the lists": lambda: plackett_luce(6, 0.5),
    "mixture": mixture,
}
# All relevant documents have a positive exposure.
# Cheap enough for two sessions of one query.
TWICE = ("deterministic", "random last place", "Plackett-Luce")
COVERING = [name for name in POLICIES if name != "deterministic"]


def flat(rows: list[list[float]]) -> list[float]:
    return [value for row in rows for value in row]


def exposures(pages: list[oracles.Pages]) -> list[float]:
    theta = lambda rank: oracles.examined(CURVE, rank)  # noqa: E731
    return flat([oracles.page_mean(pages[0], 4, theta), oracles.page_mean(pages[1], 1, theta)])


@pytest.mark.oracle(
    "policies.LoggingPolicy.exposure",
    "policies.LoggingPolicy.display_mean",
    "policies.DeterministicPolicy.display_mean",
    "policies.MixturePolicy.display_mean",
    "epsilon_greedy.EpsilonGreedyPolicy.display_mean",
    "plackett_luce.PlackettLucePolicy.display_mean",
)
@pytest.mark.parametrize("name", POLICIES)
def test_exposure_is_the_sum_over_every_page(name: str) -> None:
    policy, pages = POLICIES[name]()
    np.testing.assert_allclose(policy.exposure(USER), exposures(pages), rtol=0, atol=EXACT)
    for value in (oracles.average_rank, oracles.dcg, lambda r: r**3 - 2.0 * r):
        loops = flat([oracles.page_mean(pages[0], 4, value), oracles.page_mean(pages[1], 1, value)])
        found = policy.display_mean(np.vectorize(value, otypes=[float]))
        np.testing.assert_allclose(found, loops, rtol=0, atol=1e-10)
    shown = policy.display_mean(lambda rank: 1.0)
    loops = flat([oracles.page_mean(pages[0], 4, lambda r: 1.0), oracles.page_mean(pages[1], 1, lambda r: 1.0)])
    np.testing.assert_allclose(shown, loops, rtol=0, atol=EXACT)


@pytest.mark.oracle(
    "policies.LoggingPolicy.displays",
    "policies.DeterministicPolicy.displays",
    "policies.MixturePolicy.displays",
    "epsilon_greedy.EpsilonGreedyPolicy.displays",
    "plackett_luce.PlackettLucePolicy.displays",
)
@pytest.mark.parametrize("name", POLICIES)
def test_displays_are_every_page_once(name: str) -> None:
    policy, pages = POLICIES[name]()
    for q in range(2):
        found = [(page, probability) for probability, page in policy.displays(q)]
        loops = {tuple(d + OFFSETS[q] for d in page): p for page, p in oracles.mixed_pages([pages[q]], [1.0]).items()}
        assert len(found) == len(loops)
        for page, probability in found:
            assert abs(probability - loops[page]) <= EXACT


def judged() -> list[tuple[np.ndarray, list[float]]]:
    """λ(rank) of every ranker under every metric: from the package, and from the loops."""
    return [
        (rank_weights(scores, OFFSETS, metric=weight), oracles.rank_weights(scores, OFFSETS, reference))
        for scores in RANKERS.values()
        for weight, reference in WEIGHTS.values()
    ]


def risks(sessions: list[int]) -> list[float]:
    out = []
    for scores in RANKERS.values():
        for _, reference in WEIGHTS.values():
            delta = oracles.additive_metric(scores, RELEVANCE, OFFSETS, reference)
            out.append(math.fsum(n * value for n, value in zip(sessions, delta, strict=True)) / sum(sessions))
    return out


def whole_sessions(pages: list[oracles.Pages], plus: float, minus: float) -> list[list[tuple]]:
    """Every (probability, page, clicks) of both queries, with flat documents."""
    out = []
    for q in range(2):
        rel = RELEVANCE[OFFSETS[q] : OFFSETS[q + 1]]
        found = oracles.every_page_session(pages[q], CURVE, rel, plus, minus)
        out.append([(p, tuple(d + OFFSETS[q] for d in page), clicks) for p, page, clicks in found])
    return out


def by_loops(pages: list[oracles.Pages], weight, sessions: list[int], plus=1.0, minus=0.0) -> list[float]:
    """E of the estimate of every ranker and metric, over every display and click of every session."""
    asked = [q for q, n in enumerate(sessions) for _ in range(n)]
    lams = [lam for _, lam in judged()]
    total = [0.0] * len(lams)
    one = whole_sessions(pages, plus, minus)
    for outcome in product(*(one[q] for q in asked)):
        probability = math.prod(p for p, _, _ in outcome)
        for i, lam in enumerate(lams):
            total[i] += probability * oracles.page_estimate([s[1:] for s in outcome], lam, weight)[0]
    return total


def by_package(estimate, policy, sessions: list[int], user: PositionBasedUser = USER) -> np.ndarray:
    lams = [lam for lam, _ in judged()]
    return expectation(
        lambda log: [estimate(log, lam).value for lam in lams],
        policy,
        user=user,
        relevance=RELEVANCE,
        sessions=sessions,
    )


@pytest.mark.oracle("estimators.policy_aware", "estimators.ips")
@pytest.mark.parametrize("name", POLICIES)
def test_policy_aware_ips_is_unbiased_over_displays_and_clicks(name: str) -> None:
    policy, pages = POLICIES[name]()
    chance = exposures(pages)
    exposure = policy.exposure(USER)

    def aware(log, lam):
        return ips(policy_aware(log, exposure), lam=lam)

    for sessions in ([1, 1], [2, 0]) if name in TWICE else ([1, 1],):
        found = by_package(aware, policy, sessions)
        np.testing.assert_allclose(found, by_loops(pages, oracles.aware(chance), sessions), rtol=0, atol=EXACT)
        # What no page shows is missing, with its rank weight; nothing else is.
        lost = [
            math.fsum(
                sessions[oracles.query_index(OFFSETS)[d]] * lam[d] * RELEVANCE[d] for d in range(5) if chance[d] == 0
            )
            / sum(sessions)
            for _, lam in judged()
        ]
        expected = [risk - missing for risk, missing in zip(risks(sessions), lost, strict=True)]
        np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)
        assert any(lost) == (name not in COVERING)


@pytest.mark.oracle("estimators.ips", "estimators.naive")
@pytest.mark.parametrize("name", POLICIES)
def test_oblivious_ips_counts_every_document_by_its_chance_to_be_shown(name: str) -> None:
    """E[oblivious] = Σ λ rel P(shown where somebody looks), E[naive] = Σ λ rel exposure."""
    policy, pages = POLICIES[name]()
    looked_at = lambda rank: float(oracles.examined(CURVE, rank) > 0)  # noqa: E731
    share = flat([oracles.page_mean(pages[0], 4, looked_at), oracles.page_mean(pages[1], 1, looked_at)])
    for estimate, weight, counted in (
        (ips, oracles.oblivious(CURVE), share),
        (naive, lambda document, place: 1.0, exposures(pages)),
    ):
        found = by_package(estimate, policy, [1, 1])
        loops = by_loops(pages, weight, [1, 1])
        expected = [math.fsum(counted[d] * lam[d] * RELEVANCE[d] for d in range(5)) / 2 for _, lam in judged()]
        np.testing.assert_allclose(found, loops, rtol=0, atol=EXACT)
        np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)


def test_without_randomisation_the_two_estimates_are_one() -> None:
    """The negative control: same value in every log, and both miss what is never shown."""
    policy, _ = deterministic()
    exposure, lam = policy.exposure(USER), judged()[0][0]
    for _, log in enumerate_logs(policy, USER, relevance=RELEVANCE, sessions=[2, 1]):
        assert ips(policy_aware(log, exposure), lam=lam).value == ips(log, lam=lam).value
    found = by_package(ips, policy, [1, 1])
    assert np.abs(found - risks([1, 1])).max() > 0.2


@pytest.mark.oracle("estimators.clipped", "estimators.self_normalised")
@pytest.mark.parametrize("name", ["random last place", "epsilon-greedy", "Plackett-Luce", "mixture"])
def test_clipped_and_self_normalised_policy_aware_estimates(name: str) -> None:
    policy, pages = POLICIES[name]()
    chance, exposure, cap = exposures(pages), policy.exposure(USER), 2.5
    found = by_package(lambda log, lam: clipped(policy_aware(log, exposure), lam=lam, cap=cap), policy, [1, 1])
    loops = by_loops(pages, lambda document, place: min(1 / chance[document], cap), [1, 1])
    expected = [
        math.fsum(min(1.0, cap * chance[d]) * lam[d] * RELEVANCE[d] for d in range(5)) / 2 for _, lam in judged()
    ]
    np.testing.assert_allclose(found, loops, rtol=0, atol=EXACT)
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)

    lam, reference = judged()[0]
    package = expectation(
        lambda log: [self_normalised(policy_aware(log, exposure), lam=lam).value, 1.0] if log.n_clicks else [0.0, 0.0],
        policy,
        user=USER,
        relevance=RELEVANCE,
        sessions=[1, 1],
    )
    total = [0.0, 0.0]
    for outcome in product(*whole_sessions(pages, 1.0, 0.0)):
        per_session, weights = oracles.page_estimate([s[1:] for s in outcome], reference, oracles.aware(chance))
        if weights > 0:
            probability = math.prod(p for p, _, _ in outcome)
            total[0] += probability * per_session * 2 / weights
            total[1] += probability
    np.testing.assert_allclose(package, total, rtol=0, atol=EXACT)


@pytest.mark.parametrize("name", COVERING)
def test_noise_is_affine_again_when_every_document_can_be_shown(name: str) -> None:
    """E[aware] = (ε₊ − ε₋) Δ + ε₋ Σ_d λ(rank(d)), although each page is cut off."""
    policy, pages = POLICIES[name]()
    user, chance = PositionBasedUser(CURVE, epsilon_plus=0.9, epsilon_minus=0.2), exposures(pages)
    assert min(chance) > 0
    exposure = policy.exposure(user)
    found = by_package(lambda log, lam: ips(policy_aware(log, exposure), lam=lam), policy, [1, 1], user)
    np.testing.assert_allclose(found, by_loops(pages, oracles.aware(chance), [1, 1], 0.9, 0.2), rtol=0, atol=EXACT)
    expected = [0.7 * risk + 0.2 * math.fsum(lam) / 2 for risk, (_, lam) in zip(risks([1, 1]), judged(), strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT)


@pytest.mark.oracle("exact.enumerate_logs")
@pytest.mark.parametrize(
    ("name", "sessions"),
    [("random last place", [2, 1]), ("Plackett-Luce", [2, 0]), ("uneven", [1, 1]), ("mixture", [1, 1])],
)
def test_enumerated_logs_count_displays_and_clicks(name: str, sessions: list[int]) -> None:
    policy, pages = POLICIES[name]()
    user = PositionBasedUser(CURVE, epsilon_plus=0.8, epsilon_minus=0.1)
    package: Counter = Counter()
    for probability, log in enumerate_logs(policy, user, relevance=RELEVANCE, sessions=sessions):
        columns = (log.document, log.rank, log.impressions, log.clicks)
        package[tuple(zip(*(column.tolist() for column in columns), strict=True))] += probability
        np.testing.assert_array_equal(log.propensity, [oracles.examined(CURVE, r) for r in log.rank.tolist()])
    loops: Counter = Counter()
    one = whole_sessions(pages, 0.8, 0.1)
    for outcome in product(*(one[q] for q, n in enumerate(sessions) for _ in range(n))):
        table = oracles.impression_table([page for _, page, _ in outcome])
        clicks: Counter = Counter()
        for _, page, clicked in outcome:
            clicks.update({(d, r): c for r, (d, c) in enumerate(zip(page, clicked, strict=True), start=1)})
        key = tuple((d, r, n, clicks[d, r]) for d, r, n in table)
        loops[key] += math.prod(p for p, _, _ in outcome)
    assert set(package) == set(loops)
    assert max(abs(package[key] - loops[key]) for key in loops) <= EXACT


def check_frequencies(seen: Counter, law: dict, n: int) -> None:
    """Every frequency within 5 standard deviations; what has no probability is never seen.

    What is expected less than 5 times is counted together: there the normal law is no guide, so that 5 more are let be.
    """
    assert set(seen) <= set(law)
    often = {key: p for key, p in law.items() if n * p >= 5}
    for key, p in often.items():
        assert abs(seen[key] - n * p) <= 5 * math.sqrt(n * p * (1 - p)) + 1e-9, key
    rare = math.fsum(p for key, p in law.items() if key not in often)
    assert abs(n - sum(seen[key] for key in often) - n * rare) <= 5 * math.sqrt(n * rare) + 5


@pytest.mark.oracle(
    "policies.LoggingPolicy.sample",
    "policies.DeterministicPolicy.sample",
    "policies.MixturePolicy.sample",
    "epsilon_greedy.EpsilonGreedyPolicy.sample",
    "plackett_luce.PlackettLucePolicy.sample",
)
@pytest.mark.parametrize("name", POLICIES)
def test_sampled_pages_have_the_law_of_the_loops(name: str) -> None:
    policy, pages = POLICIES[name]()
    n = 4_000
    drawn = policy.sample(np.tile([1, 0], n), np.random.default_rng(1))
    assert drawn.shape == (2 * n, policy.cutoff)
    for q, rows in ((1, drawn[::2]), (0, drawn[1::2])):
        found = Counter(tuple(d - OFFSETS[q] for d in row if d >= 0) for row in rows.tolist())
        assert found.total() == n
        check_frequencies(found, oracles.mixed_pages([pages[q]], [1.0]), n)


@pytest.mark.oracle(
    "policies.LoggingPolicy.impressions",
    "policies.DeterministicPolicy.impressions",
    "policies.MixturePolicy.impressions",
    "epsilon_greedy.EpsilonGreedyPolicy.impressions",
)
@pytest.mark.parametrize("name", POLICIES)
def test_counted_impressions_have_the_joint_law_of_two_sessions(name: str) -> None:
    """Every table that two sessions can add up to, not only its means: 4,000 queries with two sessions each."""
    make = POLICIES[name]
    policy, pages = make()
    n, length = 4_000, 4
    many = repeated(policy, n)
    document, rank, count = many.impressions(np.full(n, 2), np.random.default_rng(2))
    tables: dict[int, list] = {q: [] for q in range(n)}
    for d, r, c in zip(document.tolist(), rank.tolist(), count.tolist(), strict=True):
        tables[d // length].append((d % length, r, c))
    law: dict = {}
    for (one, p), (two, q) in product(oracles.mixed_pages([pages[0]], [1.0]).items(), repeat=2):
        key = oracles.impression_table([one, two])
        law[key] = law.get(key, 0.0) + p * q
    assert abs(math.fsum(law.values()) - 1) <= EXACT
    check_frequencies(Counter(tuple(sorted(table)) for table in tables.values()), law, n)


def repeated(policy, n: int):
    """The policy of the first query, n times over."""
    cuts = np.arange(n + 1) * 4
    if isinstance(policy, MixturePolicy):
        return MixturePolicy([repeated(part, n) for part in policy.policies], policy.shares)
    if isinstance(policy, EpsilonGreedyPolicy):
        return EpsilonGreedyPolicy(np.tile(policy.greedy_rank[:4], n), cuts, epsilon=policy.epsilon)
    if isinstance(policy, PlackettLucePolicy):
        return PlackettLucePolicy(
            np.tile(policy.scores[:4], n), cuts, cutoff=policy.cutoff, temperature=policy.temperature
        )
    return DeterministicPolicy(np.tile(policy.displayed_rank[:4], n), cuts)


@pytest.mark.oracle("plackett_luce.PlackettLucePolicy.estimate_exposure")
@pytest.mark.parametrize("name", ["Plackett-Luce", "Plackett-Luce, hot", "Plackett-Luce, longer than the lists"])
def test_estimated_exposure_lies_within_four_standard_errors(name: str) -> None:
    policy, pages = POLICIES[name]()
    value, error = policy.estimate_exposure(USER, 2_000, rng=np.random.default_rng(3))
    loops = exposures(pages)
    assert (np.abs(value - loops) <= 4 * error + EXACT).all()
    for q, documents in enumerate(oracles.lists(OFFSETS)):
        mass = math.fsum(oracles.examined(CURVE, r) for r in range(1, min(policy.cutoff, len(documents)) + 1))
        assert abs(math.fsum(value[documents]) - mass) <= EXACT
        assert q == 1 or error[0] > 1e-4
    # The standard error is that of the mean of the pages: its square is the mean squared distance over many runs.
    if policy.cutoff == 2:
        runs = [policy.estimate_exposure(USER, 300, rng=np.random.default_rng(seed)) for seed in range(200)]
        spread = np.mean([(v - loops) ** 2 for v, _ in runs], axis=0)
        promised = np.mean([e**2 for _, e in runs], axis=0)
        np.testing.assert_allclose(spread[:4], promised[:4], rtol=0.35)


def test_pages_that_come_one_at_a_time() -> None:
    """The spread within a block of one page is 0: all of it comes from joining the blocks."""
    from cfltr_core.clicks import plackett_luce

    policy, pages = POLICIES["Plackett-Luce"]()
    cells = plackett_luce.CELLS
    try:
        plackett_luce.CELLS = 1
        value, error = policy.estimate_exposure(USER, 400, rng=np.random.default_rng(5))
    finally:
        plackett_luce.CELLS = cells
    loops = exposures(pages)
    assert (np.abs(value - loops) <= 4 * error + EXACT).all()
    _, whole = policy.estimate_exposure(USER, 400, rng=np.random.default_rng(6))
    np.testing.assert_allclose(error[:4], whole[:4], rtol=0.25)


@pytest.mark.oracle("plackett_luce.PlackettLucePolicy", "plackett_luce.PlackettLucePolicy.sample")
def test_documents_of_hardly_any_weight_keep_their_shares_of_what_remains() -> None:
    """The first two take the first two places; next to them the others have weights of 1e-174 and less."""
    scores, n = [-400.0, 0.0, -401.0, -400.5, 0.7], 4_000
    policy = PlackettLucePolicy([3.0, *scores], [0, 1, 6], cutoff=4)
    drawn = policy.sample(np.ones(n, dtype=int), np.random.default_rng(7)) - 1
    assert (np.sort(drawn[:, :2]) == [1, 4]).all()
    check_frequencies(Counter(map(tuple, drawn.tolist())), oracles.plackett_luce_pages(scores, 4, 1.0), n)


@pytest.mark.parametrize(("n", "places"), [(60, 20), (100, 50)])
def test_long_pages_of_equal_scores_give_every_place_to_all_alike(n: int, places: int) -> None:
    """The later the place, the more suddenly it is filled: P(rank = r) is 1 / n at each of them."""
    policy = PlackettLucePolicy(np.zeros(n), [0, n], cutoff=places)
    for place in (1, 2, places // 2, places - 1, places):
        law = policy.display_mean(lambda rank, place=place: (rank == place).astype(float))
        np.testing.assert_allclose(law, 1 / n, rtol=0, atol=1e-14)


@pytest.mark.oracle("users.PositionBasedUser.propensity")
def test_what_is_not_shown_is_not_examined() -> None:
    rank = [0, 1, 3, 0, 9]
    assert USER.propensity(rank).tolist() == [oracles.examined(CURVE, r) for r in rank]
    assert PositionBasedUser(power_examination(0.0)).propensity(rank).tolist() == [0.0, 1.0, 1.0, 0.0, 1.0]


@pytest.mark.oracle("plackett_luce.PlackettLucePolicy.display_mean")
def test_exposure_under_plackett_luce_on_long_lists() -> None:
    """Where no enumeration reaches: the mass of the page, the first place alone, and equal scores."""
    user = PositionBasedUser(power_examination(1.0))
    for n, temperature in ((100, 1.0), (1_000, 1.0), (1_000, 0.3), (50, 0.05)):
        scores = np.random.default_rng(n).normal(size=n)
        policy = PlackettLucePolicy(scores, [0, n], cutoff=5, temperature=temperature)
        mass = math.fsum(oracles.power(1.0, 0.0, r) for r in range(1, 6))
        assert abs(policy.exposure(user).sum() - mass) <= EXACT
        weight = np.exp((scores - scores.max()) / temperature)
        first = policy.display_mean(lambda rank: (rank == 1).astype(float))
        np.testing.assert_allclose(first, weight / weight.sum(), rtol=1e-11, atol=0)
    equal = PlackettLucePolicy(np.zeros(700), [0, 700], cutoff=5).exposure(user)
    np.testing.assert_allclose(equal, mass / 700, rtol=1e-12, atol=0)
