"""OPTIMIZE and REORG here and in Delta Spark, on copies of one table.

The same rows, the same files but for their bytes, the same history, the same report.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from twinlake import Table
from twinlake.errors import Code, ConflictError, TwinlakeError, UserError
from twinlake.runtime import engine_for
from twinlake.spark.executor import SparkExecutor
from twinlake.spark.maintenance.optimize import DeltaOptimizeBuilder, optimize, purge
from twinlake.spark.maintenance.rewrite import SparkRewriter
from twinlake.spark.read.scan import scan
from twinlake.spark.session import open_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from twinlake.actions import AddFile
    from twinlake.runtime import RewriteRequest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VECTORS = "delta.enableDeletionVectors"
TRACKING = "delta.enableRowTracking"
MAPPING = "delta.columnMapping.mode"
WIDENING = "delta.enableTypeWidening"

PLAIN = "id BIGINT, v INT, g STRING"
THREE = (
    "INSERT INTO {t} SELECT /*+ REPARTITION(3) */ * FROM VALUES (1, 10, 'a'), (2, null, 'b'), "
    "(3, 30, 'a'), (4, 40, null), (5, 50, 'b'), (6, 60, 'c')",
)
TYPES = (
    "id BIGINT, b BOOLEAN, y TINYINT, f FLOAT, x DOUBLE, d DECIMAL(20, 4), s STRING, r BINARY, "
    "day DATE, t TIMESTAMP, n TIMESTAMP_NTZ, st STRUCT<a: INT, `b.c`: STRING>, "
    "l ARRAY<STRUCT<a: INT>>, m MAP<STRING, ARRAY<INT>>, `dot.ted-ü` STRING"
)
EVERYTHING = (
    "INSERT INTO {t} VALUES (1, true, 1Y, float('NaN'), double('-Infinity'), 1.5, 'ü', X'00FF', "
    "DATE'1500-01-01', TIMESTAMP'2024-01-01 00:00:00.123456', TIMESTAMP_NTZ'1600-02-03 04:05:06', "
    "named_struct('a', 1, 'b.c', 'x'), array(named_struct('a', 1), null), "
    "map('k', array(1, null)), 'odd'), "
    "(2, null, null, null, null, null, null, null, null, null, null, null, null, null, null), "
    "(3, false, -1Y, 0.5, 0.25, -9999999999999999.9999, '', X'', "
    "DATE'9999-12-31', TIMESTAMP'1900-01-01 00:00:00', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', "
    "named_struct('a', null, 'b.c', null), array(), map(), null)",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, and what is done to it."""

    columns: str = PLAIN
    steps: tuple[str, ...] = THREE
    partition: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    purge: bool = False
    where: str = ""
    confs: dict[str, str] = field(default_factory=dict)
    frame: bool = False
    """Also through Spark's own reader and writer."""
    fixed: bool = True
    """Whether it is certain which rows come together: files of one size have no order."""


