"""Bad input to the samplers, the trainer and the convergence checks: name, place, remedy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from small_logs import CUTS, LOG, SILENT, X

from cfltr_core import click_sampler, exact_runs, train_sgd, weight_summary
from cfltr_core.learning.convergence import (
    convergence_bound,
)
from cfltr_core.learning.samplers import ClickSampler
from cfltr_core.sampling import AliasTable, Deck

SAMPLER = click_sampler(LOG, "ips")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def slopes(states: np.ndarray) -> np.ndarray:
    return np.ones((len(states), 2, 1))


def train(**changes):
    values = {"features": X, "sampler": SAMPLER, "learning_rates": 0.1, "steps": 3, "rng": rng()}
    return train_sgd(**{**values, **changes})


def runs(probability=(0.5, 0.5), scale=(1.0, 1.0), rate=0.1, steps=3, gradients=slopes):
    return exact_runs(gradients, probability, factor=scale, learning_rate=rate, steps=steps, n_features=1)


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "no click": (lambda: weight_summary(SILENT), "log: there is no click in the log"),
    "steps of a bound": (
        lambda: convergence_bound(1, 1, weight=1, steps=[4, 0]),
        r"steps\[1\] is 0.*a number of iterations",
    ),
    "too many sequences": (lambda: runs(steps=40), r"steps is 40: 2\^40 sequences are too many .*take fewer steps"),
    "shape of gradients": (
        lambda: runs(gradients=lambda s: np.ones((1, 1, 1))),
        r"gradients returned shape \(1, 1, 1\), expected \(1, 2, 1\)|gradients returned shape",
    ),
    "table of nothing": (lambda: AliasTable.build([]), r"weights sum to 0\.0: expected a finite sum"),
    "weights of 0": (lambda: AliasTable.build([0.0, 0.0]), r"weights sum to 0\.0: expected a finite sum > 0"),
    "keep of nothing": (lambda: AliasTable([], []), "keep: expected one probability per category"),
    "deck of nothing": (lambda: Deck([]), "counts: there is no card"),
    "deck without cards": (lambda: Deck([0, 0]), "counts: there is no card"),
    "half a card": (lambda: Deck([1, 0.5]), r"counts\[1\] is 0\.5: expected a whole number"),
    "a card too few": (lambda: Deck([1, -1]), r"counts\[1\] is -1: expected 0 or more"),
    "deck too small": (
        lambda: ClickSampler([0, 1], Deck([1]), factor=[1, 1], offsets=CUTS),
        "table: it has 1 categories for 2",
    ),
    "sampler without clicks": (lambda: click_sampler(SILENT, "ips"), "log: there is no click in the log"),
    "table too small": (
        lambda: ClickSampler([0, 1], AliasTable([1.0], [0]), factor=[1, 1], offsets=CUTS),
        "table: it has 1 categories for 2",
    ),
    "record backwards": (lambda: train(record=[2, 1]), "record: expected increasing steps, at least one"),
    "record of nothing": (lambda: train(record=[]), "record: expected increasing steps, at least one"),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str) -> None:
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_the_unbroken_arguments_are_accepted() -> None:
    assert train().last.shape == (1, 1, 1, 3)
    assert len(runs().probability) == 8
    assert weight_summary(LOG).n_clicks == 6
    for thing in (AliasTable.build([1.0]), SAMPLER, train()):
        assert len(repr(thing)) < 80  # arrays are not printed
