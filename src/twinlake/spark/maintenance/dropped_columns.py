"""Which files hold columns that the table no longer has, by their footers.

The footers are read through the executor, so that a large table is looked at by the workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.log import read_footer
from twinlake.protocol import keys
from twinlake.schema import Array, ColumnMappingMode, Map, Struct, physical_schema
from twinlake.storage import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.schema import DataType
    from twinlake.storage import Store
    from twinlake.table import Table

__all__ = ["files_with_dropped_columns"]


def files_with_dropped_columns(table: Table, files: Sequence[AddFile]) -> frozenset[str]:
    """The paths of files with columns that the table no longer has."""
    metadata = table.metadata
    mode = metadata.column_mapping_mode
    # Without column mapping no column can be dropped.
    if mode is ColumnMappingMode.NONE:
        return frozenset()
    has_dropped = _HasDroppedColumns(
        table.snapshot.store,
        physical_schema(metadata.schema, mode),
        frozenset(
            metadata.configuration[key]
            for key in (keys.MATERIALIZED_ROW_ID, keys.MATERIALIZED_ROW_COMMIT_VERSION)
            if key in metadata.configuration
        ),
    )
    paths = [file.path for file in files]
    answers = table.runtime.executor.map(has_dropped, paths)
    return frozenset(path for path, dropped in zip(paths, answers, strict=True) if dropped)


@dataclass(frozen=True, slots=True)
class _HasDroppedColumns:
    """A value and no closure, so that an executor may send it to another process."""

    store: Store
    schema: Struct
    hidden: frozenset[str]
    """Columns that are no columns of the table and yet belong into its files."""

    def __call__(self, path: str) -> bool:
        schema = read_footer(*resolve(self.store, path)).metadata.schema.to_arrow_schema()
        return not _is_covered([f for f in schema if f.name not in self.hidden], self.schema)


def _is_covered(found: Any, known: Struct) -> bool:
    """Whether every field of a file is still one of the table, at every level."""
    fields = {field.name.casefold(): field for field in known}
    return all(
        field.name.casefold() in fields
        and _is_type_covered(field.type, fields[field.name.casefold()].type)
        for field in found
    )


def _is_type_covered(found: Any, known: DataType) -> bool:
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
