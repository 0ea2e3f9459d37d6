"""What chapter 2 simulates: many logs at once against loops over one of them, and formulas against loops."""

from math import comb, log2, sqrt

import numpy as np
import pandas as pd
import pytest

from cfltr_book import Run
from cfltr_book.experiments import ch02

RUN = Run("smoke", "digits", 3)
W = ch02.world(RUN, 3)


def some_logs(eta: float = 1.5) -> tuple[ch02.Logs, np.ndarray]:
    """Five logs of seven queries each, some of them asked more often than others."""
    rng = RUN.rng(3, 290)
    queries, sessions = rng.integers(W.queries.n_queries, size=(5, 7)), rng.integers(0, 9, size=(5, 7))
    return ch02.Logs(W, eta, queries, sessions, rng), queries


def terms_of(logs: ch02.Logs, log: int, row: int) -> list[tuple[int, int, float]]:
    """(document, clicks, propensity) of each relevant document of one row."""
    at = np.flatnonzero(logs.row == log * logs.sessions.shape[1] + row)
    return [(int(logs.document[k]), int(logs.clicks[k]), float(logs.propensity[k])) for k in at]


def test_the_truth_is_dcg_of_the_labels() -> None:
    total = 0.0
    for start, end in zip(W.queries.offsets[:-1], W.queries.offsets[1:], strict=True):
        for document in range(start, end):
            total -= W.new.lam[document] * W.relevance[document]
    assert W.truth(W.new) == pytest.approx(total / W.queries.n_queries)
    assert W.truth(W.new - W.old) == pytest.approx(W.truth(W.new) - W.truth(W.old))


def test_each_row_holds_the_relevant_documents_of_its_query() -> None:
    logs, queries = some_logs()
    for log in range(5):
        for row in range(7):
            start, end = W.queries.offsets[queries[log, row] : queries[log, row] + 2]
            found = terms_of(logs, log, row)
            assert [document for document, _, _ in found] == [d for d in range(start, end) if W.relevance[d]]
            for document, clicks, propensity in found:
                assert propensity == pytest.approx(float(W.policy.displayed_rank[document]) ** -1.5)
                assert 0 <= clicks <= logs.sessions[log, row]


def test_means_and_intervals_of_many_logs_are_sums_over_their_queries() -> None:
    logs, _ = some_logs()
    change = (W.old - W.new).lam
    values = change[logs.document] / logs.propensity
    for log in range(5):
        totals = [sum(c * change[d] / p for d, c, p in terms_of(logs, log, row)) for row in range(7)]
        sessions = logs.sessions[log]
        mean = sum(totals) / sessions.sum()
        assert logs.mean(values)[log] == pytest.approx(mean)
        units = sum(int(n > 0) for n in sessions)
        square = sum((total - mean * n) ** 2 for total, n in zip(totals, sessions, strict=True))
        error = sqrt(units / (units - 1) * square) / sessions.sum()
        for shift, inside in ((1.9, True), (-1.9, True), (2.1, False), (-2.1, False)):
            assert ch02.covers(logs, values, mean + shift * error)[log] == inside


def test_expected_effective_clicks_deal_the_clicks_to_all_displays() -> None:
    logs, queries = some_logs()
    came, expected = ch02.effective_clicks(W, 1.5, logs, queries)
    change = abs((W.new - W.old).lam)
    for log in range(5):
        clicks = [term for row in range(7) for term in terms_of(logs, log, row)]
        plain = sum(c * change[d] / p for d, c, p in clicks)
        squares = sum(c * (change[d] / p) ** 2 for d, c, p in clicks)
        assert came[log] == pytest.approx(plain**2 / squares)
        shown = []
        for row in range(7):
            start, end = W.queries.offsets[queries[log, row] : queries[log, row] + 2]
            for d in range(start, end):
                p = float(W.policy.displayed_rank[d]) ** -1.5
                shown.append((logs.sessions[log, row] * p, change[d] / p))
        dealt = sum(c for _, c, _ in clicks) / sum(looks for looks, _ in shown)
        plain = sum(dealt * looks * weight for looks, weight in shown)
        squares = sum(dealt * looks * weight**2 for looks, weight in shown)
        assert expected[log] == pytest.approx(plain**2 / squares)


def test_coec_divides_each_click_by_the_click_rate_of_its_rank() -> None:
    logs, queries = some_logs(eta=0.5)
    gain = -W.new.lam
    found = ch02.coec(W, logs, queries, gain)
    for log in range(5):
        shown, clicked, gained = {}, {}, {}
        for row in range(7):
            start, end = W.queries.offsets[queries[log, row] : queries[log, row] + 2]
            for rank in range(1, end - start + 1):
                shown[rank] = shown.get(rank, 0) + logs.sessions[log, row]
            for d, c, _ in terms_of(logs, log, row):
                rank = int(W.policy.displayed_rank[d])
                clicked[rank] = clicked.get(rank, 0) + c
                gained[rank] = gained.get(rank, 0) + c * gain[d]
        first = clicked.get(1, 0) / shown[1]
        total = sum(gained[r] * first / (clicked[r] / shown[r]) for r in clicked if clicked[r])
        assert found[log] == pytest.approx(total / logs.sessions[log].sum())


