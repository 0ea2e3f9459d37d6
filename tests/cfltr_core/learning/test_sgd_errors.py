"""Bad input to the samplers, the trainer and the convergence checks: name, place, remedy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from small_logs import CUTS, LOG, SILENT, X

from cfltr_core import click_sampler, exact_runs, proof_steps, train_sgd, weight_summary
from cfltr_core.learning.convergence import (
    click_gradients,
    convergence_bound,
    gradient_bounds,
    learning_rate_for,
    second_moment,
    steps_for_accuracy,
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


def proof(**changes):
    values = {"optimum": [1.0], "radius": 1.0, "gradient_bound": 1.0}
    return proof_steps(
        runs(),
        lambda states: states[:, 0],
        risk_gradient=lambda states: np.ones((len(states), 1)),
        **{**values, **changes},
    )


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "no click": (lambda: weight_summary(SILENT), "log: there is no click in the log"),
    "radius": (lambda: convergence_bound(0, 1, weight=1, steps=4), "radius is 0: expected a finite number > 0"),
    "gradient": (
        lambda: learning_rate_for(1, math.inf, weight=1, steps=4),
        "gradient_bound is inf: expected a finite number > 0",
    ),
    "scale": (lambda: convergence_bound(1, 1, weight=-1, steps=4), "weight is -1: expected a finite number > 0"),
    "accuracy": (
        lambda: steps_for_accuracy(1, 1, weight=1, accuracy=0.0),
        r"accuracy is 0\.0: expected a finite number > 0",
    ),
    "steps of a bound": (
        lambda: convergence_bound(1, 1, weight=1, steps=[4, 0]),
        r"steps\[1\] is 0.*a number of iterations",
    ),
    "steps of a rate": (
        lambda: learning_rate_for(1, 1, weight=1, steps=2.5),
        r"steps is 2\.5: expected a whole number",
    ),
    "moment, weights": (
        lambda: second_moment([[1]], [1], counts=[1], sampling="uniform"),
        "weights: expected one number per term",
    ),
    "moment, weight 0": (
        lambda: second_moment([1, 0], [1, 1], counts=[1, 1], sampling="uniform"),
        r"weights\[1\] is 0.*propensity",
    ),
    "moment, norms": (
        lambda: second_moment([1], [-1], counts=[1], sampling="uniform"),
        r"gradient_norms\[0\] is -1\.0",
    ),
    "moment, counts": (lambda: second_moment([1], [1], counts=[0], sampling="uniform"), "the sum of counts is 0"),
    "moment, sampling": (
        lambda: second_moment([1], [1], counts=[1], sampling="ips"),
        "sampling is 'ips': choose one of 'uniform', 'weighted'",
    ),
    "gradients, features": (
        lambda: click_gradients([1.0], [0, 1], documents=[0], w=[1.0]),
        r"features: expected shape \(n_docs",
    ),
    "gradients, w": (lambda: click_gradients(X, CUTS, documents=[0], w=[1.0]), r"w: expected shape \(3,\)"),
    "gradients, document": (lambda: gradient_bounds(X, CUTS, documents=[3]), r"documents\[0\] is 3.*no such document"),
    "law": (lambda: runs(probability=(0.5, 0.4)), r"probability sums to 0\.9: one click is drawn in each step"),
    "law, shape": (lambda: runs(probability=0.5), "probability: expected one number per click"),
    "negative law": (lambda: runs(probability=(1.5, -0.5)), r"probability\[0\] is 1\.5, outside \[0, 1\]"),
    "too many sequences": (lambda: runs(steps=40), r"steps is 40: 2\^40 sequences are too many .*take fewer steps"),
    "factor": (lambda: runs(scale=(1.0,)), r"factor: expected shape \(2,\)"),
    "rate": (lambda: runs(rate=-1.0), r"learning_rate is -1\.0: expected a finite number > 0"),
    "shape of gradients": (
        lambda: runs(gradients=lambda s: np.ones((1, 1, 1))),
        r"gradients returned shape \(1, 1, 1\), expected \(1, 2, 1\)|gradients returned shape",
    ),
    "proof, optimum": (lambda: proof(optimum=[1.0, 2.0]), r"optimum: expected shape \(1,\)"),
    "proof, bound": (lambda: proof(gradient_bound=0.0), r"gradient_bound is 0\.0"),
    "proof, moment": (lambda: proof(moment_bound=-1.0), r"moment_bound is -1\.0"),
    "table of nothing": (lambda: AliasTable.build([]), "weights: expected one number per category"),
    "negative weight": (lambda: AliasTable.build([1.0, -1.0]), r"weights\[1\] is -1\.0.*a finite number >= 0"),
    "weights of 0": (lambda: AliasTable.build([0.0, 0.0]), r"weights sum to 0\.0: expected a finite sum > 0"),
    "infinite weight": (lambda: AliasTable.build([1.0, math.inf]), r"weights\[1\] is inf"),
    "keep above 1": (lambda: AliasTable([1.5], [0]), r"keep\[0\] is 1\.5, outside \[0, 1\]"),
    "keep of nothing": (lambda: AliasTable([], []), "keep: expected one probability per category"),
    "alias outside": (lambda: AliasTable([1.0], [1]), r"alias\[0\] is 1.*no such category"),
    "method": (
        lambda: click_sampler(LOG, "naive"),
        "method is 'naive': choose one of 'biased', 'ips', 'countersample'",
    ),
    "CounterSample without replacement": (
        lambda: click_sampler(LOG, "countersample", replacement=False),
        "^replacement is False: CounterSample draws a click in proportion .*; draw with replacement, or use",
    ),
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
    "factor too long": (
        lambda: ClickSampler([0], AliasTable([1.0], [0]), factor=[1, 1], offsets=CUTS),
        r"factor: expected shape \(1,\)",
    ),
    "features": (lambda: train(features=X[0]), r"features: expected shape \(n_docs, n_features\)"),
    "NaN": (lambda: train(features=X * math.nan), "features: .*finite numbers"),
    "offsets": (lambda: train(features=X[:2]), r"sampler.offsets\[-1\] is 3 but there are 2 documents"),
    "click outside": (
        lambda: ClickSampler([3], AliasTable([1.0], [0]), factor=[1], offsets=CUTS),
        r"document\[0\] is 3.*no such document",
    ),
    "learning rate": (lambda: train(learning_rates=[0.1, 0.0]), r"learning_rates\[1\] is 0\.0.*a number > 0"),
    "steps": (lambda: train(steps=0), "steps is 0: expected a whole number of at least 1"),
    "batch": (lambda: train(batch=0), "batch is 0: expected a whole number of at least 1"),
    "runs": (lambda: train(runs=0.5), r"runs is 0\.5: expected a whole number of at least 1"),
    "optimizer": (lambda: train(optimizer="momentum"), "optimizer is 'momentum': choose sgd, adam or adagrad"),
    "late record": (lambda: train(record=[1, 4]), r"record\[1\] is 4.*outside \[0, 3\]: steps are counted from 1"),
    "record before the start": (lambda: train(record=[-1, 2]), r"record\[0\] is -1.*outside \[0, 3\]"),
    "record backwards": (lambda: train(record=[2, 1]), "record: expected increasing steps, at least one"),
    "record of nothing": (lambda: train(record=[]), "record: expected increasing steps, at least one"),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case: str) -> None:
    call, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("call", [lambda: train(rng=0), lambda: AliasTable([1.0], [0]).draw(3, 0)])
def test_generators_are_passed_in(call: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match="rng is int: pass a numpy"):
        call()


def test_the_unbroken_arguments_are_accepted() -> None:
    assert train().last.shape == (1, 1, 1, 3)
    assert len(runs().probability) == 8
    assert proof().excess <= 0
    assert weight_summary(LOG).n_clicks == 6
    for thing in (AliasTable.build([1.0]), SAMPLER, train()):
        assert len(repr(thing)) < 80  # arrays are not printed
