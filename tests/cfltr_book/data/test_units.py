"""Which seeds read the same fold of a collection, and count once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oracles
import pytest

from cfltr_book.data.corpora import units_of
from cfltr_book.data.letor.folders import fold_of

SEEDS = [0, 1, 2, 3, 4, 5, 6, 9, 10, 3]
LAYOUTS = {
    "five parts": [f"S{i}.txt" for i in range(1, 6)],
    "five folds": [f"Fold{k}/{part}.txt" for k in range(1, 6) for part in ("train", "vali", "test")],
    "five folds of one file": [f"Fold{k}/all.txt" for k in range(1, 6)],
    "one split": ["train.txt", "vali.txt", "test.txt"],
    "one split, Istella": ["sample/train.txt", "sample/vali.txt", "sample/test.txt"],
    "one split, Yahoo": ["set1.train.txt", "set1.valid.txt", "set1.test.txt"],
    "one file": ["all.txt"],
}


@pytest.mark.oracle("folders.fold_of", "corpora.units_of")
@pytest.mark.parametrize("nest", ["", "as-unpacked/"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_seeds_that_read_the_same_fold_are_one_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: str, nest: str
) -> None:
    """Only names are looked at: the files are empty."""
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    for name in LAYOUTS[layout]:
        path = tmp_path / "mine" / nest / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = units_of("letor:mine@2,normalise", SEEDS)
    assert found.dtype == np.int64
    if layout.startswith("five"):
        parts = [oracles.collection_layout([f"S{i}" for i in range(1, 6)], seed) for seed in SEEDS]
        for a, one in zip(found.tolist(), parts, strict=True):
            for b, other in zip(found.tolist(), parts, strict=True):
                assert (a == b) == (one == other)
        assert found.tolist() == [fold_of(tmp_path / "mine", seed) for seed in SEEDS]
    else:
        assert found.tolist() == SEEDS
        assert {fold_of(str(tmp_path / "mine"), seed) for seed in SEEDS} == {None}


@pytest.mark.parametrize("corpus", ["yahoo-like", "istella-like:conflict", "digits"])
def test_other_seeds_are_other_populations_or_splits(corpus: str) -> None:
    assert units_of(corpus, SEEDS).tolist() == SEEDS
    assert units_of(corpus, iter(range(3))).tolist() == [0, 1, 2]
    assert units_of(corpus, []).tolist() == []


def test_units_that_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="corpus is 'yahoo': choose"):
        units_of("yahoo", [0])
    for seeds, message in (([0, -1], r"seeds\[1\] is -1"), ([0.5], r"seeds\[0\] is 0\.5")):
        with pytest.raises(ValueError, match=f"{message}: expected a whole number of at least 0"):
            units_of("digits", seeds)
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    (tmp_path / "mine" / "Fold1").mkdir(parents=True)
    (tmp_path / "mine" / "Fold1" / "all.txt").touch()
    assert units_of("letor:mine", [0, 5]).tolist() == [0, 0]
    with pytest.raises(ValueError, match="has Fold1 but no Fold2, which the seed asks for"):
        units_of("letor:mine", [0, 1])
    with pytest.raises(FileNotFoundError, match="folder: there is no folder"):
        fold_of(tmp_path / "absent", 0)
