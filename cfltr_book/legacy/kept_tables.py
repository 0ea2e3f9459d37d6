"""Kept tables as files: a CSV of numbers and words, and beside it a JSON that says where it comes from.

A table has one row for each seed and setting; its columns are ``seed``, the setting's keys and the result's keys.  The
CSV is read back to the last bit: numbers are written as Python writes them, and the JSON holds the kind of each column.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_core.files import write_json, write_whole

if TYPE_CHECKING:
    import pandas as pd

Value = bool | int | float | str | None
Row = dict[str, Value]

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Table:
    """The rows of a table, and what its JSON says of them."""

    rows: list[Row]
    about: Mapping[str, Any]


def place_of(folder: Path, scale: str, corpus: str, *, seed: int = 0) -> Path:
    """Below ``folder``, where the tables of one scale, corpus and first seed lie: ``<scale>/<corpus>``.

    In the corpus every character that a file's name should not hold is a full stop; of a seed that is not 0 the name
    says so.

    Examples
    --------
    >>> from pathlib import Path
    >>> place_of(Path("07"), "ci", "yahoo-like:mixed").as_posix()
    '07/ci/yahoo-like.mixed'
    >>> place_of(Path("07"), "ci", "letor:mq2008", seed=5).as_posix()
    '07/ci/letor.mq2008,seed=5'
    """
    safe = re.sub(r"[^A-Za-z0-9@=,._-]", ".", corpus)
    return folder / scale / (safe if seed == 0 else f"{safe},seed={seed}")


def flat(mapping: Any, name: str) -> Row:
    """A setting or a result as a dict of numbers, words, True, False and None; NumPy's scalars as Python's.

    Raises
    ------
    ValueError
        Naming the entry that is something else, a key that is no word, or an empty text, which in a CSV is None.
    """
    if not isinstance(mapping, Mapping):
        raise ValueError(f"{name} is a {type(mapping).__name__}: give a dictionary of numbers and words")
    row: Row = {}
    for key, value in mapping.items():
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(key, str) or not key:
            raise ValueError(f"{name} has the key {key!r}: keys are the names of columns, so give words")
        if value is not None and not isinstance(value, (bool, int, float, str)):
            raise ValueError(
                f"{name}[{key!r}] is a {type(value).__name__}: a table holds numbers and words; "
                "give each number a key of its own"
            )
        if value == "":
            raise ValueError(f"{name}[{key!r}] is an empty text: give a word, or None where there is nothing")
        row[key] = value
    return row


def kinds_of(rows: Sequence[Row], name: str) -> dict[str, str]:
    """The kind of each column: "bool", "int", "float" or "str"; None fits them all, and makes an int a float.

    Raises
    ------
    ValueError
        For rows with other columns than the first, and for a column that mixes words, truth values and numbers.
    """
    kinds = {}
    for index, row in enumerate(rows):
        if list(row) != list(rows[0]):
            raise ValueError(
                f"{name}: row {index} has the columns {', '.join(row)}, row 0 has {', '.join(rows[0])}; "
                "give every setting and every result the same keys, with None where there is nothing"
            )
    for column in rows[0] if rows else ():
        values = [row[column] for row in rows]
        found = {type(value).__name__ for value in values if value is not None}
        if found == {"int"} and None in values:
            found = {"float"}
        kind = "float" if found == {"int", "float"} else "str" if not found else found.pop() if len(found) == 1 else ""
        if not kind:
            raise ValueError(f"{name}: column {column!r} mixes {' and '.join(sorted(found))}; give values of one kind")
        kinds[column] = kind
    return kinds


def frame_of(rows: Sequence[Row], columns: Sequence[str], kinds: Mapping[str, str]) -> pd.DataFrame:
    """The rows as a table of pandas; None is NaN among numbers."""
    import pandas as pd

    types = {"int": "int64", "float": "float64", "bool": "bool"}
    data = {}
    for column in columns:
        values = [row[column] for row in rows]
        kind = kinds.get(column, "str")
        data[column] = pd.Series(values, dtype="object" if None in values and kind == "bool" else types.get(kind))
        if kind == "str":
            data[column] = pd.Series(values, dtype="object")
    return pd.DataFrame(data, columns=list(columns))


def write_table(path: Path, rows: Sequence[Row], about: Mapping[str, Any]) -> None:
    """Write ``path``, a CSV, and the JSON beside it, each of them whole.

    Raises
    ------
    ValueError
        As :func:`kinds_of`.
    """
    kinds = kinds_of(rows, path.stem)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(kinds)
    writer.writerows([_text(value, kinds[column]) for column, value in row.items()] for row in rows)
    text = buffer.getvalue()
    # The JSON first, with the digest of the table: where only one of the two was written, they do not fit.
    write_json(path.with_suffix(".json"), {"columns": kinds, "digest": _digest(text), **about})
    write_whole(path, text)


def read_table(path: Path, *, remedy: str) -> Table:
    """What :func:`write_table` wrote.

    Raises
    ------
    ValueError
        Where the JSON is missing, or is not that of this CSV; ``remedy`` says what to do then.
    """
    try:
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if about["digest"] != _digest(text):
            raise ValueError("its digest is that of another table")
        header, *lines = csv.reader(io.StringIO(text))
        kinds = about["columns"]
        if header != list(kinds):
            raise ValueError("its columns are others")
        rows = [{c: _value(t, kinds[c]) for c, t in zip(header, line, strict=True)} for line in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path.name} and {path.stem}.json do not belong together ({error}); take both from one revision, "
            f"or compute the table anew: {remedy}"
        ) from None
    return Table(rows, about)


def same(value: Value, other: Value, *, rtol: float, atol: float) -> bool:
    """Whether two entries are equal: numbers when |value - other| <= atol + rtol |other|, all else exactly.

    Examples
    --------
    >>> same(1.0, 1.0 + 1e-9, rtol=1e-6, atol=0.0), same("a", 1, rtol=1.0, atol=1.0)
    (True, False)
    """
    numbers = [isinstance(v, (int, float)) and not isinstance(v, bool) for v in (value, other)]
    if not all(numbers):
        missing = [v is None or v != v for v in (value, other)]
        return all(missing) or (value == other and not any(numbers))
    a, b = float(value or 0), float(other or 0)
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or math.isinf(b):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= atol + rtol * abs(b)


def _text(value: Value, kind: str) -> str:
    return "" if value is None else repr(float(value)) if kind == "float" else str(value)


def _value(text: str, kind: str) -> Value:
    if text == "":
        return None
    if kind == "bool":
        return {"True": True, "False": False}[text]
    return int(text) if kind == "int" else float(text) if kind == "float" else text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
