"""Small file helpers: what lies below a folder, JSON, and folders that are either whole or absent."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cfltr_core.files import sha256_of


def files_below(folder: Path) -> Iterator[Path]:
    """Yield every file below ``folder`` in sorted order, byte-code caches left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def digests_below(folder: Path, besides: str = "") -> dict[str, str]:
    """Return the digest of every file below ``folder``, by its path there; those that are called ``besides`` not."""
    paths = {path.relative_to(folder).as_posix(): path for path in files_below(folder) if path.name != besides}
    return {name: sha256_of(path) for name, path in paths.items()}


def json_text(value: Any) -> str:
    """Return ``value`` as JSON that is the same for the same content."""
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """Return the object stored in ``path``, empty when there is none that can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def remove_tree(folder: Path) -> None:
    """Remove ``folder`` if it is there; it disappears from its place in one step, before its files go."""
    if not folder.exists():
        return
    doomed = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".old", dir=folder.parent))
    os.replace(folder, doomed)
    shutil.rmtree(doomed)


def replace_tree(new: Path, place: Path) -> None:
    """Put the folder ``new`` at ``place`` with one rename, after moving out what was there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    remove_tree(place)
    os.rename(new, place)
