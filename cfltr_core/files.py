"""Files that are whole or absent: written under a scratch name, then renamed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A stream to write a file in one step, making its folder: a reader sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # A name of its own: several processes may write the same file at once.
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        # mkstemp makes the file private; what is written here is for everybody.
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file in one step; text becomes UTF-8."""
    with whole_file(path) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON file in one step; numbers that are not finite become null, since JSON knows none."""
    write_whole(path, json.dumps(_plain(record), indent=1, ensure_ascii=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def sha256_of(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def store_arrays(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """Write arrays and their checksums in one step, one .npy after the other."""
    sums = np.array([_checksum(a) for a in arrays], dtype=np.uint32)
    with whole_file(path) as stream:
        for a in (*arrays, sums):
            np.save(stream, a, allow_pickle=False)


def load_arrays(path: Path, kinds: Sequence[tuple[type, int]]) -> tuple[np.ndarray, ...] | None:
    """What :func:`store_arrays` wrote; None if a byte of it is missing or not as it was.

    ``kinds`` are the type and the number of dimensions that each array must have.
    """
    try:
        with path.open("rb") as stream:
            *arrays, sums = [np.load(stream, allow_pickle=False) for _ in range(len(kinds) + 1)]
            if stream.read(1):
                return None
        if [(a.dtype, a.ndim) for a in arrays] != list(kinds):
            return None
        if sums.dtype != np.uint32 or sums.tolist() != [_checksum(a) for a in arrays]:
            return None
    except Exception:  # a damaged header can make NumPy raise almost anything; every case means: not as it was
        return None
    return tuple(arrays)


def _checksum(values: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(values).data.cast("B"), zlib.crc32(repr(values.shape).encode()))
