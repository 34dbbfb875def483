"""Which mode, ids and physical names the columns of a table have, and how they may change.

Delta protocol, Writer Requirements for Column Mapping. Physical names are random for columns of a
table born with mapping, the present name where mapping is switched on over existing files, and made
from the id where Iceberg writers may write the table. ``twinlake.schema`` has the mechanism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.compat.compat_feature import enabled_compats
from twinlake.errors import Code, UserError
from twinlake.protocol import keys
from twinlake.schema import (
    MAPPING_KEYS,
    MODE_CHANGES,
    ColumnMappingMode,
    Struct,
    StructField,
    assign_mapping,
    field_id,
    highest_id,
    id_name,
    keep_mapping,
    map_fields,
    physical_name,
    strip_mapping,
    with_id_names,
)

if TYPE_CHECKING:
    from twinlake.compat.compat_feature import Compat
    from twinlake.protocol import Metadata
    from twinlake.runtime import Ids

__all__ = [
    "mapped_by_id",
    "mapped_by_name",
    "needs_id_names",
    "needs_nested_ids",
    "new_table_mode",
    "with_column_mapping",
    "with_mapping_of",
]


def new_table_mode(compat: Compat) -> ColumnMappingMode:
    """The mode that a new table with the compat feature gets where none is given."""
    return ColumnMappingMode.ID if compat.is_writer else ColumnMappingMode.NAME


def needs_nested_ids(metadata: Metadata) -> bool:
    """Whether elements, keys and values need ids of their own."""
    return any(compat.version >= 2 for compat in enabled_compats(metadata))


def needs_id_names(metadata: Metadata) -> bool:
    """Whether the physical name of a new column has to be ``col-<id>``."""
    return any(compat.is_writer for compat in enabled_compats(metadata))


def _highest(metadata: Metadata) -> int:
    """The highest id that was ever given out, as far as the table knows."""
    return max(metadata.max_column_id or 0, highest_id(metadata.schema))


def with_column_mapping(before: Metadata | None, after: Metadata, ids: Ids) -> Metadata:
    """``after`` with ids and physical names on every column, as its mode asks.

    Raises:
        UserError: files that were written for the mode of ``before`` do not allow the new one.
    """
    mode = after.column_mapping_mode
    old = before.column_mapping_mode if before is not None else mode
    if (old, mode) not in MODE_CHANGES:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"The column mapping mode cannot go from {old} to {mode}.",
            why="the files that are there were written for the old mode",
            fix="From none the only way is to name; choose others when a table is created.",
            delta_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            fields={"from": str(old), "to": str(mode)},
        )
    if mode is ColumnMappingMode.NONE:
        # Ids left over from another table would take part as soon as mapping is switched on.
        return after.with_schema(strip_mapping(after.schema)) if before is None else after
    schema, highest = assign_mapping(
        after.schema,
        max_id=_highest(after),
        name_for=id_name if needs_id_names(after) else lambda _: f"col-{ids.uuid()}",
        nested_ids=needs_nested_ids(after),
        keep_names=before is not None and old is ColumnMappingMode.NONE,
    )
    return _with_mapping(after, schema, mode, highest)


def with_mapping_of(old: Metadata, new: Metadata) -> Metadata:
    """A table that takes the place of ``old``: it goes on counting, and what stays keeps its id.

    Otherwise readers that know columns by their ids would take the old column for the new one.
    """
    if ColumnMappingMode.NONE in (old.column_mapping_mode, new.column_mapping_mode):
        return new
    known = keep_mapping(new.schema, old.schema)
    if needs_id_names(new):
        known = map_fields(known, lambda _, field: _without_other_name(field))
    counted = new.with_configuration({keys.MAX_COLUMN_ID: str(_highest(old))})
    return counted.with_schema(known) if isinstance(known, Struct) else counted


def _without_other_name(field: StructField) -> StructField:
    """Without a mapping that was made before physical names had to come from ids."""
    number = field_id(field)
    if number is not None and physical_name(field) == id_name(number):
        return field
    return field.with_metadata(**dict.fromkeys(MAPPING_KEYS))


def mapped_by_id(metadata: Metadata) -> Metadata:
    """In ``id`` mode, every field named ``col-<id>`` in files, with nested ids.

    Ids are kept where the table is mapped already. In a table that is not, whatever ids the schema
    holds are left-overs that no file knows.
    """
    known = metadata.max_column_id or 0
    numbered, highest = assign_mapping(_known_schema(metadata), max_id=known, name_for=id_name)
    complete, highest = assign_mapping(
        with_id_names(numbered), max_id=highest, name_for=id_name, nested_ids=True
    )
    return _with_mapping(metadata, complete, ColumnMappingMode.ID, highest)


def mapped_by_name(metadata: Metadata, *, nested: bool) -> Metadata:
    """Mapped, in ``name`` mode unless the table is mapped already; ``nested`` ids if asked for."""
    mode = metadata.column_mapping_mode
    unmapped = mode is ColumnMappingMode.NONE
    complete, highest = assign_mapping(
        _known_schema(metadata),
        max_id=metadata.max_column_id or 0,
        name_for=id_name,
        nested_ids=nested,
        keep_names=unmapped,
    )
    return _with_mapping(metadata, complete, ColumnMappingMode.NAME if unmapped else mode, highest)


def _known_schema(metadata: Metadata) -> Struct:
    mapped = metadata.column_mapping_mode is not ColumnMappingMode.NONE
    return metadata.schema if mapped else strip_mapping(metadata.schema)


def _with_mapping(
    metadata: Metadata, schema: Struct, mode: ColumnMappingMode, highest: int
) -> Metadata:
    changed = metadata if schema == metadata.schema else metadata.with_schema(schema)
    return changed.with_configuration(
        {keys.COLUMN_MAPPING_MODE: str(mode), keys.MAX_COLUMN_ID: str(highest)}
    )
