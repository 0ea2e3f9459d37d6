"""Where propensities come from: every display, examination and click enumerated; what holds, and what must fail."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import oracles
import pytest
from strata_logs import of_rows

import cfltr_core as cf
from cfltr_book.theory.exact import enumerate_logs
from cfltr_core.clicks.policies import LoggingPolicy
from cfltr_core.propensity.conditional_poisson import by_rank

EXACT = 1e-12
OFFSETS = [0, 3]
CURVE = [0.9, 0.5, 0.3]
PLUS, MINUS = 0.8, 0.2
USER = cf.PositionBasedUser(CURVE, epsilon_plus=PLUS, epsilon_minus=MINUS)
RELEVANCE = [1, 0, 1]
BASE = cf.DeterministicPolicy([1, 2, 3], OFFSETS)
AB = cf.MixturePolicy([BASE, cf.DeterministicPolicy([3, 1, 2], OFFSETS)], [0.7, 0.3])
PAGE = (0, 1, 2)
POLICIES: dict[str, tuple[LoggingPolicy, oracles.Pages]] = {
    "two rankers": (AB, {(0, 1, 2): 0.7, (1, 2, 0): 0.3}),
    "shuffled": (cf.RandTopPolicy(BASE, n=3), oracles.shuffled_pages(PAGE, 3)),
    "top two shuffled": (cf.RandTopPolicy(BASE, n=2), oracles.shuffled_pages(PAGE, 2)),
    "landmark": (cf.SwapPolicy.landmark(BASE, 2), oracles.swapped_pages(PAGE, [(2, 1), (2, 3)], 0.5)),
    "adjacent": (cf.SwapPolicy.adjacent(BASE, swap=0.3), oracles.swapped_pages(PAGE, [(1, 2), (2, 3)], 0.3)),
}
U = {k + 1: float(np.log(theta)) for k, theta in enumerate(CURVE)}


def session_strata(sessions: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[oracles.Stratum]:
    """Impressions and clicks of each document at each place."""
    out: dict[int, oracles.Stratum] = {}
    for page, clicks in sessions:
        for place, (document, click) in enumerate(zip(page, clicks, strict=True), start=1):
            n, c = out.setdefault(document, {}).get(place, (0, 0))
            out[document][place] = (n + 1, c + click)
    return list(out.values())


def mean_score(one: list[tuple]) -> tuple[np.ndarray, float]:
    """The mean of the score at the truth over two sessions of this law, and the mean of its size."""
    mean, size = np.zeros(3), 0.0
    for first, second in product(one, one):
        gradient = oracles.conditional_gradient(session_strata([first[1:], second[1:]]), U, [1, 2, 3])
        mean += first[0] * second[0] * np.array(gradient)
        size += first[0] * second[0] * float(np.abs(gradient).sum())
    return mean, size


@pytest.mark.parametrize("name", POLICIES)
def test_the_score_of_the_conditional_likelihood_has_mean_zero_at_the_truth(name: str) -> None:
    """E[Σ_s (c_sk − C_s π_sk)] = 0, though clicks are Bernoulli and the likelihood is for Poisson counts."""
    policy, pages = POLICIES[name]
    one = oracles.every_page_session(pages, CURVE, RELEVANCE, PLUS, MINUS)
    mean, size = mean_score(one)
    np.testing.assert_allclose(mean, 0, atol=EXACT)
    assert size > 0.01, "no mean of zeros"
    package = np.zeros(3)
    for probability, log in enumerate_logs(policy, USER, relevance=RELEVANCE, sessions=[2]):
        terms = by_rank(cf.display_counts(log), [1, 2, 3])
        if len(terms.column):
            package += probability * terms.likelihood(np.array(list(U.values())))[1]
    np.testing.assert_allclose(package, 0, atol=EXACT)


def test_but_not_if_the_next_page_answers_the_click() -> None:
    """A document that was clicked moves up for the second session: the displays know of the clicks."""
    first_sessions = oracles.every_page_session({PAGE: 1.0}, CURVE, RELEVANCE, PLUS, MINUS)
    mean = np.zeros(3)
    for p, page, clicks in first_sessions:
        up = tuple(sorted(page, key=lambda d: (-clicks[page.index(d)], page.index(d))))
        for q, *second in oracles.every_page_session({up: 1.0}, CURVE, RELEVANCE, PLUS, MINUS):
            strata = session_strata([(page, clicks), tuple(second)])  # type: ignore[list-item]
            mean += p * q * np.array(oracles.conditional_gradient(strata, U, [1, 2, 3]))
    assert np.abs(mean).max() > 0.01


def test_nor_if_relevance_varies_with_the_page_inside_the_stratum() -> None:
    """Half of the users want A and see it on top, the others want C: a page for each kind of user."""
    kinds = [((0, 1, 2), [1, 0, 0]), ((2, 1, 0), [0, 0, 1])]
    one = [
        (p / 2, page, clicks)
        for shown, wanted in kinds
        for p, page, clicks in oracles.every_page_session({shown: 1.0}, CURVE, wanted, PLUS, MINUS)
    ]
    mean, _ = mean_score(one)
    assert np.abs(mean).max() > 0.01


def test_nor_if_the_log_was_cut_down_to_pages_with_a_click() -> None:
    """What is left of a page without a click is nothing: at the deep ranks the clicks that remain are too many."""
    _, pages = POLICIES["two rankers"]
    one = [case for case in oracles.every_page_session(pages, CURVE, RELEVANCE, PLUS, MINUS) if sum(case[2]) > 0]
    mean, _ = mean_score(one)
    # Rounding is 1e-12; the top rank has too few clicks, the deeper ones too many.
    assert mean[0] < -1e-3
    assert mean[1:].min() > 1e-3


def test_drift_needs_strata_by_period() -> None:
    """Relevance flips from one period to the next, and the ranker follows: clicks in proportion to their means."""
    rows = []
    for period, relevant in ((0, 0), (1, 1)):
        for document in (0, 1):
            for rank, n in ((1, 900), (2, 100)) if document == relevant else ((1, 100), (2, 900)):
                attraction = PLUS if document == relevant else MINUS
                rows.append((document, period, rank, n, round(n * CURVE[rank - 1] * attraction)))
    with_period = of_rows((0, period, d, *rest) for d, period, *rest in rows)
    assert cf.conditional_poisson(with_period).curve[1] == pytest.approx(CURVE[1] / CURVE[0], rel=EXACT)
    summed = {key: np.zeros(2, dtype=np.int64) for key in product((0, 1), (1, 2))}
    for d, _, k, *cell in rows:
        summed[d, k] += cell
    without = of_rows((0, *key, *cell) for key, cell in summed.items())
    assert cf.conditional_poisson(without).curve[1] < 0.6 * CURVE[1] / CURVE[0]


def expected_counts(policy: LoggingPolicy, relevance: list[int], sessions: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Mean impressions and clicks at each rank, over all logs."""
    shown, clicks = np.zeros(3), np.zeros(3)
    for p, log in enumerate_logs(policy, USER, relevance=relevance, sessions=sessions):
        np.add.at(shown, log.rank - 1, p * log.impressions)
        np.add.at(clicks, log.rank - 1, p * log.clicks)
    return shown, clicks


