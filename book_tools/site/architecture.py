"""The page that shows how the code is built: the floors of each package, and its modules with what each is for.

Nothing of it is typed: the floors are the table in the docstring of the package, which tests compare with the imports,
and what a module is for is the first paragraph of its own docstring.
"""

from __future__ import annotations

import ast
import re
from itertools import groupby
from pathlib import Path

NAME = "chapters/architecture"
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cfltr_core", "cfltr_book", "book_tools")
INTRODUCTION = """# How the code is built

Three packages make the book, and each calls only those before it. The folders of each are floors of a house, and
imports point only down: what stands on a floor uses what lies below it, and knows nothing of what stands above. So
each floor can be read, tested and changed with nothing but the floors below in mind. A test fails where an import
points up, where two folders of one floor know each other without leave, or where a name with an underscore leaves its
module.
"""


def architecture() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    for name in PACKAGES:
        package = ROOT / name
        parts.append(f"## `{name}`\n\n```{{eval-rst}}\n{docstring(package / '__init__.py')}\n```\n")
        paths = sorted(package.rglob("*.py"), key=lambda path: (path.parent != package, path))
        for folder, inside in groupby(paths, key=lambda path: path.relative_to(package).parts[:-1][:1]):
            lines = [f"- `{module_name(path)}`: {first_paragraph(path)}" for path in inside]
            title = f"{'/'.join((name, *folder))}: {len(lines)} modules"
            parts.append("\n".join([f":::{{dropdown}} {title}\n", *lines, "\n:::\n"]))
    return "\n".join(parts)


def module_name(path: Path) -> str:
    """Return the dotted name of a module; a folder's name stands for its ``__init__``."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def first_paragraph(path: Path) -> str:
    """Return the first paragraph of a module's docstring, in Markdown."""
    text = " ".join(docstring(path).split("\n\n")[0].split())
    return re.sub(r"(?::\w+:)?(`+)~?([^`]+)\1", r"`\2`", text)


def docstring(path: Path) -> str:
    """Return the docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
