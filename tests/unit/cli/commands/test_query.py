"""``twinlake query``: DuckDB on the rows of a table, and on nothing else."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.unit.cli.running import document, grid, lines, run
from twinlake import Table
from twinlake.cli.query_columns import scanned_columns

if TYPE_CHECKING:
    from pathlib import Path

duckdb = pytest.importorskip("duckdb")


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) AS n FROM t", [{"n": 6}]),
        ("select sum(id) s from sales", [{"s": 15}]),
        ("FROM t SELECT id WHERE id > 4", [{"id": 5}]),
        ("WITH a AS (SELECT max(id) m FROM t) SELECT m FROM a;", [{"m": 5}]),
        ("/* ä */ -- why\n (select 1 a) union all (select 2) order by a", [{"a": 1}, {"a": 2}]),
        ("select count(*) n from t a join sales b on a.id = b.id", [{"n": 6}]),
        ("select sum(id) * 10000000000000000000 s from t", [{"s": "150000000000000000000"}]),
        ("select 1 a, 2 a", [{"a": 1, "a_1": 2}]),
        ("select interval 1 month i", [{"i": "P1M0DT0S"}]),
        ("select seen from t where id = 0", [{"seen": "2024-01-01T10:00:00Z"}]),
        ("select tags, token k from t where id = 0", [{"tags": {"a": [1, None]}, "k": "visible"}]),
        ("select id from t where false", []),
    ],
)  # fmt: skip
def test_queries(sales: Path, sql: str, rows: list[object]) -> None:
    found = document("query", sales, sql)
    assert set(found) == {"location", "version", "columns", "is_complete", "rows"}
    assert found["rows"] == rows


def test_describe_and_summarize(sales: Path) -> None:
    for sql, names in {
        "DESCRIBE t": list(Table.open(sales).schema.names()),
        "SUMMARIZE SELECT id, name FROM t": ["id", "name"],
    }.items():
        assert [row["column_name"] for row in document("query", sales, sql)["rows"]] == names


def test_a_grid_for_people(sales: Path) -> None:
    assert grid(lines("query", sales, "select id, name from t where id < 2 order by id"), "id") == [
        ["0", "name 0"],
        ["1", "null"],
    ]
    assert lines("query", sales, "select id from t where id > 9") == ["id", "no rows"]


def test_limit(sales: Path) -> None:
    words = ("query", sales, "select id from t order by id", "--limit", 2)
    assert lines(*words) == ["id", " 0", " 1", "the first 2 rows; --limit sets the number"]
    assert document(*words)["is_complete"] is False
    assert document("query", sales, "select id from t", "--limit", 6)["is_complete"] is True


def test_time_travel(sales: Path) -> None:
    assert document("query", sales, "select count(*) n from t", "--version", 0)["rows"] == [
        {"n": 0}
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "", "/* nothing */", "select 1; select 2", "pragma version", "show tables",
        "insert into t select * from t", "create table x as select 1", "copy t to 'PATH/x.csv'",
        "attach 'PATH/x.db'", "set threads = 1", "export database 'PATH/x'", "load httpfs",
        "install httpfs", "call pragma_version()", "explain analyze copy t to 'PATH/x.csv'",
    ],
)  # fmt: skip
def test_only_one_statement_that_reads(sales: Path, tmp_path: Path, sql: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    result = run("query", sales, sql.replace("PATH", str(tmp_path)))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("TWIN-INVALID-ARGUMENT  The query is not one statement")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "sql",
    [
        "from read_csv('PATH/secret.csv')", "from 'PATH/secret.csv'", "from glob('PATH/*')",
        "from read_text('PATH/secret.csv')", "from read_blob('PATH/secret.csv')",
        "from query('copy (select 1) to ''PATH/x.csv''')", "from rows",
    ],
)  # fmt: skip
def test_a_query_reads_nothing_but_the_table(sales: Path, tmp_path: Path, sql: str) -> None:
    (tmp_path / "secret.csv").write_text("hunter2\n")
    result = run("query", sales, sql.replace("PATH", str(tmp_path)), "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["what"] == "DuckDB cannot run the query."
    assert "hunter2" not in result.output
    assert not (tmp_path / "x.csv").exists()


def test_stored_secrets_are_not_read(
    sales: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with duckdb.connect() as connection:
        connection.execute(f"SET secret_directory = '{tmp_path / '.duckdb/stored_secrets'}'")
        connection.execute("CREATE PERSISTENT SECRET hidden (TYPE http, BEARER_TOKEN 'hunter2')")
    assert "hidden" not in run("query", sales, "select name from duckdb_secrets()").output


def test_a_log_of_duckdb_is_not_written(sales: Path, tmp_path: Path) -> None:
    target = tmp_path / "log"
    run("query", sales, f"from enable_logging(storage = 'file', storage_path = '{target}')")
    assert not target.exists()


def test_wording_of_a_query_that_fails(sales: Path) -> None:
    result = run("query", sales, "select nam from t")
    assert result.exit_code == 1
    what, why, fix = result.stderr.splitlines()
    assert what == "TWIN-INVALID-ARGUMENT  DuckDB cannot run the query."
    assert '"nam" not found' in why
    assert "`twinlake schema PATH`" in fix
    assert len(run("query", sales, "selec 1").stderr.splitlines()) == 3
    assert len(run("query", sales, "select error('a\nb')").stderr.splitlines()) == 3


def test_an_error_of_the_table_stays_one(orders: Path) -> None:
    # The files of this table are only in its log.
    result = run("query", orders, "select * from t")
    assert result.exit_code == 1
    assert result.stderr.startswith("TWIN-STORAGE")
    assert "arrow_scan" not in result.stderr


def test_without_duckdb_the_error_names_the_extra(
    sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    result = run("query", sales, "select 1")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "  fix: Run `pip install 'twinlake[duckdb]'`."


WIDE = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("n", pa.int32()),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("s.x", pa.int32()),
        ('odd "name"', pa.int32()),
    ]
)
EVERYTHING = tuple(WIDE.names)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT id FROM t", ("id",)),
        ("SELECT count(*) FROM t", ()),
        ("SELECT id FROM t WHERE name = 'a'", ("id", "name")),
        ("SELECT ID FROM T ORDER BY N LIMIT 1", ("id", "n")),
        ("SELECT #2 FROM t", ("name",)),
        ("SELECT COLUMNS('^n') FROM t", ("name", "n")),
        ("SELECT s.x FROM t", ("s", "s.x")),
        ('SELECT "s.x" FROM t', ("s", "s.x")),
        ('SELECT "odd ""name""" FROM t', ('odd "name"',)),
        ("SELECT a.id FROM t a JOIN t b ON a.n = b.n", ("id", "n")),
        ("SELECT id FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.n = a.n)", ("id", "n")),
        ("WITH q AS MATERIALIZED (SELECT * FROM t) SELECT id FROM q WHERE n = 1", ("id", "n")),
        ("SELECT row_number() OVER (ORDER BY n) FROM t", ("n",)),
        ("SELECT id FROM t UNION ALL SELECT n FROM t", ("id", "n")),
        ("SELECT * EXCLUDE (s, name) FROM t", ("id", "n", "s", "s.x", 'odd "name"')),
        ("SELECT t FROM t", EVERYTHING),
        ("FROM t", EVERYTHING),
        ("SELECT DISTINCT * FROM t", EVERYTHING),
        ("SUMMARIZE t", EVERYTHING),
        ("DESCRIBE t", EVERYTHING),
        ("SELECT 1", EVERYTHING),
        ("SELECT missing FROM t", EVERYTHING),
    ],
)
def test_only_columns_of_the_query_are_read(sql: str, columns: tuple[str, ...]) -> None:
    with duckdb.connect(":memory:") as connection:
        assert scanned_columns(connection, sql, ["t"], WIDE) == columns
        # What the plan was made for is gone: the optimizers work, and the names are free.
        disabled = connection.execute("SELECT current_setting('disabled_optimizers')").fetchone()
        assert disabled == ("",)
        with pytest.raises(duckdb.CatalogException):
            connection.execute("FROM t")


