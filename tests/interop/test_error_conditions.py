"""Errors as users of Delta Spark know them: condition, SQLSTATE, Python class and words.

The registry is compared with the messages in the jars, and what can be provoked is provoked on both
sides, on the same table: a refused call changes nothing.
"""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from twinlake import Table
from twinlake.errors import TwinlakeError
from twinlake.spark.error_classes import ERROR_CLASSES
from twinlake.spark.error_messages import ERROR_MESSAGES
from twinlake.spark.errors import SparkError, spark_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

_JSON = ("error/delta-error-classes.json", "error/error-conditions.json")


@pytest.fixture(scope="module")
def conditions(delta_spark: SparkSession) -> dict[str, Any]:
    """Every condition that the jars of Delta Spark and Spark know."""
    context: Any = delta_spark.sparkContext
    jvm = context._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    known: dict[str, Any] = {}
    for name in _JSON:
        stream = loader.getResourceAsStream(name)
        known |= json.loads(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    return known


def _words(text: str) -> list[str]:
    """The pieces of a message of ours between its values, without quotes and brackets."""
    pieces = (
        literal for part in text.split("|") for literal, *_ in Formatter().parse(part) if literal
    )
    return [piece for piece in (piece.strip(" ()[]'\".:`") for piece in pieces) if piece]


def _one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", list(ERROR_CLASSES))
def test_the_jars_know_every_listed_condition(conditions: dict[str, Any], name: str) -> None:
    base, _, case = name.partition(".")
    known = conditions[base]
    assert ERROR_CLASSES[name].sql_state == known.get("sqlState")
    assert not case or case in known["subClass"]
    said = _one_line("\n".join(known["message"]))
    said += " ".join(" ".join(one["message"]) for one in known.get("subClass", {}).values())
    missing = [words for words in _words(ERROR_MESSAGES[base]) if words not in said]
    assert missing == []


def test_the_names_of_delta_exceptions_are_importable() -> None:
    import delta.exceptions as theirs

    from twinlake.spark import exceptions as ours

    assert sorted(ours.__all__) == sorted(theirs.__all__)
    for name in ours.__all__:
        kind = getattr(ours, name)
        assert kind.__name__ == name
        assert issubclass(kind, PySparkException)
        assert issubclass(kind, TwinlakeError)


TABLES: dict[str, tuple[str, ...]] = {
    "plain": ("CREATE TABLE {} (id INT, s STRING) USING delta", "INSERT INTO {} VALUES (1, 'a')"),
    "strict": ("CREATE TABLE {} (id INT NOT NULL, s STRING) USING delta",),
    "short": ("CREATE TABLE {} (id INT, s VARCHAR(2)) USING delta",),
    "checked": (
        "CREATE TABLE {} (id INT, s STRING) USING delta",
        "ALTER TABLE {} ADD CONSTRAINT pos CHECK (id > 0)",
    ),
    "growing": (
        "CREATE TABLE {} (id INT) USING delta TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "INSERT INTO {} VALUES (1)",
    ),
    "parts": (
        "CREATE TABLE {} (id INT, p STRING) USING delta PARTITIONED BY (p)",
        "INSERT INTO {} VALUES (1, 'a'), (2, 'b')",
    ),
    "generated": ("CREATE TABLE {} (id INT, g INT GENERATED ALWAYS AS (id + 1)) USING delta",),
    "identity": ("CREATE TABLE {} (k BIGINT GENERATED ALWAYS AS IDENTITY, s STRING) USING delta",),
    "clustered": ("CREATE TABLE {} (id INT, s STRING) USING delta CLUSTER BY (id)",),
    "mapped": (
        "CREATE TABLE {} (id INT, s STRING, a ARRAY<INT>, p INT) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    ),
    "single": (
        "CREATE TABLE {} (id INT) USING delta TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    ),
    "nested": (
        "CREATE TABLE {} (id INT, n STRUCT<x: INT, y: INT>) USING delta",
        "INSERT INTO {} VALUES (1, named_struct('x', 1, 'y', 2))",
    ),
    "ruled": (
        "CREATE TABLE {} (id INT, s STRING) USING delta "
        "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {} ADD CONSTRAINT pos CHECK (id > 0)",
    ),
    "legacy": ("CREATE TABLE {} (id INT) USING delta TBLPROPERTIES (delta.minWriterVersion = 4)",),
    "vectors": (
        "CREATE TABLE {} (id INT) USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = true)",
    ),
}


@dataclass(frozen=True)
class Side:
    """Calls as users write them, with Delta Spark or with twinlake."""

    spark: SparkSession
    folder: Path
    ours: bool

    def path(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def api(self) -> Any:
        return importlib.import_module("twinlake.spark" if self.ours else "delta.tables")

    def table(self, name: str) -> Any:
        return self.api.DeltaTable.forPath(self.spark, self.path(name))

    def write(self, query: str, name: str, mode: str = "append", **options: Any) -> None:
        frame = self.spark.sql(query)
        if self.ours:
            renamed = {_OPTIONS.get(key, key): value for key, value in options.items()}
            self.api.write(frame, self.path(name), mode, **renamed)
            return
        writer = frame.write.format("delta").mode(mode)
        if "partitionBy" in options:
            writer = writer.partitionBy(options.pop("partitionBy"))
        writer.options(**options).save(self.path(name))

    def read(self, name: str, **options: Any) -> Any:
        if self.ours:
            renamed = {_OPTIONS[key]: value for key, value in options.items()}
            return self.api.scan(self.spark, self.path(name), **renamed)
        return self.spark.read.format("delta").options(**options).load(self.path(name))

    def merge(self, name: str, source: str = "SELECT 1 AS id, 'b' AS s") -> Any:
        return self.table(name).alias("t").merge(self.spark.sql(source).alias("s"), "t.id = s.id")

    def alter(self, name: str, text: str, call: Callable[[Table], object]) -> None:
        """ALTER TABLE in SQL there, the call of ``Table`` here."""
        if not self.ours:
            self.spark.sql(f"ALTER TABLE delta.`{self.path(name)}` {text}")
            return
        with spark_errors():
            call(Table.open(self.path(name), policy="minimal"))


_OPTIONS = {
    "versionAsOf": "version",
    "timestampAsOf": "timestamp",
    "replaceWhere": "replace_where",
    "overwriteSchema": "overwrite_schema",
    "partitionBy": "partition_by",
    "mergeSchema": "merge_schema",
}


@dataclass(frozen=True)
class Case:
    """One refusal: its condition, what is done, and what the words have to hold."""

    condition: str
    call: Callable[[Side], object]
    values: tuple[str, ...] = ()
    """Values that programs read out of the message; in both texts."""


def _duplicates(side: Side) -> None:
    source = "SELECT explode(array(1, 1)) AS id, 'b' AS s"
    side.merge("plain", source).whenMatchedUpdateAll().execute()


CASES: dict[str, Case] = {
    "version": Case(
        "DELTA_VERSION_NOT_FOUND",
        lambda side: side.read("plain", versionAsOf=99).collect(),
        ("version 99", "Available versions: [0, 1]"),
    ),
    "late timestamp": Case(
        "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
        lambda side: side.read("plain", timestampAsOf="2999-01-01").collect(),
    ),
    "early timestamp": Case(
        "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
        lambda side: side.read("plain", timestampAsOf="1999-01-01").collect(),
    ),
    "no table": Case("DELTA_MISSING_DELTA_TABLE", lambda side: side.table("absent")),
    "path exists": Case(
        "DELTA_PATH_EXISTS", lambda side: side.write("SELECT 1 AS id, 'a' AS s", "plain", "error")
    ),
    "schema": Case(
        "DELTA_METADATA_MISMATCH",
        lambda side: side.write("SELECT 1 AS id, 'a' AS s, 2 AS more", "plain"),
        ("A schema mismatch detected when writing to the Delta table",),
    ),
    "partitioning": Case(
        "DELTA_METADATA_MISMATCH",
        lambda side: side.write("SELECT 1 AS id, 'a' AS s", "plain", partitionBy="s"),
        ("Partition columns do not match the partition columns of the table.",),
    ),
    "types": Case(
        "DELTA_FAILED_TO_MERGE_FIELDS",
        lambda side: side.write("SELECT array(1) AS id, 'a' AS s", "plain", mergeSchema=True),
    ),
    "null": Case(
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        lambda side: side.write("SELECT CAST(NULL AS INT) AS id, 'a' AS s", "strict"),
        ("column: id",),
    ),
    "constraint": Case(
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        lambda side: side.write("SELECT -1 AS id, 'a' AS s", "checked"),
        ("CHECK constraint pos (id > 0)",),
    ),
    "constraint in update": Case(
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        lambda side: side.write("SELECT 5 AS id, 7 AS g", "generated"),
        ("Generated Column",),
    ),
    "varchar": Case(
        "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        lambda side: side.write("SELECT 1 AS id, 'abc' AS s", "short"),
    ),
    "append only": Case(
        "DELTA_CANNOT_MODIFY_APPEND_ONLY", lambda side: side.table("growing").delete("id = 1")
    ),
    "append only overwrite": Case(
        "DELTA_CANNOT_MODIFY_APPEND_ONLY",
        lambda side: side.write("SELECT 2 AS id", "growing", "overwrite"),
    ),
    "replace where": Case(
        "DELTA_REPLACE_WHERE_MISMATCH",
        lambda side: side.write(
            "SELECT 3 AS id, 'b' AS p", "parts", "overwrite", replaceWhere="p = 'a'"
        ),
        ("p = 'a'",),
    ),
    "all columns partition": Case(
        "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        lambda side: side.write("SELECT 1 AS id", "new", "error", partitionBy="id"),
    ),
    "partition column absent": Case(
        "DELTA_PARTITION_COLUMN_NOT_FOUND",
        lambda side: side.write("SELECT 1 AS id, 2 AS x", "new", "error", partitionBy="zz"),
    ),
    "odd column name": Case(
        "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
        lambda side: side.write("SELECT 1 AS `a b`", "new", "error"),
    ),
    "duplicate columns": Case(
        "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
        lambda side: side.write("SELECT 1 AS id, 2 AS ID", "plain"),
        ("Found duplicate column(s)",),
    ),
    "identity value": Case(
        "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
        lambda side: side.write("SELECT 1L AS k, 'a' AS s", "identity"),
        ("column k",),
    ),
    "identity update": Case(
        "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
        lambda side: side.table("identity").update("s = 'a'", {"k": "5"}),
        ("column k",),
    ),
    "multiple matches": Case("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", _duplicates),
    "merge without clause": Case(
        "DELTA_MERGE_MISSING_WHEN", lambda side: side.merge("plain").execute()
    ),
    "merge clause order": Case(
        "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
        lambda side: (
            side.merge("plain").whenMatchedDelete().whenMatchedUpdate(set={"s": "s.s"}).execute()
        ),
    ),
    "merge insert order": Case(
        "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
        lambda side: (
            side.merge("plain").whenNotMatchedInsertAll().whenNotMatchedInsertAll().execute()
        ),
    ),
    "merge by source order": Case(
        "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
        lambda side: (
            side.merge("plain")
            .whenNotMatchedBySourceDelete()
            .whenNotMatchedBySourceUpdate(set={"s": "'x'"})
            .execute()
        ),
    ),
    "merge unknown column": Case(
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        lambda side: side.merge("plain").whenMatchedUpdate(set={"zz": "s.id"}).execute(),
        ("zz",),
    ),
    "merge set twice": Case(
        "DELTA_CONFLICT_SET_COLUMN",
        lambda side: side.table("nested").update(set={"n": "n", "n.x": "1"}),
    ),
    "merge insert nested": Case(
        "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
        lambda side: (
            side.merge("nested", "SELECT 9 AS id")
            .whenNotMatchedInsert(values={"id": "s.id", "n.x": "1"})
            .execute()
        ),
    ),
    "aggregate in merge": Case(
        "DELTA_AGGREGATION_NOT_SUPPORTED",
        lambda side: side.merge("plain").whenMatchedUpdate("sum(t.id) > 1", {"s": "'x'"}).execute(),
    ),
    "unknown column": Case(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        lambda side: side.table("plain").delete("zz = 1"),
        ("`zz`",),
    ),
    "unknown column in update": Case(
        "UNRESOLVED_COLUMN.WITH_SUGGESTION",
        lambda side: side.table("plain").update(set={"zz": "1"}),
        ("`zz`",),
    ),
    "half a condition": Case(
        "PARSE_SYNTAX_ERROR", lambda side: side.table("plain").delete("id = = 1")
    ),
    "short retention": Case(
        "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", lambda side: side.table("plain").vacuum(0)
    ),
    "restore version": Case(
        "DELTA_CANNOT_RESTORE_TABLE_VERSION",
        lambda side: side.table("plain").restoreToVersion(99),
        ("version 99", "Available versions: [0, 1]"),
    ),
    "restore late": Case(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_GREATER",
        lambda side: side.table("plain").restoreToTimestamp("2999-01-01"),
    ),
    "restore early": Case(
        "DELTA_CANNOT_RESTORE_TIMESTAMP_EARLIER",
        lambda side: side.table("plain").restoreToTimestamp("1999-01-01"),
    ),
    "restore nonsense": Case(
        "DELTA_TIMESTAMP_INVALID", lambda side: side.table("plain").restoreToTimestamp("soon")
    ),
    "optimize by a plain column": Case(
        "DELTA_NON_PARTITION_COLUMN_REFERENCE",
        lambda side: side.table("parts").optimize().where("id = 1").executeCompaction(),
    ),
    "drop an absent feature": Case(
        "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
        lambda side: side.table("plain").dropFeatureSupport("deletionVectors"),
    ),
    "drop an unknown feature": Case(
        "DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        lambda side: side.table("plain").dropFeatureSupport("zz"),
    ),
    "drop a lasting feature": Case(
        "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
        lambda side: side.table("identity").dropFeatureSupport("identityColumns"),
    ),
    "drop with truncation": Case(
        "DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
        lambda side: side.table("legacy").dropFeatureSupport("checkConstraints", True),
    ),
    "add an unknown feature": Case(
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        lambda side: side.table("plain").addFeatureSupport("zz"),
    ),
    "create without a place": Case(
        "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
        lambda side: side.api.DeltaTable.create(side.spark).addColumn("id", "INT").execute(),
    ),
    "create over another schema": Case(
        "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
        lambda side: (
            side.api.DeltaTable.createOrReplace(side.spark)
            .location(side.path("plain"))
            .addColumn("other", "INT")
            .execute()
        ),
    ),
    "unknown property": Case(
        "DELTA_UNKNOWN_CONFIGURATION",
        lambda side: side.alter(
            "plain",
            "SET TBLPROPERTIES ('delta.nope' = '1')",
            lambda table: table.set_properties({"delta.nope": "1"}),
        ),
        ("delta.nope",),
    ),
    "column mapping by id": Case(
        "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        lambda side: side.alter(
            "plain",
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
            lambda table: table.set_properties({"delta.columnMapping.mode": "id"}),
        ),
    ),
    "constraint by property": Case(
        "DELTA_ADD_CONSTRAINTS",
        lambda side: side.alter(
            "plain",
            "SET TBLPROPERTIES ('delta.constraints.c' = 'id > 0')",
            lambda table: table.set_properties({"delta.constraints.c": "id > 0"}),
        ),
    ),
    "constraint twice": Case(
        "DELTA_CONSTRAINT_ALREADY_EXISTS",
        lambda side: side.alter(
            "checked",
            "ADD CONSTRAINT pos CHECK (id > 1)",
            lambda table: table.add_constraint("pos", "id > 1"),
        ),
        ("Constraint 'pos'",),
    ),
    "constraint that rows break": Case(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
        lambda side: side.alter(
            "plain",
            "ADD CONSTRAINT big CHECK (id > 5)",
            lambda table: table.add_constraint("big", "id > 5", spark=side.spark),
        ),
    ),
    "constraint that is not there": Case(
        "DELTA_CONSTRAINT_DOES_NOT_EXIST",
        lambda side: side.alter(
            "plain", "DROP CONSTRAINT nope", lambda table: table.drop_constraint("nope")
        ),
    ),
    "drop without mapping": Case(
        "DELTA_UNSUPPORTED_DROP_COLUMN",
        lambda side: side.alter("plain", "DROP COLUMN s", lambda table: table.drop_column("s")),
    ),
    "rename without mapping": Case(
        "DELTA_UNSUPPORTED_RENAME_COLUMN",
        lambda side: side.alter(
            "plain", "RENAME COLUMN s TO t", lambda table: table.rename_column("s", "t")
        ),
    ),
    "drop a partition column": Case(
        "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
        lambda side: side.alter("mapped", "DROP COLUMN p", lambda table: table.drop_column("p")),
    ),
    "drop the last column": Case(
        "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
        lambda side: side.alter("single", "DROP COLUMN id", lambda table: table.drop_column("id")),
    ),
    "drop a column of a constraint": Case(
        "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        lambda side: side.alter("ruled", "DROP COLUMN id", lambda table: table.drop_column("id")),
    ),
    "feature status": Case(
        "DELTA_UNSUPPORTED_FEATURE_STATUS",
        lambda side: side.alter(
            "plain",
            "SET TBLPROPERTIES ('delta.feature.appendOnly' = 'yes')",
            lambda table: table.set_properties({"delta.feature.appendOnly": "yes"}),
        ),
    ),
    "drop the feature of constraints": Case(
        "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
        lambda side: side.table("checked").dropFeatureSupport("checkConstraints"),
    ),
    "type": Case(
        "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        lambda side: side.alter(
            "plain", "ALTER COLUMN id TYPE BIGINT", lambda table: table.widen_column("id", "BIGINT")
        ),
    ),
}


@pytest.fixture(scope="module")
def sides(
    delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    folder = tmp_path_factory.mktemp("conditions")
    for name, statements in TABLES.items():
        for text in statements:
            delta_spark.sql(text.format(f"delta.`{folder / name}`"))
    delta_spark.conf.set("spark.twinlake.upgradePolicy", "minimal")
    yield Side(delta_spark, folder, ours=False), Side(delta_spark, folder, ours=True)
    delta_spark.conf.unset("spark.twinlake.upgradePolicy")


@dataclass(frozen=True)
class Refusal:
    """What a program sees of an exception."""

    condition: str | None
    sql_state: str | None
    kind: str
    text: str


def _refusal(error: BaseException) -> Refusal:
    if isinstance(error, PySparkException):
        kind = next(c.__name__ for c in type(error).__mro__ if not c.__module__.startswith("twin"))
        return Refusal(error.getCondition(), error.getSqlState(), kind, str(error))
    assert isinstance(error, Py4JJavaError), repr(error)
    cause = error.java_exception
    while cause.getCause() is not None and not hasattr(cause, "getCondition"):
        cause = cause.getCause()
    text = str(error)
    return Refusal(cause.getCondition(), cause.getSqlState(), "Py4JJavaError", text)


def _provoked(side: Side, case: Case) -> BaseException:
    with pytest.raises((PySparkException, Py4JJavaError, TwinlakeError)) as caught:
        case.call(side)
    error: BaseException = caught.value
    return error


@pytest.mark.parametrize("name", list(CASES))
def test_the_same_refusal(sides: tuple[Side, Side], name: str) -> None:
    case = CASES[name]
    theirs, error = _refusal(_provoked(sides[0], case)), _provoked(sides[1], case)
    ours = _refusal(error)
    assert (theirs.condition, ours.condition) == (case.condition, case.condition)
    assert ours.sql_state == theirs.sql_state
    if not isinstance(error, SparkError):
        # Spark's own parser and analyser answer on both sides.
        assert ours.kind == theirs.kind
        return
    assert error.getErrorClass() == case.condition
    if theirs.kind == "Py4JJavaError":
        assert isinstance(error, Py4JJavaError)
    else:
        assert theirs.kind in {c.__name__ for c in type(error).__mro__}
    assert ours.text.startswith(f"[{case.condition}] ")
    said = _one_line(theirs.text)
    assert f"[{case.condition}]" in said
    first = ours.text.partition("\n")[0]
    words = _words(ERROR_MESSAGES.get(case.condition) or _words_of_base(case.condition))
    assert [piece for piece in words if piece in first and piece not in said] == []
    assert any(piece in first for piece in words)
    for value in case.values:
        assert value in said
        assert value in first
    assert re.search(r"\nTWIN-[A-Z-]+  \S", ours.text)


def _words_of_base(condition: str) -> str:
    return ERROR_MESSAGES[condition.partition(".")[0]]
