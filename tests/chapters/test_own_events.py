"""The code that chapters 1 to 4 show in a fold, for events of one's own, which they themselves do not run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cfltr_core as cf

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"


def run_fold(name: str) -> dict[str, Any]:
    """The names that the one block of Python in the chapter's prose defines."""
    cells = json.loads((CHAPTERS / name).read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {"np": np, "pd": pd, "cf": cf}
    exec(code, names)
    return names


def test_events_as_chapter_1_shows_them_are_accepted_and_judge_a_candidate() -> None:
    names = run_fold("01_clicks_are_biased.ipynb")
    log = names["ab_log"]
    assert (int(log.n_sessions), int(log.n_clicks)) == (3, 3)
    assert sorted(zip(log.document, log.rank, log.clicks, strict=True)) == [
        *[(0, 1, 1), (0, 2, 1), (1, 2, 0), (1, 3, 0), (2, 1, 1), (2, 3, 0)]
    ]
    # A and C change places: C gains what A loses at rank 1, counted by clicks.
    gain = cf.naive(log, names["candidate"] - names["old"]).report()
    assert round(gain, 3) == round((2 * (0.6309 - 1) + (1 - 0.5)) / 3, 3)


def test_events_as_chapter_2_shows_them_have_the_propensities_of_the_curve() -> None:
    names = run_fold("02_inverse_propensity_scoring.ipynb")
    log = names["log"]
    assert (int(log.n_sessions), int(log.n_clicks)) == (3, 3)
    assert log.propensity == pytest.approx(1 / log.rank)
    # A and D fall to rank 2; E rises to rank 1, and its click at rank 2 counts twice.
    assert cf.ips(log, names["new"]).report() == pytest.approx((2 * 0.63093 + 2 * 1) / 3, abs=1e-4)
    assert cf.ips(log, names["old"]).report() == pytest.approx((2 * 1 + 2 * 0.63093) / 3, abs=1e-4)


def test_events_as_chapter_3_shows_them_have_two_rankers_for_its_cells() -> None:
    names = run_fold("03_additive_metrics.ipynb")
    log, rankers = names["log"], names["rankers"]
    assert log.propensity == pytest.approx(1 / log.rank)
    at_1 = [cf.rank_weights(rankers[name], log.offsets, metric=cf.precision(1)) for name in ("new", "old")]
    # At rank 1 the new ranker has C, which was not clicked there, and E, clicked at rank 2, for A and D.
    assert cf.ips(log, at_1[0] - at_1[1]).report() == pytest.approx((2 - 2) / 3, abs=1e-9)


def test_features_and_clicks_as_chapter_4_shows_them_have_a_bound() -> None:
    names = run_fold("04_hinge_bounds.ipynb")
    log, x, w = names["log"], names["x"], names["w"]
    assert (int(log.n_sessions), int(log.n_clicks)) == (5, 5)
    assert x.mean(axis=0) == pytest.approx([0, 0])
    # The deployed scores are the first feature, less its mean: 3, 2, 1 and 2, 1.
    assert x @ w == pytest.approx(np.array([3, 2, 1, 2, 1]) - 1.8)
    weights = log.clicks * log.weights / log.n_sessions
    bound = cf.bound_loss(x @ w, log.offsets, documents=log.document, weights=weights)
    # A twice and D once at surrogate rank 1; C, at rank 3, at 6, and E, at rank 2, at 1 + 2.
    assert bound.value == pytest.approx((2 * 1 + 3 * 6 + 1 * 1 + 2 * 3) / 5)
