"""Changing a schema one step at a time, within Delta's rules.

Each function takes a schema and gives a new one, or raises with the reason. New columns have no
column id yet: :func:`twinlake.schema.assign_mapping` numbers them afterwards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from twinlake.errors import Code, UserError, how_to_set
from twinlake.schema.evolution.rules import SchemaChange, schema_change_violations
from twinlake.schema.evolution.widening import TypeChange, can_widen, with_type_change
from twinlake.schema.mapping import ColumnMappingMode
from twinlake.schema.metadata_keys import COLUMN_MAPPING_MODE, COMMENT_KEY, CURRENT_DEFAULT_KEY
from twinlake.schema.paths import (
    change_field,
    change_type,
    field_at,
    quote_name,
    render_path,
    resolve_path,
    type_at,
)
from twinlake.schema.types import Array, ColumnPath, DataType, Map, Struct, StructField

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "add_column",
    "drop_column",
    "move_column",
    "rename_column",
    "set_comment",
    "set_default",
    "set_nullable",
    "widen_column",
]


def add_column(
    schema: Struct,
    field: StructField,
    *,
    parent: ColumnPath = (),
    first: bool = False,
    after: str | None = None,
) -> Struct:
    """The schema with a column added, at the end unless told otherwise.

    ``parent`` may lead into array elements and map values.

    >>> from twinlake.schema import parse_ddl, parse_field_ddl, render_ddl
    >>> where, column = parse_field_ddl("m.value.w INT")
    >>> render_ddl(add_column(parse_ddl("m MAP<STRING, STRUCT<n: INT>>"), column, parent=where))
    'm MAP<STRING, STRUCT<n: INT, w: INT>>'
    """
    path = (*parent, field.name)

    def insert(kind: DataType) -> DataType:
        struct = _struct_at(kind, parent, path)
        _check_free(struct, field.name, path)
        return _placed(struct.fields, field, parent, first=first, after=after)

    return _allowed(
        schema,
        _as_struct(change_type(schema, parent, insert)),
        f"Cannot add the required column {render_path(path)}.",
    )


def drop_column(
    schema: Struct,
    path: ColumnPath,
    *,
    mode: ColumnMappingMode,
    partition_columns: Collection[str] = (),
) -> Struct:
    """The schema without the column; needs column mapping, because files keep the data."""
    _named_column(schema, path, "drop", "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE")
    resolved = resolve_path(schema, path)
    shown = render_path(resolved)
    if mode is ColumnMappingMode.NONE:
        _needs_mapping(resolved, "drop", "DELTA_UNSUPPORTED_DROP_COLUMN")
    if len(resolved) == 1 and _listed(resolved[0], partition_columns):
        _refuse(
            resolved,
            f"Cannot drop the partition column {shown}.",
            why="The files of the table are laid out by it.",
            fix="Create a new table with another partitioning and copy the rows to it.",
            delta_class="DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
        )

    def remove(kind: DataType) -> DataType:
        struct = _struct_at(kind, resolved[:-1], resolved)
        kept = tuple(f for f in struct.fields if f.name != resolved[-1])
        if not kept:
            _refuse(
                resolved,
                f"Cannot drop {shown}, the only column there.",
                why="A struct without fields cannot be stored.",
                fix="Drop the column that holds it, or add another one first.",
                delta_class="DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
            )
        return Struct(kept)

    return _as_struct(change_type(schema, resolved[:-1], remove))


def rename_column(
    schema: Struct, path: ColumnPath, name: str, *, mode: ColumnMappingMode
) -> Struct:
    """The schema with the column renamed; needs column mapping, because files keep the name.

    A partition column may be renamed: the caller renames it in the list of partition columns too.
    """
    _named_column(schema, path, "rename", "DELTA_UNSUPPORTED_RENAME_COLUMN")
    resolved = resolve_path(schema, path)
    if not name:
        _refuse(
            resolved, "A column needs a name.", why="The new name is empty.", fix="Give a name."
        )
    struct = _struct_at(type_at(schema, resolved[:-1]), resolved[:-1], resolved)
    # Its own name is taken, as in SQL; the same in other letters is free.
    taken = Struct(tuple(f for f in struct.fields if f.name != resolved[-1] or f.name == name))
    _check_free(taken, name, (*resolved[:-1], name))
    # Last, as in SQL: a name that is taken cannot be had with column mapping either.
    if mode is ColumnMappingMode.NONE:
        _needs_mapping(resolved, "rename", "DELTA_UNSUPPORTED_RENAME_COLUMN")
    return change_field(schema, resolved, lambda field: replace(field, name=name))


def move_column(
    schema: Struct, path: ColumnPath, *, first: bool = False, after: str | None = None
) -> Struct:
    """The schema with the column at another place among its neighbours."""
    resolved = resolve_path(schema, path)
    _named_column(schema, path, "move", None)
    if first == (after is not None):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Cannot move column {render_path(resolved)}.",
            why="Both first=True and after= are given, or neither.",
            fix='Give one of the two, for example `after="id"`.',
        )

    def reorder(kind: DataType) -> DataType:
        struct = _struct_at(kind, resolved[:-1], resolved)
        moved = next(f for f in struct.fields if f.name == resolved[-1])
        if after is not None and struct.get(after) is moved:
            return struct
        rest = tuple(f for f in struct.fields if f is not moved)
        return _placed(rest, moved, resolved[:-1], first=first, after=after)

    return _as_struct(change_type(schema, resolved[:-1], reorder))


def set_nullable(schema: Struct, path: ColumnPath, nullable: bool) -> Struct:
    """The schema with the column's NOT NULL taken away; it cannot be added to existing rows."""
    current = field_at(schema, path)
    if current.nullable == nullable:
        return schema
    resolved = resolve_path(schema, path)
    shown = render_path(resolved)
    parent = type_at(schema, resolved[:-1])
    match parent:
        case Array():
            changed: DataType = change_type(
                schema, resolved[:-1], lambda _: replace(parent, contains_null=nullable)
            )
        case Map() if resolved[-1] == "value":
            changed = change_type(
                schema, resolved[:-1], lambda _: replace(parent, value_contains_null=nullable)
            )
        case Map():
            _refuse(
                resolved,
                f"{shown} cannot hold nulls.",
                why="Map keys are always NOT NULL.",
                fix="Change the value of the map instead.",
            )
        case _:
            changed = change_field(
                schema, resolved, lambda field: replace(field, nullable=nullable)
            )
    return _allowed(schema, _as_struct(changed), f"Cannot make {shown} required.")


