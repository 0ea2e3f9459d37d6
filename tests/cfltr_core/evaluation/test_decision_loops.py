"""Decisions against loops over terms and queries; their answers, and their messages."""

import dataclasses
import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from as_loops import clicks_of, table_of
from hypothesis import assume, given
from hypothesis import strategies as st
from kept_text import same_as_kept
from refusals import refused, refuses

import cfltr_core as cf
from cfltr_core.evaluation import query_intervals
from cfltr_core.evaluation.answers import Decision, answer_of
from cfltr_core.propensity.curves import PropensityCurve

THETA = [1.0, 0.6, 0.3]
USER = cf.PositionBasedUser(THETA, epsilon_minus=0.2)
COVARIANCE = [[0.0, 0.0, 0.0], [0.0, 0.04, 0.01], [0.0, 0.01, 0.09]]


def curve(theta: list[float] = THETA, covariance: list[list[float]] = COVARIANCE) -> PropensityCurve:
    n = len(theta)
    return PropensityCurve(
        method="given", log_ratio=np.log(theta), covariance=np.array(covariance), component=np.zeros(n, dtype=int),
        clicks=np.ones(n),
    )  # fmt: skip


@st.composite
def cases(draw: st.DrawFn) -> tuple[cf.ClickLog, cf.DisplayShares, list[float], list[float]]:
    """A log of two rankers with pages of at most three, its design, and scores of two more."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=6))
    cuts = [0, *np.cumsum(sizes).tolist()]
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    pages = [cf.DeterministicPolicy.rank_by(rng.random(cuts[-1]), cuts, rng=rng, cutoff=3) for _ in range(2)]
    policy = cf.MixturePolicy(pages, [0.5, 0.5])
    log = cf.simulate_clicks(
        policy, USER, relevance=rng.integers(2, size=cuts[-1]), sessions=[draw(st.integers(0, 6)) for _ in sizes],
        rng=rng,
    )  # fmt: skip
    assume(log.n_sessions > 0)
    scores = [rng.permutation(cuts[-1]).tolist() for _ in range(2)]
    return log, cf.DisplayShares.of_policy(policy), scores[0], scores[1]


def by_loops(
    log: cf.ClickLog, shares: cf.DisplayShares, gap: list[float], covariance: list[list[float]], extra: list[float]
) -> dict[str, float]:
    lists = (log.sessions.tolist(), log.offsets.tolist())
    return oracles.decision_parts(clicks_of(log), gap, table_of(shares), THETA, covariance, *lists, extra)


def end_by_loops(parts: dict[str, float], level: float) -> tuple[float, float]:
    half = oracles.student_quantile(level, parts["freedom"]) * math.sqrt(parts["of clicks"] + parts["of theta"])
    return parts["difference"] - half, parts["difference"] + half


@pytest.mark.oracle("decisions.decide", "query_intervals.Interval.share_of_theta")
@given(
    case=cases(),
    known=st.booleans(),
    level=st.sampled_from([0.8, 0.95]),
    least=st.sampled_from([0, 10]),
    ceiling=st.sampled_from([0.3, 1.0]),
    spend=st.sampled_from([0.5, 1.0]),
)
def test_decide(case: Any, known: bool, level: float, least: int, ceiling: float, spend: float) -> None:
    log, shares, new_scores, old_scores = case
    cuts = log.offsets.tolist()
    new, old = (cf.rank_weights(s, cuts, metric=cf.dcg(3)) for s in (new_scores, old_scores))
    lam, other = (oracles.rank_weights(s, cuts, oracles.dcg_at(3)) for s in (new_scores, old_scores))
    gap = oracles.rank_difference(lam, other)
    covariance = np.zeros((3, 3)).tolist() if known else COVARIANCE
    exposure = oracles.shared_exposure(table_of(shares), cuts[-1], THETA)
    unseen = oracles.never_shown(gap, exposure, cuts, ceiling)
    loops, lowest, highest = (
        by_loops(log, shares, gap, covariance, extra) for extra in ([0.0] * len(log.sessions), *unseen)
    )
    given_theta = {"user": cf.PositionBasedUser(THETA)} if known else {"curve": curve()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_intervals, "LEAST_CLICKS", least)
        given_numbers = {"smallest": 0.3, "level": level, "ceiling": ceiling, "spend": spend}
        found = cf.decide(new, old, log=log, shares=shares, **given_theta, **given_numbers)
    assert isinstance(found, Decision)
    assert found.difference == pytest.approx(loops["difference"], rel=1e-12, abs=1e-12)
    assert found.effective_clicks == pytest.approx(loops["clicks"], rel=1e-9)
    assert found.effective_queries == pytest.approx(loops["queries"], rel=1e-9)
    assert found.support == pytest.approx(oracles.support(lam, exposure, log.sessions.tolist(), cuts), rel=1e-12)
    if not any(gap):
        assert (found.answer, found.interval) == ("no difference that matters", (0.0, 0.0))
        return
    for value, parts in zip(found.unseen, (lowest, highest), strict=True):
        assert value == pytest.approx(parts["difference"] - loops["difference"], abs=1e-12)
    variance = loops["of clicks"] + loops["of theta"]
    if found.effective_clicks < least or loops["queries"] <= 1 + 1e-9 or math.isnan(variance):
        assert (found.answer, found.interval) == ("undecided", (-math.inf, math.inf))
        return
    assert found.standard_error == pytest.approx(math.sqrt(variance), rel=1e-9, abs=1e-12)
    if variance > 0:
        assert found.share_of_theta == pytest.approx(loops["of theta"] / variance, rel=1e-9, abs=1e-12)
    # Below one degree of freedom Student's tails are too long for the rule of the reference.
    if min(parts["freedom"] for parts in (loops, lowest, highest)) > 1:
        each = 1 - (1 - level) * spend
        assert found.level == pytest.approx(each)
        np.testing.assert_allclose(found.sampling, end_by_loops(loops, each), rtol=1e-6, atol=1e-9)
        low, high = end_by_loops(lowest, each)[0], end_by_loops(highest, each)[1]
        np.testing.assert_allclose(found.interval, (low, high), rtol=1e-6, atol=1e-9)
        if min(abs(x) for x in (low, high, low + 0.3, high - 0.3)) > 1e-6:
            assert found.answer == oracles.answer(low, high, 0.3)


@given(case=cases())
def test_with_a_known_curve_it_is_the_policy_aware_estimate(case: Any) -> None:
    log, shares, new_scores, old_scores = case
    new, old = (cf.rank_weights(s, log.offsets, metric=cf.average_rank()) for s in (new_scores, old_scores))
    found = cf.decide(new, old, log=log, shares=shares, smallest=1.0, user=USER)
    aware = cf.ips(cf.policy_aware(log, shares.exposure(USER)), new - old)
    # Average rank is better when it is smaller, and so is a risk: the sign is turned for any metric.
    assert found.difference == pytest.approx(-aware.value, rel=1e-12, abs=1e-12)
    if new_scores != old_scores and (log.sessions > 0).sum() > 1 and (new - old).lam.any():
        # It is never less, and the same where all queries have as many sessions.
        assert found.standard_error >= aware.standard_error * (1 - 1e-9)
        if len(set(log.sessions.tolist()) - {0}) == 1:
            assert found.standard_error == pytest.approx(aware.standard_error, rel=1e-9, abs=1e-12)


def world(n_queries: int, per_query: int, seed: int = 0) -> tuple[cf.ClickLog, cf.DisplayShares, dict[str, Any]]:
    """Lists of four, shown by two rankers; three of four documents fit a page."""
    rng = np.random.default_rng(seed)
    cuts = np.arange(0, 4 * n_queries + 1, 4)
    pages = [cf.DeterministicPolicy.rank_by(rng.random(cuts[-1]), cuts, rng=rng, cutoff=3) for _ in range(2)]
    policy = cf.MixturePolicy(pages, [0.5, 0.5])
    relevance = rng.integers(2, size=cuts[-1])
    log = cf.simulate_clicks(policy, USER, relevance=relevance, sessions=[per_query] * n_queries, rng=rng)
    scores = {"good": relevance + 0.1 * rng.random(cuts[-1]), "bad": rng.random(cuts[-1])}
    rankers = {name: cf.rank_weights(s, cuts, metric=cf.dcg()) for name, s in scores.items()}
    # In one query of five two documents change places.
    nudged = scores["bad"].reshape(-1, 4).copy()
    nudged[::5] = nudged[::5, [1, 0, 2, 3]]
    nudged = nudged.ravel()
    rankers["near"] = cf.rank_weights(nudged, cuts, metric=cf.dcg())
    return log, cf.DisplayShares.of_policy(policy), rankers


@pytest.mark.oracle("answers.answer_of")
@given(ends=st.tuples(st.floats(-1, 1), st.floats(-1, 1)), smallest=st.floats(0.01, 1))
def test_answers(ends: tuple[float, float], smallest: float) -> None:
    assert answer_of(min(ends), max(ends), smallest) == oracles.answer(min(ends), max(ends), smallest)


@pytest.mark.oracle("answers.Decision.summary")
@pytest.mark.parametrize("smallest", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("pair", [("good", "bad"), ("bad", "good"), ("near", "bad")])
def test_the_summary_begins_with_the_answer(smallest: float, pair: tuple[str, str]) -> None:
    log, shares, rankers = world(200, 10)
    found = cf.decide(rankers[pair[0]], rankers[pair[1]], log=log, shares=shares, user=USER, smallest=smallest)
    asked, answered = found.summary.splitlines()[:2]
    assert asked.startswith("Asked: the DCG of the new ranker minus that of production, a session (+ is better)")
    assert answered.lower().startswith(oracles.answer(*found.interval, smallest))


@pytest.mark.oracle("safe_choice.choose_safely", "safe_choice.SafeChoice.summary")
@given(seed=st.integers(0, 2**20), smallest=st.sampled_from([0.02, 0.1, 0.5]), n=st.integers(1, 4))
def test_choose_safely(seed: int, smallest: float, n: int) -> None:
    log, shares, rankers = world(30, 8, seed=seed % 50)
    rng = np.random.default_rng(seed)
    cuts = log.offsets
    candidates = {str(i): cf.rank_weights(rng.random(cuts[-1]), cuts, metric=cf.dcg()) for i in range(n - 1)}
    candidates["good"] = rankers["good"]
    case = {"log": log, "shares": shares, "smallest": smallest, "user": USER}
    looks = []
    for name, new in candidates.items():
        one = cf.decide(new, rankers["bad"], level=1 - 0.1 / n, **case)
        looks.append((name, one.difference, one.interval[0]))
    found = cf.choose_safely(candidates, rankers["bad"], level=0.9, **case)
    assert found.chosen == oracles.safest(looks, smallest)
    assert {name: d.interval[0] for name, d in found.decisions.items()} == pytest.approx(
        {name: low for name, _, low in looks}
    )
    first, *lines = found.summary.splitlines()
    assert first.startswith("Production stays" if found.chosen is None else f"Deploy '{found.chosen}'")
    assert lines == [f"{name}: {one!r}" for name, one in found.decisions.items()]
    stays = "production stays" if found.chosen is None else f"'{found.chosen}'"
    assert repr(found) == f"SafeChoice({stays}, of {n} candidate{'s' * (n > 1)})"


@pytest.mark.oracle("safe_choice.choose_safely")
@pytest.mark.parametrize("cutoff", [None, 3])
def test_choose_safely_by_exposure(cutoff: int | None) -> None:
    seen = set()
    for seed, sessions in product(range(4), (1, 30, 30_000)):
        log, shares, _ = world(20, sessions, seed=seed)
        n_docs, rng = int(log.offsets[-1]), np.random.default_rng(seed)
        exposure = np.array(oracles.shared_exposure(table_of(shares), n_docs, THETA))
        wanted = np.bincount(log.document, log.clicks, n_docs) / np.maximum(exposure, 0.01)
        # What was shown stands above the rest, of which no log can tell.
        rankers = [
            cf.rank_weights(f + 1e9 * (exposure > 0), log.offsets, metric=cf.dcg(3))
            for f in (rng.random(n_docs), rng.random(n_docs), wanted, wanted + rng.random(n_docs))
        ]
        given = (exposure.tolist(), log.sessions.tolist(), log.offsets.tolist(), 0.9)
        case = {"log": log, "shares": shares, "smallest": 0.1, "user": USER, "cutoff": cutoff}
        risk = [oracles.exposure_risk(ranker.lam.tolist(), *given) for ranker in rankers]
        for old, others in ((0, (1, 2, 3)), (2, (0, 1, 3))):
            gains = {i: cf.decide(rankers[i], rankers[old], **case).difference - risk[i] + risk[old] for i in others}
            best = max(gains, key=gains.__getitem__)
            candidates = {str(i): rankers[i] for i in others}
            found = cf.choose_safely(candidates, rankers[old], level=0.9, rule="exposure", **case)
            assert found.chosen == (str(best) if gains[best] > 0 else None)
            seen.add((sessions, old, found.chosen))
    # With many sessions the best ranker is found, and stays.
    assert {(30_000, 0, "2"), (30_000, 2, None)} <= seen


def test_what_nobody_could_see_is_never_safe_by_exposure() -> None:
    log, shares, rankers = world(20, 300)
    case = {"log": log, "smallest": 0.1, "user": cf.PositionBasedUser([1.0, 0.0, 0.0])}
    silent = dataclasses.replace(log, clicks=np.where(log.rank == 1, log.clicks, 0))
    found = cf.choose_safely(
        {"good": rankers["good"]}, rankers["bad"], shares=shares, rule="exposure", **{**case, "log": silent}
    )
    assert found.chosen is None


def test_a_candidate_that_ranks_as_production_is_not_chosen() -> None:
    log, shares, rankers = world(30, 8)
    given = {"log": log, "shares": shares, "smallest": 0.1, "user": USER}
    assert cf.choose_safely({"same": rankers["bad"]}, rankers["bad"], **given).chosen is None


def test_no_candidate_is_no_choice() -> None:
    log, shares, rankers = world(3, 1)
    with pytest.raises(ValueError, match=r"^rule is 'hope': choose one of 'interval', 'exposure'"):
        cf.choose_safely(rankers, rankers["bad"], log=log, shares=shares, smallest=0.1, user=USER, rule="hope")  # type: ignore[arg-type]
    refuses("candidates", cf.choose_safely, {}, rankers["bad"], log=log, shares=shares, smallest=0.1, user=USER)


@given(smallest=st.floats(0.005, 0.05), share=st.floats(0, 1))
def test_sessions_more_depend_on_the_error_and_on_delta_alone(smallest: float, share: float) -> None:
    """With so many sessions the error, at its upper limit, would be δ / (t + .84), or δ / 2t; where θ̂ alone is worse,
    none are enough."""
    log, shares, rankers = world(100, 5)
    spread = (np.array(COVARIANCE) * share / 10).tolist()
    found = cf.decide(
        rankers["near"], rankers["bad"], log=log, shares=shares, smallest=smallest, curve=curve(covariance=spread)
    )
    assume(found.answer == "undecided" and found.effective_clicks >= query_intervals.LEAST_CLICKS)
    of_theta = found.share_of_theta * found.standard_error**2
    of_clicks = found.standard_error**2 - of_theta
    half = (found.sampling[1] - found.sampling[0]) / 2
    t = half / found.standard_error
    gap = (rankers["near"] - rankers["bad"]).lam.tolist()
    freedom = by_loops(log, shares, gap, spread, [0.0] * len(log.sessions))["freedom"]
    limit = math.sqrt(freedom / oracles.chi_square_quantile(0.2, freedom))
    for multiple in (t + oracles.bisect(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))), 0.8, 0.0, 9.0), 2 * t):
        room = (max(smallest + found.unseen[0], 0) / (multiple * limit)) ** 2 - of_theta
        wanted = log.n_sessions * of_clicks / room if room > 0 else math.inf
        if wanted > log.n_sessions:
            assert found.sessions_more == (math.inf if room <= 0 else math.ceil(wanted - log.n_sessions))
            break
    assert found.sessions_more > 0


def test_few_clicks_give_no_interval() -> None:
    log, shares, rankers = world(3, 1, seed=3)
    found = cf.decide(rankers["good"], rankers["bad"], log=log, shares=shares, smallest=0.1, user=USER)
    assert 0 < found.effective_clicks < query_intervals.LEAST_CLICKS
    assert found.answer == "undecided"
    assert found.interval == (-math.inf, math.inf)
    assert found.sessions_more == math.ceil(3 * 10 / found.effective_clicks) - 3
    assert "10 clicks of equal weight" in found.summary
    nothing = cf.ClickLog(
        document=[0], rank=[1], impressions=[1], clicks=[0], propensity=[1.0], sessions=[1, 0, 0], offsets=log.offsets
    )
    found = cf.decide(rankers["good"], rankers["bad"], log=nothing, shares=shares, smallest=0.1, user=USER)
    assert (found.answer, found.difference, found.sessions_more) == ("undecided", 0.0, math.inf)
    assert "fewer than two queries" in found.summary


def test_summaries_are_kept() -> None:
    """What they say of support, of θ̂, of the sessions that are missing, and of rankers that are alike."""
    log, shares, rankers = world(200, 100)
    sure = {"curve": curve(covariance=(np.array(COVARIANCE) / 1e4).tolist())}
    text = ""
    for name, pair, given_theta, smallest, ceiling in (
        ("better", "good bad", sure, 0.1, 1.0),
        ("hidden by what was never shown", "near bad", {"user": USER}, 0.002, 1.0),
        ("θ̂ too uncertain", "near bad", {"curve": curve()}, 1e-4, 1e-9),
        ("sessions are missing", "near bad", {"user": USER}, 1e-4, 1e-9),
        ("the same ranker", "good good", sure, 0.1, 1.0),
    ):
        case = {"log": log, "shares": shares, "smallest": smallest, "ceiling": ceiling, **given_theta}
        found = cf.decide(*(rankers[one] for one in pair.split()), **case)
        assert str(found) == found.summary
        text += f"# {name}: {found!r}\n{found}\n"
    # The last of so many digits is that of the machine.
    same_as_kept(Path(__file__).with_name("summaries.txt"), re.sub(r"some [\d,]+ sessions", "some … sessions", text))


def test_a_cutoff_leaves_clicks_and_displays_out() -> None:
    log, shares, rankers = world(50, 50)
    top, table = log.rank <= 2, shares.rank <= 2
    names = ("document", "rank", "impressions", "clicks", "propensity")
    cut = cf.ClickLog(**{n: getattr(log, n)[top] for n in names}, sessions=log.sessions, offsets=log.offsets)
    less = cf.DisplayShares(
        **{n: getattr(shares, n)[table] for n in ("document", "rank", "share")}, offsets=shares.offsets
    )
    short = curve(THETA[:2], [row[:2] for row in COVARIANCE[:2]])
    case = {"curve": short, "smallest": 0.1}
    found = cf.decide(rankers["good"], rankers["bad"], log=log, shares=shares, cutoff=2, **case)
    loops = cf.decide(rankers["good"], rankers["bad"], log=cut, shares=less, **case)
    assert found.summary == loops.summary
    assert found.n_clicks == int(log.clicks[top].sum())
    refuses("curve: θ of rank 3", cf.decide, rankers["good"], rankers["bad"], log=log, shares=shares, **case)


def test_an_estimate_above_rank_one_is_taken_as_it_is() -> None:
    log, shares, rankers = world(50, 50)
    above = [1.0, 1.25, 0.3]
    found = cf.decide(rankers["good"], rankers["bad"], log=log, shares=shares, curve=curve(above), smallest=0.1)
    table = table_of(shares)
    exposure = [
        math.fsum(s * above[k - 1] for (e, k), s in table.items() if e == d) for d in range(int(log.offsets[-1]))
    ]
    terms = clicks_of(log)
    gap = (rankers["good"] - rankers["bad"]).lam.tolist()
    assert found.difference == pytest.approx(
        oracles.paired_difference(terms, gap, exposure, log.sessions.tolist()), rel=1e-12
    )


LOG, SHARES, RANKERS = world(5, 4)
SHORT = cf.rank_weights([1.0, 2.0], [0, 2], metric=cf.dcg())
GOOD = {
    "new": RANKERS["good"],
    "production": RANKERS["bad"],
    "log": LOG,
    "shares": SHARES,
    "smallest": 0.1,
    "user": USER,
}
UNLINKED = PropensityCurve(
    method="given", log_ratio=np.zeros(3), covariance=np.zeros((3, 3)), component=np.array([0, 0, 1]),
    clicks=np.ones(3), notes=("Rank 3 is alone.",),
)  # fmt: skip
UNSURE = curve(covariance=[[0.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, math.nan]])


def test_messages_are_kept() -> None:
    others = SHARES.document != LOG.document[np.argmax(LOG.clicks > 0)]
    without = {name: getattr(SHARES, name)[others] for name in ("document", "rank", "share")}
    silent = dict.fromkeys(("document", "rank", "impressions", "clicks", "propensity"), ())
    changes: list[dict[str, Any]] = [
        {"user": None},
        {"curve": curve()},
        {"new": cf.rank_weights(np.ones(20), LOG.offsets, metric=cf.dcg(3))},
        {"new": SHORT},
        {"production": SHORT},
        {"shares": cf.DisplayShares(document=[0], rank=[1], share=[1.0], offsets=[0, 20])},
        {"by": "period"},
        {"ab_test": ("A", "B")},
        {"user": None, "curve": UNLINKED},
        {"user": None, "curve": UNSURE},
        {"shares": cf.DisplayShares(**without, offsets=SHARES.offsets)},
        {"user": cf.PositionBasedUser([0.0] * 3)},
        {"log": cf.ClickLog(**silent, sessions=[0] * 5, offsets=LOG.offsets)},
    ]
    text = "".join(f"{refused(cf.decide, **GOOD | change)}\n" for change in changes)
    same_as_kept(Path(__file__).with_name("messages_of_decide.txt"), text)
