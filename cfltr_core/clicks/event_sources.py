"""Where events come from: a data frame, files, or a table of the user's own database, as one Ibis table.

Ibis and DuckDB are an optional extra, imported when events are read.  Data frames and files are read by a DuckDB inside
this process, which writes what does not fit into its memory to a temporary folder; an Ibis table stays where it is.
"""

from __future__ import annotations

import glob
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfltr_core.checks import IntArray

if TYPE_CHECKING:
    import pandas as pd

# What an event must say, and what it may.
REQUIRED = ("session", "query", "document", "position", "clicked")
OPTIONAL = ("ranker", "period", "length", "user")
# Read only where it is asked for by name: it makes counts larger, and in many logs it is missing for some.
BY_NAME = ("user",)
SOURCES = "a pandas data frame, the path of Parquet or CSV files, or an Ibis table"
INSTALL = (
    "reading events needs Ibis and DuckDB, which are not installed: pip install 'cfltr-core[logs]', or in a clone of "
    "the book make setup"
)


def import_ibis() -> Any:
    """The module ``ibis``; where the extra is missing, an ImportError that says how to install it.

    Examples
    --------
    >>> from cfltr_core.clicks.event_sources import import_ibis
    >>> import_ibis().__name__
    'ibis'
    """
    try:
        import ibis

        # The back end is imported too, so that the message comes before any work.
        ibis.duckdb  # noqa: B018
    except ImportError:
        raise ModuleNotFoundError(INSTALL) from None
    return ibis


def run_query(expression: Any) -> pd.DataFrame:
    """The rows of an Ibis ``expression``, computed where its table lies."""
    frame: pd.DataFrame = expression.execute()
    return frame


def run_numbers(expression: Any) -> dict[str, IntArray]:
    """The columns of an Ibis ``expression`` of whole numbers: by way of Arrow, at a fifth of what a data frame takes.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_sources import run_numbers
    >>> run_numbers(ibis.memtable({"rank": [1, 2], "clicks": [3, 0]}))
    {'rank': array([1, 2]), 'clicks': array([3, 0])}
    """
    table = expression.to_pyarrow()
    return {name: table[name].to_numpy().astype(np.int64, copy=False) for name in table.column_names}


