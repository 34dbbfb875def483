"""Several engines that write one table by turns, beside a model of its rows in Python.

Every change is an operation on the model first: it says which rows the table has afterwards. Each
engine then does the same in its own way: Delta Spark and twinlake on Spark by their DML, twinlake
without Spark by files that pyarrow wrote, delta-rs by its own operations.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tests.support.data_files import write_file
from tests.support.local_engine import rows_of
from twinlake.actions import AddFile
from twinlake.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["COLUMNS", "ENGINES", "Model", "Workload"]

Row = dict[str, Any]
COLUMNS: Final = (
    "id BIGINT, p STRING, name STRING, n INT, day DATE, s STRUCT<a: INT, b: STRING>, "
    "tags ARRAY<STRING>"
)
_ADDED: Final = ("INT", "STRING", "DATE", "DOUBLE")
_MOST_ADDED: Final = 8
_PARTITIONS: Final = ("x", "a/b", None)


@dataclass
class Model:
    """The rows by their id, and the columns."""

    rng: Random
    columns: list[str] = field(default_factory=list)
    """Those that were added, as DDL."""
    rows: dict[int, Row] = field(default_factory=dict)
    next_id: int = 0

    def new_rows(self, count: int) -> list[Row]:
        """Rows that are not in the table yet."""
        made = [self._row(self.next_id + at) for at in range(count)]
        self.next_id += count
        return made

    def _row(self, number: int) -> Row:
        rng = self.rng
        row: Row = {
            "id": number,
            "p": rng.choice(_PARTITIONS),
            "name": rng.choice((None, "", "ü☃", f"name {number}")),
            "n": rng.choice((None, number, -number)),
            "day": rng.choice((None, dt.date(1900, 1, 1), dt.date(2024, 2, 29))),
            "s": rng.choice((None, {"a": None, "b": "x"}, {"a": number, "b": None})),
            "tags": rng.choice((None, [], ["a", None], [f"t{number}"])),
        }
        for column in self.columns:
            name, _, kind = column.partition(" ")
            row[name] = rng.choice((None, _VALUES[kind](number)))
        return row

    def some_ids(self) -> list[int]:
        """A few ids of rows of the table, or more of them at times."""
        share = self.rng.choice((0.1, 0.3))
        return [number for number in self.rows if self.rng.random() < share]

    def snapshot(self) -> list[str]:
        """All rows as text."""
        return sorted(repr(row) for row in self.rows.values())


_VALUES: Final[Mapping[str, Callable[[int], Any]]] = {
    "INT": lambda number: number,
    "STRING": lambda number: f"added {number}",
    "DATE": lambda number: dt.date(2000, 1, 1) + dt.timedelta(days=number % 900),
    "DOUBLE": lambda number: number / 4,
}


class Engine:
    """How one engine changes the table."""

    name = ""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.folder = folder

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        """Rows as a frame with the columns of the table."""
        from twinlake.spark import scan

        schema = scan(self.spark, self.folder).schema
        return self.spark.createDataFrame(list(rows), schema).coalesce(1)

    def append(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def overwrite(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def delete(self, ids: Sequence[int]) -> None:
        raise NotImplementedError

    def update(self, ids: Sequence[int], name: str) -> None:
        raise NotImplementedError

    def merge(self, rows: Sequence[Row]) -> None:
        raise NotImplementedError

    def add_column(self, column: str) -> None:
        raise NotImplementedError

    def optimize(self) -> None:
        raise NotImplementedError


def _within(ids: Sequence[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})" if ids else "id = -1"


class DeltaSpark(Engine):
    """Delta Spark, by SQL."""

    name = "Delta Spark"

    def _sql(self, text: str) -> None:
        self.spark.sql(text.replace("{t}", f"delta.`{self.folder}`")).collect()

    def append(self, rows: Sequence[Row]) -> None:
        self.frame(rows).write.format("delta").mode("append").save(str(self.folder))

    def overwrite(self, rows: Sequence[Row]) -> None:
        self.frame(rows).write.format("delta").mode("overwrite").save(str(self.folder))

    def delete(self, ids: Sequence[int]) -> None:
        self._sql(f"DELETE FROM {{t}} WHERE {_within(ids)}")

    def update(self, ids: Sequence[int], name: str) -> None:
        self._sql(f"UPDATE {{t}} SET name = '{name}' WHERE {_within(ids)}")

    def merge(self, rows: Sequence[Row]) -> None:
        self.frame(rows).createOrReplaceTempView("merge_source")
        self._sql(
            "MERGE INTO {t} t USING merge_source s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def add_column(self, column: str) -> None:
        self._sql(f"ALTER TABLE {{t}} ADD COLUMNS ({column})")

    def optimize(self) -> None:
        self._sql("OPTIMIZE {t}")


class TwinlakeSpark(Engine):
    """twinlake on Spark."""

    name = "twinlake on Spark"

    def _table(self) -> Any:
        from twinlake.spark import DeltaTable

        return DeltaTable.forPath(self.spark, str(self.folder))

    def append(self, rows: Sequence[Row]) -> None:
        from twinlake.spark import write

        write(self.frame(rows), self.folder, "append")

    def overwrite(self, rows: Sequence[Row]) -> None:
        from twinlake.spark import write

        write(self.frame(rows), self.folder, "overwrite")

    def delete(self, ids: Sequence[int]) -> None:
        self._table().delete(_within(ids))

    def update(self, ids: Sequence[int], name: str) -> None:
        self._table().update(_within(ids), {"name": f"'{name}'"})

    def merge(self, rows: Sequence[Row]) -> None:
        merge = self._table().alias("t").merge(self.frame(rows).alias("s"), "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def add_column(self, column: str) -> None:
        Table.open(self.folder).add_column(column)

    def optimize(self) -> None:
        self._table().optimize().executeCompaction()


class TwinlakeFiles(Engine):
    """twinlake without Spark: files that pyarrow wrote, committed as they are."""

    name = "twinlake without Spark"

    def append(self, rows: Sequence[Row]) -> None:
        table = Table.open(self.folder)
        table.commit("WRITE", self._files(table, rows), parameters={"mode": "Append"})

    def _files(self, table: Table, rows: Sequence[Row]) -> list[AddFile]:
        """A file for each partition."""
        by = sorted(rows, key=lambda row: row["p"] or "")
        return [
            write_file(table, self.folder, list(part))
            for _, part in groupby(by, key=lambda row: row["p"])
        ]

    def _rewrite(
        self, operation: str, change: Callable[[Row], Row | None], new: Sequence[Row] = ()
    ) -> None:
        """Write the files again in which a row changes; rows that become None leave the table."""
        table = Table.open(self.folder)
        now = int(time.time() * 1000)
        actions: list[Any] = []
        for add in list(table.snapshot.adds()):
            before = rows_of(_only(table, add))
            after = [row for old in before if (row := change(old)) is not None]
            if after != before:
                actions.append(add.remove(deletion_timestamp=now))
                actions += self._files(table, after)
        actions += self._files(table, new)
        if actions:
            table.commit(operation, actions, parameters={"predicate": "[]"})

    def overwrite(self, rows: Sequence[Row]) -> None:
        self._rewrite("WRITE", lambda _row: None, rows)

    def delete(self, ids: Sequence[int]) -> None:
        self._rewrite("DELETE", lambda row: None if row["id"] in ids else row)

    def update(self, ids: Sequence[int], name: str) -> None:
        self._rewrite("UPDATE", lambda row: {**row, "name": name} if row["id"] in ids else row)

    def merge(self, rows: Sequence[Row]) -> None:
        by = {row["id"]: row for row in rows}
        matched = {row["id"] for row in rows_of(Table.open(self.folder).snapshot)}
        new = [row for row in rows if row["id"] not in matched]
        self._rewrite("MERGE", lambda row: by.get(row["id"], row), new)

    def add_column(self, column: str) -> None:
        Table.open(self.folder).add_column(column)

    def optimize(self) -> None:
        """All files of a partition as one, without a change of data."""
        from msgspec.structs import replace

        table = Table.open(self.folder)
        now = int(time.time() * 1000)
        old = [
            add.remove(deletion_timestamp=now, data_change=False) for add in table.snapshot.adds()
        ]
        new = [
            replace(add, data_change=False) for add in self._files(table, rows_of(table.snapshot))
        ]
        if old:
            table.commit("OPTIMIZE", [*old, *new], parameters={"predicate": "[]"})


class DeltaRs(Engine):
    """delta-rs, on tables without column mapping."""

    name = "delta-rs"

    def _arrow(self, rows: Sequence[Row]) -> pa.Table:
        from twinlake.schema import to_arrow

        table = Table.open(self.folder)
        return pa.Table.from_pylist(list(rows), to_arrow(table.schema, field_ids=False))

    def _table(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(str(self.folder))

    def append(self, rows: Sequence[Row]) -> None:
        from deltalake import write_deltalake

        write_deltalake(str(self.folder), self._arrow(rows), mode="append")

    def overwrite(self, rows: Sequence[Row]) -> None:
        from deltalake import write_deltalake

        write_deltalake(str(self.folder), self._arrow(rows), mode="overwrite")

    def delete(self, ids: Sequence[int]) -> None:
        self._table().delete(_within(ids))

    def update(self, ids: Sequence[int], name: str) -> None:
        self._table().update({"name": f"'{name}'"}, predicate=_within(ids))

    def merge(self, rows: Sequence[Row]) -> None:
        merge = self._table().merge(
            self._arrow(rows), "t.id = s.id", source_alias="s", target_alias="t"
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def add_column(self, column: str) -> None:
        from deltalake import Field
        from deltalake.schema import PrimitiveType

        name, _, kind = column.partition(" ")
        self._table().alter.add_columns(
            [Field(name, PrimitiveType(_DELTA_NAMES[kind]), nullable=True)]
        )

    def optimize(self) -> None:
        self._table().optimize.compact()


_DELTA_NAMES: Final = {"INT": "integer", "STRING": "string", "DATE": "date", "DOUBLE": "double"}
ENGINES: Final = (DeltaSpark, TwinlakeSpark, TwinlakeFiles)


def _only(table: Table, add: AddFile) -> Any:
    """The table with one file only."""
    from types import SimpleNamespace

    snapshot = table.snapshot
    return SimpleNamespace(metadata=snapshot.metadata, store=snapshot.store, adds=lambda: [add])


@dataclass
class Workload:
    """Engines by turns on one table, and the model after every version."""

    engines: Sequence[Engine]
    model: Model
    versions: dict[int, list[str]] = field(default_factory=dict)
    """The rows that the table has at each version."""
    done: Counter[str] = field(default_factory=Counter)
    """How many versions each engine made, and how many each operation."""
    steps: list[str] = field(default_factory=list)

    def note(self, version: int) -> None:
        """A version with the rows of the model."""
        self.versions[version] = self.model.snapshot()

    def step(self, at: int) -> int:
        """One change by the next engine; returns the version of the table."""
        engine = self.engines[at % len(self.engines)]
        name = self.model.rng.choice(_WEIGHTED)
        before = Table.open(engine.folder).version
        self.steps.append(f"{before + 1}: {engine.name}, {name}")
        _OPERATIONS[name](engine, self.model)
        version = Table.open(engine.folder).version
        for made in range(before + 1, version + 1):
            self.note(made)
            self.done[engine.name] += 1
            self.done[name] += 1
        return version


def _append(engine: Engine, model: Model) -> None:
    rows = model.new_rows(model.rng.randint(1, 6))
    engine.append(rows)
    model.rows |= {row["id"]: row for row in rows}


def _overwrite(engine: Engine, model: Model) -> None:
    rows = model.new_rows(5)
    engine.overwrite(rows)
    model.rows = {row["id"]: row for row in rows}


def _delete(engine: Engine, model: Model) -> None:
    ids = model.some_ids()
    engine.delete(ids)
    model.rows = {number: row for number, row in model.rows.items() if number not in ids}


def _update(engine: Engine, model: Model) -> None:
    ids = model.some_ids()
    name = f"changed {model.next_id}"
    engine.update(ids, name)
    for number in ids:
        model.rows[number] = {**model.rows[number], "name": name}


def _merge(engine: Engine, model: Model) -> None:
    changed = [{**model.rows[number], "n": -1} for number in model.some_ids()]
    rows = [*changed, *model.new_rows(2)]
    engine.merge(rows)
    model.rows |= {row["id"]: row for row in rows}


def _add_column(engine: Engine, model: Model) -> None:
    if len(model.columns) >= _MOST_ADDED:
        return _append(engine, model)
    column = f"c{len(model.columns)} {model.rng.choice(_ADDED)}"
    engine.add_column(column)
    model.columns.append(column)
    name = column.partition(" ")[0]
    model.rows = {number: {**row, name: None} for number, row in model.rows.items()}
    return None


def _optimize(engine: Engine, _model: Model) -> None:
    engine.optimize()


_OPERATIONS: Final[Mapping[str, Callable[[Engine, Model], None]]] = {
    "append": _append,
    "overwrite": _overwrite,
    "delete": _delete,
    "update": _update,
    "merge": _merge,
    "add column": _add_column,
    "optimize": _optimize,
}
_WEIGHTED: Final = (
    *("append",) * 4, *("delete",) * 3, *("update",) * 3, *("merge",) * 3, "overwrite",
    "add column", "optimize", "optimize",
)  # fmt: skip
