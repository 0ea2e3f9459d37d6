"""What chapter 11 simulates: estimates, prices and rankers of a small corpus against loops over documents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch11

RUN = Run("smoke", "digits", 4)


@pytest.fixture(autouse=True, scope="module")
def _small() -> Iterator[None]:
    """Few counts and shares are enough to see what a row says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ch11, "SHARES", (0.1, 1.0))
        patch.setattr(ch11, "COUNTS", (20, 50))
        patch.setattr(ch11, "GRID", (1.0, 10.0))
        yield


def dcg_by_loops(scores: np.ndarray, relevance: np.ndarray, offsets: np.ndarray) -> float:
    """DCG@5 in the mean over queries, where no two scores tie."""
    total = 0.0
    for start, end in itertools.pairwise(offsets):
        for place, d in enumerate(sorted(range(start, end), key=lambda d: -scores[d])[:5], start=1):
            total += relevance[d] / math.log2(1 + place)
    return total / (len(offsets) - 1)


def pages_of(rank: np.ndarray, start: int, end: int, epsilon: float) -> list[tuple[float, list[int]]]:
    """Every page of one query whose last place is random in a share of the sessions, and its probability."""
    order = sorted(range(start, end), key=lambda d: rank[d])
    pages = [(1 - epsilon, order[:5])]
    rest = order[4:] or [-1]
    pages += [(epsilon / len(rest), [*order[:4], d][: len(order)]) for d in rest]
    return pages


def exposure_by_loops(rank: np.ndarray, offsets: np.ndarray, epsilon: float) -> np.ndarray:
    exposure = np.zeros(len(rank))
    for start, end in itertools.pairwise(offsets):
        for chance, page in pages_of(rank, start, end, epsilon):
            for place, d in enumerate(page, start=1):
                exposure[d] += chance / place
    return exposure


def test_a_random_last_place_exposes_what_the_page_hides() -> None:
    rank, offsets = np.array([2, 1, 7, 3, 4, 6, 5, 1, 2]), np.array([0, 7, 9])
    for epsilon in (0.0, 0.3, 1.0):
        policy = ch11.last_place(rank, offsets, epsilon)
        assert policy.exposure(ch11.USER) == pytest.approx(exposure_by_loops(rank, offsets, epsilon))
        assert ch11.page(rank, offsets, epsilon).exposure(ch11.USER) == pytest.approx(policy.exposure(ch11.USER))
    turned = ch11.page(rank, offsets, -1.0)
    share = np.where(rank <= 5, 1, 0.0)
    assert turned.display_mean(np.ones_like) == pytest.approx(share)
    fifth = (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) / 5
    assert turned.exposure(ch11.USER)[:7] == pytest.approx(share[:7] * fifth)


def test_ranks_are_those_of_the_scores() -> None:
    found = ch11.ranked(np.array([0.1, 0.9, 0.5, 2.0, 3.0]), np.array([0, 3, 5]), RUN.rng(4, 1190))
    assert found.tolist() == [3, 1, 2, 2, 1]


def test_a_world_has_two_rankers() -> None:
    w = ch11.world(RUN, 4)
    offsets, relevance = w.queries.offsets, w.relevance
    assert (relevance == w.queries.binary).all()
    assert w.per_query(w.old.gain) == pytest.approx(dcg_by_loops(-w.rank, relevance, offsets))
    fit = cf.fit_linear_ranker(RUN.load(4).train, 1, rng=RUN.rng(4, 1191))
    new = dcg_by_loops(fit.decision_function(w.queries.features), relevance, offsets)
    assert w.per_query(w.new.gain) == pytest.approx(new)
    assert w.per_query(w.change) == pytest.approx(new - w.per_query(w.old.gain))
    assert w.policy(0.3).exposure(ch11.USER) == pytest.approx(exposure_by_loops(w.rank, offsets, 0.3))


