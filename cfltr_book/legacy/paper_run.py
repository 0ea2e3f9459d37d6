"""A paper run: it computes the kept tables of a chapter, stores every finished cell, and writes the tables.

``make paper`` makes a run one by variables of the notebook's process; ``book_tools.execution.paper`` sets them.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cfltr_book.legacy import cluster, digests
from cfltr_book.legacy.kept_questions import FOLDER, Question, cell_name, flat_result, number_of, parts_of
from cfltr_book.legacy.kept_tables import Row, Table, place_of, write_table

# The folder where a paper run stores finished cells.  That it is set makes the run a paper run; the rest is for it:
# a file for a line about each finished cell, the tables asked for (all when empty), how many seeds at most (all when
# empty), whether the seeds that a table holds stay as they are, the number of workers, the address of a cluster whose
# workers compute instead, and what the JSON beside each table says of revision and packages.
STORE = "CFLTR_KEEP"
LINES = "CFLTR_KEEP_LINES"
TABLES = "CFLTR_KEEP_TABLES"
SEEDS = "CFLTR_KEEP_SEEDS"
GO_ON = "CFLTR_KEEP_GO_ON"
JOBS = "CFLTR_KEEP_JOBS"
CLUSTER = "CFLTR_KEEP_CLUSTER"
ABOUT = "CFLTR_KEEP_ABOUT"

# What the JSON beside a table says of the run that computed it.
OF_A_RUN = ("revision", "dirty", "python", "packages", "jobs")


def is_on() -> bool:
    """Whether this process belongs to a paper run."""
    return STORE in os.environ


def asks_for(name: str) -> bool:
    """Whether the paper run computes the table of that name: one of those it names, and any when it names none."""
    wanted = os.environ.get(TABLES, "").split()
    return not wanted or name in wanted


def goes_on() -> bool:
    """Whether the paper run leaves the seeds of a kept table as they are, and computes only those that it lacks."""
    return bool(os.environ.get(GO_ON))


def compute(question: Question, begun: Table | None = None) -> Path:
    """Compute every cell of a table that is not yet stored, write the table, and return where its CSV lies.

    A seed's cells are one worker's job, and the number of seeds may be cut, which the JSON beside the CSV says.  The
    rows of ``begun``, a table about the first of these seeds, are taken as they are; the JSON says which seeds came
    from which revision, and which were all that was asked for then.

    Raises
    ------
    ValueError
        For a result that is no part of a table, as soon as its cell is computed; and when the package's code has
        changed since the run began.  For a cluster, before any cell: see :func:`cluster.workers`.
    """
    store = Path(os.environ[STORE])
    # Processes of this machine inherit where a cell says that it is done; those of a cluster have to be told.
    told = {LINES: os.environ.get(LINES, "")}
    there = list(begun.about["seeds"]) if begun else []
    missing = question.seeds[len(there) : int(os.environ.get(SEEDS) or len(question.seeds))]
    seeds = there + missing
    also = f", {len(there)} of them kept" if there else ""
    _say(f"{question.name}: {number_of(len(seeds), 'seed')}{also}, {number_of(len(question.settings), 'setting')}")
    run = question.run
    path = place_of(Path(os.environ[FOLDER]), run.scale, run.corpus, seed=run.seed) / f"{question.name}.csv"
    if not missing:
        return path
    jobs = int(os.environ.get(JOBS) or 1)
    with cluster.workers(os.environ.get(CLUSTER), jobs=jobs, store=store, variables=told) as computing:
        measured = _Measured(question.function, question.name, tuple(question.columns), digests.package_digest())
        cells = question.compute(measured, missing, store=store, by_seed=True)
    rows = question.rows(missing, [[cell["values"] for cell in some] for some in cells])
    seconds = [cell["seconds"] for some in cells for cell in some]
    peaks = [cell["peak"] for some in cells for cell in some]
    earlier = []
    if begun:
        rows, seconds, peaks = begun.rows + rows, begun.about["seconds"] + seconds, [begun.about["peak_bytes"], *peaks]
        earlier = [*begun.about.get("earlier", [])]
        known = [seed for part in earlier for seed in part["seeds"]]
        last = {key: begun.about.get(key) for key in OF_A_RUN}
        if begun.about["seeds_asked"] != question.seeds:  # more were asked for once these could be seen
            last = {"seeds_asked": begun.about["seeds_asked"], **last}
        earlier.append({"seeds": [seed for seed in there if seed not in known], **last})
    about = {
        "name": question.name,
        "scale": run.scale,
        "corpus": run.corpus,
        "stream": parts_of(question.stream),
        "seeds_asked": question.seeds,
        "seeds": seeds,
        "cut": len(seeds) < len(question.seeds),
        **json.loads(os.environ.get(ABOUT) or "{}"),
        "jobs": computing,
        **({"earlier": earlier} if earlier else {}),
        "seconds": seconds,
        "seconds_in_all": round(sum(seconds), 1),
        "peak_bytes": max(peaks),
    }
    write_table(path, rows, about)
    _say(f"{question.name}: done, {len(rows)} cells, {sum(seconds):.0f} s of computing")
    return path


@dataclass(frozen=True)
class _Measured:
    """A function whose result is a row with its seconds and the largest memory of its process so far, in bytes."""

    function: Callable[..., Mapping[str, Any]]
    table: str
    taken: tuple[str, ...]
    package: str

    def __call__(self, seed: int, setting: Row, rng: np.random.Generator) -> dict[str, Any]:
        _end_with_parent()
        name = cell_name(self.table, seed, setting)
        if digests.package_digest() != self.package:
            raise ValueError(
                f"{name}: the code of the book's packages has changed since the run began, so that its cells would be "
                "of two kinds; run it again, in a checkout that nobody edits"
            )
        started = time.perf_counter()
        values = flat_result(self.function(seed, setting, rng), self.taken, name)
        seconds = round(time.perf_counter() - started, 2)
        _say(f"{name}: {seconds:.1f} s")
        return {"values": values, "seconds": seconds, "peak": _peak_bytes()}


def _say(line: str) -> None:
    """Add a line to the file that the asking process reads; short lines of several workers do not mix."""
    if path := os.environ.get(LINES):
        with open(path, "ab") as stream:
            stream.write(f"{line}\n".encode())


def _peak_bytes() -> int:
    import resource  # not on every system; a paper run is for those that have it

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@cache
def _end_with_parent() -> None:
    """Let this worker end as soon as the process that started it has: it would go on computing for nobody."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(130)

    threading.Thread(target=watch, daemon=True).start()
