"""A million rows written, merged and deleted by Spark, through PySpark and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from twinlake.spark import DeltaTable, write

from .step import Step, calls, facts, grid, prose, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from twinlake import Table

ROWS: Final = 1_000_000
PROPERTIES: Final = {"delta.enableDeletionVectors": "true"}


def steps(folder: Path, spark: SparkSession) -> Iterator[Step]:
    """A write, a MERGE, a DELETE, and the table after them."""
    path = str(folder / "sales")
    yield Step(
        name="spark",
        title="Rows on Spark",
        is_opening=True,
        data={"path": path},
        parts=[
            prose(
                "Everything so far was Python. Rows are moved by Spark, through PySpark alone: no "
                "Delta jar is on its class path. DeltaTable has the names and arguments of "
                "Delta's own."
            ),
            facts({"table": path}),
        ],
    )

    start = time.monotonic()
    table = write(sales(spark, 0, ROWS), path, partition_by="region", properties=PROPERTIES)
    yield statement(
        "write",
        "A million rows",
        table,
        start,
        f'write(rows, "sales", partition_by="region", properties={PROPERTIES})',
    )

    start = time.monotonic()
    changed = sales(spark, ROWS - 100_000, ROWS + 10_000, price="id % 90 + 1")
    delta = DeltaTable.forPath(spark, path)
    merge = delta.alias("t").merge(changed.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    yield statement(
        "merge",
        "A hundred thousand rows updated, ten thousand inserted",
        table.refresh(),
        start,
        'merge = sales.alias("t").merge(changed.alias("s"), "t.id = s.id")',
        "merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()",
    )

    start = time.monotonic()
    delta.delete("id % 100 = 7")
    code = 'sales.delete("id % 100 = 7")'
    yield statement("delete", "One row in a hundred deleted", table.refresh(), start, code)
    yield result(table.refresh(), delta.toDF())


def sales(spark: SparkSession, first: int, end: int, price: str = "id % 100") -> DataFrame:
    """Rows with the ids from ``first`` to ``end``."""
    return spark.range(first, end).selectExpr(
        "id",
        "element_at(array('north', 'south', 'east', 'west'), CAST(id % 4 + 1 AS INT)) AS region",
        "concat('item ', id % 1000) AS item",
        f"CAST({price} AS DECIMAL(10, 2)) AS price",
    )


def statement(name: str, title: str, table: Table, start: float, *code: str) -> Step:
    """A statement with the metrics of its commit."""
    seconds = time.monotonic() - start
    record = table.history(1)[0]
    metrics = {
        key: value
        for key, value in sorted((record.operation_metrics or {}).items())
        if not key.endswith("Ms") and str(value) != "0"
    }
    return Step(
        name=name,
        title=title,
        data={
            "version": table.version,
            "operation": record.operation,
            "metrics": metrics,
            "seconds": round(seconds, 2),
        },
        parts=[calls(*code), facts({"seconds": f"{seconds:.1f}", **metrics})],
    )


def result(table: Table, rows: DataFrame) -> Step:
    """History, files and rows."""
    history = [(one.version, one.operation) for one in table.history()]
    counts = {row["region"]: row["count"] for row in rows.groupBy("region").count().collect()}
    files: list[dict[str, Any]] = table.files().to_pylist()
    listed = [
        (
            file["path"].rpartition("/")[2][:32] + "…",
            file["num_records"],
            (file["deletion_vector"] or {}).get("cardinality", 0),
        )
        for file in files[:8]
    ]
    return Step(
        name="rows",
        title="The table after three commits",
        data={"history": history, "files": len(files), "rows": counts},
        parts=[
            grid("version operation", history, title="history"),
            grid("file rows deleted", listed, title=f"{len(files)} files, the first eight"),
            grid("region rows", sorted(counts.items()), title="rows as toDF() reads them"),
            prose(
                "Deletion vectors hide deleted and updated rows: no file was rewritten for them. "
                "OPTIMIZE compacts the files, VACUUM deletes those that no version needs."
            ),
        ],
    )


if __name__ == "__main__":
    run(steps, on_spark=True)
