"""A Sphinx extension for the ePub: formulas as MathML, which readers of books show without a script."""

from __future__ import annotations

from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number


def mathml(tex: str, display: str) -> str:
    """Return a formula as MathML, with its TeX as the text that is read where MathML is not."""
    from latex2mathml.converter import convert  # type: ignore[import-not-found,unused-ignore]

    # A table of equations is known to the converter by its older name.
    return str(convert(tex.replace("{aligned}", "{align*}"), display=display))


def visit_inline(self: Any, node: Any) -> None:
    """Write a formula of the text."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(self: Any, node: Any) -> None:
    """Write a formula on a line of its own, with its number where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})</span>')
    self.body.append(f"{mathml(node.astext(), 'block')}</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer this way of writing formulas, under the name ``mathml``."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
