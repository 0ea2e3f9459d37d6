"""Files are whole or as they were."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest

from cfltr_core.files import load_arrays, sha256_of, store_arrays, write_json, write_whole


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_write_whole_leaves_the_file_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figure.svg"
    write_whole(path, b"first")
    assert listing(path.parent) == {"figure.svg": b"first"}
    with pytest.raises(TypeError):
        write_whole(path, 1)  # type: ignore[arg-type]
    assert listing(path.parent)["figure.svg"] == b"first"
    write_whole(path, b"")
    assert listing(path.parent) == {"figure.svg": b""}
    write_whole(path, "ε₊")
    assert listing(path.parent) == {"figure.svg": "ε₊".encode()}
    assert path.stat().st_mode & 0o777 == 0o644


def test_write_json(tmp_path: Path) -> None:
    record = {"ε₊": (1.0, -math.inf), "nested": {"list": [math.nan, 1, None, "x"]}, "n": 3}
    path = tmp_path / "new" / "folder" / "record.json"
    write_json(path, record)
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "ε₊": [1.0, None],
        "nested": {"list": [None, 1, None, "x"]},
        "n": 3,
    }
    assert "ε₊" in path.read_text(encoding="utf-8")
    assert [p.name for p in path.parent.iterdir()] == ["record.json"]
    write_json(path, {"n": 4})
    assert json.loads(path.read_text(encoding="utf-8")) == {"n": 4}


@pytest.mark.parametrize("content", [b"", b"abc", bytes(range(256)) * 5_000])
def test_sha256_of(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert sha256_of(tmp_path / "file") == hashlib.sha256(content).hexdigest()


ARRAYS = (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, -1], dtype=np.int64))
KINDS = ((np.float32, 2), (np.int64, 1))


def test_store_arrays_writes_them_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "new" / "entry.npy"
    store_arrays(path, ARRAYS)
    assert list(listing(path.parent)) == ["entry.npy"]
    with open(path, "rb") as stream:
        stored = [np.load(stream) for _ in ARRAYS]
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(stored, ARRAYS, strict=True))
    with pytest.raises(ValueError, match="Object arrays"):
        store_arrays(path, (np.array([object()]),))
    assert list(listing(path.parent)) == ["entry.npy"]


def test_arrays_are_written_beside_their_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file can be put into its place at once only within one file system: no folder for temporary files is used."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such folder"))
    store_arrays(tmp_path / "entry.npy", ARRAYS)
    write_whole(tmp_path / "text", b"text")
    assert sorted(listing(tmp_path)) == ["entry.npy", "text"]


def test_load_arrays_gives_back_what_was_stored_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "entry.npy"
    store_arrays(path, ARRAYS)
    loaded = load_arrays(path, KINDS)
    assert loaded is not None
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(loaded, ARRAYS, strict=True))
    assert load_arrays(path, KINDS[::-1]) is None
    assert load_arrays(path, KINDS[:1]) is None
    assert load_arrays(tmp_path / "none.npy", KINDS) is None
    whole = path.read_bytes()
    flipped = [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in (130, 155, len(whole) - 1)]
    for damaged in (whole[:-1], whole + b"x", *flipped):
        path.write_bytes(damaged)
        assert load_arrays(path, KINDS) is None
