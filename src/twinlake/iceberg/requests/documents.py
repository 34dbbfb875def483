"""The shapes of what updates carry: schemas, specs, sort orders, statistics.

The updates keep them as documents, with whatever a later specification adds. What this
specification defines has to be as it says: the documents end up in metadata files, and one that an
Iceberg library cannot parse would shut it out of the table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.requests import updates as up

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "check_order_document",
    "check_schema_document",
    "check_spec_document",
    "check_update_documents",
]


class _Shape(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    pass


class _StructShape(_Shape, frozen=True, tag_field="type", tag="struct"):
    fields: tuple[_FieldShape, ...]


class _ListShape(_Shape, frozen=True, tag_field="type", tag="list"):
    element_id: int
    element: str | _StructShape | _ListShape | _MapShape
    element_required: bool = False


class _MapShape(_Shape, frozen=True, tag_field="type", tag="map"):
    key_id: int
    key: str | _StructShape | _ListShape | _MapShape
    value_id: int
    value: str | _StructShape | _ListShape | _MapShape
    value_required: bool = False


class _FieldShape(_Shape, frozen=True):
    id: int
    name: str
    type: str | _StructShape | _ListShape | _MapShape
    required: bool = False
    doc: str | None = None


class _SchemaShape(_Shape, frozen=True):
    fields: tuple[_FieldShape, ...]
    schema_id: int | None = None
    identifier_field_ids: tuple[int, ...] | None = None


class _PartitionFieldShape(_Shape, frozen=True):
    name: str
    transform: str
    source_id: int | None = None
    field_id: int | None = None


class _SpecShape(_Shape, frozen=True):
    fields: tuple[_PartitionFieldShape, ...] | None = None
    spec_id: int | None = None


class _SortFieldShape(_Shape, frozen=True):
    transform: str
    source_id: int | None = None


class _OrderShape(_Shape, frozen=True):
    fields: tuple[_SortFieldShape, ...] | None = None
    order_id: int | None = None


class _BlobShape(_Shape, frozen=True):
    type: str
    snapshot_id: int
    sequence_number: int
    fields: tuple[int, ...]
    properties: dict[str, str] | None = None


class _StatisticsShape(_Shape, frozen=True):
    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    file_footer_size_in_bytes: int
    blob_metadata: tuple[_BlobShape, ...]
    key_metadata: str | None = None


class _PartitionStatisticsShape(_Shape, frozen=True):
    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int


_SHAPES: Final[Mapping[type, tuple[str, type[_Shape]]]] = {
    up.AddSchema: ("schema", _SchemaShape),
    up.AddSpec: ("spec", _SpecShape),
    up.AddSortOrder: ("sort_order", _OrderShape),
    up.SetStatistics: ("statistics", _StatisticsShape),
    up.SetPartitionStatistics: ("partition_statistics", _PartitionStatisticsShape),
}
"""The document of an update, by the field that has it."""


def check_update_documents(updates: Iterable[up.Update]) -> None:
    """``msgspec.ValidationError`` where a document is not as the specification says."""
    for update in updates:
        if type(update) in _SHAPES:
            name, shape = _SHAPES[type(update)]
            msgspec.convert(getattr(update, name), shape)


def check_schema_document(document: Mapping[str, Any]) -> None:
    """The same for the schema of a new table."""
    msgspec.convert(document, _SchemaShape)


def check_spec_document(document: Mapping[str, Any] | None) -> None:
    """The same for its partition spec, if it has one."""
    msgspec.convert(document, _SpecShape | None)


def check_order_document(document: Mapping[str, Any] | None) -> None:
    """The same for its sort order, if it has one."""
    msgspec.convert(document, _OrderShape | None)
