"""The pages that describe the packages: a page for each of their folders, and one that lists every public name.

They are written while the book is staged, from nothing but the packages: Sphinx reads the docstrings.  Described are
the public names, and the classes that these take and return.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

# What ``import cfltr_core as cf`` and ``import cfltr_book as book`` bring.
PACKAGES = ("cfltr_core", "cfltr_book")
FOLDER = "api"
# The folders of the packages in the order in which one meets them, each with the title of its page.
PAGES = {
    "ranking": "Rankings and metrics",
    "clicks": "Users, policies and click logs",
    "data": "Corpora and scales",
    "evaluation": "Estimates from a log",
    "propensity": "Propensities",
    "learning": "Learning",
    "reporting": "Figures, claims and runs",
}
INDEX = f"{FOLDER}/index"
NAMES = (INDEX, *(f"{FOLDER}/{folder}" for folder in PAGES))
RECIPES = Path(__file__).with_name("api_recipes.md")


@dataclass(frozen=True)
class Entry:
    """One thing that is described: its ``name``, the module that defines it, and whether it is public."""

    name: str
    module: str
    public: bool

    @property
    def folder(self) -> str:
        """The folder of the package in which it lies."""
        return self.module.split(".")[1]

    @property
    def path(self) -> str:
        """The name under which it is described: a public one as it is imported."""
        return f"{self.module.split('.')[0]}.{self.name}" if self.public else f"{self.module}.{self.name}"

    @property
    def value(self) -> Any:
        """The thing itself."""
        return getattr(importlib.import_module(self.module), self.name)


@cache
def public_entries() -> tuple[Entry, ...]:
    """Return every public name of the packages."""
    packages = [importlib.import_module(name) for name in PACKAGES]
    homes = {
        alias.asname or alias.name: node.module
        for package in packages
        for node in ast.parse(inspect.getsource(package)).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    return tuple(Entry(name, homes[name], True) for package in packages for name in package.__all__)


@cache
def entries() -> tuple[Entry, ...]:
    """Return every public name, and every class of the packages that one of them takes, returns or has."""
    found = {id(entry.value): entry for entry in public_entries()}
    todo = list(found.values())
    while todo:
        for used in _classes_of(todo.pop().value):
            parts = used.__module__.split(".")
            if id(used) not in found and len(parts) > 2 and parts[1] in PAGES and not used.__name__.startswith("_"):
                found[id(used)] = Entry(used.__name__, used.__module__, False)
                todo.append(found[id(used)])
    return tuple(sorted(found.values(), key=_place))


def _place(entry: Entry) -> tuple[int, str, int]:
    """Where an entry stands: by folder, by module, as in the source."""
    module = importlib.import_module(entry.module)
    names = list(vars(module))
    return list(PAGES).index(entry.folder), entry.module, names.index(entry.name)


def _classes_of(value: Any) -> Iterator[type]:
    """Yield the classes of the packages that stand in the signature of ``value``, or of one of its public methods."""
    if inspect.isclass(value):
        yield from (base for base in value.__mro__[1:] if _is_ours(base))
        parts = [value, *(part for name, part in vars(value).items() if not name.startswith("_"))]
    else:
        parts = [value]
    for part in parts:
        function = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
        module = inspect.getmodule(function) or inspect.getmodule(value)
        for annotation in getattr(function, "__annotations__", {}).values():
            yield from _named_in(str(annotation), module)


def _named_in(annotation: str, module: ModuleType | None) -> Iterator[type]:
    """Yield the classes of the packages that an annotation names; what only a type checker imports is not there."""
    for name in re.findall(r"[A-Za-z_]\w*", annotation):
        value = getattr(module, name, None)
        if inspect.isclass(value) and _is_ours(value):
            yield value


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in PACKAGES


def first_sentence(entry: Entry) -> str:
    """Return the first paragraph of the docstring, without roles."""
    text = inspect.getdoc(entry.value) if callable(entry.value) else attribute_doc(entry)
    lines = re.split(r"\n\s*\n", (text or "").strip())[0].split()
    return re.sub(r":\w+:`~?([^`]*)`", r"``\1``", " ".join(lines))


def attribute_doc(entry: Entry) -> str:
    """Return the comment ``#: …`` above a value that is no function and no class."""
    from sphinx.pycode import ModuleAnalyzer

    return "\n".join(ModuleAnalyzer.for_module(entry.module).find_attr_docs().get(("", entry.name), []))


def api_pages() -> dict[str, str]:
    """Return the text of every page about the packages."""
    pages = {f"{FOLDER}/{folder}": _folder_page(folder) for folder in PAGES}
    pages[INDEX] = _index()
    return pages


def _folder_page(folder: str) -> str:
    inside = [entry for entry in entries() if entry.folder == folder]
    package = inside[0].module.partition(".")[0]
    parts = [f"(api-{folder})=\n# {PAGES[folder]}\n", f"{_doc_of(f'{package}.{folder}')}\n"]
    module = ""
    for entry in inside:
        if entry.module != module:
            module = entry.module
            parts.append(f"## `{module.removeprefix(f'{package}.')}`\n")
            parts.append(_directive("automodule", module, "no-members:"))
        parts.append(_described(entry))
    return "\n".join(parts)


def _described(entry: Entry) -> str:
    value = entry.value
    if inspect.isclass(value):
        return _directive("autoclass", entry.path, "members:", "inherited-members: Protocol, Mapping, object")
    if inspect.isroutine(value):
        return _directive("autofunction", entry.path)
    text = attribute_doc(entry).replace("\n", "\n   ")
    return f"```{{eval-rst}}\n.. py:data:: {entry.path}\n\n   {text}\n```\n"


def _directive(kind: str, path: str, *options: str) -> str:
    lines = [f".. {kind}:: {path}", *(f"   :{option}" for option in options)]
    return "```{eval-rst}\n" + "\n".join(lines) + "\n```\n"


def _doc_of(module: str) -> str:
    return (importlib.import_module(module).__doc__ or "").strip().partition("\n")[0]


def _index() -> str:
    parts = ["(api-index)=\n# The packages, name by name\n", RECIPES.read_text(encoding="utf-8")]
    for folder, title in PAGES.items():
        parts.append(f"## [{title}]({folder}.md)\n")
        rows = [
            f"   * - :py:obj:`~{entry.path}`\n     - {first_sentence(entry)}"
            for entry in sorted(public_entries(), key=lambda entry: entry.name.lower())
            if entry.folder == folder
        ]
        parts.append("```{eval-rst}\n.. list-table::\n   :widths: 30 70\n\n" + "\n".join(rows) + "\n```\n")
    return "\n".join(parts)