def test_four_estimates_of_one_log() -> None:
    w = ch11.world(RUN, 4)
    policy = w.policy(1.0)
    log = RUN.simulate(policy, ch11.USER, relevance=w.relevance, rng=RUN.rng(4, 1192), n_sessions=3000)
    guess = cf.cross_fitted(w.queries.features, log, user=ch11.USER, folds=2)
    p, gain = exposure_by_loops(w.rank, w.queries.offsets, 1.0), w.new.gain
    query = np.repeat(np.arange(w.queries.n_queries), np.diff(w.queries.offsets))
    oblivious = aware = robust = 0.0
    direct = sum(log.sessions[q] * gain[d] * guess[d] for d, q in enumerate(query))
    for d, r, n, c in zip(log.document, log.rank, log.impressions, log.clicks, strict=True):
        oblivious += c * r * gain[d]
        aware += c / p[d] * gain[d]
        robust += (c - guess[d] * n / r) / p[d] * gain[d]
    expected = np.array([oblivious, aware, direct, direct + robust]) / 3000
    assert ch11.estimates(w, log, cf.DisplayShares.of_policy(policy)) == pytest.approx(expected)


def test_errors_of_the_estimates() -> None:
    w, setting = ch11.world(RUN, 4), {"epsilon": 1.0, "sessions": 1000}
    found = ch11.judge(RUN, 4, setting, RUN.rng(4, 1193))
    rng, policy, squares = RUN.rng(4, 1193), w.policy(1.0), []
    for _ in range(4):
        log = RUN.simulate(policy, ch11.USER, relevance=w.relevance, rng=rng, n_sessions=1000)
        off = ch11.estimates(w, log, cf.DisplayShares.of_policy(policy)) / w.per_query(w.new.gain) - 1
        squares.append(off**2)
    assert [found[name] for name in ch11.ESTIMATES] == pytest.approx(np.sqrt(np.mean(squares, axis=0)))
    assert len(ch11.JUDGED.settings(RUN)) == 2 * len(ch11.SESSIONS)


def test_the_variance_of_a_session_is_that_of_every_page_and_click() -> None:
    w = ch11.world(RUN, 4)
    for epsilon in (0.2, 1.0):
        p, offsets = exposure_by_loops(w.rank, w.queries.offsets, epsilon), w.queries.offsets
        first, second = [], []
        for start, end in itertools.pairwise(offsets):
            mean = square = 0.0
            for chance, page in pages_of(w.rank, start, end, epsilon):
                given = spread = 0.0
                for place, d in enumerate(page, start=1):
                    rho, a = w.relevance[d] / place, w.change[d] / p[d]
                    given += rho * a
                    spread += rho * (1 - rho) * a**2
                mean += chance * given
                square += chance * (spread + given**2)
            first.append(mean)
            second.append(square)
        variance = np.mean(second) - np.mean(first) ** 2
        assert ch11.variance_of_a_session(w, epsilon) == pytest.approx(variance)


def halves_by_loops(w: ch11.World) -> list[list[tuple[list[int], list[float]]]]:
    """For each half of an A/B test the page of every query, and what a click on each of its places adds to the lead."""
    found: list[list[tuple[list[int], list[float]]]] = [[], []]
    for start, end in itertools.pairwise(w.queries.offsets):
        pages = [sorted(range(start, end), key=lambda d, r=rank: r[d])[:5] for rank in (w.rank, w.proposed)]
        p = dict.fromkeys(range(start, end), 0.0)
        for page in pages:
            for place, d in enumerate(page, start=1):
                p[d] += 0.5 / place
        for half, page in zip(found, pages, strict=True):
            half.append((page, [w.change[d] / p[d] for d in page]))
    return found


def variance_by_loops(half: list[tuple[list[int], list[float]]], wanted: np.ndarray) -> float:
    """Of what a session of this half adds, over every query and every pattern of clicks on its page."""
    first = second = 0.0
    for page, adds in half:
        for clicks in itertools.product([0, 1], repeat=len(page)):
            chance, total = 1 / len(half), 0.0
            for place, (d, a, click) in enumerate(zip(page, adds, clicks, strict=True), start=1):
                chance *= wanted[d] / place if click else 1 - wanted[d] / place
                total += click * a
            first += chance * total
            second += chance * total**2
    return second - first**2


