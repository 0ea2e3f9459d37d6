"""Policies, and the estimates of their logs, against loops over every display, examination and click."""

import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from unittest.mock import patch

import numpy as np
import oracles
import pytest

import cfltr_core as cf
from cfltr_book.theory.exact import enumerate_logs, expectation

EXACT = 1e-12

# Two queries, of four documents and of one: the second list is shorter than any page.
OFFSETS = [0, 4, 5]
GREEDY = [2, 1, 4, 3, 1]
SCORES = [0.3, 1.2, -0.7, 0.1, 0.0]
RELEVANCE = [1, 0, 1, 1, 1]
CURVE = [0.9, 0.6, 0.4]
USER = cf.PositionBasedUser(CURVE)
CURVES: dict[str, tuple] = {
    "eta 1": (cf.power_examination(1.0), lambda r: oracles.power(1.0, 0.0, r)),
    "eta 2": (cf.power_examination(2.0), lambda r: oracles.power(2.0, 0.0, r)),
    "no bias": (cf.power_examination(0.0), lambda r: 1.0),
    "shifted": (cf.power_examination(1.0, shift=1.0), lambda r: oracles.power(1.0, 1.0, r)),
    "own": (lambda r: 0.2 + 0.7 * np.exp(-r), lambda r: 0.2 + 0.7 * math.exp(-r)),
    "table": ([0.9, 0.4, 0.7, 0.1], [0.9, 0.4, 0.7, 0.1]),
    "short table": (CURVE, CURVE),
}
RANKERS = {"reversed": [2.0, 1.0, 4.0, 3.0, 1.0], "with ties": [1.0, 1.0, 0.0, 2.0, 0.0]}
WEIGHTS = {
    "average rank": (cf.average_rank(), oracles.average_rank),
    "DCG@2": (cf.dcg(2), oracles.dcg_at(2)),
    "Prec@3": (cf.precision(3), oracles.precision_at(3)),
    "RBP": (cf.rbp(0.8), oracles.rbp(0.8)),
    "own": (cf.RankWeight("own", lambda r: r**2 - 7.0), lambda r: r**2 - 7.0),
}


def both(reference) -> list[oracles.Pages]:
    """Pages of both queries, from a function of the slice of the list."""
    return [reference(slice(0, 4)), reference(slice(4, 5))]


def deterministic(*shown: int) -> tuple[cf.DeterministicPolicy, list[oracles.Pages]]:
    return cf.DeterministicPolicy(shown, OFFSETS), both(lambda part: oracles.fixed_page(shown[part]))


def exploring(*epsilon: float) -> tuple[cf.EpsilonGreedyPolicy, list[oracles.Pages]]:
    policy = cf.EpsilonGreedyPolicy(GREEDY, OFFSETS, epsilon=epsilon)
    return policy, both(lambda part: oracles.exploring_pages(GREEDY[part], epsilon))


def plackett_luce(places: int, temperature: float) -> tuple[cf.PlackettLucePolicy, list[oracles.Pages]]:
    policy = cf.PlackettLucePolicy(SCORES, OFFSETS, cutoff=places, temperature=temperature)
    return policy, both(lambda part: oracles.plackett_luce_pages(SCORES[part], places, temperature))


def mixture() -> tuple[cf.MixturePolicy, list[oracles.Pages]]:
    parts, shares = (deterministic(2, 1, 0, 3, 1), exploring(0.0, 0.5), plackett_luce(3, 1.0)), [0.5, 0.2, 0.3]
    policy = cf.MixturePolicy([policy for policy, _ in parts], shares)
    return policy, [oracles.mixed_pages([pages[q] for _, pages in parts], shares) for q in range(2)]


