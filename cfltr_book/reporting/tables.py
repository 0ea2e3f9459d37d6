"""Tables of a chapter's experiments: read where the package keeps them, computed cell by cell where it does not.

A *cell* is one call of an experiment's function: one seed and one setting, with a generator of its own.  A kept table
lies in ``cfltr_book/kept/<chapter>/<scale>/<corpus>``, as a CSV of its cells and a JSON that says what was asked and
how long each cell took.  ``make tables`` writes it.  It is trusted because every build computes some of its cells
again, drawn by the revision.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_book.reporting.standing import Standing
from cfltr_core.files import write_json, write_whole

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
PACKAGE = Path(__file__).resolve().parents[1]
KEPT = PACKAGE / "kept"
# The revision that is built.  It draws the cells that are computed again; without it, as in Colab, there are none.
REVISION = "CFLTR_REVISION"
# Cells of a table are drawn until they took so long when they were recorded; all those of a chapter take at most MOST.
DRAWN_SECONDS, MOST_SECONDS = 1.0, 60.0
ATOL = 1e-9
# Folders of the package that no cell depends on, but for the module in which its experiment stands.
APART = ("evidence", "experiments", "legacy")


@dataclass(frozen=True)
class Experiment:
    """What ``run.table`` computes: a function of a module ``cfltr_book.experiments.chNN``, and its cells.

    Parameters
    ----------
    name : str
        Of the table, unique in the chapter: lower case, with hyphens.
    cell : callable
        ``cell(run, seed, setting, rng)`` returns numbers and words by name, the same names for every cell and none of
        them a setting's.  A value is None where this machine lacks a library that it needs.  All settings of a seed
        see the same draws, since each gets the generator ``run.rng(seed, stream)`` from its start.
    settings : callable
        The settings of a run, as dictionaries of numbers and words with the same keys.
    stream : int
        The number of this experiment in the chapter.
    seeds : callable, optional
        The seeds of a run in a kept table; its ``learning_seeds`` unless given.
    at_once : callable, optional
        How many of these seeds are computed where no table is kept; all of them unless given.
    rtol : float
        A cell that is computed again must agree within 1e-9 + ``rtol`` times the kept value.
    rough : mapping, optional
        Words in the names of columns that agree within an ``rtol`` of their own: the training of a network makes much
        of how a machine rounds.

    Examples
    --------
    >>> import cfltr_book as book
    >>> def square(run, seed, setting, rng):
    ...     return {"square": setting["x"] ** 2}
    >>> book.Experiment("squares", square, settings=lambda run: [{"x": 2}, {"x": 3}], stream=1).rtol
    1e-06

    One of the book's own:

    >>> from cfltr_book.experiments.ch12 import BY_LOSS
    >>> BY_LOSS.chapter, BY_LOSS.command("ci", "digits")
    ('12', 'make tables CHAPTER=12 SCALE=ci CORPUS=digits EXPERIMENT=losses')
    >>> BY_LOSS.path("ci", "digits").name
    'losses.csv'
    >>> frame = BY_LOSS.kept_table("ci", "digits")
    >>> frame.attrs["kept"], sorted(frame["seed"].unique()) == frame.attrs["seeds"]
    (True, True)
    >>> run = book.Run("smoke", "digits")
    >>> BY_LOSS.seeds_of(run), BY_LOSS.rows(run, [0])[0]["seed"]
    ([0, 1], 0)
    """

    name: str
    cell: Callable[[Any, int, Row, np.random.Generator], Mapping[str, Any]]
    _: KW_ONLY
    settings: Callable[[Any], Sequence[Row]]
    stream: int
    seeds: Callable[[Any], Sequence[int]] | None = None
    at_once: Callable[[Any], int] | None = None
    rtol: float = 1e-6
    rough: Mapping[str, float] | None = None

    @property
    def chapter(self) -> str:
        """The number of the chapter, from the name of the module in which the function stands."""
        return self.cell.__module__.rpartition(".")[2].removeprefix("ch")

    def path(self, scale: str, corpus: str) -> Path:
        """Where the table of a ``scale`` and a ``corpus`` is kept; what no file's name should hold is a full stop."""
        return KEPT / self.chapter / scale / re.sub(r"[^A-Za-z0-9@=,._-]", ".", corpus) / f"{self.name}.csv"

    def command(self, scale: str, corpus: str) -> str:
        """What one types to compute the table of a ``scale`` and a ``corpus`` anew."""
        return f"make tables CHAPTER={self.chapter} SCALE={scale} CORPUS={corpus} EXPERIMENT={self.name}"

    def kept_table(self, scale: str, corpus: str) -> pd.DataFrame | None:
        """The table that is kept of a ``scale`` and a ``corpus``, or None without one.

        Raises
        ------
        ValueError
            When the CSV and the JSON beside it do not belong together.
        """
        path = self.path(scale, corpus)
        if not path.is_file():
            return None
        try:
            frame, about = read_table(path)
        except ValueError as error:
            raise ValueError(f"{error}; take both from one revision, or type: {self.command(scale, corpus)}") from None
        revision = f", revision {about['revision'][:7]}" if about["revision"] else ""
        changed = " with changes" if about["dirty"] else ""
        words = f"kept: {_seeds(about['seeds'])} at {scale}{revision}{changed}"
        frame.attrs = {"kept": True, "seeds": about["seeds"], "words": words, "seconds": about["seconds"]}
        return frame

    def seeds_of(self, run: Standing) -> list[int]:
        """The seeds that a kept table of a ``run`` has."""
        return [*(self.seeds(run) if self.seeds else run.learning_seeds)]

    def rows(self, run: Standing, seeds: Sequence[int]) -> list[Row]:
        """What a ``run`` asks of some ``seeds``: seed and setting of every cell, seed by seed."""
        return [{"seed": seed, **setting} for seed in seeds for setting in self.settings(run)]


