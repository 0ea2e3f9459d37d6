"""A Sphinx extension: how pages number and fold, for which Sphinx and the other extensions have no setting.

Theorems, figures, equations and exercises are numbered by chapter (Theorem 11.2, Fig. 11.4).  The number of a chapter
is that of its file, ``NN_name``, so that a new chapter shifts no other's numbers, and gaps are fine.  Pages without
such a name are numbered as before, through the book.

Folded cells and solutions are a ``<details>`` whose ``<summary>`` is valid HTML and is read out.  So is every other
fold of the book; all have one look, one key, and need no script.  myst-nb puts two paragraphs into the summary, which
HTML does not allow, under an ``aria-label`` that is the same for every fold and that a screen reader reads in place of
them; sphinx-exercise leaves solutions to a script, without which they would stand open.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.util.docutils import SphinxTranslator
from sphinx_exercise.nodes import solution_node  # type: ignore[import-untyped]

CHAPTER = re.compile(r"(?:.*/)?(\d+)_[^/]*")

_assign_figure_numbers = TocTreeCollector.assign_figure_numbers


def chapter_of(page: str) -> int | None:
    """Return the number of the chapter on ``page``, or None for any other page."""
    match = CHAPTER.fullmatch(page)
    return int(match[1]) if match else None


def assign_figure_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Number everything as Sphinx does where each chapter is a numbered section of its own.

    Only while they are assigned: afterwards a section number would be put in front of every heading, where the
    titles have theirs already.
    """
    kept = env.toc_secnumbers
    chapters = {page: chapter_of(page) for page in env.found_docs}
    env.toc_secnumbers = {page: {"": (number,)} for page, number in chapters.items() if number is not None}
    try:
        return _assign_figure_numbers(self, env)
    finally:
        env.toc_secnumbers = kept


def visit_fold(self: SphinxTranslator, node: HideCodeCellNode) -> None:
    """Open the fold, and write its label, the same whether it is open or shut."""
    classes = " ".join(["hide", *node["classes"]])
    self.body.append(f'<details class="{classes}">\n<summary>{escape(node["prompt_show"])}</summary>\n')


def depart_fold(self: SphinxTranslator, node: HideCodeCellNode) -> None:
    """Close the fold."""
    self.body.append("</details>\n")


def visit_solution(self: SphinxTranslator, node: solution_node) -> None:
    """Open the fold of a solution under its title: its text alone, since a link has no place in what opens a fold."""
    title = escape(node.pop(0).astext())
    self.body.append(f"{self.starttag(node, 'details')}<summary>{title}</summary>\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Put this numbering in the place of Sphinx's, and these visitors in that of myst-nb's and sphinx-exercise's."""
    TocTreeCollector.assign_figure_numbers = assign_figure_numbers  # type: ignore[method-assign]
    app.setup_extension("myst_nb")
    app.setup_extension("sphinx_exercise")
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    app.add_node(solution_node, override=True, html=(visit_solution, depart_fold))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
