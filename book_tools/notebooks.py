"""Reading and writing notebooks, and the few questions that several modules ask of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from book_tools.errors import BookError
from cfltr_core.files import write_whole

# The tag of the cell in which papermill sets the parameters of a run.
INJECTED = "injected-parameters"
# What a notebook says of its kernel.
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
# The entry of an output's metadata by which the package marks a figure and its caption.
MARK = "cfltr"
# The mark-up below a staged chapter's title that leads to its copies, and that of the sentences that turned; each is a
# line that begins so, and adds so many lines.
LAUNCH, TURNED, ADDED_LINES = '<p class="launch">', '<div class="admonition warning turned">', 3
# The tags that fold a cell's code, or code and output, and the first line that says what is inside.
FOLDS = ("hide-input", "hide-cell")
# The tag of the cells that kept tables are computed by; with them go those that set the notebook up.
KEPT = "kept"
SET_UP = ("parameters", "remove-cell")
# What NumPy says of a number that it cannot compute, with the line of code below it.
NUMERIC_WARNING = re.compile(r"^RuntimeWarning: .*\n(?:  .*\n?)*", re.MULTILINE)
TITLE = re.compile(r"\A# @title[ \t]+(\S[^\n]*?)[ \t]*(?:\n|\Z)")


def read_notebook(path: Path) -> NotebookNode:
    """Return a notebook in format 4, or say what is wrong with the file."""
    try:
        notebook: NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except (ValueError, KeyError, AttributeError) as error:
        raise BookError(f"{path.name}: not a readable notebook ({error}); save it again from Jupyter") from None
    return notebook


def write_notebook(path: Path, notebook: NotebookNode) -> None:
    """Write a notebook with sorted keys, so that the same notebook is the same bytes."""
    write_whole(path, nbformat.writes(notebook) + "\n")  # type: ignore[no-untyped-call]


def title_of(notebook: NotebookNode) -> str:
    """Return the text of the first level-one heading, or an empty string."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    found = (re.search(r"^# (.*)$", text, re.MULTILINE) for text in texts)
    return next((match[1].strip() for match in found if match), "")


def mark_on(output: NotebookNode) -> dict[str, Any]:
    """Return what the package says of an output: of a figure, its caption, a claim or several."""
    return dict(output.get("metadata", {}).get(MARK, {}))


def source_index(notebook: NotebookNode, index: int) -> int:
    """Return where cell ``index`` of an executed notebook stands in the chapter, which lacks the injected one."""
    return index - sum(INJECTED in tags_of(cell) for cell in notebook.cells[:index])


def source_line(cell: NotebookNode, line: int) -> int:
    """Return where ``line`` of a staged cell, counted from 1, stands in the chapter."""
    added = [text for text in cell.source.splitlines()[: line - 1] if text.startswith((LAUNCH, TURNED))]
    return max(1, line - ADDED_LINES * len(added))


def tags_of(cell: NotebookNode) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.metadata.get("tags", []))


def has_kept_tables(notebook: NotebookNode) -> bool:
    """Tell whether the chapter has kept tables: they stay in the repository, and take minutes where it is not."""
    return any(KEPT in tags_of(cell) for cell in notebook.cells)


def is_fold(cell: NotebookNode) -> bool:
    """Tell whether the code of ``cell`` is folded on the page."""
    return cell.cell_type == "code" and bool(set(FOLDS) & set(tags_of(cell)))


def fold_title(cell: NotebookNode) -> str | None:
    """Return what the first line ``# @title …`` of a cell says, or None without such a line."""
    match = TITLE.match(cell.source)
    return match[1] if match else None


def drop_numeric_warnings(notebook: NotebookNode) -> list[str]:
    """Take what NumPy says of numbers that are not finite off the page, in place; return it, one line each."""
    dropped = []
    for index, cell in enumerate(notebook.cells):
        for output in [output for output in cell.get("outputs", []) if output.get("name") == "stderr"]:
            found = NUMERIC_WARNING.findall(output.text)
            dropped += [f"cell {source_index(notebook, index)}: {text.splitlines()[0]}" for text in found]
            output["text"] = NUMERIC_WARNING.sub("", output.text)
            if found and not output.text.strip():
                cell.outputs.remove(output)
    return dropped
