"""What chapter 10 simulates: curves, gains and orders by hand, and the names that the cells of its tables have."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch10
from cfltr_book.reporting.tables import Experiment

RUN = Run("smoke", "digits", 3)


@pytest.fixture(scope="module")
def small() -> ch10.World:
    return ch10.world(RUN, 3)


def test_an_ab_test_shows_the_pages_of_three_rankers(small: ch10.World) -> None:
    assert [p for p, _ in small.ab_test.displays(0)] == pytest.approx([1 / 3] * 3)
    shown = {policy.displayed_rank.tobytes() for policy in small.pages}
    assert len(shown) == 3
    assert all(policy.displayed_rank.max() == ch10.K for policy in small.pages)
    logs = ch10.logs_of(small, 300, RUN.rng(3, 1090))
    assert [log.n_sessions for log in logs] == [100, 100, 100]
    (one,) = ch10.logs_of(small, 300, RUN.rng(3, 1090), pages=small.pages[1:2], reader=cf.PositionBasedUser([1.0] * 10))
    assert one.n_sessions == 300
    assert set(one.propensity) == {1.0}
    assert np.array_equal(one.rank, small.pages[1].displayed_rank[one.document])


def test_rankers_of_a_few_labels_score_well_and_not_alike(small: ch10.World) -> None:
    found = ch10.scorers(RUN, 3, 2, RUN.rng(3, 1093))
    queries = small.queries
    for scores in found:
        assert scores.shape == (queries.n_docs,)
        assert ch10.right_order(scores, queries.binary, queries.offsets) > 0.5
        page = ch10.ranked(scores, queries, RUN.rng(3, 1094)).displayed_rank
        assert (page[: queries.offsets[1]].argmax(), page.max()) == (
            scores[: queries.offsets[1]].argsort()[-10],
            ch10.K,
        )
    assert not np.array_equal(*found)


def test_uphill_is_the_slope_of_a_log_softmax() -> None:
    c, v = np.array([[2.0, 0.0, 1.0]]), np.array([[0.3, -0.5, 1.0]])

    def total(v: np.ndarray) -> float:
        return float((c * (v - np.log(np.exp(v).sum()))).sum())

    slope = [(total(v + e) - total(v - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    assert ch10.uphill(c, v)[0] == pytest.approx(slope, abs=1e-6)


def test_a_curve_has_ten_ranks_or_is_unknown() -> None:
    class Found:
        curve = np.array([1.0, 0.5])

    def refuse() -> None:
        raise ValueError("no answer")

    known = ch10.attempt(Found)
    assert known[:2].tolist() == [1, 0.5]
    assert np.isnan(known[2:]).all()
    assert np.isnan(ch10.attempt(refuse)).all()
    assert ch10.error_of(ch10.TRUTH) == 0
    assert ch10.error_of(known) == pytest.approx(8 / 9)


def test_curves_are_read_from_the_names_of_columns() -> None:
    curves = {"one: a": ch10.TRUTH, "two": np.full(10, np.nan)}
    found = ch10.curves_of(pd.DataFrame([{"seed": 3, **ch10.by_rank(curves), "else": 1.0}] * 2))
    assert list(found) == list(curves)
    for name, curve in curves.items():
        np.testing.assert_array_equal(found[name], [curve, curve])


def test_pairs_in_the_right_order_are_counted() -> None:
    score, liked = np.array([3.0, 1.0, 2.0, 0.0, 5.0]), np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    right = [score[i] > score[j] if liked[i] else score[j] > score[i] for i, j in combinations(range(4), 2)]
    apart = [liked[i] != liked[j] for i, j in combinations(range(4), 2)]
    assert ch10.right_order(score, liked, np.array([0, 4, 5])) == pytest.approx(np.mean(np.array(right)[apart]))
    assert ch10.right_order(score, np.ones(5), np.array([0, 4, 5])) == 0


def test_gains_are_those_of_the_same_page_in_another_order(small: ch10.World) -> None:
    page, scores = small.pages[0], RUN.rng(3, 1091).normal(size=(2, small.queries.n_docs))
    shown, gains = ch10.gains_of(small, page, scores)
    for row, some in zip(gains, scores, strict=True):
        for start, end in zip(small.queries.offsets[:-1], small.queries.offsets[1:], strict=True):
            here = [d for d in range(start, end) if page.displayed_rank[d]]
            for d in here:
                rank = 1 + sum(some[other] > some[d] for other in here)
                expected = 1 / np.log2(1 + rank) - 1 / np.log2(1 + page.displayed_rank[d])
                assert row[shown == d] == pytest.approx(expected)
    as_shown = -page.displayed_rank.astype(float)
    assert np.abs(ch10.gains_of(small, page, [as_shown])[1]).max() == 0


def test_gains_that_are_none_or_unknown_are_all_missed() -> None:
    assert ch10.missed(np.array([np.nan, 1.0]), np.array([1.0, 1.0])) == (1.0, 2)
    assert ch10.missed(np.ones(2), np.zeros(2)) == (1.0, 2)
    assert ch10.missed(np.array([3.0, 0.0]), np.array([3.0, 4.0])) == (pytest.approx(4 / 5), 1)


def test_a_common_factor_of_a_curve_teaches_the_same(small: ch10.World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cf, "fit_deep", lambda *_, **__: None)  # the network, which takes longest, is not compared
    queries, rng = small.queries, RUN.rng(3, 1092)
    log = RUN.simulate(small.pages[0], ch10.USER, relevance=queries.binary, rng=rng, n_clicks=500)
    x, test = queries.features, RUN.load(3).test
    fits = [ch10.taught(RUN, x, log, k * ch10.TRUTH, both=True, seed=3)[:2] for k in (1.0, 0.5)]
    for one, other in zip(*fits, strict=True):
        assert one.weights == pytest.approx(other.weights, abs=1e-5)
        assert 0 < ch10.judged(one, test) <= 1
    assert fits[0][0].weights != pytest.approx(fits[0][1].weights, abs=1e-3)
    once, again, _ = ch10.taught(RUN, x, log, ch10.TRUTH, both=False, seed=3)
    assert once is again


@pytest.mark.parametrize(
    ("experiment", "curves", "others"), [(ch10.JOINT, 21, 0), (ch10.KNOWING, 24, 6), (ch10.WRONG_CURVES, 0, 42)]
)
def test_cells_have_the_names_of_the_kept_table(
    experiment: Experiment, curves: int, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ch10, "SESSIONS", 3000)
    (row,) = experiment.rows(RUN, [3])
    cell = row | experiment.cell(RUN, 3, {}, RUN.rng(3, experiment.stream))
    frame = pd.DataFrame([cell])
    assert len(ch10.curves_of(frame)) == curves
    assert len(cell) == 1 + ch10.K * curves + others
    kept = experiment.kept_table("ci", "yahoo-like")
    assert kept is not None
    assert list(kept) == list(frame)