def set_comment(schema: Struct, path: ColumnPath, comment: str | None) -> Struct:
    """The schema with the column's comment set, or removed if it is None."""
    _named_column(schema, path, "comment on", None)
    return change_field(schema, path, lambda field: field.with_metadata(**{COMMENT_KEY: comment}))


def set_default(schema: Struct, path: ColumnPath, default: str | None) -> Struct:
    """The schema with the column's default set, or removed if it is None."""
    _named_column(schema, path, "set the default of", None)
    change = {CURRENT_DEFAULT_KEY: default}
    return change_field(schema, path, lambda field: field.with_metadata(**change))


def widen_column(
    schema: Struct, path: ColumnPath, kind: DataType, *, iceberg: bool = False
) -> Struct:
    """The schema with a wider type for the column, element, key or value, and its history kept.

    >>> from twinlake.schema import LONG, parse_ddl, type_changes
    >>> wide = widen_column(parse_ddl("a ARRAY<INT>"), ("a", "element"), LONG)
    >>> type_changes(wide.fields[0])[0].field_path
    ('element',)
    """
    resolved = resolve_path(schema, path)
    old = type_at(schema, resolved)
    if old == kind:
        return schema
    shown = render_path(resolved)
    if not can_widen(old, kind, iceberg=iceberg):
        iceberg_only = iceberg and can_widen(old, kind)
        _refuse(
            resolved,
            f"Cannot change {shown} from {old} to {kind}.",
            why="Iceberg cannot do this change."
            if iceberg_only
            else "Values in existing files could not be read as the new type.",
            fix="Widen integers among themselves, float to double, or a decimal's precision."
            if iceberg
            else "Add a column of the new type and copy the values over.",
            delta_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        )
    owner = _nearest_field(schema, resolved)
    change = TypeChange(from_type=old, to_type=kind, field_path=resolved[len(owner) :])
    widened = _as_struct(change_type(schema, resolved, lambda _: kind))
    return change_field(widened, owner, lambda field: with_type_change(field, change))


