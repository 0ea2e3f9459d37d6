"""A Sphinx extension: what the pages about the packages need besides autodoc and napoleon.

References in docstrings are written for readers of the source, who name modules and helpers without a page: those
become plain code, as long as they name something that is there.  Formulas are lines of their own.
"""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

PACKAGES = ("cfltr_core", "cfltr_book")
OURS = tuple(f"{name}." for name in PACKAGES)
UNDERLINE = re.compile(r"\s*-{3,}\s*$")
RULE = re.compile(r"=+( +=+)+$")
# A bar that is as wide as a bar: in a table an escaped one would move what follows.
DIVIDES = "\N{DIVIDES}"
ROLE = re.compile(r"(:(?:func|class|meth|attr|data|mod):)`([\w.]+)`")
# What is mark-up already, and examples with what they print.
MARKED = r"``(?:(?!``|\n\s*\n).)*``|:\w+:`[^`]*`|^ *>>>(?:(?!\n\s*\n).)*"
# A formula on lines of its own.
APART = r"^ {4}[^\n]*$"
# Bars would name a substitution, |F|, and an underscore at the end of a word a link, c_.
SYMBOL = re.compile(r"\|(?=\S)|(?<=\w)_(?!\w)")


def prepare_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let formulas that stand apart keep their lines, and symbols be no mark-up, in place."""
    section = next((index - 1 for index, line in enumerate(lines) if index and UNDERLINE.match(line)), len(lines))
    out: list[str] = []
    before = ""  # the last line with something in it
    rules = 0  # a table has three: above its head, below it, and at its end
    for line in lines[:section]:
        rules += bool(RULE.match(line))
        if rules % 3:
            line = line.replace("|", DIVIDES)
        elif line.startswith("    ") and not before.startswith("    ") and not before.endswith("::"):
            out += ["::", ""]
        before = line.rstrip() or before
        out.append(line)
    head = _escaped("\n".join(out), rf"{MARKED}|{APART}").split("\n")
    rest = _escaped("\n".join(lines[section:]), MARKED).split("\n") if section < len(lines) else []
    place = f"{getattr(obj, '__module__', name)}.{getattr(obj, '__qualname__', '')}"
    lines[:] = [ROLE.sub(lambda role: _whole(role, place), line) for line in [*head, *rest]]


def _whole(role: re.Match[str], place: str) -> str:
    """Return a reference with the whole name of its target, as it is meant where the docstring was written."""
    target = _home(role[2], place) if not role[2].startswith(OURS) else None
    return f"{role[1]}`{role[2]} <{target}>`" if target else role[0]


def _escaped(text: str, kept: str) -> str:
    """Return ``text`` with symbols that are no mark-up written as such, except in what is ``kept``."""
    parts = re.split(f"({kept})", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if index % 2 else SYMBOL.sub(r"\\\g<0>", part) for index, part in enumerate(parts))


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: Any) -> Any:
    """Lead a reference to a public name to where that is described, and let others be code; None for a wrong one."""
    if node.get("refdomain") != "py":
        return None
    target: str = node["reftarget"]
    if not target.startswith(OURS):
        home = _home(target, f"{node.get('py:module')}.{node.get('py:class')}")
        if home is None:
            # Annotations and lists of errors name types of other packages, which have no page here.
            return contnode if node["reftype"] in ("class", "exc", "obj") else None
        target = home
    value = _find(target)
    if value is None:
        return None
    public = _public_path(target, value)
    found = env.get_domain("py").objects.get(public)  # type: ignore[attr-defined]
    if found is None:
        return contnode
    return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, contnode, public)


def _home(target: str, place: str) -> str | None:
    """Return the whole name of what a docstring at ``place``, a module, a class or a function, calls ``target``."""
    within = place.split(".")
    names = [".".join([*within[:length], target]) for length in range(len(within), 0, -1)]
    head, _, rest = target.partition(".")
    if head in _defined():
        names.append(f"{_defined()[head]}.{rest}".rstrip("."))
    return next((name for name in names if _find(name) is not None), None)


@cache
def _defined() -> dict[str, str]:
    """Return where each class and function of the packages is defined; one of several of the same name."""
    roots = [Path(str(importlib.import_module(name).__file__)).parent for name in PACKAGES]
    return {
        node.name: ".".join([*path.relative_to(root.parent).with_suffix("").parts, node.name])
        for root in roots
        for path in sorted(root.rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }


@cache
def _find(path: str) -> Any:
    """Return what is called ``path``, or None when nothing is."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:length]))
        except ImportError:
            continue
        for part in parts[length:]:
            fields = getattr(value, "__annotations__", {})
            value = getattr(value, part, fields.get(part))
        return value
    return None


def _public_path(path: str, value: Any) -> str:
    """Return the name under which ``path``, or what it is a part of, is described."""
    package = importlib.import_module(path.partition(".")[0])
    head, _, name = path.rpartition(".")
    if name in package.__all__ and getattr(package, name) is value:
        return f"{package.__name__}.{name}"
    owner = head.rpartition(".")[2]
    return f"{package.__name__}.{owner}.{name}" if owner in package.__all__ else path


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect both; before napoleon, which finds its sections in the docstring as it is written."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", prepare_docstring, priority=400)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
