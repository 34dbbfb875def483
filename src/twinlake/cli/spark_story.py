"""The second half of ``twinlake demo``: rows, moved by Spark through PySpark and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.compat_story import compat_story
from twinlake.cli.iceberg_story import iceberg_story
from twinlake.cli.output import error_lines
from twinlake.cli.view import Facts, Grid, Heading, Lines, Prose, View
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from twinlake.table import Table

__all__ = ["spark_story"]

_ROWS: Final = 1_000_000
_CODE: Final = {
    "write": 'write(orders, "sales", partition_by="region", '
    'properties={"delta.enableDeletionVectors": "true"})',
    "merge": 'DeltaTable.forPath(spark, "sales").alias("t")'
    '.merge(news.alias("s"), "t.id = s.id")'
    ".whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()",
    "delete": 'DeltaTable.forPath(spark, "sales").delete("id % 100 = 7")',
}


def spark_story(folder: Path) -> Iterator[View]:
    """A million rows written, merged and deleted, then a table that becomes Iceberg's as well."""
    from twinlake.spark.local_session import local_session

    try:
        session = local_session()
        spark = session.__enter__()
    except UserError as error:
        if error.code is not Code.SPARK_REQUIRED:
            raise
        yield _without_spark(error)
        return
    try:
        yield from _steps(spark, str(folder / "sales"))
        yield from compat_story(spark, folder)
        yield from iceberg_story(spark, folder)
    finally:
        session.__exit__(None, None, None)


def _steps(spark: Any, path: str) -> Iterator[View]:
    from twinlake.spark import DeltaTable, write

    yield _opening(path)
    properties = {"delta.enableDeletionVectors": "true"}
    began = time.monotonic()
    table = write(_orders(spark, 0, _ROWS), path, partition_by="region", properties=properties)
    yield _step("write", "8. A million rows", table, began)
    began = time.monotonic()
    news = _orders(spark, _ROWS - 100_000, _ROWS + 10_000, price="id % 90 + 1")
    handle = DeltaTable.forPath(spark, path)
    matched = handle.alias("t").merge(news.alias("s"), "t.id = s.id")
    matched.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    yield _step("merge", "9. A hundred thousand changed, ten thousand new", _now(table), began)
    began = time.monotonic()
    handle.delete("id % 100 = 7")
    yield _step("delete", "10. One in a hundred deleted", _now(table), began)
    yield _result(_now(table), handle.toDF())


def _orders(spark: Any, first: int, end: int, price: str = "id % 100") -> Any:
    return spark.range(first, end).selectExpr(
        "id",
        "element_at(array('north', 'south', 'east', 'west'), CAST(id % 4 + 1 AS INT)) AS region",
        "concat('item ', id % 1000) AS item",
        f"CAST({price} AS DECIMAL(10, 2)) AS price",
    )


def _now(table: Table) -> Table:
    return table.refresh()


def _opening(path: str) -> View:
    return View(
        data={"step": "spark", "path": path},
        blocks=[
            Heading("Rows, moved by Spark"),
            Prose(
                "Everything so far was Python. Rows are moved by Spark, through PySpark alone: no "
                "Delta jar is on its class path. DeltaTable has the names and arguments of "
                "Delta's own."
            ),
            Facts((("table", path),)),
        ],
    )


def _step(key: str, title: str, table: Table, began: float) -> View:
    spent = time.monotonic() - began
    record = table.history(1)[0]
    metrics = {k: v for k, v in (record.operation_metrics or {}).items() if _is_telling(k, v)}
    return View(
        data={
            "step": key,
            "version": table.version,
            "operation": record.operation,
            "metrics": metrics,
            "seconds": round(spent, 2),
        },
        blocks=[
            Heading(title),
            Lines((f">>> {_CODE[key]}",), style="bold"),
            Facts((("seconds", f"{spent:.1f}"), *sorted(metrics.items()))),
        ],
    )


def _is_telling(name: str, value: Any) -> bool:
    return not name.endswith("Ms") and str(value) != "0"


def _result(table: Table, rows: Any) -> View:
    files = table.files()
    history = [(r.version, r.operation) for r in table.history()]
    counted = {row["region"]: row["count"] for row in rows.groupBy("region").count().collect()}
    listed = [
        (
            file["path"],
            file["num_records"],
            (file["deletion_vector"] or {}).get("cardinality", 0),
        )
        for file in files.select(["path", "num_records", "deletion_vector"]).to_pylist()
    ]
    return View(
        data={
            "step": "rows",
            "history": history,
            "files": len(files),
            "rows": counted,
        },
        blocks=[
            Heading("11. What is there now"),
            Grid.of("version:r operation", history, title="history"),
            Grid.of(
                "file rows:r hidden:r",
                [(path.rpartition("/")[2][:32] + "…", *rest) for path, *rest in listed[:8]],
                title=f"{len(listed)} files, the first eight",
            ),
            Grid.of("region rows:r", sorted(counted.items()), title="rows as toDF() reads them"),
            Prose(
                "Deleted and updated rows are hidden by deletion vectors: no file was written "
                "again for them. OPTIMIZE packs the files, VACUUM takes what no version needs."
            ),
        ],
    )


def _without_spark(error: UserError) -> View:
    return View(
        data={"step": "spark", "error": error.to_dict()},
        blocks=[
            Heading("Rows, moved by Spark"),
            Prose("This part needs PySpark and Java, and something is missing:"),
            Lines(tuple(error_lines(error))),
        ],
    )
