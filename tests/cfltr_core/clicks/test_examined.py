"""Clicks of which nobody said who examines the ranks: what may be done with them, and what is refused."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import oracles
import pandas as pd
import pytest
from event_damage import shoes
from refusals import refuses

import cfltr_core as cf
from cfltr_core.clicks.event_counts import Events
from cfltr_core.clicks.logs import require_examined

pytest.importorskip("ibis", reason="the extra logs is not installed")
SHOWN = {1: "ABC", 2: "BCA", 3: "CAB", 4: "ABC", 5: "CBA", 6: "BAC"}
CLICKED = {(1, "A"), (2, "C"), (3, "C"), (5, "A"), (6, "A")}
USER = cf.PositionBasedUser([1, 1 / 2, 1 / 3])
X = np.eye(3)


@functools.cache
def events() -> Events:
    lists = pd.DataFrame({"query": ["shoes"] * 3, "document": list("ABC"), "age": [3, 1, 2]})
    return cf.read_events(shoes(SHOWN, CLICKED), lists, split=None)


LAM = cf.rank_weights([3, 2, 1], [0, 3], metric=cf.dcg())
WEIGHED: dict[str, Callable[[Any], Any]] = {
    "weights": lambda log: log.weights,
    "mass": lambda log: log.mass,
    "fit_proprank": lambda log: cf.fit_proprank(X, log),
    "fit_propdcg": lambda log: cf.fit_propdcg(X, log),
    "fit_lambdaloss": lambda log: cf.fit_lambdaloss(X, log),
    "validation": lambda log: cf.select_C(lambda C, start: None, [1, 2], features=X, log=log),  # type: ignore[arg-type, return-value]
    "ips": lambda log: cf.ips(log, LAM),
    "clipped": lambda log: cf.clipped(log, LAM, cap=2),
    "self_normalised": lambda log: cf.self_normalised(log, LAM),
    "click_sampler": lambda log: cf.click_sampler(log, "countersample"),
    "weight_summary": cf.weight_summary,
}


@pytest.mark.parametrize("use", WEIGHED)
def test_weights_are_refused_until_somebody_says_who_examines(use: str) -> None:
    silent = events().log()
    assert not silent.examined
    refuses("log: nobody said who examines its ranks", WEIGHED[use], silent)
    shares = events().displays()
    everywhere = cf.PositionBasedUser(cf.power_examination(0.0))
    for log in (events().log(USER), cf.policy_aware(silent, shares.exposure(USER)), events().log(everywhere)):
        assert log.examined
        require_examined(log)
    if use != "validation":
        WEIGHED[use](events().log(USER))


def test_what_needs_no_weights_takes_them() -> None:
    silent, shares = events().log(), events().displays()
    assert cf.naive(silent, LAM).value == cf.ips(events().log(cf.PositionBasedUser([1, 1, 1])), LAM).value
    other = cf.rank_weights([1, 2, 3], [0, 3], metric=cf.dcg())
    found = cf.decide(other, LAM, log=silent, shares=shares, smallest=0.1, user=USER)
    aware = cf.ips(cf.policy_aware(silent, shares.exposure(USER)), other - LAM)
    assert found.difference == pytest.approx(-aware.value, abs=1e-12)


@pytest.mark.oracle("logs.require_examined")
def test_propensities_that_are_given_count_as_said() -> None:
    silent = events().log()
    for propensity in (1 / silent.rank, np.ones(len(silent.rank)), np.where(silent.rank == 3, 0.5, 1.0)):
        for said in (True, False):
            log = dataclasses.replace(silent, propensity=propensity, examined=said)
            assert log.examined == oracles.is_examined(propensity.tolist(), said)
            if log.examined:
                require_examined(log)
            else:
                refuses("log: nobody said", require_examined, log)


@pytest.mark.parametrize("learn", ["fit_proprank", "fit_propdcg", "fit_lambdaloss"])
def test_events_are_no_log_and_the_message_says_how_they_become_one(learn: str) -> None:
    for given, name in ((events(), "Events"), ([], "list")):
        refuses(f"log is {name}: expected ClickLog, such as events.log(user), or", getattr(cf, learn), X, given)
