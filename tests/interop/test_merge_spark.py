"""MERGE here and in Delta Spark, on copies of one table: the same rows, schema and history."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from pyspark import errors as spark_errors

from twinlake.spark.dml.merge.builder import DeltaMergeBuilder
from twinlake.spark.dml.merge.execution import MergeRequest
from twinlake.spark.dml.merge.resolution import ExpressionScope, has_equal_keys, is_repeatable
from twinlake.spark.read.scan import scan
from twinlake.spark.session import open_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

VECTORS = "delta.enableDeletionVectors"
FEED = "delta.enableChangeDataFeed"
TRACKING = "delta.enableRowTracking"
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
AUTO_MERGE = "spark.databricks.delta.schema.autoMerge.enabled"

KEYED = "id BIGINT, v STRING"
ABC = ("VALUES (1, 'a'), (2, 'b'), (3, 'c')",)
TWO = "SELECT * FROM VALUES (2L, 'x'), (4L, 'y') AS s(id, v)"
STRUCT = "id BIGINT, s STRUCT<a: INT, b: STRING>"
NESTED = (
    "VALUES (1, named_struct('a', 1, 'b', 'x')), (2, null), (3, named_struct('a', 3, 'b', 'z'))",
)

Step = tuple[str, dict[str, Any]]
UPSERT: tuple[Step, ...] = (("whenMatchedUpdateAll", {}), ("whenNotMatchedInsertAll", {}))
UPDATE_SOME: Step = ("whenMatchedUpdateAll", {"condition": "s.v <> 'k'"})
UPSERT_SOME: tuple[Step, ...] = (UPDATE_SOME, ("whenNotMatchedInsertAll", {}))
APART = (*ABC, "VALUES (10, 'p'), (11, 'q')")
UNTAKEN = "SELECT * FROM VALUES (2L, 'x'), (10L, 'k'), (99L, 'k') AS s(id, v)"
UPDATE_KNOWN: Step = ("whenMatchedUpdate", {"condition": "s.v <> 'k'", "set": {"v": "s.id"}})
UNKNOWN = "SELECT * FROM VALUES (2L, null), (2L, null) AS s(id, v)"
UNKNOWN_AND_TAKEN = "SELECT * FROM VALUES (2L, null), (2L, 'x') AS s(id, v)"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One table, one source, one MERGE."""

    columns: str = KEYED
    rows: tuple[str, ...] = ABC
    source: str = TWO
    on: str = "t.id = s.id"
    steps: tuple[Step, ...] = UPSERT
    properties: dict[str, str] = field(default_factory=dict)
    evolve: bool = False
    partition: str = ""
    broadcast: bool = True
    drawn: str | None = None
    """An identity column: which values new rows get is a matter of how they are spread."""
    spares: bool = False
    """Whether there are files with matches that change nothing, which Delta Spark writes again."""


