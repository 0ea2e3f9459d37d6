"""The first cell of a copy: it installs the very revision of the package that the page was built from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from nbformat import NotebookNode

from book_tools.colab.repository import Origin

PACKAGE, MODULE = "cfltr-core", "cfltr_core"
# How a chapter's own first cell, which the install cell replaces, is recognised.
GUARD = f'find_spec("{MODULE}")'
CLONE = "get the repository of the book, run `pip install {}` in its folder, and start this notebook again"
# An optional extra of the package, and the function that a notebook needs it for.
EXTRAS = {"logs": "read_events"}


def requirement(origin: Origin, extras: Sequence[str] = ()) -> str | None:
    """Return what pip is to install, or None when no repository holds what the page was built from."""
    if origin.repository is None or not origin.installable:
        return None
    return f"{PACKAGE}{_bracketed(extras)} @ git+{origin.repository.address}@{origin.revision}"


def extras_of(cells: Iterable[NotebookNode]) -> tuple[str, ...]:
    """Return the extras of the package that the code of a notebook needs."""
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return tuple(extra for extra, function in EXTRAS.items() if re.search(rf"\b{function}\(", code))


def _bracketed(extras: Sequence[str]) -> str:
    return f"[{','.join(extras)}]" if extras else ""


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


def install_source(origin: Origin, extras: Sequence[str] = ()) -> str:
    """Return the source of the cell: nothing where the package is there, else an installation or an explanation."""
    wanted = requirement(origin, extras)
    if wanted is not None:
        lines = [f'    %pip install -q "{wanted}"', "    importlib.invalidate_caches()"]
    else:
        folder = f"'.{_bracketed(extras)}'" if extras else "."
        reason = "no public repository is known" if origin.repository is None else "no repository holds that"
        lines = [
            "    raise ModuleNotFoundError(",
            f'        "{MODULE} is not installed. This copy was {stamp_of(origin)}, and {reason}: "',
            f'        "{CLONE.format(folder)}."',
            "    )",
        ]
    return "\n".join(
        [
            "# @title Install the package of the book, where it is missing",
            "import importlib.util",
            "",
            f'if importlib.util.find_spec("{MODULE}") is None:',
            *lines,
        ]
    )
