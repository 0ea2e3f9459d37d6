"""A Sphinx extension: a folded cell is a ``<details>`` whose ``<summary>`` is valid HTML and is read out.

myst-nb puts two paragraphs into the summary, which HTML does not allow, under an ``aria-label`` that is the same for
every fold and that a screen reader reads in place of them.
"""

from __future__ import annotations

from html import escape
from typing import Any

from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxTranslator


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


def setup(app: Sphinx) -> dict[str, Any]:
    """Put these visitors in the place of myst-nb's."""
    app.setup_extension("myst_nb")
    app.add_node(HideCodeCellNode, override=True, html=(visit_fold, depart_fold))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
