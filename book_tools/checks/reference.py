"""Committed numbers of the default run, and the comparison of a run with them.

Numbers, not pixels: a figure's data decides what it shows, and last digits differ between machines.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from book_tools.book import Book, Chapter
from book_tools.errors import BookError
from book_tools.execution.artefacts import claims_in, collect, figures_in, records_in
from book_tools.files import json_text, read_json
from book_tools.parameters import Parameters
from book_tools.site.front import keep_picture
from cfltr_core.files import write_whole

RECORDS = "records.json"
HINT = "; add it with 'make accept' after looking at it"


# What chapters found, by kind ("figure", "record" or "claim") and name: the file with the data of a figure, a recorded
# number or phrase, a verdict.
Results = dict[tuple[str, str], Any]


@dataclass(frozen=True)
class Tolerance:
    """Two numbers agree when they differ by at most ``atol + rtol · |reference|``."""

    rtol: float = 1e-6
    atol: float = 1e-9

    def agree(self, value: float, reference: float) -> bool:
        """Tell whether ``value`` meets ``reference``; NaN meets NaN, and an infinity only itself."""
        return bool(np.isclose(value, reference, rtol=self.rtol, atol=self.atol, equal_nan=True))


# The tolerances of figures and records that need another one than the default, by kind and name; and the default.
Tolerances = Mapping[tuple[str, str], Tolerance]
DEFAULT = ("default", "")


def read_tolerances(path: Path) -> Tolerances:
    """Return the tolerances of ``path``; an exception from the default must give its reason."""
    content = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.is_file() else {}
    default = _tolerance("default", content.get("default", {}), Tolerance())
    special = {
        (kind, name): _tolerance(f"{kind}s.{name}", entry, default)
        for kind in ("figure", "record")
        for name, entry in (content.get(f"{kind}s") or {}).items()
    }
    return {DEFAULT: default, **special}


def _tolerance(place: str, entry: dict[str, Any], base: Tolerance) -> Tolerance:
    unknown = entry.keys() - {"rtol", "atol", "reason"}
    if unknown:
        raise BookError(f"tolerances: {place} has {', '.join(sorted(unknown))}; use rtol, atol, reason")
    if place != "default" and not str(entry.get("reason", "")).strip():
        raise BookError(f"tolerances: {place} has no reason; say why its numbers may differ more")
    return Tolerance(float(entry.get("rtol", base.rtol)), float(entry.get("atol", base.atol)))


def results_in(folder: Path) -> Results:
    """Return what one executed chapter found."""
    return {
        **{("figure", figure.id): figure.data for figure in figures_in(folder)},
        **{("record", record.name): record.value for record in records_in(folder)},
        **{("claim", claim.result.id): claim.result.verdict for claim in claims_in(folder)},
    }


def numbers_of(book: Book, chapters: list[Chapter]) -> Results:
    """Return the figures and records of several chapters; a name that two of them use is an error."""
    found = collect(book, chapters, lambda folder: list(results_in(folder).items()), lambda item: " ".join(item[0]))
    return {key: value for _, (key, value) in found.values() if key[0] != "claim"}


def has_reference(book: Book, parameters: Parameters) -> bool:
    """Tell whether committed numbers exist for this run: default corpus and seed, and a known scale."""
    return parameters == Parameters(scale=parameters.scale) and book.reference(parameters.scale).is_dir()


def reference_problems(book: Book, parameters: Parameters, numbers: Results, whole: bool = True) -> list[str]:
    """Return every difference between the numbers of a run and the committed ones.

    Where they are not those of the ``whole`` book, committed numbers that the run lacks may belong to another chapter.
    """
    folder = book.reference(parameters.scale)
    committed: Results = {("figure", table.stem): table for table in folder.glob("*.csv")}
    committed |= {("record", name): value for name, value in read_json(folder / RECORDS).items()}
    if not whole:
        committed = {key: value for key, value in committed.items() if key in numbers}
    return differences(numbers, committed, read_tolerances(book.tolerances), "the reference", HINT)


def differences(found: Results, expected: Results, tolerances: Tolerances, of: str, hint: str = "") -> list[str]:
    """Return how the results that were ``found`` differ from those that are ``expected``, which are called ``of``.

    ``hint`` stands behind each result of which nothing was expected.
    """
    problems = []
    for key in sorted(found.keys() | expected.keys()):
        if key not in expected:
            differing = [f"{of} has none{hint}"]
        elif key not in found:
            differing = [f"only {of} has it"]
        else:
            tolerance = tolerances.get(key, tolerances[DEFAULT])
            differing = _compare(found[key], expected[key], tolerance, of)
        problems += [f"{' '.join(key)}: {difference}" for difference in differing]
    return problems


def _compare(value: Any, expected: Any, tolerance: Tolerance, of: str) -> list[str]:
    if isinstance(value, Path):
        return compare_csv(value, expected, tolerance, of)
    return [] if same_record(value, expected, tolerance) else [f"{value}, {of} has {expected}"]


def compare_csv(path: Path, reference: Path, tolerance: Tolerance, of: str = "the reference") -> list[str]:
    """Compare two tables: columns, row counts and texts exactly, numbers within ``tolerance``."""
    rows, expected = (list(csv.reader(StringIO(file.read_text(encoding="utf-8")))) for file in (path, reference))
    if not rows or not expected or rows[0] != expected[0]:
        return [f"columns are {rows[:1]}, {of} has {expected[:1]}"]
    if len(rows) != len(expected):
        return [f"{len(rows) - 1} rows, {of} has {len(expected) - 1}"]
    for line, (row, wanted) in enumerate(zip(rows[1:], expected[1:], strict=True), start=1):
        if len(row) != len(wanted):
            return [f"row {line}: {len(row)} cells, {of} has {len(wanted)}"]
        for column, value, other in zip(rows[0], row, wanted, strict=False):
            if not same(value, other, tolerance):
                return [f"row {line}, {column}: {value}, {of} has {other}"]
    return []


def same(value: Any, reference: Any, tolerance: Tolerance) -> bool:
    """Tell whether two entries are equal, as texts or as numbers within ``tolerance``."""
    if value == reference:
        return True
    try:
        return tolerance.agree(float(value), float(reference))
    except (TypeError, ValueError):
        return False


def same_record(value: Any, reference: Any, tolerance: Tolerance) -> bool:
    """Compare numbers within ``tolerance``; phrases are equal or not, also those that read like a number."""
    if isinstance(value, str) or isinstance(reference, str):
        return bool(value == reference)
    return same(value, reference, tolerance)


def update_reference(book: Book, parameters: Parameters, chapters: list[Chapter], whole: bool = True) -> None:
    """Make the numbers of a run with the default corpus and seed the committed ones.

    Where it is not that of the ``whole`` book, committed numbers that these chapters lack may belong to another: they
    stay.
    """
    folder = book.reference(parameters.scale)
    # Before anything is removed: a name that two chapters use stops here.
    numbers = numbers_of(book, chapters)
    tables = {name: path for (kind, name), path in numbers.items() if kind == "figure"}
    records = {name: value for (kind, name), value in numbers.items() if kind == "record"}
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.csv") if whole else ():
        path.unlink()
    for name, table in tables.items():
        shutil.copyfile(table, folder / f"{name}.csv")
    write_whole(folder / RECORDS, json_text(records if whole else read_json(folder / RECORDS) | records))
    if parameters == Parameters():
        keep_picture(book, chapters)
    print(f"reference: {len(tables)} figures in {folder.relative_to(book.root)}", flush=True)
