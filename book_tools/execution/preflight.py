"""Everything that can be found wrong before the first cell runs.

All problems are collected and reported together: a run of several minutes should not end in a slip that
was there to see at its start.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import papermill  # type: ignore[import-untyped]

from book_tools.book import PACKAGES, Chapter
from book_tools.errors import Problems, UsageError
from book_tools.execution.execute import DROPPED_VARIABLES
from book_tools.notebooks import read_notebook, tags_of
from book_tools.parameters import KNOWN, Parameters
from cfltr_book.data.corpora import check_corpus
from cfltr_book.data.scales import check_scale
from cfltr_book.reporting import claim_registry

CHAPTER_NAME = re.compile(r"\d\d_[a-z0-9]+(_[a-z0-9]+)*")
# The checkout that this code is of.  The pipeline is not installed, so a chapter need not find it.
CHECKOUT = Path(__file__).resolve().parents[2]
PIPELINE = "book_tools"
# Where an interpreter finds the packages that it is asked for, without importing them.
FIND = """
import importlib.util, json, sys
found = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}
print(json.dumps({name: list(spec.submodule_search_locations or []) for name, spec in found.items() if spec}))
"""


def check_packages() -> None:
    """Raise when a chapter would import another checkout's code, as in an environment that two clones share."""
    package_problems(sys.executable, CHECKOUT).raise_any(UsageError)


def package_problems(python: str, checkout: Path) -> Problems:
    """Return what a kernel of ``python`` would import from elsewhere than ``checkout``, and how to mend it."""
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED_VARIABLES}
    command = [python, "-P", "-c", FIND, *PACKAGES, PIPELINE]
    found = json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    problems = Problems()
    for name in (*PACKAGES, PIPELINE):
        places = [Path(place).resolve() for place in found.get(name, [])]
        if (not places and name != PIPELINE) or any(place != checkout / name for place in places):
            where = f"imports {', '.join(map(str, places))}" if places else "finds no such package"
            problems.append(f"{name}: {python} {where}, expected {checkout / name}")
    if problems:
        own = Path(python).parent.parent
        inside = own.resolve().is_relative_to(checkout)
        remedy = f"remove {own / '.whole'} and run 'make setup'" if inside else "run 'make setup' here, and set no VENV"
        problems.append(f"the chapters would run on code that is not of this checkout: {remedy}")
    return problems


def check_chapters(chapters: list[Chapter]) -> None:
    """Raise one error that lists everything wrong with the chapters' files."""
    problems = Problems()
    for chapter in chapters:
        with problems.collected():
            problems += _chapter_problems(chapter)
    problems.raise_any(UsageError)


def check_parameters(parameters: Parameters) -> None:
    """Raise when the scale or the corpus does not exist, before any chapter starts."""
    problems = Problems()
    for check, value in ((check_scale, parameters.scale), (check_corpus, parameters.corpus)):
        with problems.collected(kind=ValueError):
            check(value)
    if parameters.seed < 0:
        problems.append(f"seed {parameters.seed}: seeds start at 0")
    problems.raise_any(UsageError)


def check_claims() -> None:
    """Raise when the registry of claims is not what it must be, before a chapter measures one of them."""
    try:
        claim_registry.registry()
    except ValueError as error:
        raise UsageError(str(error)) from None


def _chapter_problems(chapter: Chapter) -> Iterator[str]:
    name = chapter.source.name
    if not CHAPTER_NAME.fullmatch(chapter.name):
        yield f"{name}: chapters are called NN_snake_case.ipynb"
    notebook = read_notebook(chapter.source)
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and (cell.outputs or cell.execution_count is not None):
            yield (
                f"{name}, cell {index}: has a stored output; chapters are kept without outputs, "
                f"clear it with 'nbstripout chapters/{name}'"
            )
    found = sum("parameters" in tags_of(cell) for cell in notebook.cells)
    if found != 1:
        yield f"{name}: {found} cells are tagged 'parameters', expected exactly one, which assigns {', '.join(KNOWN)}"
        return
    # papermill reports every notebook that it opens; only our own lines should appear.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    try:
        assigned = set(papermill.inspect_notebook(str(chapter.source)))
    except ValueError as error:
        yield f"{name}: papermill cannot read its parameters ({error}); its kernel must be python3"
        return
    for missing in sorted(set(KNOWN) - assigned):
        yield f"{name}: the parameters cell does not assign {missing!r}; add it with its default"
    for extra in sorted(assigned - set(KNOWN)):
        yield f"{name}: the parameters cell assigns {extra!r}, which no run sets; move it to another cell"
