"""Which files of a folder are train, validation and test: the layouts of collections.

Only names of files are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cfltr_core import checks

SUFFIXES = (".txt", ".svm", ".txt.gz", ".svm.gz")


def fold_of(folder: str | Path, seed: int) -> int | None:
    """The fold, 0 … 4, that ``seed`` reads of a collection in five folds; None where a collection has no folds.

    Seeds of one fold train, validate and test on the same queries.  Only names of files are looked at.
    """
    return layout_of(Path(folder), seed).fold


@dataclass(frozen=True)
class Layout:
    """The files of train, validation and test, or of one group, to be split; and the fold they are, if they are one."""

    groups: list[list[Path]]
    fold: int | None = None


def layout_of(root: Path, seed: int) -> Layout:
    """What ``seed`` reads of the collection in ``root``, or in the one folder inside it that holds one.

    Raises
    ------
    FileNotFoundError
        No such folder.
    ValueError
        For a folder without a known layout, one that lacks the fold, or a file that is there plain and gzip.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from cfltr_book.data.letor.folders import layout_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in ("train", "vali", "test"):
    ...         (Path(folder) / f"{part}.txt").touch()
    ...     [[file.name for file in group] for group in layout_of(Path(folder), seed=0).groups]
    [['train.txt'], ['vali.txt'], ['test.txt']]
    """
    checks.positive_int(seed, "seed", least=0)
    if not root.is_dir():
        raise FileNotFoundError(f"folder: there is no folder {root}")
    if (here := _layout(root, seed % 5)) is not None:
        return here
    inside = [p for p in sorted(root.iterdir()) if p.is_dir()]
    nested = {p.name: found for p in inside if (found := _layout(p, seed % 5)) is not None}
    if len(nested) != 1:
        seen = sorted(_files(root)) or "no SVMlight file"
        what = f", and collections in {sorted(nested)}: name one of these" if nested else ""
        raise ValueError(
            f"folder {root.name!r} holds {seen}{what}: expected S1 … S5, or train / vali / test, or Fold1 … Fold5 "
            f"with these, or a single file, ending in one of {', '.join(SUFFIXES)}"
        )
    return next(iter(nested.values()))


def _layout(root: Path, fold: int) -> Layout | None:
    """The layout of this very folder; None when there is none."""
    files = _files(root)
    parts = [f"S{1 + (fold + i) % 5}" for i in range(5)]
    if all(name in files for name in parts):
        return Layout([[files[name] for name in parts[:3]], [files[parts[3]]], [files[parts[4]]]], fold)
    folds = sorted(p.name for p in root.glob("Fold[1-5]") if p.is_dir())
    if folds and f"Fold{fold + 1}" not in folds:
        raise ValueError(
            f"folder {root.name!r} has {', '.join(folds)} but no Fold{fold + 1}, which the seed asks for: "
            "unpack it, or use a seed whose remainder by 5 is the number of a fold minus 1"
        )
    for inner, chosen in ((f"Fold{fold + 1}", fold), ("sample", None)):
        if (root / inner).is_dir() and (found := _layout(root / inner, fold)) is not None:
            return Layout(found.groups, found.fold if chosen is None else chosen)
    for names in (
        ("train", "vali", "test"),
        ("train", "valid", "test"),
        ("set1.train", "set1.valid", "set1.test"),
    ):
        if all(name in files for name in names):
            return Layout([[files[name]] for name in names])
    return Layout([list(files.values())]) if len(files) == 1 else None


def _files(root: Path) -> dict[str, Path]:
    """The SVMlight files of a folder by the name without ending; ValueError when a file is there plain and gzip."""
    out: dict[str, Path] = {}
    for path in sorted(root.iterdir()):
        if path.name.endswith(SUFFIXES) and path.is_file():
            stem = path.name.removesuffix(".gz").removesuffix(".txt").removesuffix(".svm")
            if stem in out:
                raise ValueError(f"folder {root.name!r} holds {out[stem].name} and {path.name}: keep one of the two")
            out[stem] = path
    return out
