"""The health of a log against loops, on small logs, and the report on sound and damaged ones."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import oracles
import pandas as pd
import pytest
from event_damage import frame_of
from oracles import Event
from refusals import refuses

import cfltr_core as cf
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.event_sources import event_table, without_deprecations
from cfltr_core.logs import health, model_tests
from cfltr_core.logs import homogeneity as room
from cfltr_core.logs.homogeneity import homogeneity, pooled_homogeneity
from cfltr_core.logs.log_report import LogCheck, LogReport, check_line
from cfltr_core.logs.model_tests import (
    Redraws,
    calibrated_tail,
    curves_test,
    line_residuals,
    stopping_test,
    trust_test,
)
from cfltr_core.logs.movement import feedback_test
from cfltr_core.logs.session_checks import ignored_columns, session_checks
from cfltr_core.logs.session_sums import session_sums

SEEDS = range(6)
LISTS = pd.DataFrame([(q, 10 * q + d, 1.0) for q in range(3) for d in range(5)], columns=["query", "document", "x"])


# Slots of the documents of a page where something else stands between, by turns.
SLOTS = ([1, 3, 4, 6], [2, 3, 4, 5])


def small_log(seed: int, sessions: int = 60, *, slots: bool = False) -> list[Event]:
    """Pages of two to four of five documents, in some orders, of two rankers in three periods."""
    rng, out = np.random.default_rng(seed), []
    orders = [[rng.permutation(5)[: rng.integers(2, 5)] for _ in range(3)] for _ in range(3)]
    for session in range(sessions):
        query, ranker, period = (int(n) for n in rng.integers([3, 2, 3]))
        page = orders[query][int(rng.integers(3)) if ranker else period]
        out += [
            (session, query, 10 * query + int(d), float(k), float(rng.random() < 0.6 / k), "AB"[ranker], period)
            for k, d in zip(SLOTS[session % 2] if slots else range(1, 5), page, strict=False)
        ]
    return out


def counted(events: list[Event]) -> Events:
    return cf.read_events(frame_of(events), LISTS, split=None, gaps="keep", unknown="drop")


@pytest.mark.oracle("homogeneity.homogeneity")
@pytest.mark.parametrize("seed", SEEDS)
def test_moments_of_chi_square_are_those_of_every_way_to_deal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = [[0, 0, 0, 1, 1, 2, *rng.integers(3, size=1)], [0, 1, 1, *rng.integers(3, size=4)]]
    other = [[0, 1, 0, 1, 1], [0, 0, 1, 1, 1]]
    table = np.repeat([4, 9], [7, 5])
    test = homogeneity(table, rows + other[0], columns + other[1], count=np.ones(12))
    laws = [oracles.table_law(rows, columns), oracles.table_law(*other)]
    expected = np.sum(laws, axis=0)
    np.testing.assert_allclose([test.chi_square, test.mean, test.variance], expected, rtol=1e-12)
    assert test.tables == 2


def test_a_gamma_law_of_two_moments_is_a_chi_square_where_that_is_the_limit() -> None:
    test = homogeneity([0] * 4, [0, 0, 1, 1], [0, 1, 0, 1], count=[50_200, 49_800, 49_800, 50_200])
    assert test.p_value == pytest.approx(oracles.chi_square_tail(test.chi_square, 1), rel=1e-3)
    assert homogeneity([0, 1], [0, 0], [0, 1], count=[5, 5]).p_value == 1.0


@pytest.mark.oracle("homogeneity.pooled_homogeneity")
@pytest.mark.parametrize("seed", SEEDS)
def test_pooled_rows_are_compared_with_every_way_to_deal(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LEAST_VARIANCE", 1e-9)
    rng = np.random.default_rng(seed)
    tables = [([0, 0, 1, 1, 2, 2, 0], rng.integers(3, size=7).tolist()), ([0, 1, 1, 2, 0], [0, 1, 2, 0, 0]), ([1], [0])]
    p_values = []
    for column in range(3):
        apart, covariance = np.zeros(3), np.zeros((3, 3))
        for rows, columns in tables:
            dealt = [[sum(r == i and c == column for r, c in zip(rows, one, strict=True)) for i in range(3)]
                     for one in itertools.permutations(columns)]  # fmt: skip
            here = [sum(r == i and c == column for r, c in zip(rows, columns, strict=True)) for i in range(3)]
            mean = np.mean(dealt, axis=0)
            apart += here - mean
            for one in dealt:
                covariance += np.outer(one - mean, one - mean) / len(dealt)
        # The three sums add up to 0: any two say all.
        form = apart[:2] @ np.linalg.solve(covariance[:2, :2], apart[:2])
        p_values.append(oracles.chi_square_tail(form, 2))
    cells = [(at, r, c) for at, (rows, columns) in enumerate(tables) for r, c in zip(rows, columns, strict=True)]
    found = pooled_homogeneity(*np.array(cells).T, count=np.ones(len(cells)))
    assert found == pytest.approx(min(1.0, 3 * min(p_values)), rel=1e-9)


def test_rows_of_few_cases_are_left_out_of_pooled_sums() -> None:
    # One case of row 2, in column 1: its sum has a variance below ten, those of rows 0 and 1 are as chance has them.
    cells = [0, 0, 0, 0, 0], [0, 0, 1, 1, 2], [0, 1, 0, 1, 1]
    assert pooled_homogeneity(*cells, count=[99, 1, 99, 1, 1]) == 1.0
    assert pooled_homogeneity(*cells, count=[90, 90, 90, 90, 1]) > 0.9
    assert pooled_homogeneity(*cells, count=[130, 90, 90, 130, 1]) < 0.001


@pytest.mark.oracle("session_sums.session_sums")
@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_sums_over_sessions_and_pages_are_those_of_a_loop(seed: int, slots: bool) -> None:
    log = small_log(seed, slots=slots)
    # A session with a document that has no features is left out.
    read = [*log, (60, 0, 999, 1.0, 1.0, "A", 0), (60, 0, 0, 2.0, 1.0, "A", 0)]
    with without_deprecations(), event_table(frame_of(read)) as table:
        sums = session_sums(table, counted(read))
    expected = oracles.session_health(log)
    total = sums.groups.sum(numeric_only=True)
    np.testing.assert_allclose([total[name] for name in expected], list(expected.values()), rtol=1e-9, atol=1e-9)
    halves, pages = oracles.page_halves(log), sums.pages
    assert pages is not None
    names, found = LISTS["document"].to_numpy(), {}
    for number in range(pages.n_pages):
        at = pages.page == number
        key = (int(pages.query[at][0]), *np.column_stack([names[pages.document[at]], pages.rank[at]]).ravel().tolist())
        found[key] = np.vstack([pages.impressions[at][:1], pages.clicks[at]]).T.tolist()
    assert found == halves


def test_a_page_of_one_session_is_compared_with_none() -> None:
    log = small_log(0)
    with without_deprecations(), event_table(frame_of([row for row in log if row[0] == 0])) as table:
        assert session_sums(table, counted(log)).pages is None


@pytest.mark.oracle("movement.feedback_test")
@pytest.mark.parametrize("seed", SEEDS)
def test_feedback_is_that_of_a_loop(seed: int) -> None:
    log = small_log(seed, slots=seed % 2 > 0)
    events = counted(log)
    test = feedback_test(events)
    expected = oracles.feedback(log, int(events.rank.max()) + 1)
    assert test.z == pytest.approx(expected, rel=1e-9)
    assert test.p_value == pytest.approx(math.erfc(expected / math.sqrt(2)) / 2, rel=1e-9)


def redraws(alpha: float = 0.0) -> Redraws:
    return Redraws(number=3, alpha=alpha, rng=np.random.default_rng(0))


@pytest.mark.oracle("model_tests.calibrated_tail")
@pytest.mark.parametrize(("statistic", "df", "queries"), [(20.0, 3, 400), (9.0, 1, 60)])
def test_redraws_put_the_number_of_queries_so_that_the_mean_is_right(statistic: float, df: int, queries: int) -> None:
    def again() -> float:
        return df + 1.5

    p_value, worth = calibrated_tail(statistic, df, queries, again=again, redraws=redraws(alpha=1.0))
    assert worth == pytest.approx(oracles.queries_of_mean(df + 1.5, df), rel=1e-6)
    assert p_value == pytest.approx(oracles.hotelling_tail(statistic, df, worth), rel=1e-5)

    def refused() -> float:
        raise ValueError("no")

    assert calibrated_tail(statistic, df, queries, again=refused, redraws=redraws())[1] == queries
    strict = redraws(alpha=1.0)
    refuses("counts: the log is too small", calibrated_tail, statistic, df, queries, again=refused, redraws=strict)


RANKERS = [cf.DeterministicPolicy(rank * 60, range(0, 181, 3)) for rank in ([1, 2, 3], [2, 3, 1], [3, 1, 2])]
POLICY, USER = cf.MixturePolicy(RANKERS, [0.4, 0.3, 0.3]), cf.PositionBasedUser([1, 1 / 2, 1 / 3], epsilon_minus=0.1)
GIVEN = {"relevance": [1, 0, 1, 0, 0, 1] * 30, "sessions": [150] * 60}


@pytest.mark.oracle("model_tests.trust_test", "model_tests.curves_test", "model_tests.stopping_test")
def test_model_tests_are_walds_of_their_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    counts = cf.display_counts(cf.simulate_clicks(POLICY, USER, rng=rng, **GIVEN))
    curve, test = cf.trust_bias(counts), trust_test(counts, redraws=redraws())
    statistic = oracles.wald(curve.intercept[1:], curve.covariance[4:, 4:])
    assert test.p_value == pytest.approx(oracles.hotelling_tail(statistic, 2, 60), rel=1e-6)
    assert test.size in curve.intercept
    halves = [counts.document % 3 == 0, counts.document < 90]
    found = curves_test(counts, [*halves, counts.document < 0], redraws=redraws())
    single = [cf.same_curve(counts, half) for half in halves]
    smallest = min(oracles.hotelling_tail(each.statistic, each.df, each.queries) for each in single)
    assert found.p_value == pytest.approx(min(1.0, 2 * smallest), rel=1e-6)
    pages = cf.simulate_pages(POLICY, USER, rng=rng, **GIVEN)
    above, stops = cf.clicks_above_test(pages), stopping_test(pages, redraws=redraws())
    assert stops.p_value == pytest.approx(oracles.hotelling_tail(above.z**2, 1, above.queries), rel=1e-5)
    assert stops.size == above.slope
    refuses("pages: no page was shown in two sessions", stopping_test, None, redraws=redraws())
    refuses("half: expected True or False", curves_test, counts, [counts.document < 0], redraws=redraws())
    # Logs that are drawn anew with z = −2 have the mean z² = 4 of 11/3 queries.
    monkeypatch.setattr(model_tests, "clicks_above_test", lambda pages: replace(above, z=-2.0))
    assert stopping_test(pages, redraws=redraws(alpha=1.0)).queries == pytest.approx(11 / 3)


@pytest.mark.oracle("model_tests.line_residuals")
def test_under_trust_the_residuals_of_lines_are_tested() -> None:
    counts = cf.display_counts(cf.simulate_clicks(POLICY, USER, rng=np.random.default_rng(2), **GIVEN))
    curve, half = cf.trust_bias(counts), counts.document % 3 == 0
    unlinked = replace(curve, slope=np.array([1.0, 0.5, np.nan]), intercept=np.array([0.0, 0.1, np.nan]))
    for line in (curve, unlinked):
        terms = list(zip(counts.stratum, counts.rank, counts.impressions, counts.clicks, strict=True))
        expected = oracles.line_residuals(terms, line.slope, line.intercept)
        np.testing.assert_allclose(np.transpose(line_residuals(counts, line)), expected, atol=1e-12)
    by_query = np.zeros((60, 3))
    for query, rank, mine, off in zip(counts.cluster, counts.rank, half, line_residuals(counts, curve)[0], strict=True):
        by_query[query, rank - 1] += mine * off
    apart = by_query - by_query.mean(axis=0)
    spread = sum(np.outer(one, one) for one in apart[:, 1:]) * 60 / 59
    tail = oracles.hotelling_tail(oracles.wald(by_query.sum(axis=0)[1:], spread), 2, 60)
    found = curves_test(counts, [half], redraws=redraws(), trust=True)
    assert found.p_value == pytest.approx(tail, rel=1e-6)
    few = counts.subset(counts.cluster < 2)
    refuses("counts: 2 queries are too few", curves_test, few, [few.document % 3 == 0], redraws=redraws(), trust=True)


def test_a_half_are_the_documents_that_a_ranker_showed_high(monkeypatch: pytest.MonkeyPatch) -> None:
    log, given = small_log(0), []

    def taken(counts: cf.DisplayCounts, halves: list, **_: object) -> None:
        given.append((LISTS["document"].to_numpy()[counts.document], halves))
        raise ValueError("no")

    monkeypatch.setattr(health, "curves_test", taken)
    cf.check_log(counted(log), rng=np.random.default_rng(0))
    ((documents, halves),) = given
    rankers = sorted("AB", key=lambda name: -len({row[0] for row in log if row[5] == name}))
    for ranker, half in zip(rankers, halves, strict=True):
        ranks = [[row[3] for row in log if row[5] == ranker and row[2] == document] for document in documents]
        mean = [sum(each) / len(each) if each else 5.0 for each in ranks]  # what it never showed is below all pages
        assert half.tolist() == [one <= np.median(mean) for one in mean]


TRUSTING = cf.TrustUser([1, 1 / 2, 1 / 3], epsilon_plus=0.9, epsilon_minus=[0.5, 0.3, 0.1])


@pytest.mark.parametrize(("hidden", "expected"), [(0.0, "green"), (0.4, "red")])
def test_trust_taken_as_given_asks_for_one_line(hidden: float, expected: str) -> None:
    given = GIVEN | {"sessions": [3_000] * 60}
    log = cf.simulate_clicks(POLICY, TRUSTING, rng=np.random.default_rng(3), **given)
    # A part of the clicks on the first document of a query does not come where it stands third.
    lost = (log.document % 3 == 0) & (log.rank == 3)
    clicks = np.where(lost, np.round(log.clicks * (1 - hidden)), log.clicks).astype(np.int64)
    counts = cf.display_counts(replace(log, clicks=clicks))
    halves = [np.isin(counts.document % 6, [0, 2, 5]), counts.document % 3 == 0]  # the relevant ones; the first ones
    strict = replace(redraws(alpha=0.003), number=20)
    assert curves_test(counts, halves, redraws=strict).p_value < 0.003
    test = curves_test(counts, halves, redraws=strict, trust=True)
    assert ("red" if test.p_value < 0.003 else "green") == expected
    assert test.size > 1


def shop(seed: int, sessions: int = 6_000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A sound log of 40 queries: three rankers, three periods, pages of three of four documents."""
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(sessions):
        query, ranker, period = (int(n) for n in rng.integers([40, 3, 3]))
        page = np.roll([0, 1, 2, 3], ranker + query)[:3]
        clicks = rng.random(3) < np.array([0.9, 0.1, 0.6, 0.3])[page] / [1, 2, 3]
        name = ("old", "new", "third")[ranker]
        rows += [
            (s, query, int(d), k, int(c), name, period)
            for k, (d, c) in enumerate(zip(page, clicks, strict=True), start=1)
        ]
    names = ["session", "query", "document", "position", "clicked", "ranker", "period"]
    features = pd.DataFrame([(q, d, 1.0) for q in range(40) for d in range(4)], columns=["query", "document", "x"])
    return pd.DataFrame(rows, columns=names), features


