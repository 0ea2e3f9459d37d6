"""Files are whole or as they were."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from cfltr_core.files import load_arrays, sha256_of, store_arrays, whole_file, write_json, write_whole


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


def test_a_file_that_cannot_be_finished_leaves_nothing_behind(tmp_path: Path) -> None:
    """Not even its scratch file, whatever stops the writing."""

    def half(stop: type[BaseException]) -> None:
        with whole_file(tmp_path / "a" / "record.json") as stream:
            stream.write(b"half")
            (scratch,) = listing(tmp_path / "a")
            # Hidden, and named after the file: what a killed process leaves can be told from what is whole.
            assert scratch.startswith(".record.json.")
            assert scratch.endswith(".part")
            raise stop

    for stop in (KeyboardInterrupt, OSError, SystemExit):
        with pytest.raises(stop):
            half(stop)
        assert listing(tmp_path / "a") == {}


def test_two_may_write_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    with whole_file(path) as one, whole_file(path) as other:
        one.write(b"one")
        other.write(b"other")
        assert len(listing(tmp_path)) == 2
    assert listing(tmp_path) == {"record.json": b"one"}


def test_the_whole_file_of_json(tmp_path: Path) -> None:
    write_json(tmp_path / "record.json", {"a": [1, {"b": math.nan}]})
    assert (tmp_path / "record.json").read_bytes() == (b'{\n "a": [\n  1,\n  {\n   "b": null\n  }\n ]\n}\n')


def test_a_checksum_is_that_of_the_shape_and_the_values(tmp_path: Path) -> None:
    store_arrays(tmp_path / "entry.npy", ARRAYS)
    with open(tmp_path / "entry.npy", "rb") as stream:
        *_, sums = [np.load(stream) for _ in range(3)]
    assert sums.dtype == np.uint32
    assert sums.tolist() == [
        zlib.crc32(array.tobytes(), zlib.crc32(shape))
        for array, shape in zip(ARRAYS, (b"(2, 3)", b"(2,)"), strict=True)
    ]


def test_checksums_of_another_type_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "entry.npy"
    store_arrays(path, ARRAYS)
    with open(path, "rb") as stream:
        stored = [np.load(stream) for _ in range(3)]
    with open(path, "wb") as stream:
        for array in (*ARRAYS, stored[-1].astype(np.int64)):
            np.save(stream, array)
    assert load_arrays(path, KINDS) is None


WRONG = {
    "another shape": [ARRAYS[0].reshape(3, 2), ARRAYS[1]],
    "a flat array": [ARRAYS[0].ravel(), ARRAYS[1]],
    "another type": [ARRAYS[0].astype(np.float64), ARRAYS[1]],
    "the first is missing": [ARRAYS[1]],
    "another value": [ARRAYS[0], ARRAYS[1][::-1]],
}


@pytest.mark.parametrize("case", WRONG)
def test_arrays_under_the_checksums_of_others_are_not_loaded(tmp_path: Path, case: str) -> None:
    path = tmp_path / "entry.npy"
    store_arrays(path, ARRAYS)
    with open(path, "rb") as stream:
        *_, sums = [np.load(stream) for _ in range(3)]
    for arrays in (ARRAYS, WRONG[case]):
        with open(path, "wb") as stream:
            for array in (*arrays, sums):
                np.save(stream, array)
        assert (load_arrays(path, KINDS) is not None) == (arrays is ARRAYS)


def test_no_python_object_is_written_or_read(tmp_path: Path) -> None:
    """Reading a pickled object would run code of whoever wrote it."""
    path = tmp_path / "entry.npy"
    odd = np.array([None])
    with open(path, "wb") as stream:
        np.save(stream, odd, allow_pickle=True)
        np.save(stream, np.array([0], dtype=np.uint32))
    assert load_arrays(path, ((object, 1),)) is None
