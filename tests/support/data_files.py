"""Real data files for tables made here, since the control plane itself moves no rows."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.actions import AddFile
from twinlake.compat import enabled_compats
from twinlake.schema import (
    Array,
    Map,
    Struct,
    physical_schema,
    render_partition_value,
    to_arrow,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from twinlake.table import Table

__all__ = ["add_of", "append", "write_file"]

Row = dict[str, Any]


def append(table: Table, folder: Path, *files: Sequence[Row]) -> Table:
    """Write each list of rows as one Parquet file and commit them together."""
    adds = [write_file(table, folder, rows) for rows in files]
    return table.commit("WRITE", adds, parameters={"mode": "Append"})


def add_of(folder: Path, name: str) -> AddFile:
    """The action for a file that is there, without statistics."""
    return AddFile(
        path=name,
        partition_values={},
        size=(folder / name).stat().st_size,
        modification_time=0,
        data_change=True,
    )


def write_file(table: Table, folder: Path, rows: Sequence[Row]) -> AddFile:
    """Write rows of one partition under physical names and ids; returns the action to commit."""
    metadata = table.metadata
    partitions = metadata.partition_columns
    # Iceberg looks for partition columns in the files, so promises about it put them there.
    left_out = () if enabled_compats(metadata) else partitions
    logical = Struct(tuple(f for f in table.schema if f.name not in left_out))
    physical = physical_schema(logical, metadata.column_mapping_mode)
    schema = to_arrow(physical, field_ids=metadata.column_mapping_mode != "none")
    columns = [
        pa.array(
            [_physical(_stored(row, f.name, partitions), f.type, p.type) for row in rows],
            arrow.type,
        )
        for f, p, arrow in zip(logical, physical, schema, strict=True)
    ]
    data = pa.Table.from_arrays(columns, schema=schema)
    name = f"part-{uuid4()}.snappy.parquet"
    pq.write_table(data, folder / name)
    whole = physical_schema(table.schema, metadata.column_mapping_mode)
    named = {f.name: p for f, p in zip(table.schema, whole, strict=True)}
    return AddFile(
        path=quote(name),
        partition_values={
            named[c].name: render_partition_value(rows[0].get(c), named[c].type) for c in partitions
        },
        size=(folder / name).stat().st_size,
        modification_time=int((folder / name).stat().st_mtime * 1000),
        data_change=True,
        stats=_ENCODER.encode(_statistics(data)).decode(),
    )


def _stored(row: Row, name: str, partitions: Sequence[str]) -> Any:
    """A value as writers put it into files: an empty text is no partition of its own."""
    value = row.get(name)
    return None if name in partitions and value in ("", b"") else value


def _physical(value: Any, logical: Any, physical: Any) -> Any:
    """Struct values by physical names, also inside arrays and maps."""
    if value is None:
        return None
    match logical:
        case Struct():
            return {
                p.name: _physical(value.get(f.name), f.type, p.type)
                for f, p in zip(logical, physical, strict=True)
            }
        case Array():
            return [_physical(item, logical.element, physical.element) for item in value]
        case Map():
            pairs = value.items() if isinstance(value, dict) else value
            return [
                (
                    _physical(k, logical.key, physical.key),
                    _physical(v, logical.value, physical.value),
                )
                for k, v in pairs
            ]
        case _:
            return value


def _statistics(data: pa.Table) -> dict[str, Any]:
    low, high, nulls = _bounds(zip(data.schema.names, data.columns, strict=True))
    return {"numRecords": len(data), "minValues": low, "maxValues": high, "nullCount": nulls}


def _bounds(columns: Iterable[tuple[str, Any]]) -> tuple[Row, Row, Row]:
    low: Row = {}
    high: Row = {}
    nulls: Row = {}
    for name, column in columns:
        if pa.types.is_struct(column.type):
            below = zip((f.name for f in column.type), column.flatten(), strict=True)
            low[name], high[name], nulls[name] = _bounds(below)
            continue
        nulls[name] = column.null_count
        nested = pa.types.is_nested(column.type)
        if nested or pa.types.is_binary(column.type) or pa.types.is_boolean(column.type):
            continue
        values = [value for value in column.to_pylist() if value is not None]
        if values:
            low[name] = _bound(min(values, key=_order), upper=False)
            high[name] = _bound(max(values, key=_order), upper=True)
    return low, high, nulls


def _order(value: Any) -> Any:
    """Delta's order: not a number comes last, and the negative zero before the other."""
    if isinstance(value, float):
        return (math.isnan(value), value if value == value else 0, math.copysign(1, value))
    return value


def _bound(value: Any, *, upper: bool) -> Any:
    match value:
        case dt.datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case str() if len(value) > _PREFIX:
            rest = value[_PREFIX:].lstrip(_GREATEST)
            return value[: len(value) - len(rest)] + _GREATEST if upper else value[:_PREFIX]
    return value


_PREFIX = 32
_GREATEST = "\U0010ffff"
# Decimals as numbers with all their digits.
_ENCODER = msgspec.json.Encoder(decimal_format="number")
