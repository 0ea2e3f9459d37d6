"""The lists that events are about: features of the candidates, sorted so that those of a query stand together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfltr_core.clicks.event_sources import import_ibis, run_query

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("query", "document")


def event_lists(features: Any, columns: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Sort a table of ``features`` into lists: one row for each candidate document of each query.

    What comes back are the fields ``features``, ``feature_names``, ``offsets`` and ``index`` of
    :class:`~cfltr_core.clicks.event_counts.Events`.

    Parameters
    ----------
    features : data frame, path or Ibis table
        Columns ``query`` and ``document``, as in the events; all others are features, and numbers.
    columns : mapping, optional
        Other names of these two columns, as in :func:`~cfltr_core.clicks.event_sources.event_table`.

    Raises
    ------
    TypeError, ValueError
        For another kind of table, missing columns or values, a document twice in a query, features that are text or
        not finite; with the first query and document that it concerns.

    Examples
    --------
    >>> import pandas as pd
    >>> from cfltr_core.clicks.event_lists import event_lists
    >>> table = pd.DataFrame({"query": ["shoes", "hats", "shoes"], "document": ["B", "A", "A"], "age": [2, 3, 1]})
    >>> lists = event_lists(table)
    >>> lists["index"].values.tolist(), lists["offsets"], lists["features"].ravel()
    ([['hats', 'A'], ['shoes', 'A'], ['shoes', 'B']], array([0, 1, 3]), array([3., 1., 2.], dtype=float32))
    """
    import pandas as pd

    frame = _frame(features)
    keys = {}
    for name in KEYS:
        other = (columns or {}).get(name, name)
        keys[name] = other if other in frame.columns else name
        if keys[name] not in frame.columns:
            has = ", ".join(map(str, frame.columns))
            raise ValueError(
                f"features: there is no column {other!r} for the {name}; it has {has}. Say which it is, as in "
                f"columns={{{name!r}: …}}; features of documents alone are first joined with each query's candidates"
            )
    names = [name for name in frame.columns if name not in keys.values()]
    if len(frame) == 0:
        raise ValueError("features: there is no row; give one for each candidate document of each query")
    if not names:
        raise ValueError("features: there is no column beside query and document; a ranker needs at least one feature")
    index = pd.DataFrame({name: _identities(frame[theirs], name) for name, theirs in keys.items()})
    again = index.duplicated()
    if again.any():
        row = int(np.argmax(again))
        raise ValueError(
            f"features: {_where(index, row)} has two rows, the second is row {row}: keep one for each document of a "
            "query"
        )
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            item = frame[name].iloc[0]
            raise ValueError(
                f"features: column {name!r} holds {frame[name].dtype}, as {item!r} of {_where(index, 0)}: features are "
                "numbers; encode it, or drop the column"
            )
    order = index.sort_values(list(KEYS), kind="stable").index.to_numpy()
    with np.errstate(over="ignore"):
        table = np.stack([frame[name].to_numpy(dtype=np.float32, na_value=np.nan)[order] for name in names], axis=1)
    index = index.iloc[order].reset_index(drop=True)
    for column, name in enumerate(names):
        finite = np.isfinite(table[:, column])
        if not finite.all():
            row = int(np.argmin(finite))
            raise ValueError(
                f"features: column {name!r} is {table[row, column]} for {_where(index, row)}: fill missing values, and "
                "cap those that are too large for float32"
            )
    query = index["query"].to_numpy()
    start = np.flatnonzero(np.append(True, query[1:] != query[:-1]))
    offsets = np.append(start, len(index)).astype(np.int64)
    return {
        "features": np.ascontiguousarray(table),
        "feature_names": tuple(map(str, names)),
        "offsets": offsets,
        "index": index,
    }


def shown_lists(table: Any) -> dict[str, Any]:
    """The documents that the events of an Ibis ``table`` showed, with one constant feature, ``shown``.

    Of a table whose queries or documents are neither whole numbers nor text, which is refused later, it is one row.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_lists import shown_lists
    >>> lists = shown_lists(ibis.memtable({"query": [7, 7, 3], "document": ["B", "A", "A"]}))
    >>> lists["index"].values.tolist(), lists["feature_names"], lists["offsets"]
    ([[3, 'A'], [7, 'A'], [7, 'B']], ('shown',), array([0, 1, 3]))
    """
    import pandas as pd

    named = all(table[name].type().is_integer() or table[name].type().is_string() for name in KEYS)
    found = run_query(table.select(*KEYS).distinct().drop_null()) if named else pd.DataFrame()
    if len(found) == 0:
        found = pd.DataFrame({name: [0] for name in KEYS})
    return event_lists(found.assign(shown=1.0))


def is_text(column: pd.Series) -> bool:
    """Whether a column of identities holds text; else it holds whole numbers."""
    return column.dtype.kind not in "iu"


def _where(index: pd.DataFrame, row: int) -> str:
    query, document = index.iloc[row].tolist()
    return f"query {query!r}, document {document!r}"


def _frame(features: Any) -> pd.DataFrame:
    """``features`` as a data frame."""
    import pandas as pd

    if isinstance(features, pd.DataFrame):
        return features
    if isinstance(features, (str, Path)):
        path = str(features)
        if not Path(path).exists():
            raise ValueError(f"features: there is no file at {path!r}; correct the path")
        separator = {".csv": ",", ".tsv": "\t"}.get(Path(path.removesuffix(".gz")).suffix)
        return pd.read_parquet(path) if separator is None else pd.read_csv(path, sep=separator)
    if isinstance(features, import_ibis().Table):
        return run_query(features)
    raise TypeError(f"features is {type(features).__name__}: expected a pandas data frame, a path or an Ibis table")


def _identities(column: pd.Series, name: str) -> NDArray[Any] | pd.Series:
    """A column of names of things: whole numbers as int64, or text."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if column.isna().any():
        row = int(np.argmax(column.isna().to_numpy()))
        raise ValueError(f"features: {name} is missing in row {row}: drop rows without one, or fill it in")
    if pd.api.types.is_integer_dtype(column.dtype):
        return column.to_numpy().astype(np.int64)
    wrong = [i for i, item in enumerate(column.tolist()) if not isinstance(item, str)]
    if wrong:
        item = column.iloc[wrong[0]]
        raise ValueError(
            f"features: {name} is {item!r} in row {wrong[0]}: expected whole numbers, or text, in all rows"
        )
    return column.astype(object).to_numpy()
