"""One version of a table, both sides held against each other."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, Final

from twinlake.iceberg.derive import file_location
from twinlake.iceberg.format import decode_bound, leaves, plain_value
from twinlake.protocol import partition_zone
from twinlake.schema import (
    Array,
    Decimal,
    Map,
    Struct,
    field_id,
    nested_ids,
    parse_partition_value,
    physical_name,
)
from twinlake.table.twin.canonical_locations import locations_listed_twice
from twinlake.table.twin.report import DifferenceKind, TwinFinding
from twinlake.table.twin.statistics import compare_statistics, read_statistics
from twinlake.table.twin.vectors_and_lineage import (
    compare_lineage,
    compare_next_row_id,
    compare_vectors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.schema import DataType
    from twinlake.table.twin.iceberg_side import IcebergFile, IcebergManifest, IcebergVersion

__all__ = ["VersionCheck"]

_Column = tuple[str, str, bool]
"""Its path, its type, and whether it is required."""

_TYPES: Final[Mapping[str, str]] = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
"""Iceberg's names where they are not Delta's."""


class VersionCheck:
    """Compares a Delta version with the Iceberg snapshot that is current at it."""

    def __init__(self, delta: Snapshot, iceberg: IcebergVersion | None, location: str) -> None:
        self._delta = delta
        self._iceberg = iceberg
        self.adds: dict[str, AddFile] = {}
        self._respelled: dict[str, list[str]] = {}
        for add in delta.adds():
            location_of_file = file_location(location, add.path)
            if (known := self.adds.setdefault(location_of_file, add)) is not add:
                self._respelled.setdefault(location_of_file, [known.path]).append(add.path)

    def findings(self) -> Iterator[TwinFinding]:
        """Everything that differs."""
        for path, spellings in self._respelled.items():
            yield self._finding(DifferenceKind.FILE_TWICE, path, delta=" and ".join(spellings))
        listed = [f for m in self._manifests for f in m.files]
        files = {file.path: file for file in listed}
        for path, count in locations_listed_twice(file.path for file in listed).items():
            yield self._finding(DifferenceKind.FILE_TWICE, path, iceberg=f"{count} times")
        for path in sorted(self.adds.keys() - files.keys()):
            yield self._finding(DifferenceKind.FILE_MISSING, path)
        for path in sorted(files.keys() - self.adds.keys()):
            yield self._finding(DifferenceKind.FILE_EXTRA, path)
        columns = tuple(leaves(self._delta.schema))
        for path in sorted(files.keys() & self.adds.keys()):
            yield from self._file(self.adds[path], files[path], columns)
        vectors = [vector for manifest in self._manifests for vector in manifest.vectors]
        for path, (what, column, delta, iceberg) in compare_vectors(self.adds, files, vectors):
            yield self._finding(what, path, column=column, delta=delta, iceberg=iceberg)
        yield from self._totals(listed)
        for manifest in self._manifests:
            yield from self._manifest(manifest)

    def schema_findings(self, schema: Any) -> Iterator[TwinFinding]:
        """How a schema of PyIceberg's differs from that of the Delta version."""
        said: dict[int | None, _Column] = dict(_columns(self._delta.schema))
        found: dict[int | None, _Column] = {
            number: (schema.find_column_name(number), _spelled_type(field), field.required)
            for number, field in _fields(schema)
        }
        for number in sorted(said.keys() | found.keys(), key=str):
            if said.get(number) != found.get(number):
                yield self._finding(
                    DifferenceKind.SCHEMA,
                    column=f"id {number}",
                    delta=_spelled(said.get(number)),
                    iceberg=_spelled(found.get(number)),
                )

    def metadata_findings(self, metadata: Any) -> Iterator[TwinFinding]:
        """How PyIceberg's metadata of the newest version differ from those of the Delta version."""
        remarks = compare_next_row_id(
            self._delta, getattr(metadata, "next_row_id", None), metadata.format_version
        )
        for what, column, delta, iceberg in remarks:
            yield self._finding(what, column=column, delta=delta, iceberg=iceberg)

    @property
    def _format_version(self) -> int:
        return 0 if self._iceberg is None else self._iceberg.format_version

    @property
    def _manifests(self) -> tuple[IcebergManifest, ...]:
        return () if self._iceberg is None else self._iceberg.manifests

    def _finding(
        self,
        what: DifferenceKind,
        file: str = "",
        *,
        column: str = "",
        delta: Any = "",
        iceberg: Any = "",
    ) -> TwinFinding:
        return TwinFinding(
            version=self._delta.version,
            what=what,
            file=file,
            column=column,
            delta=str(delta),
            iceberg=str(iceberg),
        )

    def _file(self, add: AddFile, file: IcebergFile, columns: Any) -> Iterator[TwinFinding]:
        stats = read_statistics(add.stats)
        count = stats.get("numRecords")
        if file.record_count != count:
            yield self._finding(
                DifferenceKind.COUNT,
                file.path,
                delta=f"{count} rows",
                iceberg=f"{file.record_count} rows",
            )
        if file.size != add.size:
            yield self._finding(
                DifferenceKind.SIZE,
                file.path,
                delta=f"{add.size} bytes",
                iceberg=f"{file.size} bytes",
            )
        for name in self._delta.metadata.partition_columns:
            yield from self._partition(name, add, file)
        remarks = (
            *compare_statistics(stats, file, columns),
            *compare_lineage(add, file, self._format_version),
        )
        for what, column, delta, iceberg in remarks:
            yield self._finding(what, file.path, column=column, delta=delta, iceberg=iceberg)

    def _partition(self, name: str, add: AddFile, file: IcebergFile) -> Iterator[TwinFinding]:
        column = self._delta.schema.get(name)
        if column is None:
            return
        text = add.partition_values.get(physical_name(column))
        zone = partition_zone(self._delta.metadata)
        said = plain_value(parse_partition_value(text, column.type, zone=zone))
        source = field_id(column)
        found = file.partition.get(source, "no value") if source is not None else "no value"
        if not _same(said, found):
            yield self._finding(
                DifferenceKind.PARTITION,
                file.path,
                column=name,
                delta=repr(said),
                iceberg=repr(found),
            )

    def _totals(self, listed: list[IcebergFile]) -> Iterator[TwinFinding]:
        if self._iceberg is None:
            return
        hidden = sum(one.record_count for manifest in self._manifests for one in manifest.vectors)
        counted = {
            "total-data-files": len(listed),
            "total-records": sum(file.record_count for file in listed),
            "total-files-size": None if hidden else sum(file.size for file in listed),
            "total-position-deletes": hidden,
        }
        for name, count in counted.items():
            stated = self._iceberg.totals.get(name)
            if stated is not None and count is not None and stated != str(count):
                yield self._finding(
                    DifferenceKind.COUNT, delta=f"{name} {count}", iceberg=f"{name} {stated}"
                )

    def _manifest(self, manifest: IcebergManifest) -> Iterator[TwinFinding]:
        rows = sum(file.record_count for file in manifest.files)
        for what, stated, count in (
            ("files", manifest.stated_files, len(manifest.files)),
            ("rows", manifest.stated_rows, rows),
        ):
            if stated is not None and stated != count:
                yield self._finding(
                    DifferenceKind.COUNT,
                    manifest.path,
                    delta=f"{count} {what}",
                    iceberg=f"{stated} {what} by the manifest list",
                )
        for column in self._delta.schema:
            source = field_id(column)
            if source is None or source not in manifest.summaries:
                continue
            lost = _outside(manifest, source, column.type)
            if lost:
                yield self._finding(
                    DifferenceKind.BOUND_LOSES_ROWS,
                    manifest.path,
                    column=column.name,
                    delta=f"partition {lost}",
                    iceberg="the manifest list rules it out",
                )


