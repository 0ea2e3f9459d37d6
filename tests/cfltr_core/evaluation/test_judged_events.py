"""Decisions on events: trust, periods with displays of their own, A/B tests, and sessions that must not be judged."""

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import oracles
import pandas as pd
import pytest
from as_loops import clicks_of, table_of, terms_of
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

import cfltr_core as cf
from cfltr_core.clicks.event_counts import Events
from cfltr_core.evaluation.estimands import Sums, ab_sums, click_line, exposure_sums
from cfltr_core.evaluation.query_intervals import Interval, hides_the_answer, interval_of, sessions_missing
from cfltr_core.logs.log_report import LogCheck, LogReport
from cfltr_core.propensity.curves import PropensityCurve
from cfltr_core.propensity.trust_curves import TrustCurve

SLOPE, INTERCEPT = np.array([1.0, 0.7, 0.4]), np.array([0.0, -0.05, 0.1])
QUERIES, PRODUCTS, PLACES = 30, 5, 3
GAIN = [1.0, 1 / math.log2(3), 0.5]


def trust_curve(covariance: np.ndarray | None = None) -> TrustCurve:
    spread = np.zeros((6, 6)) if covariance is None else covariance
    return TrustCurve(slope=SLOPE, intercept=INTERCEPT, covariance=spread, strength=9.0)


def shop(seed: int, sessions: int = 900, parts: bool = True) -> tuple[Events, pd.DataFrame]:
    """A log of two rankers in two periods with pages of three of five documents, and its rows."""
    rng = np.random.default_rng(seed)
    pages = rng.permuted(np.tile(np.arange(PRODUCTS), (2, 2, QUERIES, 1)), axis=-1)[..., :PLACES]
    attraction = rng.uniform(0.2, 0.8, size=(2, QUERIES, PRODUCTS))
    rows = []
    for session in range(sessions):
        query, ranker, period = (int(n) for n in rng.integers([QUERIES, 2, 2]))
        for place, document in enumerate(pages[ranker, period, query].tolist()):
            chance = attraction[period, query, document] * SLOPE[place] + INTERCEPT[place]
            clicked = int(rng.random() < chance)
            rows.append((session, query, document, place + 1, clicked, "AB"[ranker], f"week {period}"))
    names = ["session", "query", "document", "position", "clicked", "ranker", "period"]
    frame = pd.DataFrame(rows, columns=names)
    lists = np.indices((QUERIES, PRODUCTS)).reshape(2, -1)
    features = pd.DataFrame({"query": lists[0], "document": lists[1], "x": 0.0})
    return cf.read_events(frame, features, split=(0.5, 0.2, 0.3) if parts else None), frame


EVENTS, ROWS = shop(0, parts=False)
PARTED, _ = shop(1)
RNG = np.random.default_rng(3)
NEW, OLD = (cf.rank_weights(RNG.random(QUERIES * PRODUCTS), EVENTS.offsets, metric=cf.dcg(3)) for _ in range(2))
GAP = (NEW - OLD).lam.tolist()


@pytest.mark.oracle("estimands.click_line")
def test_a_line_has_the_errors_of_its_curve() -> None:
    spread = np.array([[0.0, 0.0], [0.0, 0.04]])
    curve = PropensityCurve(
        method="given", log_ratio=np.log([1.0, 0.5]), covariance=spread, component=np.zeros(2, int), clicks=np.ones(2)
    )
    line = click_line(2, curve, None)
    slopes = oracles.differences(lambda u: math.exp(u[0]), [math.log(0.5)])
    np.testing.assert_allclose(np.diag(line.covariance), [0, slopes[0] ** 2 * 0.04, 0, 0], rtol=1e-8)
    full = RNG.random((6, 6))
    trust = click_line(2, trust_curve(full + full.T), None)
    np.testing.assert_array_equal(trust.covariance[1, [0, 1, 2, 3]], (full + full.T)[1, [0, 1, 3, 4]])
    np.testing.assert_array_equal(trust.intercept, INTERCEPT[:2])
    unsure = replace(trust_curve(), covariance=np.full((6, 6), np.nan))
    refuses("curve: its covariance is not known at rank 1", click_line, 3, unsure, None)


