"""The expression that counts, as SQL of every database that Ibis can write without a connection."""

import pkgutil
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("ibis", reason="the extra logs is not installed")

import ibis
import ibis.backends.sql.compilers as compilers
import sqlglot
import sqlglot.expressions as sge

import cfltr_core as cf
from cfltr_core.clicks.event_parts import part_of
from cfltr_core.clicks.event_sources import run_query
from cfltr_core.clicks.event_sql import (
    counted,
    event_rows,
    found_twice,
    page_summary,
    page_table,
    row_faults,
    term_counts,
)

SHARES = [0.6, 0.2, 0.2]
DIALECTS = [m.name for m in pkgutil.iter_modules(compilers.__path__) if hasattr(compilers, m.name)]
DIALECTS = [name for name in DIALECTS if hasattr(getattr(compilers, name), "compiler")]
# MD5 of text as 32 digits in lower case, as the manual of each database has it.
DIGESTS = {
    **dict.fromkeys(
        ("duckdb", "postgres", "risingwave", "materialize", "snowflake", "datafusion"), 'MD5("t0"."session")'
    ),
    **dict.fromkeys(("pyspark", "databricks", "mysql", "flink"), "MD5(`t0`.`session`)"),
    **dict.fromkeys(("trino", "athena"), 'LOWER(TO_HEX(MD5(TO_UTF8("t0"."session"))))'),
    "bigquery": "TO_HEX(MD5(`t0`.`session`))",
    "clickhouse": 'LOWER(HEX(MD5("t0"."session")))',
    "exasol": 'HASH_MD5("t0"."session")',
    "mssql": "LOWER(CONVERT(VARCHAR(MAX), HASHBYTES('MD5', [t0].[session]), 2))",
    "oracle": 'LOWER(RAWTOHEX(STANDARD_HASH("t0"."session", \'MD5\')))',
}
WITHOUT = ("druid", "impala", "sqlite")
# These refuse to make a number of a condition by a cast.
STRICT = ("postgres", "risingwave", "materialize", "oracle", "mssql")


def expressions(dialect: str) -> dict[str, Any]:
    """All that is asked of a database: rows, pages, and counts of sessions named by numbers and by text."""
    kinds = {"session": "string", "query": "string", "document": "string", "position": "int64", "clicked": "boolean"}
    kinds |= {"ranker": "string", "period": "date", "length": "int32"}
    table, whole = (ibis.table(kinds | {"session": session}, name="events") for session in ("string", "int64"))
    index = ibis.table({"of_query": "string", "of_document": "string", "row": "int64", "place": "int64"}, name="lists")
    names = {"ranker": ibis.table({"ranker": "string", "ranker_number": "int64"}, name="rankers")}
    rows = event_rows(table, index)
    pages = page_table(rows, longest=10)
    faults = {f"fault_{i}": counted(bad) for i, (_, bad, _) in enumerate(row_faults(table).values())}
    out = {"rows": table.aggregate(rows=table.count(), **faults)}
    if dialect != "pyspark":  # of which Ibis asks its session how it treats nan
        out |= {"pages": page_summary(pages), "twice": found_twice(rows, pages.filter(pages.again), "row")}
        out["slots"] = page_summary(page_table(rows, longest=10, gaps="keep"))
    out["whole"] = term_counts(whole, index, [1.0] if dialect == "sqlite" else SHARES, names, dialect)
    out["tops"] = term_counts(whole, index, [1.0], names, dialect, gaps="keep")
    out["text"] = term_counts(table, index, [1.0] if dialect in WITHOUT else SHARES, names, dialect)
    return out


def test_every_dialect_is_looked_at() -> None:
    assert {"bigquery", "postgres", "snowflake", "trino", "duckdb", "pyspark"} <= set(DIALECTS)
    assert set(DIALECTS) == {*DIGESTS, *WITHOUT}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_that_is_asked_has_a_form(dialect: str) -> None:
    """It compiles, and where a condition cannot be cast to a number, it is not."""
    for what, expression in expressions(dialect).items():
        sql = str(ibis.to_sql(expression, dialect=dialect))
        if dialect not in STRICT:
            continue
        tree = sqlglot.parse_one(sql, dialect=getattr(compilers, dialect).compiler.dialect)
        for cast in tree.find_all(sge.Cast):
            assert not isinstance(cast.this.unnest(), (sge.Predicate, sge.Connector, sge.Not)), (what, cast.sql())


@pytest.mark.parametrize("dialect", DIGESTS)
def test_text_is_hashed_as_the_database_does_it(dialect: str) -> None:
    table = ibis.table({"session": "string"}, name="events")
    sql = str(ibis.to_sql(table.select(part=part_of(table.session, SHARES, dialect=dialect)), dialect=dialect))
    assert f"{DIGESTS[dialect]} >= '99999999'" in " ".join(sql.split())
    assert f"{DIGESTS[dialect]} >= 'cccccccc'" in " ".join(sql.split())


@pytest.mark.parametrize("dialect", WITHOUT)
def test_where_text_has_no_hash_it_says_what_to_do(dialect: str) -> None:
    table = ibis.table({"session": "string", "number": "int64"}, name="events")
    with pytest.raises(ValueError, match=rf"^source: sessions.* cannot be dealt to parts in {dialect}.*split=None"):
        part_of(table.session, SHARES, dialect=dialect)
    part_of(table.session, [1.0], dialect=dialect)
    if dialect != "sqlite":
        part_of(table.number, SHARES, dialect=dialect)


def test_functions_called_by_name_deal_as_the_operation_of_ibis() -> None:
    con = ibis.duckdb.connect()
    con.raw_sql("CREATE MACRO rawtohex(x) AS upper(x)")
    con.raw_sql("CREATE MACRO standard_hash(x, how) AS CASE how WHEN 'MD5' THEN md5(x) END")
    con.con.register("events", pd.DataFrame({"session": [f"visit {i} ü" for i in range(500)]}))
    table = con.table("events")
    wanted = run_query(table.select("session", part=part_of(table.session, SHARES)))
    assert sorted(set(wanted.part)) == [0, 1, 2]
    for dialect in ("postgres", "oracle"):
        found = run_query(table.select("session", part=part_of(table.session, SHARES, dialect=dialect)))
        assert found.equals(wanted), dialect
    con.disconnect()


def test_a_database_that_cannot_is_refused_before_pages_are_looked_at() -> None:
    pytest.importorskip("regex", reason="Ibis's SQLite needs it")
    con = ibis.sqlite.connect()
    frame = pd.DataFrame({"session": [1, 2], "query": 7, "document": 5, "position": 1, "clicked": [0, 1]})
    frame.to_sql("events", con.con, index=False)
    features = pd.DataFrame({"query": [7], "document": [5], "x": [1]})
    with pytest.raises(ValueError, match="cannot be dealt to parts in sqlite"):
        cf.read_events(con.table("events"), features)
    assert cf.read_events(con.table("events"), features, split=None).n_clicks == 1
