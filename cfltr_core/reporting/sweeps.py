"""Sweeps: the same experiment over (corpus, seed, setting) cells, in parallel, resumable, with paired draws.

A cell is one corpus, one seed and one setting.  Its random generator depends on the corpus and the seed alone, so that
all settings of a seed see the same population and the same users: differences between settings are paired.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cfltr_core import checks
from cfltr_core.files import write_json

Experiment = Callable[[str, int, Mapping[str, Any], np.random.Generator], Mapping[str, Any]]


@dataclass(frozen=True)
class Cell:
    """One ``corpus``, one ``seed``, one ``setting``; and, once it has run, its ``result``.  :func:`sweep` makes it."""

    corpus: str
    seed: int
    setting: Mapping[str, Any]
    result: Mapping[str, Any]


def sweep(
    experiment: Experiment,
    corpora: Sequence[str],
    seeds: Iterable[int],
    settings: Sequence[Mapping[str, Any]],
    jobs: int = 1,
    store: str | Path | None = None,
) -> list[Cell]:
    """Run ``experiment(corpus, seed, setting, rng)`` on every cell and return the cells in order.

    The numbers do not depend on ``jobs``, nor on whether a cell was computed now or found in ``store``.

    Parameters
    ----------
    experiment : callable
        Returns a mapping of numbers, strings, lists or arrays (arrays come back as lists).  It must take all its
        randomness from ``rng`` and read nothing that is not in its arguments or its own source text.
    corpora, seeds, settings
        The cells are all combinations; a setting is a mapping that JSON can hold.
    jobs : int
        Processes, through joblib.  A cluster needs no change here: run the call inside
        ``joblib.parallel_config(backend="dask")`` or another backend of joblib's.
    store : folder, optional
        Keeps each finished cell in a file of its own, so that an interrupted sweep resumes.  The file's name is a
        digest of the experiment's source text, the corpus, the seed and the setting; a damaged file is computed again.

    Raises
    ------
    ValueError
        For an empty sweep, a repeated cell, or a setting or result that JSON cannot hold (before / after the cell).

    Examples
    --------
    >>> import cfltr_core as cf
    >>> def clicks_on_c(corpus, seed, setting, rng):
    ...     return {"clicks": rng.binomial(1_000, (1 / 3) ** setting["eta"])}
    >>> cells = cf.sweep(clicks_on_c, ["tiny"], [0, 1], [{"eta": 1}, {"eta": 2}])
    >>> [(cell.seed, cell.setting["eta"]) for cell in cells]
    [(0, 1), (0, 2), (1, 1), (1, 2)]
    """
    from joblib import Parallel, delayed

    checks.positive_int(jobs, "jobs")
    cells = [(c, int(s), dict(setting)) for c in corpora for s in seeds for setting in settings]
    if not cells:
        raise ValueError("corpora, seeds, settings: the sweep is empty; give at least one of each")
    source = _source(experiment)
    keys = [_key(source, *cell) for cell in cells]
    if len(set(keys)) != len(keys):
        raise ValueError("settings, seeds or corpora: the same cell stands twice; name each once")
    folder = None if store is None else Path(store)
    results = Parallel(n_jobs=jobs)(
        delayed(_run)(experiment, *cell, None if folder is None else folder / f"{key}.json")
        for cell, key in zip(cells, keys, strict=True)
    )
    return [Cell(*cell, result) for cell, result in zip(cells, results, strict=True)]


def cell_generator(corpus: str, seed: int) -> np.random.Generator:
    """The generator of all cells of this corpus and seed; the setting plays no part, which pairs them."""
    checks.positive_int(seed, "seed", least=0)
    return np.random.default_rng([seed, zlib.crc32(corpus.encode("utf-8"))])


def _run(experiment: Experiment, corpus: str, seed: int, setting: Mapping[str, Any], path: Path | None) -> Any:
    found = None if path is None else _load(path)
    if found is not None:
        return found["result"]
    result = _plain(
        experiment(corpus, seed, setting, cell_generator(corpus, seed)), f"{corpus}, seed {seed}, {setting}"
    )
    if path is not None:
        write_json(path, {"corpus": corpus, "seed": seed, "setting": dict(setting), "result": result})
    return result


def _load(path: Path) -> dict[str, Any] | None:
    """A finished cell, or None when there is none or its file is damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and "result" in record else None


def _plain(value: Any, where: str) -> Any:
    """``value`` as JSON gives it back, so that a computed and a stored result are the same."""
    try:
        return json.loads(json.dumps(value, default=_array, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: the result cannot be kept as JSON ({error}); return finite numbers") from error


def _array(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a number, a string, a list or an array")


def _source(experiment: Experiment) -> str:
    try:
        return inspect.getsource(experiment)
    except (OSError, TypeError) as error:
        raise ValueError(
            "experiment: its source text cannot be read; define it with def in a file or a cell"
        ) from error


def _key(source: str, corpus: str, seed: int, setting: Mapping[str, Any]) -> str:
    try:
        text = json.dumps([source, corpus, seed, setting], sort_keys=True, default=_array, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"settings: {setting} cannot be written as JSON ({error})") from error
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:24]
