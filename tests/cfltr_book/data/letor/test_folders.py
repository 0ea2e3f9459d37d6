"""Folders as they are published, the names of corpora that are read from them, archives, and real collections."""

import gzip
import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import oracles
import pytest

from cfltr_book import SCALES, Run, load_corpus
from cfltr_book.data import corpora, memory
from cfltr_book.data.corpora import check_corpus, letor_folder
from cfltr_book.data.letor import ReaderOptions, archives, read_collection, read_svmlight, verify_archive
from cfltr_book.data.letor.archives import KNOWN, KnownArchive
from cfltr_book.data.letor.folders import layout_of
from cfltr_book.data.letor.reader import concatenate
from cfltr_core import ndcg


def write(path: Path, features: list, grades: list[int], queries: list[int]) -> str:
    """Write a file, zipped if its name says so, and return its text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = oracles.svmlight_text(features, grades, queries)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return text


def write_one(path: Path, value: float, n_queries: int = 1) -> None:
    """A small file whose first feature tells it from the others."""
    write(path, [[value] * 2] * n_queries, [1] * n_queries, list(range(1, n_queries + 1)))


LAYOUTS = {
    "MSLR": ["Fold{k}/train.txt", "Fold{k}/vali.txt", "Fold{k}/test.txt"],
    "MSLR, zipped": ["Fold{k}/train.txt.gz", "Fold{k}/vali.txt.gz", "Fold{k}/test.txt.gz"],
    "MQ2008": ["S{k}.svm.gz"],
    "Istella-S": ["sample/train.txt", "sample/vali.txt", "sample/test.txt"],
    "Yahoo": ["set1.train.txt", "set1.valid.txt", "set1.test.txt"],
}


@pytest.mark.oracle("reader.read_collection")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("nest", ["", "as-unpacked/"])
def test_layouts_nested_one_folder_down(tmp_path: Path, layout: str, nest: str) -> None:
    for k in range(1, 6):
        for j, name in enumerate(LAYOUTS[layout]):
            write_one(tmp_path / nest / name.format(k=k), 10 * k * ("{k}" in name) + j + 1)
    (tmp_path / "licence").mkdir()
    (tmp_path / "licence" / "terms.pdf").write_bytes(b"%PDF")
    for seed in range(7):
        found = [p.features[:, 0].tolist() for p in read_collection(tmp_path, seed)]
        if layout == "MQ2008":
            names = oracles.collection_layout([f"S{i}" for i in range(1, 6)], seed)
            assert found == [[10 * int(name[1]) + 1 for name in group] for group in names]
            assert layout_of(tmp_path, seed).fold == seed % 5
        else:
            fold = 10 * (seed % 5 + 1) * ("{k}" in LAYOUTS[layout][0])
            assert found == [[fold + 1], [fold + 2], [fold + 3]]


@pytest.mark.oracle("reader.concatenate")
def test_features_absent_from_one_part_and_dropped_ones(tmp_path: Path) -> None:
    """A dropped feature is the same one in every part, however narrow the part."""
    rows = {"train": "1 qid:1 1:1 2:2 3:3 5:5", "vali": "0 qid:1 1:1 2:2", "test": "2 qid:1 1:1 3:3"}
    for name, row in rows.items():
        (tmp_path / f"{name}.txt").write_text(row, encoding="ascii")
    options = ReaderOptions(drop=(2, 4))
    parts = read_collection(tmp_path, 0, options=options)
    literal = [oracles.svmlight_parse(row, 5)[0][0] for row in rows.values()]
    assert [p.features[0].tolist() for p in parts] == [[r[0], r[2], r[4]] for r in literal]
    whole = concatenate([read_svmlight(tmp_path / f"{name}.txt", options=options) for name in rows])
    assert whole.features.tolist() == [[r[0], r[2], r[4]] for r in literal]


def test_folders_that_are_refused(tmp_path: Path) -> None:
    def refused(folder: str, message: str, seed: int = 0) -> None:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            read_collection(tmp_path / folder, seed)

    def written(folder: str, *names: str) -> None:
        for name in names:
            write_one(tmp_path / folder / name, 1, n_queries=2)

    refused("absent", "folder: there is no folder")
    refused("", "seed is -1: expected a whole number of at least 0", seed=-1)
    refused("", r"holds no SVMlight file: expected S1 … S5, or train / vali / test.*\.svm\.gz")
    for name in ("one", "two"):
        written(name, "train.txt", "vali.txt", "test.txt")
    refused("", r"collections in \['one', 'two'\]: name one of these")
    written("one", "test.txt.gz")
    refused("one", r"holds test\.txt and test\.txt\.gz: keep one of the two")
    written("other", "train.txt", "other.txt")
    refused("other", r"holds \['other', 'train'\]: expected S1 … S5")
    written("three", *(f"Fold1/{part}.txt" for part in ("train", "vali", "test")))
    assert read_collection(tmp_path / "three", 5)[0].n_docs == 2
    refused("three", "has Fold1 but no Fold3, which the seed asks for: unpack it", seed=2)
    written("small", "all.txt")
    refused("small", "holds 2 queries: too few to split into three parts")


def test_a_corpus_uses_the_cache_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CFLTR_CACHE", str(tmp_path / "cache"))
    for i in range(1, 6):
        write_one(tmp_path / "data" / "mine" / f"S{i}.svm", i)
    first = load_corpus("letor:mine", "smoke", seed=3)
    with monkeypatch.context() as unread:
        unread.setattr(corpora, "read_collection", None)  # the text is not read again
        again = load_corpus("letor:mine", "smoke", seed=3)
    for a, b in ((first.train, again.train), (first.validation, again.validation), (first.test, again.test)):
        np.testing.assert_array_equal(a.features, b.features)
        assert a.name == b.name
    write_one(tmp_path / "data" / "mine" / "S4.svm", 40)
    assert load_corpus("letor:mine", "smoke", seed=3).train.features[0, 0] == 40.0


def test_a_large_collection_is_cut_to_whole_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part loses the same share, its queries keep their documents, and the seed draws which are left."""
    monkeypatch.setitem(SCALES._scales, "smoke", replace(SCALES["smoke"], collection_values=1e5))
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    n_queries = 2 * int(SCALES["smoke"].collection_values) // 1_000 + 8  # two documents of 1,000 features each
    for part, n in (("train", n_queries), ("vali", 40), ("test", 60)):
        rows = [[float(d)] + [1.0] * 999 for d in range(2 * n)]
        queries = [1 + d // 2 for d in range(2 * n)]
        write(tmp_path / "large" / f"{part}.txt", rows, [d % 2 for d in range(2 * n)], queries)
    whole, cut, other = (load_corpus("letor:large", s, seed=k) for s, k in (("paper", 0), ("smoke", 0), ("smoke", 1)))
    share = 1 / (2 * n_queries * 1_000 / SCALES["smoke"].collection_values)
    assert (whole.share, whole.train.n_queries) == (1.0, n_queries)
    assert cut.share == other.share == share
    for part, n in ((cut.train, n_queries), (cut.validation, 40), (cut.test, 60)):
        assert part.n_queries == np.ceil(share * n)
        pairs = part.features[:, 0].reshape(-1, 2)
        assert set(pairs[:, 0] % 2) == {0.0}
        np.testing.assert_array_equal(pairs[:, 1], pairs[:, 0] + 1)
        assert np.all(np.diff(pairs[:, 0]) > 0)
        np.testing.assert_array_equal(part.relevance, [0, 1] * part.n_queries)
    assert not np.array_equal(cut.train.features, other.train.features)
    assert f"{share:.0%} of the queries)" in Run("smoke", "letor:large").setting_of([0, 1])


def test_numbers_and_pairs_say_how_large_a_collection_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of 30, 60 and 90 documents: what more than fills a scale is drawn from, what is large has smaller logs."""
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    lengths = [30, 60, 90, 60] * 5
    queries = [1 + q for q, n in enumerate(lengths) for _ in range(n)]
    rows = [[float(d), 1.0] for d in range(len(queries))]
    for part in ("train", "vali", "test"):
        write(tmp_path / "long" / f"{part}.txt", rows, [d % 2 for d in range(len(rows))], queries)
    pairs, numbers, whole = sum(n * n for n in lengths), 2 * sum(lengths), SCALES["ci"]
    for filled, values, most, large in (
        (0.2, math.inf, pairs * 5, False),
        (0.25, math.inf, pairs * 4, True),
        (0.25, numbers * 8, pairs * 8, True),
        (1.0, numbers, math.inf, True),
        (4.0, math.inf, pairs / 4, True),
        (5.0, numbers / 2, pairs / 3, True),
    ):
        monkeypatch.setitem(SCALES._scales, "ci", replace(whole, collection_values=values, collection_pairs=most))
        memory._kept.clear()
        run = Run("ci", "letor:long")
        data, size = run.load(0), run.size
        assert (data.share, data.train.n_queries) == (1 / max(1, filled), len(lengths) / max(1, filled))
        assert set(np.diff(data.train.offsets).tolist()) <= {30, 60, 90}
        assert SCALES["ci"].fill(read_collection(tmp_path / "long", 0)[0]) == filled
        assert size == SCALES["ci"].for_collection(data.train)
        assert replace(size, **(whole.large_collection if large else whole.collection)) == size
        assert (size.sgd_steps < whole.sgd_steps, size.light_seeds < 5, size.clicks < whole.clicks) == (large,) * 3
        assert (len(run.seeds), len(run.learning_seeds)) == (size.light_seeds, size.seeds)


# --- archives -----------------------------------------------------------------------------------------


@pytest.mark.oracle("archives.verify_archive")
def test_an_archive_is_known_by_its_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = oracles.svmlight_text([[0.5]], [1], [1]).encode()
    mine = KnownArchive(
        collection="Mine",
        sha256=hashlib.sha256(content).hexdigest(),
        file="Mine.zip",
        bytes=len(content),
        features=1,
        queries=1,
        documents=1,
        page="the page 'Mine' of the publisher",
    )
    monkeypatch.setattr(archives, "KNOWN", (*KNOWN, mine))
    for name in ("Mine.zip", "renamed.bin"):
        (tmp_path / name).write_bytes(content)
        assert verify_archive(tmp_path / name) == mine
    for wrong, what in ((content[:-1], "its size differs"), (content[:-1] + b"!", "its content differs")):
        (tmp_path / "mine.ZIP").write_bytes(wrong)
        with pytest.raises(ValueError, match=rf"mine\.ZIP is not the Mine that was published: {what}.*page 'Mine'"):
            verify_archive(tmp_path / "mine.ZIP")
    (tmp_path / "other.zip").write_bytes(b"other")
    with pytest.raises(ValueError, match=r"other\.zip .*is none of the known archives.*MSLR-WEB10K: the page"):
        verify_archive(str(tmp_path / "other.zip"))
    with pytest.raises(FileNotFoundError, match="path: there is no file"):
        verify_archive(tmp_path)


def test_the_table_of_archives() -> None:
    assert len({a.sha256 for a in KNOWN}) == len(KNOWN) == 6
    for archive in KNOWN:
        assert len(archive.sha256) == 64
        assert set(archive.sha256) <= set("0123456789abcdef")
        assert (archive.file is None) == (archive.bytes is None)
        assert "//" not in archive.page
    assert [a.leaks for a in KNOWN if "MSLR" in a.collection] == [(134, 135, 136)] * 2
    for archive, publisher in zip(KNOWN, ["Microsoft"] * 2 + ["Istella"] * 2 + ["Yahoo"] * 2, strict=True):
        assert publisher in archive.page


# --- real data ----------------------------------------------------------------------------------------


def test_ridge_regression_on_mq2008(real: Callable[[str], Path]) -> None:
    """Five-fold nDCG@10, gain 2^y − 1, queries without positives left out: .679, as others measured."""
    folder, values = real("mq2008"), []
    for fold in range(5):
        train, _, test = read_collection(folder, fold)
        x = train.features.astype(np.float64)
        mean = x.mean(axis=0)
        y = train.relevance - train.relevance.mean()
        weights = np.linalg.solve((x - mean).T @ (x - mean) + np.eye(x.shape[1]), (x - mean).T @ y)
        scores = (test.features - mean) @ weights
        values.append(ndcg(scores, test.offsets, relevance=test.relevance, cutoff=10, empty="drop").mean)
    assert np.mean(values) == pytest.approx(0.679, abs=0.005)


def some_data(seed: int, n_queries: int = 6, n_features: int = 4, top: int = 2) -> tuple[list, list, list]:
    """Features, grades (every one from 0 to ``top`` occurs) and query of each document."""
    rng = np.random.default_rng(seed)
    query = [q for q in range(n_queries) for _ in range(int(rng.integers(1, 5)))]
    grades = [d % (top + 1) for d in range(len(query))]
    features = np.round(rng.normal(size=(len(query), n_features)), 3)
    features[:, -1] += 9  # never 0: the last feature stands in every file
    return features.tolist(), grades, [100 + 3 * q for q in query]


def write_some(path: Path, seed: int, **sizes: int) -> str:
    return write(path, *some_data(seed, **sizes))


@pytest.mark.oracle("reader.concatenate")
def test_concatenate(tmp_path: Path) -> None:
    """A narrower part is filled up with zeros; the highest threshold holds for all."""
    sizes = [{"n_features": 4, "top": 2}, {"n_features": 6, "top": 4}, {"n_features": 5, "top": 1}]
    texts = [write_some(tmp_path / f"{i}.txt", i, **size) for i, size in enumerate(sizes)]
    whole = concatenate([read_svmlight(tmp_path / f"{i}.txt") for i in range(3)])
    parts = [oracles.svmlight_parse(text, 6) for text in texts]
    np.testing.assert_array_equal(whole.features, np.float32([row for part in parts for row in part[0]]))
    assert whole.relevance.tolist() == [grade for part in parts for grade in part[1]]
    lengths = [n for part in parts for n in oracles.lengths(part[2])]
    assert np.diff(whole.offsets).tolist() == lengths
    assert (whole.threshold, whole.name) == (3, "0.txt")


@pytest.mark.parametrize("seed", [0, 1])
def test_a_single_file_is_split_by_query(tmp_path: Path, seed: int) -> None:
    write_some(tmp_path / "all.svm.gz", 0, n_queries=13)
    whole = read_svmlight(tmp_path / "all.svm.gz")
    documents = oracles.lists(whole.offsets.tolist())
    parts = oracles.split_queries(13, seed)
    assert [len(part) for part in parts] == [8, 2, 3]
    for data, queries in zip(read_collection(tmp_path, seed), parts, strict=True):
        rows = [d for q in queries for d in documents[q]]
        np.testing.assert_array_equal(data.features, whole.features[rows])
        assert data.relevance.tolist() == [whole.relevance[d] for d in rows]
        assert np.diff(data.offsets).tolist() == [len(documents[q]) for q in queries]


@pytest.mark.oracle("corpora.letor_folder", "corpora.check_corpus")
def test_the_folder_of_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(corpus: str, message: str) -> None:
        for function in (check_corpus, letor_folder):
            with pytest.raises(ValueError, match=message):
                function(corpus)

    monkeypatch.delenv("CFLTR_DATA", raising=False)
    refused("letor:mine", "'letor:mine', but the environment variable CFLTR_DATA is not set")
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path / "absent"))
    refused("letor:mine", f"'letor:mine', but there is no folder {tmp_path / 'absent'}, which CFLTR_DATA")
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    looked_at = f"but there is no folder {tmp_path / 'mine'}: CFLTR_DATA is {tmp_path}, which holds"
    refused("letor:mine", f"{looked_at} no folder")
    for name in ("yours", "theirs"):
        (tmp_path / name).mkdir()
    (tmp_path / "a file").touch()
    refused("letor:mine@2,normalise", f"'letor:mine@2,normalise', {looked_at} theirs, yours; name one")
    texts = {name: write_some(tmp_path / "mine" / f"{name}.txt", i) for i, name in enumerate(("train", "vali", "test"))}
    for name in ("letor:mine", "letor:mine@1,log1p"):
        assert (letor_folder(name), check_corpus(name)) == ((tmp_path / "mine").resolve(), name)
    corpus = load_corpus("letor:mine", "smoke", seed=0)
    for data, text in zip((corpus.train, corpus.validation, corpus.test), texts.values(), strict=True):
        features, grades, offsets = oracles.svmlight_parse(text, 4)
        np.testing.assert_array_equal(data.features, np.array(features, dtype=np.float32))
        assert (data.relevance.tolist(), data.offsets.tolist()) == (grades, offsets)
    for other in ("letor:", "letor:@2", "letor", "mine", ""):
        with pytest.raises(ValueError, match="choose yahoo-like, digits or letor:<folder>"):
            check_corpus(other)
    assert [check_corpus(name) for name in ("yahoo-like", "digits")] == ["yahoo-like", "digits"]


UNKNOWN = ["", "0", "1.5", "-1", "+1", "\u0663", "9" * 5000, "normalize", "normalise=1", " normalise", "drop", "drop="]
UNKNOWN += ["drop=0", "drop=1+", "drop=1;2", "cap=3", "2@3"]
TWICE = {"2,3": "'3' names threshold", "log1p,2,log1p": "'log1p' names", "drop=1,drop=2": "'drop=2' names"}


def test_options_that_cannot_stand_in_the_name_of_a_corpus() -> None:
    texts = {text: f"{option!r} is no option" for option in UNKNOWN for text in (option, f"log1p,{option},2")}
    for text, words in {**texts, **TWICE}.items():
        with pytest.raises(ValueError, match=re.escape(f"'letor:mine@{text}': {words}")):
            check_corpus(f"letor:mine@{text}")


def test_raw_values_are_changed_by_the_name_of_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each option does is checked in ``test_options_and_report.py``."""
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    for i, part in enumerate(("train", "vali", "test")):
        write_some(tmp_path / "raw" / f"{part}.txt", i)
    for name, options in {
        "letor:raw": ReaderOptions(),
        "letor:raw@normalise": ReaderOptions(normalise=True),
        "letor:raw@2,log1p,normalise,drop=2": ReaderOptions(threshold=2, log1p=True, normalise=True, drop=(2,)),
        "letor:raw@drop=3+1,2": ReaderOptions(threshold=2, drop=(3, 1)),
    }.items():
        corpus = load_corpus(name, "ci", seed=0)
        assert corpus.name == check_corpus(name) == name, "what captions show is the whole name"
        parts = (corpus.train, corpus.validation, corpus.test)
        for data, wanted in zip(parts, read_collection(tmp_path / "raw", 0, options=options), strict=True):
            np.testing.assert_array_equal(data.features, wanted.features)
            assert data.threshold == wanted.threshold
    # The name wins over the argument, field by field.
    mixed = load_corpus("letor:raw@2", "ci", seed=0, options=ReaderOptions(threshold=1, drop=(2, 3))).train
    assert (mixed.threshold, mixed.features.shape[1]) == (2, 2)
    for name, options, message in (
        ("letor:raw@scaled", None, "'scaled' is no option"),
        ("digits", ReaderOptions(), "options: digits is not read from files"),
    ):
        with pytest.raises(ValueError, match=message):
            load_corpus(name, "smoke", seed=0, options=options)


NONE = "no threshold helps"


@pytest.mark.parametrize(
    ("name", "grades", "split", "found", "threshold", "remedy"),
    [
        ("letor:mine", (0, 0, 0), "train", 0, 1, NONE),
        ("letor:mine", (4, 0, 2), "validation", 0, 3, NONE),
        ("letor:mine", (2, 4, 0), "train", 2, 3, NONE),
        ("letor:mine", (4, 4, 2), "test", 2, 3, "as in letor:mine@2$"),
        ("letor:mine", (1, 4, 2), "train", 1, 3, "as in letor:mine@1$"),
        ("letor:mine@2", (1, 2, 2), "train", 1, 2, "as in letor:mine@1$"),
        ("letor:mine@log1p,3,drop=2", (4, 2, 4), "validation", 2, 3, "as in letor:mine@2,log1p,drop=2$"),
    ],
)
def test_a_split_without_a_relevant_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, grades: tuple, split: str, found: int, threshold: int,
    remedy: str,
) -> None:  # fmt: skip
    """``grades`` are the largest of train, validation and test; the remedy that is named works."""
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    for part, top in zip(("train", "vali", "test"), grades, strict=True):
        lines = [f"{grade} qid:{q} 1:{q}.5 2:1\n" for q in range(1, 4) for grade in (0, top * (q == 2))]
        (tmp_path / "mine" / f"{part}.txt").write_text("".join(lines), encoding="ascii")
    with pytest.raises(ValueError, match=f"'{name}', .* {split} .* {found}.* {threshold}.*{remedy}") as refused:
        load_corpus(name, "ci", seed=6)
    if "as in" in str(refused.value):
        corpus = load_corpus(str(refused.value).split("as in ")[1], "ci", seed=6)
        for data in (corpus.train, corpus.validation, corpus.test):
            assert data.binary.sum() == sum(grade >= data.threshold for grade in data.relevance.tolist()) > 0


