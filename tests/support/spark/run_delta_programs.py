"""Runs the programs of ``delta_programs`` in a session and says what they came to.

The report is made of JSON, so that two processes can compare theirs. Tables are read by the control
plane on both sides: what is compared is what the engines wrote, not how they show it.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.engines.agreement import arrow_keys, condition_of, history_of, settled
from tests.support.spark.delta_programs import BASE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["make_base", "run_programs"]


def make_base(spark: SparkSession, folder: Path) -> Path:
    """The table that every program gets a copy of; made by Delta Spark."""
    base = folder / "base"
    exec(BASE, {"t": str(base), "rows": _rows(spark)})
    return base


def run_programs(
    spark: SparkSession, programs: Mapping[str, str], base: Path, folder: Path, warehouse: Path
) -> dict[str, Any]:
    """What each program came to, by its name."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    for number, (name, text) in enumerate(programs.items()):
        own = folder / str(number)
        shutil.copytree(base, own / "t")
        found[name] = _Run(spark, own, f"program{number}", warehouse).report(text)
    return found


def _rows(spark: SparkSession) -> Any:
    def rows(first: int, last: int, **more: str) -> DataFrame:
        return spark.range(first, last, 1, 1).selectExpr(
            "id",
            "concat('s', id) AS s",
            "CAST(id % 2 AS INT) AS p",
            *(f"{text} AS {name}" for name, text in more.items()),
        )

    return rows


class _Run:
    """One program on its own tables."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, warehouse: Path) -> None:
        self.spark, self.folder = spark, folder
        self.tables = {"t": folder / "t", "new": folder / "new", "n": warehouse / name}
        self.name = name

    def report(self, text: str) -> dict[str, Any]:
        from pyspark.sql import functions as F

        names: dict[str, Any] = {
            "spark": self.spark,
            "F": F,
            "t": str(self.tables["t"]),
            "new": str(self.tables["new"]),
            "n": self.name,
            "other": f"{self.name}_other",
            "rows": _rows(self.spark),
            "at": self._time_of,
        }
        told: dict[str, Any] = {}
        try:
            exec(text, names)
            if "result" in names:
                told["result"] = _shown(names["result"])
        except Exception as error:
            condition = condition_of(error) or ""
            # Spark numbers the errors that it has no class for yet; the numbers say nothing.
            told["error"] = "" if condition.startswith("_LEGACY_ERROR_TEMP") else condition
            told["text"] = f"{type(error).__name__}: {str(error)[:1500]}"
        told["tables"] = {
            table: _left_behind(path, self.folder) for table, path in self.tables.items()
        }
        return json.loads(json.dumps(told, default=str))  # type: ignore[no-any-return]

    def _time_of(self, version: int) -> str:
        from twinlake import Table

        entry = next(e for e in Table.open(self.tables["t"]).history() if e.version == version)
        at = dt.datetime.fromtimestamp(entry.timestamp / 1000, dt.UTC)
        return at.strftime("%Y-%m-%d %H:%M:%S.%f")


def _shown(frame: DataFrame) -> dict[str, Any]:
    return {
        "schema": json.loads(frame.schema.json()),
        "rows": sorted(repr(tuple(row)) for row in frame.collect()),
    }


def _left_behind(path: Path, folder: Path) -> Any:
    from twinlake import Table

    if not Table.exists(path):
        return len(list(path.iterdir())) if path.is_dir() else None
    table = Table.open(path)
    told: dict[str, Any] = {
        "rows": sorted(key for (key,) in arrow_keys(table.to_arrow())),
        "notes": [entry.user_metadata for entry in table.history()],
        "txns": {k: v.version for k, v in table.snapshot.set_transactions.items()},
        "history": [
            history_of(Table.open(path, version=version), in_full=True)
            for version in range(table.version + 1)
        ],
        **settled(table),
    }
    return json.loads(json.dumps(told, default=str).replace(str(folder), "FOLDER"))
