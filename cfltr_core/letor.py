"""LETOR collections: SVMlight files with ``qid``, read through scikit-learn."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from cfltr_core import checks
from cfltr_core.ragged import RankingData

SUFFIXES = (".txt", ".svm", ".txt.gz", ".svm.gz")


def read_svmlight(path: str | Path, n_features: int | None = None) -> RankingData:
    """Read one ``label qid:N 1:x 2:y … # comment`` file, plain or gzip.

    Documents of a query must stand together.  The threshold of binary relevance is 3 when grades go beyond
    2, else 1.

    Parameters
    ----------
    path : file
    n_features : int, optional
        Number of features, needed when the last ones may be absent from this file.

    Raises
    ------
    FileNotFoundError
        No such file.
    ValueError
        Not SVMlight, no ``qid``, labels that are not grades, a query that comes back after another one.
    """
    from sklearn.datasets import load_svmlight_file

    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"path: there is no file {file}")
    try:
        features, grades, qid = load_svmlight_file(
            str(file), n_features=n_features, query_id=True, zero_based=False, dtype=np.float64
        )
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"path: {file.name} is not an SVMlight file with qid ({error})") from error
    if len(grades) == 0:
        raise ValueError(f"path: {file.name} holds no document")
    if len(qid) != len(grades):
        raise ValueError(
            f"path: {file.name} has {len(grades)} documents but {len(qid)} with a qid; every line needs one"
        )
    checks.counts(grades, len(grades), f"labels of {file.name}")
    starts = np.flatnonzero(np.diff(qid, prepend=qid[0] - 1))
    if len(np.unique(qid[starts])) != len(starts):
        first, again = _first_return(qid[starts])
        raise ValueError(
            f"path: in {file.name} query {qid[starts][first]} comes back at line {starts[again] + 1} "
            "(comments not counted): sort the file by qid"
        )
    return RankingData(
        features.toarray(),
        grades.astype(np.int64),
        np.append(starts, len(grades)),
        threshold=3 if grades.max() > 2 else 1,
        name=file.name,
    )


def _first_return(values: np.ndarray) -> tuple[int, int]:
    seen: dict[int, int] = {}
    for index, value in enumerate(values.tolist()):
        if value in seen:
            return seen[value], index
        seen[value] = index
    raise AssertionError("no repeated value")


def read_collection(folder: str | Path, seed: int) -> tuple[RankingData, RankingData, RankingData]:
    """Train, validation and test of the collection in ``folder``.

    Layouts: five parts ``S1 … S5`` (LETOR 4.0: fold k takes three consecutive parts for training and the next
    two for validation and test; ``seed`` modulo 5 chooses the fold); ``Fold1 … Fold5`` or one folder with
    ``train``, ``vali`` or ``valid``, and ``test`` (MSLR, Istella-S, Yahoo ``set1.*``); or a single file, whose
    queries ``seed`` splits at random 60 / 20 / 20.
    """
    root = Path(folder)
    files = {_stem(p): p for p in sorted(root.iterdir()) if p.name.endswith(SUFFIXES)}
    fold = seed % 5
    parts = [files.get(f"S{1 + (fold + i) % 5}") for i in range(5)]
    if all(parts):
        read = [read_svmlight(p) for p in parts if p is not None]
        first, second, third = _aligned(concatenate(read[:3]), read[3], read[4])
        return first, second, third
    if (root / f"Fold{fold + 1}").is_dir():
        return read_collection(root / f"Fold{fold + 1}", seed)
    if (root / "sample").is_dir():
        return read_collection(root / "sample", seed)
    for train, valid, test in (
        ("train", "vali", "test"),
        ("train", "valid", "test"),
        ("set1.train", "set1.valid", "set1.test"),
    ):
        if train in files and valid in files and test in files:
            first, second, third = _aligned(*(read_svmlight(files[name]) for name in (train, valid, test)))
            return first, second, third
    if len(files) == 1:
        whole = read_svmlight(next(iter(files.values())))
        order = np.random.default_rng([seed, 20]).permutation(whole.n_queries)
        cuts = [round(0.6 * len(order)), round(0.8 * len(order))]
        train_q, valid_q, test_q = (np.sort(part) for part in np.split(order, cuts))
        return whole.subset(train_q), whole.subset(valid_q), whole.subset(test_q)
    raise ValueError(
        f"folder {root.name!r} holds {sorted(files) or 'no SVMlight file'}: expected S1 … S5, or train / vali / test, "
        f"or a single file, ending in one of {', '.join(SUFFIXES)}"
    )


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".svm")


def concatenate(parts: list[RankingData]) -> RankingData:
    """One collection from several, queries in order; a narrower part is filled up with zeros."""
    parts = _aligned(*parts)
    sizes = np.concatenate([np.diff(p.offsets) for p in parts])
    return RankingData(
        np.concatenate([p.features for p in parts]),
        np.concatenate([p.relevance for p in parts]),
        np.concatenate([[0], np.cumsum(sizes)]),
        threshold=parts[0].threshold,
        name=parts[0].name,
    )


def _aligned(*parts: RankingData) -> list[RankingData]:
    """The parts with one number of features and one threshold: a part alone may lack the last or the top grade."""
    width = max(p.features.shape[1] for p in parts)
    threshold = max(p.threshold for p in parts)
    return [
        RankingData(
            np.pad(p.features, ((0, 0), (0, width - p.features.shape[1]))), p.relevance, p.offsets, threshold, p.name
        )
        for p in parts
    ]