def test_an_ab_test_is_that_of_both_pages_and_every_click() -> None:
    w, halves = ch11.world(RUN, 4), halves_by_loops(ch11.world(RUN, 4))
    guess = RUN.rng(4, 1198).random(len(w.rank))
    for page, half in zip(ch11.halves(w), halves, strict=True):
        assert [page.displayed_rank[d] for d in half[0][0]] == [1, 2, 3, 4, 5]
        assert (page.displayed_rank > 0).sum() == sum(len(shown) for shown, _ in half)
    p = (ch11.halves(w)[0].exposure(ch11.USER) + ch11.halves(w)[1].exposure(ch11.USER)) / 2
    adds = ch11.what_a_click_adds(w, p)
    assert [adds[d] for d in halves[1][0][0]] == pytest.approx(halves[1][0][1])
    for wanted in (w.relevance, guess):
        each = [variance_by_loops(half, wanted) for half in halves]
        found = [ch11.variance_of_half(page, wanted, adds) for page in ch11.halves(w)]
        assert found == pytest.approx(each)
        assert ch11.variance_of_ab_test(w, wanted) == pytest.approx(sum(each) / 2)
    with_one = [[(page, [1.0] * len(page)) for page, _ in half] for half in halves]
    clicks = [sum(w.relevance[d] / r for page, _ in half for r, d in enumerate(page, start=1)) for half in halves]
    lead = (clicks[1] - clicks[0]) / w.queries.n_queries
    by_clicks = 2 * sum(variance_by_loops(half, w.relevance) for half in with_one) / lead**2
    by_lead = ch11.variance_of_ab_test(w, w.relevance) / w.per_query(w.change) ** 2
    assert ch11.by_clicks_alone(w) == pytest.approx(by_clicks / by_lead)


def test_what_ab_tests_take() -> None:
    w, row = ch11.world(RUN, 4), ch11.ab_tests(RUN).iloc[0]
    guess = ch11.guesses(RUN, w, w.relevance, RUN.rng(4, 1102))
    halves = halves_by_loops(w)
    sessions, planned = (sum(variance_by_loops(half, x) for half in halves) / 2 / 0.01**2 for x in (w.relevance, guess))
    expected = (4, sessions, planned, math.sqrt(sessions / planned), ch11.by_clicks_alone(w))
    assert tuple(row) == pytest.approx(expected)


def test_clicks_taken_one_by_one_make_the_error_of_two_pages_too_small() -> None:
    """Two pages of five without a common document, all wanted: with both halves as one log by a factor of 1.6."""
    adds = [2 * place / math.log2(1 + place) for place in range(1, 6)]
    one_by_one = sum(a**2 / place for place, a in enumerate(adds, start=1))
    mean = square = 0.0
    for half, clicks in itertools.product((-1, 1), itertools.product([0, 1], repeat=5)):
        chance, total = 0.5, 0.0
        for place, (a, click) in enumerate(zip(adds, clicks, strict=True), start=1):
            chance *= 1 / place if click else 1 - 1 / place
            total += half * click * a
        mean += chance * total
        square += chance * total**2
    assert math.sqrt((square - mean**2) / one_by_one) == pytest.approx(1.6, abs=0.05)


def small_test() -> tuple[ch11.World, list[cf.ClickLog], np.ndarray]:
    """Both halves of an A/B test, with all documents wanted."""
    w, rng = ch11.world(RUN, 4), RUN.rng(4, 1199)
    wanted = np.ones(len(w.rank))
    logs = [RUN.simulate(page, ch11.USER, relevance=wanted, rng=rng, n_sessions=500) for page in ch11.halves(w)]
    return w, logs, np.mean([page.exposure(ch11.USER) for page in ch11.halves(w)], axis=0)


