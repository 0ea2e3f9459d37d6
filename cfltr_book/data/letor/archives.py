"""Published LETOR archives, known by their checksum.  Nothing is unpacked or fetched."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cfltr_core.files import sha256_of

# Clicks and dwell time of real users: in a simulation of clicks they give the answer away.
MSLR_LEAKS = (134, 135, 136)


@dataclass(frozen=True)
class KnownArchive:
    """A published archive: enough to tell a whole download from a damaged or another one.

    ``sha256`` is the checksum of its bytes, ``file`` the publisher's name for it and ``bytes`` its size, where they are
    known; ``features``, ``queries`` and ``documents`` count the whole ``collection``, all parts; ``page`` says where it
    is published; ``leaks`` are features to drop before clicks are simulated.  :func:`verify_archive` finds it.
    """

    collection: str
    sha256: str
    file: str | None
    bytes: int | None
    features: int
    queries: int
    documents: int
    page: str
    leaks: tuple[int, ...] = ()


def _known() -> Iterator[KnownArchive]:
    """The archives of ``archives.csv``; what is not known of one is empty there."""
    with Path(__file__).with_name("archives.csv").open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            texts, size = (row["collection"], row["sha256"], row["file"] or None), row["bytes"]
            counts = int(row["features"]), int(row["queries"]), int(row["documents"])
            leaks = tuple(map(int, row["leaks"].split()))
            yield KnownArchive(*texts, int(size) if size else None, *counts, row["page"], leaks)


KNOWN = tuple(_known())


def verify_archive(path: str | Path) -> KnownArchive:
    """Which published archive the file ``path`` is, by its SHA-256.  Nothing is unpacked or fetched.

    Returns
    -------
    KnownArchive

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        Not one of ``KNOWN``: says what differs, and where the collection is published.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cfltr_book.data.letor import verify_archive
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "MSLR-WEB10K.zip"
    ...     size = path.write_bytes(b"half a download")
    ...     try:
    ...         verify_archive(path)
    ...     except ValueError as error:
    ...         print(str(error).partition(" (")[0])
    path: MSLR-WEB10K.zip is not the MSLR-WEB10K that was published: its size differs
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"path: there is no file {file}")
    found, size = sha256_of(file), file.stat().st_size
    for archive in KNOWN:
        if archive.sha256 == found:
            return archive
    for archive in KNOWN:
        if archive.file is not None and archive.file.lower() == file.name.lower():
            what = "its size" if size != archive.bytes else "its content"
            raise ValueError(
                f"path: {file.name} is not the {archive.collection} that was published: {what} differs "
                f"({size:,} bytes for {archive.bytes:,}; sha256 {found[:12]}… for {archive.sha256[:12]}…): "
                f"get it again from {archive.page}"
            )
    pages = "; ".join(f"{a.collection}: {a.page}" for a in KNOWN)
    raise ValueError(f"path: {file.name} ({size:,} bytes, sha256 {found}) is none of the known archives. {pages}")