def _outside(manifest: IcebergManifest, source: int, kind: DataType) -> str:
    """A partition value that the summary of its manifest rules out."""
    summary = manifest.summaries[source]
    lower, upper = (
        None if data is None else decode_bound(data, kind)
        for data in (summary.lower_bound, summary.upper_bound)
    )
    for file in manifest.files:
        value = file.partition.get(source)
        if value is None:
            is_in = summary.contains_null
        elif isinstance(value, float) and math.isnan(value):
            is_in = summary.contains_nan is not False
        else:
            is_in = lower is not None and upper is not None and _within(value, lower, upper)
        if not is_in:
            return repr(value)
    return ""


def _within(value: Any, lower: Any, upper: Any) -> bool:
    return bool(lower <= value <= upper) or (
        isinstance(value, float) and _single(lower) <= value <= _single(upper)
    )


def _same(one: Any, other: Any) -> bool:
    if not isinstance(one, float) or not isinstance(other, float):
        return bool(one == other)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or other == _single(one)


def _single(value: float) -> float:
    """What PyIceberg makes of a double in a partition: its Avro decoder keeps four bytes of it."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _columns(schema: Struct, prefix: str = "") -> Iterator[tuple[int | None, _Column]]:
    """Every column of a Delta schema by its id, with Iceberg's name, type and requirement."""
    for column in schema:
        name = f"{prefix}{column.name}"
        yield field_id(column), (name, _type_name(column.type), not column.nullable)
        yield from _inside(column.type, name, nested_ids(column), physical_name(column))


def _inside(
    kind: DataType, name: str, ids: Mapping[str, int], at: str
) -> Iterator[tuple[int | None, _Column]]:
    parts: tuple[tuple[str, DataType, bool], ...] = ()
    match kind:
        case Struct():
            yield from _columns(kind, f"{name}.")
        case Array():
            parts = (("element", kind.element, not kind.contains_null),)
        case Map():
            parts = (("key", kind.key, True), ("value", kind.value, not kind.value_contains_null))
    for part, inner, required in parts:
        own, path = f"{name}.{part}", f"{at}.{part}"
        yield ids.get(path), (own, _type_name(inner), required)
        yield from _inside(inner, own, ids, path)


def _type_name(kind: DataType) -> str:
    if isinstance(kind, Struct | Array | Map):
        return "nested"
    if isinstance(kind, Decimal):
        return f"decimal({kind.precision}, {kind.scale})"
    return _TYPES.get(str(kind), str(kind))


def _fields(schema: Any) -> Iterator[tuple[int, Any]]:
    return ((number, schema.find_field(number)) for number in schema.field_ids)


def _spelled_type(field: Any) -> str:
    return str(field.field_type) if field.field_type.is_primitive else "nested"


def _spelled(found: _Column | None) -> str:
    if found is None:
        return "no column"
    name, kind, required = found
    return f"{name} {kind}{' required' if required else ''}"
