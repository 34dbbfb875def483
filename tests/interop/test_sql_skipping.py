"""Which files statements of SQL open, which texts concern us, and what bad input leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.running import document, lines, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_FILES = 8


@pytest.fixture(scope="module")
def tables(
    delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """A table of eight files in two partitions, one of them with column mapping, and names."""
    from twinlake import Table
    from twinlake.spark import write
    from twinlake.table import Catalog

    folder = tmp_path_factory.mktemp("skipping")
    found = {name: str(folder / name) for name in ("plain", "mapped", "other")}
    mapping = {"delta.columnMapping.mode": "name"}
    for name, path in found.items():
        properties = mapping if name == "mapped" else {}
        Table.create(path, "id BIGINT, d STRING, p INT", partition_by=["p"], properties=properties)
        for file in range(_FILES):
            rows = delta_spark.range(file * 10, file * 10 + 10, 1, 1)
            write(rows.selectExpr("id", "concat('d', id) d", f"{file % 2} AS p"), path, "append")
    catalog = Catalog(folder / "names.db")
    catalog.register("skipped", found["plain"])
    delta_spark.conf.set("spark.twinlake.catalog", str(folder / "names.db"))
    yield found
    delta_spark.conf.unset("spark.twinlake.catalog")


QUERIES: dict[str, tuple[str, dict[str, str | None]]] = {
    "where": ("SELECT * FROM {plain} WHERE id > 65", {"plain": "id > 65"}),
    "alias": ("SELECT x.d FROM {plain} AS x WHERE x.id > 65", {"plain": "id > 65"}),
    "name": ("SELECT skipped.d FROM skipped WHERE skipped.id = 3", {"plain": "id = 3"}),
    "partition": ("SELECT d FROM {plain} WHERE p = 1", {"plain": "p = 1"}),
    "mapped": ("SELECT d FROM {mapped} WHERE id < 5 AND p = 0", {"mapped": "id < 5 AND p = 0"}),
    "join": (
        "SELECT a.d FROM {plain} a JOIN {other} b ON a.id = b.id WHERE a.id = 12 AND b.p = 1",
        {"plain": "id = 12", "other": "id = 12 AND p = 1"},
    ),
    "outer join": (
        "SELECT a.d FROM {plain} a LEFT JOIN {other} b ON a.id = b.id AND b.id < 5 WHERE a.id < 15",
        {"plain": "id < 15", "other": "id < 5"},
    ),
    "common table expression": (
        "WITH c AS (SELECT id AS k, d FROM {plain}) SELECT * FROM c WHERE k = 77",
        {"plain": "id = 77"},
    ),
    "expression used twice": (
        "WITH c AS (SELECT * FROM {plain}) "
        "SELECT id FROM c WHERE id = 1 UNION ALL SELECT id FROM c WHERE id = 71",
        {"plain": "id = 1 OR id = 71"},
    ),
    "union": (
        "SELECT id FROM {plain} WHERE id = 1 UNION ALL SELECT id FROM {other} WHERE id = 2",
        {"plain": "id = 1", "other": "id = 2"},
    ),
    "in a sub-query": (
        "SELECT * FROM (SELECT * FROM {plain} WHERE p = 1) s WHERE s.id = 12",
        {"plain": "id = 12 AND p = 1"},
    ),
    "view": ("SELECT * FROM skipping_view WHERE id = 33", {"plain": "id = 33 AND p = 1"}),
    "constant folded": ("SELECT * FROM {plain} WHERE id = 30 + 3", {"plain": "id = 33"}),
    "nothing to skip": ("SELECT * FROM {plain} WHERE length(d) = 2", {"plain": None}),
    "only one side": ("SELECT a.id FROM {plain} a, {other} b WHERE a.id = 1", {"other": None}),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_opens_the_files_that_a_scan_opens(
    name: str, tables: dict[str, str], delta_spark: SparkSession
) -> None:
    from twinlake.spark import scan, sql

    paths = {key: f"delta.`{path}`" for key, path in tables.items()}
    view = "CREATE OR REPLACE TEMP VIEW skipping_view AS SELECT * FROM {plain} WHERE p = 1"
    sql(delta_spark, view.format(**paths))
    text, conditions = QUERIES[name]
    opened = set(sql(delta_spark, text.format(**paths)).inputFiles())
    for table, where in conditions.items():
        wanted = set(scan(delta_spark, tables[table], where=where).inputFiles())
        assert {file for file in opened if f"/{table}/" in file} == wanted
        assert where is None or len(wanted) < _FILES


def test_a_query_sees_one_version_of_a_table(
    tables: dict[str, str], delta_spark: SparkSession
) -> None:
    from twinlake.spark import sql

    path = f"delta.`{tables['other']}`"
    found = sql(delta_spark, f"SELECT count(*) AS n FROM {path} a JOIN {path} b USING (id)").first()
    assert found is not None
    assert found.n == _FILES * 10


@pytest.mark.parametrize(
    ("text", "concerns"),
    [
        ("SELECT 1", False),
        ("SELECT 'delta' AS x, \"twinlake\" AS y -- delta.`/x`", False),
        ("SELECT * FROM no_name_of_ours", False),
        ("SET spark.sql.ansi.enabled = true", False),
        ("", False),
        ("SELECT * FROM delta.`/x`", True),
        ("SELECT * FROM TWINLAKE.`/x`", True),
        ("SELECT * FROM a JOIN default.Skipped s ON a.id = s.id", True),
        ("SELECT * FROM IDENTIFIER('a' || 'b')", True),
        ("SELECT * FROM table_changes('t', 1)", True),
        ("vacuum t", True),
        ("CREATE TABLE t (a INT) USING Delta", True),
        ("SHOW TABLES", True),
        ("SELECT * FROM concerning_view", True),
    ],
)
def test_texts_that_concern_us(
    text: str, concerns: bool, tables: dict[str, str], delta_spark: SparkSession
) -> None:
    from twinlake.spark import sql
    from twinlake.spark.statements import may_concern

    view = f"CREATE OR REPLACE TEMP VIEW concerning_view AS SELECT 1 FROM delta.`{tables['plain']}`"
    sql(delta_spark, view)
    assert may_concern(delta_spark, text) is concerns


BAD_INPUT: dict[str, tuple[str, str]] = {
    "half a statement": ("DELETE FROM {plain} WHERE id >", "PARSE_SYNTAX_ERROR"),
    "half of ours": ("RESTORE {plain} TO VERSION", "PARSE_SYNTAX_ERROR"),
    "two statements": ("DELETE FROM {plain}; DELETE FROM {plain}", "PARSE_SYNTAX_ERROR"),
    "two of ours": ("OPTIMIZE {plain}; OPTIMIZE {plain}", "PARSE_SYNTAX_ERROR"),
    "no statement": (" ", "PARSE_EMPTY_STATEMENT"),
    "nobody's statement": ("REMOVE ALL FROM {plain}", "PARSE_SYNTAX_ERROR"),
    "name in no catalog": ("DELETE FROM nobodys_table", "TABLE_OR_VIEW_NOT_FOUND"),
    "name in no catalog, ours": ("OPTIMIZE nobodys_table", "TABLE_OR_VIEW_NOT_FOUND"),
    "path without a table": ("DELETE FROM delta.`/nobodys/table`", "DELTA_TABLE_NOT_FOUND"),
    "merge into a view": (
        "MERGE INTO changed_view v USING {other} s ON v.id = s.id WHEN MATCHED THEN DELETE",
        "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
    ),
    "optimize a view": ("OPTIMIZE changed_view", "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE"),
    "value without a marker": ("SELECT * FROM {plain} WHERE id = :id", "UNBOUND_SQL_PARAMETER"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_changes_nothing(
    name: str, tables: dict[str, str], delta_spark: SparkSession
) -> None:
    from pyspark.errors import PySparkException

    from twinlake import Table
    from twinlake.spark import sql

    paths = {key: f"delta.`{path}`" for key, path in tables.items()}
    view = "CREATE OR REPLACE TEMP VIEW changed_view AS SELECT * FROM {plain}"
    sql(delta_spark, view.format(**paths))
    before = {key: Table.open(path).version for key, path in tables.items()}
    text, condition = BAD_INPUT[name]
    with pytest.raises(PySparkException) as raised:
        sql(delta_spark, text.format(**paths))
    assert raised.value.getCondition() == condition
    assert {key: Table.open(path).version for key, path in tables.items()} == before


def test_wrong_arguments_are_refused(delta_spark: SparkSession) -> None:
    from pyspark.errors import PySparkTypeError

    from twinlake.spark import sql

    wrong: Any = {"a", "b"}
    with pytest.raises(PySparkTypeError):
        sql(delta_spark, "SELECT * FROM delta.`/x` WHERE a = ?", wrong)
    nothing: Any = None
    with pytest.raises(TypeError, match="'text' must be a str"):
        sql(delta_spark, nothing)


def test_a_text_of_nobody_goes_to_spark(delta_spark: SparkSession, tmp_path: Path) -> None:
    from twinlake.spark import sql

    delta_spark.range(3).write.parquet(str(tmp_path / "p"))
    # Without parameters: the parser of Delta's extension does not hand them on to Spark's.
    rows = sql(delta_spark, f"SELECT max(id) AS m FROM parquet.`{tmp_path}/p` WHERE id < 2")
    assert [row.m for row in rows.collect()] == [1]


def test_the_command_prints_rows(tables: dict[str, str], delta_spark: SparkSession) -> None:
    assert delta_spark.getActiveSession() is not None
    path = f"delta.`{tables['plain']}`"
    query = f"SELECT id, d FROM {path} WHERE id BETWEEN ? AND 2 ORDER BY id"
    found = document("sql", query, "--arg", "1", "--limit", "1")
    assert found["rows"] == [{"id": 1, "d": "d1"}]
    assert found["is_complete"] is False
    assert lines("sql", query, "--arg", "1")[-1].split() == ["2", "d2"]
    assert lines("sql", "SET spark.twinlake.nothing = 1")[-1].split()[0] == "spark.twinlake.nothing"
    failed = run("sql", f"SELECT nothing FROM {path}", "--json")
    assert failed.exit_code == 1
    assert "UNRESOLVED_COLUMN" in failed.stderr + failed.stdout