CASES: dict[str, Case] = {
    "upsert": Case(),
    "upsert-from-large-source": Case(properties={VECTORS: "true"}, broadcast=False),
    "upsert-feed": Case(properties={FEED: "true"}),
    "upsert-vectors-feed-tracking": Case(
        properties={VECTORS: "true", FEED: "true", TRACKING: "true"}
    ),
    "all-kinds": Case(
        steps=(
            ("whenMatchedDelete", {"condition": "s.v = 'q'"}),
            ("whenMatchedUpdate", {"set": {"v": "concat(t.v, s.v)"}}),
            ("whenNotMatchedInsert", {"values": {"id": "id", "v": "upper(v)"}}),
            ("whenNotMatchedBySourceUpdate", {"condition": "t.id > 2", "set": {"t.v": "'z'"}}),
            ("whenNotMatchedBySourceDelete", {}),
        ),
        properties={FEED: "true"},
    ),
    "insert-only": Case(steps=(("whenNotMatchedInsertAll", {}),), properties={FEED: "true"}),
    "matched-delete-repeats": Case(
        rows=("VALUES (1, 'a'), (2, 'b'), (3, 'c')",),
        source="SELECT * FROM VALUES (2L, 'x'), (2L, 'y'), (9L, 'n') AS s(id, v)",
        steps=(("whenMatchedDelete", {}), ("whenNotMatchedInsertAll", {})),
        properties={VECTORS: "true", FEED: "true"},
    ),
    "by-source-only": Case(steps=(("whenNotMatchedBySourceDelete", {}),)),
    "changes-nothing": Case(steps=(("whenMatchedDelete", {"condition": "s.v = 'q'"}),)),
    "nulls-never-match": Case(
        rows=("VALUES (null, 'a'), (2, null)",),
        source="SELECT * FROM VALUES (CAST(null AS BIGINT), 'x'), (2L, 'y') AS s(id, v)",
    ),
    "null-safe-condition": Case(
        rows=("VALUES (null, 'a'), (2, null)",),
        source="SELECT * FROM VALUES (CAST(null AS BIGINT), 'x'), (2L, 'y') AS s(id, v)",
        on="t.id <=> s.id",
        steps=(("whenMatchedUpdateAll", {"condition": "t.v is null or s.v = 'x'"}),),
    ),
    "target-predicate": Case(
        rows=("VALUES (1, 'a'), (2, 'b')", "VALUES (12, 'p'), (13, 'c')"),
        on="t.id = s.id AND t.id < 3 AND s.v <> 'k'",
    ),
    "partitions-and-vectors": Case(
        partition="v",
        rows=("VALUES (1, 'a'), (2, 'b'), (5, 'b')", "VALUES (3, 'c')"),
        properties={VECTORS: "true"},
    ),
    "column-mapping": Case(
        columns="id BIGINT, `v w` STRING, s STRUCT<`x y`: INT>",
        rows=("VALUES (1, 'a', named_struct('x y', 1)), (2, 'b', null)",),
        source="SELECT 2L AS id, 'n' AS `v w`, named_struct('x y', 5) AS s",
        properties={"delta.columnMapping.mode": "name", VECTORS: "true"},
    ),
    "casts": Case(
        columns="id BIGINT, n INT, d DECIMAL(10, 2)",
        rows=("VALUES (1, 1, 1.5), (2, 2, 2.5)",),
        source="SELECT * FROM VALUES ('2', 7L, '3.25'), ('3', 8L, '4') AS s(id, n, d)",
    ),
    "nested-field": Case(
        columns=STRUCT,
        rows=NESTED,
        source="SELECT * FROM VALUES (1L, 5), (2L, 6) AS s(id, n)",
        steps=(("whenMatchedUpdate", {"set": {"s.a": "s.n"}}),),
    ),
    "struct-by-name": Case(
        columns=STRUCT,
        rows=NESTED,
        source="SELECT 1L AS id, named_struct('b', 'q', 'a', 7) AS s",
    ),
    "evolve": Case(
        source="SELECT * FROM VALUES (2L, 'x', 1.5D), (4L, 'y', 2.5D) AS s(id, v, n)",
        evolve=True,
        properties={FEED: "true"},
    ),
    "evolve-fewer-columns": Case(
        source="SELECT * FROM VALUES (2L, 1.5D), (4L, 2.5D) AS s(id, n)", evolve=True
    ),
    "evolve-nested": Case(
        columns=STRUCT,
        rows=NESTED,
        source="SELECT 1L AS id, named_struct('b', 'q', 'c', 2) AS s "
        "UNION ALL SELECT 9L, named_struct('b', 'r', 'c', 3) UNION ALL SELECT 3L, null",
        evolve=True,
    ),
    "evolve-by-assignment": Case(
        source="SELECT * FROM VALUES (2L, 1.5D, 1), (4L, 2.5D, 2) AS s(id, n, m)",
        steps=(
            ("whenMatchedUpdate", {"set": {"n": "s.n + 1"}}),
            ("whenNotMatchedInsert", {"values": {"id": "s.id"}}),
        ),
        evolve=True,
    ),
    "evolve-only": Case(
        source="SELECT * FROM VALUES (7L, 'x', 1.5D) AS s(id, v, n)",
        steps=(("whenMatchedUpdateAll", {}),),
        evolve=True,
    ),
    "generated": Case(
        columns="id BIGINT, v STRING, g BIGINT GENERATED ALWAYS AS (id * 2)",
        rows=("(id, v) VALUES (1, 'a'), (2, 'b')",),
        steps=(
            ("whenMatchedUpdate", {"set": {"id": "s.id + 10"}}),
            ("whenNotMatchedInsert", {"values": {"id": "s.id", "v": "s.v"}}),
        ),
    ),
    "identity": Case(
        columns="id BIGINT, v STRING, g BIGINT GENERATED ALWAYS AS IDENTITY",
        rows=("(id, v) VALUES (1, 'a')",),
        source="SELECT 4L AS id, 'y' AS v",
        drawn="g",
        steps=(
            ("whenMatchedUpdate", {"set": {"v": "s.v"}}),
            ("whenNotMatchedInsert", {"values": {"id": "s.id", "v": "s.v"}}),
        ),
    ),
    "defaults": Case(
        columns="id BIGINT, v STRING DEFAULT 'dd', w INT",
        rows=("(id) VALUES (1)",),
        steps=(("whenNotMatchedInsert", {"values": {"id": "s.id"}}),),
        properties={"delta.feature.allowColumnDefaults": "supported"},
    ),
    "empty-table": Case(rows=()),
    "update-delete-insert-tracked": Case(
        rows=("VALUES (1, 'a'), (2, 'b'), (3, 'c')", "VALUES (4, 'd')", "VALUES (5, 'e')"),
        source="SELECT * FROM VALUES (2L, 'q'), (3L, 'x'), (4L, 'y'), (7L, 'q'), (8L, 'n') "
        "AS s(id, v)",
        steps=(
            ("whenMatchedDelete", {"condition": "s.v = 'q'"}),
            ("whenMatchedUpdate", {"set": {"v": "concat(t.v, s.v)"}}),
            ("whenNotMatchedInsert", {"condition": "s.v <> 'q'", "values": {"id": "s.id"}}),
        ),
        properties={TRACKING: "true"},
    ),
    "rows-move-between-partitions": Case(
        partition="v",
        rows=("VALUES (1, 'a'), (2, 'b'), (5, 'b')", "VALUES (3, null)"),
        source="SELECT * FROM VALUES (5L, 'a'), (3L, 'n'), (4L, null) AS s(id, v)",
    ),
    "condition-without-an-equation": Case(on="t.id <= s.id AND t.id >= s.id"),
    "untaken-matches": Case(rows=APART, source=UNTAKEN, steps=UPSERT_SOME, spares=True),
    "untaken-matches-vectors": Case(
        rows=APART, source=UNTAKEN, steps=UPSERT_SOME, properties={VECTORS: "true"}
    ),
    "untaken-matches-feed": Case(
        rows=APART, source=UNTAKEN, steps=UPSERT_SOME, properties={FEED: "true"}, spares=True
    ),
    "untaken-matches-from-large-source": Case(
        rows=APART, source=UNTAKEN, steps=UPSERT_SOME, broadcast=False, spares=True
    ),
    "untaken-matches-by-source": Case(
        rows=APART,
        source=UNTAKEN,
        steps=(UPDATE_SOME, ("whenNotMatchedBySourceDelete", {"condition": "t.id = 3"})),
        properties={VECTORS: "true"},
    ),
    "inserts-where-matches-repeat": Case(
        source="SELECT * FROM VALUES (2L, 'k'), (2L, 'k'), (9L, 'y') AS s(id, v)",
        steps=(("whenNotMatchedInsertAll", {}),),
    ),
    "unknown-matches-repeat": Case(source=UNKNOWN, steps=(UPDATE_KNOWN,)),
    "unknown-matches-repeat-vectors": Case(
        source=UNKNOWN, steps=(UPDATE_KNOWN,), properties={VECTORS: "true"}
    ),
    "unknown-and-taken-match-vectors": Case(
        source=UNKNOWN_AND_TAKEN, steps=(UPDATE_KNOWN,), properties={VECTORS: "true"}
    ),
}

