"""Files are whole or as they were."""

import hashlib
import json
import math
import tempfile
from pathlib import Path

import pytest

from cfltr_core.files import sha256_of, whole_file, write_json, write_whole


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


def test_a_file_is_written_beside_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file can be put into its place at once only within one file system: no folder for temporary files is used."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such folder"))
    write_whole(tmp_path / "text", b"text")
    assert sorted(listing(tmp_path)) == ["text"]


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
