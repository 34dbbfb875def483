"""Which files hold what the table has left behind: their footers say.

The footers are read through the executor, so that a large table is looked at by the workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.schema import Array, ColumnMappingMode, Map, Struct, physical_schema
from twinlake.storage import resolve
from twinlake.table.operations.rewrite_files import narrow_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.schema import DataType
    from twinlake.storage import Store
    from twinlake.table import Table

__all__ = ["stale_files"]

_FIELD_ID = b"PARQUET:field_id"


def stale_files(
    table: Table,
    files: Sequence[AddFile],
    *,
    dropped: bool = False,
    narrow: bool = False,
    without_ids: bool = False,
) -> frozenset[str]:
    """The paths of files with dropped columns, with narrow types, or with columns without ids."""
    found: set[str] = set()
    paths = [file.path for file in files]
    if narrow:
        found |= narrow_files(table.snapshot, table.runtime) & set(paths)
    metadata = table.metadata
    mode = ColumnMappingMode(metadata.column_mapping_mode)
    # Without column mapping no column can be dropped, and there are no ids to have.
    if (dropped or without_ids) and mode is not ColumnMappingMode.NONE:
        look = _IsStale(
            table.snapshot.store,
            physical_schema(metadata.schema, mode),
            frozenset(
                value
                for key, value in metadata.configuration.items()
                if key.startswith("delta.rowTracking.materialized")
            ),
            dropped=dropped,
            without_ids=without_ids,
        )
        answers = table.runtime.executor.map(look, paths)
        found |= {path for path, stale in zip(paths, answers, strict=True) if stale}
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _IsStale:
    """A value and no closure, so that an executor may send it to another process."""

    store: Store
    schema: Struct
    hidden: frozenset[str]
    """Columns that are no columns of the table and yet belong into its files."""
    dropped: bool
    without_ids: bool

    def __call__(self, path: str) -> bool:
        from twinlake.log import read_footer

        schema = read_footer(*resolve(self.store, path)).metadata.schema.to_arrow_schema()
        columns = [field for field in schema if field.name not in self.hidden]
        if self.dropped and not _is_covered(columns, self.schema):
            return True
        return self.without_ids and not all(_has_ids(field) for field in columns)


def _is_covered(found: Any, known: Struct) -> bool:
    """Whether every field of a file is still one of the table, at every level."""
    fields = {field.name.casefold(): field for field in known}
    return all(
        field.name.casefold() in fields
        and _is_type_covered(field.type, fields[field.name.casefold()].type)
        for field in found
    )


def _is_type_covered(found: Any, known: DataType) -> bool:
    import pyarrow as pa

    match known:
        case Struct() if pa.types.is_struct(found):
            return _is_covered(found, known)
        case Array(element) if pa.types.is_list(found) or pa.types.is_large_list(found):
            return _is_type_covered(found.value_type, element)
        case Map(key, value) if pa.types.is_map(found):
            return _is_type_covered(found.key_type, key) and _is_type_covered(
                found.item_type, value
            )
        case _:
            return True


def _has_ids(field: Any) -> bool:
    """Whether a field and all below it have ids; elements, keys and values too."""
    import pyarrow as pa

    if _FIELD_ID not in (field.metadata or {}):
        return False
    kind = field.type
    if pa.types.is_map(kind):
        return _has_ids(kind.key_field) and _has_ids(kind.item_field)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _has_ids(kind.value_field)
    return all(_has_ids(member) for member in kind) if pa.types.is_struct(kind) else True
