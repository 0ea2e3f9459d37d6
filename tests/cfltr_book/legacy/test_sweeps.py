"""Cells of a run: the same numbers for any number of workers and any store, and nothing lost by a kill."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import oracles
import pytest

from cfltr_book import Run
from cfltr_book.legacy import digests
from cfltr_book.legacy.cluster import problem_of_worker
from cfltr_book.legacy.sweeps import Cell, batches_of, pack, run_cells, unpack

RUN = Run("smoke", "digits", 3)
SETTINGS = [{"eta": 0.5}, {"eta": 1.0}]


def experiment(seed: int, setting: Mapping[str, float], rng: np.random.Generator) -> dict[str, Any]:
    draws = rng.random(3)
    total = 0.0
    for draw in draws:
        total += draw * setting["eta"]
    return {"sum": np.float64(total), "draws": draws.tolist(), "seed": np.int64(seed), "eta": setting["eta"]}


@pytest.mark.parametrize("workers", [1, 2])
def test_every_cell_once_in_order_whatever_the_number_of_workers(workers: int, tmp_path: Path) -> None:
    expected = oracles.each_seed([3, 4], SETTINGS, [7])
    with joblib.parallel_config(backend="loky", n_jobs=workers):
        assert RUN.each_seed(experiment, SETTINGS, stream=7) == expected
        assert RUN.each_seed(experiment, SETTINGS, stream=7, store=tmp_path) == expected
    assert RUN.each_seed(experiment, SETTINGS, stream=7) == expected  # alone: one after the other
    assert RUN.each_seed(experiment, SETTINGS, stream=[7, 2], seeds=[9]) == oracles.each_seed([9], SETTINGS, [7, 2])
    assert RUN.each_seed(lambda seed, rng: [seed, rng.random()], stream=7) == [
        [seed, *oracles.uniforms([seed, 7], 1)] for seed in (3, 4)
    ]


def test_what_was_kept_is_not_computed_again(tmp_path: Path) -> None:
    """A result that is None is one, too."""
    folder = tmp_path / "calls"
    folder.mkdir()

    def counted(seed: int, rng: np.random.Generator) -> list[float] | None:
        (folder / f"{seed}-{len(list(folder.iterdir()))}").touch()
        return None if seed == 4 else [seed, rng.random()]

    first = RUN.each_seed(counted, stream=7, store=tmp_path / "store")
    assert first == [[3, *oracles.uniforms([3, 7], 1)], None]
    for seeds, calls in (([3, 4], 2), ([3, 4, 5], 3)):
        assert RUN.each_seed(counted, stream=7, seeds=seeds, store=tmp_path / "store")[:2] == first
        assert len(list(folder.iterdir())) == calls


def test_the_key_knows_every_ingredient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def files(run: Run, setting: Any, stream: Any, seed: int = 3) -> int:
        run.each_seed(lambda seed, setting, rng: rng.random(), [setting], stream=stream, seeds=[seed], store=tmp_path)
        return len(list(tmp_path.iterdir()))

    changes = [
        (RUN, 0.5, 7, 3),
        (Run("ci", "digits", 3), 0.5, 7, 3),
        (Run("smoke", "yahoo-like", 3), 0.5, 7, 3),
        (RUN, 0.25, 7, 3),
        (RUN, {"eta": 0.5}, 7, 3),
        (RUN, np.array([0.5]), 7, 3),
        (RUN, 0.5, 8, 3),
        (RUN, 0.5, [7, 1], 3),
        (RUN, 0.5, 7, 4),
    ]
    assert [files(*change) for change in changes] == list(range(1, len(changes) + 1))
    assert [files(*change) for change in changes] == [len(changes)] * len(changes)
    assert files(Run("smoke", "digits", 0), 0.5, 7, 3) == len(changes)  # the first seed of the run is no ingredient
    monkeypatch.setattr(digests, "package_digest", lambda: "another package")
    assert files(RUN, 0.5, 7, 3) == len(changes) + 1
    monkeypatch.setattr(digests, "executed_cells", lambda: ["a cell"])
    assert files(RUN, 0.5, 7, 3) == len(changes) + 2


def test_a_damaged_file_is_computed_again(tmp_path: Path) -> None:
    first = RUN.each_seed(experiment, SETTINGS, stream=7, store=tmp_path)
    a, b, c, d = sorted(tmp_path.iterdir())
    whole = {path: path.read_bytes() for path in (a, b, c, d)}
    a.write_bytes(whole[a][: len(whole[a]) // 2])
    b.write_bytes(b"")
    c.write_bytes(whole[d])  # whole, but of another cell
    assert RUN.each_seed(experiment, SETTINGS, stream=7, store=tmp_path) == first
    for path in (a, b, c, d):
        unpack(path.read_bytes(), json.loads(np.load(path)["about"].tobytes()))
    assert sorted(tmp_path.iterdir()) == [a, b, c, d]


def test_every_damaged_byte_is_noticed_or_changes_nothing() -> None:
    result = {"values": np.arange(6.0).reshape(2, 3), "n": 3}
    content = pack(result, {"seed": 1})
    wrong = 0
    for index in range(len(content)):
        damaged = content[:index] + bytes([content[index] ^ 4]) + content[index + 1 :]
        try:
            found = unpack(damaged, {"seed": 1})
        except Exception:
            wrong += 1
            continue
        assert found["n"] == 3
        assert found["values"].tolist() == result["values"].tolist()
    # The bytes of what is kept lie in the file once, and none of them may change.
    assert wrong >= len(oracles.raw_bytes(result["values"].tolist()))


RESULTS = [
    *(None, True, 3, -0.0, math.inf, "ε₊", [1, [2.5, "x"], {}], {"a": {1: "one", 2.5: None}, "b": []}),
    *(np.arange(6, dtype=np.float32).reshape(2, 3), np.array([True, False]), np.array("word")),
    np.zeros((0, 3), dtype=np.int8),
]


@pytest.mark.parametrize("result", RESULTS, ids=repr)
def test_what_is_kept_comes_back_the_same(result: Any) -> None:
    back = unpack(pack(result, {"seed": 1}), {"seed": 1})
    assert oracles.same(back, result)
    assert not oracles.same(back, [result])


def test_results_have_one_form_whether_kept_or_not(tmp_path: Path) -> None:
    def odd_forms(seed: int, rng: np.random.Generator) -> Any:
        big = np.arange(6, dtype=">i4").reshape(2, 3)
        return (np.float32(0.1), [np.int64(2), np.bool_(True)], {"t": big.T, "nan": np.float64("nan")})

    for store in (None, tmp_path, tmp_path):
        for scalar, (whole, truth), found in RUN.each_seed(odd_forms, stream=1, store=store):
            assert (type(scalar), type(whole), type(truth)) == (float, int, bool)
            assert math.isnan(found["nan"])
            assert found["t"].flags.c_contiguous
            assert found["t"].dtype == np.dtype("i4")
            assert found["t"].tolist() == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize(
    ("value", "place"), [({"fit": [object()]}, r"\['fit'\]\[0\]"), (np.array([None]), ""), ({(1, 2): 3}, ""), (1j, "")]
)
def test_results_that_cannot_be_kept_name_their_cell(value: Any, place: str) -> None:
    with pytest.raises(ValueError, match=rf"digits, smoke, seed 3{place} is a \w+, which cannot be kept"):
        RUN.each_seed(lambda seed, rng: value, stream=1)


def never(*arguments: Any) -> None:
    raise AssertionError("ran")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": [0, 0]}, "digits, smoke, seed 0 stands twice"),
        ({"settings": [1.0, 2.0, 1.0]}, r"digits, smoke, seed 3, 1\.0 stands twice"),
        ({"settings": [1.0, (i for i in "ab")]}, r"settings\[1\] is a generator"),
    ],
)
def test_cells_that_have_no_key_of_their_own_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        RUN.each_seed(never, stream=1, store=tmp_path / "store", **changes)
    assert list(tmp_path.iterdir()) == []


def test_a_generator_that_cells_would_share_is_refused() -> None:
    shared = {"rng": np.random.default_rng(0)}
    with pytest.raises(
        ValueError, match=r"shared\['rng'\] is a generator of random numbers that all cells would share"
    ):
        RUN.each_seed(lambda seed, rng: shared["rng"].random(), stream=1)


def test_the_engine_writes_under_a_scratch_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill while a file is being written leaves no file under the cell's name."""

    written: list[str] = []

    def killed(scratch: str, path: Path) -> None:
        written.extend(entry.name for entry in tmp_path.iterdir())
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        RUN.each_seed(experiment, SETTINGS, stream=7, store=tmp_path)
    assert [Path(name).suffix for name in written] == [".part"]
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert RUN.each_seed(experiment, SETTINGS, stream=7, store=tmp_path) == oracles.each_seed([3, 4], SETTINGS, [7])


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


def test_a_cell_that_stands_twice_is_refused_before_any_work() -> None:
    def never(*arguments: Any) -> Any:
        raise AssertionError("called")

    twice = [Cell(name, {"seed": 1}, arguments=(i,), stream=(i,)) for i, name in enumerate(("one", "two"))]
    with pytest.raises(ValueError, match=r"^settings, seeds: two stands twice"):
        run_cells(never, twice)


def test_what_a_worker_must_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, probe = digests.package_digest(), tmp_path / "probe"
    probe.touch()
    for threads, pool, other, lost, problem in (
        (1, "1", code, probe, "None"),
        (1, "1", "0", probe, "has other code of the book's packages"),
        (1, "1", code, tmp_path / "else" / "probe", f"does not see {tmp_path / 'else'}"),
        (2, "1", code, probe, "has 2 threads and OMP_NUM_THREADS 1: expected 1 and 1"),
        (1, "2", code, probe, "has 1 threads and OMP_NUM_THREADS 2: expected 1 and 1"),
    ):
        monkeypatch.setenv("OMP_NUM_THREADS", pool)
        assert str(problem_of_worker(threads, code=other, probe=str(lost))).startswith(problem)
