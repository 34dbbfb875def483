"""A Delta table becomes an Iceberg table: checked, upgraded, and read by PyIceberg."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Final

from twinlake import CompatViolation
from twinlake.spark import DeltaTable, scan, write

from .step import Step, calls, facts, grid, prose, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from twinlake import Table

TARGET: Final = "icebergWriterCompatV1"
FLAG: Final = "delta.enableIcebergWriterCompatV1"
RETENTION: Final = "delta.dropFeatureTruncateHistory.retentionDuration"
SYNC: Final = "twinlake.iceberg.sync"
DELETE: Final = "id % 2 = 0"
PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
ROWS: Final = 10_000
PROPERTIES: Final = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


def steps(folder: Path, spark: SparkSession) -> Iterator[Step]:
    """A table that breaks rules of icebergWriterCompatV1 is upgraded and read as Iceberg."""
    table = visits(spark, str(folder / "visits"))
    yield refused(table)

    plan = table.upgrade(TARGET, dry_run=True)
    yield Step(
        name="compat_plan",
        title="The plan of an upgrade",
        data={"plan": plan.to_dict()},
        parts=[
            calls(f'visits.upgrade("{TARGET}", dry_run=True)'),
            str(plan),
            prose(
                "Versions with deletion vectors must leave the history, by default a day later: "
                "upgrade stops there, and a later run completes it. For this example "
                f"{RETENTION} is set to zero."
            ),
        ],
    )

    table = table.set_properties({RETENTION: "interval 0 hours"})
    start = time.monotonic()
    plan = table.upgrade(TARGET, spark=spark)
    seconds = time.monotonic() - start
    yield Step(
        name="compat_upgrade",
        title="The upgrade",
        data={"seconds": round(seconds, 2), "plan": plan.to_dict()},
        parts=[
            calls(f'visits.upgrade("{TARGET}", spark=spark)'),
            facts({"seconds": f"{seconds:.1f}"}),
            str(plan),
            prose(
                "Every step is a commit. If the upgrade is interrupted, the table is valid, and "
                "running it again completes it."
            ),
        ],
    )
    yield clean(table.refresh(), spark)
    yield read_as_iceberg(table.refresh(), spark)


def visits(spark: SparkSession, path: str) -> Table:
    """A table with small integers, deletion vectors, a change data feed and no column mapping."""
    rows = spark.range(ROWS).selectExpr(
        "id",
        "CAST(id % 90 AS TINYINT) AS age",
        "element_at(array('north', 'south'), CAST(id % 2 + 1 AS INT)) AS region",
        "array(CAST(id % 7 AS SMALLINT)) AS rooms",
    )
    table = write(rows, path, partition_by="region", properties=PROPERTIES)
    DeltaTable.forPath(spark, path).delete("id % 10 = 3")
    return table.refresh()


def refused(table: Table) -> Step:
    """The error of enabling the feature, and the report of every violation."""
    try:
        table.set_properties({FLAG: "true"})
    except CompatViolation as error:
        refusal = error
    else:
        raise AssertionError(f"{FLAG} was accepted")
    report = table.check(TARGET, files=True)
    counts = Counter(violation.rule for violation in report.violations)
    example = {violation.rule: violation.message for violation in report.violations}
    return Step(
        name="compat_refused",
        title="Is this table open to Iceberg writers?",
        data={"error": refusal.to_dict(), "report": report.to_dict()},
        parts=[
            prose(
                f"Iceberg writers may write a table with the compat feature {TARGET}. This one "
                "has small integers, deletion vectors, a change data feed and columns found by "
                "name."
            ),
            calls(f'visits.set_properties({{"{FLAG}": "true"}})'),
            f"{refusal.code}  {refusal.what}",
            prose("Nothing was changed. The rules that the table breaks, its data files included:"),
            grid(
                "rule violations for_example",
                [(rule, count, example[rule]) for rule, count in counts.items()],
            ),
            prose("`twinlake check visits --files` lists every violation and its fix."),
        ],
    )


def clean(table: Table, spark: SparkSession) -> Step:
    """The report after the upgrade."""
    report = table.check(TARGET, files=True)
    count = scan(spark, table.location).count()
    columns = [(one.name, one.type, one.metadata[PHYSICAL_NAME]) for one in table.schema]
    return Step(
        name="compat_clean",
        title="The report after the upgrade",
        data={"report": report.to_dict(), "rows": count},
        parts=[
            calls(f'visits.check("{TARGET}", files=True)'),
            str(report),
            grid("column type physical_name", columns),
            facts({"rows": f"{count:,}"}),
        ],
    )


def read_as_iceberg(table: Table, spark: SparkSession) -> Step:
    """The rows at two versions, counted by Spark on the Delta side and by PyIceberg."""
    path = table.location
    table = table.set_properties({SYNC: "commit"})
    before = table.version
    DeltaTable.forPath(spark, path).delete(DELETE)
    table = table.refresh()
    delta = {v: scan(spark, path, version=v).count() for v in (before, table.version)}
    title = "The same table, through Iceberg"
    try:
        from pyiceberg.table import StaticTable
    except ImportError:
        location = table.iceberg.metadata_location or ""
        return Step(
            name="iceberg",
            title=title,
            data={"metadata_location": location},
            parts=[prose("PyIceberg is not installed. The Iceberg metadata is in:"), location],
        )
    iceberg = StaticTable.from_metadata(f"{path}/_iceberg")
    snapshots = sorted(iceberg.metadata.snapshots, key=lambda one: one.sequence_number or 0)[-2:]
    counts = [iceberg.scan(snapshot_id=one.snapshot_id).to_arrow().num_rows for one in snapshots]
    rows = [
        (version, count, snapshot.snapshot_id, seen)
        for (version, count), snapshot, seen in zip(delta.items(), snapshots, counts, strict=True)
    ]
    return Step(
        name="iceberg",
        title=title,
        data={"delta": list(delta.values()), "iceberg": counts},
        parts=[
            calls(
                f'visits.set_properties({{"{SYNC}": "commit"}})',
                f'DeltaTable.forPath(spark, "visits").delete("{DELETE}")',
                'StaticTable.from_metadata("visits/_iceberg").scan().to_arrow().num_rows',
            ),
            prose(
                "The commit writes Iceberg metadata, derived from the log alone: no data file is "
                "copied. PyIceberg reads the same rows at both versions."
            ),
            grid("delta_version rows iceberg_snapshot rows_by_pyiceberg", rows),
        ],
    )


if __name__ == "__main__":
    run(steps, on_spark=True)