def status(rows: pd.DataFrame, features: pd.DataFrame, **given: object) -> dict[str, str]:
    events = cf.read_events(rows, features, split=None)
    report = cf.check_log(events, rows, rng=np.random.default_rng(0), **given)
    return dict(zip(report.frame["check"], report.frame["status"], strict=True))


@pytest.fixture(scope="module")
def sound() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str]]:
    rows, features = shop(0)
    return rows, features, status(rows, features)


def filtered(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows.groupby("session").clicked.transform("sum") > 0) | (rows.session % 4 == 0)]


def cut(rows: pd.DataFrame) -> pd.DataFrame:
    last = (rows.position * rows.clicked).groupby(rows.session).transform("max")
    return rows[(rows.position <= last) | (last == 0) | (rows.session % 3 > 0)]


def by_query(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[(rows["query"] % 2 == 0) | (rows.ranker != "new")]


def rarer_by_query(rows: pd.DataFrame) -> pd.DataFrame:
    """In every query some sessions are served by each."""
    return rows[(rows["query"] % 2 == 0) | (rows.ranker != "new") | (rows.session % 2 == 0)]


def other_taste(rows: pd.DataFrame) -> pd.DataFrame:
    lost = (rows.period == 2) & (rows.document == 0) & (rows.session % 2 == 0)
    return rows.assign(clicked=rows.clicked.where(~lost, 0))


def robots(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(clicked=rows.clicked.where(rows.session % 25 > 0, 1))


def stopping(rows: pd.DataFrame) -> pd.DataFrame:
    before = rows.groupby("session").clicked.cumsum() - rows.clicked
    return rows.assign(clicked=rows.clicked.where(before == 0, 0))


@pytest.mark.parametrize(
    ("damage", "line", "expected"),
    [
        (filtered, "pages without a click", "red"),
        (cut, "rows missing", "red"),
        (by_query, "choice of the ranker", "red"),
        (rarer_by_query, "choice of the ranker", "amber"),
        (other_taste, "taste over time", "red"),
        (robots, "bots", "red"),
        (stopping, "clicks above", "red"),
    ],
)
def test_each_damage_turns_its_line(
    sound: tuple, damage: Callable[..., pd.DataFrame], line: str, expected: str
) -> None:
    rows, features, before = sound
    assert set(before.values()) <= {"green", "amber"}
    assert before[line] == "green"
    assert status(damage(rows), features, redraws=20)[line] == expected


def ignored_line(rows: pd.DataFrame, features: pd.DataFrame) -> LogCheck:
    events = cf.read_events(rows, features, split=None)
    with without_deprecations(), event_table(rows, rest=True) as table:
        return ignored_columns(table, events, alpha=0.003)


def apart(rows: pd.DataFrame, ranker: str, column: str) -> float:
    """½ Σ_v |Σ_strata (n_vr − n_v n_r/n)| over Σ_strata n_r (1 − n_r/n), session by session."""
    pages = rows[rows.position == 1][["query", "period", "ranker", column]].values.tolist()
    moved: dict[object, float] = {}
    mixed = 0.0
    for stratum in {(query, period) for query, period, _, _ in pages}:
        here = [(served, value) for query, period, served, value in pages if (query, period) == stratum]
        mine = sum(served == ranker for served, _ in here)
        mixed += mine * (1 - mine / len(here))
        for value in {value for _, value in here}:
            of_value = sum(other == value for _, other in here)
            gap = sum(pair == (ranker, value) for pair in here) - of_value * mine / len(here)
            moved[value] = moved.get(value, 0.0) + gap
    return sum(map(abs, moved.values())) / 2 / mixed


def test_a_column_that_chose_the_ranker_is_red_and_one_that_hardly_did_amber() -> None:
    rows, features = shop(1, sessions=12_000)
    told = rows.assign(device=np.where((rows.ranker == "new") & (rows.session % 3 > 0), "phone", "desk"))
    line = ignored_line(told, features)
    assert (line.status, line.p_value < 0.003) == ("red", True)
    share = max(apart(told, ranker, "device") for ranker in ("old", "new", "third"))
    assert 0.6 < share == pytest.approx(apart(told, "new", "device"))
    assert f"'device' had a say in which ranker served: {share:.0%} of the sessions of new would" in line.remedy
    arms = ignored_line(rows.assign(arm=rows.ranker.str.upper()), features)
    assert arms.status == "red"
    assert "100% of the sessions" in arms.remedy
    # The marks of few sessions follow the ranker, and are far beyond chance.
    few = told.assign(device=np.where((rows.ranker == "new") & (rows.session % 50 == 0), "phone", "desk"))
    line = ignored_line(few, features)
    assert (line.status, line.p_value < 0.003) == ("amber", True)
    assert apart(few, "new", "device") < 0.03
    # A say that no single query shows, in one direction.
    rng = np.random.default_rng(8)
    small = rows.assign(
        device=rows.session.map(dict(enumerate(rng.random(12_000)))) < 0.4 + 0.06 * (rows.ranker == "new")
    )
    assert ignored_line(small, features).status == "red"
    by_chance = rows.assign(device=rows.session.map(dict(enumerate(np.random.default_rng(7).integers(2, size=12_000)))))
    assert ignored_line(by_chance, features).status == "green"


def test_what_ignored_columns_might_be_is_said() -> None:
    rows, features = shop(1, sessions=3_000)
    bare = rows.drop(columns="period").assign(day="2026-01-01")
    assert status(bare, features)["ignored columns"] == "amber"
    assert status(bare, features)["taste over time"] == "amber"


def test_without_rows_five_lines_stay_unchecked_and_one_ranker_is_named() -> None:
    rows, features = shop(2, sessions=900)
    events = cf.read_events(rows[rows.ranker == "old"], features, split=None)
    report = cf.check_log(events, rng=np.random.default_rng(0))
    assert (report.frame["value"] == "Not checked.").sum() == 5
    assert report.red == ("links of ranks",)
    found = report.frame.set_index("check")["status"]
    assert (found["choice of the ranker"], found["links of ranks"], report.worst) == ("amber", "red", "red")
    assert "No document moves." in report.frame["value"].tolist()


def test_a_log_of_one_position_has_no_ranks_to_link() -> None:
    rows, features = shop(2, sessions=900)
    found = status(rows[rows.position == 1], features)
    assert found["links of ranks"] == "amber"


def test_bad_arguments_are_named() -> None:
    rows, features = shop(3, sessions=200)
    events, rng = cf.read_events(rows, features, split=None), np.random.default_rng(0)
    refuses("events is int", cf.check_log, 1, rng=rng)
    refuses("rng is int", cf.check_log, events, rng=0)
    refuses("redraws is 1", cf.check_log, events, rng=rng, redraws=1)
    taken = cf.check_log(events, rows, rng=rng, trust=True).frame.set_index("check")
    assert taken.loc["trust in high ranks", "value"].startswith("Taken as given")
    refuses("level is 1", cf.check_log, events, rng=rng, level=1)
    refuses("source: it has 100 sessions, but", cf.check_log, events, rows[rows.session < 100], rng=rng)


def test_a_report_is_a_table_with_the_worst_first() -> None:
    lines = [LogCheck(check="a", status="green", value="<fine>"), LogCheck(check="b", status="red", value="bad.")]
    report = LogReport(lines=tuple(lines), level=0.03)
    assert repr(report).index("RED    b: bad.") < repr(report).index("green  a: <fine>")
    html = report._repr_html_()
    assert html.index("<td style='text-align: left'>b</td>") < html.index("&lt;fine&gt;")
    assert (report.worst, LogReport(lines=(lines[0],), level=0.03).worst) == ("red", "green")
    assert repr(LogReport(lines=(lines[0],), level=0.03)).startswith("All 1 checks are green.")
    assert check_line("a", 0.001, alpha=0.003, value="v", remedy="r", status="amber").remedy == "r"
    assert session_checks.__doc__
