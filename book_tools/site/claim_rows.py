"""The claims of the book after a run, one row each: what was predicted, what was measured, and where it is shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from book_tools.book import Book, Chapter
from book_tools.execution.artefacts import measured_claims
from book_tools.execution.execute import NOTEBOOK
from book_tools.notebooks import mark_on, read_notebook
from book_tools.parameters import Parameters
from cfltr_book.reporting import claim_registry, wording
from cfltr_book.reporting.claim_registry import EXACT, NO_PREDICTION, SCALE_ORDER, Claim
from cfltr_book.reporting.claims import Measurement

NOT_MEASURED = "not measured"
# The outcomes of the three natures, in the order in which they are listed.
MATHEMATICAL = ("true", "false", "undecided")
EMPIRICAL = ("seen", "smaller than asked", "not seen", "opposite seen", "undecided")
CONTROLS = ("held", "did not hold", "undecided")


@dataclass(frozen=True)
class ClaimRow:
    """One claim with what a run found; ``figure`` is the last one shown before it under the same heading.

    A withdrawn claim has no measurement; its verdict is what it had measured.
    """

    spec: Claim
    parameters: Parameters
    chapter: Chapter | None = None
    measurement: Measurement | None = None
    is_shown: bool = False
    figure: str | None = None

    @property
    def recorded(self) -> str:
        """The verdict on record for this run."""
        return self.spec.recorded(self.parameters.scale, self.parameters.corpus)

    @property
    def verdict(self) -> str:
        """The measured verdict, or *not measured*."""
        if self.spec.withdrawn is not None:
            return self.recorded
        return self.measurement.result.verdict if self.measurement else NOT_MEASURED

    @property
    def outcome(self) -> str:
        """The verdict in words, as :func:`cfltr_book.reporting.wording.outcome` says it for its interval."""
        return self.called(self.verdict, self.measurement.result.interval if self.measurement else None)

    def called(self, verdict: str, interval: tuple[float, float] | None = None) -> str:
        """Return a verdict on this claim in words."""
        return wording.outcome(self.spec, verdict, interval=interval)

    @property
    def source(self) -> str:
        """The code of its source, *B* for the book's own, or *control*."""
        return wording.source_of(self.spec.id)

    @property
    def group(self) -> tuple[str, str]:
        """*published*, *own* or *control*, and the nature: what is counted together."""
        if self.source == wording.CONTROL:
            return wording.CONTROL, ""
        return "published" if wording.is_published(self.spec.id) else "own", self.spec.nature

    @property
    def prediction(self) -> str | None:
        """The predicted verdict, or None where none was predicted before a measurement."""
        predicted = self.spec.prediction(self.parameters.corpus)
        return None if predicted == NO_PREDICTION else predicted

    @property
    def is_as_predicted(self) -> bool:
        """True where the verdict is the one that was predicted."""
        return self.verdict == self.prediction

    @property
    def gates(self) -> bool:
        """True where this run must meet the verdict on record."""
        return self.spec.gates(self.parameters.scale, self.parameters.corpus)

    @property
    def is_changed(self) -> bool:
        """True for another verdict than the one on record."""
        return self.verdict != self.recorded

    @property
    def is_news(self) -> bool:
        """True for a verdict that is due and sharper than the one on record, *inconclusive*: no failure."""
        return self.gates and self.spec.is_news(self.verdict, self.parameters.scale, self.parameters.corpus)

    @property
    def beside_record(self) -> str:
        """Both verdicts in words: *undecided, on record: seen*."""
        reason = self.measurement.result.reason if self.measurement else ""
        return f"{self.outcome}{f' ({reason})' if reason else ''}, on record: {self.called(self.recorded)}"

    @property
    def size(self) -> str:
        """The margin or the tolerance, in words."""
        exact = self.spec.kind in EXACT
        return f"a tolerance of {self.spec.tolerance:g}" if exact else f"a margin of {self.spec.margin:g}"

    @property
    def effect(self) -> str:
        """What was measured, in parentheses, as :attr:`cfltr_book.reporting.claims.ClaimResult.measured` says it."""
        return f" ({self.measurement.result.measured})" if self.measurement else ""

    @property
    def elsewhere(self) -> dict[str, str]:
        """What is on record for other corpora, in words, at the largest scale of each."""
        rows = sorted(self.spec.accepted, key=lambda one: SCALE_ORDER.index(one.scale))
        found = {
            one.corpus: self.called(one.verdict, None if one.low is None or one.high is None else (one.low, one.high))
            for one in rows
        }
        here = self.parameters.corpus
        family = "letor" if here.startswith("letor:") else here
        return {corpus: words for corpus, words in found.items() if corpus != family}


def claim_rows(book: Book, parameters: Parameters) -> list[ClaimRow]:
    """Return every claim that the chapters of ``book`` are to measure, in their order and in that of the registry."""
    chapters = book.chapters()
    measured = measured_claims(book, chapters)
    rows = []
    for chapter in chapters:
        figures = shown_claims(book, chapter)
        for spec in claim_registry.registry().values():
            if spec.chapter == chapter.number:
                measurement = measured[spec.id][1] if spec.id in measured else None
                rows.append(ClaimRow(spec, parameters, chapter, measurement, spec.id in figures, figures.get(spec.id)))
    return rows


def shown_claims(book: Book, chapter: Chapter) -> dict[str, str | None]:
    """Return the claims that the executed chapter shows, each with the last figure before it under the same heading."""
    path = book.folder_of(chapter) / NOTEBOOK
    shown: dict[str, str | None] = {}
    figure = None
    for cell in read_notebook(path).cells if path.is_file() else ():
        if cell.cell_type == "markdown" and any(line.startswith("#") for line in cell.source.splitlines()):
            figure = None
        for output in cell.get("outputs", []):
            about = mark_on(output)
            figure = about.get("figure", figure)
            for name in [about["claim"]] if "claim" in about else about.get("evidence", []):
                shown.setdefault(name, figure)
    return shown


def tally(rows: Iterable[ClaimRow]) -> Mapping[tuple[str, str], Counter[str]]:
    """Return how many claims of each group have which outcome."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        counts.setdefault(row.group, Counter())[row.outcome] += 1
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
    places = dict(
        zip(["row", "column", "layer"], np.indices(shape).reshape(len(shape), math.prod(shape)), strict=False)
    )
    columns = {name: np.broadcast_to(values, shape).ravel() for name, values in named.items()}
    unit = {} if units is None else {"unit": units[places["row"]]}
    return str(pd.DataFrame({**places, **unit, **columns}).to_csv(index=False, float_format="%.12g", na_rep="nan"))
