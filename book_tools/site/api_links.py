"""Lead from a public name of the packages, wherever code on a page names it, to its description."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from sphinx.util.inventory import InventoryFile

from book_tools.site.html import rewrite_pages

# What chapters call the packages.
ALIASES = {"cf": "cfltr_core", "book": "cfltr_book"}
NAMES = f"(?:{'|'.join(ALIASES)})"
# What stands in a link already is left alone.
LINK = re.compile(r"(<a\b.*?</a>)", re.DOTALL)
# As the highlighter writes it, and as code within a sentence is written.
NAMED = re.compile(rf'(<span class="n">{NAMES}</span><span class="o">\.</span><span class="n">)(\w+)(</span>)')
QUOTED = re.compile(rf'(<code class="[^"]*"><span class="pre">)({NAMES}\.(\w+))')


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

    def link(text: str, place: str) -> str:
        return f'<a class="api-name" href="{place}">{text}</a>'

    def named(match: re.Match[str]) -> str:
        place = places.get(match[2])
        return match[0] if place is None else f"{match[1]}{link(match[2], place)}{match[3]}"

    def quoted(match: re.Match[str]) -> str:
        place = places.get(match[3])
        return match[0] if place is None else f"{match[1]}{link(match[2], place)}"

    parts = LINK.split(page)
    return "".join(
        part if index % 2 else QUOTED.sub(quoted, NAMED.sub(named, part)) for index, part in enumerate(parts)
    )
