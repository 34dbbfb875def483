"""Tables written by real Delta Spark, one builder a kind, and what Delta Spark reads in them.

``KINDS`` maps a kind's name to its builder, so that a test runs over all of them::

    @pytest.mark.spark
    @pytest.mark.parametrize("kind", KINDS)
    def test_open(kind: str, delta_spark: SparkSession, tmp_path: Path) -> None:
        path = make_table(delta_spark, kind, tmp_path)
        theirs = expected(delta_spark, path)

Every table is small and deterministic but for ids and times. ``tests/tables/README.md`` lists them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import Row, SparkSession

__all__ = [
    "KINDS",
    "Expected",
    "ExpectedFile",
    "PeerTables",
    "arrow_rows",
    "checksum_is_valid",
    "delta_settings",
    "expected",
    "make_table",
    "rows",
]

#: Every kind of table by name; filled by the ``@_kind`` builders below.
KINDS: dict[str, Callable[[SparkSession, str], None]] = {}


def make_table(spark: SparkSession, kind: str, folder: Path) -> Path:
    """Write the table of that kind into ``folder/kind`` and return its path."""
    path = folder / kind
    KINDS[kind](spark, str(path))
    return path


class PeerTables:
    """Every kind of table, made when first asked for and then shared: copy it to change it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._paths: dict[str, Path] = {}
        self._expected: dict[str, Expected] = {}

    def path(self, kind: str) -> Path:
        """Where the table of that kind is; not to be changed."""
        if kind not in self._paths:
            self._paths[kind] = make_table(self._spark, kind, self._folder)
        return self._paths[kind]

    def expected(self, kind: str) -> Expected:
        """What Delta Spark reads in it."""
        if kind not in self._expected:
            self._expected[kind] = expected(self._spark, self.path(kind))
        return self._expected[kind]

    def copy(self, kind: str, folder: Path) -> Path:
        """A copy in ``folder/kind`` with the times of the original."""
        return Path(shutil.copytree(self.path(kind), folder / kind))


def rows(spark: SparkSession, path: Path, version: int | None = None) -> list[dict[str, Any]]:
    """The rows Delta Spark reads, in the order of their text, as plain dictionaries."""
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return sorted((row.asDict(True) for row in reader.load(str(path)).collect()), key=str)


