"""What chapter 14 simulates: laws by which clicks and queries are drawn, courses of methods, and its cells."""

import numpy as np
import pytest

import cfltr_core as cf
from cfltr_book import Experiment, Run
from cfltr_book.experiments import ch14
from cfltr_book.experiments.ch14 import Excess, Setting

RUN = Run("smoke", "digits", 3)
World = tuple[cf.RankingData, cf.ClickLog]


@pytest.fixture(scope="module")
def small() -> World:
    return ch14.world(RUN, 3)


@pytest.fixture(scope="module")
def excess(small: World) -> Excess:
    return ch14.excess_on(*small)[0]


def test_a_world_is_a_log_of_the_first_queries(small: World) -> None:
    train, log = small
    assert (train.n_queries, len(log.sessions)) == (20, 20)
    assert log.propensity == pytest.approx(1 / log.rank)
    assert (ch14.world(RUN, 3, 0.0)[1].propensity == 1).all()


def test_every_law_has_the_risk_as_its_mean(small: World) -> None:
    """Drawn with P and multiplied by the factor, every clicked document counts for (1/n) Σ w."""
    train, log = small
    d, share, mass, G, query = ch14.clicked(train, log)
    assert share.sum() == pytest.approx(1)
    assert np.array_equal(query, np.searchsorted(train.offsets, d, side="right") - 1)
    clicks, queries = ch14.by_length(train, log), cf.query_sampler(log)
    law = clicks.table.probabilities()
    assert law == pytest.approx(mass * G / (mass @ G))
    assert law * clicks.factor == pytest.approx(mass)
    assert queries.probability == pytest.approx([mass[query == q].sum() / mass.sum() for q in range(20)])
    assert (queries.factor * np.repeat(queries.probability, np.diff(log.offsets)))[d] == pytest.approx(mass)


def test_a_step_costs_the_documents_of_its_list(small: World) -> None:
    train, log = small
    lengths = np.diff(train.offsets)
    clicks, queries = cf.click_sampler(log, "ips"), cf.query_sampler(log)
    share = np.bincount(log.query, log.clicks, minlength=20) / log.n_clicks
    assert ch14.cost(clicks, train) == pytest.approx(share @ lengths)
    assert ch14.cost(queries, train) == pytest.approx(queries.probability @ lengths)


def test_no_risk_near_the_minimiser_lies_below_the_floor(small: World, excess: Excess) -> None:
    again, star = ch14.excess_on(*small)
    fit = ch14.minimiser(*small, largest=1e3, gap=1e-3)
    assert 0 <= fit.gap <= 1e-3
    assert fit.weights.tolist() == star.tolist()
    assert again.floor == excess.floor
    assert excess.above(star) == pytest.approx(np.log10(excess.least))
    assert excess.level(excess.floor + 100 * excess.least) == pytest.approx(np.log10(100 * excess.least))
    rng = np.random.default_rng(3)
    risks = [excess.bound(star * (1 + rng.normal(size=len(star)) / 20)).value for _ in range(20)]
    assert min(risks) > excess.floor


def test_the_full_gradient_goes_down_from_the_start(excess: Excess) -> None:
    start = excess.above(np.zeros(excess.train.features.shape[1]))
    seen = ch14.full_gradient(excess, 12)
    assert (seen[0], len(seen)) == (pytest.approx(start), 12)
    assert (np.diff(seen) <= 0).all()
    assert ch14.plain_gradient(excess, 1) == pytest.approx(start)
    assert seen[-1] < ch14.plain_gradient(excess, 6) < start
    assert np.isnan(ch14.batch_solver(excess, 1))
    assert np.log10(excess.least) <= ch14.batch_solver(excess, 20) < start


def test_a_course_has_as_many_marks_however_short_it_is(excess: Excess) -> None:
    sampler = cf.click_sampler(excess.log, "countersample")
    course = ch14.at_best(RUN, sampler, excess, 50, RUN.rng(3, 1490))
    assert course.steps.tolist() == [1, 1, 1, 3, 13, 50]
    assert ch14.marks(RUN)[-1] == ch14.steps_of(RUN) > 50
    assert course.rate in ch14.RATES
    assert course.documents == pytest.approx(30 * course.steps)  # the documents of every list
    assert course.levels[0] == course.levels[2] > course.levels[-1]


def test_equal_weights_foretell_no_gain(small: World) -> None:
    w = np.ones(small[0].features.shape[1])
    assert ch14.ratios(*ch14.world(RUN, 3, 0.0), w, RUN.rng(3, 1491)) == pytest.approx((0, 0))
    whole, dealt = ch14.ratios(*small, w, RUN.rng(3, 1491))
    assert dealt > 0
    assert whole != dealt


def test_the_lowest_click_of_each_query_is_left(small: World) -> None:
    train, log = small
    alone = ch14.last_click_only(log)
    for q in range(20):
        mine = np.flatnonzero((log.query == q) & (log.clicks > 0))
        last = mine[log.rank[mine].argmax()]
        assert np.flatnonzero((alone.query == q) & (alone.clicks > 0)).tolist() == [last]
        assert alone.clicks[last] == log.clicks[last]
    # Then clicks by w G and queries by w G are one law.
    ways = ch14.by_length(train, alone), cf.query_sampler(alone, gradient_bounds_of=train.features)
    assert ch14.cost(ways[0], train) == pytest.approx(ch14.cost(ways[1], train))


def test_cells_have_the_same_names_whatever_they_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ch14, "steps_of", lambda run: 60)

    def cell(seed: int, eta: float) -> dict[str, float]:
        return ch14.measured(RUN, seed, {"eta": eta}, RUN.rng(seed, 1409))

    whole, single, fair = cell(3, 1.0), cell(9, 1.0), cell(3, 0.0)  # 9 is no learning seed
    assert list(whole) == list(single) == list(fair)
    rivals = {name for name in whole if name.startswith(ch14.RIVALS)} | {"passes", "plain", "solver"}
    biased = {name for name in whole if name.startswith("biased")} | {"moments", "shuffled"}
    missing = [{name for name, value in found.items() if np.isnan(value)} for found in (whole, single, fair)]
    assert missing[0] <= {"solver"}  # nothing is certified after so few passes
    assert missing[1:] == [rivals, rivals | biased]
    assert whole["passes"] == 60 * 30 // whole["docs"] == 3
    assert (fair["bounds"], fair["cv"]) == pytest.approx((0, 0))


@pytest.mark.parametrize(
    ("experiment", "setting"), [(ch14.ALONE, {}), (ch14.WRONG, {"believed": 0.5}), (ch14.WRONG, {"believed": 1.0})]
)
def test_other_cells_are_plain_numbers(
    experiment: Experiment, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ch14, "steps_of", lambda run: 200)
    assert setting in [*experiment.settings(RUN)]
    found = experiment.cell(RUN, 3, setting, RUN.rng(3, experiment.stream))
    assert np.isfinite([*found.values()]).all()
    if experiment is ch14.WRONG:
        assert all(0.2 < value <= 1 for value in found.values())
