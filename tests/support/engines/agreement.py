"""What two tables have to have in common when two engines did the same to them.

Each function settles one view of a table (metadata, history, rows, file statistics) into plain
values without what is drawn at random or measured, so that the values of two tables can be
compared as they are.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.support.engines.row_values import quoted
from twinlake.schema import Struct, physical_name
from twinlake.storage import decode_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame

    from twinlake.table import Table

__all__ = [
    "arrow_keys",
    "condition_of",
    "differences",
    "file_facts",
    "history_of",
    "row_differences",
    "row_keys",
    "settled",
    "statistics_differences",
]

#: Metrics about time and size, and about change files: Delta Spark leaves those out where
#: deletion vectors tell the same.
_VARYING = re.compile(r"TimeMs$|Bytes|[sS]ize|DurationMs|ChangeFile")
#: Metrics that hang on which rows share a file, as those of restored and packed files do.
_LAYOUT = re.compile(r"Files|Copied|Vectors|Partitions|Batches|ZCube|Directories")
#: What Spark finds wrong with an ALTER or an UPDATE before Delta sees it, and what Delta calls it.
_SAID_BY_SPARK = {
    "FIELD_ALREADY_EXISTS": "DELTA_DUPLICATE_COLUMNS_FOUND",
    "NOT_NULL_ASSERT_VIOLATION": "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
}
_NAMED = re.compile(r"\[([A-Z][A-Z0-9]*_[A-Z0-9_]+)")
_PHYSICAL_NAME = "delta.columnMapping.physicalName"


def condition_of(error: Exception) -> str | None:
    """The error class, also of errors that only carry it in their text."""
    found = getattr(error, "delta_class", None)
    if found is None and hasattr(error, "getCondition"):
        found = error.getCondition()
    if found is None:
        # A task that writes says that it failed to; what it failed of comes after.
        named = [n for n in _NAMED.findall(str(error)) if n != "TASK_WRITE_FAILED"]
        found = named[0] if named else None
    main = str(found).partition(".")[0]
    return None if found is None else _SAID_BY_SPARK.get(main, main)


def settled(table: Table) -> dict[str, Any]:
    """Version, protocol, schema, partitioning and properties."""

    def settle(found: dict[str, Any]) -> dict[str, Any]:
        drawn = str(found.get(_PHYSICAL_NAME, "")).startswith("col-")
        return found | {_PHYSICAL_NAME: "drawn"} if drawn else found

    metadata, protocol = table.metadata, table.protocol
    return {
        "version": table.version,
        "protocol": (
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(protocol.reader_features or ()),
            sorted(protocol.writer_features or ()),
        ),
        "schema": json.loads(metadata.schema_string, object_hook=settle),
        "partition columns": metadata.partition_columns,
        "properties": {
            key: "drawn" if "materialized" in key else _settled_text(key, value)
            for key, value in sorted(table.properties.items())
        },
    }


def _settled_text(key: str, value: str) -> str:
    """A CHECK constraint without blanks: SQL puts them after a sign, for instance."""
    return "".join(value.split()) if key == "expr" or key.startswith("delta.constr") else value


def history_of(table: Table, *, in_full: bool = False) -> dict[str, Any]:
    """Operation and numbers of rows of the last commit; in full also files and parameters."""
    record = table.history(1)[0]
    metrics = dict(record.operation_metrics or {})
    if (record.operation == "MERGE" or "numCopiedRows" in metrics) and not in_full:
        # It counts the rows that are copied because they share a file with others.
        metrics.pop("numOutputRows", None)
    if metrics.get("numOutputRows") == "0":
        # Delta Spark counts a file without rows that it wrote and left out of the commit.
        metrics.pop("numFiles", None)
    told: dict[str, Any] = {
        "operation": record.operation,
        "metrics": {
            k: v
            for k, v in sorted(metrics.items())
            if not _VARYING.search(k) and (in_full or not _LAYOUT.search(k))
        },
    }
    if in_full:
        # Delta Spark numbers the columns in conditions, and says less of the columns it adds.
        told["parameters"] = {
            key: _settled_text(key, re.sub(r"#\d+L?", "", str(value)))
            for key, value in sorted((record.operation_parameters or {}).items())
            if key not in ("column", "columns")
        }
        told["blind"] = record.is_blind_append
    return told


def differences(mine: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Where two settled views differ, a paragraph for each key."""
    return "\n".join(
        f"  {key}:\n    twinlake: {mine.get(key)}\n    Delta:    {other.get(key)}"
        for key in sorted({*mine, *other})
        if mine.get(key) != other.get(key)
    )


