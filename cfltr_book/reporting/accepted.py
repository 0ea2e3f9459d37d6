"""What the last accepted run gave for each claim: the rows of ``cfltr_book/claims/verdicts.csv``.

``make accept`` writes them.  They are part of the package, so that a chapter shows them wherever it runs.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from importlib import resources

FILE = "claims/verdicts.csv"


@dataclass(frozen=True)
class Accepted:
    """The accepted ``verdict`` on the claim ``id`` with a corpus, from a scale on, until a larger one has its own.

    ``effect`` and the ends of its interval, ``low`` and ``high``, are those of that run, to three digits; None where
    the row is older than these columns, or the claim has no interval.
    """

    id: str
    corpus: str
    scale: str
    verdict: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None


def accepted_verdicts() -> list[Accepted]:
    """The rows of the file that came with the package."""
    return parse_accepted(resources.files("cfltr_book").joinpath(FILE).read_text(encoding="utf-8"))


def parse_accepted(text: str) -> list[Accepted]:
    """The rows of a file of verdicts.

    Raises
    ------
    ValueError
        For other columns, and for a row of another length.
    """
    head, *rows = csv.reader(io.StringIO(text))
    columns = [field.name for field in fields(Accepted)]
    for row in [head, *rows]:
        if len(row) != len(columns) or (row is head and row != columns):
            raise ValueError(f"verdicts.csv: {','.join(row)!r} has not the columns {','.join(columns)}")
    return [
        Accepted(id, corpus, scale, verdict, *(float(number) if number else None for number in numbers))
        for id, corpus, scale, verdict, *numbers in rows
    ]


def accepted_text(rows: Iterable[Accepted]) -> str:
    """The file of these rows, as :func:`parse_accepted` reads it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Accepted))
    for row in rows:
        words, numbers = astuple(row)[:4], astuple(row)[4:]
        writer.writerow([*words, *("" if number is None else f"{number:.3g}" for number in numbers)])
    return text.getvalue()
