"""Turn what other programs print into what a person can act on, and name the parser of the pages that they write."""

from __future__ import annotations

import re
from pathlib import Path

from book_tools.notebooks import read_notebook, source_index, source_line

# The parser of Python itself; it needs no other library, and every page of the site is read with it.
PARSER = "html.parser"
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# The builder numbers the lines of a notebook as 10000 × (cell + 1) + line.
NOTEBOOK_LINE = re.compile(r"(\S+\.ipynb):(\d+)(\d{4}):")
NOISE = re.compile(r"(Running Jupyter-Book|Building your book|Source Folder:|Config Path:|Output Path:|=+$)")


def plain(text: str) -> str:
    """Return ``text`` without colours."""
    return ANSI.sub("", text)


def builder_messages(output: str, stage: Path) -> str:
    """Return the builder's messages with the place in the book's own files instead of the staged ones."""
    lines = [line for line in plain(output).splitlines() if line.strip() and not NOISE.match(line)]
    text = "\n".join(lines).replace(f"{stage}/", "")
    return NOTEBOOK_LINE.sub(lambda match: _place(match, stage), text)


def _place(match: re.Match[str], stage: Path) -> str:
    name, cell, line = match.groups()
    path = stage / name
    if not path.is_file():
        return match[0]
    notebook, index = read_notebook(path), int(cell) - 1
    within = source_line(notebook.cells[index], max(1, int(line) - 1))
    return f"{name}, cell {source_index(notebook, index)}, line {within}:"