def test_halves_are_read_by_themselves() -> None:
    """Each with the variance between its sessions; that of one query is the one of its clicks, document by document."""
    w, logs, p = small_test()
    lead, squared = 0.0, 0.0
    for log in logs:
        total = spread = 0.0
        of_query = np.zeros(w.queries.n_queries)
        for d, c, q in zip(log.document, log.clicks, log.query, strict=True):
            a, n = w.change[d] / p[d], log.sessions[q]
            total += c * a
            of_query[q] += c * a
            spread += a**2 * c * (1 - c / n)
        for q, n in enumerate(log.sessions):
            spread += n * (of_query[q] / n - total / 500) ** 2 if n > 0 else 0.0
        lead += total / 500 / 2
        squared += spread / 499 / 500 / 4
    assert ch11.read_halves(w, logs, p) == pytest.approx((lead, math.sqrt(squared)))


def test_a_random_place_is_read_click_by_click() -> None:
    w = ch11.world(RUN, 4)
    log = RUN.simulate(w.policy(1.0), ch11.USER, relevance=w.relevance, rng=RUN.rng(4, 1189), n_sessions=500)
    p, lead, square = exposure_by_loops(w.rank, w.queries.offsets, 1.0), 0.0, 0.0
    for d, c in zip(log.document, log.clicks, strict=True):
        lead += c * w.change[d] / p[d] / 500
        square += c * (w.change[d] / p[d] / 500) ** 2
    assert ch11.read_place(w, log, p) == pytest.approx((lead, math.sqrt(square)))


@pytest.mark.parametrize("place", [False, True])
def test_tests_of_the_planned_size(place: bool) -> None:
    w, setting = ch11.world(RUN, 4), {"place": place, "all_wanted": False}
    found = ch11.tried(RUN, 4, setting, RUN.rng(4, 1188))
    rng, covered, better = RUN.rng(4, 1188), 0, 0
    guess, policy = ch11.guesses(RUN, w, w.relevance, rng), w.policy(1.0)
    for _ in range(10):
        if place:
            n = int(1.5 * ch11.planned(w, guess, 1.0))
            log = RUN.simulate(policy, ch11.USER, relevance=w.relevance, rng=rng, n_sessions=n)
            lead, error = ch11.read_place(w, log, policy.exposure(ch11.USER))
        else:
            n, pages = int(0.75 * ch11.variance_of_ab_test(w, guess) / 0.01**2), ch11.halves(w)
            logs = [RUN.simulate(one, ch11.USER, relevance=w.relevance, rng=rng, n_sessions=n) for one in pages]
            lead, error = ch11.read_halves(w, logs, np.mean([one.exposure(ch11.USER) for one in pages], axis=0))
        covered += abs(lead - w.per_query(w.change)) <= 2 * error
        better += lead > 2 * error
    assert found == {"covered": pytest.approx(covered / 10), "better": pytest.approx(better / 10)}
    assert ch11.TESTED.settings(RUN)[3] == {"place": True, "all_wanted": True}


def test_guesses_are_those_of_an_ordinary_log() -> None:
    w, rng = ch11.world(RUN, 4), RUN.rng(4, 1187)
    log = RUN.simulate(w.policy(0.0), ch11.USER, relevance=w.relevance, rng=rng, n_sessions=100_000)
    expected = cf.cross_fitted(w.queries.features, log, user=ch11.USER)
    assert ch11.guesses(RUN, w, w.relevance, RUN.rng(4, 1187)) == pytest.approx(expected)


def test_a_plan_is_the_second_moment_of_its_guesses() -> None:
    w = ch11.world(RUN, 4)
    guess = RUN.rng(4, 1194).random(len(w.rank))
    p = exposure_by_loops(w.rank, w.queries.offsets, 0.1)
    moment = sum(g * a**2 / q for g, a, q in zip(guess, w.change, p, strict=True)) / w.queries.n_queries
    assert ch11.planned(w, guess, 0.1) == pytest.approx(moment / 0.01**2)


