"""Every operation here and in Delta Spark: protocol, schema, history, statistics and rows.

The steps of a case run one after the other on tables whose rows share files in the same way, so
that all metrics and parameters of the history have to be the same. After the last one each side
reads the other's tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.two_engines import Engines
from tests.support.engines.workloads import (
    AddColumn,
    AddConstraint,
    Delete,
    DropColumn,
    Merge,
    Optimize,
    Purge,
    RenameColumn,
    Restore,
    Rows,
    SetProperties,
    Start,
    Step,
    Update,
    Vacuum,
    WidenColumn,
    Write,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_PLAIN = "`id` BIGINT, `s` STRING, `n` DECIMAL(5,2), `d` DOUBLE, `at` TIMESTAMP"
_NESTED = "`id` BIGINT, `who` STRUCT<`a`: INT, `b`: STRING>, `l` ARRAY<STRUCT<`q`: INT>>, `p` DATE"
_VECTORS = {"delta.enableDeletionVectors": "true"}
_UPSERT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("whenMatchedUpdateAll", {}),
    ("whenNotMatchedInsertAll", {}),
)

CASES: dict[str, tuple[Start, list[Step]]] = {
    "rows": (
        Start(columns=_PLAIN, rows=Rows(seed=1, count=12)),
        [
            Write(rows=Rows(seed=2, count=5)),
            Delete(where="`id` > 9"),
            Update(set={"`s`": "concat(`s`, '!')"}, where="`id` < 2"),
            Write(rows=Rows(seed=3, count=9, where="`id` < 5"), mode="overwrite",
                  replace_where="`id` < 5"),
            Write(rows=Rows(seed=4, count=6), mode="overwrite"),
            Write(rows=Rows(seed=5, count=3, columns=f"{_PLAIN}, `more` BINARY"),
                  merge_schema=True),
            Optimize(),
            Merge(rows=Rows(seed=6, count=3), clauses=_UPSERT),
            Delete(),
            Restore(step=2),
            Vacuum(),
            Write(rows=Rows(seed=7, count=4, columns="`id` BIGINT, `z` FLOAT"), mode="overwrite",
                  overwrite_schema=True),
        ],
    ),
    "vectors": (
        Start(
            columns=_PLAIN,
            properties={**_VECTORS, "delta.enableChangeDataFeed": "true",
                        "delta.enableRowTracking": "true"},
            rows=Rows(seed=1, count=12),
        ),
        [
            Delete(where="`id` > 9"),
            Update(set={"`d`": "`d` + 1"}, where="`id` IN (1, 2, 3)"),
            Merge(rows=Rows(seed=6, count=3), clauses=_UPSERT),
            Purge(),
            Delete(where="`id` IS NULL"),
            Write(rows=Rows(seed=3, count=9, where="`id` < 5"), mode="overwrite",
                  replace_where="`id` < 5"),
            Optimize(),
            Restore(step=1),
        ],
    ),
    "replaced rows in vectors": (
        Start(columns=_PLAIN, properties=_VECTORS, rows=Rows(seed=1, count=12)),
        [
            Write(rows=Rows(seed=3, count=9, where="`id` < 5"), mode="overwrite",
                  replace_where="`id` < 5"),
            Write(rows=Rows(seed=2, count=30)),
            Write(rows=Rows(seed=4, count=9, where="`id` < 7"), mode="overwrite",
                  replace_where="`id` < 7"),
            Write(rows=Rows(seed=4, count=0), mode="overwrite", replace_where="`id` > 3"),
            Write(rows=Rows(seed=5, count=3), mode="overwrite", replace_where="true"),
        ],
    ),
    "partitions": (
        Start(columns=_NESTED, partition_by=("p",), rows=Rows(seed=1, count=12)),
        [
            Write(rows=Rows(seed=2, count=3), mode="overwrite", dynamic=True),
            Delete(where="`p` = DATE'1970-01-01'"),
            Write(rows=Rows(seed=3, count=9, where="`p` IS NULL"), mode="overwrite",
                  replace_where="`p` IS NULL"),
            Update(set={"`who`.`a`": "7"}, where="`p` > DATE'1950-01-01'"),
            Optimize(where="`p` = DATE'2024-02-29'"),
        ],
    ),
    "columns": (
        Start(
            columns=_NESTED,
            properties={"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"},
            rows=Rows(seed=1, count=8),
        ),
        [
            AddColumn(path=("x y",), kind="INT", after="id"),
            AddColumn(path=("who", "c"), kind="SMALLINT"),
            RenameColumn(path=("who", "a"), name="z"),
            WidenColumn(path=("x y",), kind="BIGINT"),
            Write(rows=Rows(seed=2, count=5)),
            DropColumn(path=("l",)),
            Purge(),
            AddConstraint(name="some", expression="`id` IS NULL OR `id` > -1000"),
            AddConstraint(name="never", expression="`id` > 1000"),
            SetProperties(properties=_VECTORS),
            Write(rows=Rows(seed=3, count=5)),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_operations_do_what_delta_spark_does(
    name: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    start, steps = CASES[name]
    engines = Engines(delta_spark, tmp_path, ("native", "arrow"), in_full=True)
    assert engines.run(start), engines.refused
    for step in steps:
        engines.run(step)
    engines.finish()
