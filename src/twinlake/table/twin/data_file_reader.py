"""Rows of data files as Python values, for tables small enough to be looked at row by row.

Columns are found as the Delta protocol says: by id in mode ``id``, by physical name in mode
``name``, by name without column mapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.protocol import partition_zone
from twinlake.schema import (
    Array,
    ColumnMappingMode,
    Map,
    Struct,
    field_id,
    parse_partition_value,
    physical_name,
)
from twinlake.storage import OnDisk, os_errors, resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from twinlake.actions import AddFile, Metadata
    from twinlake.schema import DataType, StructField
    from twinlake.storage import Store

__all__ = ["DataFileReader"]

_FIELD_ID: Final = b"PARQUET:field_id"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DataFileReader:
    """Reads the files of a table at one version, by the metadata of that version."""

    store: Store
    metadata: Metadata

    def rows(self, add: AddFile) -> Iterator[Row]:
        """The rows that no deletion vector hides, by logical names."""
        hidden = self._hidden(add)
        with self._open(add) as file:
            read = self._reading(file.schema_arrow)
            values = self._partition(add)
            start = 0
            for batch in file.iter_batches(use_threads=False):
                for position, row in enumerate(batch.to_pylist(maps_as_pydicts=None), start):
                    if position not in hidden:
                        yield {**read(row), **values}
                start += batch.num_rows

    def _open(self, add: AddFile) -> pq.ParquetFile:
        import pyarrow as pa
        import pyarrow.parquet as pq

        store, key = resolve(self.store, add.path)
        if isinstance(store, OnDisk):
            with os_errors(f"Could not read {key!r} in {store.url}.", store.url):
                return pq.ParquetFile(store.local_path(key))
        return pq.ParquetFile(pa.BufferReader(store.read(key)))

    def _hidden(self, add: AddFile) -> Any:
        from twinlake.log import read_dv

        return () if add.deletion_vector is None else read_dv(self.store, add.deletion_vector)

    def _partition(self, add: AddFile) -> Row:
        columns, zone = self.metadata.partition_columns, partition_zone(self.metadata)
        return {
            column.name: parse_partition_value(
                add.partition_values.get(physical_name(column)), column.type, zone=zone
            )
            for column in self.metadata.schema
            if column.name in columns
        }

    def _reading(self, schema: pa.Schema) -> Any:
        return _struct(self.metadata.schema, list(schema), self.metadata.column_mapping_mode)


def _struct(wanted: Struct, found: Sequence[pa.Field], mode: ColumnMappingMode) -> Any:
    """A function that makes a value of the table's struct from one of the file's."""
    members = []
    for column in wanted:
        index = _index_of(column, found, mode)
        own = None if index is None else _reader(column.type, found[index].type, mode)
        members.append((column.name, None if index is None else found[index].name, own))

    def read(value: Row | None) -> Row | None:
        if value is None:
            return None
        return {
            name: None if key is None else (value[key] if own is None else own(value[key]))
            for name, key, own in members
        }

    return read


def _index_of(
    column: StructField, found: Sequence[pa.Field], mode: ColumnMappingMode
) -> int | None:
    if mode is ColumnMappingMode.ID:
        wanted = str(field_id(column)).encode()
        ids = [(field.metadata or {}).get(_FIELD_ID) for field in found]
        return ids.index(wanted) if wanted in ids else None
    names = [field.name for field in found]
    own = physical_name(column) if mode is ColumnMappingMode.NAME else column.name
    return names.index(own) if own in names else None


def _reader(wanted: DataType, found: pa.DataType, mode: ColumnMappingMode) -> Any:
    """What a nested value is read by; None for one that is taken as it is."""
    match wanted:
        case Struct():
            return _struct(wanted, [found.field(i) for i in range(found.num_fields)], mode)
        case Array():
            inner = _reader(wanted.element, found.value_type, mode)
            return None if inner is None else _each(inner)
        case Map():
            key = _reader(wanted.key, found.key_type, mode)
            value = _reader(wanted.value, found.item_type, mode)
            return None if key is None and value is None else _pairs(key, value)
        case _:
            return None


def _each(inner: Any) -> Any:
    return lambda items: None if items is None else [inner(item) for item in items]


def _pairs(key: Any, value: Any) -> Any:
    def read(pairs: Any) -> Any:
        if pairs is None:
            return None
        return [(k if key is None else key(k), v if value is None else value(v)) for k, v in pairs]

    return read
