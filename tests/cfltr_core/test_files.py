"""Files are whole or as they were."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import oracles
import pytest

from cfltr_core.files import load_arrays, sha256_of, store_arrays, write_json, write_whole


@pytest.mark.oracle("files.write_whole")
def test_write_whole_leaves_the_file_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "figure.svg"
    write_whole(path, b"first")
    assert oracles.listing(str(path.parent)) == {"figure.svg": b"first"}
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")  # type: ignore[arg-type]
    assert oracles.listing(str(path.parent))["figure.svg"] == b"first"
    write_whole(path, b"")
    assert oracles.listing(str(path.parent))["figure.svg"] == b""


@pytest.mark.oracle("files.write_json")
def test_write_json(tmp_path: Path) -> None:
    record = {"ε₊": (1.0, -math.inf), "nested": {"list": [math.nan, 1, None, "x"]}, "n": 3}
    path = tmp_path / "new" / "folder" / "record.json"
    write_json(path, record)
    assert json.loads(path.read_text(encoding="utf-8")) == oracles.plain(record)
    assert "ε₊" in path.read_text(encoding="utf-8")
    assert [p.name for p in path.parent.iterdir()] == ["record.json"]
    write_json(path, {"n": 4})
    assert json.loads(path.read_text(encoding="utf-8")) == {"n": 4}


@pytest.mark.oracle("files.sha256_of")
@pytest.mark.parametrize("content", [b"", b"abc", bytes(range(256)) * 5_000])
def test_sha256_of(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert sha256_of(tmp_path / "file") == oracles.sha256(content)


ARRAYS = (np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, -1], dtype=np.int64))
KINDS = ((np.float32, 2), (np.int64, 1))


@pytest.mark.oracle("files.store_arrays")
def test_store_arrays_writes_them_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "new" / "entry.npy"
    store_arrays(path, ARRAYS)
    assert list(oracles.listing(str(path.parent))) == ["entry.npy"]
    stored = oracles.npy_sequence(str(path), 2)
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(stored, ARRAYS, strict=True))
    with pytest.raises(ValueError, match="Object arrays"):
        store_arrays(path, (np.array([object()]),))
    assert list(oracles.listing(str(path.parent))) == ["entry.npy"]


@pytest.mark.oracle("files.load_arrays")
def test_load_arrays_gives_back_what_was_stored_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "entry.npy"
    store_arrays(path, ARRAYS)
    loaded = load_arrays(path, KINDS)
    assert loaded is not None
    stored = oracles.npy_sequence(str(path), 2)
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(loaded, stored, strict=True))
    assert load_arrays(path, KINDS[::-1]) is None
    assert load_arrays(path, KINDS[:1]) is None
    assert load_arrays(tmp_path / "none.npy", KINDS) is None
    whole = path.read_bytes()
    flipped = [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in (130, 155, len(whole) - 1)]
    for damaged in (whole[:-1], whole + b"x", *flipped):
        path.write_bytes(damaged)
        assert load_arrays(path, KINDS) is None
