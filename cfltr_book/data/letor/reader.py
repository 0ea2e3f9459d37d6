"""LETOR collections: reading files and folders, and what was found in them.

Nothing is downloaded, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cfltr_book.data.letor import svmlight
from cfltr_book.data.letor.folders import layout_of
from cfltr_core import checks
from cfltr_core.ranking.ragged import RankingData

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, kw_only=True)
class ReaderOptions:
    """What the reader does to the values it finds, in the order of the fields.

    Parameters
    ----------
    cap : float
        Values beyond ±cap become ±cap, infinite ones too.  The default is the largest float32: Istella holds
        values near 1.8e308, which would not fit.
    drop : ids of features, from 1
        Left out; the other columns keep their order.  For MSLR ``drop=MSLR_LEAKS`` of :mod:`.archives`.
    log1p : bool
        ``sign(x) · log(1 + |x|)``, for raw counts.
    normalise : bool
        Per query and feature (x − min) / (max − min), and 0 where all documents agree.
    threshold : int, optional
        Grades from here on are relevant in the binary sense; without it 3 when grades go beyond 2, else 1.

    Raises
    ------
    ValueError
        For a cap, a feature id or a threshold that cannot be.

    Examples
    --------
    >>> from cfltr_book.data.letor import ReaderOptions
    >>> from cfltr_book.data.letor.archives import MSLR_LEAKS
    >>> ReaderOptions(drop=MSLR_LEAKS, normalise=True).drop
    (134, 135, 136)
    """

    cap: float = _LARGEST
    drop: tuple[int, ...] = ()
    log1p: bool = False
    normalise: bool = False
    threshold: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.cap, bool) or not (isinstance(self.cap, (int, float)) and 0 < self.cap <= _LARGEST):
            raise ValueError(f"cap is {self.cap!r}: expected a number > 0 that float32 holds, at most {_LARGEST:g}")
        ids = tuple(checks.positive_int(f, f"drop[{i}]") for i, f in enumerate(self.drop))
        if self.threshold is not None:
            checks.positive_int(self.threshold, "threshold")
        # One spelling for equal options, because the key of what is kept is made from it.
        object.__setattr__(self, "cap", float(self.cap))
        object.__setattr__(self, "drop", tuple(sorted(set(ids))))
        object.__setattr__(self, "log1p", bool(self.log1p))
        object.__setattr__(self, "normalise", bool(self.normalise))


@dataclass(frozen=True)
class ReadReport:
    """What was read, and what was done to it.  ``print(report)`` shows it.

    ``without_positive`` counts queries whose grades are all 0, ``without_relevant`` those with no grade at the
    threshold.  ``constant`` and ``dropped`` are ids of features as in the files.  ``capped`` and ``nulls`` count
    values over all features of the files, dropped ones too.  ``duplicates`` counts documents that have the
    features of an earlier document of the same query.
    """

    name: str
    queries: int
    documents: int
    features: int
    single_document: int
    without_positive: int
    without_relevant: int
    threshold: int
    constant: tuple[int, ...]
    dropped: tuple[int, ...]
    capped: int
    nulls: int
    duplicates: int

    def __str__(self) -> str:
        def named(ids: tuple[int, ...]) -> str:
            return f"{len(ids)}" + (f" ({', '.join(map(str, ids))})" if ids else "")

        rows = {
            "queries of one document": f"{self.single_document:,}",
            "queries with grades of 0 only": f"{self.without_positive:,}",
            f"queries without a grade of {self.threshold} or more": f"{self.without_relevant:,}",
            "constant features": named(self.constant),
            "dropped features": named(self.dropped),
            "values capped": f"{self.capped:,}",
            "NULL values read as 0": f"{self.nulls:,}",
            "documents that repeat one of their query": f"{self.duplicates:,}",
        }
        head = f"{self.name}: {self.queries:,} queries, {self.documents:,} documents, {self.features:,} features"
        return "\n".join([head, *(f"  {key:42s} {value}" for key, value in rows.items())])


Report = Callable[[ReadReport], object]


def read_svmlight(
    path: str | Path,
    n_features: int | None = None,
    *,
    options: ReaderOptions | None = None,
    report: Report | None = None,
) -> RankingData:
    """Read one ``label qid:N id:value … # comment`` file, plain or gzip.

    Documents of a query must stand together.  Comments, blank lines, Windows line ends, tabs, ids in any order and
    ``NULL`` (read as 0) are understood; an absent feature is 0.

    Parameters
    ----------
    path : file
    n_features : int, optional
        Number of features, needed when the last ones may be absent from this file.
    options : ReaderOptions, optional
    report : callable, optional
        Called with a :class:`~cfltr_book.data.letor.reader.ReadReport`, for instance ``print``.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        Naming file and line: not SVMlight, no ``qid``, a label that is no grade (whole, 0 … 30), a feature id twice
        in a line, a query that comes back after another one, a damaged gzip stream.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cfltr_book.data.letor import read_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "clicks.txt"
    ...     size = path.write_text("1 qid:7 1:0.5 # A\\n0 qid:7 2:1 # B\\n1 qid:7 1:0.5 2:0.2 # C\\n")
    ...     read_svmlight(path)
    RankingData('clicks.txt': 1 queries, 3 documents, 2 features, relevant from grade 1)
    """
    chosen = options or ReaderOptions()
    data, done = _read(Path(path), n_features, chosen)
    if report is not None:
        report(_survey(data.name, [data], [done], chosen))
    return data


@dataclass(frozen=True)
class _Done:
    """What reading one file did: its features before dropping, and counts."""

    width: int
    capped: int
    nulls: int


def _read(file: Path, n_features: int | None, options: ReaderOptions) -> tuple[RankingData, _Done]:
    if n_features is not None:
        checks.positive_int(n_features, "n_features")
    if not file.is_file():
        raise FileNotFoundError(f"path: there is no file {file}")
    with file.open("rb") as stream:
        found = svmlight.parse(stream, file.name, n_features, options.cap, options.drop)
    if found.features.shape[1] == 0:
        raise ValueError(f"drop: {file.name} has {found.width} features, and all are dropped; keep one")
    if options.log1p or options.normalise:
        _transform(found.features, found.offsets, options)
    data = RankingData(
        found.features, found.grades, offsets=found.offsets, threshold=_threshold(found.grades, options), name=file.name
    )
    return data, _Done(found.width, found.capped, found.nulls)


def _threshold(grades: NDArray[np.int8], options: ReaderOptions) -> int:
    return options.threshold or (3 if grades.max() > 2 else 1)


def _transform(features: NDArray[np.float32], offsets: checks.IntArray, options: ReaderOptions) -> None:
    """Change ``features`` in place, computing in float64, some queries at a time so that little memory is needed."""
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + 256, side="right")) - 1)
        cuts = offsets[first : last + 1] - offsets[first]
        part = features[offsets[first] : offsets[last]]
        x = part.astype(np.float64)
        if options.log1p:
            x = np.copysign(np.log1p(np.abs(x)), x)
        if options.normalise:
            low = np.minimum.reduceat(x, cuts[:-1], axis=0)
            span = np.maximum.reduceat(x, cuts[:-1], axis=0) - low
            span[span == 0] = 1.0
            sizes = np.diff(cuts)
            x = (x - np.repeat(low, sizes, axis=0)) / np.repeat(span, sizes, axis=0)
        part[:] = x
        first = last


def _survey(name: str, parts: Sequence[RankingData], done: Sequence[_Done], options: ReaderOptions) -> ReadReport:
    """The report on ``parts``, which are as wide as each other."""
    width = max(d.width for d in done)
    ids = [i for i in range(1, width + 1) if i not in options.drop]
    low = np.min([p.features.min(axis=0) for p in parts], axis=0)
    high = np.max([p.features.max(axis=0) for p in parts], axis=0)
    best = np.concatenate([np.maximum.reduceat(p.relevance, p.offsets[:-1]) for p in parts])
    repeated = 0
    for p in parts:
        for begin, end in zip(p.offsets[:-1].tolist(), p.offsets[1:].tolist(), strict=True):
            rows = p.features[begin:end] + np.float32(0.0)  # −0 becomes 0: equal numbers, equal bytes
            repeated += end - begin - len({row.tobytes() for row in rows})
    return ReadReport(
        name=name,
        queries=sum(p.n_queries for p in parts),
        documents=sum(p.n_docs for p in parts),
        features=parts[0].features.shape[1],
        single_document=sum(int((np.diff(p.offsets) == 1).sum()) for p in parts),
        without_positive=int((best == 0).sum()),
        without_relevant=int((best < parts[0].threshold).sum()),
        threshold=parts[0].threshold,
        constant=tuple(i for i, same in zip(ids, low == high, strict=True) if same),
        dropped=tuple(i for i in options.drop if i <= width),
        capped=sum(d.capped for d in done),
        nulls=sum(d.nulls for d in done),
        duplicates=repeated,
    )


def read_collection(
    folder: str | Path,
    seed: int,
    *,
    options: ReaderOptions | None = None,
    report: Report | None = None,
) -> tuple[RankingData, RankingData, RankingData]:
    """Train, validation and test of the collection in ``folder``, or in the one folder inside it that holds one.

    Layouts: five parts ``S1 … S5`` (LETOR 4.0: fold k takes three consecutive parts for training and the next
    two for validation and test; ``seed`` modulo 5 chooses the fold); ``Fold1 … Fold5`` (MSLR), ``sample``
    (Istella-S) or the folder itself with ``train``, ``vali`` or ``valid``, and ``test``, also as ``set1.train`` …
    (Yahoo); or a single file, whose queries ``seed`` splits at random 60 / 20 / 20.

    ``options`` and ``report`` are those of :func:`read_svmlight`; the report is on all files together.
    The parts get one number of features and one threshold, whatever each lacks.

    Raises
    ------
    FileNotFoundError
        No such folder.
    ValueError
        For a folder without a known layout, too few queries to split, and as :func:`read_svmlight`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cfltr_book.data.letor import read_collection
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in ("train", "vali", "test"):
    ...         size = (Path(folder) / f"{part}.txt").write_text("1 qid:1 1:0.5\\n0 qid:1 1:0.1\\n")
    ...     train, validation, test = read_collection(folder, seed=0)
    >>> train.n_queries, test.n_docs
    (1, 2)
    """
    root, chosen = Path(folder), options or ReaderOptions()
    read = [[_read(file, None, chosen) for file in group] for group in layout_of(root, seed).groups]
    done = [d for group in read for _, d in group]
    parts = [group[0][0] if len(group) == 1 else concatenate([data for data, _ in group]) for group in read]
    parts = _aligned(*parts)
    if report is not None:
        report(_survey(root.name, parts, done, chosen))
    if len(parts) == 1:
        order = np.random.default_rng([seed, 20]).permutation(parts[0].n_queries)
        cuts = [round(0.6 * len(order)), round(0.8 * len(order))]
        if min(cuts[0], cuts[1] - cuts[0], len(order) - cuts[1]) == 0:
            raise ValueError(f"folder {root.name!r} holds {len(order)} queries: too few to split into three parts")
        parts = [parts[0].subset(np.sort(part)) for part in np.split(order, cuts)]
    train, validation, test = parts
    return train, validation, test


def concatenate(parts: list[RankingData]) -> RankingData:
    """One collection from several, queries in order; a narrower part is filled up with zeros."""
    parts = _aligned(*parts)
    sizes = np.concatenate([np.diff(p.offsets) for p in parts])
    return RankingData(
        np.concatenate([p.features for p in parts]),
        np.concatenate([p.relevance for p in parts]),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        threshold=parts[0].threshold,
        name=parts[0].name,
    )


def _aligned(*parts: RankingData) -> list[RankingData]:
    """The parts with one number of features and one threshold: a part alone may lack the last or the top grade."""
    width = max(p.features.shape[1] for p in parts)
    threshold = max(p.threshold for p in parts)
    return [
        p
        if (p.features.shape[1], p.threshold) == (width, threshold)
        else replace(p, features=np.pad(p.features, ((0, 0), (0, width - p.features.shape[1]))), threshold=threshold)
        for p in parts
    ]
