"""How the claims of chapter 2 are measured: what IPS expects, how it varies, and which intervals keep their promise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from cfltr_book import Run
from cfltr_book.evidence import measures
from cfltr_book.experiments.ch02 import ENOUGH, by_seed, coec_in_the_long_run, coverage, world
from cfltr_core.checks import FloatArray

Arrays = Mapping[str, FloatArray]


def _covered(frame: pd.DataFrame) -> float:
    """The share of these logs whose interval covers the truth; the promise, where there is no such log."""
    return float(frame["covered"].mean()) if len(frame) else 0.95


@measures("B-gate-expected", section="intervals")
def gate_expected(run: Run) -> Arrays:
    """The coverage of all logs in which enough effective clicks were to be expected, seed by seed."""
    return {"values": by_seed(coverage(run), lambda rows: _covered(rows[rows["expected"] >= ENOUGH]))}


@measures("B-gate-observed", section="intervals")
def gate_observed(run: Run) -> Arrays:
    """The coverage of the logs that only showed enough of them, and what the interval promises."""

    def wrongly_passed(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[(rows["came"] >= ENOUGH) & (rows["expected"] < ENOUGH)]

    smaller = by_seed(coverage(run), lambda rows: _covered(wrongly_passed(rows)))
    return {"larger": np.full(len(smaller), 0.95), "smaller": smaller}


@measures("B-coec-overrates", section="size")
def coec_overrates(run: Run) -> Arrays:
    """The true lead and a tenth, and the lead that COEC comes to, seed by seed."""
    worlds = [world(run, seed) for seed in run.seeds]
    return {
        "lower": np.array([1.1 * w.truth(w.new - w.old) for w in worlds]),
        "upper": np.array([coec_in_the_long_run(w, (w.old - w.new).lam) for w in worlds]),
    }
