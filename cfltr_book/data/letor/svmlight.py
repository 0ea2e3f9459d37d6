"""SVMlight text with ``qid`` to arrays: strict, streaming, one pass.

A line is ``label qid:N id:value id:value … # comment``.  Lines of the usual shape (one space between tokens,
ascending ids) take a fast path of a few calls a line; any other line goes through ``_careful``, which either
understands it or says what is wrong with it.  Both accept the same language.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cfltr_core.checks import FloatArray, IntArray

MOST_FEATURES = 10_000  # the arrays are dense: a larger id is a damaged line, not a feature
HIGHEST_GRADE = 30
_BLOCK = 1 << 18  # bytes read at a time
_LONGEST_LINE = 1 << 24
_ROWS = 128  # documents collected before they are stored
_BLANKS = b" \t\r"
# What remains of a line of the usual shape when the letters of numbers and of "qid" are taken out.
_NUMERIC = b"0123456789+-.eEqid"
_SHAPE = b" :" * (MOST_FEATURES + 1)
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_INFINITE = re.compile(rb"[+-]?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(rb"[+-]?\d+")


@dataclass(frozen=True)
class Parsed:
    """What one file holds.

    ``features`` (n_docs, n_features) float32, ``grades`` (n_docs,) int8, ``offsets`` (n_queries + 1,) int64;
    ``width`` is the number of features before any was dropped; ``capped`` and ``nulls`` count values over all
    features of the file.
    """

    features: NDArray[np.float32]
    grades: NDArray[np.int8]
    offsets: IntArray
    width: int
    capped: int
    nulls: int


def parse(file: BufferedIOBase, name: str, n_features: int | None, cap: float, drop: tuple[int, ...]) -> Parsed:
    """Read a binary stream, plain or gzip, to its end.

    Parameters
    ----------
    file : seekable binary stream
    name : str
        What messages call the file.
    n_features : int, optional
        Number of features; without it the largest id.
    cap : float
        Values beyond ±cap, infinite ones among them, become ±cap; at most the largest float32.
    drop : ids of features to leave out
        The other columns keep their order.

    Returns
    -------
    Parsed
        An absent feature is 0, and so is ``NULL``.

    Raises
    ------
    ValueError
        With ``name``, the line (from 1, comments and blank lines counted), what stands there, and what to do.

    Notes
    -----
    Memory is at most about 1.25 times the arrays returned: they grow in place.
    """
    rows = _Rows(n_features or 0, cap, drop)
    limit = n_features or MOST_FEATURES
    grades = array("b")
    starts = array("q")
    last_line: dict[int, int] = {}  # of each query
    ids: list[str] | None = None
    columns: slice | list[int] = []
    values: FloatArray | list[float] = []
    qid_word: str | None = None
    qid = 0
    number = 0
    for number, raw in enumerate(_lines(file, name), start=1):
        line = (raw[: raw.index(b"#")] if b"#" in raw else raw).strip(_BLANKS)
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANKS)  # the mark that some editors put before UTF-8
        if not line:
            continue
        try:
            shape = line.translate(None, _NUMERIC)
            if len(shape) % 2 or shape != _SHAPE[: len(shape)]:
                raise ValueError
            words = line.replace(b":", b" ").decode("ascii").split(" ")
            label = float(words[0])
            if words[1] != "qid" or not (0 <= label <= HIGHEST_GRADE and label.is_integer()):
                raise ValueError
            if words[3::2] != ids:
                columns = _columns(words[3::2], limit)
                ids = words[3::2]
            values = np.fromiter(map(float, words[4::2]), np.float64, len(ids))
            nulls = 0
            if words[2] != qid_word or not grades:
                new = int(words[2])
                qid_word = words[2]
            else:
                new = qid
        except (ValueError, IndexError):
            try:
                label, new, columns, values, nulls = _careful(line, limit, n_features)
            except ValueError as error:
                raise ValueError(f"path: {name}, line {number}: {error}") from None
            ids = qid_word = None  # the next line cannot lean on this one
        if new != qid or not grades:
            if new in last_line:
                raise ValueError(
                    f"path: {name}, line {number}: query {_short(new)} comes back after line {last_line[new]}: "
                    "sort the file by qid, the documents of a query stand together"
                )
            starts.append(len(grades))
            qid = new
        last_line[qid] = number
        grades.append(int(label))
        rows.add(columns, values, nulls)
    if not grades:
        raise ValueError(f"path: {name} holds no document in {number} lines: is it the right file?")
    features = rows.finish()
    if rows.width == 0:
        raise ValueError(f"path: {name} holds no feature in {number} lines: is it the right file?")
    return Parsed(
        features=features,
        grades=np.array(grades, dtype=np.int8),
        offsets=np.append(np.array(starts, dtype=np.int64), len(grades)),
        width=rows.width,
        capped=rows.capped,
        nulls=rows.nulls,
    )


def _lines(file: BufferedIOBase, name: str) -> Iterator[bytes]:
    """The lines of a plain or gzip stream; an unfinished last one is a line too."""
    magic = file.read(2)
    file.seek(-len(magic), io.SEEK_CUR)
    stream = gzip.GzipFile(fileobj=file) if magic == b"\x1f\x8b" else file
    done, rest = 0, b""
    while True:
        try:
            block = stream.read1(_BLOCK)  # read() would lose what came before the damage, and its line
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"path: {name}, line {done + 1}: the gzip stream is damaged or ends early ({error}): "
                "copy or download the file again"
            ) from None
        if not block:
            break
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        if len(rest) > _LONGEST_LINE:
            raise ValueError(
                f"path: {name}, line {done + len(lines) + 1}: longer than {_LONGEST_LINE:,} bytes: "
                "this is not an SVMlight file"
            )
        yield from lines
        done += len(lines)
    if rest:
        yield rest


def _columns(ids: list[str], limit: int) -> slice | list[int]:
    """Where the values of these ids go; ValueError unless they are whole, ascending, and between 1 and ``limit``."""
    if not ids:
        return []
    if not "".join(ids).isdigit():
        raise ValueError
    found = [int(word) for word in ids]
    if found[0] < 1 or found[-1] > limit or any(a >= b for a, b in pairwise(found)):
        raise ValueError
    if found[-1] == len(found):
        return slice(0, len(found))
    return [i - 1 for i in found]


def _careful(line: bytes, limit: int, n_features: int | None) -> tuple[float, int, list[int], list[float], int]:
    """Label, qid, columns (ascending), values and number of NULLs of one line without comment, token by token."""
    # bytes.split() would also split at \v, \f and at a carriage return inside a line, which hides a lost line end.
    label, *words = [word for word in line.replace(b"\t", b" ").split(b" ") if word]
    if not _NUMBER.fullmatch(label):
        raise ValueError(
            f"label {_short(label)} is not a number: this is not SVMlight, expected 'label qid:N 1:x 2:y …'"
        )
    grade = float(label)
    if not grade.is_integer() or not 0 <= grade <= HIGHEST_GRADE:
        raise ValueError(
            f"label {_short(label)}: grades are whole numbers from 0 to {HIGHEST_GRADE}; map yours to them"
        )
    if not words or not words[0].startswith(b"qid:"):
        raise ValueError(
            f"expected qid:N after the label, found {_short(words[0]) if words else 'nothing'}: every line needs a qid"
        )
    qid_word = words[0].removeprefix(b"qid:")
    try:
        qid = int(qid_word if _WHOLE.fullmatch(qid_word) else b"")
    except ValueError:  # also what has thousands of digits
        raise ValueError(f"{_short(words[0])}: expected a whole number after qid:, number the queries") from None
    found: dict[int, float] = {}
    nulls = 0
    for word in words[1:]:
        index, colon, value = word.partition(b":")
        if not colon or not index.isdigit():
            raise ValueError(f"{_short(word)} is not id:value: separate features by one space, number them from 1")
        feature = int(index.lstrip(b"0")[:20] or b"0")
        if not 1 <= feature <= limit:
            bound = f"n_features={n_features}" if n_features else f"{limit:,}, the most this reader takes"
            raise ValueError(f"feature id {_short(index)} in {_short(word)} is not between 1 and {bound}")
        if feature in found:
            raise ValueError(f"feature {feature} occurs twice: remove one of the two values")
        if value in (b"NULL", b"null"):
            nulls += 1
            found[feature] = 0.0
        elif _NUMBER.fullmatch(value) or _INFINITE.fullmatch(value):
            found[feature] = float(value)
        else:
            raise ValueError(f"feature {feature} has the value {_short(value)}: expected a finite number or NULL")
    order = sorted(found)
    return grade, qid, [i - 1 for i in order], [found[i] for i in order], nulls


def _short(word: bytes | int) -> str:
    """A token as a message shows it."""
    text = str(word) if isinstance(word, int) else repr(word.decode("latin-1"))
    return text if len(text) <= 40 else text[:36] + " …" + text[-1]


class _Rows:
    """Documents that arrive one by one and are kept as float32 in one buffer, which grows in place."""

    def __init__(self, width: int, cap: float, drop: tuple[int, ...]) -> None:
        self.width = width
        self.capped = self.nulls = 0
        self._cap, self._drop = cap, np.array(sorted(drop), dtype=np.int64) - 1
        self._waiting = np.zeros((_ROWS, max(width, 64)))
        self._n_waiting = 0
        self._stored = np.empty(0, dtype=np.float32)
        self._n_stored = self._stored_width = 0

    def add(self, columns: slice | list[int], values: FloatArray | list[float], nulls: int) -> None:
        """One document: ``values`` in ``columns`` (ascending), 0 elsewhere."""
        last = columns.stop if isinstance(columns, slice) else max(columns, default=-1) + 1
        if last > self.width:
            self.width = last
            if last > self._waiting.shape[1]:
                room = min(MOST_FEATURES, last + last // 2)
                self._waiting = np.pad(self._waiting, ((0, 0), (0, max(room, last) - self._waiting.shape[1])))
        self._waiting[self._n_waiting, columns] = values
        self._n_waiting += 1
        self.nulls += nulls
        if self._n_waiting == _ROWS:
            self._store()

    def _store(self) -> None:
        block = self._waiting[: self._n_waiting, : self.width]
        beyond = np.abs(block) > self._cap
        if beyond.any():
            self.capped += int(np.count_nonzero(beyond))
            np.clip(block, -self._cap, self._cap, out=block)
        kept = np.delete(block, self._drop[self._drop < self.width], axis=1) if len(self._drop) else block
        width = kept.shape[1]
        if width > self._stored_width:
            self._widen(width)
        begin, end = self._n_stored * width, (self._n_stored + self._n_waiting) * width
        if end > self._stored.size:
            # No copy is made where the system can enlarge a block of memory; no view of it exists here.
            self._stored.resize(max(end, self._stored.size * 5 // 4), refcheck=False)
        self._stored[begin:end] = kept.ravel()
        self._n_stored += self._n_waiting
        self._waiting[:] = 0.0
        self._n_waiting = 0

    def _widen(self, width: int) -> None:
        """Make room for later features: move the rows apart, from the last on, inside the same buffer."""
        old, rows = self._stored_width, self._n_stored
        self._stored_width = width
        if rows == 0:
            return
        self._stored.resize(max(self._stored.size, rows * width), refcheck=False)
        for end in range(rows, 0, -_ROWS):
            begin = max(0, end - _ROWS)
            wide = np.zeros((end - begin, width), dtype=np.float32)
            wide[:, :old] = self._stored[begin * old : end * old].reshape(-1, old)
            self._stored[begin * width : end * width] = wide.ravel()

    def finish(self) -> NDArray[np.float32]:
        """All documents, shape (n_docs, n_features)."""
        self._store()
        self._stored.resize(self._n_stored * self._stored_width, refcheck=False)
        return self._stored.reshape(self._n_stored, self._stored_width)