def table(experiment: Experiment, run: Standing) -> pd.DataFrame:
    """The table of an experiment: see :meth:`cfltr_book.reporting.run.Run.table`.

    Raises
    ------
    ValueError
        As described there.
    """
    seeds = experiment.seeds_of(run)
    kept = experiment.kept_table(run.scale, run.corpus) if run.seed == 0 else None
    if kept is None:
        seeds = seeds[: experiment.at_once(run) if experiment.at_once else None]
        cells = compute(experiment, run, experiment.rows(run, seeds))
        frame = frame_of([cell["row"] for cell in cells])
        frame.attrs = {"kept": False, "seeds": seeds, "words": f"computed in this run: {_seeds(seeds)}"}
        return frame
    asked = check_question(experiment, run, kept)
    revision = os.environ.get(REVISION)
    if revision is not None:
        tables = len([*experiment.path(run.scale, run.corpus).parent.glob("*.csv")])
        some = drawn(f"{revision} {experiment.name}", kept.attrs["seconds"], most=MOST_SECONDS / tables)
        again = compute(experiment, run, [asked[index] for index in some], anew=True)
        for index, cell in zip(some, again, strict=True):
            row = kept.iloc[[index]].to_dict("records")[0]
            for problem, beyond in differences(experiment, asked[index], row, cell["row"]):
                if beyond:
                    remedy = experiment.command(run.scale, run.corpus)
                    raise ValueError(f"kept table {problem}. Where the change is meant, type: {remedy} ANEW=1")
    return kept


def check_question(experiment: Experiment, run: Standing, kept: pd.DataFrame) -> list[Row]:
    """What a run asks of an experiment; ValueError where a kept table is about something else."""
    asked = experiment.rows(run, experiment.seeds_of(run))
    held = text_of(kept.reindex(columns=list(asked[0])).to_dict("records"))
    for line, wanted in zip_longest(held.splitlines(), text_of(asked).splitlines()):
        if line != wanted:
            raise ValueError(
                f"kept table {experiment.name}: it holds {line!r} where the chapter asks for {wanted!r}; to compute "
                f"it anew, type: {experiment.command(run.scale, run.corpus)}"
            )
    return asked


def drawn(word: str, seconds: Sequence[float], *, most: float) -> list[int]:
    """The cells that are computed again, drawn by a word: about one recorded second of them, never over ``most``.

    Examples
    --------
    >>> drawn("a revision", [1.0] * 100, most=60), drawn("another", [1.0] * 100, most=60)
    ([86], [78])
    >>> drawn("a revision", [90.0, 1.0, 50.0], most=60)
    [1]
    """
    some: list[int] = []
    spent = 0.0
    for index in np.random.default_rng([*word.encode()]).permutation(len(seconds)):
        if spent < DRAWN_SECONDS and spent + seconds[index] <= most:
            some.append(int(index))
            spent += seconds[index]
    return some


def differences(experiment: Experiment, asked: Row, kept: Row, now: Row) -> Iterator[tuple[str, bool]]:
    """What differs between a kept cell and the same cell computed now, and whether that is beyond the tolerance.

    A value that is None now is not compared: this machine lacks what it needs.
    """
    cell = ", ".join(f"{key}={value}" for key, value in asked.items())
    for column in [name for name in {**kept, **now} if name not in asked]:
        there, here = kept.get(column, "no such column"), now.get(column, "no such column")
        if here is None or here == there or (here != here and there != there):
            continue
        words = isinstance(here, str) or isinstance(there, str)
        rtol = next((own for word, own in (experiment.rough or {}).items() if word in column), experiment.rtol)
        within = not words and abs(here - there) <= ATOL + rtol * abs(there)
        yield f"{experiment.name}, cell {cell}, column {column}: kept is {there}, computed now {here}", not within


