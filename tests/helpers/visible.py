"""What of a chapter a reader meets who opens nothing: its words and its lines of code.

The form of chapters and the time that reading takes are both measured by this.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from book_tools.colab.myst import blocks_of
from book_tools.notebooks import FOLDS

REMOVED = {"remove-cell", "remove-input"}
TITLE = re.compile(r"# @title \S")
# What stands in the margin, and what a reader opens.
ASIDE = ("margin", "sidebar", "dropdown")


@dataclass(frozen=True)
class Cell:
    """A cell with its kind, text and tags; ``solution`` tells whether it stands in a folded solution."""

    kind: str
    text: str
    tags: frozenset[str]
    solution: bool = False

    @property
    def lines(self) -> int:
        """Lines that are not empty, without the title of a fold."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        return len(lines) - bool(lines and TITLE.match(lines[0]))

    @property
    def is_fold(self) -> bool:
        """True for code that is folded."""
        return self.kind == "code" and bool(self.tags & {*FOLDS})

    @property
    def is_visible(self) -> bool:
        """True for code that stands open."""
        return self.kind == "code" and not self.tags & {*FOLDS, *REMOVED} and not self.solution


def cells_of(notebook: Mapping[str, Any]) -> list[Cell]:
    """The cells of a notebook in JSON."""
    found: list[Cell] = []
    inside = False
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            start, end = text.rfind(":::{solution-start}"), text.rfind(":::{solution-end}")
            inside = inside if start == end else start > end
        tags = frozenset(cell["metadata"].get("tags", []))
        found.append(Cell(cell["cell_type"], text, tags, inside and cell["cell_type"] == "code"))
    return found


def prose_of(cells: list[Cell]) -> str:
    """The text of a chapter, with blank lines between its cells."""
    return "\n\n".join(cell.text for cell in cells if cell.kind == "markdown")


def path_words(prose: str) -> int:
    """How many words a reader meets who opens nothing; formulas, labels, marks and options are none."""
    # What stands between the start and the end of a folded solution is folded with it.
    prose = re.sub(r"^:::\{solution-start\}.*?^:::\{solution-end\}\n:::$", "", prose, flags=re.M | re.S)
    text = re.sub(r"\$\$.*?\$\$([ \t]*\([\w-]+\))?", "", "\n".join(_open_text(prose)), flags=re.DOTALL)
    text = re.sub(r"\$[^$\n]+\$|^\(.*\)=$|\{claim\}`[^`]*`", "", text, flags=re.MULTILINE)
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def _open_text(prose: str) -> Iterator[str]:
    for block in blocks_of(prose):
        if isinstance(block, str):
            yield block
        elif block.name not in ASIDE and "dropdown" not in block.options.get("class", ""):
            yield block.argument
            yield from _open_text(block.body)
