"""One table and the engine that changes it: how each step of a workload is done.

Every step is a row of two tables, one for twinlake and one for Delta Spark.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

from tests.support.engines import workloads as w
from tests.support.engines.row_values import quoted, random_rows
from twinlake.errors import Code, UserError
from twinlake.spark import DeltaTable, write
from twinlake.spark.maintenance.optimize import optimize, purge
from twinlake.spark.session import open_table
from twinlake.spark.spark_types import from_spark
from twinlake.table import Table
from twinlake.table.rows import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["LOCAL", "WRITER", "Side", "frame_of"]

WRITER = "spark.twinlake.writer"
LOCAL = "local"
"""The writer that is no Spark at all, where it can be done without."""


# --- frames and rows ------------------------------------------------------------------------------


def frame_of(
    spark: SparkSession,
    rows: w.Rows,
    table: t.StructType | None,
    partition_by: Sequence[str] = (),
) -> DataFrame:
    """The rows as a frame of one partition."""
    schema = _parsed(rows.columns) if rows.columns is not None else table
    assert schema is not None
    made = random_rows(Random(rows.seed), schema, rows.count)
    # Binary partition values are text in the log. Delta Spark takes bytes for UTF-8, the protocol
    # each byte for a character; they agree on ASCII. No bytes at all are null to both. Zeros are
    # left out: Spark puts them into the names of folders as they are, which no file system takes.
    spelt = [
        index
        for index, column in enumerate(schema.fields)
        if column.name in partition_by and isinstance(column.dataType, t.BinaryType)
    ]
    if spelt:
        made = [
            tuple(_as_text(v) if index in spelt else v for index, v in enumerate(row))
            for row in made
        ]
    frame: DataFrame = spark.createDataFrame(made, schema).coalesce(1)
    return frame.where(rows.where) if rows.where is not None else frame


def _parsed(columns: str) -> t.StructType:
    schema = t.StructType.fromDDL(columns)
    assert isinstance(schema, t.StructType)
    return schema


def _as_text(value: bytes | None) -> bytes | None:
    if value is None:
        return None
    return value.decode("ascii", "ignore").replace("\0", "").encode() or None


# --- one engine each ------------------------------------------------------------------------------


@dataclass
class Side:
    """A table and the engine that changes it."""

    spark: SparkSession
    path: Path
    writer: str = ""
    """Which of our writers it is written with; none where Delta Spark writes."""
    fallbacks: int = 0
    """How often that writer could not write the table."""
    done_here: int = 0
    """How many steps were done without Spark."""

    @property
    def sql_name(self) -> str:
        return f"delta.`{self.path}`"

    def table(self) -> Table:
        return Table.open(self.path, policy="minimal")

    def schema(self) -> t.StructType:
        """The columns without what column mapping says about them."""
        parsed = json.loads(
            self.table().metadata.schema_string,
            object_hook=lambda found: found | {"metadata": {}} if "metadata" in found else found,
        )
        return t.StructType.fromJson(parsed)

    def sql(self, text: str) -> None:
        self.spark.sql(text.format(t=self.sql_name)).collect()

    def run(self, step: w.Start | w.Step, versions: Sequence[int]) -> None:
        """Do one step; a writer that cannot write this table leaves it to the other one."""
        does = (_OURS if self.writer else _THEIRS)[type(step)]
        call = _Call(side=self, step=step, versions=versions)
        if self.writer == LOCAL and self._is_done_without_spark(call):
            return
        try:
            self.spark.conf.set(WRITER, self.writer if self.writer not in ("", LOCAL) else "auto")
            does(call)
        except UserError as error:
            if "writer" not in error.fields or "reason" not in error.fields:
                raise
            self.fallbacks += 1
            self.spark.conf.set(WRITER, "auto")
            does(call)
        finally:
            # Other tests share the session.
            self.spark.conf.unset(WRITER)

    def _is_done_without_spark(self, call: _Call) -> bool:
        """Whether the step was done in this process; one that takes Spark is left to it."""
        does = _LOCAL.get(type(call.step))
        if does is None:
            return False
        try:
            done = does(call)
        except UserError as error:
            needs_spark = error.code is Code.SPARK_REQUIRED or "Only Spark" in error.what
            if needs_spark:
                self.fallbacks += 1
                return False
            raise
        self.done_here += done
        return done


@dataclass(frozen=True)
class _Call:
    side: Side
    step: Any
    versions: Sequence[int]

    @property
    def spark(self) -> SparkSession:
        return self.side.spark

    def frame(self) -> DataFrame:
        rows = self.step.rows
        partition_by = self.side.table().metadata.partition_columns
        schema = None if rows.columns else self.side.schema()
        return frame_of(self.spark, rows, schema, partition_by)

    def ours(self) -> DeltaTable:
        return DeltaTable.forPath(self.spark, str(self.side.path))

    def theirs(self) -> Any:
        from delta.tables import DeltaTable as Theirs

        return Theirs.forPath(self.spark, str(self.side.path))

    def opened(self) -> Table:
        return open_table(self.spark, self.side.path)


def _listed(properties: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


def _start_ours(call: _Call) -> None:
    start: w.Start = call.step
    if start.rows is None:
        Table.create(
            call.side.path,
            start.columns,
            partition_by=start.partition_by,
            properties=start.properties,
            policy="minimal",
        )
        return
    frame = frame_of(call.spark, start.rows, _parsed(start.columns), start.partition_by)
    write(
        frame, call.side.path, partition_by=start.partition_by or None, properties=start.properties
    )


def _start_theirs(call: _Call) -> None:
    start: w.Start = call.step
    if start.rows is None:
        parts = ", ".join(quoted(name) for name in start.partition_by)
        text = f"CREATE TABLE {call.side.sql_name} ({start.columns}) USING delta"
        text += f" PARTITIONED BY ({parts})" if parts else ""
        text += f" TBLPROPERTIES ({_listed(start.properties)})" if start.properties else ""
        call.spark.sql(text)
        return
    frame = frame_of(call.spark, start.rows, _parsed(start.columns), start.partition_by)
    writer = frame.write.format("delta").options(**start.properties)
    writer.partitionBy(*start.partition_by).save(str(call.side.path))


def _write_ours(call: _Call) -> None:
    step: w.Write = call.step
    write(
        call.frame(),
        call.side.path,
        step.mode,
        merge_schema=step.merge_schema,
        overwrite_schema=step.overwrite_schema,
        replace_where=step.replace_where,
        partition_overwrite="dynamic" if step.dynamic else None,
    )


def _write_theirs(call: _Call) -> None:
    step: w.Write = call.step
    given = {
        "mergeSchema": "true" if step.merge_schema else None,
        "overwriteSchema": "true" if step.overwrite_schema else None,
        "replaceWhere": step.replace_where,
        "partitionOverwriteMode": "dynamic" if step.dynamic else None,
    }
    writer = call.frame().write.format("delta").mode(step.mode)
    writer.options(**{key: value for key, value in given.items() if value is not None}).save(
        str(call.side.path)
    )


def _merge(call: _Call, table: Any) -> None:
    step: w.Merge = call.step
    builder = table.alias("t").merge(call.frame().alias("s"), step.on)
    if step.evolve:
        builder = builder.withSchemaEvolution()
    for method, arguments in step.clauses:
        builder = getattr(builder, method)(**arguments)
    builder.execute()


def _add_column(call: _Call) -> None:
    step: w.AddColumn = call.step
    call.opened().add_column(f"{quoted(*step.path)} {step.kind}", after=step.after)


def _where(text: str | None) -> str:
    return f" WHERE {text}" if text else ""


_OURS: dict[type, Callable[[_Call], Any]] = {
    w.Start: _start_ours,
    w.Write: _write_ours,
    w.Delete: lambda c: c.ours().delete(c.step.where),
    w.Update: lambda c: c.ours().update(c.step.where, c.step.set),
    w.Merge: lambda c: _merge(c, c.ours()),
    w.Optimize: lambda c: optimize(c.spark, c.side.path, c.step.where),
    w.Purge: lambda c: purge(c.spark, c.side.path),
    w.Vacuum: lambda c: c.ours().vacuum(0),
    w.Restore: lambda c: c.ours().restoreToVersion(c.versions[c.step.step]),
    w.AddColumn: _add_column,
    w.RenameColumn: lambda c: c.opened().rename_column(quoted(*c.step.path), quoted(c.step.name)),
    w.DropColumn: lambda c: c.opened().drop_column(quoted(*c.step.path)),
    w.SetProperties: lambda c: c.opened().set_properties(c.step.properties),
    w.AddConstraint: lambda c: c.opened().add_constraint(c.step.name, c.step.expression, c.spark),
    w.WidenColumn: lambda c: c.opened().widen_column(quoted(*c.step.path), c.step.kind),
}


# Without Spark: each says whether it did the step.


def _write_locally(call: _Call) -> bool:
    step: w.Write = call.step
    if step.mode not in ("append", "overwrite") or step.dynamic:
        return False
    table, frame = call.side.table(), call.frame()
    # A frame of Spark's is refused where its types are others; data from elsewhere is cast.
    evolve(
        from_spark(frame.schema),
        table.metadata,
        merge_schema=step.merge_schema,
        overwrite_schema=step.overwrite_schema,
    )
    data = frame.toArrow()
    if step.mode == "append":
        table.append(data, merge_schema=step.merge_schema)
    else:
        table.overwrite(
            data,
            step.replace_where,
            merge_schema=step.merge_schema,
            overwrite_schema=step.overwrite_schema,
        )
    return True


def _update_locally(call: _Call) -> bool:
    names = {field.name.casefold() for field in call.side.schema().fields}
    columns = {name.strip("`"): value for name, value in call.step.set.items()}
    if any(name.casefold() not in names for name in columns):
        return False
    call.side.table().update(columns, call.step.where)
    return True


def _delete_locally(call: _Call) -> bool:
    call.side.table().delete(call.step.where)
    return True


def _merge_locally(call: _Call) -> bool:
    step: w.Merge = call.step
    clauses = dict(step.clauses)
    plain = {"whenMatchedUpdateAll", "whenNotMatchedInsertAll"}
    if step.evolve or step.on != w.Merge.on or not clauses.keys() <= plain:
        return False
    if any(arguments for arguments in clauses.values()):
        return False
    call.side.table().merge(
        call.frame().toArrow(),
        on="id",
        update="whenMatchedUpdateAll" in clauses,
        insert="whenNotMatchedInsertAll" in clauses,
    )
    return True


_LOCAL: dict[type, Callable[[_Call], bool]] = {
    w.Write: _write_locally,
    w.Delete: _delete_locally,
    w.Update: _update_locally,
    w.Merge: _merge_locally,
}


def _alter(call: _Call, text: str) -> None:
    call.spark.sql(f"ALTER TABLE {call.side.sql_name} {text}")


def _add_column_theirs(call: _Call) -> None:
    step: w.AddColumn = call.step
    after = f" AFTER {quoted(step.after)}" if step.after else ""
    _alter(call, f"ADD COLUMNS ({quoted(*step.path)} {step.kind}{after})")


_THEIRS: dict[type, Callable[[_Call], Any]] = {
    w.Start: _start_theirs,
    w.Write: _write_theirs,
    w.Delete: lambda c: c.theirs().delete(c.step.where),
    w.Update: lambda c: c.theirs().update(c.step.where, c.step.set),
    w.Merge: lambda c: _merge(c, c.theirs()),
    w.Optimize: lambda c: c.spark.sql(f"OPTIMIZE {c.side.sql_name}{_where(c.step.where)}"),
    w.Purge: lambda c: c.spark.sql(f"REORG TABLE {c.side.sql_name} APPLY (PURGE)"),
    w.Vacuum: lambda c: c.theirs().vacuum(0),
    w.Restore: lambda c: c.theirs().restoreToVersion(c.versions[c.step.step]),
    w.AddColumn: _add_column_theirs,
    w.RenameColumn: lambda c: _alter(
        c, f"RENAME COLUMN {quoted(*c.step.path)} TO {quoted(c.step.name)}"
    ),
    w.DropColumn: lambda c: _alter(c, f"DROP COLUMN {quoted(*c.step.path)}"),
    w.SetProperties: lambda c: _alter(c, f"SET TBLPROPERTIES ({_listed(c.step.properties)})"),
    w.AddConstraint: lambda c: _alter(
        c, f"ADD CONSTRAINT {c.step.name} CHECK ({c.step.expression})"
    ),
    w.WidenColumn: lambda c: _alter(c, f"ALTER COLUMN {quoted(*c.step.path)} TYPE {c.step.kind}"),
}
