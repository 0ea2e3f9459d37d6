"""Committed numbers of the default run, and the comparison of a run with them.

Numbers, not pixels: a figure's data decides what it shows, and last digits differ between machines.
"""

from __future__ import annotations

import csv
import json
import math
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from book_tools.book import Book, Chapter
from book_tools.errors import BookError
from book_tools.execution.artefacts import collect, figures_in, records_in
from book_tools.files import json_text
from book_tools.parameters import Parameters
from book_tools.site.front import keep_picture
from cfltr_core.files import write_whole

RECORDS = "records.json"


@dataclass(frozen=True)
class Tolerance:
    """Two numbers agree when they differ by at most ``atol + rtol · |reference|``."""

    rtol: float = 1e-6
    atol: float = 1e-9

    def agree(self, value: float, reference: float) -> bool:
        """Tell whether ``value`` meets ``reference``; NaN meets NaN, and an infinity only itself."""
        if math.isnan(reference) or math.isnan(value):
            return math.isnan(reference) and math.isnan(value)
        if math.isinf(reference) or math.isinf(value):
            return value == reference
        return abs(value - reference) <= self.atol + self.rtol * abs(reference)


@dataclass(frozen=True)
class Tolerances:
    """The default tolerance, and the figures and records that need another one."""

    default: Tolerance = Tolerance()
    figures: dict[str, Tolerance] = field(default_factory=dict)
    records: dict[str, Tolerance] = field(default_factory=dict)


def read_tolerances(path: Path) -> Tolerances:
    """Return the tolerances of ``path``; an exception from the default must give its reason."""
    if not path.is_file():
        return Tolerances()
    content = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    default = _tolerance(content.get("default", {}), Tolerance(), "default")
    problems = [
        f"{path.name}: {section}.{name} has no reason; say why its numbers may differ more"
        for section in ("figures", "records")
        for name, entry in (content.get(section) or {}).items()
        if not str(entry.get("reason", "")).strip()
    ]
    if problems:
        raise BookError(*problems)
    figures, records = (
        {name: _tolerance(entry, default, f"{section}.{name}") for name, entry in (content.get(section) or {}).items()}
        for section in ("figures", "records")
    )
    return Tolerances(default, figures, records)


def _tolerance(entry: dict[str, Any], base: Tolerance, place: str) -> Tolerance:
    unknown = entry.keys() - {"rtol", "atol", "reason"}
    if unknown:
        raise BookError(f"tolerances: {place} has {', '.join(sorted(unknown))}; use rtol, atol, reason")
    return Tolerance(float(entry.get("rtol", base.rtol)), float(entry.get("atol", base.atol)))


def has_reference(book: Book, parameters: Parameters) -> bool:
    """Tell whether committed numbers exist for this run: default corpus and seed, and a known scale."""
    return parameters == Parameters(scale=parameters.scale) and book.reference(parameters.scale).is_dir()


def reference_problems(book: Book, parameters: Parameters, chapters: list[Chapter], whole: bool = True) -> list[str]:
    """Return every difference between the ``chapters`` of a run and their committed numbers.

    Where they are not the ``whole`` book, committed numbers that none of them has may belong to another chapter.
    """
    folder = book.reference(parameters.scale)
    tolerances = read_tolerances(book.tolerances)
    problems = []
    present = _tables(book, chapters)
    committed = {path.stem: path for path in folder.glob("*.csv")}
    hint = "'make accept' after looking at the figure"
    for name in sorted(present.keys() | (committed.keys() if whole else ())):
        if name not in committed:
            problems.append(f"{name}: no reference {folder.name}/{name}.csv; add it with {hint}")
        elif name not in present:
            problems.append(f"{name}: the reference {folder.name}/{name}.csv belongs to no figure; remove it")
        else:
            tolerance = tolerances.figures.get(name, tolerances.default)
            problems += [f"{name}: {p}" for p in compare_csv(present[name], committed[name], tolerance)]
    problems += _record_problems(book, folder, chapters, tolerances, whole)
    return problems


def compare_csv(path: Path, reference: Path, tolerance: Tolerance) -> list[str]:
    """Compare two tables: columns, row counts and texts exactly, numbers within ``tolerance``."""
    rows, expected = _rows(path), _rows(reference)
    if not rows or not expected or rows[0] != expected[0]:
        return [f"columns are {rows[:1]}, the reference has {expected[:1]}"]
    if len(rows) != len(expected):
        return [f"{len(rows) - 1} rows, the reference has {len(expected) - 1}"]
    for line, (row, reference_row) in enumerate(zip(rows[1:], expected[1:], strict=True), start=1):
        for column, value, wanted in zip(rows[0], row, reference_row, strict=False):
            if not same(value, wanted, tolerance):
                return [f"row {line}, {column}: {value}, the reference has {wanted}"]
        if len(row) != len(reference_row):
            return [f"row {line}: {len(row)} cells, the reference has {len(reference_row)}"]
    return []


def _rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def same(value: Any, reference: Any, tolerance: Tolerance) -> bool:
    """Tell whether two entries are equal, as texts or as numbers within ``tolerance``."""
    if value == reference:
        return True
    try:
        return tolerance.agree(float(value), float(reference))
    except (TypeError, ValueError):
        return False


def _record_problems(
    book: Book, folder: Path, chapters: list[Chapter], tolerances: Tolerances, whole: bool
) -> list[str]:
    present = _values(book, chapters)
    path = folder / RECORDS
    committed = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    problems = []
    for name in sorted(present.keys() | (committed.keys() if whole else ())):
        tolerance = tolerances.records.get(name, tolerances.default)
        if name not in committed:
            problems.append(f"record {name}: not in {folder.name}/{RECORDS}; add it with 'make accept'")
        elif name not in present:
            problems.append(f"record {name}: in {folder.name}/{RECORDS} but no chapter records it")
        elif not same_record(present[name], committed[name], tolerance):
            problems.append(f"record {name}: {present[name]}, the reference has {committed[name]}")
    return problems


def same_record(value: Any, reference: Any, tolerance: Tolerance) -> bool:
    """Compare numbers within ``tolerance``; phrases are equal or not, also those that read like a number."""
    if isinstance(value, str) or isinstance(reference, str):
        return bool(value == reference)
    return same(value, reference, tolerance)


def _values(book: Book, chapters: list[Chapter]) -> dict[str, Any]:
    found = collect(book, chapters, records_in, lambda record: record.name)
    return {name: record.value for name, (_, record) in found.items()}


def _tables(book: Book, chapters: list[Chapter]) -> dict[str, Path]:
    found = collect(book, chapters, figures_in, lambda figure: figure.id)
    return {name: figure.data for name, (_, figure) in found.items()}


def update_reference(book: Book, parameters: Parameters, chapters: list[Chapter]) -> None:
    """Make the numbers of a complete run with the default corpus and seed the committed ones."""
    folder = book.reference(parameters.scale)
    # Both before anything is removed: a name that two chapters use stops here.
    tables, values = _tables(book, chapters), _values(book, chapters)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.csv"):
        path.unlink()
    for name, table in tables.items():
        shutil.copyfile(table, folder / f"{name}.csv")
    write_whole(folder / RECORDS, json_text(values))
    if parameters == Parameters():
        keep_picture(book)
    print(f"reference: {len(tables)} figures in {folder.relative_to(book.root)}", flush=True)