def test_click_rates_of_shuffled_pages_are_proportional_to_examination() -> None:
    shown, clicks = expected_counts(POLICIES["shuffled"][0], RELEVANCE, [1])
    np.testing.assert_allclose(clicks / shown, np.array(CURVE) * (PLUS + MINUS + PLUS) / 3, atol=EXACT)
    one = oracles.every_page_session(POLICIES["shuffled"][1], CURVE, RELEVANCE, PLUS, MINUS)
    by_loop = [sum(p * clicked[k] for p, _, clicked in one) for k in range(3)]
    np.testing.assert_allclose(clicks, by_loop, atol=EXACT)


@pytest.mark.parametrize("name", ["two rankers", "top two shuffled", "landmark", "adjacent"])
def test_click_rates_of_other_pages_are_not(name: str) -> None:
    """Unequal marginals; beyond place n nothing is learnt."""
    shown, clicks = expected_counts(POLICIES[name][0], RELEVANCE, [1])
    ratio = (clicks / shown) / (clicks / shown)[0] / (np.array(CURVE) / CURVE[0])
    assert np.abs(ratio - 1).max() > 0.05
    if name == "top two shuffled":
        assert ratio[1] == pytest.approx(1, abs=EXACT)


def test_pages_shorter_than_n_mix_queries_and_whole_pages_do_not() -> None:
    offsets = [0, 3, 5]
    policy = cf.RandTopPolicy(cf.DeterministicPolicy([1, 2, 3, 1, 2], offsets), n=3)
    shown, clicks = expected_counts(policy, [0, 0, 0, 1, 1], [1, 1])
    rate = clicks / shown
    assert abs(rate[2] / rate[0] * CURVE[0] / CURVE[2] - 1) > 0.1
    assert rate[1] / rate[0] == pytest.approx(CURVE[1] / CURVE[0], abs=EXACT)
    # Of a log in proportion to the means: the same, and the remedy, exactly.
    law = oracles.shuffled_pages((0, 1, 2), 3), oracles.shuffled_pages((0, 1), 2)
    rows = [
        (q, 3 * q + d, k, 600, round(600 * CURVE[k - 1] * (PLUS if q else MINUS)))
        for q, pages in enumerate(law) for d in range(3 - q) for k in range(1, 4 - q)
        if sum(p for page, p in pages.items() if page[k - 1] == d) > 0
    ]  # fmt: skip
    counts = of_rows(rows)
    assert abs(cf.click_rates(counts).curve[2] - CURVE[2] / CURVE[0]) > 0.05
    np.testing.assert_allclose(cf.click_rates(counts, places=3).curve, np.array(CURVE) / CURVE[0], rtol=EXACT)
    np.testing.assert_allclose(cf.conditional_poisson(counts).curve, np.array(CURVE) / CURVE[0], rtol=EXACT)


