"""The claims of chapter 6: seeds are read from the tables of the figures, and rounds are counted as a person would."""

from __future__ import annotations

import numpy as np
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch06
from cfltr_book.experiments.ch06 import compared, courses, rarest

RUN = Run("smoke", "digits", 4)


def test_rankers_are_compared_seed_by_seed() -> None:
    rows = {(row.seed, row.clicks, row.arm): row for row in compared(RUN).itertuples()}

    def few(seed: int, arm: str, column: str) -> float:
        return (getattr(rows[seed, 500, arm], column) + getattr(rows[seed, 5000, arm], column)) / 2

    for place, seed in enumerate(RUN.seeds):
        rank, capped, dcg = (few(seed, arm, "dcg") for arm in ("PropRank", "PropRank, capped", "PropDCG"))
        middle = {arm: rows[seed, 5000, arm].dcg for arm in ("PropDCG", "logistic", "from PropRank", "warm")}
        expected = {
            ch06.propdcg_better: (dcg, rank),
            ch06.over_tuned_cap: (dcg, capped),
            ch06.full_information: (rows[seed, 0, "PropDCG"].dcg, rows[seed, 0, "PropRank"].dcg),
            ch06.tuned_cap_rank: (few(seed, "PropDCG", "rank"), few(seed, "PropRank, capped", "rank")),
            ch06.logistic_learner: (middle["logistic"], middle["PropDCG"]),
            ch06.two_starts: (middle["from PropRank"], middle["PropDCG"]),
            ch06.warm_path: (middle["warm"], middle["PropDCG"]),
        }
        preferred = [
            max((rows[seed, clicks, arm] for arm in ("PropRank, capped", "PropDCG")), key=lambda row: row.held_out).dcg
            for clicks in (500, 5000)
        ]
        expected[ch06.held_out_choice] = (sum(preferred) / 2, rank)
        for measure, sides in expected.items():
            assert tuple(values[place] for values in measure(RUN).values()) == pytest.approx(sides)


def test_rounds_are_counted_until_one_hardly_lowers_the_objective() -> None:
    F = -np.array([[1.0, 2.0, 3.0, 3.02, 3.5], [10.0, 10.05, 20.0, 30.0, 30.1], [1.0, 2.0, 3.0, 4.0, 5.0]])
    assert ch06.settled(F).tolist() == [3, 1, 5]
    frame = courses(RUN)
    counts, left, right = [], [], []
    for _, row in frame.iterrows():
        course = [row[f"F_{k}"] for k in range(11)]
        at = next((k for k in range(1, 11) if abs(course[k] - course[k - 1]) < 0.01 * abs(course[k])), 11)
        counts.append(at)
        left.append(row[f"clicks_{min(at, 10)}"])
        right.append(row["clicks_10"])
    assert RUN.size.C_grid == (0.1, 1.0, 10.0)  # all of them are strengths at which rounds are counted
    one = frame["seed"].to_numpy() == 4
    assert ch06.ccp_rounds(RUN)["values"][0] == pytest.approx(np.mean(np.array(counts)[one]))
    late = ch06.late_rounds(RUN)
    assert late["left"][1] == pytest.approx(np.mean(np.array(left)[~one]))
    assert late["right"][1] == pytest.approx(np.mean(np.array(right)[~one]))


def test_weights_are_compared_at_the_rarest_clicks() -> None:
    plain, new, dealt = (rarest(RUN, kind) for kind in ("1/p", "λ′/p", "dealt"))
    assert (ch06.variance_control(RUN)["larger"] == plain).all()
    assert (ch06.variance_control(RUN)["smaller"] == new).all()
    assert (ch06.dealt_share(RUN)["left"] == dealt).all()
    assert (ch06.dealt_share(RUN)["right"] == plain).all()


def test_mutants_of_the_proof_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """With another slope than that of λ the bound does not touch, or lies below F."""
    true = ch06.DCG.slope
    assert (ch06.majorisation(RUN)["lower"] <= ch06.majorisation(RUN)["upper"] + 1e-9).all()
    monkeypatch.setattr(type(ch06.DCG), "slope", lambda self, r: 0.9 * true(r))
    wrong = ch06.majorisation(RUN)
    assert (wrong["lower"] > wrong["upper"] + 1e-9).any()