def test_a_default_grade_that_few_queries_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query of three has a grade of 3, all have one of 1 or 2; whoever names the 3 gets it."""
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    (tmp_path / "mine").mkdir()
    for part in ("train", "vali", "test"):
        lines = [f"{grade} qid:{q} 1:{q}.5 2:1\n" for q, top in enumerate((1, 3, 2), 1) for grade in (0, top)]
        (tmp_path / "mine" / f"{part}.txt").write_text("".join(lines), encoding="ascii")
    with pytest.raises(ValueError, match=r"more than half of the queries of the train split .* letor:mine@2,log1p$"):
        load_corpus("letor:mine@log1p", "ci", seed=0)
    assert [load_corpus(f"letor:mine@{grade}", "ci", seed=0).test.binary.sum() for grade in (1, 2, 3)] == [3, 2, 1]


def test_mq2008_is_read_whole(real: Callable[[str], Path]) -> None:
    """784 queries, 15,211 documents, 46 features; what fold 0 tests on, fold 1 validates on."""
    real("mq2008")
    corpora = [load_corpus("letor:mq2008", "ci", seed=fold) for fold in (0, 1)]
    for corpus in corpora:
        parts = (corpus.train, corpus.validation, corpus.test)
        assert sum(part.n_queries for part in parts) == 784
        assert sum(part.n_docs for part in parts) == 15_211
        assert all(part.features.shape[1] == 46 for part in parts)
        assert all(part.threshold == 1 for part in parts)
        labels = np.concatenate([part.relevance for part in parts])
        assert np.bincount(labels).tolist() == [12_279, 2_001, 931]
    np.testing.assert_array_equal(corpora[0].test.features, corpora[1].validation.features)
