"""The metadata that a compat feature requires: ids, names and types. Pure.

Every function takes metadata and gives metadata. Ids that a table has given out are kept wherever
its files know them; the highest one never comes down.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from twinlake.protocol import constraint_names, features, keys
from twinlake.schema import (
    BYTE,
    CHAR_VARCHAR_KEY,
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    ID_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_HIGH_WATER_MARK_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    INTEGER,
    INVARIANTS_KEY,
    SHORT,
    TYPE_CHANGES_KEY,
    Array,
    DataType,
    Map,
    Struct,
    StructField,
    can_widen,
    char_as_varchar,
    char_type,
    map_fields,
    physical_name,
    type_changes,
    walk_fields,
    walk_types,
    widen_column,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = [
    "GIVE_UP_KEYS",
    "char_columns",
    "has_same_layout",
    "narrow_columns",
    "with_integers",
    "with_varchar",
    "with_wider_types",
    "without_existence_defaults",
    "without_foreign_changes",
    "without_given_up",
]

_NARROW: Final = (BYTE, SHORT)

GIVE_UP_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "constraints": (),
    features.INVARIANTS: (INVARIANTS_KEY,),
    features.GENERATED_COLUMNS: (GENERATION_EXPRESSION_KEY,),
    features.IDENTITY_COLUMNS: (
        IDENTITY_START_KEY,
        IDENTITY_STEP_KEY,
        IDENTITY_HIGH_WATER_MARK_KEY,
        IDENTITY_EXPLICIT_KEY,
    ),
    # The value that rows written before have is kept; it is no rule for writers.
    "defaults": (CURRENT_DEFAULT_KEY,),
    # Takes files that hold the padding: see ``with_varchar``.
    "char": (),
}
"""What Iceberg cannot keep and only a person can give up, with its field metadata."""


def narrow_columns(schema: Struct) -> tuple[ColumnPath, ...]:
    """Where there is a byte or a short, which Iceberg does not have."""
    return tuple(path for path, kind in walk_types(schema) if kind in _NARROW)


def with_integers(metadata: Metadata) -> Metadata:
    """Byte and short become integer, for tables all of whose files are rewritten."""
    if not narrow_columns(metadata.schema):
        return metadata
    return metadata.with_schema(_as_struct(_widened(metadata.schema)))


def _widened(kind: DataType) -> DataType:
    match kind:
        case Struct(fields):
            return Struct(tuple(replace(f, type=_widened(f.type)) for f in fields))
        case Array(element):
            return replace(kind, element=_widened(element))
        case Map(key, value):
            return replace(kind, key=_widened(key), value=_widened(value))
        case _:
            return INTEGER if kind in _NARROW else kind


def with_wider_types(metadata: Metadata) -> Metadata:
    """Byte and short become integer by type widening, for tables whose files stay."""
    paths = narrow_columns(metadata.schema)
    if not paths:
        return metadata
    schema = metadata.schema
    for path in paths:
        schema = widen_column(schema, path, INTEGER, iceberg=True)
    return metadata.with_schema(schema).with_configuration({keys.ENABLE_TYPE_WIDENING: "true"})


def without_foreign_changes(metadata: Metadata) -> Metadata:
    """Without the recorded type changes that Iceberg has no word for.

    Only right where no file holds the old types any more.
    """

    def forget(_: ColumnPath, field: StructField) -> StructField:
        recorded = type_changes(field)
        kept = [c for c in recorded if can_widen(c.from_type, c.to_type, iceberg=True)]
        if len(kept) == len(recorded):
            return field
        entries = [change.to_json() for change in kept]
        return field.with_metadata(**{TYPE_CHANGES_KEY: entries or None})

    if TYPE_CHANGES_KEY not in metadata.schema_string:
        return metadata
    schema = _as_struct(map_fields(metadata.schema, forget))
    return metadata if schema == metadata.schema else metadata.with_schema(schema)


def char_columns(schema: Struct) -> tuple[ColumnPath, ...]:
    """Where there is a CHAR, whose values Spark pads when it reads them."""
    return tuple(path for path, field in walk_fields(schema) if char_type(field) is not None)


def with_varchar(metadata: Metadata) -> Metadata:
    """CHAR becomes VARCHAR, for tables all of whose files are rewritten with the padding."""
    if CHAR_VARCHAR_KEY not in metadata.schema_string:
        return metadata
    schema = _as_struct(map_fields(metadata.schema, lambda _, field: char_as_varchar(field)))
    return metadata if schema == metadata.schema else metadata.with_schema(schema)


def without_existence_defaults(metadata: Metadata) -> Metadata:
    """Without values for files that lack a column, for tables all of whose files get them."""
    if EXISTS_DEFAULT_KEY not in metadata.schema_string:
        return metadata
    gone: dict[str, object] = {EXISTS_DEFAULT_KEY: None}
    schema = _as_struct(map_fields(metadata.schema, lambda _, field: field.with_metadata(**gone)))
    return metadata if schema == metadata.schema else metadata.with_schema(schema)


def without_given_up(metadata: Metadata, give_up: Collection[str]) -> Metadata:
    """Without the rules for writers that a person has given up, by ``GIVE_UP_KEYS``."""
    gone: dict[str, object] = {key: None for name in give_up for key in GIVE_UP_KEYS[name]}
    schema = _as_struct(map_fields(metadata.schema, lambda _, field: field.with_metadata(**gone)))
    changed = metadata if schema == metadata.schema else metadata.with_schema(schema)
    if "constraints" not in give_up:
        return changed
    constraints = [keys.CONSTRAINTS_PREFIX + name for name in constraint_names(metadata)]
    return changed.with_configuration({}, remove=constraints)


def has_same_layout(before: Metadata, after: Metadata) -> bool:
    """Whether files written for one can stay under the other: same names, ids and types."""
    return before.column_mapping_mode == after.column_mapping_mode and _layout(
        before.schema
    ) == _layout(after.schema)


def _layout(kind: DataType) -> object:
    """What of a schema shows in files, apart from nested ids: those are checked file by file."""
    match kind:
        case Struct(fields):
            return tuple(
                (
                    physical_name(f),
                    f.metadata.get(ID_KEY),
                    # A change may only be forgotten where no file holds the old type.
                    f.metadata.get(TYPE_CHANGES_KEY),
                    # So may what readers put in the place of what files hold.
                    f.metadata.get(CHAR_VARCHAR_KEY),
                    f.metadata.get(EXISTS_DEFAULT_KEY),
                    _layout(f.type),
                )
                for f in fields
            )
        case Array(element):
            return "array", _layout(element)
        case Map(key, value):
            return "map", _layout(key), _layout(value)
        case _:
            return kind


def _as_struct(kind: DataType) -> Struct:
    """Narrows the type: what the walkers make of a struct is a struct."""
    return kind if isinstance(kind, Struct) else Struct()
