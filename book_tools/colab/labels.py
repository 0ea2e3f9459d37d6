"""What the built site calls its theorems, equations, figures and pages, and where they stand.

Read from the pages themselves, so that a copy of a chapter gives everything the very number of the site.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from sphinx.util.inventory import InventoryFile

from book_tools.messages import PARSER

EQUATION = "equation-"
NUMBERED = "div.proof[id], div.exercise[id], figure[id]"


@dataclass(frozen=True)
class Target:
    """A place on the site, and the words by which the site refers to it."""

    place: str
    text: str


@dataclass(frozen=True)
class Labels:
    """The places of a site by kind; citations are listed by page, in the order in which they stand there."""

    numbered: dict[str, Target] = field(default_factory=dict)
    equations: dict[str, Target] = field(default_factory=dict)
    terms: dict[str, Target] = field(default_factory=dict)
    sections: dict[str, Target] = field(default_factory=dict)
    pages: dict[str, Target] = field(default_factory=dict)
    citations: dict[str, list[list[Target]]] = field(default_factory=dict)


def read_labels(site: Path) -> Labels:
    """Return the labels of the built site."""
    labels = Labels()
    with (site / "objects.inv").open("rb") as stream:
        inventory = InventoryFile.load(stream, "", lambda _, place: place)
    for kind, into in (("std:term", labels.terms), ("std:label", labels.sections), ("std:doc", labels.pages)):
        for name, (_, _, place, text) in inventory.get(kind, {}).items():
            into[name] = Target(place, name if text == "-" else text)
    for page in labels.pages:
        path = site / f"{page}.html"
        if path.is_file():
            _read_page(labels, page, BeautifulSoup(path.read_text(encoding="utf-8"), PARSER))
    return labels


def _read_page(labels: Labels, page: str, content: BeautifulSoup) -> None:
    for tag in content.select(NUMBERED):
        if number := tag.select_one(".caption-number"):
            labels.numbered[str(tag["id"])] = Target(f"{page}.html#{tag['id']}", _words(number))
    for tag in content.select(f"div.math[id^={EQUATION}]"):
        if number := tag.select_one(".eqno"):
            text = _words(number)
            target = Target(f"{page}.html#{tag['id']}", text[: text.index(")") + 1])
            labels.equations[str(tag["id"]).removeprefix(EQUATION)] = target
    labels.citations[page] = [
        _citation(tag, page) for tag in content.select(".bibtex-citation") if not tag.find_parent("figcaption")
    ]


def _citation(tag: Tag, page: str) -> list[Target]:
    """Return the pieces of a citation: text, and where it leads, empty for text that leads nowhere."""
    folder = page.rpartition("/")[0]
    pieces = []
    for part in tag.children:
        text, name = part.get_text(), part.name if isinstance(part, Tag) else ""
        place = f"{folder}/{part.get('href') or ''}".lstrip("/") if isinstance(part, Tag) and name == "a" else ""
        pieces.append(Target(place, f"*{text}*" if name == "em" else text))
    return pieces


def _words(tag: Tag) -> str:
    return " ".join(tag.get_text().split())
