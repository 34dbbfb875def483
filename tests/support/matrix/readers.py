"""The rows of a table as every reader of the matrix returns them, in one form that compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["READERS", "Engines", "Reader", "Rows", "comparable"]

Rows = dict[tuple[str, int], dict[str, str]]
"""By cell and number the text of every column's value."""


@dataclass(frozen=True, slots=True)
class Engines:
    """What readers need to work with."""

    spark: SparkSession
    duck: Any


@dataclass(frozen=True, slots=True)
class Reader:
    """A way to read a table; ``cell`` asks for the rows of one write only."""

    name: str
    read: Callable[[Engines, Path, str | None], pa.Table]
    is_iceberg: bool = False
    must_read: bool = True
    """Whether an error of it is a failure; else it is a refusal that a user sees."""


def comparable(data: pa.Table) -> Rows:
    """Rows by their cell and number: values as text, so that NaN and -0.0 can be told apart.

    Rows of no cell are those of a reader that finds no values at all; they are left out.
    """
    columns = {
        name: _texts(data.column(name)) for name in data.column_names if name not in ("cell", "id")
    }
    keys = zip(data["cell"].to_pylist(), data["id"].to_pylist(), strict=True)
    found: Rows = {}
    for row, key in enumerate(keys):
        if key in found and key[0] is not None:
            raise AssertionError(f"row {key} is there twice")
        found[key] = {name: values[row] for name, values in columns.items()}
    return {key: row for key, row in found.items() if key[0] is not None}


def _texts(column: pa.ChunkedArray) -> list[str]:
    # As numbers: Python has no dates before the year 1, and wrong ones may lie there.
    numbers = column.cast(_counted(column.type))
    return [repr(_shown(value, column.type)) for value in numbers.to_pylist()]


def _counted(kind: pa.DataType) -> pa.DataType:
    """The type with days and microseconds as numbers."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_counted(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_counted(kind.value_type)))
    if pa.types.is_map(kind):
        value = kind.item_field.with_type(_counted(kind.item_type))
        return pa.map_(kind.key_field.with_type(_counted(kind.key_type)), value)
    return kind


def _shown(value: Any, kind: pa.DataType) -> Any:
    """A value by its type, with days and times as text again."""
    if value is None:
        return None
    if pa.types.is_date32(kind):
        return str(np.datetime64(value, "D"))
    if pa.types.is_timestamp(kind):
        at = np.datetime64(value, kind.unit).astype("datetime64[us]")
        return f"{at}{'' if kind.tz is None else 'Z'}"
    if pa.types.is_struct(kind):
        return {field.name: _shown(value[field.name], field.type) for field in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [_shown(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return [(_shown(k, kind.key_type), _shown(v, kind.item_type)) for k, v in value]
    return value


def _arrow(frame: DataFrame, cell: str | None) -> pa.Table:
    """The rows of a frame; VARIANT as JSON, which has no type in Arrow that all know."""
    if cell is not None:
        frame = frame.where(frame["cell"] == cell)
    shown = [
        f"to_json(`{field.name}`) AS `{field.name}`"
        if field.dataType.typeName() == "variant"
        else f"`{field.name}`"
        for field in frame.schema
    ]
    return frame.selectExpr(*shown).toArrow()


def _delta_spark(engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    return _arrow(engines.spark.read.format("delta").load(str(folder)), cell)


def _twinlake(engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    from twinlake.spark import scan

    return _arrow(scan(engines.spark, folder), cell)


def _twinlake_arrow(_engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    from twinlake import Table

    return Table.open(folder).to_arrow(where=None if cell is None else f"cell = '{cell}'")


def _iceberg_spark(engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    return _arrow(engines.spark.read.format("iceberg").load(f"{folder}/_iceberg"), cell)


def _pyiceberg(_engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    from tests.support.iceberg.both_sides import opened, sql

    where = sql.AlwaysTrue() if cell is None else sql.EqualTo("cell", cell)
    return opened(folder).scan(row_filter=where).to_arrow()


def _duckdb(engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    where = "true" if cell is None else f"cell = '{cell}'"
    query = f"SELECT * FROM iceberg_scan('{folder}/_iceberg') WHERE {where}"
    found: pa.Table = engines.duck.execute(query).to_arrow_table()
    return found


def _delta_rs(_engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    from deltalake import DeltaTable, QueryBuilder

    where = "" if cell is None else f"WHERE cell = '{cell}'"
    builder = QueryBuilder().register("t", DeltaTable(str(folder)))
    return pa.table(builder.execute(f"SELECT * FROM t {where}"))


def _delta_rs_dataset(_engines: Engines, folder: Path, cell: str | None) -> pa.Table:
    from deltalake import DeltaTable

    chosen = None if cell is None else [("cell", "=", cell)]
    return DeltaTable(str(folder)).to_pyarrow_table(filters=chosen)


READERS: Final[Mapping[str, Reader]] = {
    reader.name: reader
    for reader in (
        Reader("Delta Spark", _delta_spark),
        Reader("twinlake", _twinlake),
        Reader("twinlake without Spark", _twinlake_arrow),
        Reader("delta-rs", _delta_rs, must_read=False),
        Reader("delta-rs to_pyarrow_table", _delta_rs_dataset, must_read=False),
        Reader("Iceberg Spark", _iceberg_spark, is_iceberg=True),
        Reader("PyIceberg", _pyiceberg, is_iceberg=True),
        Reader("DuckDB", _duckdb, is_iceberg=True),
    )
}
"""By name."""