POLICIES = {
    "deterministic": lambda: deterministic(2, 1, 0, 3, 1),
    "all are shown": lambda: deterministic(*GREEDY),
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


def by_rank(pages: list[oracles.Pages], value: oracles.Curve) -> list[float]:
    """E[value(rank)] of each document, 0 where it is not shown."""
    return [*oracles.page_mean(pages[0], 4, value), *oracles.page_mean(pages[1], 1, value)]


def exposures(pages: list[oracles.Pages], curve: oracles.Curve = CURVE) -> list[float]:
    return by_rank(pages, lambda rank: oracles.examined(curve, rank))


@pytest.mark.oracle("policies.LoggingPolicy.exposure", "policies.LoggingPolicy.display_mean",
                    "policies.DeterministicPolicy.display_mean", "policies.MixturePolicy.display_mean",
                    "epsilon_greedy.EpsilonGreedyPolicy.display_mean",
                    "plackett_luce.PlackettLucePolicy.display_mean")  # fmt: skip
@pytest.mark.parametrize("name", POLICIES)
def test_exposure_is_the_sum_over_every_page(name: str) -> None:
    policy, pages = POLICIES[name]()
    np.testing.assert_allclose(policy.exposure(USER), exposures(pages), rtol=0, atol=EXACT)
    for value in (oracles.average_rank, oracles.dcg, lambda r: r**3 - 2.0 * r):
        loops = by_rank(pages, value)
        found = policy.display_mean(np.vectorize(value, otypes=[float]))
        np.testing.assert_allclose(found, loops, rtol=0, atol=1e-10)
    shown = policy.display_mean(lambda rank: 1.0)
    np.testing.assert_allclose(shown, by_rank(pages, lambda r: 1.0), rtol=0, atol=EXACT)


@pytest.mark.oracle("policies.LoggingPolicy.displays", "policies.DeterministicPolicy.displays",
                    "policies.MixturePolicy.displays", "epsilon_greedy.EpsilonGreedyPolicy.displays",
                    "plackett_luce.PlackettLucePolicy.displays")  # fmt: skip
@pytest.mark.parametrize("name", POLICIES)
def test_displays_are_every_page_once(name: str) -> None:
    policy, pages = POLICIES[name]()
    for q in range(2):
        found = [(page, probability) for probability, page in policy.displays(q)]
        loops = {tuple(d + OFFSETS[q] for d in page): p for page, p in oracles.mixed_pages([pages[q]], [1.0]).items()}
        assert len(found) == len(loops)
        for page, probability in found:
            assert abs(probability - loops[page]) <= EXACT


JUDGED = [
    (cf.rank_weights(scores, OFFSETS, metric=weight), oracles.rank_weights(scores, OFFSETS, reference))
    for scores, names in zip(RANKERS.values(), (("average rank", "DCG@2", "own"), ("Prec@3", "RBP")), strict=True)
    for weight, reference in (WEIGHTS[name] for name in names)
]
NOISY = (0.9, 0.2)
# A policy, the examination, (ε₊, ε₋) and the sessions of each query.
WORLDS = [
    ("all are shown", "table", NOISY, [1, 1]),
    *((name, "short table", (1.0, 0.0), [2, 0]) for name in ("deterministic", "random last place", "Plackett-Luce")),
    *((name, "short table", (1.0, 0.0), [1, 1]) for name in POLICIES),
    *((name, "short table", NOISY, [1, 1]) for name in ("random last place", "uneven", "Plackett-Luce", "mixture")),
    *(("all are shown", curve, (1.0, 0.0), [1, 1]) for curve in CURVES),
    *(("all are shown", curve, (0.7, 0.0), [1, 1]) for curve in ("eta 1", "table")),
    ("all are shown", "eta 1", NOISY, [1, 1]),
    ("all are shown", "table", (1.0, 0.0), [2, 1]),
]


def every_log(
    pages: list[oracles.Pages], curve: oracles.Curve, noise: tuple[float, float], sessions: list[int]
) -> list[tuple[float, list[tuple]]]:
    """Every outcome of some sessions with its probability: a page and its clicks for each, with flat documents."""
    one = [
        [(p, tuple(d + low for d in page), clicks)
         for p, page, clicks in oracles.every_page_session(pages[q], curve, RELEVANCE[low:high], *noise)]
        for q, (low, high) in enumerate(pairwise(OFFSETS))
    ]  # fmt: skip
    outcomes = product(*(one[q] for q, n in enumerate(sessions) for _ in range(n)))
    return [(math.prod(p for p, _, _ in outcome), [s[1:] for s in outcome]) for outcome in outcomes]


@pytest.mark.oracle(
    "estimators.ips", "estimators.naive", "estimators.clipped", "estimators.policy_aware",
    "estimators.self_normalised", "exact.expectation",
)  # fmt: skip
@pytest.mark.parametrize(("name", "curve", "noise", "sessions"), WORLDS)
def test_expectations(name: str, curve: str, noise: tuple[float, float], sessions: list[int]) -> None:
    """E of each estimate over all logs: that of loops, and Σ_d λ_d P(click on d) · weight; IPS is unbiased.

    A log without clicks has no self-normalised estimate (NaN): compared are E[estimate; a click] and P(a click).
    """
    (policy, pages), (given, literal) = POLICIES[name](), CURVES[curve]
    user = cf.PositionBasedUser(given, epsilon_plus=noise[0], epsilon_minus=noise[1])
    exposure, chance, n = policy.exposure(user), exposures(pages, literal), sum(sessions)
    # Each estimate, and the weight that it gives a click.
    estimates: dict[str, tuple[Callable, Callable[[int, int], float]]] = {
        "naive": (cf.naive, lambda d, place: 1.0),
        "ips": (cf.ips, oracles.oblivious(literal)),
        "clipped": (partial(cf.clipped, cap=1.5), lambda d, place: min(1 / oracles.examined(literal, place), 1.5)),
        "aware": (lambda log, lam: cf.ips(cf.policy_aware(log, exposure), lam), oracles.aware(chance)),
        "aware, clipped": (
            lambda log, lam: cf.clipped(cf.policy_aware(log, exposure), lam, cap=2.5),
            lambda d, place: min(1 / chance[d], 2.5),
        ),
    }

    def statistic(log: cf.ClickLog) -> list[list[float]]:
        found = [[estimate(log, lam).value for lam, _ in JUDGED] for estimate, _ in estimates.values()]
        ratios = [cf.self_normalised(log, lam).value for lam, _ in JUDGED]
        assert all(math.isnan(value) == (log.n_clicks == 0) for value in ratios)
        return [*found, np.nan_to_num(ratios), [float(log.n_clicks > 0)] * len(JUDGED)]

    package = expectation(statistic, policy, user=user, relevance=RELEVANCE, sessions=sessions)
    loops = np.zeros((len(estimates) + 2, len(JUDGED)))
    for probability, outcome in every_log(pages, literal, noise, sessions):
        for j, (_, lam) in enumerate(JUDGED):
            sums = {each: oracles.page_estimate(outcome, lam, weight) for each, (_, weight) in estimates.items()}
            total, below = sums["ips"]
            values = [*(value for value, _ in sums.values()), total * n / below if below else 0.0, float(below > 0)]
            loops[:, j] += np.multiply(probability, values)
    np.testing.assert_allclose(package, loops, rtol=0, atol=EXACT)
    attraction = [noise[0] if relevant else noise[1] for relevant in RELEVANCE]
    asked = [sessions[q] / n for q in oracles.query_index(OFFSETS)]
    for found, (each, (_, weight)) in zip(package, estimates.items(), strict=False):

        def counted(d: int, rank: int, weight: Callable[[int, int], float] = weight) -> float:
            theta = oracles.examined(literal, rank)
            return theta * weight(d, rank) if theta * chance[d] else 0.0

        mean = [by_rank(pages, partial(counted, d))[d] for d in range(5)]
        if each == "aware" or (each == "ips" and name == "all are shown" and curve != "short table"):
            assert mean == pytest.approx([float(p > 0) for p in chance], abs=EXACT)
        for value, (_, lam) in zip(found, JUDGED, strict=True):
            expected = math.fsum(map(math.prod, zip(asked, lam, mean, attraction, strict=True)))
            assert value == pytest.approx(expected, abs=EXACT)


@pytest.mark.oracle("exact.enumerate_logs")
@pytest.mark.parametrize(
    ("name", "sessions"),
    [
        ("random last place", [2, 1]),
        ("Plackett-Luce", [2, 0]),
        ("uneven", [1, 1]),
        ("mixture", [1, 1]),
        ("all are shown", [2, 1]),
    ],
)
def test_enumerated_logs_count_displays_and_clicks(name: str, sessions: list[int]) -> None:
    policy, pages = POLICIES[name]()
    user = cf.PositionBasedUser(CURVE, epsilon_plus=0.8, epsilon_minus=0.1)
    package: Counter = Counter()
    for probability, log in enumerate_logs(policy, user, relevance=RELEVANCE, sessions=sessions):
        columns = (log.document, log.rank, log.impressions, log.clicks)
        package[tuple(zip(*(column.tolist() for column in columns), strict=True))] += probability
        np.testing.assert_array_equal(log.propensity, [oracles.examined(CURVE, r) for r in log.rank.tolist()])
    loops: Counter = Counter()
    for probability, outcome in every_log(pages, CURVE, (0.8, 0.1), sessions):
        table = oracles.impression_table([page for page, _ in outcome])
        clicks: Counter = Counter()
        for page, clicked in outcome:
            clicks.update({(d, r): c for r, (d, c) in enumerate(zip(page, clicked, strict=True), start=1)})
        loops[tuple((d, r, n, clicks[d, r]) for d, r, n in table)] += probability
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


@pytest.mark.oracle("policies.LoggingPolicy.sample", "policies.DeterministicPolicy.sample",
                    "policies.MixturePolicy.sample", "epsilon_greedy.EpsilonGreedyPolicy.sample",
                    "plackett_luce.PlackettLucePolicy.sample")  # fmt: skip
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


@pytest.mark.oracle("policies.LoggingPolicy.impressions", "policies.DeterministicPolicy.impressions",
                    "policies.MixturePolicy.impressions",
                    "epsilon_greedy.EpsilonGreedyPolicy.impressions")  # fmt: skip
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
    if isinstance(policy, cf.MixturePolicy):
        return cf.MixturePolicy([repeated(part, n) for part in policy.policies], policy.shares)
    if isinstance(policy, cf.EpsilonGreedyPolicy):
        return cf.EpsilonGreedyPolicy(np.tile(policy.greedy_rank[:4], n), cuts, epsilon=policy.epsilon)
    if isinstance(policy, cf.PlackettLucePolicy):
        return cf.PlackettLucePolicy(
            np.tile(policy.scores[:4], n), cuts, cutoff=policy.cutoff, temperature=policy.temperature
        )
    return cf.DeterministicPolicy(np.tile(policy.displayed_rank[:4], n), cuts)


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


def test_a_document_on_no_page_has_the_error_that_is_expected() -> None:
    """All pages show A and B: of C's variance, w³ Σ_r (Σ_{s > r} θ_s / W_s)² / W_r, nothing is seen."""
    w, theta = math.exp(-25), 0.5
    policy = cf.PlackettLucePolicy([25, 0, -25], [0, 3], cutoff=2)
    _, error = policy.estimate_exposure(cf.PositionBasedUser([1, theta]), 100, rng=np.random.default_rng(0))
    assert error[2] == pytest.approx(math.sqrt(w**3 * (theta / (1 + w)) ** 2 / (1 / w + 1 + w) / 100), rel=1e-6, abs=0)


def test_pages_that_come_one_at_a_time() -> None:
    """The spread within a block of one page is 0: all of it comes from joining the blocks."""
    policy, pages = POLICIES["Plackett-Luce"]()
    with patch("cfltr_core.clicks.plackett_luce.CELLS", 1):
        value, error = policy.estimate_exposure(USER, 400, rng=np.random.default_rng(5))
    loops = exposures(pages)
    assert (np.abs(value - loops) <= 4 * error + EXACT).all()
    _, whole = policy.estimate_exposure(USER, 400, rng=np.random.default_rng(6))
    np.testing.assert_allclose(error[:4], whole[:4], rtol=0.25)


@pytest.mark.oracle("plackett_luce.PlackettLucePolicy", "plackett_luce.PlackettLucePolicy.sample")
def test_documents_of_hardly_any_weight_keep_their_shares_of_what_remains() -> None:
    """The first two take the first two places; next to them the others have weights of 1e-174 and less."""
    scores, n = [-400.0, 0.0, -401.0, -400.5, 0.7], 4_000
    policy = cf.PlackettLucePolicy([3.0, *scores], [0, 1, 6], cutoff=4)
    drawn = policy.sample(np.ones(n, dtype=int), np.random.default_rng(7)) - 1
    assert (np.sort(drawn[:, :2]) == [1, 4]).all()
    check_frequencies(Counter(map(tuple, drawn.tolist())), oracles.plackett_luce_pages(scores, 4, 1.0), n)


@pytest.mark.parametrize(("n", "places"), [(60, 20), (100, 50)])
def test_long_pages_of_equal_scores_give_every_place_to_all_alike(n: int, places: int) -> None:
    """The later the place, the more suddenly it is filled: P(rank = r) is 1 / n at each of them."""
    policy = cf.PlackettLucePolicy(np.zeros(n), [0, n], cutoff=places)
    for place in (1, 2, places // 2, places - 1, places):
        law = policy.display_mean(lambda rank, place=place: (rank == place).astype(float))
        np.testing.assert_allclose(law, 1 / n, rtol=0, atol=1e-14)


@pytest.mark.oracle("users.PositionBasedUser.propensity")
def test_what_is_not_shown_is_not_examined() -> None:
    rank = [0, 1, 3, 0, 9]
    assert USER.propensity(rank).tolist() == [oracles.examined(CURVE, r) for r in rank]
    assert cf.PositionBasedUser(cf.power_examination(0.0)).propensity(rank).tolist() == [0.0, 1.0, 1.0, 0.0, 1.0]


@pytest.mark.oracle("plackett_luce.PlackettLucePolicy.display_mean")
def test_exposure_under_plackett_luce_on_long_lists() -> None:
    """Where no enumeration reaches: the mass of the page, the first place alone, and equal scores."""
    user = cf.PositionBasedUser(cf.power_examination(1.0))
    for n, temperature in ((100, 1.0), (1_000, 1.0), (1_000, 0.3), (50, 0.05)):
        scores = np.random.default_rng(n).normal(size=n)
        policy = cf.PlackettLucePolicy(scores, [0, n], cutoff=5, temperature=temperature)
        mass = math.fsum(oracles.power(1.0, 0.0, r) for r in range(1, 6))
        assert abs(policy.exposure(user).sum() - mass) <= EXACT
        weight = np.exp((scores - scores.max()) / temperature)
        first = policy.display_mean(lambda rank: (rank == 1).astype(float))
        np.testing.assert_allclose(first, weight / weight.sum(), rtol=1e-11, atol=0)
    equal = cf.PlackettLucePolicy(np.zeros(700), [0, 700], cutoff=5).exposure(user)
    np.testing.assert_allclose(equal, mass / 700, rtol=1e-12, atol=0)
