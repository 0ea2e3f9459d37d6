"""Compute and write the kept tables of a chapter's experiments, or compute every cell again and compare."""

from __future__ import annotations

import importlib
import os
import sys

from joblib import parallel_config

from book_tools.book import Book
from book_tools.errors import BookError, UsageError
from book_tools.execution.execute import CACHE_VARIABLE, computing_environment
from book_tools.execution.preflight import check_packages, check_parameters
from book_tools.execution.run import interruptible
from book_tools.execution.state import provenance
from book_tools.parameters import Parameters
from cfltr_book.reporting import tables as kept_tables
from cfltr_book.reporting.run import Run
from cfltr_book.reporting.tables import Experiment, check_question, compute, differences, write_table


def tables(
    book: Book, wanted: str, parameters: Parameters, *, names: list[str], jobs: int, anew: bool, check: bool
) -> None:
    """Compute the tables of the experiments called ``names`` (all when empty) on ``jobs`` workers, and write them.

    Cells that an earlier run finished are found again, unless they are computed ``anew``.  To ``check`` is to compute
    all cells of the tables that are kept from nothing, and to write none.

    Raises
    ------
    BookError
        For a check in which a value moved beyond its experiment's tolerance.
    """
    environment = {CACHE_VARIABLE: str(book.build / "cache")} | computing_environment()
    if any(os.environ.get(name) != value for name, value in environment.items()):
        # Libraries read at their start how many threads and which kernels they use: the command starts once more.
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
    check_packages()
    check_parameters(parameters)
    experiments = _experiments(book, wanted, names)
    run = Run(parameters.scale, parameters.corpus)
    problems: list[str] = []
    with interruptible("cells"), parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
        try:
            for experiment in experiments:
                problems += _checked(experiment, run) if check else _written(book, experiment, run, anew=anew)
        except ValueError as error:
            raise BookError(str(error)) from None
    if problems:
        raise BookError(*problems, f"tables: {len(problems)} values moved beyond their tolerance")


def _experiments(book: Book, wanted: str, names: list[str]) -> list[Experiment]:
    """The experiments that stand in the module of a chapter, of these ``names``."""
    (chapter,) = book.select([wanted])
    try:
        module = importlib.import_module(f"cfltr_book.experiments.ch{chapter.number}")
    except ModuleNotFoundError:
        raise UsageError(f"{chapter.name} has no module of experiments; 'make paper' computes older tables") from None
    found = {one.name: one for one in vars(module).values() if isinstance(one, Experiment)}
    if not found or not {*names} <= {*found}:
        raise UsageError(f"{chapter.name} has the experiments {', '.join(found) or 'of no table'}; choose from these")
    return [found[name] for name in names or found]


def _written(book: Book, experiment: Experiment, run: Run, *, anew: bool) -> list[str]:
    asked = experiment.rows(run, experiment.seeds_of(run))
    print(f"{experiment.name}: {len(asked)} cells, {run.scale}, {run.corpus}", flush=True)
    cells = compute(experiment, run, asked, anew=anew)
    path = book.root / "cfltr_book" / "kept" / experiment.path(run.scale, run.corpus).relative_to(kept_tables.KEPT)
    write_table(path, experiment, run, cells, **provenance(book, besides="cfltr_book/kept"))
    print(f"  kept  {path.relative_to(book.root)}, {sum(cell['seconds'] for cell in cells):.0f} s", flush=True)
    return []


def _checked(experiment: Experiment, run: Run) -> list[str]:
    kept = experiment.kept_table(run.scale, run.corpus)
    if kept is None:
        print(f"{experiment.name}: no table is kept at {run.scale} on {run.corpus}", flush=True)
        return []
    asked = check_question(experiment, run, kept)
    cells = compute(experiment, run, asked, anew=True)
    found = [
        difference
        for question, row, cell in zip(asked, kept.to_dict("records"), cells, strict=True)
        for difference in differences(experiment, question, row, cell["row"])
    ]
    for text, beyond in found:
        print(f"  {'moved' if beyond else 'within the tolerance'}: {text}", flush=True)
    print(f"{experiment.name}: {len(cells)} cells computed again, {len(found)} values differ", flush=True)
    return [text for text, beyond in found if beyond]