def arrow_rows(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    """The rows Delta Spark reads, with times in UTC whatever the zone of this process."""
    _delta_log(spark, path)
    table = spark.read.format("delta").load(str(path)).toArrow()
    return sorted(table.to_pylist(), key=str)


def checksum_is_valid(spark: SparkSession, path: Path) -> bool:
    """Whether the latest version has a checksum file that Delta Spark finds right."""
    snapshot = _snapshot(spark, path, None)
    if not snapshot.checksumOpt().isDefined():
        return False
    nothing = getattr(snapshot, "validateChecksum$default$1")()
    with delta_settings(spark, checksum__mismatch__fatal="false"):
        return bool(snapshot.validateChecksum(nothing))


# --- what Delta Spark says ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFile:
    """One data file as Delta Spark's snapshot holds it."""

    path: str
    size: int
    modification_time: int
    partition_values: Mapping[str, str | None]
    stats: Mapping[str, Any] | None
    deletion_vector: Mapping[str, Any] | None
    base_row_id: int | None
    default_row_commit_version: int | None
    clustering_provider: str | None
    tags: Mapping[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One version of a table as Delta Spark's own snapshot reconstruction sees it."""

    version: int
    timestamp_ms: int
    in_commit_timestamp: int | None
    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None
    writer_features: frozenset[str] | None
    table_id: str
    schema_string: str
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    files: Mapping[str, ExpectedFile]
    tombstones: frozenset[str]
    domains: Mapping[str, str]
    set_transactions: Mapping[str, int]

    @property
    def schema(self) -> dict[str, Any]:
        """The table's schema as the parsed JSON of the log."""
        parsed: dict[str, Any] = json.loads(self.schema_string)
        return parsed


def expected(spark: SparkSession, path: Path, version: int | None = None) -> Expected:
    """Read the log in ``path`` with Delta Spark, from disk and not from its cache."""
    snapshot = _snapshot(spark, path, version)
    protocol = json.loads(snapshot.protocol().json())["protocol"]
    metadata = json.loads(snapshot.metadata().json())["metaData"]
    in_commit = snapshot.getInCommitTimestampOpt()
    files = [_file(row) for row in _frame(spark, snapshot.allFiles())]
    domains = [json.loads(d.json())["domainMetadata"] for d in _items(snapshot.domainMetadata())]
    return Expected(
        version=snapshot.version(),
        timestamp_ms=snapshot.timestamp(),
        in_commit_timestamp=in_commit.get() if in_commit.isDefined() else None,
        min_reader_version=protocol["minReaderVersion"],
        min_writer_version=protocol["minWriterVersion"],
        reader_features=_names(protocol.get("readerFeatures")),
        writer_features=_names(protocol.get("writerFeatures")),
        table_id=metadata["id"],
        schema_string=metadata["schemaString"],
        partition_columns=tuple(metadata["partitionColumns"]),
        properties=metadata["configuration"],
        files={file.path: file for file in files},
        tombstones=frozenset(row["path"] for row in _frame(spark, snapshot.tombstones())),
        domains={d["domain"]: d["configuration"] for d in domains if not d["removed"]},
        set_transactions={t.appId(): t.version() for t in _items(snapshot.setTransactions())},
    )


def _delta_log(spark: SparkSession, path: Path | str) -> Any:
    jvm: Any = spark._jvm
    delta_log = jvm.org.apache.spark.sql.delta.DeltaLog
    # The process-wide cache would hide files that another engine changed under it.
    delta_log.clearCache()
    return delta_log.forTable(spark._jsparkSession, str(path))


def _snapshot(spark: SparkSession, path: Path, version: int | None) -> Any:
    jvm: Any = spark._jvm
    none = jvm.scala.Option.empty()
    log = _delta_log(spark, path)
    if version is None:
        return log.update(False, none, none)
    return log.getSnapshotAt(version, none, none, False)


def _items(sequence: Any) -> Iterator[Any]:
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _frame(spark: SparkSession, dataset: Any) -> list[Row]:
    from pyspark.sql.classic.dataframe import DataFrame

    return DataFrame(dataset.toDF(), spark).collect()


def _names(features: list[str] | None) -> frozenset[str] | None:
    return None if features is None else frozenset(features)


def _file(row: Row) -> ExpectedFile:
    vector = row["deletionVector"]
    return ExpectedFile(
        path=row["path"],
        size=row["size"],
        modification_time=row["modificationTime"],
        partition_values=row["partitionValues"],
        stats=json.loads(row["stats"]) if row["stats"] else None,
        deletion_vector=vector.asDict() if vector else None,
        base_row_id=row["baseRowId"],
        default_row_commit_version=row["defaultRowCommitVersion"],
        clustering_provider=row["clusteringProvider"],
        tags=row["tags"],
    )


# --- the kinds ------------------------------------------------------------------------------------


def _kind(
    build: Callable[[SparkSession, str], None],
) -> Callable[[SparkSession, str], None]:
    KINDS[build.__name__.lstrip("_")] = build
    return build


@contextlib.contextmanager
def delta_settings(spark: SparkSession, **values: str) -> Iterator[None]:
    """Set Delta session settings for a while; ``__`` in a name stands for a dot."""
    keys = {f"spark.databricks.delta.{name.replace('__', '.')}": v for name, v in values.items()}
    for key, value in keys.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in keys:
            spark.conf.unset(key)


def _create(
    spark: SparkSession, path: str, columns: str, rest: str = "", **properties: str
) -> None:
    """``CREATE TABLE`` with properties in the ``delta.`` space."""
    given = ", ".join(f"'delta.{k.replace('__', '.')}' = '{v}'" for k, v in properties.items())
    text = f"CREATE TABLE delta.`{path}` ({columns}) USING delta {rest}"
    spark.sql(text + (f" TBLPROPERTIES ({given})" if given else ""))


def _insert(spark: SparkSession, path: str, values: str) -> None:
    spark.sql(f"INSERT INTO delta.`{path}` VALUES {values}")


def _append_ids(spark: SparkSession, path: str, start: int, end: int, files: int = 1) -> None:
    frame = spark.range(start, end, 1, files).selectExpr("id", "concat('n', id) AS name")
    frame.write.format("delta").mode("append").save(path)


def _checkpoint(spark: SparkSession, path: str) -> None:
    _delta_log(spark, path).checkpoint()


@_kind
def plain_25_commits(spark: SparkSession, path: str) -> None:
    """Version 25 with the automatic classic checkpoint at 20 and five commits after it."""
    with delta_settings(spark, properties__defaults__checkpointInterval="10"):
        _create(spark, path, "id BIGINT, name STRING")
        for i in range(24):
            _append_ids(spark, path, i, i + 1)
        spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3")


@_kind
def multi_part_checkpoint(spark: SparkSession, path: str) -> None:
    """A checkpoint in three parts (at most four files each) and a commit after it."""
    _create(spark, path, "id BIGINT, name STRING")
    _append_ids(spark, path, 0, 120, files=12)
    with delta_settings(spark, checkpoint__partSize="4"):
        _checkpoint(spark, path)
    _append_ids(spark, path, 120, 130)


def _v2_checkpoint(spark: SparkSession, path: str, top_level: str) -> None:
    _create(spark, path, "id BIGINT, name STRING", checkpointPolicy="v2")
    _append_ids(spark, path, 0, 60, files=6)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 10")
    with delta_settings(
        spark, checkpointV2__topLevelFileFormat=top_level, checkpoint__partSize="4"
    ):
        _checkpoint(spark, path)
    _append_ids(spark, path, 60, 70)


@_kind
def v2_checkpoint_parquet(spark: SparkSession, path: str) -> None:
    """A V2 checkpoint with a Parquet top-level file and sidecars, and a commit after it."""
    _v2_checkpoint(spark, path, "parquet")


@_kind
def v2_checkpoint_json(spark: SparkSession, path: str) -> None:
    """A V2 checkpoint with a JSON top-level file and sidecars, and a commit after it."""
    _v2_checkpoint(spark, path, "json")


@_kind
def struct_stats_checkpoint(spark: SparkSession, path: str) -> None:
    """A classic checkpoint with statistics as columns and none as JSON text."""
    _create(
        spark,
        path,
        "id BIGINT, name STRING, at TIMESTAMP, day DATE",
        "PARTITIONED BY (day)",
        checkpoint__writeStatsAsStruct="true",
        checkpoint__writeStatsAsJson="false",
    )
    _insert(
        spark,
        path,
        "(1, 'a', TIMESTAMP'2024-01-01 00:00:00.123456', DATE'2024-01-01'), "
        "(2, NULL, TIMESTAMP'1969-12-31 23:59:59', DATE'1969-12-31'), (3, 'c', NULL, NULL)",
    )
    _checkpoint(spark, path)


@_kind
def deletion_vectors(spark: SparkSession, path: str) -> None:
    """Deletion vectors from two DELETEs: one file's vector is replaced by a larger one."""
    _create(spark, path, "id BIGINT, name STRING", enableDeletionVectors="true")
    _append_ids(spark, path, 0, 1000, files=2)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 7 = 0")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id BETWEEN 10 AND 20")


_NESTED = "id BIGINT, who STRUCT<first: STRING, age: INT>, tags MAP<STRING, ARRAY<STRUCT<n: INT>>>"
_NESTED_ROW = "named_struct('first', 'x', 'age', 41), map('k', array(named_struct('n', 7)))"


def _column_mapping(spark: SparkSession, path: str, mode: str) -> None:
    _create(spark, path, _NESTED, columnMapping__mode=mode)
    _insert(spark, path, f"(1, {_NESTED_ROW})")
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN who.first TO given")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMNS (`with space` STRING)")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN who.age")
    _insert(spark, path, "(2, named_struct('given', 'Bo'), map(), 'x')")