@contextmanager
def without_deprecations() -> Iterator[None]:
    """Say nothing of what is deprecated: Ibis calls pandas and DuckDB as it did, which is not the reader's to mend."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        yield


@contextmanager
def event_table(
    source: Any, columns: Mapping[str, str] | None = None, *, memory: str = "1GB", rest: bool = False
) -> Iterator[Any]:
    """``source`` as an Ibis table with the names of this package, for as long as the context lasts.

    Parameters
    ----------
    source : data frame, path or Ibis table
        A path may be a folder, a glob, or a list of files.
    columns : mapping, optional
        What the source calls a column, by the name it has here: ``{"position": "rank"}``.
    memory : str
        What DuckDB may hold at once, as in ``"1GB"``; more goes to a temporary folder.
    rest : bool
        Keep the other columns too, each under its name after ``other_``.

    Raises
    ------
    ModuleNotFoundError
        Without the extra ``logs``.
    TypeError, ValueError
        For a source of another kind, files that are not there or cannot be read, or columns that are missing.
    """
    ibis = import_ibis()
    if isinstance(source, ibis.Table):
        yield _named(source, columns, rest)
        return
    with tempfile.TemporaryDirectory(prefix="cfltr-events-") as folder:
        try:
            database = ibis.duckdb.connect(memory_limit=memory, temp_directory=folder)
        except Exception as error:  # of DuckDB, which is not imported by name
            raise ValueError(f"memory is {memory!r}: expected a size as in '1GB' ({_line(error)})") from None
        try:
            yield _named(_opened(source, database), columns, rest)
        finally:
            database.disconnect()


def _opened(source: Any, database: Any) -> Any:
    """A data frame or files as a table of ``database``."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        _check_frame(source)
        import pyarrow as pa

        # A month of pandas would become its number.
        months = [name for name in source.columns if isinstance(source[name].dtype, pd.PeriodDtype)]
        # By way of Arrow, where nan in pandas is nothing in SQL.
        frame = source.astype(dict.fromkeys(months, str))
        database.con.register("events", pa.Table.from_pandas(frame, preserve_index=False))
        return database.table("events")
    if not isinstance(source, (str, Path, list, tuple)):
        raise TypeError(f"source is {type(source).__name__}: expected {SOURCES}")
    paths = _files([str(path) for path in ([source] if isinstance(source, (str, Path)) else source)])
    text = {path for path in paths if Path(path.removesuffix(".gz")).suffix.lower() in (".csv", ".tsv", ".txt")}
    if text and len(text) < len(paths):
        raise ValueError(f"source: {min(text)} is text, other files are not; read files of one kind")
    try:
        # All of a text is looked at before its columns get types: a word in the last line makes a column text.
        return database.read_csv(paths, sample_size=-1) if text else database.read_parquet(paths)
    except Exception as error:
        kind = "CSV" if text else "Parquet"
        raise ValueError(f"source: {paths[0]} … could not be read as {kind}: {_line(error)}") from error


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _files(patterns: list[str]) -> list[str]:
    """The files of paths, folders and globs, in order."""
    paths: list[str] = []
    for pattern in patterns:
        if "://" in pattern:
            found = [pattern]
        elif Path(pattern).is_dir():
            found = [str(path) for end in ("parquet", "csv") for path in sorted(Path(pattern).rglob(f"*.{end}"))]
        else:
            found = sorted(glob.glob(pattern, recursive=True))
        if not found:
            raise ValueError(f"source: there is no Parquet or CSV file at {pattern!r}; correct the path")
        paths += found
    return paths


def _check_frame(frame: pd.DataFrame) -> None:
    """Refuse columns without a name of their own, and columns of objects that are not all of one kind."""
    names = frame.columns.astype(str)
    if names.has_duplicates:
        twice = names[names.duplicated()][0]
        raise ValueError(f"source: two columns are called {twice!r}; give each a name of its own")
    for name in frame.columns:
        if not isinstance(name, str):
            raise ValueError(f"source: column {name!r} has no name in words; name the columns")
        if frame[name].dtype == object:
            kinds = frame[name].reset_index(drop=True).dropna().map(_kind_of)
            others = kinds[kinds != kinds.iloc[0]] if len(kinds) else kinds
            for row, kind in others[:1].items():
                raise ValueError(
                    f"source: column {name!r} holds {kinds.iloc[0]}, but in row {row} {kind}, "
                    f"{frame[name].iloc[row]!r}: make all of it numbers, or all of it text"
                )


def _kind_of(item: object) -> str:
    return "text" if isinstance(item, str) else "numbers" if isinstance(item, (int, float)) else "objects"


def _named(table: Any, columns: Mapping[str, str] | None, rest: bool) -> Any:
    """The columns of ``table`` that events have, under the names they have here; the ``rest`` after ``other_``."""
    given = dict(columns or {})
    known = (*REQUIRED, *OPTIONAL)
    for name in given:
        if name not in known:
            raise ValueError(f"columns[{name!r}] is {given[name]!r}: events have the columns {', '.join(known)}")
    theirs = {name: given.get(name, name) for name in known}
    there = list(table.columns)
    for name, found in theirs.items():
        if found not in there and (name in REQUIRED or name in given):
            raise ValueError(
                f"source: there is no column {found!r} for the {name}; it has {', '.join(map(str, there))}. Say which "
                f"it is, as in columns={{{name!r}: …}}"
            )
    asked = {name: found for name, found in theirs.items() if name in given or name not in BY_NAME}
    used = {name: table[found] for name, found in asked.items() if found in there}
    others = [name for name in there if rest and name not in asked.values()]
    return table.select(**used, **{f"other_{name}": table[name] for name in others})
