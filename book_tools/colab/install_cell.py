"""The first cell of a copy: it installs the very revision of the package that the page was built from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from nbformat import NotebookNode

from book_tools.colab.repository import Origin
from book_tools.rendering import render

# Where cfltr_book.figure looks for them.
NUMBERS_VARIABLE = "CFLTR_FIGURE_NUMBERS"
PACKAGE, MODULE = "cfltr-core", "cfltr_book"
# How a chapter's own first cell, which the install cell replaces, is recognised.
GUARD = f'find_spec("{MODULE}")'
# The extra that every chapter needs, and the function that a notebook calls which needs another.
CHAPTERS = "chapters"
EXTRAS = {"logs": "read_events"}


def requirement(origin: Origin, extras: Sequence[str] = ()) -> str | None:
    """Return what pip is to install, or None when no repository holds what the page was built from."""
    wanted = f"{PACKAGE}{_bracketed(extras)} @ git+{origin.address}@{origin.revision}"
    return wanted if origin.installable else None


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
    return render(
        "install.py.jinja",
        module=MODULE,
        requirement=requirement(origin, extras),
        extras=_bracketed(extras),
        origin=origin,
        stamp=stamp_of(origin),
        variable=NUMBERS_VARIABLE,
        numbers=json.dumps(numbers, indent=4) if numbers else "",
    ).rstrip("\n")
