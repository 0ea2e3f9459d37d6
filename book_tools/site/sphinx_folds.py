"""A Sphinx extension: folded cells and solutions are a ``<details>`` whose ``<summary>`` is valid HTML and is read out.

So is every other fold of the book; all have one look, one key, and need no script.  myst-nb puts two paragraphs into
the summary, which HTML does not allow, under an ``aria-label`` that is the same for every fold and that a screen
reader reads in place of them; sphinx-exercise leaves solutions to a script, without which they would stand open.
"""

from __future__ import annotations

from html import escape
from typing import Any

from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxTranslator
from sphinx_exercise.nodes import solution_node  # type: ignore[import-untyped]


def visit_fold(self: SphinxTranslator, node: HideCodeCellNode) -> None:
    """Open the fold, and write its label: one text, or one for each of its two states."""
    self.body.append(f'<details class="{" ".join(["hide", *node["classes"]])}">\n<summary>')
    shut, opened = node["prompt_show"], node["prompt_hide"]
    if shut == opened:
        self.body.append(escape(shut))
    else:
        # The style shows one of the two, so that only that one is read out.
        self.body.append(f'<span class="collapsed">{escape(shut)}</span>')
        self.body.append(f'<span class="expanded">{escape(opened)}</span>')
    self.body.append("</summary>\n")


def depart_fold(self: SphinxTranslator, node: HideCodeCellNode) -> None:
    """Close the fold."""
    self.body.append("</details>\n")


def visit_solution(self: SphinxTranslator, node: solution_node) -> None:
    """Open the fold of a solution under its title: its text alone, since a link has no place in what opens a fold."""
    title = escape(node.pop(0).astext())
    self.body.append(f"{self.starttag(node, 'details')}<summary>{title}</summary>\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Put these visitors in the place of those of myst-nb and of sphinx-exercise."""
    app.setup_extension("myst_nb")
    app.setup_extension("sphinx_exercise")
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    app.add_node(solution_node, override=True, html=(visit_solution, depart_fold))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
