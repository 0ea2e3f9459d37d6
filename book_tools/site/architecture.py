"""The page that shows how the code is built: the floors of each package, and its modules with what each is for.

Nothing of it is typed: the floors are the table in the docstring of the package, which tests compare with the imports,
and what a module is for is the first paragraph of its own docstring.
"""

from __future__ import annotations

import ast
from pathlib import Path

from book_tools.rendering import first_paragraph, render

NAME = "chapters/architecture"
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cfltr_core", "cfltr_book", "book_tools")


def architecture() -> str:
    """Return the text of the page."""
    return render("architecture.md.jinja", packages=[_package(ROOT / name) for name in PACKAGES])


def _package(package: Path) -> tuple[str, str, dict[str, list[tuple[str, str]]]]:
    """Return the name of a package, the table of its floors, and what is in its folders, the package itself first."""
    folders: dict[str, list[tuple[str, str]]] = {}
    for path in sorted(package.rglob("*.py"), key=lambda path: (path.parent != package, path)):
        folder = "/".join(path.relative_to(package.parent).parts[:-1][:2])
        folders.setdefault(folder, []).append((module_name(path), first_paragraph(docstring(path))))
    return package.name, docstring(package / "__init__.py"), folders


def module_name(path: Path) -> str:
    """Return the dotted name of a module; a folder's name stands for its ``__init__``."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def docstring(path: Path) -> str:
    """Return the docstring of a module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