def test_prices_of_chance() -> None:
    frame = ch11.prices.__wrapped__(RUN)
    assert frame["seed"].tolist() == [4, 4, 5, 5]
    w, row = ch11.world(RUN, 4), frame.iloc[1]
    log = RUN.simulate(w.policy(0.0), ch11.USER, relevance=w.relevance, rng=RUN.rng(4, 1102), n_sessions=100_000)
    guess = cf.cross_fitted(w.queries.features, log, user=ch11.USER)
    assert row["planned"] == pytest.approx(ch11.planned(w, guess, 1.0))
    assert row["sessions"] == pytest.approx(ch11.variance_of_a_session(w, 1.0) / 0.01**2)
    assert row["reached"] ** 2 == pytest.approx(row["sessions"] / row["planned"])
    shown, offsets = 0.0, w.queries.offsets
    for start, end in itertools.pairwise(offsets):
        for chance, page in pages_of(w.rank, start, end, 1.0):
            shown += chance * sum(w.relevance[d] / math.log2(1 + place) for place, d in enumerate(page, start=1))
    assert row["loss"] == pytest.approx(w.per_query(w.old.gain) - shown / w.queries.n_queries)


def test_what_is_sold_out_is_never_wanted() -> None:
    data = RUN.load(4).train
    stocked, sold = ch11.with_stock(data, RUN.rng(4, 1195))
    for start, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        assert (sold[start:end] == 0).sum() >= min(5, end - start)
    assert sold.mean() == pytest.approx(0.2, abs=0.05)
    assert (stocked.features[:, :-1] == data.features).all()
    assert (stocked.features[:, -1] == sold).all()
    assert stocked.relevance.tolist() == [0 if s else r for s, r in zip(sold, data.relevance, strict=True)]
    assert (stocked.threshold, stocked.offsets.tolist()) == (data.threshold, data.offsets.tolist())


def test_a_shop_hides_what_is_sold_out() -> None:
    s = ch11.shop(RUN, 4, True)
    for part, rank in zip((s.train, s.validation), s.ranks, strict=True):
        for start, end in zip(part.offsets[:-1], part.offsets[1:], strict=True):
            sold = part.features[start:end, -1] > 0
            if sold.any() and not sold.all():
                assert rank[start:end][sold].min() > rank[start:end][~sold].max()
    plain = ch11.shop(RUN, 4, False)
    logger = cf.fit_linear_ranker(RUN.load(4).train, 0.01, rng=RUN.rng(4, 1105))
    scores = logger.decision_function(plain.test.features)
    assert plain.before == pytest.approx(dcg_by_loops(scores, plain.test.binary, plain.test.offsets), abs=1e-3)
    assert plain.gained(logger) == pytest.approx(0, abs=1e-12)
    other = cf.LinearRanker(RUN.rng(4, 1196).normal(size=plain.test.features.shape[1]))
    scores = other.decision_function(plain.test.features)
    assert ch11.dcg(scores, plain.test) == pytest.approx(dcg_by_loops(scores, plain.test.binary, plain.test.offsets))
    assert plain.gained(other) == pytest.approx(ch11.dcg(scores, plain.test) - plain.before)


def small_log(clicks: list[int]) -> cf.ClickLog:
    """Four documents of which the last was never shown; the second stood at two ranks."""
    return cf.ClickLog(
        document=[0, 1, 1, 2], rank=[1, 2, 3, 3], impressions=[12, 6, 6, 6], clicks=clicks,
        propensity=[1, 1 / 2, 1 / 3, 1 / 3], sessions=[12], offsets=[0, 4],
    )  # fmt: skip


