"""Files of an Iceberg table as actions of a Delta log: paths, partition values, statistics."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import math
from dataclasses import dataclass
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import AddFile
from twinlake.errors import Code, CorruptTable
from twinlake.iceberg.format.bound import decode_bound
from twinlake.iceberg.importing.metadata import key_or_url, read_file
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
    from collections.abc import Iterator, Mapping

    from twinlake.iceberg.format.schema import Leaf
    from twinlake.schema import DataType, StructField
    from twinlake.storage import Store

__all__ = ["SourceFile", "add_action", "partition_problem", "read_entries", "read_listed"]

_DELETED: Final = 2
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_MILLISECOND: Final = 1000
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A live entry of a manifest."""

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


def read_listed(store: Store, location: str, path: str) -> list[tuple[str, int, int]]:
    """The manifests of a list: path, spec id, sequence number."""
    import fastavro

    data = read_file(store, location, path)
    with _damage(path):
        records: Any = fastavro.reader(io.BytesIO(data))
        return [
            (one["manifest_path"], one["partition_spec_id"], one.get("sequence_number") or 0)
            for one in records
        ]


def read_entries(
    store: Store, location: str, manifest: str, spec_id: int | None, sequence_number: int
) -> list[SourceFile]:
    """The live entries of a manifest; without a spec id it is the one the manifest names."""
    import fastavro

    data = read_file(store, location, manifest)
    with _damage(manifest):
        reader: Any = fastavro.reader(io.BytesIO(data))
        spec = int(reader.metadata.get("partition-spec-id", "0")) if spec_id is None else spec_id
        return [_file(one, spec, sequence_number) for one in reader if one["status"] != _DELETED]


@contextlib.contextmanager
def _damage(path: str) -> Iterator[None]:
    """Whatever the Avro library stumbles over is damage of the file."""
    try:
        yield
    except (ValueError, LookupError, TypeError, EOFError, OSError, ArithmeticError) as error:
        raise CorruptTable(
            Code.STORAGE,
            f"The manifest {path} cannot be read.",
            why=f"{type(error).__name__}: {error}",
            fix="Restore it from a backup.",
            fields={"path": path},
        ) from error


def _file(entry: Mapping[str, Any], spec_id: int, inherited: int) -> SourceFile:
    found = entry["data_file"]
    number = entry.get("sequence_number")
    return SourceFile(
        path=found["file_path"],
        content=found.get("content") or 0,
        format=str(found["file_format"]).upper(),
        spec_id=spec_id,
        partition=tuple(found["partition"].values()),
        record_count=found["record_count"],
        size=found["file_size_in_bytes"],
        sequence_number=inherited if number is None else number,
        null_value_counts=_mapping(found.get("null_value_counts")),
        nan_value_counts=_mapping(found.get("nan_value_counts")),
        lower_bounds=_mapping(found.get("lower_bounds")),
        upper_bounds=_mapping(found.get("upper_bounds")),
        is_encrypted=bool(found.get("key_metadata")),
    )


def _mapping(pairs: Any) -> dict[int, Any]:
    return {pair["key"]: pair["value"] for pair in pairs or ()}


def partition_problem(file: SourceFile) -> str:
    """Why the partition of a file cannot be said; empty where it can."""
    # To Delta an empty value is null.
    if "" in file.partition or b"" in file.partition:
        return "has the empty text as a partition value"
    if any(isinstance(value, bytes) and not is_binary_text(value) for value in file.partition):
        return "has bytes that are not UTF-8 as a partition value"
    return ""


def add_action(
    file: SourceFile,
    location: str,
    partitions: tuple[StructField, ...],
    leaves: tuple[Leaf, ...],
    *,
    modification_time: int,
    data_change: bool,
    tags: Mapping[str, str] | None = None,
) -> AddFile:
    """The file as a Delta commit adds it."""
    values = zip(partitions, file.partition, strict=True)
    return AddFile(
        path=key_or_url(location, file.path)[0],
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