@pytest.mark.parametrize("weighting", ["harmonic", "documents", "design"])
@pytest.mark.parametrize("name", ["two rankers", "shuffled", "landmark"])
def test_means_over_interventional_sets_have_the_ratio_of_examinations(name: str, weighting: str) -> None:
    """E[ĉ_k^{kj}]/E[ĉ_j^{kj}] = θ_k/θ_j over all displays, examinations and clicks."""
    policy, _ = POLICIES[name]
    design = {"design": policy} if weighting == "design" else {}
    means = np.zeros((3, 3))
    for p, log in enumerate_logs(policy, USER, relevance=RELEVANCE, sessions=[2]):
        found = cf.pair_counts(cf.display_counts(log), weighting=weighting, **design).clicks  # type: ignore[arg-type]
        means[: len(found), : len(found)] += p * found
    for k, j in ((0, 1), (1, 2), (0, 2)):
        assert means[k, j] > 0.01
        assert means[k, j] / means[j, k] == pytest.approx(CURVE[k] / CURVE[j], rel=EXACT)


def test_a_ranker_that_was_chosen_by_the_query_breaks_the_design_but_not_the_strata() -> None:
    """Query 0 is served by the first ranker nine times in ten, query 1 by the second; the design says half and half."""
    offsets = [0, 2, 4]
    rankers = [cf.DeterministicPolicy([1, 2, 1, 2], offsets), cf.DeterministicPolicy([2, 1, 2, 1], offsets)]
    half = cf.MixturePolicy(rankers, [0.5, 0.5])
    relevance = [1, 0, 0, 1]  # each ranker puts the relevant document of its own query on top
    rows = []
    for document, query in enumerate([0, 0, 1, 1]):
        for ranker, share in enumerate([900, 100] if query == 0 else [100, 900]):
            rank = int(rankers[ranker].displayed_rank[document])
            clicks = share * CURVE[rank - 1] * (PLUS if relevance[document] else MINUS)
            assert clicks == pytest.approx(round(clicks), abs=1e-9)
            rows.append((query, document, rank, share, round(clicks)))
    counts = of_rows(rows)
    truth = np.array(CURVE[:2]) / CURVE[0]
    for estimate in (cf.conditional_poisson, cf.all_pairs, cf.pivot):
        np.testing.assert_allclose(estimate(counts).curve, truth, rtol=EXACT)
    np.testing.assert_allclose(cf.all_pairs(counts, weighting="documents").curve, truth, rtol=EXACT)
    assert cf.all_pairs(counts, weighting="design", design=half).curve[1] < 0.7 * truth[1]