@pytest.mark.parametrize("p", [None, (1.0, 0.5, 0.25, 0.0)])
def test_clicks_per_look_leave_out_what_was_never_displayed(p: tuple[float, ...] | None) -> None:
    x = np.array([[1.0, 5, 0], [0.0, 2, 0], [3.0, 1, 0], [100.0, 7, 1]])
    ranker = ch11.clicks_per_look(x, small_log([9, 2, 1, 2]), None if p is None else np.array(p), ridge=0.5)
    over = p or (1.0, 1.0, 1.0)
    looks = [12.0 / over[0], (6 / 2 + 6 / 3) / over[1], 6 / 3 / over[2]]
    clicks = [9.0 / over[0], 3.0 / over[1], 2.0 / over[2]]
    # Gradient descent on Σ looks · (rate − a − z · v)² + ridge · mean looks · ‖v‖².
    spread = [float(np.std([row[j] for row in x[:3]])) for j in range(2)]
    a, v = 0.0, [0.0, 0.0]
    for _ in range(20_000):
        slope_a, slope_v = 0.0, [0.5 * sum(looks) / 3 * v[j] for j in range(2)]
        for d in range(3):
            z = [x[d, j] / spread[j] for j in range(2)]
            off = a + v[0] * z[0] + v[1] * z[1] - clicks[d] / looks[d]
            slope_a += looks[d] * off
            slope_v = [slope_v[j] + looks[d] * off * z[j] for j in range(2)]
        a, v = a - 0.002 * slope_a, [v[j] - 0.002 * slope_v[j] for j in range(2)]
    assert ranker.weights == pytest.approx([v[0] / spread[0], v[1] / spread[1], 0], abs=1e-6)


def test_among_displayed_documents_no_other_is_a_candidate() -> None:
    log = cf.ClickLog(
        document=[1, 3, 1, 6], rank=[1, 2, 2, 1], impressions=[5, 5, 2, 4], clicks=[3, 1, 2, 4],
        propensity=[1, 1 / 2, 1 / 2, 1], sessions=[7, 0, 4], offsets=[0, 4, 6, 8],
    )  # fmt: skip
    x, among = ch11.among_displayed(np.arange(16.0).reshape(8, 2), log)
    assert x.tolist() == [[2, 3], [6, 7], [12, 13]]  # documents 1, 3 and 6
    assert (among.offsets.tolist(), among.sessions.tolist()) == ([0, 2, 3], [7, 4])
    found = {(*row,) for row in zip(among.document, among.rank, among.impressions, among.clicks, strict=True)}
    assert found == {(0, 1, 5, 3), (1, 2, 5, 1), (0, 2, 2, 2), (2, 1, 4, 4)}


def test_dealt_clicks_follow_looks_alone() -> None:
    log = small_log([9, 0, 0, 0])
    many = [ch11.dealt(log, RUN.rng(4, [1197, i])).clicks for i in range(500)]
    assert all((clicks <= log.impressions).all() for clicks in many)
    looks = np.array([12, 3, 2, 2])
    assert np.mean(many, axis=0) == pytest.approx(9 * looks / 19, abs=0.25)


def logs_of(s: ch11.Shop, epsilon: float, per_query: int, stream: int) -> list[tuple[cf.ClickLog, np.ndarray]]:
    rng, out = RUN.rng(4, stream), []
    for part, rank in zip((s.train, s.validation), s.ranks, strict=True):
        policy = ch11.page(rank, part.offsets, epsilon)
        n = per_query * part.n_queries
        log = RUN.simulate(policy, ch11.USER, relevance=part.binary, rng=rng, n_sessions=n)
        out.append((log, policy.exposure(ch11.USER)))
    return out


def test_clicks_choose_the_strength() -> None:
    s = ch11.shop(RUN, 4, False)
    logs = [cf.policy_aware(*pair) for pair in logs_of(s, 1.0, 20, 1198)]
    fit = ch11.proprank([(s.train.features, logs[0]), (s.validation.features, logs[1])])
    strengths, risks = [], []
    for strength in (0.1, 1.0, 10.0, 100.0):
        C = strength / logs[0].mass.sum()
        one = cf.fit_proprank(s.train.features, logs[0], C=C, gap=0.03)
        lam = cf.rank_weights(one.decision_function(s.validation.features), logs[1].offsets, metric=cf.dcg(5))
        strengths.append(C)
        risks.append(cf.self_normalised(logs[1], lam).value)
    chosen = risks[int(np.argmin(np.abs(np.array(strengths) - fit.C)))]
    assert chosen == pytest.approx(min(risks), abs=0.01)


