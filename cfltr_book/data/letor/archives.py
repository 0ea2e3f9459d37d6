"""Published LETOR archives, known by their checksum.  Nothing is unpacked or fetched."""

from __future__ import annotations

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


_MICROSOFT = "the page 'Microsoft Learning to Rank Datasets' of Microsoft Research (Microsoft Research Licence)"
_ISTELLA = "the page 'Istella LETOR' of the Istella search engine (Istella LETOR Licence, non-commercial use)"
_YAHOO = "Yahoo Webscope, dataset C14B 'Yahoo! Learning to Rank Challenge' (on request, by its data sharing agreement)"

KNOWN = (
    KnownArchive(
        collection="MSLR-WEB10K",
        sha256="2902142ea33f18c59414f654212de5063033b707d5c3939556124b1120d3a0ba",
        file="MSLR-WEB10K.zip",
        bytes=1_234_144_912,
        features=136,
        queries=10_000,
        documents=1_200_193,
        page=_MICROSOFT,
        leaks=MSLR_LEAKS,
    ),
    KnownArchive(
        collection="MSLR-WEB30K",
        sha256="08cb7977e1d5cbdeb57a9a2537a0923dbca6d46a76db9a6afc69e043c85341ae",
        file="MSLR-WEB30K.zip",
        bytes=3_849_406_307,
        features=136,
        queries=31_531,
        documents=3_771_126,
        page=_MICROSOFT,
        leaks=MSLR_LEAKS,
    ),
    KnownArchive(
        collection="Istella-S",
        sha256="41b21116a3650cc043dbe16f02ee39f4467f9405b37fdbcc9a6a05e230a38981",
        file="istella-s-letor.tar.gz",
        bytes=472_129_615,
        features=220,
        queries=33_018,
        documents=3_408_630,
        page=_ISTELLA,
    ),
    KnownArchive(
        collection="Istella",
        sha256="d45899d9a6a0e48afb250aac7ee3dc50e73e263687f15761d754515cd8284e0b",
        file="istella-letor.tar.gz",
        bytes=1_288_401_248,
        features=220,
        queries=33_018,
        documents=10_454_629,
        page=_ISTELLA,
    ),
    # Two packings of set 1 circulate, under several names.
    *(
        KnownArchive(
            collection=f"Yahoo C14B set 1 ({packing})",
            sha256=sha256,
            file=None,
            bytes=None,
            features=699,
            queries=29_921,
            documents=709_877,
            page=_YAHOO,
        )
        for packing, sha256 in (
            (".tgz", "d82bcaa8eae8f89db88c87a9fce819ec6fa86dba3fa8b09e531364cc23f916a7"),
            (".tar.bz2", "2d96b587828f5a4d43c508ba7ec3412a760b9be798f69313b38516544a33a6de"),
        )
    ),
)


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