def in_proportion(trust: float = 0.0) -> cf.DisplayCounts:
    """Three documents at two or three ranks, unequal displays, clicks equal to their means; ε₋ grows by ``trust``/k."""
    rows = []
    for document, ranks in enumerate([(1, 2), (2, 3), (1, 2, 3)]):
        for k in ranks:
            n = 1_000 * (document + 1) * k
            attraction = PLUS if document == 1 else MINUS + trust / k
            rows.append((document // 2, document, k, n, round(n * CURVE[k - 1] * attraction)))
    return of_rows(rows)


@pytest.mark.parametrize("estimate", [cf.conditional_poisson, cf.all_pairs, cf.adjacent_chain, cf.pivot])
def test_from_clicks_equal_to_their_means_examination_is_found(estimate: object) -> None:
    truth = np.array(CURVE) / CURVE[0]
    np.testing.assert_allclose(estimate(in_proportion()).curve, truth, rtol=EXACT)  # type: ignore[operator]
    # Trust bias is no position bias: what is found then is another curve.
    assert np.abs(estimate(in_proportion(trust=0.2)).curve / truth - 1).max() > 0.1  # type: ignore[operator]


def test_naive_rates_find_another_curve_where_the_ranker_knows_something() -> None:
    counts = in_proportion()
    assert np.abs(cf.click_rates(counts).curve / (np.array(CURVE) / CURVE[0]) - 1).max() > 0.1


def simulated(seed: int, n_queries: int = 40, curve: Sequence[float] = (1, 0.6, 0.4, 0.2)) -> cf.DisplayCounts:
    """A log of three rankers, of which the first is the best, on lists of four: each query is new."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(n_queries + 1) * 4
    relevance = (rng.random(4 * n_queries) < 0.4).astype(np.int64)
    scores = [relevance + rng.normal(size=4 * n_queries) * noise for noise in (0.5, 1.0, 2.0)]
    rankers = [cf.DeterministicPolicy.rank_by(s, offsets, rng=rng) for s in scores]
    user = cf.PositionBasedUser(curve, epsilon_plus=0.8, epsilon_minus=0.2)
    policy = cf.MixturePolicy(rankers, [0.4, 0.3, 0.3])
    log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=rng.poisson(30, n_queries) + 1, rng=rng)
    return cf.display_counts(log)


@pytest.fixture(scope="module")
def logs() -> list[cf.DisplayCounts]:
    return [simulated(seed) for seed in range(150)]


@pytest.mark.parametrize("estimate", [cf.conditional_poisson, cf.all_pairs, cf.pivot, cf.adjacent_chain])
def test_intervals_cover_as_often_as_they_say(estimate: object, logs: list[cf.DisplayCounts]) -> None:
    """150 logs: the share of intervals that cover has a standard error of 1.8 %, a standard deviation one of 6 %."""
    truth = np.log([0.6, 0.4, 0.2])
    curves = [estimate(counts) for counts in logs]  # type: ignore[operator]
    found = np.array([curve.log_ratio[1:] for curve in curves])
    error = np.array([curve.standard_error[1:] for curve in curves])
    covered = (np.abs(found - truth) < 1.959964 * error).mean(axis=0)
    chance = np.sqrt(0.95 * 0.05 / len(logs))
    assert (np.abs(covered - 0.95) < 4 * chance).all(), covered
    assert (np.abs(found.mean(axis=0) - truth) < 4 * found.std(axis=0) / np.sqrt(len(logs)) + 0.02).all()
    # Means of squares, against the heavy tails of small logs.
    ratio = np.sqrt((error**2).mean(axis=0)) / found.std(axis=0)
    assert (np.abs(ratio - 1) < 4 / np.sqrt(2 * len(logs))).all(), ratio


def test_intervals_with_the_weights_of_the_design_cover_too() -> None:
    """200 logs of one population with few sessions a query; documents need not be seen at both ranks."""
    rng = np.random.default_rng(0)
    offsets = np.arange(101) * 4
    relevance = (rng.random(400) < 0.4).astype(np.int64)
    rankers = [cf.DeterministicPolicy.rank_by(relevance + rng.normal(size=400), offsets, rng=rng) for _ in range(2)]
    policy, curve = cf.MixturePolicy(rankers, [0.6, 0.4]), [1, 0.6, 0.4, 0.2]
    user, found = cf.PositionBasedUser(curve, epsilon_plus=0.8, epsilon_minus=0.2), []
    for _ in range(200):
        sessions = rng.multinomial(400, np.full(100, 0.01))
        log = cf.simulate_clicks(policy, user, relevance=relevance, sessions=sessions, rng=rng)
        fit = cf.all_pairs(cf.display_counts(log), weighting="design", design=policy)
        found.append(np.abs(fit.log_ratio - np.log(curve))[1:] < 1.959964 * fit.standard_error[1:])
    covered = np.mean(found, axis=0)
    assert (np.abs(covered - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)).all(), covered


def test_naive_intervals_do_not(logs: list[cf.DisplayCounts]) -> None:
    curves = [cf.click_rates(counts) for counts in logs[:100]]
    covered = [abs(curve.log_ratio[3] - np.log(0.2)) < 1.96 * curve.standard_error[3] for curve in curves]
    assert np.mean(covered) < 0.5


def share_of_rejections(logs: list[cf.DisplayCounts], half: Callable[[cf.DisplayCounts], np.ndarray]) -> float:
    return float(np.mean([cf.same_curve(counts, half(counts)).p_value < 0.05 for counts in logs]))


def trusting(seed: int, trust: float) -> cf.DisplayCounts:
    """Documents at ranks 1, 2 and 3 of two kinds, even ones relevant; ε₋ = .1 + ``trust``/k on the others."""
    rng = np.random.default_rng(seed)
    rows = []
    for document, k in product(range(120), (1, 2, 3)):
        attraction = 0.8 if document % 2 == 0 else 0.1 + trust / k
        n = int(rng.poisson(60)) + 1
        rows.append((document // 2, document, k, n, int(rng.binomial(n, CURVE[k - 1] * attraction))))
    return of_rows(rows)


def test_the_test_of_the_position_model_has_its_size_and_finds_trust(logs: list[cf.DisplayCounts]) -> None:
    """5 % of 300 logs, give or take four times 1.3 %; and most of the logs of trusting users."""
    size = share_of_rejections(logs, lambda counts: counts.document % 2 == 0)
    assert abs(size - 0.05) < 4 * np.sqrt(0.05 * 0.95 / len(logs))
    mild = [trusting(seed, trust=0.2) for seed in range(40)]
    assert share_of_rejections(mild, lambda counts: counts.document % 2 == 0) > 0.8
    # Halves that do not differ in relevance cannot tell: both show the same wrong curve.
    chance = np.sqrt(0.05 * 0.95 / len(mild))
    assert abs(share_of_rejections(mild, lambda counts: counts.document % 4 < 2) - 0.05) < 4 * chance