# --- rows -----------------------------------------------------------------------------------------


def _settled_value(value: Any) -> Any:
    match value:
        case float():
            return "NaN" if math.isnan(value) else value.hex()
        case Decimal():
            return str(value)
        case list() | tuple():
            return tuple(_settled_value(item) for item in value)
        case dict():
            return tuple((key, _settled_value(item)) for key, item in value.items())
        case _:
            return value


def row_keys(
    frames: Mapping[str, DataFrame], more: tuple[str, ...] = ()
) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each frame as texts that are equal only for the very same values.

    ``more`` names columns to be given beside the text instead of within it. All frames are read
    by one query, because a query takes longer than all of their rows.
    """
    tagged = []
    for number, frame in enumerate(frames.values()):
        own = ", ".join(quoted(column) for column in frame.columns if column not in more)
        tagged.append(frame.selectExpr(f"{number} AS reader", f"struct({own}) AS r", *more))
    keys: list[list[tuple[Any, ...]]] = [[] for _ in frames]
    # In one task: starting another takes longer than reading a few rows.
    united = reduce(lambda one, other: one.unionAll(other), tagged).coalesce(1)
    for row in united.toArrow().to_pylist():
        text = repr(_settled_value(row["r"]))
        keys[row["reader"]].append((text, *(row[column] for column in more)))
    return dict(zip(frames, keys, strict=True))


def arrow_keys(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The same of rows that are at hand."""
    return [(repr(_settled_value(row)),) for row in rows.to_pylist()]


def row_differences(mine: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> str:
    """The rows that only one of the two has; empty if there are none."""
    one, two = Counter(mine), Counter(other)
    if one == two:
        return ""
    more, fewer = list((one - two).elements()), list((two - one).elements())
    return f"{len(more)} rows too many: {more[:4]}\n  {len(fewer)} rows missing: {fewer[:4]}"


# --- statistics -----------------------------------------------------------------------------------


def file_facts(table: Table, folder: Path) -> dict[Any, dict[str, Any]]:
    """Statistics by logical names, for the files that partition and rows tell from each other.

    Which rows share a file is its writer's choice; two tables have only some files in common.
    """
    found: dict[Any, list[dict[str, Any]]] = {}
    named = {physical_name(column): column.name for column in table.schema}
    for add in table.snapshot.adds():
        stats = json.loads(add.stats, parse_float=Decimal) if add.stats else {}
        for kind in ("minValues", "maxValues", "nullCount"):
            stats[kind] = _by_name(stats.get(kind, {}), table.schema)
        values = tuple(sorted((named[k], v) for k, v in add.partition_values.items()))
        deleted = add.deletion_vector.cardinality if add.deletion_vector else 0
        rows = _rows_within(folder / decode_path(add.path), named)
        found.setdefault((values, deleted, rows), []).append(stats)
    return {told: stats[0] for told, stats in found.items() if len(stats) == 1}


def _rows_within(file: Path, named: Mapping[str, str]) -> tuple[str, ...]:
    """The rows of a file, of nested values only whether they are null."""
    held = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").read()
    columns = {
        named[column.name]: _spelt_alike(held[index]).to_pylist()
        for index, column in enumerate(held.schema)
        if column.name in named
    }
    rows = zip(*(columns[name] for name in sorted(columns)), strict=True)
    return (*sorted(columns), *sorted(map(repr, rows)))


def _spelt_alike(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps as numbers, whose types depend on the writer."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
    return values.is_null() if pa.types.is_nested(values.type) else values


def _by_name(values: dict[str, Any], schema: Struct) -> dict[str, Any]:
    named = {}
    for column in schema:
        value = values.get(physical_name(column))
        if isinstance(column.type, Struct) and isinstance(value, dict):
            named[column.name] = _by_name(value, column.type)
        elif value is not None:
            named[column.name] = value
    return named


def statistics_differences(mine: Any, other: Any, path: tuple[str, ...] = ()) -> list[str]:
    """Every statistic of ours that is not the other one's; those we leave out are no difference."""
    if isinstance(mine, dict) and isinstance(other, dict):
        return [
            line
            for key, value in mine.items()
            for line in statistics_differences(value, other.get(key), (*path, key))
        ]
    return [] if mine == other or mine in ({}, None) else [f"{'/'.join(path)}: {mine} / {other}"]