def test_a_red_report_is_said_first() -> None:
    lines = [LogCheck("bots", "red", "many"), LogCheck("rows missing", "amber", "few"), LogCheck("links", "red", "no")]
    case = {"log": EVENTS.log(), "shares": EVENTS.displays(), "smallest": 0.1, "user": cf.PositionBasedUser([1, 1, 1])}
    sound, told = (
        cf.decide(NEW, OLD, report=LogReport(lines=tuple(some), level=0.03), **case) for some in (lines[1:2], lines)
    )
    assert (sound.red, told.red, told.interval) == ((), ("bots", "links"), sound.interval)
    assert told.summary.startswith("Not to be used: the log's report is red at bots, links.")
    assert told.summary.splitlines()[1:] == sound.summary.splitlines()
    assert repr(told).startswith(f"Decision(not to be used, {sound.answer}")
    chosen = cf.choose_safely({"new": NEW}, OLD, report=LogReport(lines=tuple(lines), level=0.03), **case)
    assert chosen.decisions["new"].red == told.red


@pytest.mark.oracle("decisions.decide", "estimands.exposure_sums")
def test_trust_is_taken_off_and_its_error_is_in_the_interval() -> None:
    log, shares = EVENTS.log(), EVENTS.displays()
    case: dict[str, Any] = {"log": log, "shares": shares, "smallest": 0.1}
    found = cf.decide(NEW, OLD, curve=trust_curve(), **case)

    def difference(line: list[float]) -> float:
        given_log = (terms_of(log), GAP, table_of(shares))
        return oracles.trust_difference(*given_log, line[:3], line[3:], log.sessions.tolist())

    at = [*SLOPE, *INTERCEPT]
    assert found.difference == pytest.approx(difference(at), rel=1e-12)
    sums = exposure_sums(NEW, OLD, log=log, shares=shares, line=click_line(3, trust_curve(), None), ceiling=1.0)
    slopes = oracles.differences(difference, at)
    np.testing.assert_allclose(sums.gradient / log.n_sessions, slopes, rtol=1e-6)
    factor = RNG.random((6, 6)) / 10
    spread = factor @ factor.T
    unsure = cf.decide(NEW, OLD, curve=trust_curve(spread), **case)
    of_theta = unsure.share_of_theta * unsure.standard_error**2
    assert of_theta == pytest.approx(np.array(slopes) @ spread @ slopes, rel=1e-6)
    assert unsure.standard_error**2 - of_theta == pytest.approx(found.standard_error**2, rel=1e-9)


def test_a_choice_by_exposure_takes_events() -> None:
    case: dict[str, Any] = {"smallest": 0.1, "user": cf.PositionBasedUser(SLOPE.tolist()), "rule": "exposure"}
    for better, worse in ((NEW, OLD), (OLD, NEW)):
        found, counted = (
            cf.choose_safely({"it": better}, worse, log=log, shares=shares, **case).chosen
            for log, shares in ((EVENTS, EVENTS), (EVENTS.log(), EVENTS.displays()))
        )
        assert found == counted


