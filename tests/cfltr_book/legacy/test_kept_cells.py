"""What a kept cell says of itself in its file, and results that are odd but can be kept."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from cfltr_book import Run
from cfltr_book.legacy.digests import describe, digest
from cfltr_book.legacy.sweeps import Cell, batches_of, pack, run_cells, unpack

RUN = Run("smoke", "digits", 3)


def members(content: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(content)) as found:
        return {name: found[name] for name in found.files}


def test_a_file_about_something_else_says_what() -> None:
    content = pack(1, {"seed": 1})
    with pytest.raises(ValueError, match=r"""^the file is about \{"seed": 1\}, not about \{'seed': 2\}$"""):
        unpack(content, {"seed": 2})
    assert unpack(pack(1, {"stream": (7, 2)}), {"stream": (7, 2)}) == 1  # a tuple is a list in JSON
    assert unpack(content, {"seed": 1}) == 1


@pytest.mark.parametrize("settings", [None, [{"eta": 0.5}, "words"]])
def test_a_file_says_which_cell_it_is(tmp_path: Path, settings: list[Any] | None) -> None:
    calls: list[Any] = []

    def cell(*arguments: Any) -> list[Any]:
        return [*arguments[:-1], arguments[-1].random()]

    found = RUN.each_seed(cell, settings, stream=[7, 2], seeds=[5], store=tmp_path)
    draw = np.random.default_rng([5, 7, 2]).random()
    calls = [[5, draw]] if settings is None else [[[5, setting, draw] for setting in settings]]
    assert found == calls
    about = [json.loads(members(path.read_bytes())["about"].tobytes()) for path in sorted(tmp_path.iterdir())]
    keys = {digest(describe(setting, "x")) for setting in settings or [None]}
    for record in about:
        assert {**record, "setting": None} == {
            "corpus": "digits", "scale": "smoke", "seed": 5, "stream": [7, 2], "setting": None
        }  # fmt: skip
    assert {record["setting"] for record in about} == keys
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz"}
    assert all(len(path.stem) == 32 for path in tmp_path.iterdir())


def test_cells_are_named_in_messages() -> None:
    def odd(*arguments: Any) -> Any:
        return object()

    with pytest.raises(ValueError, match=r"^the result of digits, smoke, seed 3 is a object, which cannot be kept: "):
        RUN.each_seed(odd, stream=1)
    with pytest.raises(ValueError, match=r"^the result of digits, smoke, seed 4, \{'eta': 0\.5\} is a object, which"):
        RUN.each_seed(odd, [{"eta": 0.5}], stream=1, seeds=[4])
    long = "x" * 100
    with pytest.raises(ValueError, match=rf"^the result of digits, smoke, seed 3, '{'x' * 59} is a object, which"):
        RUN.each_seed(odd, [long], stream=1)
    twice = [
        Cell("one", {"seed": 1}, arguments=(1,), stream=(1,)),
        Cell("two", {"seed": 1}, arguments=(2,), stream=(2,)),
    ]
    with pytest.raises(ValueError, match=r"^settings, seeds: two stands twice; name each once$"):
        run_cells(odd, twice)


def test_what_is_none_is_kept_too(tmp_path: Path) -> None:
    folder = tmp_path / "calls"
    folder.mkdir()

    def nothing(seed: int, rng: np.random.Generator) -> None:
        (folder / str(len(list(folder.iterdir())))).touch()

    for _ in range(2):
        assert RUN.each_seed(nothing, stream=1, seeds=[3], store=tmp_path / "store") == [None]
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_cells_of_a_seed_run_on_one_worker(tmp_path: Path, workers: int) -> None:
    def cell(seed: int, setting: int, rng: np.random.Generator) -> list[Any]:
        return [seed, setting, rng.random(), os.getpid()]

    alone = RUN.each_seed(cell, [1, 2, 3], stream=4, seeds=[5, 6])
    with joblib.parallel_config(backend="loky", n_jobs=workers):
        found = RUN.each_seed(cell, [1, 2, 3], stream=4, seeds=[5, 6], store=tmp_path, by_seed=True)
    assert [[row[:3] for row in rows] for rows in found] == [[row[:3] for row in rows] for rows in alone]
    assert [len({row[3] for row in rows}) for rows in found] == [1, 1]
    assert len(list(tmp_path.iterdir())) == 6
    # Found again: by whom it was computed is kept, too.
    assert RUN.each_seed(cell, [1, 2, 3], stream=4, seeds=[5, 6], store=tmp_path, by_seed=True) == found


@pytest.mark.parametrize(
    ("missing", "together", "workers", "batches"),
    [
        (range(6), 3, 1, [[0, 1, 2], [3, 4, 5]]),
        (range(6), 3, 2, [[0, 1, 2], [3, 4, 5]]),
        (range(9), 3, 2, [[0, 1, 2], [3, 4, 5], [6, 8], [7]]),
        (range(3), 3, 2, [[0, 2], [1]]),
        (range(3), 3, 8, [[0], [1], [2]]),
        (range(4), 2, 3, [[0], [1], [2], [3]]),
        ([1, 7], 3, 2, [[1], [7]]),
        ([], 3, 2, []),
    ],
)
def test_batches(missing: Sequence[int], together: int, workers: int, batches: list[list[int]]) -> None:
    assert batches_of(missing, together, workers) == batches
