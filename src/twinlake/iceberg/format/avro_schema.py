"""The Avro schemas of manifests and manifest lists, with the field ids Iceberg readers go by.

Iceberg table format, Manifests and Manifest Lists. Optional fields that Delta knows nothing of
(column sizes, NaN counts, split offsets, keys) are not written at all: readers take what is missing
as unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.iceberg.format.partition_spec import PartitionSpec

__all__ = ["avro_name", "bytes_for", "entry_schema", "manifest_list_schema"]

_V3: Final = 3
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOMENT: Final = {"type": "long", "logicalType": "timestamp-micros"}
_PARTITION_TYPES: Final[Mapping[DataType, Any]] = {
    BOOLEAN: "boolean",
    BYTE: "int",
    SHORT: "int",
    INTEGER: "int",
    LONG: "long",
    FLOAT: "float",
    DOUBLE: "double",
    STRING: "string",
    BINARY: "bytes",
    DATE: {"type": "int", "logicalType": "date"},
    TIMESTAMP: {**_MOMENT, "adjust-to-utc": True},
    TIMESTAMP_NTZ: {**_MOMENT, "adjust-to-utc": False},
}


def avro_name(name: str) -> str:
    """A column name as Avro can have it, spelt as the reference library spells it.

    >>> avro_name("day"), avro_name("a.b"), avro_name("1st")
    ('day', 'a_x2Eb', '_1st')
    """
    if _NAME.fullmatch(name):
        return name
    first, rest = name[:1], name[1:]
    start = f"_{first}" if first.isascii() and first.isdigit() else _spelt(first)
    return start + "".join(_spelt(character) for character in rest)


def _spelt(character: str) -> str:
    plain = character.isascii() and (character.isalnum() or character == "_")
    return character if plain else f"_x{ord(character):X}"


def _field(name: str, kind: Any, number: int, *, optional: bool = False) -> dict[str, Any]:
    if not optional:
        return {"name": name, "type": kind, "field-id": number}
    return {"name": name, "type": ["null", kind], "default": None, "field-id": number}


def _record(name: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": fields}


def _by_column(value: str, key_id: int, value_id: int) -> dict[str, Any]:
    """A map with numbers as keys, which Avro's own maps cannot have."""
    item = _record(
        f"k{key_id}_v{value_id}",
        [_field("key", "int", key_id), _field("value", value, value_id)],
    )
    return {"type": "array", "items": item, "logicalType": "map"}


def _partition(spec: PartitionSpec) -> dict[str, Any]:
    fields: list[dict[str, Any]] = []
    for part in spec.fields:
        name = avro_name(part.name)
        if any(name == other["name"] for other in fields):
            name = f"{name}_{part.field_id}"
        found = _field(name, _partition_type(part.type), part.field_id, optional=True)
        fields.append(found if name == part.name else {**found, "iceberg-field-name": part.name})
    return _record("r102", fields)


def _partition_type(kind: DataType) -> Any:
    if not isinstance(kind, Decimal):
        return _PARTITION_TYPES[kind]
    return {
        "type": "fixed",
        "name": f"decimal_{kind.precision}_{kind.scale}",
        "size": bytes_for(kind.precision),
        "logicalType": "decimal",
        "precision": kind.precision,
        "scale": kind.scale,
    }


def bytes_for(precision: int) -> int:
    """The fewest bytes that hold every number of so many digits, with its sign."""
    most: int = 10**precision - 1
    return (most.bit_length() + 8) // 8


def entry_schema(spec: PartitionSpec, *, format_version: int = 2) -> dict[str, Any]:
    """The schema of the entries of a manifest whose files lie under ``spec``."""
    data_file = [
        _field("content", "int", 134),
        _field("file_path", "string", 100),
        _field("file_format", "string", 101),
        _field("partition", _partition(spec), 102),
        _field("record_count", "long", 103),
        _field("file_size_in_bytes", "long", 104),
        _field("value_counts", _by_column("long", 119, 120), 109, optional=True),
        _field("null_value_counts", _by_column("long", 121, 122), 110, optional=True),
        _field("lower_bounds", _by_column("bytes", 126, 127), 125, optional=True),
        _field("upper_bounds", _by_column("bytes", 129, 130), 128, optional=True),
        _field("sort_order_id", "int", 140, optional=True),
    ]
    if format_version >= _V3:
        data_file += [
            _field("first_row_id", "long", 142, optional=True),
            _field("referenced_data_file", "string", 143, optional=True),
            _field("content_offset", "long", 144, optional=True),
            _field("content_size_in_bytes", "long", 145, optional=True),
        ]
    return _record(
        "manifest_entry",
        [
            _field("status", "int", 0),
            _field("snapshot_id", "long", 1, optional=True),
            _field("sequence_number", "long", 3, optional=True),
            _field("file_sequence_number", "long", 4, optional=True),
            _field("data_file", _record("r2", data_file), 2),
        ],
    )


def manifest_list_schema(*, format_version: int = 2) -> dict[str, Any]:
    """The schema of the rows of a manifest list."""
    summary = _record(
        "r508",
        [
            _field("contains_null", "boolean", 509),
            _field("contains_nan", "boolean", 518, optional=True),
            _field("lower_bound", "bytes", 510, optional=True),
            _field("upper_bound", "bytes", 511, optional=True),
        ],
    )
    summaries = {"type": "array", "items": summary, "element-id": 508}
    fields = [
        _field("manifest_path", "string", 500),
        _field("manifest_length", "long", 501),
        _field("partition_spec_id", "int", 502),
        _field("content", "int", 517),
        _field("sequence_number", "long", 515),
        _field("min_sequence_number", "long", 516),
        _field("added_snapshot_id", "long", 503),
        _field("added_files_count", "int", 504),
        _field("existing_files_count", "int", 505),
        _field("deleted_files_count", "int", 506),
        _field("added_rows_count", "long", 512),
        _field("existing_rows_count", "long", 513),
        _field("deleted_rows_count", "long", 514),
        _field("partitions", summaries, 507, optional=True),
    ]
    if format_version >= _V3:
        fields.append(_field("first_row_id", "long", 520, optional=True))
    return _record("manifest_file", fields)