_WHEN = {
    "whenMatched": "WHEN MATCHED",
    "whenNotMatched": "WHEN NOT MATCHED",
    "whenNotMatchedBySource": "WHEN NOT MATCHED BY SOURCE",
}
_THEN = re.compile(r"(\w+?)(UpdateAll|InsertAll|Update|Insert|Delete)$")


def _sql(case: Case, path: Path) -> str:
    parts = [f"MERGE INTO delta.`{path}` t USING merge_source s ON {case.on}"]
    for name, arguments in case.steps:
        found = _THEN.match(name)
        assert found is not None
        given = arguments.get("set") or arguments.get("values") or {}
        then = {
            "UpdateAll": "UPDATE SET *",
            "InsertAll": "INSERT *",
            "Delete": "DELETE",
            "Update": "UPDATE SET " + ", ".join(f"{k} = {v}" for k, v in given.items()),
            "Insert": f"INSERT ({', '.join(given)}) VALUES ({', '.join(given.values())})",
        }[found[2]]
        condition = arguments.get("condition")
        parts.append(f"{_WHEN[found[1]]}{f' AND {condition}' if condition else ''} THEN {then}")
    return " ".join(parts)


class Tables:
    """Tables as Delta Spark makes them, each made once."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._made: dict[str, Path] = {}

    def of(self, case: Case) -> Path:
        """The table of a case, to be copied or left as it is."""
        key = repr((case.columns, case.rows, case.properties, case.partition))
        if key not in self._made:
            self._made[key] = self._folder / str(len(self._made))
            _created(self._spark, case, self._made[key])
        return self._made[key]


@pytest.fixture(scope="module")
def tables(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The tables that cases start from."""
    return Tables(delta_spark, tmp_path_factory.mktemp("merge"))


