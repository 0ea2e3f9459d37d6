"""Where every claim of the book stands after a run: what was measured, what it is called, and where it is shown."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from book_tools.book import Book, Chapter
from book_tools.execution.artefacts import measured_claims
from book_tools.execution.execute import NOTEBOOK
from book_tools.notebooks import MARK, read_notebook

if TYPE_CHECKING:
    from cfltr_book.reporting.claim_registry import Claim
    from cfltr_book.reporting.claims import Measurement

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Standing:
    """One claim with what a run found; ``figure`` is the last one shown before it under the same heading."""

    spec: Claim
    chapter: Chapter
    measurement: Measurement | None
    is_shown: bool = False
    figure: str | None = None

    @property
    def verdict(self) -> str:
        """The measured verdict, or *not measured*."""
        return self.measurement.result.verdict if self.measurement else NOT_MEASURED

    @property
    def outcome(self) -> str:
        """The verdict in words, as :func:`cfltr_book.reporting.wording.outcome` says it for its interval."""
        from cfltr_book.reporting.wording import outcome

        interval = self.measurement.result.interval if self.measurement else None
        return outcome(self.spec, self.verdict, interval=interval)

    @property
    def source(self) -> str:
        """The code of its source, *B* for the book's own, or *control*."""
        from cfltr_book.reporting.wording import source_of

        return source_of(self.spec.id)

    @property
    def group(self) -> tuple[str, str]:
        """*published*, *own* or *control*, and the nature: what is counted together."""
        from cfltr_book.reporting.wording import CONTROL, is_published

        role = "published" if is_published(self.spec.id) else CONTROL if self.source == CONTROL else "own"
        return role, "" if role == CONTROL else self.spec.nature

    def predicted_as_measured(self, corpus: str) -> bool:
        """True where the verdict is the one that was predicted."""
        return self.verdict == self.spec.prediction(corpus)


def standings(book: Book) -> list[Standing]:
    """Return every claim that the chapters of ``book`` are to measure, in their order and in that of the registry."""
    from cfltr_book.reporting.claim_registry import registry

    chapters = book.chapters()
    found = measured_claims(book, chapters)
    out = []
    for chapter in chapters:
        shown = shown_claims(book, chapter)
        for spec in registry().values():
            if spec.chapter == chapter.number:
                measurement = found[spec.id][1] if spec.id in found else None
                out.append(Standing(spec, chapter, measurement, spec.id in shown, shown.get(spec.id)))
    return out


def shown_claims(book: Book, chapter: Chapter) -> dict[str, str | None]:
    """Return the claims that the executed chapter shows, each with the last figure before it under the same heading."""
    path = book.folder_of(chapter) / NOTEBOOK
    if not path.is_file():
        return {}
    shown: dict[str, str | None] = {}
    figure = None
    for cell in read_notebook(path).cells:
        if cell.cell_type == "markdown" and any(line.startswith("#") for line in cell.source.splitlines()):
            figure = None
        for output in cell.get("outputs", []):
            about = output.get("metadata", {}).get(MARK, {})
            figure = about.get("figure", figure)
            for name in [about["claim"]] if "claim" in about else about.get("evidence", []):
                shown.setdefault(name, figure)
    return shown


def tally(found: Iterable[Standing]) -> dict[tuple[str, str], Counter[str]]:
    """Return how many claims of each group have which outcome."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for standing in found:
        counts.setdefault(standing.group, Counter())[standing.outcome] += 1
    return counts


def listed(counts: Counter[str], outcomes: tuple[str, ...]) -> str:
    """Say how many there are of each outcome, and how many have none of them, as in *3 true, 1 false*."""
    parts = [f"**{counts[name]} {name}**" for name in outcomes if counts[name]]
    rest = counts.total() - sum(counts[name] for name in outcomes)
    return ", ".join([*parts, f"**{rest} without a verdict**"] if rest else parts) or "none"


def numbers_of(measurement: Measurement) -> str:
    """Return the numbers that a verdict rests on as CSV: one line per value, with its place in the arrays."""
    named = {name: np.asarray(values, dtype=np.float64) for name, values in measurement.arrays.items()}
    units = named.pop("units", None)
    shape = np.broadcast_shapes(*(values.shape for values in named.values()))
    columns = {name: np.broadcast_to(values, shape) for name, values in named.items()}
    places = ["row", "column", "layer"][: len(shape)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*places, *([] if units is None else ["unit"]), *columns])
    for index in np.ndindex(shape):
        unit = [] if units is None else [f"{units[index[0]]:.12g}"]
        writer.writerow([*index, *unit, *(f"{values[index]:.12g}" for values in columns.values())])
    return text.getvalue()
