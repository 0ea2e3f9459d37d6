"""What a chapter leaves beside its notebook: figures, claims and recorded numbers.

The writing side is ``cfltr_core.figures`` and ``cfltr_core.claims``; this is the reading side, and the place
where the form of the files is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from book_tools.book import Book, Chapter
from book_tools.errors import BookError

VERDICTS = ("supported", "contradicted", "inconclusive")
SHORTEST_ALT = 20

T = TypeVar("T")


@dataclass(frozen=True)
class Figure:
    """A figure with everything that a page needs to show it."""

    id: str
    caption: str
    alt: str
    image: Path
    data: Path


@dataclass(frozen=True)
class Claim:
    """What a chapter measured about one published claim."""

    id: str
    kind: str
    chapter: str
    verdict: str
    gated: bool
    effect: float
    # An end is None where it is infinite, which JSON cannot say: one seed gives no bounded interval.
    interval: tuple[float | None, float | None] | None
    level: float | None
    threshold: float
    arrays: dict[str, Any]
    seeds: int
    corpus: str


@dataclass(frozen=True)
class Record:
    """A number that the prose quotes."""

    name: str
    value: Any
    text: str


def figures_in(folder: Path) -> list[Figure]:
    """Return the figures of an executed chapter, by id."""
    return _read_all(folder / "figures", "id", _figure)


def claims_in(folder: Path) -> list[Claim]:
    """Return the claims of an executed chapter, by id."""
    return _read_all(folder / "claims", "id", _claim)


def records_in(folder: Path) -> list[Record]:
    """Return the recorded numbers of an executed chapter, by name."""
    return _read_all(folder / "records", "name", _record)


def check_artefacts(chapter: Chapter, folder: Path) -> None:
    """Raise one error that lists everything wrong with the artefacts a chapter just wrote."""
    problems: list[str] = []
    for read in (figures_in, claims_in, records_in):
        try:
            found = read(folder)
        except BookError as error:
            problems.extend(f"{chapter.source.name}: {problem}" for problem in error.problems)
            continue
        problems += [
            f"{chapter.source.name}: claim {claim.id} says that it belongs to chapter {claim.chapter}; "
            "move it, or correct its chapter in the registry"
            for claim in found
            if isinstance(claim, Claim) and claim.chapter != chapter.number
        ]
    if problems:
        raise BookError(*problems)


def collect(
    book: Book, chapters: list[Chapter], read: Callable[[Path], list[T]], key: str
) -> dict[str, tuple[Chapter, T]]:
    """Return the artefacts of all chapters by ``key``; the same key in two chapters is an error."""
    collected: dict[str, tuple[Chapter, T]] = {}
    problems = []
    for chapter in chapters:
        for item in read(book.folder_of(chapter)):
            name = str(getattr(item, key))
            if name in collected:
                problems.append(f"{name}: written by both {collected[name][0].name} and {chapter.name}; rename one")
            collected[name] = (chapter, item)
    if problems:
        raise BookError(*problems)
    return collected


def _read_all(folder: Path, key: str, parse: Callable[[dict[str, Any], Path], T]) -> list[T]:
    found, problems = [], []
    for path in sorted(folder.glob("*.json")):
        label = f"{folder.name}/{path.name}"
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content[key] != path.stem:
                raise ValueError(f"its {key} is {content[key]!r}, expected the file's name")
            found.append(parse(content, folder))
        except KeyError as error:
            problems.append(f"{label}: has no {error.args[0]!r}")
        except (ValueError, TypeError) as error:
            problems.append(f"{label}: {error}")
    if problems:
        raise BookError(*problems)
    return found


def _figure(content: dict[str, Any], folder: Path) -> Figure:
    figure = Figure(
        id=content["id"],
        caption=str(content["caption"]).strip(),
        alt=" ".join(str(content["alt"]).split()),
        image=folder / content["image"],
        data=folder / content["data"],
    )
    if not figure.caption:
        raise ValueError("its caption is empty")
    if len(figure.alt) < SHORTEST_ALT:
        raise ValueError(
            f"its alt text is {figure.alt!r}; say in at least {SHORTEST_ALT} characters what the figure shows"
        )
    for file in _missing((figure.image, figure.data)):
        raise ValueError(f"{file.name} is not beside it")
    return figure


def _missing(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if not file.is_file()]


def _claim(content: dict[str, Any], folder: Path) -> Claim:
    interval = content["interval"]
    claim = Claim(
        id=content["id"],
        kind=content["kind"],
        chapter=str(content["chapter"]),
        verdict=content["verdict"],
        gated=bool(content["gated"]),
        effect=float(content["effect"]),
        interval=None if interval is None else (interval[0], interval[1]),
        level=content["level"],
        threshold=float(content["threshold"]),
        arrays=dict(content["arrays"]),
        seeds=int(content["seeds"]),
        corpus=content["corpus"],
    )
    if claim.verdict not in VERDICTS:
        raise ValueError(f"its verdict is {claim.verdict!r}, expected one of {', '.join(VERDICTS)}")
    return claim


def _record(content: dict[str, Any], folder: Path) -> Record:
    return Record(name=content["name"], value=content["value"], text=str(content["text"]))
