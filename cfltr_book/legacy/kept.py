"""Results of long experiments, kept in the repository: the engine room of :meth:`cfltr_book.reporting.run.Run.kept`.

A *paper run* (``make paper``) computes tables and writes them; every other run reads them, and computes a few of their
cells again.  What a run is follows from variables that ``book_tools`` sets for the process of a notebook; where none is
set, as in Colab, nothing is kept, and a part of the table is computed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cfltr_book.data.corpora import check_corpus
from cfltr_book.data.scales import check_scale
from cfltr_book.legacy import paper_run
from cfltr_book.legacy.kept_questions import (
    Host,
    Question,
    cell_name,
    cells_of,
    check_name,
    flat_result,
    number_of,
    parts_of,
    path_of,
    remedy,
)
from cfltr_book.legacy.kept_tables import Table, frame_of, kinds_of, read_table, same
from cfltr_core import checks

if TYPE_CHECKING:
    import pandas as pd

RTOL, ATOL = 1e-6, 1e-9


@dataclass(frozen=True, eq=False)
class Kept:
    """A table of results: what :meth:`cfltr_book.reporting.run.Run.kept` gives.

    Parameters
    ----------
    frame : pandas.DataFrame
        One row for each seed and setting, in this order: ``seed``, the setting's keys, the result's keys.
    kept : bool
        Whether it was read from the repository; otherwise it was computed in this run.
    seeds : tuple of int
        The seeds in ``frame``.
    words : str
        For captions: where the numbers come from.
    revision : str or None
        The revision that computed a kept table, or the last of its seeds.
    earlier : tuple of int
        The seeds that earlier paper runs had computed: what they gave could be seen before the others were run.

    Examples
    --------
    >>> import cfltr_book as book
    >>> table = book.Run("smoke", "digits").kept(
    ...     "example", lambda seed, setting, rng: {"square": setting["x"] ** 2}, settings=[{"x": 3}], stream=1, live=2
    ... )
    >>> table.seeds, table.words, table.revision
    ((0, 1), 'computed in this run: 2 seeds', None)
    """

    frame: pd.DataFrame
    kept: bool
    seeds: tuple[int, ...]
    words: str
    revision: str | None = None
    earlier: tuple[int, ...] = ()


def kept_table(question: Question, *, live: int, again: Iterable[tuple[int, int]], rtol: float, atol: float) -> Kept:
    """The answer to a ``question``: see :meth:`cfltr_book.reporting.run.Run.kept`.

    Raises
    ------
    ValueError
        As described there.
    """
    run, name, function = question.run, question.name, question.function
    first = checks.positive_int(live, "live")
    repeated = cells_of(again, question)
    for value, what in ((rtol, "rtol"), (atol, "atol")):
        if not 0 <= value < np.inf:
            raise ValueError(f"{what} is {value!r}: expected a finite number >= 0")
    if paper_run.is_on():
        if not paper_run.asks_for(name):
            return _left_as_it_is(question)
        begun = _begun(question, repeated, rtol=rtol, atol=atol) if paper_run.goes_on() else None
        return _read(read_table(paper_run.compute(question, begun), remedy=question.remedy))
    path = path_of(name, run.scale, run.corpus, run.seed)
    if path is None:
        some = question.seeds[:first]
        rows = question.rows(some, question.compute(function, some))
        words = f"computed in this run: {number_of(len(some), 'seed')}"
        return Kept(frame_of(rows, list(rows[0]), kinds_of(rows, name)), False, tuple(some), words)
    table = read_table(path, remedy=question.remedy)
    _check_question(question, table)
    _check_cells(question, table, repeated, rtol=rtol, atol=atol)
    return _read(table)


def kept_elsewhere(run: Host, name: str, *, scale: str | None, corpus: str | None) -> Kept | None:
    """See :meth:`cfltr_book.reporting.run.Run.kept_elsewhere`.

    Raises
    ------
    ValueError
        As described there.
    """
    check_name(name)
    place = (run.scale if scale is None else scale, run.corpus if corpus is None else corpus)
    check_scale(place[0])
    check_corpus(place[1])
    path = path_of(name, *place, 0)
    if path is None:
        return None
    return _read(read_table(path, remedy=remedy(*place, 0, name)), elsewhere=place[1] != run.corpus)


def _read(table: Table, *, elsewhere: bool = False) -> Kept:
    about = table.about
    seeds, asked = tuple(about["seeds"]), about["seeds_asked"]
    number = ("" if len(seeds) == len(asked) else f"{len(seeds)} of ") + number_of(len(asked), "seed")
    place = about["scale"] + (f" on {about['corpus']}" if elsewhere else "")
    revision = about.get("revision")
    runs = [part for part in [*about.get("earlier", []), about] if part.get("revision")]
    each = dict.fromkeys(part["revision"][:7] + (" with changes" if part.get("dirty") else "") for part in runs)
    since = f", revision{'s' * (len(each) > 1)} {' and '.join(each)}" if each else ""
    frame = frame_of(table.rows, list(about["columns"]), about["columns"])
    earlier = tuple(seed for part in about.get("earlier", []) for seed in part["seeds"])
    return Kept(frame, True, seeds, f"kept: {number} at {place}{since}", revision, earlier)


def _begun(question: Question, again: Sequence[tuple[int, int]], *, rtol: float, atol: float) -> Table | None:
    """A kept table to which a paper run adds seeds, once its cells have been found as they are kept.

    It may have been asked for fewer seeds than are asked for now: the run makes of it the larger table.  Checked are
    the cells that every build checks; where there are none, the one that was fastest.
    """
    run = question.run
    path = path_of(question.name, run.scale, run.corpus, run.seed)
    if path is None:
        return None
    table = read_table(path, remedy=question.remedy)
    _check_question(question, table, grows=True)
    seconds = table.about["seconds"]
    there = [cell for cell in again if cell[0] < len(table.about["seeds"])]
    fastest = divmod(seconds.index(min(seconds)), len(question.settings))
    _check_cells(question, table, there or [fastest], rtol=rtol, atol=atol)
    return table


def _left_as_it_is(question: Question) -> Kept:
    """A table that a paper run is not asked for: what is kept of it, since others may build on it, or no row."""
    run, name = question.run, question.name
    path = path_of(name, run.scale, run.corpus, run.seed)
    if path is not None:
        try:
            table = read_table(path, remedy=question.remedy)
            _check_question(question, table)
        except ValueError:  # an old table is no reason to stop a run that computes others
            pass
        else:
            return _read(table)
    return Kept(frame_of([], question.columns, {}), False, (), "not asked for")


def _check_question(question: Question, table: Table, *, grows: bool = False) -> None:
    """ValueError when the table is about something else than what is asked for.

    One that ``grows`` may have been asked for the first of the seeds only.
    """
    about, seeds = table.about, list(table.about["seeds"])
    asked = {"corpus": question.run.corpus, "scale": question.run.scale, "stream": parts_of(question.stream)}
    different = [
        f"its {key} is {about[key]!r}, not {value!r}" for key, value in asked.items() if about.get(key) != value
    ]
    asked_then = list(about["seeds_asked"])
    if asked_then != (question.seeds[: len(asked_then)] if grows else question.seeds):
        different.append(f"its seeds are {about['seeds_asked']}, not {question.seeds}")
    elif seeds != question.seeds[: len(seeds)] or not seeds:
        different.append(f"its seeds are {seeds}, not the first of {question.seeds}")
    elif len(table.rows) != len(seeds) * len(question.settings):
        different.append(f"it has {len(table.rows) // len(seeds)} settings, not {len(question.settings)}")
    elif list(table.rows[0])[: len(question.columns)] != question.columns:
        different.append(f"its columns are {', '.join(table.rows[0])}; expected {', '.join(question.columns)} first")
    else:
        different += _differing_settings(question, table)
    if different:
        raise ValueError(
            f"kept table {question.name}: {'; '.join(different)}. Compute it anew: {question.remedy}; or ask for "
            "what it holds"
        )


def _differing_settings(question: Question, table: Table) -> list[str]:
    expected = [{"seed": seed, **setting} for seed in table.about["seeds"] for setting in question.settings]
    for index, (row, wanted) in enumerate(zip(table.rows, expected, strict=True)):
        for column, value in wanted.items():
            if not same(row[column], value, rtol=1e-12, atol=0.0):
                return [f"row {index} is about {column}={row[column]}, not {column}={value}"]
    return []


def _check_cells(
    question: Question, table: Table, again: Sequence[tuple[int, int]], *, rtol: float, atol: float
) -> None:
    """Compute some cells again; ValueError for the first that differs from the kept one."""
    seeds = list(table.about["seeds"])
    for i, j in again:
        if i >= len(seeds):
            raise ValueError(
                f"kept table {question.name}: the cell again={(i, j)} is not in it, since it was cut to "
                f"{number_of(len(seeds), 'seed')}; choose another cell, or compute it anew: {question.remedy}"
            )
        setting, seed = question.settings[j], seeds[i]
        about = cell_name(question.name, seed, setting)
        result = question.run.each_seed(question.function, [setting], stream=question.stream, seeds=[seed])[0][0]
        now = flat_result(result, question.columns, about)
        kept = {key: v for key, v in table.rows[i * len(question.settings) + j].items() if key not in question.columns}
        if list(now) != list(kept):
            raise ValueError(
                f"kept cell {about}: it has the columns {', '.join(kept)}, and computed again {', '.join(now)}. "
                f"Compute the table anew: {question.remedy}"
            )
        for column, value in now.items():
            if not same(value, kept[column], rtol=rtol, atol=atol):
                raise ValueError(
                    f"kept cell {about}, column {column}: kept is {kept[column]}, computed again {value}. Where the "
                    f"change is meant, compute the table anew: {question.remedy}"
                )
