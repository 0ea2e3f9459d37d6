"""What chapter 4 simulates: a weight and steps by hand, and the cells of its three tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

import cfltr_core as cf
from cfltr_book import Experiment, Run
from cfltr_book.experiments import ch04

RUN = Run("smoke", "digits", 3)


def cell_of(experiment: Experiment, **setting: Any) -> Any:
    assert setting in [*experiment.settings(RUN)]
    return experiment.cell(RUN, 3, setting, RUN.rng(3, experiment.stream))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_interpolated_precision_is_linear_between_the_whole_ranks(k: int) -> None:
    metric, whole = ch04.interpolated_precision(k), np.arange(1.0, 10.0)
    assert metric(whole) == pytest.approx(cf.precision(k)(whole))
    middle = whole + 0.25
    assert metric(middle) == pytest.approx(0.75 * metric(whole) + 0.25 * metric(whole + 1))
    assert metric.slope(middle) == pytest.approx(metric(whole + 1) - metric(whole))


def test_steps_shrink_and_end_where_nothing_is_pulled() -> None:
    """One feature, so that a step of Σ λ(1 + S) goes left or right; its one click was at the first of three."""
    once = np.ones(1, dtype=int)
    shown = {"document": [0], "rank": once, "impressions": once, "clicks": once, "propensity": once}
    log, x = cf.ClickLog(**shown, sessions=once, offsets=[0, 3]), np.array([[1.0], [0.0], [0.5]])
    path = ch04.descend(cf.average_rank(), x, log=log, w=np.array([1.0]), steps=12)
    # The pull ends at w = 2, where both rivals are behind by the margin.
    steps = [0.2 / np.sqrt(t) for t in range(1, 13)]
    assert np.ravel(path) == pytest.approx(1 + np.cumsum([0, *steps])[: len(path)])
    assert path[-1] >= 2 > path[-2]
    assert len(path) == 11
    assert len(ch04.descend(cf.precision(2), x, log=log, w=np.array([1.0]))) == 1


def test_orders_are_compared_by_kendalls_tau() -> None:
    """Of all pairs of rankers, by lists: the bound at the best of four κ against the truth."""
    found, rng, data = cell_of(ch04.ORDERS), RUN.rng(3, 402), RUN.load(3)
    test, wanted = data.test, data.test.binary > 0
    orders: dict[str, list[float]] = {"true": [], "hinge": [], "logistic": []}
    for _ in range(12):
        f = cf.fit_linear_ranker(data.train, 0.01, rng=rng).decision_function(test.features)
        f = f / f.std()
        orders["true"].append(cf.ranks(f, test.offsets)[wanted].mean())
        means: dict[str, list[float]] = {"hinge": [], "logistic": []}
        for k in (0.3, 1, 3, 10):
            for name, cost in (
                ("hinge", lambda d: np.maximum(1 - d, 0)),
                ("logistic", lambda d: np.log2(1 + np.exp(-d))),
            ):
                total = 0.0
                for a, b in zip(test.offsets[:-1], test.offsets[1:], strict=True):
                    costs = cost(k * (f[a:b, None] - f[a:b]))
                    total += costs[wanted[a:b]].sum()  # the document itself costs 1, as the rank begins with it
                means[name].append(total / wanted.sum())
        for name, values in means.items():
            orders[name].append(min(values))
    for name in ("hinge", "logistic"):
        assert found[f"average rank, {name}"] == pytest.approx(kendalltau(orders["true"], orders[name]).statistic)
    assert len({*found.values()}) > 2


def test_all_steps_begin_at_the_same_weights_or_where_dcg_ended() -> None:
    cell = cell_of(ch04.STEPS)
    first, *_, last = ch04.MARKS
    start, end = ({name: cell[f"{name} {t}"] for name in ch04.BOUNDS} for t in (first, last))
    assert start["formula"] == start["interpolated"] == start["DCG"] == start["shuffled"] < end["DCG"]
    assert start["from DCG"] == start["DCG again"] == end["DCG"]
    assert len({cell[f"formula {t}"] for t in ch04.MARKS}) == 1
    assert end["interpolated"] not in (start["interpolated"], end["shuffled"])
    assert 0 < cell["pulled"] < 0.5


def test_learners_under_noise_are_compared_with_a_random_order() -> None:
    clean, noisy, missed, labels = (
        cell_of(ch04.NOISE, plus=plus, minus=minus, labels=labels)
        for plus, minus, labels in ((1.0, 0.0, False), (1.0, 0.5, False), (0.7, 0.0, False), (1.0, 0.0, True))
    )
    test = RUN.load(3).test
    lengths = np.repeat(np.diff(test.offsets), np.diff(test.offsets))
    by_chance = (lengths[test.binary > 0] + 1).mean() / 2
    for cell in (clean, noisy, labels):
        assert cell["random"] == pytest.approx(by_chance)
        assert max(cell["PropRank"], cell["PropDCG"]) < by_chance
    assert noisy["length"] < clean["length"]
    assert missed["length"] == pytest.approx(clean["length"], abs=0.2)
    assert np.isnan([missed["PropDCG"], missed["random"]]).all()
    assert len({cell["PropRank"] for cell in (clean, noisy, missed, labels)}) == 4


@pytest.mark.parametrize("experiment", [ch04.ORDERS, ch04.STEPS, ch04.NOISE])
def test_cells_have_the_names_of_the_kept_table(experiment: Experiment) -> None:
    row = experiment.rows(RUN, [3])[0]
    setting = {name: value for name, value in row.items() if name != "seed"}
    kept = experiment.kept_table("ci", "yahoo-like")
    assert kept is not None
    assert list(kept) == [*row, *cell_of(experiment, **setting)]
