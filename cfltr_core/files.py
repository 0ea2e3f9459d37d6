"""Files that are whole or absent: written under a scratch name, then renamed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: bytes) -> None:
    """Write a file in one step, making its folder: a reader sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".part")
    scratch.write_bytes(content)
    scratch.replace(path)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON file in one step; numbers that are not finite become null, since JSON knows none."""
    write_whole(path, (json.dumps(_plain(record), indent=1, ensure_ascii=False) + "\n").encode("utf-8"))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