CASES: dict[str, Case] = {
    "plain": Case(frame=True),
    "every type": Case(columns=TYPES, steps=EVERYTHING, frame=True),
    "partitioned": Case(partition="PARTITIONED BY (g)", frame=True),
    "partitioned by times": Case(
        columns="id BIGINT, t TIMESTAMP, d DECIMAL(5, 2)",
        partition="PARTITIONED BY (t, d)",
        steps=(
            "INSERT INTO {t} VALUES (1, TIMESTAMP'2024-01-01 10:00:00.5', 1.5), (2, null, null)",
        )
        * 2,
    ),
    "one partition": Case(partition="PARTITIONED BY (g)", where="g = 'a' AND upper(g) = 'A'"),
    "nothing to do": Case(steps=("INSERT INTO {t} VALUES (1, 1, 'a')",)),
    "purge": Case(
        properties={VECTORS: "true", TRACKING: "true"},
        steps=(*THREE, "DELETE FROM {t} WHERE id IN (1, 6)"),
        purge=True,
        frame=True,
    ),
    "row tracking": Case(
        properties={VECTORS: "true", TRACKING: "true"},
        steps=(*THREE, "UPDATE {t} SET v = 0 WHERE id = 3", "DELETE FROM {t} WHERE id = 2"),
        frame=True,
    ),
    "mapped by name": Case(
        columns="id BIGINT, s STRUCT<a: INT, b: STRING>, gone INT, l ARRAY<STRUCT<q: INT>>",
        properties={MAPPING: "name"},
        steps=(
            "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 'x'), 1, "
            "array(named_struct('q', 1)))",
            "ALTER TABLE {t} RENAME COLUMN s.a TO z",
            "ALTER TABLE {t} ADD COLUMN (s.c INT AFTER z)",
            "ALTER TABLE {t} DROP COLUMN gone",
            "INSERT INTO {t} VALUES (2, named_struct('z', 2, 'c', 3, 'b', 'y'), null)",
        ),
        frame=True,
    ),
    "purge dropped columns": Case(
        properties={MAPPING: "name"},
        steps=(*THREE, "ALTER TABLE {t} DROP COLUMN v", "INSERT INTO {t} VALUES (9, 'z')"),
        purge=True,
    ),
    "mapped by id": Case(
        columns="id BIGINT, s STRUCT<a: INT, b: STRING>, g STRING",
        partition="PARTITIONED BY (g)",
        properties={MAPPING: "id"},
        steps=(
            "INSERT INTO {t} VALUES (1, named_struct('a', 1, 'b', 'x'), 'p')",
            "ALTER TABLE {t} RENAME COLUMN s.b TO c",
            "INSERT INTO {t} VALUES (2, named_struct('a', 2, 'c', 'y'), 'p')",
        ),
    ),
    "widened": Case(
        columns="id INT, f FLOAT, d DECIMAL(4, 2), day DATE, l ARRAY<SMALLINT>",
        properties={WIDENING: "true", "delta.feature.timestampNtz": "supported"},
        steps=(
            "INSERT INTO {t} VALUES (1, 0.1, 1.25, DATE'2024-01-01', array(1S, null))",
            "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
            "ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(10, 4)",
            "ALTER TABLE {t} ALTER COLUMN day TYPE TIMESTAMP_NTZ",
            "ALTER TABLE {t} ALTER COLUMN l.element TYPE INT",
            "INSERT INTO {t} VALUES (2, 0.2, 2.5, TIMESTAMP_NTZ'2024-01-01 01:00:00', null)",
        ),
        frame=True,
    ),
    "several bins": Case(
        confs={"spark.databricks.delta.optimize.maxFileSize": "2000"},
        steps=(THREE[0].replace("(3)", "(4)"),),
        fixed=False,
    ),
    "only hollow files": Case(
        properties={VECTORS: "true"},
        steps=(*THREE, "DELETE FROM {t} WHERE id IN (1, 2, 3)"),
        confs={
            "spark.databricks.delta.optimize.minFileSize": "1",
            "spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.4",
        },
    ),
}


def _make(spark: SparkSession, path: Path, case: Case) -> None:
    table = f"delta.`{path}`"
    listed = ", ".join(f"'{k}' = '{v}'" for k, v in case.properties.items())
    properties = f"TBLPROPERTIES ({listed})" if listed else ""
    spark.sql(f"CREATE TABLE {table} ({case.columns}) USING delta {case.partition} {properties}")
    for step in case.steps:
        spark.sql(step.format(t=table))


def _theirs(spark: SparkSession, path: Path, case: Case) -> Any:
    where = f"WHERE {case.where}" if case.where else ""
    if case.purge:
        return spark.sql(f"REORG TABLE delta.`{path}` {where} APPLY (PURGE)").collect()[0]
    return spark.sql(f"OPTIMIZE delta.`{path}` {where}").collect()[0]


