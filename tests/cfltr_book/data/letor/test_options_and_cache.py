"""What the options do, what the report says, and a cache that is never wrong."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import letor_fuzz
import letor_literal
import numpy as np
import oracles
import pytest

from cfltr_book.data.letor import ReaderOptions, read_collection, read_svmlight, reader
from cfltr_book.data.letor.archives import MSLR_LEAKS
from cfltr_book.data.letor.reader import ReadReport


def some_file(path: Path, seed: int = 0, n_docs: int = 60, width: int = 6) -> dict:
    rng = np.random.default_rng(seed)
    features = np.round(rng.normal(size=(n_docs, width)) * 10.0 ** rng.integers(-2, 4, size=width), 4)
    features[:, 1] = 0.5
    features[rng.random(n_docs) < 0.3] = features[0]
    features[3, 2] = 1e300
    queries = np.sort(rng.integers(0, n_docs // 4, size=n_docs)).tolist()
    grades = rng.choice(5, size=n_docs, p=(0.6, 0.2, 0.1, 0.06, 0.04)).tolist()
    path.write_text(oracles.svmlight_text(features.tolist(), grades, queries), encoding="ascii")
    return letor_literal.parse(path.read_bytes())


@pytest.mark.oracle("reader.ReaderOptions")
@pytest.mark.parametrize("log1p", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("drop", [(), (2, 5), (5, 5, 99, 2)])
@pytest.mark.parametrize("cap", [None, 20.0])
def test_options(tmp_path: Path, log1p: bool, normalise: bool, drop: tuple, cap: float | None) -> None:
    path = tmp_path / "a.txt"
    some_file(path, n_docs=700)
    extra = {} if cap is None else {"cap": cap}
    expected = letor_literal.parse(path.read_bytes(), **extra)
    assert expected["offsets"] == oracles.svmlight_parse(path.read_text(encoding="ascii"), 6)[2]
    options = ReaderOptions(log1p=log1p, normalise=normalise, drop=drop, **extra)
    reports: list[ReadReport] = []
    data = read_svmlight(path, options=options, report=reports.append)
    wanted = letor_literal.transform(expected["features"], expected["offsets"], drop, log1p, normalise)
    np.testing.assert_array_equal(data.features, np.array(wanted, dtype=np.float32))
    assert reports[0].capped == expected["capped"] > 0
    assert reports[0].dropped == tuple(sorted({i for i in drop if i <= 6}))
    if normalise:
        assert data.features.min() >= 0
        assert data.features.max() <= 1


def test_threshold(tmp_path: Path) -> None:
    some_file(tmp_path / "a.txt")
    assert read_svmlight(tmp_path / "a.txt").threshold == 3
    for threshold in (1, 4):
        assert read_svmlight(tmp_path / "a.txt", options=ReaderOptions(threshold=threshold)).threshold == threshold


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cap": 0.0}, "cap is 0.0: expected a number > 0 that float32 holds"),
        ({"cap": 1e39}, "cap is 1e\\+39: expected"),
        ({"cap": float("nan")}, "cap is nan: expected"),
        ({"cap": "1"}, "cap is '1': expected"),
        ({"drop": (3, 0)}, r"drop\[1\] is 0: expected a whole number of at least 1"),
        ({"threshold": 0}, "threshold is 0: expected a whole number of at least 1"),
    ],
)
def test_options_that_cannot_be(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReaderOptions(**arguments)


def test_leaks_of_mslr_are_dropped(tmp_path: Path) -> None:
    row = " ".join(f"{i}:{i}" for i in range(1, 137))
    (tmp_path / "a.txt").write_text(f"1 qid:1 {row}\n", encoding="ascii")
    data = read_svmlight(tmp_path / "a.txt", options=ReaderOptions(drop=MSLR_LEAKS))
    assert data.features.tolist() == [list(range(1, 134))]
    with pytest.raises(ValueError, match=r"drop: a\.txt has 136 features, and all are dropped"):
        read_svmlight(tmp_path / "a.txt", options=ReaderOptions(drop=tuple(range(1, 137))))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("drop", [(), (1, 3)])
def test_report(tmp_path: Path, seed: int, drop: tuple) -> None:
    expected = some_file(tmp_path / "a.txt", seed)
    reports: list[ReadReport] = []
    data = read_svmlight(tmp_path / "a.txt", options=ReaderOptions(drop=drop), report=reports.append)
    rows = letor_literal.transform(expected["features"], expected["offsets"], drop)
    counts = letor_literal.report(rows, expected["grades"], expected["offsets"], 3)
    kept = [i for i in range(1, 7) if i not in drop]
    assert counts["duplicates"] > 0
    assert reports[0] == ReadReport(
        name="a.txt",
        queries=len(expected["offsets"]) - 1,
        documents=60,
        features=len(kept),
        threshold=data.threshold,
        dropped=drop,
        capped=expected["capped"],
        nulls=0,
        cache=("off",),
        **{**counts, "constant": tuple(kept[i] for i in counts["constant"])},
    )
    for text in ("a.txt: ", "60 documents", "constant features", "values capped", "NULL values read as 0"):
        assert text in str(reports[0])


def test_report_on_a_collection_counts_every_file_once(tmp_path: Path) -> None:
    texts = {
        "train": "1 qid:1 1:1 2:NULL 4:5\n0 qid:1 1:1 2:0 4:5\n",
        "vali": "0 qid:2 1:1 2:3\n",
        "test": "3 qid:3 1:1 3:1e99\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="ascii")
    found: list[ReadReport] = []
    parts = read_collection(tmp_path, 0, report=found.append)
    assert [p.features.shape[1] for p in parts] == [4, 4, 4]
    report = found[0]
    assert (report.queries, report.documents, report.features, report.threshold) == (3, 4, 4, 3)
    assert (report.single_document, report.without_positive, report.without_relevant) == (2, 1, 2)
    assert (report.constant, report.capped, report.nulls, report.duplicates) == ((1,), 1, 1, 1)
    assert report.name == tmp_path.name


# --- the cache ----------------------------------------------------------------------------------------


def cached(path: Path, cache: Path | None, **arguments) -> tuple:
    reports: list[ReadReport] = []
    return read_svmlight(path, cache=cache, report=reports.append, **arguments), reports[0].cache


def same(a: reader.RankingData, b: reader.RankingData) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in ("features", "relevance", "offsets", "threshold")
    )


def test_nothing_is_written_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CFLTR_CACHE", raising=False)
    monkeypatch.chdir(tmp_path)
    some_file(tmp_path / "a.txt")
    assert cached(tmp_path / "a.txt", None)[1] == ("off",)
    assert os.listdir(tmp_path) == ["a.txt"]
    monkeypatch.setenv("CFLTR_CACHE", str(tmp_path / "kept"))
    assert [cached(tmp_path / "a.txt", None)[1] for _ in range(2)] == [("written",), ("read",)]
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_the_cache_depends_on_content_and_options_only(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.txt", tmp_path / "deep" / "cache"
    some_file(path)
    options = [{}, {"n_features": 9}, *({"options": ReaderOptions(**o)} for o in (
        {"cap": 5.0}, {"drop": (1,)}, {"log1p": True}, {"normalise": True}))]  # fmt: skip
    fresh = [cached(path, None, **o)[0] for o in options]
    for status in ("written", "read"):
        for data, o in zip(fresh, options, strict=True):
            again, found = cached(path, cache, **o)
            assert found == (status,)
            assert same(again, data)
    assert len(list(cache.iterdir())) == len(options)
    # Another name, another threshold, options spelt otherwise: the same entry.
    shutil.copy(path, tmp_path / "b.txt")
    data, found = cached(tmp_path / "b.txt", cache, options=ReaderOptions(threshold=2))
    assert (data.name, data.threshold, found) == ("b.txt", 2, ("read",))
    assert cached(path, cache, options=ReaderOptions(drop=[1, 1]))[1] == ("read",)
    # Other content of the same size and time: another entry.
    stat = path.stat()
    path.write_bytes(path.read_bytes().replace(b"1:", b"6:", 1).replace(b"6:", b"1:", 1).replace(b"0.5 ", b"0.7 ", 1))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_size == stat.st_size
    data, found = cached(path, cache)
    assert found == ("written",)
    assert same(data, cached(path, None)[0])
    assert not same(data, fresh[0])


def test_a_damaged_cache_is_rebuilt(tmp_path: Path) -> None:
    """Any byte, any length: the arrays are those of the file, and the entry is whole again afterwards."""
    path, cache = tmp_path / "a.txt", tmp_path / "cache"
    some_file(path)
    fresh = cached(path, cache)[0]
    (entry,) = cache.iterdir()
    whole = entry.read_bytes()
    rng = np.random.default_rng(0)
    seen = set()
    for i in range(400):
        damaged = letor_fuzz.damage(whole, rng) if i else b""
        if i % 2:
            at = int(rng.integers(len(whole)))
            damaged = whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :]
        entry.write_bytes(damaged)
        data, found = cached(path, cache)
        assert same(data, fresh)
        seen |= set(found)
        # A change that NumPy does not see (a blank in a header) may stay: the arrays and their checksums are whole.
        assert found == ("read",) or entry.read_bytes() == whole
    assert seen >= {"rebuilt"}
    assert [p.name for p in cache.iterdir()] == [entry.name]


def test_values_changed_in_the_cache_are_noticed(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.txt", tmp_path / "cache"
    some_file(path)
    fresh = cached(path, cache)[0]
    (entry,) = cache.iterdir()
    whole = entry.read_bytes()
    at = whole.index(fresh.features.tobytes())
    for wrong in (fresh.features[::-1].tobytes(), (fresh.features + 1).tobytes()):
        entry.write_bytes(whole[:at] + wrong + whole[at + len(wrong) :])
        data, found = cached(path, cache)
        assert found == ("rebuilt",)
        assert same(data, fresh)
        assert entry.read_bytes() == whole


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    some_file(tmp_path / "a.txt")
    (tmp_path / "taken").write_text("a file", encoding="ascii")
    with pytest.warns(UserWarning, match="cache: nothing was kept in .*: name a folder to write in"):
        data, found = cached(tmp_path / "a.txt", tmp_path / "taken")
    assert found == ("off",)
    assert same(data, cached(tmp_path / "a.txt", None)[0])


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some_file(tmp_path / "a.txt")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reader.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        read_svmlight(tmp_path / "a.txt", cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    some_file(path)
    parse = reader._parse

    def change_then_parse(*arguments: object) -> object:
        with path.open("a", encoding="ascii") as stream:
            stream.write("0 qid:77777 1:1\n")
        return parse(*arguments)

    monkeypatch.setattr(reader, "_parse", change_then_parse)
    assert cached(path, tmp_path / "cache")[1] == ("off",)
    assert not (tmp_path / "cache").exists()


def test_what_was_checked_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ReaderOptions().cap = 1.0
