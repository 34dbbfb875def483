"""Data files of an Iceberg table as actions of a Delta log: partition values and statistics."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import AddFile
from twinlake.iceberg.format.bound import decode_bound
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    is_binary_text,
    physical_name,
    render_partition_value,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.iceberg.format.schema import Leaf
    from twinlake.schema import DataType, StructField

__all__ = ["SourceFile", "add_action", "count_problem", "file_identity", "partition_problem"]

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_MILLISECOND: Final = 1000
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file as a manifest of another writer lists it."""

    path: str
    content: int
    """0 for rows, 1 for positions that are deleted, 2 for values that are deleted."""
    format: str
    spec_id: int
    partition: tuple[Any, ...]
    record_count: int
    size: int
    sequence_number: int
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]
    is_encrypted: bool
    referenced_data_file: str | None = None
    """The one file whose positions are deleted, where the entry says so."""
    content_offset: int | None = None
    content_size: int | None = None
    """Where in a Puffin file the deletion vector is."""

    @property
    def identity(self) -> str:
        """What tells it from every other file; several vectors share one Puffin file."""
        return file_identity(self.path, self.content_offset)


def file_identity(path: str, content_offset: int | None) -> str:
    """What tells a file, or a vector in one, from every other.

    >>> file_identity("file:///t/dv.puffin", 4)
    'file:///t/dv.puffin at 4'
    """
    return path if content_offset is None else f"{path} at {content_offset}"


def count_problem(file: SourceFile) -> str:
    """How the counts of a file contradict each other; empty where they do not."""
    counts = (*file.null_value_counts.values(), *file.nan_value_counts.values())
    if file.record_count < 0 or file.size < 0:
        return "has less than no rows or bytes"
    if any(not 0 <= count <= file.record_count for count in counts):
        return f"has {file.record_count} rows, and a column with another number of nulls or NaNs"
    return ""


def partition_problem(file: SourceFile, columns: int | None = None) -> str:
    """Why the partition of a file cannot be said; empty where it can.

    ``columns`` is the number of partition columns.
    """
    if columns is not None and len(file.partition) != columns:
        return f"has {len(file.partition)} partition values for {columns} partition columns"
    # To Delta an empty value is null.
    if "" in file.partition or b"" in file.partition:
        return "has the empty text as a partition value"
    if any(isinstance(value, bytes) and not is_binary_text(value) for value in file.partition):
        return "has bytes that are not UTF-8 as a partition value"
    return ""


def add_action(
    file: SourceFile,
    path: str,
    partitions: tuple[StructField, ...],
    leaves: tuple[Leaf, ...],
    *,
    modification_time: int,
    data_change: bool,
    tags: Mapping[str, str] | None = None,
) -> AddFile:
    """The file as a Delta commit adds it, under its path as the log spells it."""
    values = zip(partitions, file.partition, strict=True)
    return AddFile(
        path=path,
        partition_values={
            physical_name(column): _partition_text(value, column.type) for column, value in values
        },
        size=file.size,
        modification_time=modification_time,
        data_change=data_change,
        stats=_statistics(file, leaves),
        tags=dict(tags) if tags else None,
    )


def _partition_text(value: Any, kind: DataType) -> str | None:
    # A float to its last digit: if the column is widened, Delta reads the text as a double, and
    # that has to be what Iceberg promotes the float to.
    return render_partition_value(_zoned(value, kind), DOUBLE if kind == FLOAT else kind)


def _zoned(value: Any, kind: DataType) -> Any:
    """A moment as Delta's type has it; the Avro library gives all of them a zone."""
    if kind == TIMESTAMP_NTZ and isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    return value


def _statistics(file: SourceFile, leaves: tuple[Leaf, ...]) -> str:
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for leaf in leaves:
        count = file.null_value_counts.get(leaf.id)
        if count is not None:
            _put(nulls, leaf.path, count)
        _put(low, leaf.path, _bound(file.lower_bounds.get(leaf.id), leaf.type))
        # Delta has not-a-number above all others, Iceberg leaves it out of the bounds.
        if leaf.type not in (FLOAT, DOUBLE) or file.nan_value_counts.get(leaf.id) == 0:
            _put(high, leaf.path, _bound(file.upper_bounds.get(leaf.id), leaf.type))
    document: dict[str, Any] = {"numRecords": file.record_count}
    if low or high:
        document |= {"minValues": low, "maxValues": high}
    if nulls:
        document["nullCount"] = nulls
    # Iceberg's bounds only say where values end at most: no minimum may be answered from them.
    document["tightBounds"] = False
    return _ENCODER.encode(document).decode()


def _put(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    if value is None:
        return
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _bound(data: bytes | None, kind: DataType) -> Any:
    """A bound as Delta's statistics spell it; None where they cannot."""
    if data is None or kind in (BINARY, BOOLEAN):
        return None
    try:
        value = decode_bound(data, kind)
        if kind == DATE:
            return dt.date.fromordinal(value + _EPOCH_DAY).isoformat()
        if kind in (TIMESTAMP, TIMESTAMP_NTZ):
            # Down on both sides: readers of Delta widen a maximum by a millisecond themselves.
            millis = value // _MILLISECOND
            text = (_EPOCH + dt.timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")
            text = text.removesuffix("+00:00")
            return f"{text}Z" if kind == TIMESTAMP else text
    except (ValueError, OverflowError):
        return None
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Number) and not value.is_finite():
        return None
    return value
