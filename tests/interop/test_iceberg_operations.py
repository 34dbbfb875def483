"""Everything the engine does to a table, read back through Iceberg with the commit that did it.

Four tables go through the same steps: plain and partitioned, in Iceberg's format versions 2 and 3,
the latter with deletion vectors. After each step Iceberg Spark, PyIceberg, DuckDB and our own
Delta reader have to return of each what Delta Spark returns, and what readers go by at earlier
versions has to be as it was; before VACUUM and at the end all versions that are kept are read
again. Sessions of Spark take long for a version. Since the tables hold the same rows, Delta Spark
reads one of the four by turns, and Iceberg Spark, going back, two of them.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.delta_tables import delta_settings
from tests.support.iceberg.both_sides import V2, V3, as_text, iceberg_rows, opened
from tests.support.iceberg.duckdb import connect, scanned
from tests.support.iceberg.readers import by_delta, by_iceberg, kept, texts
from tests.support.local_engine import rows_of
from twinlake.spark import DeltaTable, write
from twinlake.spark.maintenance.optimize import purge
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STRICT = {**V2, "delta.enableIcebergWriterCompatV1": "true"}
TABLES = {"v2-plain": V2, "v2-partitioned": STRICT, "v3-plain": V3, "v3-partitioned": V3}
SYNC = {"twinlake.iceberg.sync": "commit"}
COLUMNS = (
    "id",
    "IF(id % 5 = 4, NULL, concat('n', id)) AS name",
    "IF(id % 7 = 6, NULL, CAST(id % 3 AS INT)) AS p",
    "CAST(id / 4 AS DECIMAL(9,2)) AS n",
    "timestamp_micros(id * 1000 + 999) AS at",
    "named_struct('x', id, 'l', array(id, NULL)) AS s",
)
OTHERS = ("id", "n AS name", "CAST(p AS STRING) AS p", "s")


@dataclass(frozen=True)
class Twin:
    """A table, and the session that works on it."""

    spark: SparkSession
    folder: Path
    properties: dict[str, str]

    @property
    def table(self) -> Table:
        return Table.open(self.folder)

    @property
    def changed(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, str(self.folder))

    @property
    def is_partitioned(self) -> bool:
        return bool(self.table.metadata.partition_columns)

    def rows(self, start: int, end: int, *more: str) -> DataFrame:
        """Rows by their ids, in one file a partition."""
        return self.spark.range(start, end, 1, 1).selectExpr(*COLUMNS, *more)


def append_with_a_new_column(twin: Twin) -> None:
    more = "IF(id = 12, double('NaN'), -0.0D) AS d"
    write(twin.rows(8, 15, more), twin.folder, "append", merge_schema=True)


def delete(twin: Twin) -> None:
    twin.changed.delete("id IN (2, 9)")


def drop_a_column_and_purge(twin: Twin) -> None:
    twin.table.drop_column("d")
    purge(twin.spark, twin.folder)


def update(twin: Twin) -> None:
    twin.changed.update("id > 10 OR name IS NULL", {"name": "'later'", "s.x": "-id"})


def merge_with_new_columns(twin: Twin) -> None:
    """One of them has the name of the one that was dropped."""
    source = twin.rows(6, 18, "double(id) AS d", "DATE'2024-02-29' AS day")
    (
        twin.changed.alias("t")
        .merge(source.alias("s"), "t.id = s.id AND t.p <=> s.p")
        .withSchemaEvolution()
        .whenMatchedDelete("t.id = 7")
        .whenMatchedUpdateAll("t.id < 10")
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate("t.id = 0", {"name": "'nobody'"})
        .execute()
    )


def optimize(twin: Twin) -> None:
    twin.changed.optimize().executeCompaction()


def replace_where(twin: Twin) -> None:
    write(twin.rows(30, 36).where("p = 1"), twin.folder, "overwrite", replace_where="p = 1")


def overwrite_partitions(twin: Twin) -> None:
    rows = twin.rows(37, 41).where("p <> 0")
    if twin.is_partitioned:
        write(rows, twin.folder, "overwrite", partition_overwrite="dynamic")
    else:
        write(rows, twin.folder, "overwrite", replace_where="p <> 0")


def restore(twin: Twin) -> None:
    twin.changed.restoreToVersion(2)


def overwrite(twin: Twin) -> None:
    write(twin.rows(60, 64), twin.folder, "overwrite")


def overwrite_schema_and_partitions(twin: Twin) -> None:
    """The plain tables become partitioned; the others are by another type."""
    rows = twin.rows(70, 76).selectExpr(*OTHERS)
    write(rows, twin.folder, "overwrite", overwrite_schema=True, partition_by="p")


def delete_everything(twin: Twin) -> None:
    twin.changed.delete()


def replace_the_table(twin: Twin) -> None:
    builder = DeltaTable.replace(twin.spark).location(str(twin.folder))
    builder = builder.addColumn("id", "LONG", nullable=False).addColumn("p", "DATE")
    for key, value in twin.properties.items():
        builder = builder.property(key, value)
    builder.partitionedBy("p").execute()
    rows = twin.spark.sql("SELECT id, IF(id = 0, NULL, DATE'2024-02-29') AS p FROM range(0, 4)")
    write(rows.coalesce(1), twin.folder, "append")


def vacuum(twin: Twin) -> None:
    with delta_settings(twin.spark, retentionDurationCheck__enabled="false"):
        twin.changed.vacuum(0)


def append_at_last(twin: Twin) -> None:
    write(twin.spark.sql("SELECT 9L AS id, DATE'1969-12-31' AS p"), twin.folder, "append")


def stream(twins: Sequence[Twin], folder: Path) -> None:
    """One stream to all tables; a batch is written once, however often it is tried."""

    def one_batch(rows: DataFrame, number: int) -> None:
        for twin in (*twins, *twins):
            write(rows.coalesce(1), twin.folder, "append", txn=("stream", number))

    folder.mkdir()
    lines = [json.dumps({"id": at, "name": "from a stream", "p": at % 3}) for at in range(50, 53)]
    (folder / "rows.json").write_text("\n".join(lines))
    reader = twins[0].spark.readStream.schema("id LONG, name STRING, p INT").format("json")
    writer = reader.load(str(folder)).writeStream.foreachBatch(one_batch)
    writer = writer.option("checkpointLocation", f"{folder}-state").trigger(availableNow=True)
    assert writer.start().awaitTermination(120)


STEPS: tuple[Callable[[Twin], None], ...] = (
    append_with_a_new_column,
    delete,
    drop_a_column_and_purge,
    update,
    merge_with_new_columns,
    optimize,
    replace_where,
    overwrite_partitions,
    restore,
    overwrite,
    overwrite_schema_and_partitions,
    delete_everything,
    replace_the_table,
    vacuum,
    append_at_last,
)


@dataclass
class Readers:
    """What is read of tables that hold the same rows at every version."""

    twins: Sequence[Twin]
    duck: Any
    rows: dict[int, list[str]] = field(default_factory=dict)
    """What Delta Spark returned, by version."""
    seen: dict[Path, dict[str, bytes | str]] = field(default_factory=dict)
    """What readers went by last, by table."""

    def check(self, step: str) -> None:
        """The newest version; nothing that leads to an earlier one is another now."""
        (version,) = {twin.table.version for twin in self.twins}
        turn = self.twins[version % len(self.twins)]
        self.rows[version] = texts(by_delta(turn.spark, turn.folder, version))
        for twin in self.twins:
            told = (step, twin.folder.name)
            assert twin.table.iceberg.lag.versions == 0, told
            assert as_text(rows_of(twin.table.snapshot)) == self.rows[version], told
            assert texts(by_iceberg(twin.spark, twin.folder)) == self.rows[version], told
            assert as_text(iceberg_rows(twin.folder)) == self.rows[version], told
            if self.duck is not None:
                assert scanned(self.duck, twin.folder) == self.rows[version], told
            before, now = self.seen.get(twin.folder, {}), history(twin.folder)
            assert all(before[name] == now[name] for name in before.keys() & now.keys()), told
            # Only VACUUM takes something away.
            assert before.keys() <= now.keys() or step == "vacuum", told
            self.seen[twin.folder] = now

    def check_history(self) -> None:
        """Every version that is kept."""
        for turn, twin in enumerate(self.twins):
            for at, snapshot_id in kept(twin.folder):
                told = (twin.folder.name, at)
                if (at + turn) % 2:
                    found = texts(by_iceberg(twin.spark, twin.folder, snapshot_id))
                    assert found == self.rows[at], told
                assert as_text(iceberg_rows(twin.folder, snapshot_id)) == self.rows[at], told
                if self.duck is not None:
                    assert scanned(self.duck, twin.folder, snapshot_id) == self.rows[at], told

    def check_row_ids(self) -> None:
        """Rows keep their ids and versions through files that were written again."""
        for twin in self.twins:
            if "delta.enableRowTracking" not in twin.properties:
                continue
            ours = by_iceberg(twin.spark, twin.folder).select(
                "id", "_row_id", "_last_updated_sequence_number"
            )
            theirs = by_delta(twin.spark, twin.folder, twin.table.version).selectExpr(
                "id",
                "_metadata.row_id AS _row_id",
                "_metadata.row_commit_version AS _last_updated_sequence_number",
            )
            assert texts(ours) == texts(theirs), twin.folder.name


def history(folder: Path) -> dict[str, bytes | str]:
    """What the versions that are kept are made of: snapshots, their schemas, and all files."""
    metadata = opened(folder).metadata
    schemas = {schema.schema_id: str(schema) for schema in metadata.schemas}
    found: dict[str, bytes | str] = {
        str(one.snapshot_id): f"{one} {schemas[one.schema_id or 0]}" for one in metadata.snapshots
    }
    files = [*(folder / "_iceberg/metadata").glob("*.avro"), *folder.glob("_iceberg/**/*.puffin")]
    return found | {path.name: path.read_bytes() for path in (*files, *folder.rglob("*.parquet"))}


def test_every_operation(delta_spark: SparkSession, tmp_path: Path) -> None:
    twins = [
        Twin(delta_spark, tmp_path / name, properties | SYNC) for name, properties in TABLES.items()
    ]
    for twin in twins:
        parts = ["p"] if twin.folder.name.endswith("partitioned") else None
        write(twin.rows(0, 8), twin.folder, partition_by=parts, properties=twin.properties)
    # Where there is no DuckDB, its own tests say so.
    duck = connect()
    readers = Readers(twins, None if isinstance(duck, str) else duck)
    readers.check("create")
    for step in STEPS:
        if step is vacuum:
            for twin in twins[::2]:
                # Its partitions changed, while the first version of the log has files.
                shutil.rmtree(twin.folder / "_iceberg")
                twin.table.iceberg.sync()
            readers.check_history()
        before = twins[0].table.version
        for twin in twins:
            step(twin)
        assert twins[0].table.version > before, step.__name__
        readers.check(step.__name__)
        if step is optimize:
            readers.check_row_ids()
        if step is restore:
            stream(twins, tmp_path / "stream")
            readers.check("stream")
    readers.check_history()
