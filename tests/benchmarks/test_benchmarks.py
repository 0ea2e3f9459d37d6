"""Every benchmark runs, at a size at which its times say nothing: what it compares must still be equal."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def few(generate: Callable[..., Any]) -> Callable[..., Any]:
    """Data of a hundredth of the queries and at most ten features."""
    return lambda n_queries, mean_length, n_features, *rest: generate(
        max(8, n_queries // 100), mean_length, min(n_features, 10), *rest
    )


def sparse(clicked: Callable[..., Any]) -> Callable[..., Any]:
    """Logs of a hundredth of the clicks, at most two thousand."""
    return lambda data, n_clicks: clicked(data, min(2_000, max(50, n_clicks / 100)))


# Of each benchmark what replaces its sizes, and what stands on its command line.
SMALL: dict[str, tuple[dict[str, Any], list[str]]] = {
    "answers": ({"QUERIES": 300}, ["--logs", "1"]),
    "bounds": ({"N_LISTS": 10, "N_DOCS": 12, "LENGTHS": (24, 100), "IN_ALL": 200, "TURNS": 1}, []),
    "click_log": ({"N_QUERIES": 200, "CLICKS": 10_000, "MANY": 100_000, "BLOCK": 1_000}, []),
    "corpus_knobs": ({"SEEDS": range(1), "TURNED": {}}, []),
    "corpus_usefulness": ({"SEEDS": range(2)}, ["digits"]),
    "corpus_weights": ({"SEEDS": range(2), "MEAN_WEIGHT": {}}, []),
    "decisions": ({}, ["no such cell", "--logs", "1"]),
    "deep": ({"QUERIES": 12, "LENGTH": 10, "FEATURES": 5}, []),
    "events": ({}, ["--tables", "2"]),
    "health": ({"QUERIES": 30, "FEW": 600, "MANY": 900, "MOST": 1_200}, ["--logs", "1", "--table", "t.csv"]),
    "imports": ({"REPETITIONS": 1}, []),
    "lambdaloss": ({"N_LISTS": 8, "N_DOCS": 15, "LENGTHS": (10, 20)}, []),
    "letor_reader": ({"N_DOCS": 240, "N_FEATURES": 6}, ["3"]),
    "ndcg": ({"N_QUERIES": 20, "N_DOCS": 15}, []),
    "policies": ({"N_DISPLAYS": 20_000, "MANY": 40_000, "N_QUERIES": 100, "N_DOCS": 30}, []),
    "propensities": ({"N_ROWS": 20_000, "N_SESSIONS": 10_000, "STRATA": (1_000,), "SESSIONS": (1_000,)}, []),
    "propensity_coverage": ({"LOGS": 2, "SETS": 1, "POPULATIONS": 2}, ["no such cell"]),
    "safety": ({"CLICKS": (100,), "CAPS": (2.0, 10.0)}, ["--logs", "2", "--clicks", "100"]),
    "samplers": ({"N": 2_000, "BATCHES": (50,)}, []),
    "sgd": ({"QUERIES": 20, "CLICKS": 500, "STEPS": 20, "WIDE": 70}, []),
    "svm": ({"generate": few, "clicked": sparse}, ["--cap", "1"]),
    "warm_starts": ({}, ["--starts", "3"]),
}
# A page is rewritten by one, which another test measures again; the other is the stop-watch.
WITHOUT = {"__init__", "corpus_report", "timing"}


def test_every_benchmark_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == SMALL.keys() | WITHOUT


@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    constants, arguments = SMALL[name]
    for constant, value in constants.items():
        before = getattr(module, constant)
        monkeypatch.setattr(module, constant, value(before) if value in (few, sparse) else value)
    if hasattr(module, "best_of"):
        best_of = module.best_of
        monkeypatch.setattr(module, "best_of", lambda call, repetitions=1: best_of(call, 1))
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.chdir(tmp_path)
    if name == "propensities":
        module.speed()
        module.errors()
    else:
        module.main(*([arguments] if name == "propensity_coverage" else []))
    capsys.readouterr()
