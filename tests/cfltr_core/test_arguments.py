"""How public functions are called: at most two arguments by their place, numbers of any kind, words that types list."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from kept_text import same_as_kept

import cfltr_book.data.letor
import cfltr_book.theory
import cfltr_core
import cfltr_core as cf
from cfltr_book.data.generated import GENERATED, Knobs
from cfltr_core import RankWeight, TrustUser, dcg, ndcg, power_examination
from cfltr_core.checks import finite_vector
from cfltr_core.learning.propdcg import Curvature, curvature
from cfltr_core.ranking.rank_weight import RankWeights
from cfltr_core.sampling import AliasTable, alias_tables

CUTS = [0, 1, 3]
NUMBERS = {
    "int8": np.array([1, 0, 1], dtype=np.int8),
    "int64": np.array([1, 0, 1]),
    "bool": np.array([True, False, True]),
    "float32": np.array([1, 0, 1], dtype=np.float32),
    "list": [1, 0, 1],
}


def public_callables() -> Iterator[tuple[str, Callable[..., object]]]:
    """Functions and classes that users call by name, and the methods of the classes."""
    for package in (cfltr_core, cfltr_book, cfltr_book.theory, cfltr_book.data.letor):
        for name in package.__all__:
            thing = getattr(package, name)
            if callable(thing):
                yield name, thing
            if isinstance(thing, type):
                for method, function in inspect.getmembers(thing, inspect.isfunction):
                    if not method.startswith("_"):
                        yield f"{name}.{method}", function


CALLABLES = dict(public_callables())
# The three parameters of a chapter, in the order of its first cell.
MORE = {"Run": ["scale", "corpus", "seed"]}


@pytest.mark.parametrize("name", CALLABLES)
def test_at_most_two_arguments_are_given_by_their_place(name: str) -> None:
    kinds = inspect.Parameter
    by_place = [
        parameter.name
        for parameter in inspect.signature(CALLABLES[name]).parameters.values()
        if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD) and parameter.name != "self"
    ]
    assert len(by_place) <= 2 or by_place == MORE.get(name), f"{name}: {', '.join(by_place)}"


def test_defaults() -> None:
    """What callers get who leave an argument out is changed on purpose only."""
    lines = []
    for name, thing in sorted(CALLABLES.items()):
        parameters = inspect.signature(thing).parameters.values()
        given = [f"{one.name}={one.default!r}" for one in parameters if one.default is not inspect.Parameter.empty]
        lines += [f"{name}({', '.join(given)})\n"] if given else []
    same_as_kept(Path(__file__).with_name("defaults.txt"), "".join(lines))


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_of_any_kind_become_double_precision(kind: str) -> None:
    given = NUMBERS[kind]
    log = cf.ClickLog(
        document=[0, 1, 2], rank=[1, 1, 2], impressions=[1] * 3, clicks=[0] * 3, propensity=given, sessions=[1, 1],
        offsets=CUTS,
    )  # fmt: skip
    found = {
        "finite_vector": finite_vector(given, 3, "given"),
        "segment_sum": cf.segment_sum(given, CUTS),
        "ranks": cf.ranks(given, CUTS),
        "rank_weights": cf.rank_weights(given, CUTS, metric=cf.dcg()).lam,
        "additive_metric": cf.additive_metric([3, 2, 1], CUTS, relevance=given, metric=cf.average_rank()),
        "RankWeights": RankWeights(given, cf.dcg()).lam,
        "RankWeight": cf.average_rank()(np.asarray(given) + np.asarray(given).dtype.type(1)),
        "propensity of a curve": cf.PositionBasedUser(lambda rank: np.ones_like(rank)).propensity(given),
        "propensity of a table": cf.PositionBasedUser([1, 1]).propensity(given),
        "attraction": cf.PositionBasedUser([1, 1]).attraction(given),
        "AliasTable": AliasTable(given, [0, 1, 2]).keep,
        "AliasTable.build": AliasTable.build(given).keep,
        "ClickLog": log.propensity,
        "LinearRanker": cf.LinearRanker(given).weights,
        "decision_function": cf.LinearRanker([1.0]).decision_function(np.asarray(given)[:, None]),
    }
    assert {name: str(array.dtype) for name, array in found.items()} == dict.fromkeys(found, "float64")
    np.testing.assert_array_equal(found["finite_vector"], [1.0, 0.0, 1.0])


@pytest.mark.parametrize("kind", ["int8", "int64", "float32", "list"])
def test_indices_of_any_kind_become_integers(kind: str) -> None:
    rank = NUMBERS[kind]
    policy = cf.DeterministicPolicy(rank, [0, 1, 2, 3])
    data = cf.RankingData(np.zeros((3, 1)), rank, offsets=CUTS)
    found = {
        "displayed_rank": policy.displayed_rank,
        "relevance": data.relevance,
        "offsets": data.offsets,
        "alias": AliasTable([1.0] * 3, rank).alias,
    }
    expected = {"displayed_rank": "int64", "relevance": "int8", "offsets": "int64", "alias": "int64"}
    assert {name: str(array.dtype) for name, array in found.items()} == expected
    assert data.features.dtype == np.float32


def test_a_curve_is_asked_about_ranks_in_double_precision() -> None:
    asked = []

    def curve(rank: np.ndarray) -> np.ndarray:
        asked.append(rank)
        return 1.0 / rank

    cf.PositionBasedUser(curve).propensity(np.array([1, 2, 0], dtype=np.int8))
    assert [(rank.dtype, rank.tolist()) for rank in asked] == [(np.float64, [1.0, 2.0, 1.0])]


def test_alias_tables_of_single_precision_weights_are_of_double() -> None:
    threshold, other = alias_tables(np.array([0.5, 0.25, 0.25], dtype=np.float32), np.array([0, 3]))
    assert (threshold.dtype, other.dtype) == (np.float64, np.int64)


def test_words_that_are_given_back() -> None:
    shapes = [RankWeight("a line", lambda r: r), RankWeight("a square", np.square), RankWeight("a root", np.sqrt)]
    assert [curvature(weight, 20) for weight in shapes] == [*get_args(Curvature)] == ["linear", "convex", "concave"]
    assert {knobs.lengths for knobs in GENERATED.values()} == {*get_args(get_type_hints(Knobs)["lengths"])}


def test_what_is_printed_is_short_and_names_no_address() -> None:
    judged = ndcg(np.arange(300.0), np.arange(0, 301, 3), relevance=np.tile([0, 1, 2], 100))
    assert repr(judged) == "NDCG(mean=1 over 100 queries, share_dropped=0)"
    assert repr(dcg(10)) == "RankWeight(DCG@10)"
    trusting = TrustUser(np.ones(100), epsilon_minus=power_examination(1.0))
    words = "TrustUser(examination=[1, 1, 1, 1, …], epsilon_plus=1, epsilon_minus=a function of ranks)"
    assert repr(trusting) == words