def test_a_long_log_comes_to_what_coec_is_in_the_long_run() -> None:
    n = W.queries.n_queries
    queries, sessions = np.arange(n)[None], np.full((1, n), 10**6)
    gain = -W.new.lam
    found = ch02.coec(W, ch02.Logs(W, 1.0, queries, sessions, RUN.rng(3, 291)), queries, gain)[0]
    assert found == pytest.approx(ch02.coec_in_the_long_run(W, gain), rel=2e-2)


@pytest.mark.parametrize(
    ("frame", "key", "rows"),
    [
        (ch02.errors, ["seed", "clicks", "method"], 2 * 4 * 3),
        (ch02.caps, ["seed", "eta", "clicks", "cap"], None),
        (ch02.coverage_groups, ["sorted_by", "regime", "start"], None),
    ],
)
def test_a_table_has_one_row_for_each_key(frame, key: list[str], rows: int | None) -> None:  # type: ignore[no-untyped-def]
    found = frame(RUN)
    assert isinstance(found, pd.DataFrame)
    assert len(found) == len(found[key].drop_duplicates()) == (rows or len(found))


def test_one_session_a_query_where_queries_do_not_come_back() -> None:
    rng = RUN.rng(3, 292)
    for regime, rows in (("one session a query", 30), ("queries come back", W.queries.n_queries)):
        queries, sessions = ch02.asked_queries(W, regime, 30, 4, rng)
        assert queries.shape == sessions.shape == (4, rows)
        assert sessions.sum(axis=1).tolist() == [30] * 4
    frame = ch02.coverage(RUN)
    assert frame.groupby(["seed", "regime", "eta", "clicks"]).size().tolist() == [20] * (2 * 3 * (4 + 3))


def test_popular_queries_are_asked_as_often_as_zipf_says() -> None:
    n = W.queries.n_queries
    sessions = ch02.asked_queries(W, "popular queries", 10**6, 1, RUN.rng(3, 293))[1][0]
    expected = 10**6 / (np.arange(1, n + 1) * sum(1 / k for k in range(1, n + 1)))
    assert np.abs(sessions - expected).max() < 5 * np.sqrt(expected.max())


def test_groups_hold_the_logs_between_two_marks() -> None:
    frame, groups = ch02.coverage(RUN), ch02.coverage_groups(RUN)
    row = groups[(groups["sorted_by"] == "expected") & (groups["start"] == 25)].iloc[0]
    inside = frame[(frame["regime"] == row["regime"]) & (frame["expected"] >= 25) & (frame["expected"] < 50)]
    assert (row["logs"], row["covered"]) == (len(inside), inside["covered"].mean())
    row = groups[(groups["sorted_by"] == "came") & (groups["start"] == 1)].iloc[0]
    ratio = frame["came"] / frame["expected"]
    inside = frame[(frame["regime"] == row["regime"]) & (ratio >= 1) & (ratio < 1.4) & (frame["expected"] < 400)]
    assert (row["logs"], row["covered"]) == (len(inside), inside["covered"].mean())


def test_a_cap_takes_from_every_document_seen_less_often() -> None:
    """Bias by a loop over the relevant documents; the largest cap clips nothing."""
    frame = ch02.caps(RUN).query("seed == 3 and eta == 1").set_index(["cap", "clicks"])
    bias = 0.0
    for document in W.relevant:
        rank = W.policy.displayed_rank[document]
        bias -= (W.new - W.old).lam[document] * (min(rank, 4) / rank - 1)
    assert frame.loc[(4, 500), "bias"] == pytest.approx(bias / W.queries.n_queries / abs(W.truth(W.new - W.old)))
    for _, rows in ch02.caps(RUN).groupby("eta"):
        biased = rows.groupby("cap")["bias"].any()
        assert biased.tolist() == [True] * (len(biased) - 1) + [False]
    # Four times the sessions halve the standard deviation.
    ratio = ch02.sessions_for(W, 1.0, 5_000) / ch02.sessions_for(W, 1.0, 500)
    assert frame.loc[(4, 500), "sd"] / frame.loc[(4, 5_000), "sd"] == pytest.approx(sqrt(ratio))


def test_the_month_is_a_log_of_the_first_seed() -> None:
    log = ch02.month(RUN)
    assert np.array_equal(log.rank, W.policy.displayed_rank[log.document])
    assert log.propensity == pytest.approx(1 / log.rank)
    assert log.n_clicks == pytest.approx(5_000, rel=0.1)


def test_without_noise_one_click_is_enough() -> None:
    """Product C of the shop in six sessions: each estimate is right on average, and one click varies less than IPS."""
    p, gain = 1 / 3, 1 / log2(2)
    chance = [comb(6, k) * p**k * (1 - p) ** (6 - k) for k in range(7)]
    ips = [gain * k / p / 6 for k in range(7)]
    once = [gain * (k > 0) / (1 - (1 - p) ** 6) for k in range(7)]
    mean = [sum(c * x for c, x in zip(chance, values, strict=True)) for values in (ips, once)]
    assert mean == pytest.approx([gain, gain], abs=1e-12)
    ips_spread, once_spread = (
        sum(c * (x - gain) ** 2 for c, x in zip(chance, values, strict=True)) for values in (ips, once)
    )
    assert once_spread < 0.7 * ips_spread


def test_a_statistic_is_taken_of_the_rows_of_each_seed() -> None:
    frame = pd.DataFrame({"seed": [4, 3, 4, 3], "value": [1.0, 5.0, 2.0, 7.0]})
    assert ch02.by_seed(frame, lambda rows: rows["value"].sum()).tolist() == [12.0, 3.0]
