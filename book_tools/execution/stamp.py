"""The stamp of an executed chapter: its fingerprint, and the digest of every artefact it left.

The stamp is written last into the scratch folder, and the folder is then renamed as a whole: a folder with
a stamp is complete, a folder without one is not there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from book_tools.files import files_below, json_text
from cfltr_core.files import sha256_of, write_whole

STAMP = "stamp.json"


@dataclass(frozen=True)
class Stamp:
    """What a finished chapter was made from, and what it consists of."""

    fingerprint: str
    artefacts: dict[str, str]


def _digests(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files_below(folder) if path.name != STAMP}


def write_stamp(folder: Path, fingerprint: str) -> None:
    """Seal the artefacts in ``folder``."""
    write_whole(folder / STAMP, json_text({"fingerprint": fingerprint, "artefacts": _digests(folder)}))


def read_stamp(folder: Path) -> Stamp | None:
    """Return the stamp of ``folder``, or None when it has none that can be read."""
    try:
        content = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        return Stamp(str(content["fingerprint"]), dict(content["artefacts"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def differences(folder: Path, stamp: Stamp) -> list[str]:
    """Return what happened to the artefacts since they were sealed, one phrase each."""
    now = _digests(folder)
    return (
        [f"{name} is missing" for name in sorted(stamp.artefacts.keys() - now.keys())]
        + [f"{name} was added by hand" for name in sorted(now.keys() - stamp.artefacts.keys())]
        + [
            f"{name} was changed by hand"
            for name in sorted(stamp.artefacts.keys() & now.keys())
            if stamp.artefacts[name] != now[name]
        ]
    )


def is_current(folder: Path, fingerprint: str) -> bool:
    """Tell whether ``folder`` holds the untouched artefacts of this very fingerprint."""
    stamp = read_stamp(folder)
    return stamp is not None and stamp.fingerprint == fingerprint and not differences(folder, stamp)
