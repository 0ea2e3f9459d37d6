"""The score as an SQL expression, run by the database of the standard library."""

import sqlite3
from typing import Any

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from cfltr_core import LinearRanker


def run(expression: str, names: list[str], rows: list[list[float]]) -> list[float]:
    """The expression for each row of a table with these columns, in order."""
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE documents ({columns})")
    database.executemany(f"INSERT INTO documents VALUES ({', '.join('?' * len(names))})", rows)
    found = [row[0] for row in database.execute(f"SELECT {expression} FROM documents ORDER BY rowid")]
    database.close()
    return found


NUMBER = st.floats(-1e6, 1e6, allow_nan=False, width=32)
NAME = st.text(st.characters(categories=("L", "N", "P", "S"), include_characters=" "), min_size=1, max_size=12)


@pytest.mark.oracle("linear.LinearRanker.sql")
@given(data=st.data(), n=st.integers(1, 9))
def test_sql_gives_the_score(data: st.DataObject, n: int) -> None:
    names = data.draw(
        st.lists(NAME.filter(lambda s: bool(s.strip())), min_size=n, max_size=n, unique_by=lambda s: s.casefold())
    )
    weights = data.draw(st.lists(st.one_of(st.just(0.0), st.floats(-10, 10)), min_size=n, max_size=n))
    rows = data.draw(st.lists(st.lists(NUMBER, min_size=n, max_size=n), min_size=1, max_size=4))
    ranker = LinearRanker(weights)
    found = run(ranker.sql(names), names, rows)
    # Sums of terms that cancel: the error is one of the terms.
    largest = max(1.0, max(abs(w * v) for row in rows for w, v in zip(weights, row, strict=True)))
    np.testing.assert_allclose(found, oracles.linear_scores(rows, weights), rtol=0, atol=1e-12 * largest)
    np.testing.assert_allclose(found, ranker.decision_function(rows), rtol=0, atol=1e-12 * largest)


def test_as_many_features_as_the_papers_and_whole_numbers() -> None:
    rng = np.random.default_rng(0)
    weights, rows = rng.normal(size=700), rng.integers(-9, 9, size=(20, 700))
    names = [f"feature {i}" for i in range(700)]
    found = run(LinearRanker(weights).sql(names), names, rows.tolist())
    np.testing.assert_allclose(found, LinearRanker(weights).decision_function(rows), rtol=1e-9, atol=1e-9)


def test_a_name_is_a_name_and_no_code() -> None:
    names = ['x" FROM documents; DROP TABLE documents; --', "y'); --"]
    assert run(LinearRanker([2.0, -0.5]).sql(names), names, [[1.0, 4.0], [3.0, 0.0]]) == [0.0, 6.0]


def test_a_row_without_a_feature_is_last_in_any_database() -> None:
    expression, rows = LinearRanker([2.0, -0.5]).sql(["a", "b"]), [[1.0, None], [None, None], [-1e6, 1e6]]
    assert run(expression, ["a", "b"], rows) == [-1e99, -1e99, -2.5e6]  # type: ignore[arg-type]


def test_weights_of_zero_are_left_out_and_digits_are_kept() -> None:
    assert LinearRanker([0.0, 0.0]).sql(["a", "b"]) == "0.0e+00"
    assert LinearRanker([0.0, 0.1 + 0.2]).sql(["a", "b"]) == 'COALESCE(3.0000000000000004e-01 * "b", -1.0e+99)'
    nested = '((1.0e+00 * "a" + 2.0e+00 * "b") + 4.0e+00 * "c")'
    assert LinearRanker([1.0, 2.0, 4.0]).sql(["a", "b", "c"]) == f"COALESCE({nested}, -1.0e+99)"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("ab", "feature_names is str: expected a list of names, one for each weight"),
        (["a"], "feature_names: expected 2 names, one for each weight, got 1"),
        (["a", 3], "feature_names[1] is int: expected the name of a column"),
        (["a", " "], "feature_names[1] is ' ': empty, or with a control character; rename the column"),
        (["a\0", "b"], r"feature_names[0] is 'a\x00': empty, or with a control character"),
        (["a", "é" * 32], "feature_names[1] has more than 63 bytes: databases cut longer names off"),
        (["Price", "price"], "feature_names[1] is 'price', feature_names[0] is 'Price': databases that"),
    ],
)
def test_messages(names: Any, message: str) -> None:
    refuses(message, LinearRanker([1.0, 2.0]).sql, names)
