"""The claims of chapter 4: bounds hold on small lists, and seeds are read from the tables of the figures."""

import numpy as np
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch04
from cfltr_book.experiments.ch04 import descents, stretched

RUN = Run("smoke", "digits", 3)


def test_two_bounds_fail() -> None:
    for measure in (ch04.logistic_natural, ch04.bound_continuous):
        found = measure(RUN)
        assert (found["lower"] > found["upper"] + 0.1).any()
    # Of the four weights read as they are printed only that of Prec@2 jumps.
    assert (ch04.bound_continuous(RUN)["lower"] > 1e-6).tolist() == [True, False, False, False]


def test_every_rank_from_one_to_seven_is_met_with_either_surrogate() -> None:
    assert ch04.between_ranks(RUN)["left"].tolist() == [float(m) for m in range(1, 8) for _ in range(6)]


def test_the_tighter_bound_is_compared_at_its_best_factor() -> None:
    found, frame = ch04.hinge_tighter(RUN), stretched(RUN)
    for place, seed in enumerate(RUN.seeds):
        for side, name in (("lower", "hinge"), ("upper", "logistic")):
            bounds = [
                row.bound
                for row in frame.itertuples()
                if (row.seed, row.metric, row.surrogate) == (seed, "average rank", name)
            ]
            assert found[side][place] == min(bounds)


def test_steps_are_compared_with_their_start_and_shuffles_are_averaged() -> None:
    frame = descents(RUN)
    for measure, sides, shuffles in (
        (ch04.bound_learns, ("larger", "smaller"), (0,)),
        (ch04.bound_shuffled, ("left", "right"), (1, 2)),
    ):
        found = measure(RUN)
        for place, seed in enumerate(RUN.seeds):
            for side, step in zip(sides, (50, 0), strict=True):
                logs = [
                    np.log(row.test)
                    for row in frame.itertuples()
                    if (row.seed, row.step) == (seed, step) and row.shuffle in shuffles
                ]
                assert found[side][place] == pytest.approx(np.mean(logs))
