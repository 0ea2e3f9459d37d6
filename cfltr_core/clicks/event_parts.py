"""To which part a session goes, train, validation or test: a number that its id alone decides, the same everywhere.

Whole numbers need arithmetic only, which every database has.  Text needs a hash, which each calls otherwise, and a few
do not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cfltr_core.clicks.event_sources import import_ibis

# Prime, so that whole numbers are spread over all residues; and two multipliers of which powers are residues too.
PRIME, FIRST, SECOND = 2**31 - 1, 48_271, 69_621
# MD5 as 32 digits in lower case, by Ibis's name of the database: functions of one argument, the innermost first.
_CALLS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("postgres", "risingwave", "materialize", "snowflake", "mysql", "singlestoredb"), ("md5",)),
    **dict.fromkeys(("datafusion", "flink"), ("md5",)),
    **dict.fromkeys(("trino", "athena"), ("to_utf8", "md5", "to_hex", "lower")),
    "bigquery": ("md5", "to_hex"),
    "clickhouse": ("md5", "hex", "lower"),
}
# Those for which Ibis has the digits itself.
_OWN = ("duckdb", "pyspark", "databricks", "mssql", "exasol")


def part_of(session: Any, shares: Sequence[float], *, dialect: str | None = None) -> Any:
    """The part of each ``session`` (or query), 0, 1, …: by a number that it alone decides, spread evenly over [0, 1).

    Of whole numbers that is a congruential step modulo 2³¹ − 1, its high half mixed into the low one, and another
    step; of text it is MD5.  Every database computes the same, today and next year, whatever the order of the rows
    (but SQL Server hashes ``nvarchar`` as it keeps it, in UTF-16, and deals such text otherwise).

    Parameters
    ----------
    session : Ibis column
        Whole numbers or text.
    shares : (n_parts,)
    dialect : str, optional
        Ibis's name of the database that shall run it; that of the column's table, or DuckDB if it has none.

    Raises
    ------
    ValueError
        For more than one part of text where the database has no MD5, or of anything in SQLite, whose remainders are no
        whole numbers.

    Examples
    --------
    >>> import ibis
    >>> from cfltr_core.clicks.event_parts import part_of
    >>> from cfltr_core.clicks.event_sources import run_query
    >>> table = ibis.range(100_000).unnest().name("session").as_table()
    >>> run_query(table.group_by(part=part_of(table.session, [0.6, 0.2, 0.2])).agg(n=table.count())).n.sum()
    np.int64(100000)
    """
    ibis = import_ibis()
    part = ibis.literal(0, "int64")
    if len(shares) == 1:
        return part
    text = not session.type().is_integer()
    dialect = dialect or _dialect(session)
    if dialect == "sqlite" or (text and dialect not in (*_OWN, *_CALLS, "oracle")):
        number = "make session whole numbers, as by ibis.dense_rank().over(order_by=table.session), or "
        named, whole = ("", "") if dialect == "sqlite" else (" named by text", number)
        raise ValueError(
            f"source: sessions{named} cannot be dealt to parts in {dialect}, which lacks what that takes: {whole}write "
            "the rows to Parquet files, which are read here, or read with split=None, one part"
        )
    number = _digest(session.cast("string"), dialect) if text else _mixed(session)
    total = 0.0
    for share in shares[:-1]:
        total += share
        # No digit of a hexadecimal number comes after f.
        digits = f"{int(total * 16**8):08x}" if total < 1 else "g"
        part += (number >= (digits if text else int(total * PRIME))).ifelse(1, 0)
    return part


def _mixed(session: Any) -> Any:
    """A number below ``PRIME`` of a whole one."""
    # A remainder may be negative, or not, by database.
    residue = ((session % PRIME).cast("int64") + PRIME) % PRIME
    mixed = (residue * FIRST + 1) % PRIME
    return ((mixed ^ (mixed >> 15)) * SECOND) % PRIME


def _digest(text: Any, dialect: str) -> Any:
    """MD5 of ``text`` as hexadecimal digits."""
    if dialect in _OWN:
        return text.hexdigest("md5")
    if dialect == "oracle":
        return _called("lower", _called("rawtohex", _called("standard_hash", text, "MD5")))
    for name in _CALLS[dialect]:
        text = _called(name, text)
    return text


def _called(name: str, text: Any, *more: str) -> Any:
    """The database's own function ``name`` of ``text``; what is in between is text to Ibis too, which casts nothing."""

    def of_one(text: Any) -> None:
        """A name for Ibis, never run."""

    def of_two(text: Any, more: Any) -> None:
        """The same."""

    kinds = (("string",) * (1 + len(more)), "string")
    return import_ibis().udf.scalar.builtin(of_two if more else of_one, name=name, signature=kinds)(text, *more)


def _dialect(column: Any) -> str:
    """Ibis's name of the database in which ``column`` lies."""
    ibis = import_ibis()
    try:
        return str(ibis.get_backend(column).name)
    except ibis.common.exceptions.IbisError:  # of no database
        return "duckdb"
