"""A Sphinx extension: the formulas of docstrings look like mathematics on the pages about the package.

In the source they stay as they are, to be read in a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx

from book_tools.site.api import FOLDER
from book_tools.site.formulas import LOWERED, PLAIN, SURE, VARIABLE, Formula, parts_of

# What is no running text: code, names, what is emphasised, and formulas that are set already.
SKIPPED = (nodes.literal, nodes.literal_block, nodes.doctest_block, nodes.emphasis, nodes.math, nodes.raw, nodes.title)
# Columns of formulas that stand apart, and names of arguments in what is said beside them.
COLUMNS = re.compile(r" {3,}")
QUOTED = re.compile(r"``([^`]+)``")


def set_formulas(app: Sphinx, document: Any) -> None:
    """Set every formula of a page about the package, in place."""
    if not app.env.docname.startswith(f"{FOLDER}/"):
        return
    for block in list(document.findall(nodes.literal_block)):
        if "language" not in block and ">>>" not in block.astext() and SURE.search(block.astext()):
            block.replace_self(_apart(block.astext()))
    for text in list(document.findall(nodes.Text)):
        if not _within(text, SKIPPED) and "formula" not in text.parent.get("classes", ()):
            parts = list(_inline(text.astext()))
            if any(not isinstance(part, nodes.Text) for part in parts):
                text.parent.replace(text, parts)


def _within(node: Any, kinds: tuple[type, ...]) -> bool:
    while node is not None:
        if isinstance(node, kinds) or "sig" in getattr(node, "attributes", {}).get("classes", ()):
            return True
        node = node.parent
    return False


def _inline(text: str) -> Iterator[Any]:
    for part in parts_of(text):
        yield nodes.Text(part) if isinstance(part, str) else nodes.inline("", "", *_set(part), classes=["formula"])


def _set(formula: Formula) -> Iterator[Any]:
    for piece in formula:
        if piece.kind == PLAIN:
            yield nodes.Text(piece.text)
        elif piece.kind == VARIABLE:
            yield nodes.emphasis("", piece.text)
        else:
            kind = nodes.subscript if piece.kind == LOWERED else nodes.superscript
            yield kind("", "", *_set(piece.parts))


def _apart(text: str) -> Any:
    """Return formulas on lines of their own; what stands in columns stays in columns."""
    rows = []
    for line in text.split("\n"):
        cells = []
        for cell in COLUMNS.split(line.strip()):
            shown: list[Any] = []
            for index, part in enumerate(QUOTED.split(cell)):
                shown += [nodes.literal("", part)] if index % 2 else _inline(part)
            cells.append(nodes.inline("", "", *shown))
        rows.append(nodes.paragraph("", "", *cells))
    return nodes.container("", *rows, classes=["formulas"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Set them when a page has been read."""
    app.connect("doctree-read", set_formulas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