def test_a_name_of_two_lines_takes_all_columns() -> None:
    schema = pa.schema([("a\nb", pa.int32()), ("c", pa.int32())])
    with duckdb.connect(":memory:") as connection:
        assert scanned_columns(connection, "SELECT c FROM t", ["t"], schema) == ("a\nb", "c")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t WHERE n > 1 ORDER BY id",
        "SELECT count(*) FROM t",
        "SELECT a.id, b.name FROM t a JOIN t b ON a.id = b.n ORDER BY ALL",
        "SELECT id, (SELECT max(n) FROM t b WHERE b.name = a.name) FROM t a ORDER BY ALL",
        "SELECT name, sum(n) FILTER (WHERE id > 1) FROM t GROUP BY ALL HAVING min(id) > 0 "
        "ORDER BY ALL",
        "WITH RECURSIVE r AS (SELECT min(id) i FROM t UNION ALL SELECT i + 1 FROM r WHERE i < "
        "(SELECT max(n) FROM t)) SELECT * FROM r ORDER BY ALL",
        "SELECT name, n FROM t QUALIFY row_number() OVER (PARTITION BY name ORDER BY id) = 1 "
        "ORDER BY ALL",
        "SELECT * FROM (UNPIVOT t ON id, n INTO NAME k VALUE v) ORDER BY ALL",
        "SELECT * FROM (PIVOT t ON name IN ('a', 'b') USING sum(n) GROUP BY id) ORDER BY ALL",
        "SELECT a.s.y, z.c FROM t a, LATERAL (SELECT b.n c FROM t b WHERE b.id = a.id) z "
        "ORDER BY ALL",
        "SELECT x FROM t x ORDER BY x.id",
        "SELECT id FROM t a SEMI JOIN t b USING (n) ORDER BY id",
        "SELECT id FROM t WHERE name IN (SELECT name FROM t WHERE s.x > 1) ORDER BY id",
    ],
)
def test_results_are_those_of_the_whole_table(tmp_path: Path, sql: str) -> None:
    columns = "id BIGINT, name STRING, n INT, s STRUCT<x: INT, y: STRING>"
    table = Table.create(tmp_path / "t", columns)
    rows = pa.table(
        {
            "id": [1, 2, 3, 4],
            "name": ["a", "b", "a", None],
            "n": pa.array([1, 2, None, 4], pa.int32()),
            "s": [{"x": i, "y": str(i)} if i else None for i in (1, 2, 0, 4)],
        }
    )
    table = table.append(rows)
    with duckdb.connect(":memory:") as connection:
        connection.register("t", table.to_arrow())
        expected = connection.sql(sql).fetchall()
    assert expected
    found = document("query", tmp_path / "t", sql)["rows"]
    assert [tuple(row.values()) for row in found] == expected