@_kind
def column_mapping_name(spark: SparkSession, path: str) -> None:
    """Column mapping by name: a rename, an added column with a space, a dropped nested field."""
    _column_mapping(spark, path, "name")


@_kind
def column_mapping_id(spark: SparkSession, path: str) -> None:
    """Column mapping by id, with the same changes as by name."""
    _column_mapping(spark, path, "id")


@_kind
def column_mapping_upgraded(spark: SparkSession, path: str) -> None:
    """A table that turned to name mapping later: physical names equal the first logical names."""
    _create(spark, path, "id BIGINT, name STRING")
    _append_ids(spark, path, 0, 3)
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN name TO label")


@_kind
def in_commit_timestamps(spark: SparkSession, path: str) -> None:
    """In-commit timestamps switched on at version 2, so that both kinds of time are in the log."""
    _create(spark, path, "id BIGINT, name STRING")
    _append_ids(spark, path, 0, 3)
    spark.sql(
        f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"
    )
    _append_ids(spark, path, 3, 6)


@_kind
def row_tracking(spark: SparkSession, path: str) -> None:
    """Row tracking with an UPDATE that rewrites a file and a checkpoint that keeps the row ids."""
    _create(spark, path, "id BIGINT, name STRING", enableRowTracking="true")
    _append_ids(spark, path, 0, 20, files=2)
    spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id = 4")
    _checkpoint(spark, path)
    _append_ids(spark, path, 20, 25)


@_kind
def clustering(spark: SparkSession, path: str) -> None:
    """Liquid clustering by two columns, before and after OPTIMIZE."""
    _create(spark, path, "id BIGINT, name STRING", "CLUSTER BY (id, name)")
    for start in (0, 100):
        _append_ids(spark, path, start, start + 100)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    _append_ids(spark, path, 200, 210)


_ODD_STRINGS = ("plain", "a b", "a/b", "a=b", "100%", "ü☃", "c:d#e?f+g", "'quoted'", "tab\\tnl\\n")


