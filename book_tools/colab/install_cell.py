"""The first cell of a copy: it installs the very revision of the package that the page was built from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from nbformat import NotebookNode

from book_tools.colab.repository import Origin

# Where cfltr_book.figure looks for them.
NUMBERS_VARIABLE = "CFLTR_FIGURE_NUMBERS"
PACKAGE, MODULE = "cfltr-core", "cfltr_book"
# How a chapter's own first cell, which the install cell replaces, is recognised.
GUARD = f'find_spec("{MODULE}")'
# The folder itself is not named: it is somebody's.
CLONE = "run `pip install '.{}'` in the clone of the book that made this copy{}, and start this notebook again"
# The extra that every chapter needs, and the function that a notebook calls which needs another.
CHAPTERS = "chapters"
EXTRAS = {"logs": "read_events"}


def requirement(origin: Origin, extras: Sequence[str] = ()) -> str | None:
    """Return what pip is to install, or None when no repository holds what the page was built from."""
    if origin.repository is None or not origin.installable:
        return None
    return f"{PACKAGE}{_bracketed(extras)} @ git+{origin.repository.address}@{origin.revision}"


def as_listed(origin: Origin) -> str:
    """Return how pip lists the package once that is installed: without extras."""
    return str(requirement(origin)).replace(_bracketed(()), "")


def extras_of(cells: Iterable[NotebookNode]) -> tuple[str, ...]:
    """Return the extras of the package that the code of a notebook needs besides that of every chapter."""
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return tuple(extra for extra, function in EXTRAS.items() if re.search(rf"\b{function}\(", code))


def _bracketed(extras: Sequence[str]) -> str:
    return f"[{','.join((CHAPTERS, *extras))}]"


def stamp_of(origin: Origin) -> str:
    """Say in half a sentence what a copy was made from."""
    if origin.revision is None:
        return "made from files that are under no version control"
    if origin.dirty:
        return f"made from uncommitted changes on top of revision {origin.revision}, which does not hold them"
    return f"made from revision {origin.revision}"


def is_guard(cell: NotebookNode) -> bool:
    """Tell whether ``cell`` is a chapter's own check that the package is there."""
    return bool(cell.cell_type == "code" and GUARD in cell.source)


def install_source(origin: Origin, extras: Sequence[str] = (), numbers: dict[str, str] | None = None) -> str:
    """Return the source of the cell: nothing where the package is there, else an installation or an explanation.

    ``numbers`` are those of the chapter's figures in the book, by name: the package puts them before the captions.
    """
    wanted = requirement(origin, extras)
    if wanted is not None:
        lines = [f'    %pip install -q "{wanted}"', "    importlib.invalidate_caches()"]
    else:
        reason = "no public repository is known" if origin.repository is None else "no repository holds that"
        lines = [
            "    raise ModuleNotFoundError(",
            f'        "{MODULE} is not installed. This copy was {stamp_of(origin)}, and {reason}: "',
            f'        "{CLONE.format(_bracketed(extras), _as_it_was(origin))}."',
            "    )",
        ]
    return "\n".join(
        [
            "# @title Install the package of the book, where it is missing",
            "import importlib.util",
            "",
            f'if importlib.util.find_spec("{MODULE}") is None:',
            *lines,
            *_numbering(numbers or {}),
        ]
    )


def _as_it_was(origin: Origin) -> str:
    """Say in which state a clone is what a copy was made from."""
    if origin.revision is None:
        return ""
    if origin.dirty:
        return f", with its changes on top of revision {origin.revision[:12]}"
    return f", at that revision (`git checkout {origin.revision[:12]}`)"


def _numbering(numbers: dict[str, str]) -> list[str]:
    """Return the lines that tell the package what the figures are called in the book."""
    if not numbers:
        return []
    return [
        "",
        "import json",
        "import os",
        "",
        "# The numbers that the figures have in the book; their captions begin with them.",
        f'os.environ["{NUMBERS_VARIABLE}"] = json.dumps({json.dumps(numbers, indent=4)})',
    ]
