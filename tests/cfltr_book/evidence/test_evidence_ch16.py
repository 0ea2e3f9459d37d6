"""The claims of chapter 16: which rows and columns of the tables of its figures are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch16

RUN = Run("smoke", "digits", 3)
LOGS = ("A/B test", "without the rival's sessions", "with the rival's sessions")
# Every number of a table is another, so that a wrong row or column is seen.
BACKTEST = pd.DataFrame([
    {"seed": seed, "log": log, "truth": 10 * seed + i, "difference": 100 * seed + i}
    for seed in (3, 4) for i, log in enumerate(LOGS)
])  # fmt: skip
REMEMBERED = pd.DataFrame([
    {"seed": seed, "ranker": ranker, "judged": judged}
    for seed in (3, 4) for ranker in ("memory", "rival") for judged in ("session", "query")
]).assign(difference=np.arange(8.0))  # fmt: skip
PHONES = pd.DataFrame([
    {"seed": seed, "world": world, "counted": counted}
    for seed in (3, 4) for world in ("rival on phones", "alike") for counted in ("by device", "as one")
]).assign(difference=np.arange(8.0), ab=10 + np.arange(8.0))  # fmt: skip


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, frame in (("backtest", BACKTEST), ("remembered", REMEMBERED), ("phones", PHONES)):
        monkeypatch.setattr(ch16, name, lambda run, frame=frame: frame)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (ch16.hidden_falls_short, {"larger": [31, 41], "smaller": [301, 401]}),
        (ch16.shown_rival, {"left": [302, 402], "right": [32, 42]}),
        (ch16.memory_by_session, {"larger": [0, 4], "smaller": [1, 5]}),
        (ch16.memory_rival, {"left": [2, 6], "right": [3, 7]}),
        (ch16.phones_mislead, {"larger": [0, 4], "smaller": [1, 5]}),
        (ch16.phones_alike, {"left": [2, 6], "right": [3, 7]}),
        (ch16.phones_mislead_ab, {"larger": [10, 14], "smaller": [11, 15]}),
        (ch16.phones_alike_ab, {"left": [12, 16], "right": [13, 17]}),
    ],
)
def test_a_claim_compares_its_rows_seed_by_seed(measured: Callable[[Run], Any], expected: dict[str, list]) -> None:
    assert {name: values.tolist() for name, values in measured(RUN).items()} == expected


def test_the_exact_claims_hold() -> None:
    for measured in (ch16.shares_unbiased, ch16.theta_gradient):
        found = measured(RUN)
        assert found["left"] == pytest.approx(found["right"], abs=1e-7)