def test_what_rankers_gain() -> None:
    s = ch11.shop(RUN, 4, False)
    setting = {"arm": "aware", "epsilon": 0.1, "per_query": 20, "sold_out": False}
    x = [s.train.features, s.validation.features]
    views = [cf.policy_aware(*pair) for pair in logs_of(s, 0.1, 20, 1104)]
    found = ch11.learn(RUN, 4, setting, RUN.rng(4, 1104))
    assert found["gained"] == pytest.approx(s.gained(ch11.proprank([*zip(x, views, strict=True)])))
    plain = logs_of(s, 0.1, 20, 1104)
    rankers = {
        "displayed": ch11.clicks_per_look(s.train.features, plain[0][0]),
        "weighted": ch11.clicks_per_look(s.train.features, *plain[0]),
        "oblivious": ch11.proprank([*zip(x, (log for log, _ in plain), strict=True)]),
        "compared": ch11.proprank([ch11.among_displayed(x[i], plain[i][0]) for i in range(2)]),
    }
    for arm, ranker in rankers.items():
        found = ch11.learn(RUN, 4, setting | {"arm": arm}, RUN.rng(4, 1104))
        assert found["gained"] == pytest.approx(s.gained(ranker))
    dealt = ch11.learn(RUN, 4, setting | {"arm": "dealt"}, RUN.rng(4, 1104))
    assert dealt["gained"] < ch11.learn(RUN, 4, setting | {"arm": "displayed"}, RUN.rng(4, 1104))["gained"]
    labels = ch11.learn(RUN, 4, setting | {"arm": "labels"}, RUN.rng(4, 1104))
    assert labels["gained"] == pytest.approx(s.gained(cf.fit_linear_ranker(s.train, 1, rng=RUN.rng(4, 1199))))


def test_every_setting_of_the_learners_stands_once() -> None:
    settings = ch11.learners(RUN)
    assert len(settings) == len({tuple(one.values()) for one in settings}) == 2 * 8 + 3 + 6 + 2
    assert ch11.LEARNT.settings(RUN) == settings


def test_other_corpora_stand_beside_a_kept_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def table(kept: bool, add: float) -> pd.DataFrame:
        rows = [
            {"seed": seed, "arm": arm, "sold_out": sold, "gained": add + gained + 10 * seed + 100 * sold}
            for seed in (4, 5) for sold in (False, True) for arm, gained in (("labels", 5.0), ("aware", 3.0))
        ]  # fmt: skip
        frame = pd.DataFrame(rows)
        frame.attrs["kept"] = kept
        return frame

    others = {"yahoo-like": table(True, 0.25), "digits": table(True, 9.0)}
    monkeypatch.setattr(type(ch11.LEARNT), "kept_table", lambda self, scale, corpus: others.get(corpus))
    for kept, corpora in ((True, {"digits": 0.0, "yahoo-like": 0.25}), (False, {"digits": 0.0})):
        monkeypatch.setattr(Run, "table", lambda self, experiment, kept=kept: table(kept, 0.0))
        found = ch11.everywhere(RUN)
        assert len(found) == 2 * 2 * 3 * len(corpora)
        assert set(found["corpus"]) == set(corpora)
        for row in found.itertuples():
            best = corpora[row.corpus] + 5 + 10 * row.seed + 100 * row.sold_out
            gained = {"labels": best, "aware": best - 2, "deployed": 0.0}[row.arm]
            assert (row.gained, row.behind) == pytest.approx((gained, gained - best))


def test_last_month_is_the_first_population() -> None:
    month, w = ch11.month(RUN), ch11.world(RUN, 4)
    shown = dcg_by_loops(month.deployed, w.relevance, w.queries.offsets)
    assert month.log.n_sessions == month.before.n_sessions == 100_000
    assert month.log.n_clicks != month.before.n_clicks
    assert (month.log.impressions > 0).sum() == np.minimum(np.diff(w.queries.offsets), 5).sum()
    assert (month.relevance == w.relevance).all()
    assert w.per_query(w.old.gain) == pytest.approx(shown)
    assert len(month.features) == len(w.rank)
