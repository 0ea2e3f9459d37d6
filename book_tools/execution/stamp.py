"""The stamp of an executed chapter: its fingerprint, and the digest of every artefact it left.

The stamp is written last into the scratch folder, and the folder is then renamed as a whole: a folder with
a stamp is complete, a folder without one is not there.
"""

from __future__ import annotations

from pathlib import Path

from book_tools.files import files_below, json_text, read_json
from cfltr_core.files import sha256_of, write_whole

STAMP = "stamp.json"


def _digests(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files_below(folder) if path.name != STAMP}


def write_stamp(folder: Path, fingerprint: str) -> None:
    """Seal the artefacts in ``folder``."""
    write_whole(folder / STAMP, json_text({"fingerprint": fingerprint, "artefacts": _digests(folder)}))


def sealed_fingerprint(folder: Path) -> str | None:
    """Return the fingerprint in the stamp of ``folder``, or None when it has no stamp that can be read."""
    return read_json(folder / STAMP).get("fingerprint")


def differences(folder: Path) -> list[str]:
    """Return what happened to the artefacts of ``folder`` since they were sealed, one phrase each."""
    sealed, now = read_json(folder / STAMP)["artefacts"], _digests(folder)
    fate = {name: "was changed by hand" if name in now else "is missing" for name in sealed}
    return [
        f"{name} {fate.get(name, 'was added by hand')}"
        for name in sorted(sealed.keys() | now.keys())
        if sealed.get(name) != now.get(name)
    ]


def is_current(folder: Path, fingerprint: str) -> bool:
    """Tell whether ``folder`` holds the untouched artefacts of this very fingerprint."""
    return sealed_fingerprint(folder) == fingerprint and not differences(folder)
