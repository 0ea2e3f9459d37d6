"""What chapter 7 simulates: logs and their parts, judgements by hand, and the paths that its kept table holds."""

from math import log2

import numpy as np
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.experiments import ch07

RUN = Run("smoke", "digits", 3)
SMALL = ch07.usual(RUN) | {"n_clicks": 200}


@pytest.fixture(scope="module")
def small() -> ch07.World:
    return ch07.world(RUN, 3, SMALL, RUN.rng(3, 790))


def test_both_logs_have_as_many_sessions_a_query(small: ch07.World) -> None:
    data, _, log, held_out = small
    assert log.n_clicks == pytest.approx(200, rel=0.3)
    assert held_out.n_sessions == round(log.n_sessions * data.validation.n_queries / data.train.n_queries)


def test_without_clicks_all_labels_are_seen() -> None:
    data, _, *logs = ch07.world(RUN, 3, SMALL | {"n_clicks": 0}, RUN.rng(3, 790))
    for log, part in zip(logs, (data.train, data.validation), strict=True):
        assert cf.click_gains(log) == pytest.approx(part.binary * 1.0)


def test_only_queries_with_clicks_are_left(small: ch07.World) -> None:
    data, _, log, _ = small
    part, some = ch07.clicked_part(data.train, log)
    assert part.n_queries == len({*log.query[log.clicks > 0]}) < data.train.n_queries
    assert some.n_clicks == log.n_clicks
    clicked, kept = log.document[log.clicks > 0], some.document[some.clicks > 0]
    np.testing.assert_array_equal(part.features[kept], data.train.features[clicked])
    np.testing.assert_array_equal(some.weights[some.clicks > 0], log.weights[log.clicks > 0])


def test_the_stretch_is_the_mean_slope_at_the_end_of_a_list() -> None:
    """Lists of three and of two, with one click and with three: 1 / c′ of each list's length."""
    once = np.ones(2)
    shown = {"document": [0, 4], "rank": [1, 2], "impressions": [9, 9], "clicks": [1, 3], "propensity": once}
    log = cf.ClickLog(**shown, sessions=[9, 9], offsets=[0, 3, 5])
    steps = [1 / float(cf.dcg().slope(np.array([n]))[0]) for n in (3.0, 2.0)]
    assert ch07.stretch(log) == pytest.approx((steps[0] + 3 * steps[1]) / 4)


def test_rankers_are_judged_for_each_relevant_document() -> None:
    part = cf.RankingData(features=np.zeros((4, 1)), relevance=[1, 0, 0, 1], offsets=[0, 3, 4])
    dcg, rank = ch07.judged(np.array([1.0, 2.0, 0.0, 5.0]), part)
    assert (dcg, rank) == pytest.approx(((1 / log2(3) + 1) / 2, (2 + 1) / 2))


def test_validation_clicks_estimate_dcg(small: ch07.World) -> None:
    """All labels as clicks give DCG itself."""
    data, logger, _, _ = small
    log = ch07.labelled(data.validation)
    assert ch07.held_dcg(logger, data.validation, log) == pytest.approx(ch07.tested(logger, data.validation)[0])


def test_cells_have_the_names_of_the_kept_table() -> None:
    cell = ch07.along_C(RUN, 3, {"n_clicks": 200}, RUN.rng(3, 701))
    values, results = len(RUN.size.C_grid), ("held", "dcg", "passes")
    assert list(cell) == [f"{path}_{of}_{i}" for path in ch07.PATHS for i in range(values) for of in results]
    # Begun warm or cold, the first C is the same.
    assert [cell[f"warm_{of}_0"] for of in ("held", "dcg")] == [cell[f"propdcg_{of}_0"] for of in ("held", "dcg")]
    assert all(0 < cell[f"{path}_dcg_{i}"] <= 1 for path in ch07.PATHS for i in range(values))
    kept = ch07.ALONG_C.kept_table("ci", "yahoo-like")
    assert kept is not None
    assert [name.rpartition("_")[0] for name in kept][2:] == [
        f"{path}_{of}" for path in ch07.PATHS for _ in Run("ci", "yahoo-like").size.C_grid for of in results
    ]
