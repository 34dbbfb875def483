"""Column mapping across a metadata change: legal transitions, and ids for what is new.

Delta protocol, Writer Requirements for Column Mapping. Physical names are random for columns of a
table born with mapping, the present name where mapping is switched on over existing files, and made
from the id where Iceberg writers may write the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from twinlake.compat import names_by_id, needs_nested_ids
from twinlake.errors import Code, UserError, listed
from twinlake.protocol import PROTECTION_PROPERTY
from twinlake.schema import (
    ID_KEY,
    MAX_COLUMN_ID_KEY,
    MODE_CHANGES,
    MODE_KEY,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    Array,
    ColumnMappingMode,
    Map,
    Struct,
    StructField,
    assign_mapping,
    field_id,
    highest_id,
    map_fields,
    physical_name,
    strip_mapping,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.protocol import Metadata
    from twinlake.runtime import Ids
    from twinlake.schema import DataType

__all__ = ["mapped", "refuse_kept_properties", "with_known_mapping", "with_mapping_of"]

_KEPT: Final = {
    MAX_COLUMN_ID_KEY: "the table keeps the highest column id, and it may never come down",
    PROTECTION_PROPERTY: "dropping a feature sets it, and cleanup would delete what it protects",
}
_MAPPING_KEYS: Final = (ID_KEY, PHYSICAL_NAME_KEY, NESTED_IDS_KEY)


def refuse_kept_properties(keys: Iterable[str]) -> None:
    """What the table keeps for itself is neither set nor unset by hand."""
    found = sorted(_KEPT.keys() & set(keys))
    if found:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"{', '.join(found)} cannot be set or unset.",
            why=listed(_KEPT[key] for key in found),
            fix="Leave it out.",
            delta_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            fields={"keys": found},
        )


def mapped(before: Metadata | None, after: Metadata, ids: Ids) -> Metadata:
    """``after`` with ids and physical names on every column, as its mode asks."""
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
    known = int(after.get(MAX_COLUMN_ID_KEY, "0") or "0")
    schema, highest = assign_mapping(
        after.schema,
        max_id=max(known, highest_id(after.schema)),
        name_for=_by_id if names_by_id(after) else lambda _: f"col-{ids.uuid()}",
        nested_ids=needs_nested_ids(after),
        keep_names=before is not None and old is ColumnMappingMode.NONE,
    )
    changed = after if schema == after.schema else after.with_schema(schema)
    return changed.with_configuration({MODE_KEY: str(mode), MAX_COLUMN_ID_KEY: str(highest)})


def _by_id(number: int) -> str:
    return f"col-{number}"


def with_mapping_of(old: Metadata, new: Metadata) -> Metadata:
    """A table that takes the place of ``old``: it goes on counting, and what stays keeps its id.

    Otherwise readers that know columns by their ids would take the old column for the new one.
    """
    if ColumnMappingMode.NONE in (old.column_mapping_mode, new.column_mapping_mode):
        return new
    highest = max(int(old.get(MAX_COLUMN_ID_KEY, "0") or "0"), highest_id(old.schema))
    known = with_known_mapping(new.schema, old.schema)
    if names_by_id(new):
        known = map_fields(known, lambda _, field: _fit_for_writers(field))
    counted = new.with_configuration({MAX_COLUMN_ID_KEY: str(highest)})
    return counted.with_schema(known) if isinstance(known, Struct) else counted


def _fit_for_writers(field: StructField) -> StructField:
    """Without a mapping that was made before physical names had to come from ids."""
    number = field_id(field)
    if number is not None and physical_name(field) == _by_id(number):
        return field
    return field.with_metadata(**dict.fromkeys(_MAPPING_KEYS))


def with_known_mapping(new: DataType, old: DataType) -> DataType:
    """Ids and physical names of fields that keep name and type, as Delta's overwrite keeps them."""
    match new, old:
        case Struct(), Struct():
            fields = []
            for field in new:
                own = old.get(field.name)
                if own is not None:
                    field = replace(field, type=with_known_mapping(field.type, own.type))
                    if _shape(field.type) == _shape(own.type):
                        known = {k: own.metadata[k] for k in _MAPPING_KEYS if k in own.metadata}
                        field = field.with_metadata(**known)
                fields.append(field)
            return Struct(tuple(fields))
        case Array(), Array():
            return replace(new, element=with_known_mapping(new.element, old.element))
        case Map(), Map():
            key = with_known_mapping(new.key, old.key)
            return replace(new, key=key, value=with_known_mapping(new.value, old.value))
        case _:
            return new


def _shape(kind: DataType) -> DataType:
    """The type without nullability and metadata, names folded."""
    match kind:
        case Struct(fields):
            return Struct(tuple(StructField(f.name.casefold(), _shape(f.type)) for f in fields))
        case Array(element):
            return Array(_shape(element))
        case Map(key, value):
            return Map(_shape(key), _shape(value))
        case _:
            return kind
