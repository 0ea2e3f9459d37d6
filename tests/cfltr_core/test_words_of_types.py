"""The words that a type lists are those that the function takes: editors and type checkers read nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from cfltr_book.data.generated import GENERATED, Knobs
from cfltr_core import (
    ClickLog,
    PositionBasedUser,
    RankingData,
    TrustUser,
    certified_optimum,
    click_sampler,
    dcg,
    ips,
    lambda_loss,
    ndcg,
    power_examination,
    ranks,
    regret,
    surrogate_ranks,
    train_sgd,
    two_layer,
)
from cfltr_core.evaluation.estimates import Unit
from cfltr_core.learning.bounds import Surrogate
from cfltr_core.learning.convergence import second_moment
from cfltr_core.learning.lambda_pairs import TRUNCATIONS, Form, Truncation
from cfltr_core.learning.networks import Activation
from cfltr_core.learning.propdcg import Curvature, curvature
from cfltr_core.learning.regret import Iterate, Part, Regret
from cfltr_core.learning.samplers import Method
from cfltr_core.learning.sgd import Optimizer
from cfltr_core.ranking.metrics import TIES, Ties
from cfltr_core.ranking.rank_weight import RankWeight

CUTS = [0, 2]
LOG = ClickLog(
    document=[0, 1], rank=[1, 2], impressions=[4, 4], clicks=[3, 1], propensity=[1.0, 0.5], sessions=[4], offsets=CUTS
)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def trained(word: str) -> object:
    return train_sgd(np.eye(2), click_sampler(LOG, "ips"), learning_rates=0.1, steps=2, rng=rng(), optimizer=word)  # type: ignore[arg-type]


PATH = train_sgd(np.eye(2), click_sampler(LOG, "ips"), learning_rates=0.1, steps=2, rng=rng())
OPTIMUM = certified_optimum(np.eye(2), LOG)


def judged(word: str) -> Regret:
    data = RankingData(np.eye(2), [1, 0], offsets=CUTS)
    return regret(PATH, data, label_optimum=OPTIMUM, log_optimum=OPTIMUM, iterate=word)  # type: ignore[arg-type]


REGRET = judged("last")
# The type, its words, and the function that takes one.
TYPES: dict[str, tuple[Any, list[str], Callable[[Any], object]]] = {
    "ties": (
        Ties,
        ["average", "random", "optimistic", "pessimistic"],
        lambda word: ranks([1.0, 2.0], CUTS, ties=word, rng=rng()),
    ),
    "unit": (Unit, ["query", "session"], lambda word: ips(LOG, lam=[1.0, 2.0], unit=word)),
    "gain": (
        get_type_hints(ndcg)["gain"],
        ["exponential", "linear"],
        lambda word: ndcg([1.0, 2.0], CUTS, relevance=[1, 0], gain=word),
    ),
    "empty": (
        get_type_hints(ndcg)["empty"],
        ["drop", "zero", "one"],
        lambda word: ndcg([1.0, 2.0], CUTS, relevance=[1, 0], empty=word),
    ),
    "sampling": (
        get_type_hints(second_moment)["sampling"],
        ["uniform", "weighted"],
        lambda word: second_moment([1.0], [1.0], counts=[1], sampling=word),
    ),
    "method": (Method, ["biased", "ips", "countersample"], lambda word: click_sampler(LOG, word)),
    "activation": (Activation, ["sigmoid", "tanh", "relu"], lambda word: two_layer(2, activation=word)),
    "optimizer": (Optimizer, ["sgd", "adam", "adagrad"], trained),
    "truncation": (
        Truncation,
        [*TRUNCATIONS],
        lambda word: lambda_loss([1.0, 2.0], CUTS, gains=[1.0, 0.0], cutoff=1, truncation=word),
    ),
    "form": (Form, ["linear", "difference"], lambda word: lambda_loss([1.0, 2.0], CUTS, gains=[1.0, 0.0], form=word)),
    "iterate": (Iterate, ["average", "last"], judged),
    "part": (Part, ["total", "training"], lambda word: REGRET.average(word)),
    "surrogate": (
        Surrogate,
        ["hinge", "logistic"],
        lambda word: surrogate_ranks([1.0, 2.0], CUTS, documents=[0], surrogate=word),
    ),
}


@pytest.mark.parametrize("name", TYPES)
def test_every_word_of_a_type_is_taken_and_no_other(name: str) -> None:
    kind, words, take = TYPES[name]
    assert [*get_args(kind)] == words
    for word in words:
        take(word)
    for other in (words[0].upper(), f"{words[-1]}s", ""):
        with pytest.raises(ValueError, match=rf"^{name} is '{other}': choose"):
            take(other)


def test_words_that_are_given_back() -> None:
    shapes = [RankWeight("a line", lambda r: r), RankWeight("a square", np.square), RankWeight("a root", np.sqrt)]
    assert [curvature(weight, 20) for weight in shapes] == [*get_args(Curvature)] == ["linear", "convex", "concave"]
    assert {knobs.lengths for knobs in GENERATED.values()} == {*get_args(get_type_hints(Knobs)["lengths"])}
    assert get_args(Ties) == TIES


def test_what_is_printed_is_short_and_names_no_address() -> None:
    judged = ndcg(np.arange(300.0), np.arange(0, 301, 3), relevance=np.tile([0, 1, 2], 100))
    theta = power_examination(1.0)
    for thing, words in {
        dcg(10): "RankWeight(DCG@10)",
        judged: "NDCG(mean=1 over 100 queries, share_dropped=0)",
        PositionBasedUser(theta, epsilon_minus=0.1): (
            "PositionBasedUser(examination=a function of ranks, epsilon_plus=1, epsilon_minus=0.1)"
        ),
        PositionBasedUser([1, 1 / 2, 1 / 3]): (
            "PositionBasedUser(examination=[1, 0.5, 0.333], epsilon_plus=1, epsilon_minus=0)"
        ),
        TrustUser(np.ones(100), epsilon_minus=theta): (
            "TrustUser(examination=[1, 1, 1, 1, …], epsilon_plus=1, epsilon_minus=a function of ranks)"
        ),
    }.items():
        assert repr(thing) == words
