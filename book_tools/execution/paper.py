"""Compute a chapter's kept tables: the experiments that are too long for each build, as cells that are stored.

Only the cells that these experiments need are executed, as those of a chapter are; there ``run.kept`` of the
package computes, stores and writes.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from concurrent.futures import wait
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from book_tools.book import Book, Chapter
from book_tools.errors import Problems, UsageError
from book_tools.execution.execute import KEPT_VARIABLE, Kernels, execute
from book_tools.execution.preflight import check_chapters, check_packages, check_parameters
from book_tools.execution.run import interruptible
from book_tools.execution.state import provenance
from book_tools.notebooks import KEPT, SET_UP, read_notebook, tags_of, write_notebook
from book_tools.parameters import Parameters
from cfltr_book.legacy import paper_run
from cfltr_book.legacy.kept_tables import place_of

LOOK_SECONDS = 0.5
# How a cell names the table that it computes, outside of comments.
CALLED = re.compile(r"^[^#\n]*\.kept\(\s*\"([^\"]+)\"", re.MULTILINE)


def paper(
    book: Book,
    wanted: str,
    parameters: Parameters,
    *,
    jobs: int = 1,
    tables: list[str] | None = None,
    seeds: int | None = None,
    go_on: bool = False,
    cluster: str = "",
) -> None:
    """Compute the kept ``tables`` (all when empty) of one chapter on ``jobs`` workers, and write them.

    With the address of a dask ``cluster``, its workers compute instead.  Cells that an earlier run finished are found
    again.  ``seeds`` is the largest number of seeds of a table; to ``go_on`` is to leave those that a table already
    holds as they are.
    """
    check_packages()
    check_parameters(parameters)
    (chapter,) = book.select([wanted])
    check_chapters([chapter])
    trimmed = trimmed_notebook(read_notebook(chapter.source))
    names = _table_names(chapter, trimmed)
    Problems(
        f"TABLES: {chapter.name} has no kept table {name!r}; choose from {', '.join(names)}"
        for name in tables or []
        if name not in names
    ).raise_any(UsageError)
    where = f"on the cluster at {cluster}" if cluster else f"{jobs} at a time"
    print(f"kept tables of {chapter.name}: {parameters}, {where}", flush=True)
    book.store(chapter).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cfltr-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        source, lines = folder / chapter.source.name, folder / "lines.txt"
        lines.touch()
        write_notebook(source, trimmed)
        variables = {
            KEPT_VARIABLE: str(book.kept(chapter)),
            paper_run.STORE: str(book.store(chapter)),
            paper_run.LINES: str(lines),
            paper_run.TABLES: " ".join(tables or []),
            paper_run.SEEDS: str(seeds or ""),
            paper_run.GO_ON: "1" if go_on else "",
            paper_run.JOBS: str(jobs),
            paper_run.CLUSTER: cluster,
            paper_run.ABOUT: json.dumps(provenance(book, besides="tests/reference/kept")),
        }
        with interruptible("cells"), lines.open(encoding="utf-8", errors="replace") as told, Kernels(1) as kernels:
            scratch = folder / "scratch"
            computed = kernels.submit(execute, Chapter(source), parameters, scratch, kernels, variables)
            try:
                while not wait([computed], LOOK_SECONDS).done:
                    print("".join(f"  {line}" for line in told), end="", flush=True)
                computed.result()
            finally:
                print("".join(f"  {line}" for line in told), end="", flush=True)
    place = place_of(book.kept(chapter), parameters.scale, parameters.corpus, seed=parameters.seed)
    for name in tables or names:
        if (path := place / f"{name}.csv").is_file():  # a chapter need not ask for each table at every scale
            print(f"  kept  {path.relative_to(book.root)}", flush=True)


def trimmed_notebook(notebook: NotebookNode) -> NotebookNode:
    """Return the notebook with only the code cells that kept tables need: tagged so, or to set the notebook up."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and {KEPT, *SET_UP} & set(tags_of(cell))]
    return nbformat.from_dict({**notebook, "cells": cells})  # type: ignore[no-untyped-call, no-any-return]


def _table_names(chapter: Chapter, trimmed: NotebookNode) -> list[str]:
    """Return the names of the tables that the cells compute, in order."""
    names = [name for cell in trimmed.cells for name in CALLED.findall(cell.source)]
    problems = Problems(
        f"{chapter.source.name}: two kept tables are called {name!r}; rename one"
        for name, times in sorted(Counter(names).items())
        if times > 1
    )
    if not names:
        problems.append(
            f'{chapter.source.name}: no cell tagged {KEPT!r} calls run.kept("…", …); there is nothing to compute'
        )
    problems.raise_any(UsageError)
    return names
