"""Files that are whole or absent: written under a scratch name, then renamed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
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
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def sha256_of(file: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
