"""The engine room of :meth:`cfltr_book.reporting.run.Run.each_seed`: cells in parallel, kept, and resumed.

A cell is one call: one seed and one setting, with a generator of its own.  Its result is made of numbers, strings,
lists, arrays and dictionaries, and is the same whether it was computed now or found in the store.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cfltr_book.legacy import digests
from cfltr_core.files import write_whole


@dataclass(frozen=True)
class Cell:
    """One call: its name in messages, what it is about, its arguments, and where its generator starts."""

    name: str
    about: Mapping[str, Any]
    arguments: tuple[Any, ...]
    stream: tuple[int, ...]


def run_cells(
    function: Callable[..., Any],
    cells: Sequence[Cell],
    *,
    store: str | Path | None = None,
    together: int | None = None,
) -> list[Any]:
    """``function(*arguments, rng)`` for every cell, in order, on joblib; see :meth:`Run.each_seed`.

    Nothing is said to joblib about the number of workers: a surrounding ``joblib.parallel_config`` decides, and
    alone the cells run one after the other.  With ``together``, each run of that many cells, which share a corpus, is
    one worker's job (:func:`batches_of`); cells that are found in the store are no worker's.

    Raises
    ------
    ValueError
        Before any cell runs: when two cells are the same, or ``function`` reads what cannot be written into a key.
        After a cell: when its result cannot be kept.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    digests.check_draws(function)
    keys = [digests.digest(dict(cell.about)) for cell in cells]
    for index, key in enumerate(keys):
        if key in keys[:index]:
            raise ValueError(f"settings, seeds: {cells[index].name} stands twice; name each once")
    if store is None:
        paths: list[Path | None] = [None] * len(cells)
    else:
        code = digests.code_digest(function)
        paths = [Path(store) / f"{digests.digest([code, key])[:32]}.npz" for key in keys]
    jobs = list(zip(cells, paths, strict=True))
    if together is None:
        return list(Parallel()(delayed(_run)(function, cell, path) for cell, path in jobs))
    found = [None if path is None else _load(path, cell) for cell, path in jobs]
    missing = [index for index, result in enumerate(found) if result is None]
    batches = batches_of(missing, together, effective_n_jobs(None))
    done = Parallel(batch_size=1)(delayed(_run_all)(function, [jobs[index] for index in batch]) for batch in batches)
    for batch, results in zip(batches, done, strict=True):
        for index, result in zip(batch, results, strict=True):
            found[index] = (result,)
    return [result[0] for result in found if result is not None]


def batches_of(missing: Sequence[int], together: int, workers: int) -> list[list[int]]:
    """Which cells one worker computes one after the other: those of a run of ``together`` cells, as far as missing.

    Where the number of runs is no multiple of that of the workers, the last runs are dealt out among all of them, so
    that no worker waits for the last: each of these corpora is then loaded by several workers.

    Examples
    --------
    >>> batches_of(range(6), 2, 2)
    [[0, 1], [2, 3], [4], [5]]
    >>> batches_of([1, 2, 3], 2, 2)
    [[1], [2, 3]]
    """
    runs: dict[int, list[int]] = {}
    for index in missing:
        runs.setdefault(index // together, []).append(index)
    whole = len(runs) // workers * workers
    batches = list(runs.values())[:whole]
    rest = list(runs.values())[whole:]
    for cells in rest:
        parts = -(-workers // len(rest))
        batches += [part for k in range(parts) if (part := cells[k::parts])]
    return batches


def _run_all(function: Callable[..., Any], jobs: Sequence[tuple[Cell, Path | None]]) -> list[Any]:
    return [_run(function, cell, path) for cell, path in jobs]


def _run(function: Callable[..., Any], cell: Cell, path: Path | None) -> Any:
    if path is not None and (kept := _load(path, cell)) is not None:
        return kept[0]
    result = function(*cell.arguments, np.random.default_rng(list(cell.stream)))
    content = pack(result, cell.about, name=f"the result of {cell.name}")
    if path is not None:
        write_whole(path, content)
    return unpack(content, cell.about)


def _load(path: Path, cell: Cell) -> tuple[Any] | None:
    """A kept result, in a tuple since it may be None; None when there is no file, or not the one that was written."""
    try:
        return (unpack(path.read_bytes(), cell.about),)
    except Exception:  # a damaged file can make its readers raise almost anything; every case means: compute it
        return None


def pack(result: Any, about: Mapping[str, Any], *, name: str = "result") -> bytes:
    """A result as the bytes of an ``.npz`` file: its structure and ``about`` as JSON, and its arrays.

    Raises
    ------
    ValueError
        Naming the part of ``result`` that is no number, string, list, tuple, array or dictionary.
    """
    arrays: list[np.ndarray] = []
    texts = {"result": json.dumps(_structure(result, arrays, name)), "about": json.dumps(dict(about))}
    members: dict[str, Any] = {
        key: np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8) for key, text in texts.items()
    }
    members |= {f"array_{i}": array for i, array in enumerate(arrays)}
    buffer = io.BytesIO()
    np.savez(buffer, **members)
    return buffer.getvalue()


def unpack(content: bytes, about: Mapping[str, Any]) -> Any:
    """What :func:`pack` was given: tuples as lists, NumPy's scalars as Python's, arrays in C order.

    Raises
    ------
    Exception
        ValueError when a byte is changed or the file is about something else; what NumPy and ``zipfile`` raise when
        it is no such file.
    """
    if zipfile.ZipFile(io.BytesIO(content)).testzip() is not None:  # NumPy reads past a changed header
        raise ValueError("the file is damaged: its checksum differs")
    with np.load(io.BytesIO(content), allow_pickle=False) as members:
        text = members["about"].tobytes().decode("utf-8", "surrogatepass")
        if json.loads(text) != json.loads(json.dumps(dict(about))):
            raise ValueError(f"the file is about {text}, not about {dict(about)}")
        structure = json.loads(members["result"].tobytes().decode("utf-8", "surrogatepass"))
        return _value(structure, members)


def _structure(value: Any, arrays: list[np.ndarray], name: str) -> Any:
    """``value`` as JSON can hold it; arrays go to ``arrays`` and leave their number."""
    if isinstance(value, np.generic) and not isinstance(value, np.longdouble):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_structure(item, arrays, f"{name}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufcSU":
        # One memory layout: sums over a transposed array could differ in their last digit.
        arrays.append(np.array(value, dtype=value.dtype.newbyteorder("="), order="C", subok=False))
        return {"array": len(arrays) - 1}
    if isinstance(value, Mapping):
        pairs = [[_structure(k, arrays, name), _structure(v, arrays, f"{name}[{k!r}]")] for k, v in value.items()]
        if all(key is None or isinstance(key, (bool, int, float, str)) for key, _ in pairs):
            return {"mapping": pairs}
    raise ValueError(
        f"{name} is a {type(value).__name__}, which cannot be kept: return numbers, strings, lists, arrays, or "
        "dictionaries of them with simple keys"
    )


def _value(structure: Any, members: Mapping[str, np.ndarray]) -> Any:
    if isinstance(structure, list):
        return [_value(item, members) for item in structure]
    if isinstance(structure, dict):
        if "array" in structure:
            return members[f"array_{structure['array']}"]
        return {key: _value(item, members) for key, item in structure["mapping"]}
    return structure
