"""Folders as they are published, archives by checksum, and the real collections."""

from __future__ import annotations

import gzip
import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import oracles
import pytest

from cfltr_book import SCALES, Run, load_corpus
from cfltr_book.data import corpora, memory
from cfltr_book.data.letor import ReaderOptions, archives, read_collection, read_svmlight, verify_archive
from cfltr_book.data.letor.archives import KNOWN, KnownArchive
from cfltr_book.data.letor.folders import layout_of
from cfltr_book.data.letor.reader import ReadReport, concatenate
from cfltr_core import ndcg


def write(path: Path, value: float, width: int = 2, n_queries: int = 1) -> None:
    """A small file whose first feature tells it from the others."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = oracles.svmlight_text([[value] * width] * n_queries, [1] * n_queries, list(range(1, n_queries + 1)))
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


LAYOUTS = {
    "MSLR": ["Fold{k}/train.txt", "Fold{k}/vali.txt", "Fold{k}/test.txt"],
    "MSLR, zipped": ["Fold{k}/train.txt.gz", "Fold{k}/vali.txt.gz", "Fold{k}/test.txt.gz"],
    "Istella-S": ["sample/train.txt", "sample/vali.txt", "sample/test.txt"],
    "Yahoo": ["set1.train.txt", "set1.valid.txt", "set1.test.txt"],
}


@pytest.mark.oracle("reader.read_collection")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("nest", ["", "as-unpacked/"])
def test_layouts_nested_one_folder_down(tmp_path: Path, layout: str, nest: str) -> None:
    for k in range(1, 6):
        for j, name in enumerate(LAYOUTS[layout]):
            write(tmp_path / nest / name.format(k=k), 10 * k * ("{k}" in name) + j + 1)
    (tmp_path / "licence").mkdir()
    (tmp_path / "licence" / "terms.pdf").write_bytes(b"%PDF")
    for seed in range(7):
        fold = 10 * (seed % 5 + 1) * ("{k}" in LAYOUTS[layout][0])
        parts = read_collection(tmp_path, seed)
        assert [p.features[0, 0] for p in parts] == [fold + 1, fold + 2, fold + 3]
    # The same three names that the literal layout takes, where it knows the layout.
    stems = [Path(name.format(k=1)).name.split(".txt")[0] for name in LAYOUTS[layout]]
    assert oracles.collection_layout(stems, 0) == [[stem] for stem in stems]


def test_five_parts_nested(tmp_path: Path) -> None:
    for i in range(1, 6):
        write(tmp_path / "MQ2008" / f"S{i}.svm.gz", i)
    for seed in range(5):
        names = oracles.collection_layout([f"S{i}" for i in range(1, 6)], seed)
        found = [p.features[:, 0].tolist() for p in read_collection(tmp_path, seed)]
        assert found == [[float(name[1]) for name in group] for group in names]
        layout = layout_of(tmp_path, seed)
        assert [[file.name.split(".")[0] for file in group] for group in layout.groups] == names
        assert layout.fold == seed


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
    with pytest.raises(FileNotFoundError, match="folder: there is no folder"):
        read_collection(tmp_path / "absent", 0)
    with pytest.raises(ValueError, match="seed is -1: expected a whole number of at least 0"):
        read_collection(tmp_path, -1)
    for name in ("one", "two"):
        for part in ("train", "vali", "test"):
            write(tmp_path / name / f"{part}.txt", 1)
    with pytest.raises(ValueError, match=r"collections in \['one', 'two'\]: name one of these"):
        read_collection(tmp_path, 0)
    write(tmp_path / "one" / "test.txt.gz", 1)
    with pytest.raises(ValueError, match=r"holds test\.txt and test\.txt\.gz: keep one of the two"):
        read_collection(tmp_path / "one", 0)
    for part in ("train", "vali", "test"):
        write(tmp_path / "three" / "Fold1" / f"{part}.txt", 1)
    assert read_collection(tmp_path / "three", 5)[0].n_docs == 1
    with pytest.raises(ValueError, match="has Fold1 but no Fold3, which the seed asks for: unpack it"):
        read_collection(tmp_path / "three", 2)
    write(tmp_path / "small" / "all.txt", 1, n_queries=2)
    with pytest.raises(ValueError, match="holds 2 queries: too few to split into three parts"):
        read_collection(tmp_path / "small", 0)


def test_a_corpus_uses_the_cache_that_the_environment_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CFLTR_CACHE", str(tmp_path / "cache"))
    for i in range(1, 6):
        write(tmp_path / "data" / "mine" / f"S{i}.svm", i)
    first = load_corpus("letor:mine", "smoke", seed=3)
    with monkeypatch.context() as unread:
        unread.setattr(corpora, "read_collection", None)  # the text is not read again
        again = load_corpus("letor:mine", "smoke", seed=3)
    for a, b in ((first.train, again.train), (first.validation, again.validation), (first.test, again.test)):
        np.testing.assert_array_equal(a.features, b.features)
        assert a.name == b.name
    write(tmp_path / "data" / "mine" / "S4.svm", 40)
    assert load_corpus("letor:mine", "smoke", seed=3).train.features[0, 0] == 40.0


def test_a_large_collection_is_cut_to_whole_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part loses the same share, its queries keep their documents, and the seed draws which are left."""
    monkeypatch.setitem(SCALES._scales, "smoke", replace(SCALES["smoke"], collection_values=1e5))
    monkeypatch.setenv("CFLTR_DATA", str(tmp_path))
    n_queries = 2 * int(SCALES["smoke"].collection_values) // 1_000 + 8  # two documents of 1,000 features each
    for part, n in (("train", n_queries), ("vali", 40), ("test", 60)):
        rows = [[float(d)] + [1.0] * 999 for d in range(2 * n)]
        queries = [1 + d // 2 for d in range(2 * n)]
        path = tmp_path / "large" / f"{part}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(oracles.svmlight_text(rows, [d % 2 for d in range(2 * n)], queries), encoding="ascii")
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
    (tmp_path / "long").mkdir()
    for part in ("train", "vali", "test"):
        text = oracles.svmlight_text(rows, [d % 2 for d in range(len(rows))], queries)
        (tmp_path / "long" / f"{part}.txt").write_text(text, encoding="ascii")
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


def test_report_on_mq2008(real: Callable[[str], Path]) -> None:
    """784 queries, 15,211 documents, 46 features of which 6 are constant; 220 queries without a relevant document."""
    found: list[ReadReport] = []
    read_collection(real("mq2008"), 0, report=found.append)
    report = found[0]
    assert (report.queries, report.documents, report.features) == (784, 15_211, 46)
    assert (len(report.constant), report.without_positive) == (6, 220)
