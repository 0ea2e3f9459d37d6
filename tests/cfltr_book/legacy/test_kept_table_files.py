"""Kept tables as files: what is written is read to the last bit, and nothing else is."""

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cfltr_book.legacy.kept_tables import flat, frame_of, kinds_of, place_of, read_table, same, write_table

ROWS: list[dict[str, Any]] = [
    {"seed": 0, "eta": 0.1 + 0.2, "cap": None, "noisy": True, "word": 'a, "b"\nc', "n": 1, "rate": 1, "none": None},
    {"seed": 1, "eta": 5e-324, "cap": 3, "noisy": False, "word": None, "n": 2**60, "rate": 0.5, "none": None},
    {"seed": 2, "eta": math.inf, "cap": math.pi, "noisy": True, "word": "1.0", "n": -3, "rate": 2, "none": None},
]
KINDS = {"seed": "int", "eta": "float", "cap": "float", "noisy": "bool", "word": "str", "n": "int"}
KINDS |= {"rate": "float", "none": "str"}


def test_what_is_written_is_read_to_the_last_bit(tmp_path: Path) -> None:
    path = tmp_path / "ci" / "curve.csv"
    write_table(path, ROWS, {"seeds": [0, 1, 2]})
    table = read_table(path, remedy="again")
    assert table.rows == ROWS
    assert table.about["columns"] == KINDS == kinds_of(ROWS, "curve")
    assert table.about["seeds"] == [0, 1, 2]
    with path.open(newline="", encoding="utf-8") as stream:
        lines = list(csv.reader(stream))
    assert lines[0] == list(KINDS)
    assert lines[1] == ["0", "0.30000000000000004", "", "True", 'a, "b"\nc', "1", "1.0", ""]
    frame, fresh = (frame_of(rows, list(KINDS), KINDS) for rows in (table.rows, ROWS))
    assert frame.equals(fresh)
    assert [str(kind) for kind in frame.dtypes] == [
        "int64", "float64", "float64", "bool", "object", "int64", "float64", "object"
    ]  # fmt: skip
    first = path.read_bytes()
    write_table(path, ROWS, {"seeds": [0, 1, 2]})
    assert path.read_bytes() == first
    path.write_bytes(first.replace(b"\n", b"\r\n").replace(b'"b""\r\nc', b'"b""\nc'))  # as git may check it out
    assert read_table(path, remedy="again").rows[1:] == ROWS[1:]


def test_a_missing_number_is_nan(tmp_path: Path) -> None:
    rows = [{"seed": 0, "rounds": 3, "gain": math.nan}, {"seed": 1, "rounds": None, "gain": -0.0}]
    write_table(tmp_path / "a.csv", rows, {})
    found = read_table(tmp_path / "a.csv", remedy="").rows
    assert found[1] == {"seed": 1, "rounds": None, "gain": 0.0}
    assert math.isnan(found[0]["gain"])  # type: ignore[arg-type]
    assert math.copysign(1, found[1]["gain"]) == -1  # type: ignore[arg-type]
    frame = frame_of(found, list(rows[0]), kinds_of(found, "a"))
    assert frame["rounds"].tolist()[0] == 3.0
    assert math.isnan(frame["rounds"].tolist()[1])
    empty = frame_of([], ["seed", "n"], {})
    assert list(empty.columns) == ["seed", "n"]
    assert len(empty) == 0


def edited(old: str, new: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(path.read_text().replace(old, new))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "no json": lambda path: path.with_suffix(".json").unlink(),
    "another number": edited("5e-324", "6e-324"),
    "cut": lambda path: path.write_text(path.read_text()[:-3]),
    "no text": lambda path: path.write_bytes(b"\xff" + path.read_bytes()),
    "other columns": lambda path: edited('"seed": "int"', '"side": "int"')(path.with_suffix(".json")),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_changed_table_is_refused(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "curve.csv"
    write_table(path, ROWS, {})
    DAMAGES[damage](path)
    with pytest.raises(ValueError, match=r"^curve\.csv and curve\.json do not belong together \(.*: make paper A=1$"):
        read_table(path, remedy="make paper A=1")


def test_numbers_of_numpy_become_those_of_python() -> None:
    row = flat({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.str_("w"), "e": None}, "x")
    assert row == {"a": 0.5, "b": 3, "c": True, "d": "w", "e": None}
    assert [type(value) for value in row.values()] == [float, int, bool, str, type(None)]
    for value in ([1], {1: 2}, {"": 2}, {"a": [1]}, {"a": ""}):
        with pytest.raises(ValueError, match=r"^x(\['a'\])? (is|has) "):
            flat(value, "x")


def test_columns_are_the_same_in_all_rows_and_of_one_kind() -> None:
    with pytest.raises(ValueError, match=r"^t: row 1 has the columns b, row 0 has a; give every setting"):
        kinds_of([{"a": 1}, {"b": 1}], "t")
    for other in ("w", True):
        with pytest.raises(ValueError, match=r"^t: column 'a' mixes "):
            kinds_of([{"a": 1}, {"a": other}], "t")
    assert kinds_of([], "t") == {}


EQUAL = [(1.0, 1.0 + 0.9e-6), (0.0, 0.9e-9), (3, 3.0), (math.nan, math.nan), (math.nan, None), (math.inf, math.inf)]
EQUAL += [(None, None), ("a", "a"), (True, True)]
UNEQUAL = [(1.0, 1.0 + 1.2e-6), (-1.0, 1.0), (0.0, 2e-9), (math.nan, 1.0), (math.inf, -math.inf), (math.inf, 1.0)]
UNEQUAL += [(None, 0), ("a", "b"), ("1", 1), (True, False), (True, 1)]


@pytest.mark.parametrize(("pair", "equal"), [*((pair, True) for pair in EQUAL), *((pair, False) for pair in UNEQUAL)])
def test_same(pair: tuple[Any, Any], equal: bool) -> None:
    for value, other in (pair, pair[::-1]):
        assert same(value, other, rtol=1e-6, atol=1e-9) is equal


def test_places() -> None:
    top = Path("07")
    assert place_of(top, "paper", "yahoo-like") == top / "paper" / "yahoo-like"
    assert place_of(top, "ci", "letor:/a/b c@x=1,y") == top / "ci" / "letor..a.b.c@x=1,y"
    assert place_of(top, "ci", "digits", seed=3) == top / "ci" / "digits,seed=3"
