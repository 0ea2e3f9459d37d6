"""A Sphinx extension: what the pages about the packages need besides autodoc and napoleon.

Docstrings are written for readers of the source.  Their formulas keep their lines here, signs of formulas are no
mark-up, and a reference may name a function by its last name or by the module that defines it.
"""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import Node  # type: ignore[import-untyped]
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

from book_tools.book import PACKAGES

UNDERLINE = re.compile(r"\s*-{3,}\s*$")
RULE = re.compile(r"=+( +=+)+$")
# A sign that looks like a bar: an escaped bar would move the columns of a table.
DIVIDES = "\N{DIVIDES}"
# What is mark-up already, and examples with what they print.
MARKED = r"``(?:(?!``|\n\s*\n).)*``|:\w+:`[^`]*`|^ *>>>(?:(?!\n\s*\n).)*"
# A formula on lines of its own.
APART = r"^ {4}[^\n]*$"
# Bars would name a substitution, |F|, and an underscore at the end of a word a link, c_.
SYMBOL = re.compile(r"\|(?=\S)|(?<=\w)_(?!\w)")


def prepare_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Show formulas that stand apart line by line, and let symbols be no mark-up, in place."""
    section = next((index - 1 for index, line in enumerate(lines) if index and UNDERLINE.match(line)), len(lines))
    out: list[str] = []
    before = ""  # the last line with something in it
    rules = 0  # a table has three: above its head, below it, and at its end
    for line in lines[:section]:
        rules += bool(RULE.match(line))
        if rules % 3:
            line = line.replace("|", DIVIDES)
        elif line.startswith("    ") and not before.startswith("    ") and not before.endswith("::"):
            out += [".. code-block:: text", ""]
        before = line.rstrip() or before
        out.append(line)
    head = _escaped("\n".join(out), rf"{MARKED}|{APART}").split("\n")
    rest = _escaped("\n".join(lines[section:]), MARKED).split("\n") if section < len(lines) else []
    lines[:] = [*head, *rest]


def _escaped(text: str, kept: str) -> str:
    """Return ``text`` with symbols that are no mark-up written as such, except in what is ``kept``."""
    parts = re.split(f"({kept})", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if index % 2 else SYMBOL.sub(r"\\\g<0>", part) for index, part in enumerate(parts))


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: Node) -> Node | None:
    """Lead a reference to the public name, or to the class, that ends as it does; show any other one as code."""
    if node.get("refdomain") != "py":
        return None
    described = env.get_domain("py").objects  # type: ignore[attr-defined]
    ending = re.sub(r"^.*?((?:[A-Z]\w*\.)?\w+)$", r"\1", node["reftarget"])
    names = [f"{package}.{ending}" for package in PACKAGES]
    if ending[0].isupper():
        names += [name for name in described if name.endswith(f".{ending}")]
    found = next((name for name in names if name in described), None)
    if found is None:
        return contnode
    place = described[found]
    return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, contnode, found)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect both; before napoleon, which finds its sections in the docstring as it is written."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", prepare_docstring, priority=400)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
