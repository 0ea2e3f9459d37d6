"""The claims of chapter 11 read the right rows of its tables, seed by seed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch11
from cfltr_book.experiments.ch11 import ESTIMATES, LEARNERS, SESSIONS

RUN = Run("smoke", "digits", 3)


def invented() -> dict[str, pd.DataFrame]:
    """Tables in which every row has another number, in an order that must not matter."""
    rng = np.random.default_rng(0)
    judged = [
        {"seed": seed, "epsilon": epsilon, "sessions": n} | dict(zip(ESTIMATES, rng.random(4) + 0.1, strict=True))
        for seed in RUN.seeds
        for epsilon in (0.0, 1.0)
        for n in SESSIONS
    ]
    arms = [*((*one, sold) for one in LEARNERS for sold in (False, True)), ("dealt", 0.0, False)]
    arms += [("oblivious", -1.0, False), ("aware", -1.0, False)]
    learnt = [
        {"seed": seed, "arm": arm, "epsilon": epsilon, "per_query": n, "sold_out": sold, "gained": rng.normal()}
        for seed in RUN.seeds
        for arm, epsilon, sold in arms
        for n in (500, 1000)
    ]
    prices = [
        {"seed": seed, "epsilon": epsilon, "sessions": rng.random(), "reached": rng.random()}
        for seed in RUN.seeds
        for epsilon in ch11.SHARES
    ]
    tests = [{"seed": seed, "reached": rng.random()} for seed in RUN.seeds]
    tested = [
        {"seed": seed, "place": place, "all_wanted": wanted, "covered": rng.random()}
        for seed in RUN.seeds
        for place in (False, True)
        for wanted in (False, True)
    ]
    tables = {"judged": judged, "learnt": learnt, "prices": prices, "tests": tests, "tested": tested}
    return {name: pd.DataFrame(rows).sample(frac=1, random_state=1) for name, rows in tables.items()}


TABLES = invented()


@pytest.fixture(autouse=True)
def _tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Run, "table", lambda self, experiment: TABLES[experiment.name])
    monkeypatch.setattr(ch11, "prices", lambda run: TABLES["prices"])
    monkeypatch.setattr(ch11, "ab_tests", lambda run: TABLES["tests"])
    return


def row_of(name: str, **where: object) -> pd.Series:
    rows = [row for _, row in TABLES[name].iterrows() if all(row[key] == value for key, value in where.items())]
    assert len(rows) == 1
    return rows[0]


def gained(seed: int, arm: str, epsilon: float, sold_out: bool = False) -> float:
    row = row_of("learnt", seed=seed, arm=arm, epsilon=epsilon, per_query=1000, sold_out=sold_out)
    return float(row["gained"])


def test_rankers_are_compared_seed_by_seed() -> None:
    for place, seed in enumerate(RUN.seeds):
        still, little = gained(seed, "displayed", 0.0), gained(seed, "displayed", 0.1)
        sold = gained(seed, "displayed", 0.0, sold_out=True)
        weighted = gained(seed, "weighted", 0.1, sold_out=True)
        expected = {
            ch11.displayed_learns: (still, 0),
            ch11.dealt_clicks: (gained(seed, "dealt", 0.0), 0),
            ch11.aware_learns_tuned: (gained(seed, "aware", 1.0), gained(seed, "oblivious", 1.0)),
            ch11.shuffled_learning: (gained(seed, "aware", -1.0), gained(seed, "oblivious", -1.0)),
            ch11.compares_displayed: (gained(seed, "compared", 0.0), gained(seed, "oblivious", 0.0)),
            ch11.exploration_adds: (gained(seed, "aware", 1.0), still),
            ch11.nothing_to_explore: (little, still),
            ch11.filtered_out_weighted: (weighted, sold),
        }
        for measure, sides in expected.items():
            assert tuple(values[place] for values in measure(RUN).values()) == pytest.approx(sides)


def test_errors_are_read_in_the_order_of_sessions() -> None:
    expected = {
        ch11.oblivious_cannot: (0.0, "oblivious"),
        ch11.oblivious_cannot_randomised: (1.0, "oblivious"),
        ch11.aware_can: (1.0, "aware"),
    }
    for measure, (epsilon, estimate) in expected.items():
        found = measure(RUN)
        assert found["x"].tolist() == list(SESSIONS)
        for place, seed in enumerate(RUN.seeds):
            errors = [row_of("judged", seed=seed, epsilon=epsilon, sessions=n)[estimate] for n in SESSIONS]
            assert found["errors"][place].tolist() == errors


def test_prices_are_read_in_the_order_of_shares() -> None:
    for place, seed in enumerate(RUN.seeds):
        rows = [row_of("prices", seed=seed, epsilon=epsilon) for epsilon in ch11.SHARES]
        assert ch11.sessions_by_share(RUN)["errors"][place].tolist() == [row["sessions"] for row in rows]
        mean = sum(row["reached"] for row in rows) / len(rows)
        assert ch11.plan_from_a_guess(RUN)["values"][place] == pytest.approx(mean)


def test_plans_and_intervals_are_those_of_their_seed() -> None:
    for at, seed in enumerate(RUN.seeds):
        assert ch11.plan_of_a_test(RUN)["values"][at] == row_of("tests", seed=seed)["reached"]
        for claim, place in ((ch11.halves_cover, False), (ch11.place_covers, True)):
            rows = [row_of("tested", seed=seed, place=place, all_wanted=wanted) for wanted in (False, True)]
            assert claim(RUN)["values"][at] == pytest.approx((rows[0]["covered"] + rows[1]["covered"]) / 2)


def test_chance_is_let_in_between_two_periods() -> None:
    """Whoever forgets that D was hidden before counts it too little; whoever does not, does not."""
    before, after, p, q = next(ch11._two_periods())
    assert (before, after) == (1, 1)
    assert p == pytest.approx([1, 1 / 2, 1 / 3, 0])
    assert q == pytest.approx([1, 1 / 2, 1 / 6, 1 / 6])
    only_after = ch11._in_two_periods(1, 1, np.zeros(4), np.array([0, 0, 0, 6.0]))
    assert only_after == pytest.approx([0, 0, 0, 1 / 2])
