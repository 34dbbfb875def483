"""Changes of a table that are changes of its metadata: each a pure function of the old metadata."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from twinlake.commit import Operation, OperationName
from twinlake.compat import with_compat_properties
from twinlake.errors import Code, UserError, how_to_drop_feature, how_to_set
from twinlake.protocol import (
    canonical_key,
    check_iceberg_properties,
    keys,
    parse_properties,
    refuse_kept_properties,
)
from twinlake.schema import (
    Struct,
    add_column,
    drop_column,
    move_column,
    parse_field_ddl,
    parse_path,
    parse_predicate,
    parse_type,
    rename_column,
    render_path,
    resolve_path,
    set_comment,
    set_default,
    set_nullable,
    type_at,
    type_to_json,
    widen_column,
)
from twinlake.table.operations.column_dependents import (
    dropped_from_statistics,
    refuse_dependents,
    renamed_in_statistics,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.protocol import Metadata, Protocol
    from twinlake.schema import ColumnPath, StructField

__all__ = ["Alteration", "NewColumn"]


@dataclass(frozen=True, slots=True)
class Alteration:
    """New metadata, and the operation that history will show for it."""

    metadata: Metadata
    operation: Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class NewColumn:
    """A column to add, and its place."""

    field: StructField
    parent: ColumnPath = ()
    first: bool = False
    after: str | None = None


def _operation(operation: OperationName, /, **parameters: Any) -> Operation:
    return Operation(name=operation, parameters=parameters)


def set_properties(metadata: Metadata, properties: Mapping[str, object]) -> Alteration:
    """Set properties, and what compat features among them let a writer set besides.

    All wrong ones are reported at once.
    """
    parsed = parse_properties(properties)
    refuse_kept_properties(parsed)
    constraints = sorted(key for key in parsed if key.startswith(keys.CONSTRAINTS_PREFIX))
    if constraints:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"Constraints are not set as properties: {', '.join(constraints)}",
            why="the rows that are there have to be checked first",
            fix="Run `Table.add_constraint(NAME, EXPRESSION, spark=spark)` or `twinlake "
            "alter PATH --constraint NAME=EXPRESSION`.",
            delta_class="DELTA_ADD_CONSTRAINTS",
            fields={"keys": constraints},
        )
    asked = metadata.with_configuration(parsed)
    check_iceberg_properties(asked, parsed)
    return Alteration(
        with_compat_properties(metadata, asked, given=parsed),
        _operation(OperationName.SET_TBLPROPERTIES, properties=dict(sorted(parsed.items()))),
    )


def unset_properties(metadata: Metadata, keys: Iterable[str], *, if_exists: bool) -> Alteration:
    """Take properties away."""
    wanted = [canonical_key(key) for key in keys]
    refuse_kept_properties(wanted)
    missing = sorted(key for key in wanted if key not in metadata.configuration)
    if missing and not if_exists:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"The table has no property {', '.join(missing)}.",
            why="only what is set can be unset",
            fix="Check the spelling, or pass `if_exists=True` (`--if-exists`).",
            delta_class="DELTA_UNSET_NON_EXISTENT_PROPERTY",
            fields={"missing": missing},
        )
    return Alteration(
        with_compat_properties(
            metadata, metadata.with_configuration({}, remove=wanted), given=wanted
        ),
        _operation(OperationName.UNSET_TBLPROPERTIES, properties=wanted, ifExists=if_exists),
    )


def raise_versions(
    metadata: Metadata, protocol: Protocol, min_reader_version: int, min_writer_version: int
) -> Metadata:
    """The metadata that asks for protocol versions, which never come down this way."""
    lowered = (
        min_reader_version < protocol.min_reader_version
        or min_writer_version < protocol.min_writer_version
    )
    if lowered:
        raise UserError(
            Code.PROTOCOL_INVALID,
            f"The protocol cannot go from {protocol} to {min_reader_version},{min_writer_version}.",
            why="lowering it would let in clients that misread the table",
            fix=f"Run {how_to_drop_feature('NAME')} for features that are not needed; the "
            "versions then follow.",
            delta_class="DELTA_INVALID_PROTOCOL_DOWNGRADE",
        )
    return metadata.with_configuration(
        {
            keys.MIN_READER_VERSION: str(min_reader_version),
            keys.MIN_WRITER_VERSION: str(min_writer_version),
        }
    )


def add_columns(
    metadata: Metadata, columns: Iterable[str], *, first: bool = False, after: str | None = None
) -> Alteration:
    """Add columns given as DDL with dotted paths, such as ``m.value.w INT``."""
    parsed = [parse_field_ddl(text) for text in columns]
    return add_new_columns(
        metadata,
        [NewColumn(field=field, parent=path, first=first, after=after) for path, field in parsed],
    )


def add_new_columns(metadata: Metadata, columns: Iterable[NewColumn]) -> Alteration:
    """Add columns, each at a place of its own."""
    schema, listed = metadata.schema, []
    for new in columns:
        schema = add_column(schema, new.field, parent=new.parent, first=new.first, after=new.after)
        column = _described(schema, (*new.parent, new.field.name))
        listed.append({"column": column, **_position(first=new.first, after=new.after)})
    return Alteration(
        metadata.with_schema(schema), _operation(OperationName.ADD_COLUMNS, columns=listed)
    )


def rename(metadata: Metadata, column: str, name: str) -> Alteration:
    """Rename a column; the partition columns follow."""
    path = resolve_path(metadata.schema, parse_path(column))
    new = parse_path(name)[-1] if "." in name or "`" in name else name
    schema = rename_column(metadata.schema, path, new, mode=metadata.column_mapping_mode)
    refuse_dependents(metadata, [path], "rename")
    partitions = metadata.partition_columns
    if len(path) == 1:
        partitions = tuple(new if p.casefold() == path[0].casefold() else p for p in partitions)
    renamed = replace(metadata.with_schema(schema), partition_columns=partitions)
    renamed = renamed_in_statistics(renamed, path, new)
    return Alteration(
        renamed,
        _operation(
            OperationName.RENAME_COLUMN,
            oldColumnPath=render_path(path),
            newColumnPath=render_path((*path[:-1], new)),
        ),
    )


def drop(
    metadata: Metadata, columns: Iterable[str], *, clustered_by: Iterable[ColumnPath] = ()
) -> Alteration:
    """Drop columns; their data stays in the files and is never read again."""
    schema, paths = metadata.schema, []
    for column in columns:
        path = resolve_path(schema, parse_path(column))
        schema = drop_column(
            schema,
            path,
            mode=metadata.column_mapping_mode,
            partition_columns=metadata.partition_columns,
        )
        paths.append(path)
    refuse_dependents(metadata, paths, "drop", clustered_by=clustered_by)
    return Alteration(
        dropped_from_statistics(metadata.with_schema(schema), paths),
        _operation(OperationName.DROP_COLUMNS, columns=[render_path(path) for path in paths]),
    )


def widen(metadata: Metadata, column: str, kind: str) -> Alteration:
    """Give a column, element, key or value a wider type; old files are read as the new type."""
    if not metadata.flag(keys.ENABLE_TYPE_WIDENING):
        raise UserError(
            Code.SCHEMA_EVOLUTION,
            f"Cannot change the type of {column}.",
            why="type widening is not enabled on this table",
            fix=f"Run {how_to_set(keys.ENABLE_TYPE_WIDENING, 'true')} first.",
            delta_class="DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        )
    path = resolve_path(metadata.schema, parse_path(column))
    schema = widen_column(metadata.schema, path, parse_type(kind))
    refuse_dependents(metadata, [path], "change the type of")
    return _changed(metadata, schema, path)


def alter(
    metadata: Metadata,
    column: str,
    *,
    kind: str | None = None,
    nullable: bool | None,
    comment: str | None,
    default: str | None,
    first: bool,
    after: str | None,
) -> Alteration:
    """Change type, nullability, comment, default or place of a column; what is None stays."""
    path = resolve_path(metadata.schema, parse_path(column))
    if kind is not None and parse_type(kind) != type_at(metadata.schema, path):
        metadata = widen(metadata, column, kind).metadata
    schema = metadata.schema
    if nullable is not None:
        schema = set_nullable(schema, path, nullable)
    if comment is not None:
        schema = set_comment(schema, path, comment or None)
    if default is not None:
        schema = set_default(schema, path, default.strip() or None)
    if first or after is not None:
        schema = move_column(schema, path, first=first, after=after)
    return _changed(metadata, schema, path, **_position(first=first, after=after))


def _changed(metadata: Metadata, schema: Struct, path: ColumnPath, **more: str) -> Alteration:
    described = _described(schema, path)
    return Alteration(
        metadata.with_schema(schema),
        _operation(OperationName.CHANGE_COLUMN, column=described, **more),
    )


def _position(*, first: bool, after: str | None) -> dict[str, str]:
    """Where a column was put, as history says it; nothing if it was not asked for."""
    if first:
        return {"position": "FIRST"}
    return {} if after is None else {"position": f"AFTER {after}"}


def _described(schema: Struct, path: ColumnPath) -> dict[str, Any]:
    parent = type_at(schema, path[:-1])
    field = parent.get(path[-1]) if isinstance(parent, Struct) else None
    return {
        "name": render_path(path),
        "type": type_to_json(type_at(schema, path)),
        # Elements, keys and values have no field of their own.
        "nullable": field is None or field.nullable,
        "metadata": {} if field is None else dict(field.metadata),
    }


def add_constraint(metadata: Metadata, name: str, expression: str) -> Alteration:
    """Record a CHECK constraint; the caller has made sure that the rows satisfy it."""
    key = f"{keys.CONSTRAINTS_PREFIX}{name}"
    taken = {k.casefold() for k in metadata.configuration}
    if not name or key.casefold() in taken:
        raise UserError(
            Code.CONSTRAINT,
            f"Cannot add constraint {name!r}.",
            why="a constraint of that name is already there" if name else "it needs a name",
            fix="Drop the old one first, or choose another name.",
            delta_class="DELTA_CONSTRAINT_ALREADY_EXISTS",
            fields={"constraint": name},
        )
    parse_predicate(expression, metadata.schema)
    return Alteration(
        metadata.with_configuration({key: expression}),
        _operation(OperationName.ADD_CONSTRAINT, name=name, expr=expression),
    )


def drop_constraint(metadata: Metadata, name: str, *, if_exists: bool) -> Alteration:
    """Take a CHECK constraint away."""
    folded = f"{keys.CONSTRAINTS_PREFIX}{name}".casefold()
    found = [key for key in metadata.configuration if key.casefold() == folded]
    if not found and not if_exists:
        raise UserError(
            Code.CONSTRAINT,
            f"There is no constraint {name!r}.",
            why="constraint names are compared ignoring case",
            fix="Read the names with `twinlake show PATH` or `Table.properties`: the keys "
            "start with `delta.constraints.`.",
            delta_class="DELTA_CONSTRAINT_DOES_NOT_EXIST",
            fields={"constraint": name},
        )
    expression = metadata.configuration[found[0]] if found else None
    return Alteration(
        metadata.with_configuration({}, remove=found),
        _operation(
            OperationName.DROP_CONSTRAINT,
            name=name,
            **({"expr": expression} if found else {}),
            existed="true" if found else "false",
        ),
    )
