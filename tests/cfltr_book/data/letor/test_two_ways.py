"""The fast way and the careful way through a file: each takes the lines it should, and both read the same."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from cfltr_book.data.letor import ReaderOptions, read_svmlight, svmlight
from cfltr_book.data.letor.reader import ReadReport
from cfltr_book.data.letor.svmlight import Parsed

LARGEST = float(np.finfo(np.float32).max)


def parse(text: str, n_features: int | None = None, cap: float = LARGEST, drop: tuple[int, ...] = ()) -> Parsed:
    return svmlight.parse(io.BytesIO(text.encode()), "text", n_features, cap, drop)


# Lines of the usual shape, with the rows, grades and offsets that they are.
USUAL = {
    "grade 0": ("0 qid:1 1:0.5\n", [[0.5]], [0], [0, 1]),
    "the highest grade": ("30 qid:1 1:0.5\n", [[0.5]], [30], [0, 1]),
    "a grade as a decimal": ("2.0 qid:1 1:0.5\n", [[0.5]], [2], [0, 1]),
    "query 0": ("1 qid:0 1:1\n0 qid:0 1:2\n", [[1], [2]], [1, 0], [0, 2]),
    "query 1 after 0": ("1 qid:0 1:1\n0 qid:1 1:2\n", [[1], [2]], [1, 0], [0, 1, 2]),
    "a query below 0": ("1 qid:-1 1:1\n0 qid:0 1:2\n", [[1], [2]], [1, 0], [0, 1, 2]),
    "the same ids again": ("1 qid:1 1:1 3:2\n1 qid:1 1:3 3:4\n", [[1, 0, 2], [3, 0, 4]], [1, 1], [0, 2]),
    "other ids, as many": ("1 qid:1 1:1 3:2\n1 qid:1 2:3 3:4\n", [[1, 0, 2], [0, 3, 4]], [1, 1], [0, 2]),
    "fewer ids": ("1 qid:1 1:1 2:2\n1 qid:1 1:3\n", [[1, 2], [3, 0]], [1, 1], [0, 2]),
    "no id": ("1 qid:1 1:1\n1 qid:1\n", [[1], [0]], [1, 1], [0, 2]),
    "all kinds of numbers": ("1 qid:1 1:-1.5e-3 2:+2. 3:.5 4:1E2\n", [[-1.5e-3, 2, 0.5, 100]], [1], [0, 1]),
}
# Lines that only the careful way understands.
UNUSUAL = {
    "two spaces": ("1  qid:1 1:1\n", [[1]], [1], [0, 1]),
    "a tab": ("1\tqid:1 1:1\n", [[1]], [1], [0, 1]),
    "ids backwards": ("1 qid:1 2:2 1:1\n", [[1, 2]], [1], [0, 1]),
    "NULL": ("1 qid:1 1:NULL 2:1\n", [[0, 1]], [1], [0, 1]),
    "infinite": ("1 qid:1 1:-inf 2:Infinity\n", [[-LARGEST, LARGEST]], [1], [0, 1]),
}


def same(found: Parsed, rows: list[list[float]], grades: list[int], offsets: list[int]) -> None:
    np.testing.assert_array_equal(found.features, np.array(rows, dtype=np.float32))
    assert (found.grades.tolist(), found.offsets.tolist()) == (grades, offsets)
    assert (found.features.dtype, found.grades.dtype, found.offsets.dtype) == (np.float32, np.int8, np.int64)
    assert found.width == len(rows[0])


@pytest.mark.parametrize("case", USUAL)
def test_lines_of_the_usual_shape_take_the_fast_way_and_mean_the_same_on_the_other(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, *expected = USUAL[case]

    def never(*line: object) -> None:
        raise AssertionError(f"the careful way was taken: {line}")

    with monkeypatch.context() as patch:
        patch.setattr(svmlight, "_careful", never)
        same(parse(text), *expected)
    monkeypatch.setattr(svmlight, "_SHAPE", b"")  # no line has the usual shape
    same(parse(text), *expected)


@pytest.mark.parametrize("case", UNUSUAL)
def test_other_lines_take_the_careful_way(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, *expected = UNUSUAL[case]
    careful, taken = svmlight._careful, []
    monkeypatch.setattr(svmlight, "_careful", lambda *line: taken.append(line) or careful(*line))
    found = parse(text)
    same(found, *expected)
    assert len(taken) == 1
    assert found.nulls == text.count("NULL")


def test_the_largest_id_that_is_read_and_the_first_that_is_not() -> None:
    assert parse("1 qid:1 10000:1\n").width == 10_000
    assert parse("1 qid:1 5:1\n", n_features=5).width == 5
    assert parse("1 qid:1 12000:1\n", n_features=12_000).features[0, -1] == 1
    for text in ("1 qid:1 10001:1\n", "1 qid:1 2:1 10001:1\n", "1 qid:1  10001:1\n"):
        with pytest.raises(
            ValueError, match="line 1: feature id '10001' in '10001:1' is not between 1 and 10,000, the"
        ):
            parse(text)
    with pytest.raises(ValueError, match=r"feature id '6' in '6:1' is not between 1 and n_features=5$"):
        parse("1 qid:1 6:1\n", n_features=5)


@pytest.mark.parametrize("n_docs", [1, 127, 128, 129, 256, 300])
def test_any_number_of_documents_whose_lines_grow(n_docs: int) -> None:
    """Rows are stored by 128, and moved apart when a later line is wider."""
    text = "".join(f"{i % 3} qid:{i // 7} {1 + i // 2}:{i}.5\n" for i in range(n_docs))
    rows = np.zeros((n_docs, 1 + (n_docs - 1) // 2), dtype=np.float32)
    for i in range(n_docs):
        rows[i, i // 2] = i + 0.5
    same(parse(text), rows.tolist(), [i % 3 for i in range(n_docs)], [*range(0, n_docs, 7), n_docs])


def test_values_at_the_cap_are_no_values_beyond_it() -> None:
    found = parse("1 qid:1 1:2 2:-2 3:2.5 4:-3\n", cap=2.0)
    assert found.features.tolist() == [[2, -2, 2, -2]]
    assert found.capped == 2
    assert parse("1 qid:1 1:5 2:1 3:-5\n", cap=2.0, drop=(1,)).features.tolist() == [[1, -2]]
    assert parse("1 qid:1 1:5 2:1 3:-5\n", cap=2.0, drop=(1,)).capped == 2


REPORT = """a.txt: 3 queries, 5 documents, 3 features
  queries of one document                    2
  queries with grades of 0 only              1
  queries without a grade of 2 or more       2
  constant features                          1 (4)
  dropped features                           2 (2, 3)
  values capped                              1
  NULL values read as 0                      1
  documents that repeat one of their query   1"""


def test_a_report_in_full(tmp_path: Path) -> None:
    """0 and −0 are the same value, so that the third document repeats the first."""
    text = "0 qid:1 1:0 2:7 4:1 5:1\n2 qid:1 1:3 3:NULL 4:1 5:1\n0 qid:1 1:-0.0 3:8 4:1 5:1\n"
    text += "1 qid:2 1:9 4:1\n0 qid:3 1:1 4:1\n"
    path = tmp_path / "a.txt"
    path.write_text(text)
    reports: list[ReadReport] = []
    read_svmlight(path, options=ReaderOptions(cap=8.0, drop=(3, 2), threshold=2), report=reports.append)
    assert str(reports[0]) == REPORT
    assert (reports[0].constant, reports[0].dropped) == ((4,), (2, 3))


def test_options_have_one_spelling() -> None:
    """The key of what is kept is made from them."""
    plain = ReaderOptions(cap=2.0, drop=(1, 3), log1p=True, normalise=True)
    other = ReaderOptions(cap=2, drop=(3, 1, 3), log1p=1, normalise=np.True_)
    assert repr(other) == repr(plain) == (
        "ReaderOptions(cap=2.0, drop=(1, 3), log1p=True, normalise=True, threshold=None)"
    )  # fmt: skip
    assert repr(ReaderOptions(log1p=0, normalise=np.False_)).endswith("log1p=False, normalise=False, threshold=None)")


def test_ids_with_leading_zeros_and_without_end() -> None:
    assert parse("1 qid:1  007:2\n").features.tolist() == [[0, 0, 0, 0, 0, 0, 2]]
    for word in ("0", "000", "0" * 50):
        with pytest.raises(ValueError, match=f"feature id '{word[:4]}.* is not between 1 and 10,000"):
            parse(f"1 qid:1 {word}:2\n")
    assert parse(f"1 qid:1 {'0' * 5000}3:2\n").features.tolist() == [[0, 0, 2]]
    with pytest.raises(ValueError, match=r"feature id '9{35} …' in '9{35} …' is not between 1 and 10,000"):
        parse(f"1 qid:1 {'9' * 5000}:2\n")


def test_lines_that_end_at_the_last_feature_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(svmlight, "_careful")
    for ids in ("1:1 2:1 3:1", "1:1 3:1", "3:1"):
        assert parse(f"1 qid:1 {ids}\n", n_features=3).width == 3
        with pytest.raises(NameError):  # which is how the careful way would be noticed
            parse(f"1 qid:1 {ids}\n", n_features=2)


@pytest.mark.parametrize("sizes", [[300], [256, 1], [1, 256, 257], [255, 2, 600, 1], [3] * 200])
def test_queries_of_any_length_are_normalised_alone(tmp_path: Path, sizes: list[int]) -> None:
    """Some queries are changed at a time, about 256 documents, and a longer one by itself."""
    rng = np.random.default_rng(0)
    values = [rng.normal(size=size).astype(np.float32) for size in sizes]
    lines = [f"0 qid:{q} 1:{value!r}\n" for q, column in enumerate(values) for value in column.tolist()]
    (tmp_path / "a.txt").write_text("".join(lines))
    found = read_svmlight(tmp_path / "a.txt", options=ReaderOptions(normalise=True)).features[:, 0]
    expected = []
    for column in values:
        low, high = float(column.min()), float(column.max())
        expected += [(float(value) - low) / ((high - low) or 1.0) for value in column]
    np.testing.assert_array_equal(found, np.array(expected, dtype=np.float32))
