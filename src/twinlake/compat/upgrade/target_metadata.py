"""The metadata a table has to have before it can make a promise: ids, names and types. Pure.

Every function takes metadata and gives metadata. Ids that a table has given out are kept wherever
its files know them; the highest one never comes down.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from twinlake.protocol import constraint_names
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
    MAX_COLUMN_ID_KEY,
    MODE_KEY,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    SHORT,
    TYPE_CHANGES_KEY,
    Array,
    ColumnMappingMode,
    DataType,
    Map,
    Struct,
    StructField,
    assign_mapping,
    can_widen,
    char_as_varchar,
    char_type,
    field_id,
    highest_id,
    map_fields,
    nested_ids,
    physical_name,
    strip_mapping,
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
    "BURDENS",
    "char_columns",
    "lays_out_alike",
    "mapped_by_id",
    "mapped_by_name",
    "narrow_columns",
    "unburdened",
    "with_integers",
    "with_varchar",
    "with_wider_types",
    "without_existence_defaults",
    "without_foreign_changes",
]

_TYPE_WIDENING: Final = "delta.enableTypeWidening"
_CONSTRAINTS: Final = "delta.constraints."
_NARROW: Final = (BYTE, SHORT)

BURDENS: Final[Mapping[str, tuple[str, ...]]] = {
    "constraints": (),
    "invariants": (INVARIANTS_KEY,),
    "generatedColumns": (GENERATION_EXPRESSION_KEY,),
    "identityColumns": (
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


def mapped_by_id(metadata: Metadata) -> Metadata:
    """In ``id`` mode, every field named ``col-<id>`` in files, with nested ids.

    Ids are kept where the table is mapped already. In a table that is not, whatever ids the schema
    holds are left-overs that no file knows.
    """
    schema = metadata.schema
    if metadata.column_mapping_mode is ColumnMappingMode.NONE:
        schema = strip_mapping(schema)
    known = max(_known_highest(metadata), highest_id(schema))
    numbered, highest = assign_mapping(schema, max_id=known, name_for=_by_id)
    renamed = _as_struct(map_fields(numbered, lambda _, field: _renamed(field)))
    complete, highest = assign_mapping(renamed, max_id=highest, name_for=_by_id, nested_ids=True)
    return _with_mapping(metadata, complete, ColumnMappingMode.ID, highest)


def mapped_by_name(metadata: Metadata, *, nested: bool) -> Metadata:
    """Mapped, in ``name`` mode unless the table is mapped already; ``nested`` ids if asked for."""
    mode = metadata.column_mapping_mode
    unmapped = mode is ColumnMappingMode.NONE
    schema = strip_mapping(metadata.schema) if unmapped else metadata.schema
    complete, highest = assign_mapping(
        schema,
        max_id=max(_known_highest(metadata), highest_id(schema)),
        name_for=_by_id,
        nested_ids=nested,
        keep_names=unmapped,
    )
    wanted = ColumnMappingMode.NAME if unmapped else mode
    return _with_mapping(metadata, complete, wanted, highest)


def _known_highest(metadata: Metadata) -> int:
    text = metadata.get(MAX_COLUMN_ID_KEY).strip()
    return int(text) if text.isdecimal() else 0


def _by_id(number: int) -> str:
    return f"col-{number}"


def _renamed(field: StructField) -> StructField:
    """The field under its new physical name; nested ids are keyed by it and follow."""
    old, number = physical_name(field), field_id(field)
    if number is None or old == _by_id(number):
        return field
    moved = {
        _by_id(number) + path[len(old) :] if path.startswith(f"{old}.") else path: value
        for path, value in nested_ids(field).items()
    }
    changes: dict[str, object] = {PHYSICAL_NAME_KEY: _by_id(number)}
    if NESTED_IDS_KEY in field.metadata:
        changes[NESTED_IDS_KEY] = moved
    return field.with_metadata(**changes)


def _with_mapping(
    metadata: Metadata, schema: Struct, mode: ColumnMappingMode, highest: int
) -> Metadata:
    changed = metadata if schema == metadata.schema else metadata.with_schema(schema)
    return changed.with_configuration({MODE_KEY: str(mode), MAX_COLUMN_ID_KEY: str(highest)})


def narrow_columns(schema: Struct) -> tuple[ColumnPath, ...]:
    """Where there is a byte or a short, which Iceberg does not have."""
    return tuple(path for path, kind in walk_types(schema) if kind in _NARROW)


def with_integers(metadata: Metadata) -> Metadata:
    """Byte and short become integer, for tables all of whose files are written again."""
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
    return metadata.with_schema(schema).with_configuration({_TYPE_WIDENING: "true"})


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
    """CHAR becomes VARCHAR, for tables all of whose files are written again with the padding."""
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


def unburdened(metadata: Metadata, give_up: Collection[str]) -> Metadata:
    """Without the rules for writers that a person has given up, by their names in ``BURDENS``."""
    gone: dict[str, object] = {key: None for name in give_up for key in BURDENS[name]}
    schema = _as_struct(map_fields(metadata.schema, lambda _, field: field.with_metadata(**gone)))
    changed = metadata if schema == metadata.schema else metadata.with_schema(schema)
    if "constraints" not in give_up:
        return changed
    keys = [f"{_CONSTRAINTS}{name}" for name in constraint_names(metadata)]
    return changed.with_configuration({}, remove=keys)


def lays_out_alike(before: Metadata, after: Metadata) -> bool:
    """Whether files written for one can stay under the other: same names, ids and types."""
    return before.column_mapping_mode == after.column_mapping_mode and _layout(
        before.schema
    ) == _layout(after.schema)


def _layout(kind: DataType) -> object:
    """What of a schema shows in files, apart from nested ids: those are judged file by file."""
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
    """What the walkers make of a struct is a struct; this tells the type checker."""
    return kind if isinstance(kind, Struct) else Struct()
