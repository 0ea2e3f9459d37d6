"""Files are whole or as they were."""

from __future__ import annotations

import json
import math
from pathlib import Path

import oracles
import pytest

from cfltr_core.files import write_json, write_whole


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
