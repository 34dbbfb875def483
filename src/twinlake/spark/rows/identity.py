"""Identity columns: values that are unique, go one way and start where the last write ended.

Every partition of a frame takes its own residue class, so that partitions number their rows
without talking to each other: row n of partition p gets ``base + (n * partitions + p) * step``.
The high-water mark in the column's metadata is the furthest value ever given out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from twinlake.errors import Code, CorruptTable, TwinlakeError, UserError, how_to_restore
from twinlake.schema import (
    IDENTITY_HIGH_WATER_MARK_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    Struct,
    StructField,
    render_path,
)
from twinlake.spark.errors import encode_error_around_row
from twinlake.table.rows import identity_fields, identity_paths

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pyspark.sql import Column

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata

__all__ = [
    "with_high_water_marks",
    "with_identity",
]

_NUMBER: Final = "__twinlake_number"
_LOWEST: Final = -(1 << 63)
_HIGHEST: Final = (1 << 63) - 1
#: Spark numbers rows as partition << 33 | row.
_ROW_BITS: Final = (1 << 33) - 1


def with_identity(frame: DataFrame, metadata: Metadata) -> DataFrame:
    """The frame with the identity columns it lacks at its end; itself if it lacks none.

    The number of partitions has to be known, so the frame's plan is fixed here. With adaptive
    execution that runs the stages before its last shuffle, and the result continues from there.
    """
    present = {name.casefold() for name in frame.columns}
    lacking = [f for f in identity_fields(metadata.schema) if f.name.casefold() not in present]
    if not lacking:
        return frame
    fixed, partitions = _fixed(frame)
    number = F.monotonically_increasing_id().bitwiseAND(F.lit(_ROW_BITS))
    nth = number * F.lit(partitions) + F.spark_partition_id().cast("bigint")
    # The number is a column first: within one expression each mention would count for itself.
    counted = fixed.withColumn(_NUMBER, nth)
    columns = [_value(field, F.col(_NUMBER)).alias(field.name) for field in lacking]
    return counted.select("*", *columns).drop(_NUMBER)


def with_high_water_marks(
    metadata: Metadata, files: Iterable[AddFile], *, columns: Collection[str] | None = None
) -> Metadata | None:
    """The metadata with the high-water marks after the files; None if none moves.

    ``columns``: those whose values the table gave out in this write. Values that users give
    (BY DEFAULT) do not move the mark in Delta. Without it every identity column counts.
    """
    columns_in_files = zip(identity_fields(metadata.schema), identity_paths(metadata), strict=True)
    moving = [(f, name) for f, (name,) in columns_in_files if columns is None or f.name in columns]
    if not moving:
        return None
    changed = {}
    written = [(add, _stats(add)) for add in files]
    for field, name in moving:
        values = [
            value
            for add, stats in written
            if (value := _extreme(add, stats, field, name)) is not None
        ]
        mark = _mark(field, values)
        if mark is not None:
            changed[field.name] = field.with_metadata(**{IDENTITY_HIGH_WATER_MARK_KEY: mark})
    if not changed:
        return None
    return metadata.with_schema(Struct(tuple(changed.get(f.name, f) for f in metadata.schema)))


def _fixed(frame: DataFrame) -> tuple[DataFrame, int]:
    """The frame over the very RDD whose partitions were counted."""
    spark = frame.sparkSession
    rows: Any = frame._jdf.queryExecution().toRdd()
    session: Any = spark._jsparkSession
    fixed = session.internalCreateDataFrame(rows, frame._jdf.schema(), False)
    return DataFrame(fixed, spark), int(rows.getNumPartitions())


def _value(field: StructField, nth: Column) -> Column:
    start, step = _rule(field)
    mark = field.metadata.get(IDENTITY_HIGH_WATER_MARK_KEY)
    base = start if mark is None else int(mark) + step
    # Checked beforehand, because outside ANSI mode arithmetic wraps round in silence.
    room = (_HIGHEST - base if step > 0 else base - _LOWEST) // abs(step)
    room = min(room, (_HIGHEST if step > 0 else -_LOWEST) // abs(step))
    used_up = UserError(
        Code.CONSTRAINT,
        f"Identity column {render_path((field.name,))} has no values left.",
        why=f"counting on from {base} by {step} leaves the range of BIGINT",
        fix="Give the column values explicitly, or add a new identity column.",
        fields={"column": field.name},
    )
    before, after = encode_error_around_row(used_up)
    row = F.to_json(F.struct(nth.alias("rows before")))
    raised = F.raise_error(F.concat(F.lit(before), row, F.lit(after))).cast("bigint")
    if room < 0:
        return raised
    return F.when(nth > F.lit(room), raised).otherwise(F.lit(base) + nth * F.lit(step))


def _rule(field: StructField) -> tuple[int, int]:
    try:
        start = int(field.metadata[IDENTITY_START_KEY])
        step = int(field.metadata[IDENTITY_STEP_KEY])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(field) from error
    if step == 0:
        raise _damaged(field)
    return start, step


def _damaged(field: StructField) -> CorruptTable:
    return CorruptTable(
        Code.SCHEMA_INVALID,
        f"The identity column {render_path((field.name,))} has no usable start and step.",
        why=f"its metadata is {dict(field.metadata)}",
        fix=f"Run {how_to_restore()} with an earlier version.",
        fields={"column": field.name},
    )


def _stats(add: AddFile) -> dict[str, Any]:
    return msgspec.json.decode(add.stats, type=dict[str, Any]) if add.stats else {}


def _extreme(add: AddFile, stats: dict[str, Any], field: StructField, name: str) -> int | None:
    """The furthest value in the file; None if it holds none."""
    if name in add.partition_values:
        text = add.partition_values[name]
        return int(text) if text else None
    _, step = _rule(field)
    records = stats.get("numRecords")
    if records == 0 or (records is not None and stats.get("nullCount", {}).get(name) == records):
        return None
    value = stats.get("maxValues" if step > 0 else "minValues", {}).get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TwinlakeError(
            Code.INTERNAL,
            f"File {add.path} has no statistics for identity column {field.name}.",
            why="without them the next write could give the same values again",
            fix="This is a bug in twinlake; please report it.",
            fields={"column": field.name},
        )
    return value


def _mark(field: StructField, values: Sequence[int]) -> int | None:
    """The new mark, on the lattice of start and step; None if it stays where it is."""
    if not values:
        return None
    start, step = _rule(field)
    furthest = max(values) if step > 0 else min(values)
    # Ceiling division in the direction of the step.
    steps = -((start - furthest) // step) if step > 0 else -((furthest - start) // -step)
    mark = start + steps * step
    old = field.metadata.get(IDENTITY_HIGH_WATER_MARK_KEY)
    if steps < 0 or (old is not None and (mark - int(old)) * step <= 0):
        return None
    return mark
