"""What a driver does to tables whose disk is full, read-only or closed to it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.small_disk import SmallDisk
from tests.support.spark.child_drivers import start_session, step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["blocked_writes"]

WRITERS = {"small": ("auto", 3), "arrow": ("arrow", 30_000), "native": ("native", 30_000)}
"""What the session is set to, and how many rows are written."""
_LEFT = 96 << 10
"""Enough for some of the files of a large write and not for all."""


def blocked_writes(task: Mapping[str, Any]) -> dict[str, Any]:
    """Operations against obstacles, each tried again once the obstacle is gone."""
    from twinlake.spark import scan

    folder = Path(task["folder"])
    disk, local = SmallDisk(folder / "disk", "24m"), SmallDisk(folder / "local", "8m")
    os.environ["SPARK_LOCAL_DIRS"] = str(local.folder)
    spark = start_session(task)
    found: dict[str, Any] = {}
    for writer in WRITERS:
        table = _Table(spark, disk, writer)
        names = task["native"] if writer == "native" else task["writes"]
        found[writer] = {"blocked": table.blocked(names)}
        found[writer]["after"] = [step(partial(table.run, name)) for name in names]
        found[writer]["rows"] = scan(spark, table.path).count()
        disk.copy(writer, folder / f"table-{writer}")
    found["no folder for shuffles"] = _shuffle_without_space(spark, local)
    spark.stop()
    return found


class _Table:
    """A table on the small disk, and what is done to it."""

    def __init__(self, spark: SparkSession, disk: SmallDisk, writer: str) -> None:
        from twinlake import Table
        from twinlake.spark import write

        self.spark, self.disk, self.writer = spark, disk, writer
        self.setting, self.rows = WRITERS[writer]
        self.path = str(disk.folder / writer)
        spark.conf.set("spark.twinlake.writer", self.setting)
        Table.create(self.path, "id BIGINT, part INT, noise STRING", partition_by=["part"])
        write(self.frame(0, 1000), self.path, mode="append")
        write(self.frame(1000, 1000), self.path, mode="append")

    def frame(self, first: int, rows: int) -> DataFrame:
        # Values that do not compress, so that files outgrow what is left of the disk.
        return self.spark.range(first, first + rows, 1, 2).selectExpr(
            "id", "CAST(id % 2 AS INT) AS part", "CAST(rand(7) AS STRING) || rand(8) AS noise"
        )

    def blocked(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """What each operation came to under each obstacle, and whether all is as before."""
        found = []
        for obstacle, blocked in self.obstacles().items():
            for name in names[:1] if obstacle == "nearly full" else names:
                before = self.state()
                with blocked():
                    outcome = step(partial(self.run, name))
                outcome |= {"obstacle": obstacle, "step": name, "same": self.state() == before}
                found.append(outcome)
        return found

    def obstacles(self) -> Mapping[str, Callable[[], AbstractContextManager[None]]]:
        folders = (self.writer, f"{self.writer}/part=0", f"{self.writer}/part=1")
        found: dict[str, Callable[[], AbstractContextManager[None]]] = {
            "read-only": self.disk.read_only,
            "closed": partial(self.disk.closed, *folders),
            "log closed": partial(self.disk.closed, f"{self.writer}/_delta_log"),
            # Last: Java's Parquet writer leaves files open when it fails, and a file system with
            # such files cannot be made read-only.
            "full": self.disk.full,
        }
        if self.writer != "small":
            found["nearly full"] = partial(self.disk.full, _LEFT)
        return found

    def run(self, name: str) -> str:
        from twinlake import Table
        from twinlake.spark import DeltaTable, write

        if name == "write":
            write(self.frame(10_000, self.rows), self.path, mode="append")
        elif name == "delete":
            DeltaTable.forPath(self.spark, self.path).delete("id % 7 = 3")
        elif name == "merge":
            source = self.frame(500, self.rows).alias("s")
            target = DeltaTable.forPath(self.spark, self.path).alias("t")
            merging = target.merge(source, "t.id = s.id")
            merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        elif name == "optimize":
            DeltaTable.forPath(self.spark, self.path).optimize().executeCompaction()
        return f"version {Table.open(self.path).version}"

    def state(self) -> tuple[int, list[str]]:
        """The version, and all files of the table's folder outside of its log."""
        from twinlake import Table

        root = Path(self.path)
        found = (str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())
        files = sorted(file for file in found if not file.startswith("_delta_log/"))
        return Table.open(self.path).version, files


def _shuffle_without_space(spark: SparkSession, disk: SmallDisk) -> dict[str, Any]:
    """A write whose rows have to be sorted through a folder that is full."""
    from twinlake.spark import write

    with disk.full():
        frame = spark.range(0, 200_000, 1, 2).selectExpr("id", "rand(1) AS noise").orderBy("noise")
        return step(lambda: write(frame, str(disk.folder.parent / "sorted")).version)
