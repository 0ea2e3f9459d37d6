"""The pages that describe the packages: a page for each of their folders, and one that lists every public name.

They are written while the book is staged, from nothing but the packages: Sphinx reads the docstrings.  Described are
the public names, and the classes that these take and return.  Wherever code on a page names one, it leads there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import posixpath
import re
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inventory import InventoryFile

from book_tools.book import PACKAGES
from book_tools.rendering import first_paragraph, render
from book_tools.site.html import rewrite_pages

FOLDER = "api"
# The folders of the packages in the order in which one meets them, each with the title of its page.
PAGES = {
    "ranking": "Rankings and metrics",
    "clicks": "Users, policies and click logs",
    "data": "Corpora and scales",
    "evaluation": "Estimates from a log",
    "propensity": "Propensities",
    "logs": "The health of a log",
    "learning": "Learning",
    "reporting": "Figures, claims and runs",
}
INDEX = f"{FOLDER}/index"
NAMES = (INDEX, *(f"{FOLDER}/{folder}" for folder in PAGES))
# What chapters call the packages.
ALIASES = {"cf": "cfltr_core", "book": "cfltr_book"}
CALLED = f"(?:{'|'.join(ALIASES)})"
# What stands in a link already is left alone.
LINK = re.compile(r"(<a\b.*?</a>)", re.DOTALL)
# As the highlighter writes it, and as code within a sentence is written.
NAMES_IN_CODE = (
    re.compile(
        rf'(<span class="n">{CALLED}</span><span class="o">\.</span><span class="n">)((?P<name>\w+))(?=</span>)'
    ),
    re.compile(rf'(<code class="[^"]*"><span class="pre">)({CALLED}\.(?P<name>\w+))'),
)
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

    @property
    def directive(self) -> str:
        """The directive of Sphinx that describes it."""
        return "autoclass" if inspect.isclass(self.value) else "autofunction" if callable(self.value) else "py:data"

    @property
    def doc(self) -> str:
        """Its docstring, or of a value the comment ``#: …`` above it."""
        if callable(self.value):
            return inspect.getdoc(self.value) or ""
        return "\n".join(ModuleAnalyzer.for_module(self.module).find_attr_docs().get(("", self.name), []))

    @property
    def first_paragraph(self) -> str:
        """The first paragraph of :attr:`doc` on one line, with references as code."""
        return first_paragraph(self.doc)


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
    """Return every public name, and every class of the packages that the annotations of one of them name."""
    modules = [importlib.import_module(name) for name in _modules()]
    classes = {
        name: Entry(name, module.__name__, False)
        for module in modules
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    todo = [*public_entries()]
    entries = {entry.name: entry for entry in todo}
    while todo:
        for name in _annotations(todo.pop().value):
            if name in classes and name not in entries:
                entries[name] = classes[name]
                todo.append(classes[name])
    order = {(module.__name__, name): place for module in modules for place, name in enumerate(vars(module))}
    return tuple(sorted(entries.values(), key=lambda entry: (entry.module, order[entry.module, entry.name])))


def _modules() -> list[str]:
    """Return the modules of the folders that have a page, by dotted name."""
    found = (walk_packages(importlib.import_module(name).__path__, f"{name}.") for name in PACKAGES)
    return [module.name for modules in found for module in modules if module.name.split(".")[1] in PAGES]


def _annotations(value: Any) -> set[str]:
    """Return every word in the annotations of a function, or of a class, its bases and its public methods."""
    parts, words = [value], set()
    if inspect.isclass(value):
        parts += [part for name, part in vars(value).items() if not name.startswith("_")]
        words = {base.__name__ for base in value.__mro__[1:]}
    for part in parts:
        function = part.fget if isinstance(part, property) else getattr(part, "__func__", part)
        words.update(re.findall(r"\w+", " ".join(map(str, getattr(function, "__annotations__", {}).values()))))
    return words


def api_pages() -> dict[str, str]:
    """Return the text of every page about the packages."""
    recipes = RECIPES.read_text(encoding="utf-8")
    public = sorted(public_entries(), key=lambda entry: entry.name.lower())
    pages = {INDEX: render("api_index.md.jinja", recipes=recipes, titles=PAGES, entries=public)}
    for folder, title in PAGES.items():
        inside = [entry for entry in entries() if entry.folder == folder]
        package = importlib.import_module(".".join(inside[0].module.split(".")[:2]))
        about = (package.__doc__ or "").strip().partition("\n")[0]
        modules = [(name, list(group)) for name, group in groupby(inside, key=lambda entry: entry.module)]
        pages[f"{FOLDER}/{folder}"] = render(
            "api_folder.md.jinja", folder=folder, title=title, about=about, modules=modules
        )
    return pages


def link_names(html: Path) -> None:
    """Link every ``cf.name`` and ``book.name`` in the code of the pages below ``html``, in place."""
    with (html / "objects.inv").open("rb") as stream:
        inventory = InventoryFile.load(stream, "", lambda _, place: place)
    addresses = {
        name.partition(".")[2]: place
        for kind, names in inventory.items()
        if kind.startswith("py:") and kind != "py:module"
        for name, (_, _, place, _) in names.items()
        if name.partition(".")[0] in ALIASES.values()
    }

    def change(page: str, path: Path) -> str:
        folder = path.parent.as_posix()
        return linked(page, {name: posixpath.relpath(place, folder) for name, place in addresses.items()})

    rewrite_pages(html, change)


def linked(page: str, places: dict[str, str]) -> str:
    """Return the HTML of ``page`` with a link around every name of the packages that has a place."""

    def link(match: re.Match[str]) -> str:
        place = places.get(match["name"])
        return match[0] if place is None else f'{match[1]}<a class="api-name" href="{place}">{match[2]}</a>'

    parts = LINK.split(page)
    for names in NAMES_IN_CODE:
        parts[::2] = [names.sub(link, part) for part in parts[::2]]
    return "".join(parts)
