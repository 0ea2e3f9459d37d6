"""The claims of chapter 17: what is measured has the shape of the claim, and comes from the tables of the figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cfltr_book import Run
from cfltr_book.evidence import ch17

RUN = Run("smoke", "digits", 3)
FRAME = pd.DataFrame({
    "seed": [3] * 4 + [4] * 4,
    "policy": ["bts", "bts", "random", "random"] * 2,
    "kept": [False, True, True, False, False, False, True, True],
    "agrees": [False, True, True, True, False, True, True, False],
    "covered": [False, True, True, True, False, True, True, False],
})  # fmt: skip


@pytest.fixture(autouse=True)
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ch17, "halves", lambda run: FRAME)
    monkeypatch.setattr(ch17, "made_logs", lambda run: FRAME)


def test_shares_are_those_of_each_seed() -> None:
    assert ch17.thompson_refused(RUN)["values"].tolist() == [1 / 2, 0]
    for measured in (ch17.rule_agreement, ch17.rule_covers):
        found = measured(RUN)
        assert found["larger"].tolist() == [1, 1 / 2]
        assert found["smaller"].tolist() == [1 / 2, 1 / 2]


def test_the_coin_keeps_as_many_as_the_rule() -> None:
    for measured in (ch17.rule_by_chance, ch17.halves_by_chance):
        found = measured(RUN)
        # Two of four are kept in each seed: of both parts together as many are covered as without a rule.
        assert (found["left"] + found["right"]).tolist() == [3 / 2, 1]


def test_slots_are_compared_within_campaigns(monkeypatch: pytest.MonkeyPatch) -> None:
    log = pd.DataFrame({"position": [1, 1, 2, 3, 3, 3, 3], "click": [1, 0, 1, 1, 0, 0, 0]})
    monkeypatch.setattr(ch17, "six_logs", lambda: {(of, "random"): log for of in ("all", "men", "women")})
    found = ch17.slots_looked_at(RUN)
    assert found["left"] == pytest.approx(np.log([1 / 4] * 3))
    assert found["right"] == pytest.approx(np.log([1 / 2] * 3))


def test_the_exact_claims_hold_and_their_policy_learns() -> None:
    for measured in (ch17.logged_weights, ch17.averaged_propensities):
        found = measured(RUN)
        assert found["left"] == pytest.approx(found["right"], abs=1e-12)
    assert ch17.learnt_policy((0, 1), (1, 0)).tolist() == [3 / 5, 1 / 5, 1 / 5]