def compute(experiment: Experiment, run: Standing, asked: Sequence[Row], *, anew: bool = False) -> list[Row]:
    """The cells that are ``asked`` for, in order: of each its ``row`` and the ``seconds`` that it took.

    Each finished cell is stored at once, so that an interrupted run goes on where it was; ``anew`` leaves the stored
    ones unread.  The calls run through joblib, which is not told how many workers to use.

    Raises
    ------
    ValueError
        For a cell that is asked for twice, and for results whose names differ.
    """
    from joblib import Parallel, delayed

    question = [_code(experiment.cell.__module__), experiment.name, run.scale, run.corpus, experiment.stream]
    home = Path(os.environ.get("CFLTR_CACHE") or Path.home() / ".cache" / "cfltr") / "cells" / experiment.chapter
    paths = [home / f"{_digest(json.dumps([*question, row]))}.json" for row in asked]
    if len({*paths}) < len(paths):
        raise ValueError(f"{experiment.name}: a seed or a setting stands twice; name each once")
    call = delayed(partial(_cell, experiment.cell, run, experiment.stream, anew))
    done: Iterator[Row] = Parallel(return_as="generator")(map(call, asked, paths))
    # Neither a page nor a log shows progress.
    if "CFLTR_RUN_DIR" not in os.environ and ("ipykernel" in sys.modules or sys.stderr.isatty()):
        from tqdm.auto import tqdm

        done = tqdm(done, total=len(asked), desc=experiment.name, unit="cell", leave=False)
    cells = list(done)
    for cell in cells:
        if list(cell["row"]) != list(cells[0]["row"]):
            raise ValueError(f"{experiment.name}: {cell['row']} has other names than {cells[0]['row']}")
    return cells


def _cell(function: Callable[..., Any], run: Standing, stream: int, anew: bool, asked: Row, path: Path) -> Row:
    if not anew:
        try:
            found: Row = json.loads(path.read_text(encoding="utf-8"))
            return {"row": found["row"], "seconds": found["seconds"]}
        except (OSError, ValueError, KeyError, TypeError):  # absent, or damaged: then it is computed
            pass
    begun = time.perf_counter()
    seed, setting = asked["seed"], {key: value for key, value in asked.items() if key != "seed"}
    result = function(run, seed, setting, run.rng(seed, stream))
    values = {key: value.item() if isinstance(value, np.generic) else value for key, value in result.items()}
    text = json.dumps({"row": {**asked, **values}, "seconds": round(time.perf_counter() - begun, 2)})
    write_whole(path, text)
    cell: Row = json.loads(text)
    return cell


def text_of(rows: Sequence[Row]) -> str:
    """Rows as the text of a CSV file, from which :func:`frame_of` reads every number to the last bit."""
    import pandas as pd

    return str(pd.DataFrame(rows).to_csv(index=False, lineterminator="\n"))


def frame_of(rows: Sequence[Row] | str) -> pd.DataFrame:
    """Rows, or the text of their CSV file, as a data frame: the same one either way."""
    import pandas as pd

    names, *lines = csv.reader(io.StringIO(rows if isinstance(rows, str) else text_of(rows)))
    return pd.DataFrame({name: _values(texts) for name, texts in zip(names, zip(*lines, strict=True), strict=True)})


def _values(texts: Sequence[str]) -> list[Any]:
    """A column of a CSV file: truth values, whole numbers, numbers where an empty text is none, or words."""
    if {*texts} <= {"True", "False"}:
        return [text == "True" for text in texts]
    for kind in (int, float):
        with suppress(ValueError):
            return [kind(text or "nan") for text in texts]
    return [*texts]


def read_table(path: Path) -> tuple[pd.DataFrame, Row]:
    """A kept table and what the JSON beside it says; ValueError when they do not belong together."""
    text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    try:
        about: Row = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if about["sha256"] != _digest(text):
            raise ValueError("its digest is that of another table")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path.name} and {path.stem}.json do not belong together ({error})") from None
    return frame_of(text), about


def write_table(path: Path, experiment: Experiment, run: Standing, cells: Sequence[Row], **made: Any) -> None:
    """Write a table to be kept; ``made`` says what it was computed with."""
    rows = [cell["row"] for cell in cells]
    text = text_of(rows)
    asked = {"experiment": experiment.name, "scale": run.scale, "corpus": run.corpus, "stream": experiment.stream}
    seeds, seconds = sorted({row["seed"] for row in rows}), [cell["seconds"] for cell in cells]
    write_json(
        path.with_suffix(".json"), {**asked, "seeds": seeds, "sha256": _digest(text), **made, "seconds": seconds}
    )
    write_whole(path, text)


@cache
def _code(module: str) -> str:
    """Digest of what a cell depends on: the module of its experiment, and the packages but for the chapters' own."""
    files = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] not in APART]
    files += [*PACKAGE.with_name("cfltr_core").rglob("*.py"), Path(str(sys.modules[module].__file__))]
    return _digest("".join(path.read_text(encoding="utf-8") for path in sorted(files)))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _seeds(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seed{'s' * (len(seeds) != 1)}"