@_kind
def partitioned(spark: SparkSession, path: str) -> None:
    """Partitions by strings with special characters, dates, timestamps and numbers, with nulls."""
    _create(
        spark,
        path,
        "id BIGINT, s STRING, d DATE, ts TIMESTAMP, n DECIMAL(10,2), b BOOLEAN",
        "PARTITIONED BY (s, d, ts, n, b)",
    )
    odd = [text.replace("'", "\\'") for text in _ODD_STRINGS]
    values = [
        f"({i}, '{text}', DATE'2024-02-29', TIMESTAMP'2024-02-29 12:34:56.789', 12.50, true)"
        for i, text in enumerate(odd)
    ]
    values.append("(90, NULL, NULL, NULL, NULL, NULL)")
    values.append("(91, '', DATE'0001-01-01', TIMESTAMP'1900-01-01 00:00:00', -0.01, false)")
    _insert(spark, path, ", ".join(values))
    _checkpoint(spark, path)


@_kind
def type_widening(spark: SparkSession, path: str) -> None:
    """Type widening of a column and of a map value, with files of the old and of the new types."""
    _create(spark, path, "small SMALLINT, m MAP<STRING, INT>", enableTypeWidening="true")
    _insert(spark, path, "(1, map('k', 1))")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN small TYPE INT")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN small TYPE BIGINT")
    spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN m.value TYPE BIGINT")
    _insert(spark, path, "(5000000000, map('k', 5000000000))")


@_kind
def generated_columns(spark: SparkSession, path: str) -> None:
    """A partition column generated from a timestamp."""
    _create(
        spark,
        path,
        "id BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))",
        "PARTITIONED BY (day)",
    )
    spark.sql(f"INSERT INTO delta.`{path}` (id, at) VALUES (1, TIMESTAMP'2024-05-06 07:08:09')")


@_kind
def identity_columns(spark: SparkSession, path: str) -> None:
    """An identity column whose high-water mark moved with two inserts."""
    _create(
        spark, path, "k BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5), v INT"
    )
    for value in (1, 2):
        spark.sql(f"INSERT INTO delta.`{path}` (v) VALUES ({value})")


@_kind
def check_constraint(spark: SparkSession, path: str) -> None:
    """Two CHECK constraints, one of them dropped again, and a NOT NULL column."""
    _create(spark, path, "id BIGINT NOT NULL, name STRING")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT positive CHECK (id > 0)")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT named CHECK (name IS NOT NULL)")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT named")
    _insert(spark, path, "(1, 'a')")


@_kind
def domain_metadata(spark: SparkSession, path: str) -> None:
    """System domains by two features, carried through a checkpoint."""
    _create(spark, path, "id BIGINT, name STRING", "CLUSTER BY (id)", enableRowTracking="true")
    _append_ids(spark, path, 0, 5)
    _checkpoint(spark, path)
    spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY (name)")


@_kind
def change_data_feed(spark: SparkSession, path: str) -> None:
    """Change data files: an UPDATE and a DELETE with the change data feed on."""
    _create(spark, path, "id BIGINT, name STRING", enableChangeDataFeed="true")
    _append_ids(spark, path, 0, 10)
    spark.sql(f"UPDATE delta.`{path}` SET name = 'changed' WHERE id = 4")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 5")


@_kind
def set_transactions(spark: SparkSession, path: str) -> None:
    """Idempotent writes of two applications, one of which came twice and counted once."""
    _create(spark, path, "id BIGINT, name STRING")
    for app, version in (("loader", 1), ("loader", 1), ("loader", 2), ("other", 7)):
        writer = spark.range(1).selectExpr("id", "'x' AS name").write.format("delta")
        writer.mode("append").option("txnAppId", app).option("txnVersion", version).save(path)
    _checkpoint(spark, path)


@_kind
def log_compaction(spark: SparkSession, path: str) -> None:
    """Commits 1 to 4 also as one compacted log file, and a commit after it."""
    _create(spark, path, "id BIGINT, name STRING")
    for i in range(3):
        _append_ids(spark, path, i, i + 1)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    _compact_log(spark, path, 1, 4)
    _append_ids(spark, path, 9, 10)


def _compact_log(spark: SparkSession, path: str, start: int, end: int) -> None:
    """Delta Spark only reads such files; the Delta Kernel that comes with it writes them."""
    jvm: Any = spark._jvm
    kernel = jvm.io.delta.kernel
    engine = kernel.defaults.engine.DefaultEngine.create(jvm.org.apache.hadoop.conf.Configuration())
    folder = kernel.internal.fs.Path
    hook = kernel.internal.hook.LogCompactionHook(
        folder(f"file:{path}"), folder(f"file:{path}/_delta_log"), start, end, 0
    )
    hook.threadSafeInvoke(engine)