def _created(spark: SparkSession, case: Case, path: Path) -> None:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in case.properties.items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({case.columns}) USING delta"
        + (f" PARTITIONED BY ({case.partition})" if case.partition else "")
        + (f" TBLPROPERTIES ({listed})" if listed else "")
    )
    for rows in case.rows:
        spark.sql(f"INSERT INTO delta.`{path}` {rows}")


def _builder(spark: SparkSession, case: Case, path: Path, source: DataFrame) -> DeltaMergeBuilder:
    request = MergeRequest(
        source=source.alias("s"), condition=case.on, clauses=(), alias="t", evolution=case.evolve
    )
    builder = DeltaMergeBuilder(spark, lambda: open_table(spark, path), request)
    for name, arguments in case.steps:
        builder = getattr(builder, name)(**arguments)
    return builder


def _merge_by_delta(spark: SparkSession, case: Case, path: Path) -> list[Any]:
    spark.sql(case.source).createOrReplaceTempView("merge_source")
    spark.conf.set(AUTO_MERGE, str(case.evolve).lower())
    try:
        return spark.sql(_sql(case, path)).collect()
    finally:
        spark.conf.unset(AUTO_MERGE)


@contextmanager
def _threshold(spark: SparkSession, *, broadcast: bool) -> Iterator[None]:
    """Let sources count as small, or none of them."""
    spark.conf.set(THRESHOLD, "10MB" if broadcast else "-1")
    try:
        yield
    finally:
        spark.conf.unset(THRESHOLD)


