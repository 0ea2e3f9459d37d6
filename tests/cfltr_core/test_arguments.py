"""How public functions are called: at most two arguments by their place, and numbers of any kind."""

import inspect
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import cfltr_book.data.letor
import cfltr_core
import cfltr_core as cf
from cfltr_core.checks import finite_vector
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
    for package in (cfltr_core, cfltr_book, cfltr_book.data.letor):
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


# What callers get who leave an argument out, once more: a change of either copy must be made twice, on purpose.
ESTIMATE = {"rank_weights": None, "lam": None, "unit": "query"}
TIES = {"ties": "average", "rng": None}
HINGE = {"surrogate": "hinge", "sigma": 1.0, "smoothing": 0.0}
PAIRS = {"weighting": "harmonic", "design": None}
LAMBDA = {"cutoff": None, "truncation": "at_least_one", "form": "linear", "sigma": 1.0}
DEFAULTS = {
    "Experiment": {"seeds": None, "at_once": None, "rtol": 1e-6, "rough": None},
    "fit_lambdaloss": {
        **LAMBDA,
        "module": None,
        "learning_rate": None,
        "weight_decay": 0.0,
        "batch_documents": 1000,
        "epochs": None,
        "validation": None,
        "patience": None,
        "device": "cpu",
        "seed": 0,
        "progress": None,
    },
    "lambda_loss": {**LAMBDA, "hessian": False},
    "dual_learning": {"module": None, "decay": 0.0, "steps": 500, "batch": 256, "learning_rate": 1.0},
    "expectation_maximisation": {"iterations": 200, "tolerance": 0.0, "start": None},
    "regression_em": {"scorer": None, "iterations": 200, "tolerance": 0.0},
    "two_towers": {"combine": "product", "module": None, "decay": 0.0, "steps": 500, "seed": 0},
    "DisplayCounts": {"period": None, "origin": None},
    "SwapPolicy": {"swap": 0.5},
    "adjacent_chain": PAIRS,
    "all_pairs": PAIRS,
    "click_rates": {"places": None},
    "count_rows": {"period": None},
    "pair_counts": PAIRS,
    "pivot": {"rank": 1} | PAIRS,
    "shrunk_power": {"tau": None},
    "PlackettLucePolicy": {"temperature": 1.0},
    "PositionBasedUser": {"epsilon_plus": 1.0, "epsilon_minus": 0.0},
    "RankWeight": {"larger_is_better": True, "derivative": None},
    "RankingData": {"threshold": 1, "name": "data"},
    "ReaderOptions": {"cap": float(np.finfo(np.float32).max), "drop": (), "log1p": False, "normalise": False}
    | {"threshold": None},
    "Run": {"seed": 0},
    "Run.each_seed": {"settings": None, "seeds": None, "store": None, "by_seed": False},
    "Run.figure": {"dense": False, "seeds": None},
    "Run.kept": {"seeds": None, "live": 1, "again": ((0, 0),), "rtol": 1e-6, "atol": 1e-9},
    "Run.kept_elsewhere": {"scale": None, "corpus": None},
    "Run.number": {"form": "{:.3g}"},
    "Run.record": {"form": "{:.3g}"},
    "Run.simulate": {"n_clicks": None, "n_sessions": None},
    "Run.slider": {"start": None, "form": "{:g}", "dense": False, "seeds": None},
    "TrustUser": {"epsilon_plus": 1.0, "epsilon_minus": 0.0},
    "additive_metric": TIES,
    "affine": ESTIMATE,
    "band": {"label": None, "units": None},
    "bound_loss": {"weights": None, "metric": None, **HINGE},
    "certified_optimum": {"strengths": (1.0, 10.0, 100.0, 1e3, 1e4), "gap": 1e-3, "max_passes": 3000},
    "check_log": {"source": None, "columns": None, "level": 0.03, "redraws": 100, "memory": "1GB"},
    "choose_safely": {"curve": None, "user": None, "cutoff": None, "level": 0.95, "spend": 1.0, "ceiling": 1.0}
    | {"rule": "interval"},
    "claim": {"units": None},
    "click_sampler": {"replacement": True, "cap": None, "uniform_share": 0.0},
    "clipped": ESTIMATE,
    "cross_fitted": {"folds": 5, "ridge": 10.0, "fit": None},
    "curves": {"ax": None, "labels": None, "legend": True, "units": None},
    "dcg": {"cutoff": None},
    "decide": {"curve": None, "user": None, "cutoff": None, "level": 0.95, "spend": 1.0, "ceiling": 1.0}
    | {"by": None, "ab_test": None},
    "doubly_robust": {"cap": float("inf")},
    "evaluation_steps": {"batch": 1, "epochs": 5, "every": 10_000},
    "figure": {"dense": False},
    "fit_deep": {"metric": None, "surrogate": "hinge", "sigma": 1.0, "method": "direct", "round_epochs": 5}
    | {"optimizer": "adam", "learning_rate": 1e-3, "weight_decay": 0.0, "batch_documents": 1000, "epochs": None}
    | {"steps": None, "validation": None, "patience": None, "device": "cpu", "seed": 0, "progress": None},
    "fit_linear_ranker": {"ridge": 1.0, "min_queries": 20},
    "fit_propdcg": {"C": 1.0, "metric": None, "decrease": 1e-3, "gap": 1e-3, "start": None, "max_rounds": 50},
    "fit_proprank": {"C": 1.0, "gap": 1e-3, "start": None, "max_passes": 5000},
    "ips": ESTIMATE,
    "load_corpus": {"options": None},
    "mean_interval": {"level": 0.95, "units": None},
    "naive": ESTIMATE,
    "ClickLog": {"examined": True, "origin": None},
    "LinearRanker": {"feature_names": None},
    "LinearRanker.sql": {"feature_names": None},
    "ndcg": {"cutoff": 10, "gain": "exponential", "empty": "drop"},
    "power_examination": {"shift": 0.0},
    "rank_weights": TIES,
    "ranks": TIES,
    "read_collection": {"options": None, "report": None},
    "read_events": {"features": None, "columns": None, "split": (0.6, 0.2, 0.2), "split_by": "session"}
    | {"unknown": "error", "gaps": "error", "memory": "1GB"},
    "read_svmlight": {"n_features": None, "options": None, "report": None},
    "record": {"form": "{:.3g}"},
    "query_sampler": {"gradient_bounds_of": None, "cap": None, "uniform_share": 0.0},
    "regret": {"iterate": "average", "cutoff": 10},
    "select_C": {"metric": None, "extend": 6},
    "self_normalised": ESTIMATE,
    "surrogate_ranks": HINGE,
    "train_sgd": {"batch": 1, "runs": 1, "optimizer": "sgd", "record": None},
    "two_layer": {"hidden": 200, "activation": "sigmoid"},
}


def test_defaults() -> None:
    found = {}
    for name, thing in CALLABLES.items():
        parameters = inspect.signature(thing).parameters.values()
        defaults = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
        found |= {name: defaults} if defaults else {}
    assert found == DEFAULTS


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
