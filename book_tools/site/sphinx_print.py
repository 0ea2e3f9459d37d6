"""A Sphinx extension for the printed book: numbers as on the site, folded cells and downloads left out, SVG converted.

LaTeX would count by itself, by the place of a chapter in the book and not by its number, and print what is folded.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms.images import ImageConverter
from sphinx.util.math import wrap_displaymath
from sphinx_proof.nodes import proof_node  # type: ignore[import-untyped]

CONVERTER = "rsvg-convert"


def number_of(env: BuildEnvironment, page: str, kind: str, node: Any) -> str | None:
    """Return the number that the site gives to ``node`` of ``page``, or None when it gives none."""
    numbers = env.toc_fignumbers.get(page, {}).get(kind, {})
    found = next((numbers[name] for name in node["ids"] if name in numbers), None)
    return ".".join(map(str, found)) if found else None


def _page_of(node: Any) -> str:
    """Return the page that ``node`` comes from; all are parts of one document here."""
    while node is not None and "docname" not in getattr(node, "attributes", {}):
        node = node.parent
    return str(node["docname"]) if node is not None else ""


def number_everything(app: Sphinx, document: Any, page: str) -> None:
    """Write the numbers of equations and figures into the document for LaTeX, in place."""
    if app.builder.name != "latex":
        return
    for node in list(document.findall(nodes.math_block)):
        number = number_of(app.env, node.get("docname", ""), "displaymath", node) if node.get("label") else None
        if number is not None:
            label = f"equation:{node['docname']}:{node['label']}"
            text = wrap_displaymath(node.astext(), label, False)
            begin = r"\begin{align}" if text.startswith(r"\begin{align}") else r"\begin{equation}"
            tagged = text.replace(begin, rf"{begin}\tag{{{number}}}", 1)
            node.replace_self(nodes.raw("", f"\n{tagged}\n", format="latex"))
    for node in list(document.findall(nodes.figure)):
        number = number_of(app.env, _page_of(node), "figure", node)
        if number is not None:
            raw = nodes.raw("", rf"\renewcommand{{\thefigure}}{{{number}}}", format="latex")
            node.parent.insert(node.parent.index(node), raw)


def leave_out(app: Sphinx, document: Any, page: str) -> None:
    """Take out of the document for LaTeX, in place, what paper has not: folds, downloads, a box around each proof."""
    if app.builder.name != "latex":
        return
    for download in list(document.findall(download_reference)):
        before = download.previous_sibling()
        before.parent.replace(before, nodes.Text(before.astext().rstrip(" ·")))
        download.parent.remove(download)
    for proof in list(document.findall(proof_node)):
        proof.replace_self(proof[0].children)
    for cell in list(document.findall(nodes.container)):
        if cell.get("hide_mode") == "all":
            cell.parent.remove(cell)
        elif cell.get("hide_mode") == "input":
            cell.children = [part for part in cell.children if part.get("nb_element") != "cell_code_source"]


class Converter(ImageConverter):
    """Turns SVG, which LaTeX cannot read, into PDF."""

    conversion_rules = [("image/svg+xml", "application/pdf")]  # noqa: RUF012  (so it is declared there)

    def is_available(self) -> bool:
        """Tell whether the program is there."""
        return shutil.which(CONVERTER) is not None

    def convert(self, _from: Any, _to: Any) -> bool:
        """Convert one file."""
        subprocess.run([CONVERTER, "--format=pdf", f"--output={_to}", str(_from)], check=True)
        return True


def setup(app: Sphinx) -> dict[str, Any]:
    """Number and leave out when all pages are one document; convert where the builder takes no SVG."""
    app.connect("doctree-resolved", number_everything)
    app.connect("doctree-resolved", leave_out)
    app.add_post_transform(Converter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
