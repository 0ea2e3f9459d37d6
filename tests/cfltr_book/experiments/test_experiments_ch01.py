"""What chapter 1 simulates: tidy tables, and literal loops over one log and one order."""

from itertools import combinations
from math import log2

import numpy as np
import pandas as pd
import pytest

from cfltr_book import Run
from cfltr_book.experiments import ch01

RUN = Run("smoke", "digits", 3)


def test_three_estimates_are_sums_over_the_documents_of_a_log() -> None:
    w = ch01.world(RUN, 3)
    log = RUN.simulate(w.policy, ch01.user_with(1.0), relevance=w.relevance, n_clicks=500, rng=RUN.rng(3, 190))
    found = ch01.estimates(log, w.lam)
    for contender in range(10):
        naive = ips = ever = 0.0
        for document, clicks, propensity in zip(log.document, log.clicks, log.propensity, strict=True):
            gain = -w.lam[contender, document]
            naive += gain * clicks / log.n_sessions
            ips += gain * clicks / propensity / log.n_sessions
            ever += gain * (clicks > 0) / w.queries.n_queries
        assert found[:, contender] == pytest.approx([naive, ips, ever], abs=1e-12)


def test_the_truth_is_dcg_of_the_labels() -> None:
    """The scores of the first new ranker are sorted query by query; it has no ties."""
    w = ch01.world(RUN, 3)
    total = 0.0
    for start, end in zip(w.queries.offsets[:-1], w.queries.offsets[1:], strict=True):
        order = np.argsort(-w.new["new 1%"][start:end])
        total += sum(w.relevance[start + d] / log2(1 + place) for place, d in enumerate(order, start=1))
    assert w.truth[0] == pytest.approx(total / w.queries.n_queries)
    assert ch01.standardised(3 * w.new["new 1%"] + 1) == pytest.approx(w.new["new 1%"])
    assert list(w.weights) == [*w.new, *(f"blend of {name}" for name in w.new)]
    assert np.array_equal([weight.lam for weight in w.weights.values()], w.lam)
    assert ch01.standardised(np.ones(4)).tolist() == [0, 0, 0, 0]


def test_kendalls_tau_counts_pairs() -> None:
    truth, estimate = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 2.0 + 1e-14])
    agree = 0
    for i, j in combinations(range(4), 2):
        difference = round(estimate[i] - estimate[j], 12)
        agree += 0 if difference == 0 else 1 if (difference > 0) == (truth[i] > truth[j]) else -1
    assert ch01.tau(estimate, truth) == agree / 6
    assert ch01.blends_preferred(np.array([1, 2, 3, 4, 5, 2, 2, 4, 0, 6])) == 3 / 5


@pytest.mark.parametrize(
    ("frame", "key", "rows"),
    [
        (ch01.orders, ["seed", "eta", "noise", "clicks", "method"], 2 * 2 * 3),
        (ch01.orders_by_size, ["seed", "eta", "noise", "clicks", "method"], 2 * 2 * 2 * 3),
        (ch01.wrong_curves, ["seed", "assumed"], 2 * 7),
        (ch01.blend_differences, ["eta", "ranker", "method"], 2 * 5 * 3),
    ],
)
def test_a_table_has_one_row_for_each_key_and_is_computed_once(frame, key: list[str], rows: int) -> None:  # type: ignore[no-untyped-def]
    found = frame(RUN)
    assert isinstance(found, pd.DataFrame)
    assert len(found) == len(found[key].drop_duplicates()) == rows
    assert frame(Run("smoke", "digits", 3)) is found


def test_assuming_no_bias_is_the_naive_estimate() -> None:
    """τ with every weight 1 is that of the clicks alone."""
    w = ch01.world(RUN, 4)
    rng = RUN.rng(4, 106)
    clicks = ch01.clicks_of_a_log(RUN)
    log = RUN.simulate(w.policy, ch01.user_with(1.0), relevance=w.relevance, n_clicks=clicks, rng=rng)
    frame = ch01.wrong_curves(RUN).query("seed == 4").set_index("assumed")
    assert frame.loc[0.0, "tau"] == ch01.tau(ch01.estimates(log, w.lam)[0], w.truth)
    assert frame.loc[1.0, "tau"] == ch01.tau(ch01.estimates(log, w.lam)[1], w.truth)
    assert set(frame["truly"]) == {ch01.blends_preferred(w.truth)}


def test_without_bias_the_blends_differ_by_counting_as_by_ips() -> None:
    """And the truth is an interval of no width, the difference of two true values."""
    frame = ch01.blend_differences(RUN).query("eta == 0").pivot(index="ranker", columns="method")
    for end in ("difference", "low", "high"):
        assert np.allclose(frame[end]["naive"], frame[end]["ips"], rtol=0, atol=1e-12)
        truth = ch01.world(RUN, 3).truth
        assert frame[end]["truth"].loc[list(ch01.NEW)].tolist() == (truth[5:] - truth[:5]).tolist()
    assert (frame["low"]["ips"] < frame["difference"]["ips"]).all()
    assert (frame["difference"]["ips"] < frame["high"]["ips"]).all()


def test_a_difference_is_a_sum_over_the_clicks_of_one_log() -> None:
    """Of the last blend and the new ranker inside it, on the same draws."""
    w = ch01.world(RUN, 3)
    log = RUN.simulate(w.policy, ch01.user_with(1.0), relevance=w.relevance, n_clicks=500, rng=RUN.rng(3, 103))
    row = ch01.blend_differences(RUN).query("eta == 1 and method == 'ips'").iloc[-1]
    gain = -(w.lam[9] - w.lam[4])[log.document] / log.propensity
    assert row["difference"] == pytest.approx(gain @ log.clicks / log.n_sessions, abs=1e-12)


def test_a_wrong_curve_is_tried_on_the_logs_that_judge_by_size() -> None:
    by_size = ch01.orders_by_size(RUN).query("noise == 0 and method == 'ips' and clicks == @ch01.clicks_of_a_log(@RUN)")
    right = ch01.wrong_curves(RUN).query("assumed == 1")
    assert right["tau"].tolist() == by_size["tau"].tolist()


def test_a_random_logger_draws_counting_towards_its_own_blends() -> None:
    table = ch01.random_logger(RUN)
    assert table.index.tolist() == ["the same contenders", "blends made anew"]
    assert table["τ of counting"].iloc[0] > table["τ of counting"].iloc[1]
    assert table["truly better"].iloc[0] == ch01.blends_preferred(ch01.world(RUN, 3).truth)


def test_the_page_has_a_mark_for_each_product_and_customer() -> None:
    examined = np.array([[True, True, False], [True, False, True]])
    clicked = np.array([[True, False, False], [False, False, True]])
    marks = ch01.draw_page(examined, clicked).axes[0].collections
    assert {mark.get_label(): mark.get_offsets().tolist() for mark in marks} == {
        "did not look": [[1, -2], [2, -1]],
        "looked": [[1, -1], [2, 0]],
        "looked and clicked": [[1, 0], [2, -2]],
    }
