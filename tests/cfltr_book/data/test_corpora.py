"""Generated and bundled corpora: reproducible, re-derived by loops, with the promised shape; which seeds count once."""

import dataclasses
from pathlib import Path

import numpy as np
import oracles
import pytest
from kept_text import same_as_kept
from sklearn.datasets import load_digits

from cfltr_book import SCALES, load_corpus
from cfltr_book.data import scales
from cfltr_book.data.corpora import units_of
from cfltr_book.data.letor.folders import fold_of
from cfltr_book.data.scales import check_scale

PARTS = ("train", "validation", "test")


def parts_of(corpus) -> list:
    return [getattr(corpus, name) for name in PARTS]


def test_scales_are_those_of_the_design() -> None:
    lines = [f"{name}.{field} = {value}\n" for name in SCALES for field, value in vars(check_scale(name)).items()]
    same_as_kept(Path(__file__).with_name("scales.txt"), "".join(lines))
    assert all(check_scale(name) is SCALES[name] for name in SCALES)
    with pytest.raises(ValueError, match="scale is 'huge': choose one of smoke, ci, paper"):
        check_scale("huge")
    with pytest.raises(TypeError):
        SCALES["huge"] = SCALES["ci"]
    with pytest.raises(KeyError, match="scale is 'medium': choose one of smoke, ci, paper"):
        SCALES["medium"]
    assert "medium" not in SCALES
    assert SCALES.get("medium") is None


@pytest.mark.parametrize("name", ["yahoo-like", "yahoo-like:mixed", "istella-like", "digits"])
def test_a_corpus_and_its_parts_bear_its_name(name: str) -> None:
    corpus = load_corpus(name, "smoke", seed=0)
    assert [corpus.name, *(part.name for part in parts_of(corpus))] == [name] * 4


@pytest.mark.oracle("corpora.load_corpus")
@pytest.mark.parametrize("seed", [0, 1])
def test_digits_against_loops(seed: int) -> None:
    """Features and relevance from the images themselves; no image serves two parts, no query is its own candidate."""
    bunch = load_digits()
    images = (bunch.data / 16.0).tolist()
    corpus = load_corpus("digits", "smoke", seed=seed)
    loops = oracles.digits(images, bunch.target.tolist(), seed, SCALES["smoke"].digits)
    used: list[set[int]] = []
    for data, (queries, candidates, features, relevance) in zip(parts_of(corpus), loops, strict=True):
        np.testing.assert_array_equal(data.features, np.array(features, dtype=np.float32))
        assert data.relevance.tolist() == relevance
        assert data.offsets.tolist() == [30 * q for q in range(len(queries) + 1)]
        assert len(set(queries)) == len(queries)
        for query, row in zip(queries, candidates, strict=True):
            assert query not in row
            assert len(set(row)) == 30
        used.append(set(queries) | {image for row in candidates for image in row})
    assert used[0].isdisjoint(used[1])
    assert used[0].isdisjoint(used[2])
    assert used[1].isdisjoint(used[2])


@pytest.mark.parametrize("name", SCALES)
def test_every_scale_finds_enough_digits(name: str) -> None:
    """1,797 images: half for training, a sixth for validation, a third for testing; each query is another image."""
    corpus = load_corpus("digits", name, seed=0)
    for data, size, pool in zip(parts_of(corpus), SCALES[name].digits, (898, 300, 599), strict=True):
        assert data.n_queries == size <= pool


def test_training_queries_do_not_change_when_the_test_set_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    smoke = SCALES["smoke"]
    larger = dataclasses.replace(smoke, name="larger", generated=(*smoke.generated[:2], 400))
    before = load_corpus("yahoo-like", "smoke", seed=1)
    monkeypatch.setattr(scales, "SCALES", {"larger": larger})
    after = load_corpus("yahoo-like", "larger", seed=1)
    assert after.test.n_queries == 400
    for name in ("train", "validation"):
        a, b = getattr(before, name), getattr(after, name)
        np.testing.assert_array_equal(a.features, b.features)
        np.testing.assert_array_equal(a.relevance, b.relevance)
        np.testing.assert_array_equal(a.offsets, b.offsets)


@pytest.mark.parametrize(
    ("corpus", "scale", "seed", "message"),
    [
        ("yahoo-like", "huge", 0, "scale is 'huge'"),
        ("yahoo", "ci", 0, "corpus is 'yahoo'"),
        ("digits", "ci", -1, "seed is -1"),
        ("digits", "ci", 1.0, r"seed is 1\.0"),
    ],
)
def test_load_corpus_refuses(corpus: str, scale: str, seed: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_corpus(corpus, scale, seed=seed)


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


@pytest.mark.parametrize("corpus", ["yahoo-like", "istella-like:mixed", "digits"])
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
