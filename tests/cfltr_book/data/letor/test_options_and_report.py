"""What the options do, and what the report says."""

from pathlib import Path

import letor_literal
import numpy as np
import oracles
import pytest

from cfltr_book.data.letor import ReaderOptions, read_collection, read_svmlight
from cfltr_book.data.letor.archives import MSLR_LEAKS
from cfltr_book.data.letor.reader import ReadReport


@pytest.mark.oracle("reader.ReaderOptions")
@pytest.mark.parametrize("log1p", [False, True])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("drop", [(), (2, 5), (5, 5, 99, 2)])
@pytest.mark.parametrize("cap", [None, 20.0])
def test_options(tmp_path: Path, log1p: bool, normalise: bool, drop: tuple, cap: float | None) -> None:
    path, rng = tmp_path / "a.txt", np.random.default_rng(0)
    features = np.round(rng.normal(size=(700, 6)) * 10.0 ** rng.integers(-2, 4, size=6), 4)
    features[:, 1], features[3, 2] = 0.5, 1e300
    queries = np.sort(rng.integers(0, 175, size=700)).tolist()
    path.write_text(oracles.svmlight_text(features.tolist(), [0, 1] * 350, queries), encoding="ascii")
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
    (tmp_path / "a.txt").write_text("4 qid:1 1:1\n")
    for given, expected in ((None, 3), (1, 1), (4, 4)):
        assert read_svmlight(tmp_path / "a.txt", options=ReaderOptions(threshold=given)).threshold == expected


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
