"""The claims of chapter 12 read the right rows of its tables, seed by seed, and its formulas are those of the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf
from cfltr_book import Run
from cfltr_book.evidence import ch12
from cfltr_book.experiments.ch12 import BY_LOSS, LEARNT_FROM, MORE_QUERIES
from cfltr_book.reporting.measures import measures_of
from cfltr_core.checks import FloatArray

RUN = Run("smoke", "digits", 3)
SECTIONS = ("still", "chance", "rare", "losses")


def invented() -> dict[str, pd.DataFrame]:
    """Tables in which every row has another number, in an order that must not matter."""
    rng, tables = np.random.default_rng(0), {}
    for experiment in (BY_LOSS, LEARNT_FROM, MORE_QUERIES):
        rows = [{**row, "ndcg": rng.random()} for row in experiment.rows(RUN, [3, 4, 5])]
        tables[experiment.name] = pd.DataFrame(rows).sample(frac=1, random_state=1)
    return tables


TABLES = invented()


@pytest.fixture(autouse=True)
def _tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ch12, "table", lambda run, experiment: TABLES[experiment.name])
    return


def cells(name: str, **where: object) -> list[float]:
    """The numbers of the rows with these settings, seed by seed."""
    rows = [row for _, row in TABLES[name].iterrows() if all(row[key] == value for key, value in where.items())]
    assert [row["seed"] for row in sorted(rows, key=lambda row: row["seed"])] == [3, 4, 5]
    return [row["ndcg"] for row in sorted(rows, key=lambda row: row["seed"])]


def learner(arm: str, epsilon: float, clicks: int = 10**8) -> list[float]:
    return cells("learners", arm=arm, epsilon=epsilon, n_clicks=clicks)


def loss(**where: object) -> list[float]:
    usual = {"places": 5, "epsilon": 1.0, "gains": "policy-aware", "loss": "at least one", "production": "few labels"}
    return cells("losses", **{**usual, **where})


LABELS, AWARE = learner("labels", 0, 0), learner("policy-aware", 1)
EXPECTED = {
    ch12.topfive_cannot: (LABELS, learner("oblivious", 0)),
    ch12.whole_list: (LABELS, loss(places=0, epsilon=0, gains="oblivious")),
    ch12.learners_direct: (learner("direct", 0), learner("oblivious", 0)),
    ch12.more_queries: (cells("more-queries", arm="direct"), cells("more-queries", arm="oblivious")),
    ch12.aware_learns: (AWARE, learner("oblivious", 1)),
    ch12.both_unbiased: (loss(places=0, epsilon=0.9), loss(places=0, epsilon=0.9, gains="oblivious")),
    ch12.aware_can: (LABELS, AWARE),
    ch12.works: (AWARE, learner("production", 0, 0)),
    ch12.no_room: (loss(production="all labels"), loss(production="all labels", gains="production")),
    ch12.learners_chance: (AWARE, learner("direct", 0)),
    ch12.counted_exposure: (learner("counted", 1), AWARE),
    ch12.oblivious_early: (learner("oblivious", 0.01, 10**4), learner("policy-aware", 0.01, 10**4)),
    ch12.learners_cap: (learner("capped", 0.01, 10**5), learner("policy-aware", 0.01, 10**5)),
    ch12.learners_robust: (learner("doubly robust", 0.01, 10**6), learner("policy-aware", 0.01, 10**6)),
    ch12.robust_with_many: (learner("doubly robust", 1), AWARE),
    ch12.truncations: (loss(loss="beyond"), AWARE),
    ch12.loss_within: (loss(loss="within five"), AWARE),
    ch12.loss_monotonic: (AWARE, loss(loss="monotonic")),
    ch12.page_length: (loss(places=20, epsilon=0, gains="oblivious"), LABELS),
}


def test_every_claim_of_the_tables_is_expected_here() -> None:
    assert [one.function for section in SECTIONS for one in measures_of("ch12", section)] == list(EXPECTED)


@pytest.mark.parametrize("measure", EXPECTED, ids=lambda measure: measure.__name__)
def test_a_claim_compares_two_arms(measure: Callable[[Run], Mapping[str, FloatArray]]) -> None:
    assert [one.tolist() for one in measure(RUN).values()] == [*map(list, EXPECTED[measure])]


def test_weights_of_pairs_add_up_to_what_is_stated() -> None:
    assert ch12.discount(3) == pytest.approx(0.5)
    assert ch12.pair_weight(1, 3, 2) == ch12.pair_weight(3, 1, 2) == pytest.approx(1 / np.log2(3) - 1 / 2)
    assert ch12.pair_weight(3, 4, 2) == ch12.pair_weight(1, 3, 2, "both") == 0
    assert ch12.pair_weight(1, 3, 2, "beyond") == pytest.approx((1 / np.log2(3) - 1 / 2) / (1 - 1 / 2))
    assert ch12.pair_weight(3, 4, 2, "within") == pytest.approx(1 - 1 / np.log2(3))
    assert ch12.pair_weight(4, 2, 2, "within") == pytest.approx(1 / np.log2(3))
    assert ch12.pair_weight(1, 4, 2, "within") == 0
    assert (ch12.stated(3, 2, "both"), ch12.stated(3, 2, "beyond"), ch12.stated(3, 2, "within")) == (0, 1, 1)
    assert ch12.stated(3, 2) == pytest.approx(1 - 1 / 2)
    assert ch12.stated(2) == pytest.approx(1 - 1 / np.log2(3))


def test_a_loss_by_a_rule_is_its_sum_of_pairs() -> None:
    s, gains = np.array([0.3, -1.0, 2.0, 0.7, 0.1]), np.array([0.5, 0.0, 1.0, 2.0, 0.0])
    rank = [1 + sum(other > one for other in s) for one in s]
    for cut, way in [(None, "both"), (2, "at_least_one"), (2, "both"), (2, "beyond"), (2, "within")]:
        total = 0.0
        for d, e in permutations(range(5), 2):
            weight = gains[d] * ch12.pair_weight(rank[d], rank[e], cut, way)
            total += weight * np.log2(1 + np.exp(s[e] - s[d]))
        assert ch12.loss_by(s, gains, cut, way).value == pytest.approx(total)


def test_identities_have_something_on_both_sides() -> None:
    metric = ch12.lambdaloss_metric(RUN)
    assert len(metric["left"]) == len(ch12.WAYS) * len([*permutations(range(6))])
    assert metric["right"].std() > 0.1
    bound = ch12.lambdaloss_bound(RUN)
    assert (bound["upper"] >= bound["lower"]).all()
    assert (bound["upper"] > bound["lower"] + 0.01).any()
    frozen = ch12.lambdaloss_frozen(RUN)
    assert 0 < (frozen["lower"] > frozen["upper"]).mean() < 0.5
    for found in (ch12.lambdaloss_unbiased(RUN), ch12.lambdaloss_noise(RUN)):
        assert found["left"] == pytest.approx(found["right"])
        assert np.abs(found["right"]).max() > 0.1
    difference = ch12.lambdaloss_difference(RUN)
    assert (difference["upper"] > difference["lower"]).all()


def test_the_difference_form_lies_above_what_dcg_misses_against_the_best_ranking() -> None:
    """Without truncation, at the ranks that the scores give, for scores far apart and close together."""
    rng = np.random.default_rng(12)
    for spread in (0.01, 1.0, 30.0):
        for _ in range(20):
            gains, scores = rng.exponential(size=6) * (rng.random(6) < 0.7), spread * rng.normal(size=6)
            reached = best = value = 0.0
            order, wanted = np.argsort(-scores), np.sort(gains)[::-1]
            for rank, d in enumerate(order, start=1):
                reached += gains[d] / np.log2(1 + rank)
                best += wanted[rank - 1] / np.log2(1 + rank)
                for other, e in enumerate(order, start=1):
                    if other != rank:
                        step = 1 / np.log2(1 + abs(rank - other)) - 1 / np.log2(2 + abs(rank - other))
                        value += max(gains[d] - gains[e], 0) * step * np.logaddexp(0, scores[e] - scores[d]) / np.log(2)
            assert value == pytest.approx(cf.lambda_loss(scores, [0, 6], gains=gains, form="difference").value)
            assert value >= best - reached - 1e-12
