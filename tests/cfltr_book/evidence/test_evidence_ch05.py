"""The claims of chapter 5: seeds are read from the tables of the figures, and a small log has an optimum inside."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch05
from cfltr_book.experiments.ch05 import controls, learned, wrong_exponents

RUN = Run("smoke", "digits", 3)


def places(frame: pd.DataFrame, seed: int, of: Callable[..., bool], *, best: bool = False) -> float:
    """Places gained on one seed by the fit that clicks chose, or by the best one, among the rows that are asked for."""
    rows = [row for row in frame.itertuples() if row.seed == seed and of(row)]
    return float(max(row.places for row in rows)) if best else next(row.places for row in rows if row.chosen)


def test_rankers_are_compared_seed_by_seed() -> None:
    frame = learned(RUN)

    def at(learner: str, clicks: int) -> Callable[..., bool]:
        return lambda row: (row.learner, row.clicks) == (learner, clicks)

    def believes(assumed: float, capped: bool) -> Callable[..., bool]:
        return lambda row: (row.assumed, row.capped) == (assumed, capped)

    few, third, many = 500, 5000, 15000
    for place, seed in enumerate(RUN.seeds):
        full, raw = places(frame, seed, at("full", many)), places(frame, seed, at("raw", many))
        best = [places(frame, seed, at("full", clicks), best=True) for clicks in (few, third)]
        dealt, robots = (
            places(controls(RUN), seed, lambda row, kind=kind: row.control == kind) for kind in ("dealt", "robots")
        )
        believed = {
            key: places(wrong_exponents(RUN), seed, believes(*key))
            for key in ((1.0, False), (1.0, True), (1.1, False), (1.5, False), (1.5, True))
        }
        expected = {
            ch05.naive_svm: (full, raw),
            ch05.dealt_weights: (dealt, raw),
            ch05.more_clicks: (full, places(frame, seed, at("full", few))),
            ch05.robots: (robots, places(frame, seed, at("full", few))),
            ch05.few_clicks_any_strength: (places(frame, seed, at("raw", few)), best[0]),
            ch05.choose_by_clicks: (places(frame, seed, at("full", third)), best[1]),
            ch05.underestimated_propensities: (believed[1.0, False], believed[1.5, False]),
            ch05.small_error: (believed[1.1, False], believed[1.0, False]),
            ch05.clipping_underestimated: (believed[1.5, True], believed[1.5, False]),
            ch05.cap_on_true_weights: (believed[1.0, True], believed[1.0, False]),
        }
        for measure, sides in expected.items():
            assert tuple(values[place] for values in measure(RUN).values()) == pytest.approx(sides)


def test_the_small_log_has_pairs_at_the_kink() -> None:
    """Where every slope were 0 or 1 the dual would be no test of slopes between."""
    small = ch05._small(RUN, 10.0)
    slopes = ch05._largest_dual(small) / small.cost
    assert ((slopes > 1e-6) & (slopes < 1 - 1e-6)).any()
    assert (slopes < 1e-6).any()
    assert (slopes > 1 - 1e-6).any()
    assert np.isclose(small.at_zero, small.primal(np.zeros(3)))