def _allowed(before: Struct, after: Struct, what: str) -> Struct:
    """``after``, if the rules about tables with files allow the change; here names stay."""
    for violation in schema_change_violations(
        SchemaChange(before=before, after=after, widens=True)
    ):
        raise UserError(
            Code.SCHEMA_EVOLUTION,
            what,
            why=f"{violation}.",
            fix=violation.fix,
            rule=violation.rule.id,
            delta_class=violation.rule.delta_class,
            fields={"path": violation.path},
        )
    return after


def _nearest_field(schema: Struct, path: ColumnPath) -> ColumnPath:
    """The longest beginning of ``path`` that names a struct field."""
    kind: DataType = schema
    owner = 0
    for depth, part in enumerate(path):
        if isinstance(kind, Struct):
            owner = depth + 1
        kind = type_at(kind, (part,))
    return path[:owner]


def _placed(
    others: tuple[StructField, ...],
    field: StructField,
    parent: ColumnPath,
    *,
    first: bool,
    after: str | None,
) -> Struct:
    if first and after is None:
        return Struct((field, *others))
    if after is None:
        return Struct((*others, field))
    # field_at gives the usual error, with near misses, if there is no such neighbour.
    neighbour = Struct(others).get(after) or field_at(Struct(others), (after,))
    position = others.index(neighbour) + 1
    if first:
        _refuse(
            (*parent, field.name),
            "A column cannot be first and after another one.",
            why=f"Both first and after={after!r} were given.",
            fix="Give `first=True` or `after=`, not both.",
        )
    return Struct((*others[:position], field, *others[position:]))


def _struct_at(kind: DataType, parent: ColumnPath, path: ColumnPath) -> Struct:
    if isinstance(kind, Struct):
        return kind
    inner = {Array: "element", Map: "value"}.get(type(kind))
    return _refuse(
        path,
        f"{render_path(parent)} holds no named columns.",
        why=f"Its type is {kind}.",
        fix=f"Did you mean {render_path((*parent, inner))}?"
        if inner
        else "Name a column that is a struct.",
        delta_class="DELTA_ADD_COLUMN_PARENT_NOT_STRUCT",
    )


def _named_column(schema: Struct, path: ColumnPath, verb: str, delta_class: str | None) -> None:
    field_at(schema, path)
    if not isinstance(type_at(schema, path[:-1]), Struct):
        _refuse(
            path,
            f"Cannot {verb} {render_path(path)}.",
            why="Elements, keys and values are parts of a column's type, not columns.",
            fix=f"Name a column, such as {render_path(path[:-1])}.",
            delta_class=delta_class,
        )


def _check_free(struct: Struct, name: str, path: ColumnPath) -> None:
    if (taken := struct.get(name)) is not None:
        _refuse(
            path,
            f"There is already a column {quote_name(taken.name)} at {render_path(path)}.",
            why="Column names are compared ignoring case.",
            fix="Choose another name.",
            delta_class="DELTA_DUPLICATE_COLUMNS_FOUND",
        )


def _needs_mapping(path: ColumnPath, verb: str, delta_class: str) -> NoReturn:
    _refuse(
        path,
        f"Cannot {verb} column {render_path(path)}.",
        why="The table has no column mapping, so its files know columns by name.",
        fix=f"Run {how_to_set(COLUMN_MAPPING_MODE, 'name')} first.",
        delta_class=delta_class,
    )


def _listed(name: str, names: Collection[str]) -> bool:
    folded = name.casefold()
    return any(other.casefold() == folded for other in names)


def _refuse(
    path: ColumnPath, what: str, *, why: str, fix: str, delta_class: str | None = None
) -> NoReturn:
    raise UserError(
        Code.SCHEMA_EVOLUTION,
        what,
        why=why,
        fix=fix,
        delta_class=delta_class,
        fields={"path": render_path(path)},
    )


def _as_struct(kind: DataType) -> Struct:
    """Changes below the root leave the root a struct; this tells the type checker."""
    return kind if isinstance(kind, Struct) else Struct()