def _ours(spark: SparkSession, path: Path, case: Case, engine: str) -> Any:
    rewriter = SparkRewriter(spark, engine)
    run = purge if case.purge else optimize
    return run(spark, path, case.where or None, rewriter=rewriter).to_frame(spark).collect()[0]


def _rows(spark: SparkSession, path: Path, *more: str) -> list[str]:
    frame = spark.read.format("delta").load(str(path)).select("*", *more)
    return sorted(str(row) for row in frame.collect())


def _last_commit(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    newest = max(path.glob("_delta_log/*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    kept = ("operation", "operationParameters", "isolationLevel", "isBlindAppend", "tags")
    said = {key: info.get(key) for key in (*kept, "readVersion")}
    # How many bytes a file has is its writer's own business.
    said["metrics"] = {
        key: value if "Size" not in key and key != "numAddedBytes" else "bytes"
        for key, value in info["operationMetrics"].items()
    }
    return said, sorted((_add(a["add"]) for a in actions if "add" in a), key=str)


def _add(add: dict[str, Any]) -> dict[str, Any]:
    kept = ("partitionValues", "dataChange", "baseRowId", "defaultRowCommitVersion", "tags")
    return {"stats": json.loads(add["stats"]), **{key: add.get(key) for key in kept}}


def _report(row: Any) -> dict[str, Any]:
    metrics = row["metrics"].asDict(recursive=True)
    for name in ("min", "max", "avg", "totalSize"):
        metrics["filesAdded"].pop(name)
    metrics.pop("startTimeMs")
    return {"metrics": metrics, "schema": row["metrics"].__fields__}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_optimize_and_reorg_do_what_delta_spark_does(
    delta_spark: SparkSession, tmp_path: Path, case: Case
) -> None:
    spark, theirs = delta_spark, tmp_path / "theirs"
    _make(spark, theirs, case)
    engines = ("arrow", "frame") if case.frame else ("arrow",)
    for engine in engines:
        shutil.copytree(theirs, tmp_path / engine)
    ids = [f"_metadata.row_{name}" for name in ("id", "commit_version")]
    ids = ids if TRACKING in case.properties else []
    before = _rows(spark, theirs, *ids)
    for key, value in case.confs.items():
        spark.conf.set(key, value)
    try:
        other = _theirs(spark, theirs, case)
        mine = {engine: _ours(spark, tmp_path / engine, case, engine) for engine in engines}
    finally:
        for key in case.confs:
            spark.conf.unset(key)
    assert _rows(spark, theirs, *ids) == before
    for engine, report in mine.items():
        ours = tmp_path / engine
        assert report["path"] == other["path"].replace("theirs", engine)
        assert _report(report) == _report(other)
        said, adds = _last_commit(ours)
        assert said == _last_commit(theirs)[0]
        assert adds == _last_commit(theirs)[1] or not case.fixed
        assert _rows(spark, ours, *ids) == before
        assert sorted(str(row) for row in scan(spark, ours).collect()) == _rows(spark, ours)


def test_the_report_has_the_columns_of_delta_spark(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    _make(delta_spark, tmp_path / "t", Case())
    mine = optimize(delta_spark, tmp_path / "t").to_frame(delta_spark)
    theirs = delta_spark.sql(f"OPTIMIZE delta.`{tmp_path / 't'}`")
    assert mine.schema == theirs.schema
    # Nothing is left to do, and nothing is committed then.
    assert optimize(delta_spark, tmp_path / "t").version is None
    assert Table.open(tmp_path / "t").version == 2


def test_purge_leaves_files_of_older_types_and_without_ids(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    _make(delta_spark, path, Case(properties={WIDENING: "true"}))
    for step in (
        f"ALTER TABLE delta.`{path}` ALTER COLUMN v TYPE BIGINT",
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{MAPPING}' = 'name')",
    ):
        delta_spark.sql(step)
    assert purge(delta_spark, path).version is None


def test_optimize_refuses_conditions_on_other_columns(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    _make(delta_spark, path, Case(partition="PARTITIONED BY (g)"))
    for where in ("v = 1", "g = 'a' AND v = 1", "nope = 1"):
        with pytest.raises(AnalysisException) as caught:
            optimize(delta_spark, path, where)
        assert caught.value.getCondition() == "DELTA_NON_PARTITION_COLUMN_REFERENCE"
    builder = DeltaOptimizeBuilder(delta_spark, lambda: open_table(delta_spark, path))
    assert builder.where("g = 'nowhere'").executeCompaction().count() == 1
    with pytest.raises(TwinlakeError, match="not supported yet"):
        builder.executeZOrderBy("v")
    assert Table.open(path).version == 1


@dataclass(frozen=True)
class Interrupted:
    """A rewriter during whose work somebody else deletes rows."""

    spark: SparkSession
    path: Path
    made: list[str] = field(default_factory=list)

    def rewrite(self, request: RewriteRequest) -> Sequence[Sequence[AddFile]]:
        written = SparkRewriter(self.spark).rewrite(request)
        self.made.extend(file.path for files in written for file in files)
        self.spark.sql(f"DELETE FROM delta.`{self.path}` WHERE id = 1")
        return written


def test_optimize_loses_to_a_delete_and_leaves_nothing_behind(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    _make(delta_spark, path, Case())
    rewriter = Interrupted(delta_spark, path)
    with pytest.raises(ConflictError) as caught:
        optimize(delta_spark, path, rewriter=rewriter)
    assert caught.value.winner == 2
    assert len(rewriter.made) == 1
    assert not (path / rewriter.made[0]).exists()


def test_features_are_dropped_and_constraints_checked_through_spark(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    case = Case(properties={VECTORS: "true", MAPPING: "name"}, partition="PARTITIONED BY (g)")
    _make(delta_spark, path, case)
    for step in ("DELETE FROM {t} WHERE id = 3", "ALTER TABLE {t} RENAME COLUMN v TO w"):
        delta_spark.sql(step.format(t=f"delta.`{path}`"))
    before = _rows(delta_spark, path)
    table = Table.open(path, policy="minimal")
    with pytest.raises(UserError) as caught:
        table.add_constraint("small", "w < 60", spark=delta_spark)
    assert "60" in str(caught.value)
    table = table.add_constraint("some", "id > 0", spark=delta_spark)
    table = table.drop_feature("deletionVectors", spark=delta_spark)
    assert not any(add.deletion_vector for add in table.snapshot.adds())
    table = table.drop_feature("columnMapping", spark=delta_spark)
    assert {key for add in table.snapshot.adds() for key in add.partition_values} == {"g"}
    assert _rows(delta_spark, path) == before


def test_row_ids_are_filled_in(delta_spark: SparkSession, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    _make(delta_spark, ours, Case())
    shutil.copytree(ours, theirs)
    Table.open(ours, policy="minimal").set_properties({TRACKING: "true"})
    delta_spark.sql(f"ALTER TABLE delta.`{theirs}` SET TBLPROPERTIES ('{TRACKING}' = 'true')")
    histories = [[record.operation for record in Table.open(p).history()] for p in (ours, theirs)]
    assert histories[0] == histories[1]
    rows = _rows(delta_spark, ours, "_metadata.row_id")
    assert len({row.rsplit("=", 1)[1] for row in rows}) == 6


def _half(number: int) -> int:
    if number == 41:
        raise UserError(Code.INVALID_ARGUMENT, "41 is odd.")
    return number // 2


def test_the_executor_keeps_order_and_errors(delta_spark: SparkSession) -> None:
    executor = SparkExecutor(delta_spark)
    assert list(executor.map(_half, range(40))) == [number // 2 for number in range(40)]
    engine = engine_for(delta_spark)
    assert engine is not None
    with pytest.raises(UserError, match="41 is odd"):
        list(engine.executor.map(_half, range(60)))
