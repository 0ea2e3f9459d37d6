"""Sweeps: paired draws, the same numbers for any number of workers, and nothing lost by an interruption."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest

from cfltr_core.reporting.sweeps import Cell, cell_generator, sweep

SETTINGS = [{"eta": 0.5}, {"eta": 1.0, "name": "steep"}]


def experiment(corpus: str, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    draws = rng.random(3)
    return {"sum": float(draws.sum() * setting["eta"]), "draws": draws, "corpus": corpus, "n": np.int64(seed)}


def fails_on_the_last(corpus: str, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    if (seed, setting["eta"]) == (1, 1.0) and not (Path(setting["folder"]) / "mended").exists():
        raise RuntimeError("interrupted")
    with (Path(setting["folder"]) / "calls").open("a") as calls:
        calls.write(f"{seed} {setting['eta']}\n")
    return {"draw": rng.random()}


@pytest.mark.oracle("sweeps.sweep")
@pytest.mark.parametrize("jobs", [1, 2])
def test_every_cell_once_in_order_whatever_the_number_of_workers(jobs: int) -> None:
    cells = sweep(experiment, ["digits", "yahoo-like"], range(2), SETTINGS, jobs=jobs)
    assert [(c.corpus, c.seed, c.setting, c.result) for c in cells] == oracles.sweep_cells(
        ["digits", "yahoo-like"], [0, 1], SETTINGS
    )


@pytest.mark.oracle("sweeps.cell_generator")
def test_the_settings_of_a_seed_share_their_draws() -> None:
    cells = sweep(experiment, ["digits"], [3, 4], SETTINGS)
    assert cells[0].result["draws"] == cells[1].result["draws"]
    assert cells[0].result["draws"] != cells[2].result["draws"]
    expected = oracles.uniforms([3, zlib.crc32(b"digits")], 3)
    assert cell_generator("digits", 3).random(3).tolist() == expected
    with pytest.raises(ValueError, match=r"seed is -1"):
        cell_generator("digits", -1)


def test_an_interrupted_sweep_resumes_and_ends_with_the_same_numbers(tmp_path: Path) -> None:
    settings = [{"eta": 0.5, "folder": str(tmp_path)}, {"eta": 1.0, "folder": str(tmp_path)}]
    store = tmp_path / "store"
    with pytest.raises(RuntimeError, match="interrupted"):
        sweep(fails_on_the_last, ["digits"], [0, 1], settings, store=store)
    assert len(list(store.glob("*.json"))) == 3
    (tmp_path / "mended").touch()
    cells = sweep(fails_on_the_last, ["digits"], [0, 1], settings, store=store)
    assert (tmp_path / "calls").read_text().splitlines() == ["0 0.5", "0 1.0", "1 0.5", "1 1.0"]
    assert cells == sweep(fails_on_the_last, ["digits"], [0, 1], settings)


def test_a_damaged_cell_is_computed_again(tmp_path: Path) -> None:
    cells = sweep(experiment, ["digits"], [0], SETTINGS, store=tmp_path)
    files = sorted(tmp_path.glob("*.json"))
    files[0].write_text('{"result": {"sum"')
    files[1].write_text("[]")
    assert sweep(experiment, ["digits"], [0], SETTINGS, store=tmp_path) == cells
    assert all("result" in json.loads(f.read_text()) for f in files)


def test_another_experiment_does_not_find_the_cells_of_this_one(tmp_path: Path) -> None:
    def other(corpus: str, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {"sum": -1.0}

    sweep(experiment, ["digits"], [0], SETTINGS, store=tmp_path)
    assert [c.result for c in sweep(other, ["digits"], [0], SETTINGS, store=tmp_path)] == [{"sum": -1.0}] * 2
    assert len(list(tmp_path.glob("*.json"))) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [0], SETTINGS), "the sweep is empty"),
        ((["digits"], [], SETTINGS), "the sweep is empty"),
        ((["digits"], [0, 0], SETTINGS), "the same cell stands twice"),
        ((["digits"], [0], [{"f": len}]), "settings: .* cannot be written as JSON"),
        ((["digits"], [0], [{"eta": float("nan")}]), "settings: .* cannot be written as JSON"),
    ],
)
def test_bad_sweeps_are_refused_before_any_cell_runs(arguments: tuple[Any, ...], message: str) -> None:
    def never(corpus: str, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        raise AssertionError("ran")

    with pytest.raises(ValueError, match=message):
        sweep(never, *arguments)


def test_results_that_cannot_be_kept_name_their_cell() -> None:
    def bad(corpus: str, seed: int, setting: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return {"value": float("inf")}

    with pytest.raises(ValueError, match=r"digits, seed 0, .*cannot be kept as JSON"):
        sweep(bad, ["digits"], [0], [{}])
    with pytest.raises(ValueError, match="source text cannot be read"):
        sweep(len, ["digits"], [0], [{}])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="jobs is 0"):
        sweep(experiment, ["digits"], [0], SETTINGS, jobs=0)


def test_cells_are_plain_values() -> None:
    (cell,) = sweep(experiment, ["digits"], [0], SETTINGS[:1])
    assert cell == Cell("digits", 0, SETTINGS[0], cell.result)
    assert isinstance(cell.result["draws"], list)
    assert type(cell.result["n"]) is int