@pytest.mark.parametrize("name", CASES)
def test_merge_does_what_delta_spark_does(
    name: str, delta_spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    spark, case = delta_spark, CASES[name]
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for copy in (ours, theirs):
        shutil.copytree(tables.of(case), copy)
    before = _version(theirs)
    expected = _merge_by_delta(spark, case, theirs)
    with _threshold(spark, broadcast=case.broadcast):
        result = _builder(spark, case, ours, spark.sql(case.source)).execute()
    assert result.collect() == expected
    assert _version(ours) == _version(theirs)
    if _version(theirs) != before:
        assert _info(ours, spares=case.spares) == _info(theirs, spares=case.spares)
    wanted = _rows(_loaded(spark, case, theirs))
    assert _rows(_loaded(spark, case, ours)) == wanted
    assert _rows(scan(spark, ours).drop(case.drawn or "")) == wanted
    if case.drawn is not None:
        values = [row[0] for row in scan(spark, ours).select(case.drawn).collect()]
        (column,) = [f for f in open_table(spark, ours).schema if f.name == case.drawn]
        assert len(set(values)) == len(values)
        assert column.metadata["delta.identity.highWaterMark"] == max(values)
    if case.properties.get(FEED) == "true":
        assert _feed(spark, ours, before + 1) == _feed(spark, theirs, before + 1)
    if case.properties.get(TRACKING) == "true":
        assert _row_ids(spark, ours) == _row_ids(spark, theirs)


def _loaded(spark: SparkSession, case: Case, path: Path) -> DataFrame:
    return spark.read.format("delta").load(str(path)).drop(case.drawn or "")


def _version(path: Path) -> int:
    return max(int(entry.stem) for entry in (path / "_delta_log").glob("*.json"))


def _info(path: Path, *, spares: bool) -> dict[str, Any]:
    """What the history says of the last version, but for sizes, times and chance.

    Where rows are spared, less is copied than by Delta Spark.
    """
    text = (path / "_delta_log" / f"{_version(path):020d}.json").read_text()
    (info,) = [json.loads(line)["commitInfo"] for line in text.splitlines() if "commitInfo" in line]
    metrics = {
        key: value
        for key, value in info["operationMetrics"].items()
        if not re.search("Time|Bytes|FilesAdded", key)
        and not (
            spares and key in ("numTargetRowsCopied", "numOutputRows", "numTargetFilesRemoved")
        )
    }
    parameters = {
        key: re.sub(r"#\d+L?", "#", value) for key, value in info["operationParameters"].items()
    }
    return {"operation": info["operation"], "metrics": metrics, "parameters": parameters}


def _rows(frame: DataFrame) -> tuple[str, list[str]]:
    return frame.schema.simpleString(), sorted(str(row) for row in frame.collect())


def _feed(spark: SparkSession, path: Path, version: int) -> list[str]:
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    frame = reader.option("startingVersion", version).load(str(path)).drop("_commit_timestamp")
    return sorted(str(row) for row in frame.collect())


def _row_ids(spark: SparkSession, path: Path) -> list[str]:
    """The ids of the rows that were there before."""
    frame = spark.read.format("delta").load(str(path)).where("id < 4")
    return sorted(str(row) for row in frame.select("id", "_metadata.row_id").collect())


AMBIGUOUS = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"
NEITHER_TAKEN = "SELECT * FROM VALUES (2L, 'k'), (2L, 'k'), (9L, 'y') AS s(id, v)"
ONE_TAKEN = "SELECT * FROM VALUES (2L, 'k'), (2L, 'x'), (9L, 'y') AS s(id, v)"
DELETE_UNMATCHED: Step = ("whenNotMatchedBySourceDelete", {"condition": "t.id = 3"})

MISTAKES: dict[str, tuple[Case, str]] = {
    "ambiguous": (
        Case(source="SELECT * FROM VALUES (2L, 'x'), (2L, 'y') AS s(id, v)"),
        AMBIGUOUS,
    ),
    "ambiguous-neither-taken": (Case(source=NEITHER_TAKEN, steps=(UPDATE_SOME,)), AMBIGUOUS),
    "ambiguous-neither-taken-vectors": (
        Case(source=NEITHER_TAKEN, steps=(UPDATE_SOME,), properties={VECTORS: "true"}),
        AMBIGUOUS,
    ),
    "ambiguous-one-taken": (Case(source=ONE_TAKEN, steps=(UPDATE_SOME,)), AMBIGUOUS),
    "ambiguous-one-deletes": (
        Case(source=ONE_TAKEN, steps=(("whenMatchedDelete", {"condition": "s.v <> 'k'"}),)),
        AMBIGUOUS,
    ),
    "ambiguous-upsert": (Case(source=ONE_TAKEN, steps=UPSERT_SOME), AMBIGUOUS),
    "ambiguous-upsert-vectors": (
        Case(source=NEITHER_TAKEN, steps=UPSERT_SOME, properties={VECTORS: "true"}),
        AMBIGUOUS,
    ),
    "ambiguous-upsert-from-large-source": (
        Case(source=NEITHER_TAKEN, steps=UPSERT_SOME, broadcast=False),
        AMBIGUOUS,
    ),
    "ambiguous-upsert-unknown": (
        Case(source=UNKNOWN, steps=(UPDATE_KNOWN, ("whenNotMatchedInsertAll", {}))),
        AMBIGUOUS,
    ),
    "ambiguous-by-source": (
        Case(source=ONE_TAKEN, steps=(UPDATE_SOME, DELETE_UNMATCHED)),
        AMBIGUOUS,
    ),
    "ambiguous-by-source-only": (
        Case(source=NEITHER_TAKEN, steps=(DELETE_UNMATCHED,)),
        AMBIGUOUS,
    ),
    "ambiguous-insert-and-by-source": (
        Case(
            source=NEITHER_TAKEN,
            steps=(("whenNotMatchedInsertAll", {}), DELETE_UNMATCHED),
            properties={VECTORS: "true"},
        ),
        AMBIGUOUS,
    ),
    "twice": (
        Case(steps=(("whenMatchedUpdate", {"set": {"v": "'a'", "V": "'b'"}}),)),
        "DELTA_CONFLICT_SET_COLUMN",
    ),
    "aggregate": (Case(on="max(t.id) = s.id"), "DELTA_AGGREGATION_NOT_SUPPORTED"),
    "random": (
        Case(on="t.id = s.id AND rand() > 0.5"),
        "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
    ),
    "subquery": (
        Case(on="t.id = s.id AND t.id IN (SELECT id FROM merge_source)"),
        "DELTA_UNSUPPORTED_SUBQUERY",
    ),
    "nested-insert": (
        Case(
            columns=STRUCT,
            rows=(),
            source="SELECT 1L AS id, 5 AS a",
            steps=(("whenNotMatchedInsert", {"values": {"id": "s.id", "s.a": "s.a"}}),),
        ),
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
    ),
    "struct-lacks-field": (
        Case(
            columns=STRUCT,
            rows=NESTED,
            source="SELECT 1L AS id, named_struct('b', 'q') AS s",
        ),
        "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
    ),
    "identity": (
        Case(
            columns="id BIGINT, v STRING, g BIGINT GENERATED BY DEFAULT AS IDENTITY",
            rows=("(id, v) VALUES (1, 'a')",),
            steps=(("whenMatchedUpdate", {"set": {"g": "5"}}),),
        ),
        "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_merge_refuses_what_delta_spark_refuses(
    name: str, delta_spark: SparkSession, tables: Tables
) -> None:
    spark, (case, condition) = delta_spark, MISTAKES[name]
    path = tables.of(case)
    before = _version(path)
    with pytest.raises(spark_errors.PySparkException) as theirs:
        _merge_by_delta(spark, case, path)
    same = getattr(spark_errors, type(theirs.value).__name__)
    with _threshold(spark, broadcast=case.broadcast), pytest.raises(same) as ours:
        _builder(spark, case, path, spark.sql(case.source)).execute()
    assert theirs.value.getCondition() == condition
    assert ours.value.getCondition() == condition
    assert _version(path) == before


UNRESOLVED = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
#: Delta Spark 4.4 has no text for the first class, which PySpark cannot bear, and of the second
#: Spark's own parser knows first.
UNUSABLE: dict[str, tuple[Case, str]] = {
    "column-to-set": (
        Case(steps=(("whenMatchedUpdate", {"set": {"nope": "s.v"}}),)),
        UNRESOLVED,
    ),
    "value": (Case(steps=(("whenMatchedUpdate", {"set": {"v": "s.nope"}}),)), UNRESOLVED),
    "target-in-insert": (
        Case(steps=(("whenNotMatchedInsert", {"values": {"id": "s.id", "v": "t.v"}}),)),
        UNRESOLVED,
    ),
    "source-by-source": (
        Case(steps=(("whenNotMatchedBySourceDelete", {"condition": "s.id = 1"}),)),
        UNRESOLVED,
    ),
    "source-lacks-column": (Case(source="SELECT 2L AS id"), UNRESOLVED),
    "unreachable": (
        Case(steps=(("whenMatchedDelete", {}), ("whenMatchedUpdateAll", {}))),
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    ),
    "no-clause": (Case(steps=()), "DELTA_MERGE_MISSING_WHEN"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_clauses_are_analysis_errors(
    name: str, delta_spark: SparkSession, tables: Tables
) -> None:
    case, condition = UNUSABLE[name]
    source = delta_spark.sql(case.source)
    with pytest.raises(spark_errors.AnalysisException) as ours:
        _builder(delta_spark, case, tables.of(case), source).execute()
    assert ours.value.getCondition() == condition


def test_source_is_read_once_and_columns_of_frames_are_understood(
    delta_spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F

    path = tmp_path / "table"
    shutil.copytree(tables.of(Case()), path)
    # Another answer each time it is asked: what is updated and inserted must still fit together.
    source = delta_spark.range(6).select("id", F.expr("uuid()").alias("v")).where("rand() < 0.5")
    target = scan(delta_spark, path)
    request = MergeRequest(
        source=source, condition=target["id"] == source["id"], clauses=(), target=target
    )
    builder = DeltaMergeBuilder(delta_spark, lambda: open_table(delta_spark, path), request)
    (counts,) = (
        builder.whenMatchedUpdate(set={"v": source["v"]}).whenNotMatchedInsertAll().execute()
    ).collect()
    rows = scan(delta_spark, path)
    assert rows.count() == 3 + counts["num_inserted_rows"]
    assert rows.where("length(v) = 36").count() == counts["num_affected_rows"]


def test_a_match_of_which_it_is_unknown_whether_a_clause_takes_it_does_not_double_a_row(
    delta_spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    """Delta Spark writes the row twice here, finds that out and gives up."""
    case = Case(source=UNKNOWN_AND_TAKEN, steps=(UPDATE_KNOWN,))
    path = tmp_path / "table"
    shutil.copytree(tables.of(case), path)
    with pytest.raises(Exception, match="DELTA_NUM_RECORDS_MISMATCH"):
        _merge_by_delta(delta_spark, case, path)
    _builder(delta_spark, case, path, delta_spark.sql(case.source)).execute()
    found = sorted((row.id, row.v) for row in scan(delta_spark, path).collect())
    assert found == [(1, "a"), (2, "2"), (3, "c")]


@pytest.mark.parametrize("broadcast", [True, False], ids=["small-source", "large-source"])
def test_a_file_with_matches_that_change_nothing_stays(
    delta_spark: SparkSession, tables: Tables, tmp_path: Path, broadcast: bool
) -> None:
    case = CASES["untaken-matches"]
    path = tmp_path / "table"
    shutil.copytree(tables.of(case), path)
    before = set(open_table(delta_spark, path).snapshot.files()["path"].to_pylist())
    with _threshold(delta_spark, broadcast=broadcast):
        _builder(delta_spark, case, path, delta_spark.sql(case.source)).execute()
    after = set(open_table(delta_spark, path).snapshot.files()["path"].to_pylist())
    kept = scan(delta_spark, path).where("id >= 10 AND id < 99")
    files = {row[0].rsplit("/", 1)[-1] for row in kept.select("_metadata.file_path").collect()}
    assert files
    assert files <= before & after


@pytest.mark.parametrize(
    ("condition", "by_keys", "repeatable"),
    [
        pytest.param("t.id = s.id", True, True, id="equation"),
        pytest.param("s.id + 1 <=> t.id AND t.v > s.v", True, True, id="null-safe"),
        pytest.param("t.id = 2 AND t.id <= s.id", False, True, id="equation-of-one-side"),
        pytest.param("t.id = s.id OR t.v = s.v", False, True, id="either"),
        pytest.param("t.id + s.id = t.id", False, True, id="mixed-sides"),
        pytest.param("t.id = s.id AND t.v < now()", True, False, id="clock"),
        pytest.param("t.id = s.id AND t.v < current_date()", True, False, id="calendar"),
        pytest.param("t.id = s.id AND t.v = current_user()", True, False, id="user"),
        pytest.param("t.id = s.id AND merge_python(s.v)", True, False, id="python"),
    ],
)
def test_which_joins_may_be_done_twice(
    delta_spark: SparkSession, condition: str, by_keys: bool, repeatable: bool
) -> None:
    delta_spark.udf.register("merge_python", lambda v: v is not None, "boolean")
    empty = delta_spark.createDataFrame([], KEYED)
    target, source = empty.alias("t"), delta_spark.createDataFrame([], KEYED).alias("s")
    both = ExpressionScope(frame=target.crossJoin(source))
    found = both.condition(condition, "search condition")
    assert (
        has_equal_keys(found, ExpressionScope(frame=target), ExpressionScope(frame=source))
        == by_keys
    )
    assert is_repeatable(delta_spark, found) == repeatable
