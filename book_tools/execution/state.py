"""How a run stands: executed by one process at a time, sealed chapter by chapter, and fresh or stale.

The stamp of an executed chapter has its fingerprint, and the digest of every artefact it left.  It is written last into
the scratch folder, and the folder is then renamed as a whole: a folder with a stamp is complete, a folder without one
is not there.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from book_tools.book import Book
from book_tools.errors import Problems, UsageError
from book_tools.execution.fingerprint import fingerprints
from book_tools.files import files_below, json_text, read_json
from book_tools.parameters import KNOWN, Parameters
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


@contextmanager
def exclusive(book: Book) -> Iterator[None]:
    """Hold the lock of ``book``; the system releases it when the process ends, however it ends.

    Two runs at a time would remove each other's scratch folders.
    """
    book.run.mkdir(parents=True, exist_ok=True)
    with (book.run / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError("another run of this book is in progress; wait for it or stop it") from None
        yield


def fresh_run(book: Book, otherwise: str, wanted: list[str] | None = None) -> Parameters:
    """Return the parameters of the present run.

    Raises
    ------
    UsageError
        Where one of the ``wanted`` chapters (all when empty) was not executed, or is not as its sources are now, with
        all that is wrong; ``otherwise`` says at its end what cannot be done therefore.
    """
    chapters = book.select(wanted or [])
    manifest = read_json(book.manifest)
    if any(name not in manifest for name in KNOWN):
        raise UsageError("no run exists; start one with 'make book'", otherwise)
    parameters = Parameters(**{name: manifest[name] for name in KNOWN})
    try:
        prints = fingerprints(book, parameters)
    except UsageError as error:
        # The collection of a run is not where it was, for one.
        raise UsageError(*error.problems, f"the present run has {parameters}; run 'make book' to replace it") from None
    problems = Problems()
    for chapter in chapters:
        folder = book.folder_of(chapter)
        fingerprint = sealed_fingerprint(folder)
        if fingerprint is None:
            wrong = ["not executed"]
        elif fingerprint != prints[chapter.name]:
            wrong = ["the run is stale, its sources, versions or parameters have changed since"]
        else:
            wrong = [f"{difference} after the run" for difference in differences(folder)]
        problems += [f"{chapter.name}: {what}; run 'make book'" for what in wrong]
    problems.raise_any(UsageError, otherwise)
    return parameters
