"""What a chapter leaves beside its notebook: figures, claims and recorded numbers.

The writing side is ``cfltr_book.reporting``, which checks what it is given; this is the reading side.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from book_tools.book import Book, Chapter
from book_tools.errors import Problems
from cfltr_book.reporting.claims import Measurement

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """A figure with everything that a page needs to show it.

    ``slider`` is as the package keeps it: knob, start, and frames with their text, fact, alt and image.
    """

    id: str
    caption: str
    alt: str
    image: Path
    data: Path
    slider: dict[str, Any] | None = None

    @property
    def card(self) -> Path:
        """The picture for the card of a page, which may be missing."""
        return self.image.with_name(f"{self.id}.card.png")

    @property
    def row(self) -> Path:
        """The picture for a wide page, its panels side by side; missing where there are not two."""
        return self.image.with_name(f"{self.id}.row{self.image.suffix}")


@dataclass(frozen=True)
class Record:
    """A number or a phrase that the prose quotes."""

    name: str
    # None where the computed number was not finite; of a phrase its words.
    value: float | str | None
    text: str


def figures_in(folder: Path) -> list[Figure]:
    """Return the figures of an executed chapter, by id."""
    return _read_all(folder / "figures", "id", _figure)


def claims_in(folder: Path) -> list[Measurement]:
    """Return what an executed chapter measured for its claims, by id."""
    return _read_all(folder / "claims", "id", lambda content, _: Measurement.from_record(content))


def records_in(folder: Path) -> list[Record]:
    """Return the recorded numbers and phrases of an executed chapter, by name."""
    return _read_all(folder / "records", "name", lambda about, _: Record(about["name"], about["value"], about["text"]))


def measured_claims(book: Book, chapters: list[Chapter]) -> dict[str, tuple[Chapter, Measurement]]:
    """Return every claim that the chapters measured, by id, with the chapter."""
    return collect(book, chapters, claims_in, lambda measurement: measurement.result.id)


def check_artefacts(chapter: Chapter, folder: Path) -> None:
    """Raise one error that lists everything wrong with the artefacts a chapter just wrote."""
    problems = Problems()
    for read in (figures_in, records_in, claims_in):
        with problems.collected(f"{chapter.source.name}: "):
            read(folder)
    problems.raise_any()


def collect(
    book: Book, chapters: list[Chapter], read: Callable[[Path], list[T]], name_of: Callable[[T], str]
) -> dict[str, tuple[Chapter, T]]:
    """Return the artefacts of all chapters by name; the same name in two chapters is an error."""
    collected: dict[str, tuple[Chapter, T]] = {}
    problems = Problems()
    for chapter in chapters:
        for item in read(book.folder_of(chapter)):
            name = name_of(item)
            if name in collected:
                problems.append(f"{name}: written by both {collected[name][0].name} and {chapter.name}; rename one")
            collected[name] = (chapter, item)
    problems.raise_any()
    return collected


def _read_all(folder: Path, key: str, parse: Callable[[dict[str, Any], Path], T]) -> list[T]:
    found, problems = [], Problems()
    for path in sorted(folder.glob("*.json")):
        with problems.collected(f"{folder.name}/{path.name}: ", ValueError):
            content = json.loads(path.read_text(encoding="utf-8"))
            try:
                if content[key] != path.stem:
                    raise ValueError(f"its {key} is {content[key]!r}, expected the file's name")
                found.append(parse(content, folder))
            except KeyError as error:
                raise ValueError(f"has no {error.args[0]!r}") from None
    problems.raise_any()
    return found


def _figure(content: dict[str, Any], folder: Path) -> Figure:
    return Figure(
        id=content["id"],
        caption=content["caption"].strip(),
        alt=" ".join(content["alt"].split()),
        image=folder / content["image"],
        data=folder / content["data"],
        slider=content.get("slider"),
    )