@pytest.mark.oracle("decisions.decide", "query_intervals.interval_of", "query_intervals.Interval.standard_error")
@pytest.mark.parametrize("seed", range(3))
def test_periods_have_displays_and_attractions_of_their_own(seed: int) -> None:
    """A document in two periods is two documents of one query: the same sums, and one interval a period beside them."""
    events, _ = shop(seed, parts=False)
    user = cf.PositionBasedUser(SLOPE.tolist())
    found = cf.decide(NEW, OLD, log=events, shares=events, user=user, smallest=0.1, by="period", level=0.9)
    terms, table, sums = [], {}, []
    line = click_line(3, None, user)
    for number, (name, one) in enumerate(found.periods.items()):
        alone = events.subset(periods=[name])
        log, shares = alone.log(), alone.displays()
        again = cf.decide(NEW, OLD, log=log, shares=shares, user=user, smallest=0.1, level=0.95)
        assert vars(one) == {**vars(again), "notes": ()}
        sums.append(exposure_sums(NEW, OLD, log=log, shares=shares, line=line, ceiling=1.0))
        twice = [(2 * (d // PRODUCTS) + number) * PRODUCTS + d % PRODUCTS for d in range(len(GAP))]
        terms += [(twice[d], k, c) for d, k, c in clicks_of(log)]
        table |= {(twice[d], k): share for (d, k), share in table_of(shares).items()}
    gap = np.repeat(np.reshape(GAP, (QUERIES, 1, PRODUCTS)), 2, axis=1).ravel().tolist()
    lists = (events.log().sessions.tolist(), (2 * events.offsets).tolist())
    parts = oracles.decision_parts(terms, gap, table, SLOPE.tolist(), np.zeros((3, 3)).tolist(), *lists)
    assert found.difference == pytest.approx(parts["difference"], rel=1e-12)
    assert found.standard_error == pytest.approx(math.sqrt(parts["of clicks"]), rel=1e-9)
    half = oracles.student_quantile(0.9, parts["freedom"]) * math.sqrt(parts["of clicks"])
    np.testing.assert_allclose(np.diff(found.sampling) / 2, half, rtol=1e-6)
    both = interval_of(sums[0] + sums[1], line.covariance, level=0.9)
    assert (both.sampling, both.interval) == (found.sampling, found.interval)
    assert both.standard_error == found.standard_error
    assert f"Period week 1: {found.periods['week 1']._numbers}" in found.summary


@pytest.mark.oracle("decisions.decide", "event_counts.Events.by_user")
@pytest.mark.parametrize("by", [None, "period"])
def test_sessions_of_a_user_are_alike(by: Literal["period"] | None) -> None:
    """The variance by query, and by groups of users, less that by both: with loops over sessions."""
    rows = ROWS.assign(user=ROWS["session"] // 40)
    events = cf.read_events(rows, EVENTS.index.assign(x=0.0), split=None, columns={"user": "user"})
    group_of = {user: oracles.session_part(user, [1 / 64] * 64) for user in rows["user"].unique().tolist()}
    assert list(events.by_user()) == sorted(set(group_of.values()))
    user = cf.PositionBasedUser(SLOPE.tolist())
    case: dict[str, Any] = {"log": events, "shares": events, "user": user, "smallest": 0.1, "by": by}
    found, alone = (cf.decide(NEW, OLD, **{**case, "log": log}) for log in (events, EVENTS))
    exposure = {
        name: events.subset(periods=[name] if by else None).displays().exposure(user) for name in events.periods
    }
    each: dict[tuple[int, int], list[float]] = {}
    for _, page in rows.groupby("session"):
        query, name = int(page["query"].iloc[0]), page["period"].iloc[0]
        at = (page["query"] * PRODUCTS + page["document"]).tolist()
        gained = -math.fsum(GAP[d] * c / exposure[name][d] for d, c in zip(at, page["clicked"], strict=True))
        each.setdefault((group_of[int(page["user"].iloc[0])], query), []).append(gained - found.difference)
    by_cell = {key: math.fsum(values) for key, values in each.items()}
    by_group = [math.fsum(v for (g, _), v in by_cell.items() if g == group) for group in events.by_user()]
    more = oracles.outer_sum([[r] for r in by_group], len(by_group))[0][0] - math.fsum(v * v for v in by_cell.values())
    n = events.n_sessions
    assert found.difference == pytest.approx(alone.difference, rel=1e-12)
    expected = alone.standard_error**2 + max(more, 0.0) / n**2
    assert found.standard_error**2 == pytest.approx(expected, rel=1e-9)
    assert np.diff(found.interval) >= np.diff(alone.interval)


@pytest.mark.oracle("decisions.decide", "estimands.ab_sums")
def test_an_ab_test_compares_sessions_of_the_same_query_and_period() -> None:
    # Some sessions are of a third ranker.
    rows = ROWS.assign(ranker=ROWS["ranker"].where(ROWS["session"] % 9 > 0, "C"))
    events = cf.read_events(rows, EVENTS.index.assign(x=0.0), split=None)
    pages = [
        (int(query), period, ranker, page.sort_values("position")["clicked"].tolist())
        for (_, query, period, ranker), page in rows.groupby(["session", "query", "period", "ranker"])
    ]
    totals, weights = oracles.ab_parts(pages, ("B", "A"), GAIN, SLOPE.tolist(), INTERCEPT.tolist())
    line = click_line(3, trust_curve(), None)
    sums = ab_sums(events, ("B", "A"), metric=cf.dcg(3), line=line)
    for query in range(QUERIES):
        assert sums.totals[query] == pytest.approx(totals.get(query, 0.0), abs=1e-12)
        assert sums.sessions[query] == pytest.approx(weights.get(query, 0.0), abs=1e-12)

    def value(at: list[float]) -> float:
        return math.fsum(oracles.ab_parts(pages, ("B", "A"), GAIN, at[:3], at[3:])[0].values())

    np.testing.assert_allclose(sums.gradient, oracles.differences(value, [*SLOPE, *INTERCEPT]), rtol=1e-6, atol=1e-7)
    case: dict[str, Any] = {"log": events, "shares": events, "smallest": 0.1, "curve": trust_curve()}
    read = cf.decide(NEW, OLD, ab_test=("B", "A"), **case).ab_test
    assert read is not None
    assert read.difference == pytest.approx(math.fsum(totals.values()) / math.fsum(weights.values()), rel=1e-12)
    # What is missing is counted in sessions of the log, as the interval is made from all of them, and not in pairs.
    assert read.n_sessions == EVENTS.n_sessions > sums.sessions.sum()
    assert read.answer == "undecided"
    assert read.sessions_more == sessions_missing(read, EVENTS.n_sessions, smallest=0.1)
    turned = cf.decide(NEW, OLD, ab_test=("A", "B"), **case).ab_test
    assert turned is not None
    assert turned.interval == pytest.approx((-read.interval[1], -read.interval[0]))
    refuses("ab_test[1] is 'D': the rankers of the log are 'A', 'B'", cf.decide, NEW, OLD, ab_test=("A", "D"), **case)
    apart = EVENTS.subset(queries=range(3), rankers=["A"])
    refuses("ab_test: 'A' and 'B' never met the", cf.decide, NEW, OLD, ab_test=("A", "B"), **{**case, "log": apart})


def test_an_interval_of_the_ab_test_that_excludes_the_other_is_named() -> None:
    found = cf.decide(NEW, OLD, log=EVENTS, shares=EVENTS, smallest=0.1, curve=trust_curve())
    low, high = found.interval
    for beside in ((low - 1, low), (high, high + 1), (low - 2, low - 1), (high + 1, high + 2)):
        both = replace(found, ab_test=replace(found, interval=beside))
        assert ("exclude each other" in both.summary) == (beside[1] < low or beside[0] > high)


def test_two_queries_have_one_degree_of_freedom() -> None:
    two = np.ones(2)
    sums = Sums(
        totals=np.array([0.0, 1.0]), sessions=9 * two, least=0 * two, most=0 * two, gradient=np.zeros(2),
        size=9 * two, squares=18.0, told=1.0, asked_for=1.0, clicks=18,
    )  # fmt: skip
    assert interval_of(sums, np.zeros((2, 2)), level=0.95).quantile == pytest.approx(math.tan(0.95 * math.pi / 2))


@pytest.mark.oracle("query_intervals.sessions_missing")
@given(
    of_clicks=st.floats(1, 10),
    smallest=st.floats(0.5, 1),
    hidden=st.floats(0, 0.4),
    freedom=st.sampled_from([math.inf, 5.5, 90.0]),
)
def test_sessions_that_are_missing_show_the_difference(
    of_clicks: float, smallest: float, hidden: float, freedom: float
) -> None:
    """With so many sessions the lower end is above 0 with probability .8 where the difference is δ, if the variance is
    at its upper limit."""
    found = Interval(
        difference=0.0,
        sampling=(-9.0, 9.0),
        interval=(-9.0, 9.0),
        unseen=(-hidden, 0.0),
        of_clicks=of_clicks,
        of_theta=0.0,
        quantile=2.0,
        effective_clicks=99.0,
        effective_queries=50.0,
        freedom=freedom,
    )
    more = sessions_missing(found, 100, smallest=smallest)
    limit = freedom / oracles.chi_square_quantile(0.2, freedom) if math.isfinite(freedom) else 1.0
    assert oracles.is_positive(more)
    errors = [math.sqrt(limit * of_clicks * 100 / n) for n in (100 + more, 99 + more)]
    enough, few = (0.5 * (1 + math.erf(((smallest - hidden) / e - 2.0) / math.sqrt(2))) for e in errors)
    assert few < 0.8 + 1e-9 <= enough + 2e-9
    assert sessions_missing(replace(found, of_theta=1.0), 100, smallest=smallest) == math.inf


@pytest.mark.oracle("query_intervals.hides_the_answer")
@given(
    low=st.floats(-0.3, 0.3),
    width=st.floats(0, 0.2),
    least=st.floats(-0.029, 0),
    most=st.floats(0.07, 0.4),
)
def test_no_number_of_sessions_would_do_where_every_difference_stays_undecided(
    low: float, width: float, least: float, most: float
) -> None:
    sampling = (low, low + width)
    found = Interval(
        difference=low + width / 2,
        sampling=sampling,
        interval=(low + least, low + width + most),
        unseen=(least, most),
        of_clicks=width / 4 + 1e-9,
        of_theta=0.0,
        quantile=2.0,
        effective_clicks=99.0,
        effective_queries=50.0,
    )
    answers = {oracles.answer(d + least, d + most, 0.03) for d in np.linspace(*sampling, 400)}
    if 0 in (low + width + least, low + most):
        return
    assert hides_the_answer(found, smallest=0.03) == (answers == {"undecided"})
    if answers == {"undecided"}:
        assert sessions_missing(found, 100, smallest=0.03) == math.inf
    assert hides_the_answer(replace(found, unseen=(-0.03, most)), smallest=0.03)


@pytest.mark.oracle("origins.Origin.meets", "origins.Origin.whole_queries", "event_counts.Events.origin")
def test_an_origin_meets_those_that_share_sessions() -> None:
    every = [PARTED.part(name) for name in ("train", "validation", "test")]
    every += [PARTED, PARTED.subset(periods=["week 0"]), PARTED.part("train").subset(rankers=["A"])]
    every += [PARTED.subset(queries=[2, 3])]
    for one in every:
        for other in every:
            cells = [set(map(tuple, some.sessions.drop(columns="sessions").values.tolist())) for some in (one, other)]
            assert one.origin.meets(other.origin) == oracles.is_positive(len(cells[0] & cells[1]))
    one_session_each, _ = shop(2, sessions=12, parts=False)
    assert one_session_each.origin.meets(one_session_each.origin)
    assert not EVENTS.origin.meets(PARTED.origin)
    assert not EVENTS.origin.meets(None)
    assert not PARTED.origin.whole_queries


def test_parts_of_whole_queries_are_said_to_be_other_queries() -> None:
    frame = ROWS.drop(columns="ranker")
    events = cf.read_events(frame, EVENTS.index.assign(x=0.0), split_by="query")
    user = cf.PositionBasedUser(SLOPE.tolist())
    (note,) = cf.decide(NEW, OLD, log=events.part("test"), shares=events, user=user, smallest=0.1).notes
    assert note.startswith("No other part of the log has these queries; who learnt from them elsewhere looks better")


def test_a_metric_of_longer_pages_than_the_log_has_is_told() -> None:
    """Pages show three of five documents, so only a metric that counts rank 4 or 5 is not that of the shop's pages."""
    user, scores = cf.PositionBasedUser(SLOPE.tolist()), [RNG.random(QUERIES * PRODUCTS) for _ in range(2)]
    told = {}
    for metric in (cf.dcg(2), cf.dcg(3), cf.dcg(4), cf.dcg(), cf.precision(3), cf.average_rank()):
        new, old = (cf.rank_weights(one, EVENTS.offsets, metric=metric) for one in scores)
        notes = cf.decide(new, old, log=EVENTS, shares=EVENTS, user=user, smallest=0.1).notes
        told[metric.name] = notes[0].startswith("The metric counts ranks below 3, where this log tells nothing")
    assert [name for name, longer in told.items() if longer] == ["DCG@4", "DCG", "average rank"]


def test_the_sessions_of_the_curve_are_refused_and_those_of_learning_are_named() -> None:
    curve = cf.conditional_poisson(cf.display_counts(PARTED.part("train")))
    case: dict[str, Any] = {"shares": PARTED, "smallest": 0.1, "curve": curve}
    for log in (PARTED, PARTED.part("train"), PARTED.part("train").log()):
        message = "curve: it was estimated from sessions of part 'train', which are judged here"
        shares = PARTED if isinstance(log, type(PARTED)) else PARTED.displays()
        refuses(message, cf.decide, NEW, OLD, log=log, **case | {"shares": shares})
    (note,) = cf.decide(NEW, OLD, log=PARTED.part("test"), **case).notes
    assert note == "If the new ranker learnt from clicks on these queries, the answer is for these queries alone."
    user = cf.PositionBasedUser(SLOPE.tolist())
    (note,) = cf.decide(NEW, OLD, log=PARTED, shares=PARTED, user=user, smallest=0.1).notes
    assert note.startswith("Judged are sessions of part 'train': who learnt from them looks better here")
    counts = cf.display_counts(PARTED.part("train"))
    one_page = PARTED.part("train").subset(rankers=["A"], periods=["week 0"]).log()
    features = np.arange(QUERIES * PRODUCTS, dtype=np.float64)[:, None]
    for made in (
        cf.shrunk_power(counts),
        cf.pivot(counts),
        cf.adjacent_chain(counts),
        cf.all_pairs(counts),
        cf.click_rates(counts),
        cf.contextual_curve(counts, np.arange(QUERIES)[:, None] / QUERIES).at([0.5]),
        cf.expectation_maximisation(counts, iterations=2),
        cf.regression_em(counts, features, iterations=2),
        cf.two_towers(counts, features, steps=2),
        cf.dual_learning(one_page, features, steps=4, rng=np.random.default_rng(0)),
        counts.subset(counts.rank < 3),
        cf.display_counts(PARTED.part("train").log()),
    ):
        assert made.origin is not None
        assert made.origin.parts == ("train",)
