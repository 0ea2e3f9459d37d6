"""What a chapter leaves beside its notebook: figures, claims and recorded numbers.

The writing side is ``cfltr_book.reporting``; this is the reading side, and the place where the form of the files is
checked.  The package is imported where a claim is read and not before: it brings NumPy along, and a command that needs
no claim should answer at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from book_tools.book import Book, Chapter
from book_tools.errors import Problems

if TYPE_CHECKING:
    from cfltr_book.reporting.claims import Measurement

SHORTEST_ALT = 20

T = TypeVar("T")


@dataclass(frozen=True)
class Frame:
    """What a figure shows when its knob rests at one value: ``text`` is the value as it is written."""

    text: str
    fact: str
    alt: str
    image: Path


@dataclass(frozen=True)
class Slider:
    """A knob with its frames; that of ``start`` is the figure where nothing moves."""

    knob: str
    start: int
    frames: tuple[Frame, ...]


@dataclass(frozen=True)
class Figure:
    """A figure with everything that a page needs to show it."""

    id: str
    caption: str
    alt: str
    image: Path
    data: Path
    slider: Slider | None = None

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
    from cfltr_book.reporting.claims import Measurement

    return _read_all(folder / "claims", "id", lambda content, _: Measurement.from_record(content))


def records_in(folder: Path) -> list[Record]:
    """Return the recorded numbers and phrases of an executed chapter, by name."""
    return _read_all(folder / "records", "name", _record)


def measured_claims(book: Book, chapters: list[Chapter]) -> dict[str, tuple[Chapter, Measurement]]:
    """Return every claim that the chapters measured, by id, with the chapter."""
    return collect(book, chapters, claims_in, lambda measurement: measurement.result.id)


def check_artefacts(chapter: Chapter, folder: Path) -> None:
    """Raise one error that lists everything wrong with the artefacts a chapter just wrote."""
    from cfltr_book.reporting.claim_registry import registry

    problems = Problems()
    for read in (figures_in, records_in, claims_in):
        with problems.collected(f"{chapter.source.name}: "):
            read(folder)
    problems.raise_any()
    Problems(
        f"{chapter.source.name}: claim {claim.result.id} belongs to chapter {registry()[claim.result.id].chapter}; "
        "move it, or correct its chapter in the registry"
        for claim in claims_in(folder)
        if claim.result.id in registry() and registry()[claim.result.id].chapter != chapter.number
    ).raise_any()


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
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                if content[key] != path.stem:
                    raise ValueError(f"its {key} is {content[key]!r}, expected the file's name")
                found.append(parse(content, folder))
            except KeyError as error:
                raise ValueError(f"has no {error.args[0]!r}") from None
            except TypeError as error:
                raise ValueError(str(error)) from None
    problems.raise_any()
    return found


def _figure(content: dict[str, Any], folder: Path) -> Figure:
    figure = Figure(
        id=content["id"],
        caption=str(content["caption"]).strip(),
        alt=" ".join(str(content["alt"]).split()),
        image=folder / content["image"],
        data=folder / content["data"],
        slider=_slider(content["slider"], folder) if "slider" in content else None,
    )
    if not figure.caption:
        raise ValueError("its caption is empty")
    if len(figure.alt) < SHORTEST_ALT:
        raise ValueError(
            f"its alt text is {figure.alt!r}; say in at least {SHORTEST_ALT} characters what the figure shows"
        )
    frames = figure.slider.frames if figure.slider else ()
    for file in (figure.image, figure.data, *(frame.image for frame in frames)):
        if not file.is_file():
            raise ValueError(f"{file.name} is not beside it")
    return figure


def _slider(content: dict[str, Any], folder: Path) -> Slider:
    frames = tuple(
        Frame(str(frame["text"]), str(frame["fact"]), " ".join(str(frame["alt"]).split()), folder / frame["image"])
        for frame in content["frames"]
    )
    start = int(content["start"])
    if not 0 <= start < len(frames):
        raise ValueError(f"its slider starts at frame {start} of {len(frames)}")
    for frame in frames:
        if len(frame.alt) < SHORTEST_ALT or not frame.fact.strip():
            raise ValueError(f"its slider says too little at {content['knob']} = {frame.text}")
    return Slider(str(content["knob"]), start, frames)


def _record(content: dict[str, Any], folder: Path) -> Record:
    name, value, kind = content["name"], content["value"], content.get("kind", "number")
    fits = isinstance(value, str) if kind == "phrase" else value is None or isinstance(value, int | float)
    if kind not in ("number", "phrase") or not fits:
        raise ValueError(f"it is kept as a {kind} with the value {value!r}; record(…) keeps a number or a phrase")
    return Record(name=name, value=value, text=str(content["text"]))
