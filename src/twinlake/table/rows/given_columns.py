"""The columns that data brings, held against those of a table, before any row is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.errors import Code, UserError
from twinlake.schema import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_START_KEY,
    VOID,
    Array,
    DataType,
    Map,
    Struct,
    StructField,
    physical_path,
    render_path,
)
from twinlake.table.rows.schema_evolution import refuse_mismatch

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = [
    "columns_with_values",
    "computed_columns",
    "identity_fields",
    "identity_paths",
    "refuse_explicit",
    "refuse_missing",
    "refuse_unknown",
    "refuse_update",
]


def identity_fields(schema: Struct) -> tuple[StructField, ...]:
    """The identity columns; they are always at the top level."""
    return tuple(f for f in schema if IDENTITY_START_KEY in f.metadata)


def identity_paths(metadata: Metadata) -> tuple[ColumnPath, ...]:
    """Where files have them: these columns need statistics, or the mark cannot be moved."""
    schema, mode = metadata.schema, metadata.column_mapping_mode
    return tuple(physical_path(schema, (f.name,), mode) for f in identity_fields(schema))


def refuse_explicit(schema: Struct, given: Sequence[str]) -> None:
    """Values for GENERATED ALWAYS columns come from the table only."""
    present = {name.casefold() for name in given}
    found = [
        field.name
        for field in identity_fields(schema)
        if field.name.casefold() in present
        and str(field.metadata.get(IDENTITY_EXPLICIT_KEY, False)).lower() != "true"
    ]
    if found:
        raise UserError(
            Code.CONSTRAINT,
            f"Values for identity columns cannot be given: {', '.join(found)}.",
            why="they are GENERATED ALWAYS AS IDENTITY",
            fix="Drop the columns from the data.",
            delta_class="DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
            fields={"columns": found},
        )


def refuse_update(schema: Struct, assigned: Collection[str]) -> None:
    """No identity column can be assigned a value by UPDATE or MERGE."""
    found = sorted(field.name for field in identity_fields(schema) if field.name in assigned)
    if found:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The identity column {found[0]} cannot be updated.",
            why="its values are given out by the table",
            fix="Leave the column out of the assignments.",
            delta_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
            fields={"columns": found},
        )


def computed_columns(metadata: Metadata, given: Sequence[str]) -> tuple[str, ...]:
    """The generated and identity columns that a frame with the ``given`` columns leaves to us."""
    present = {name.casefold() for name in given}
    made = {f.name for f in identity_fields(metadata.schema)} | {
        f.name for f in metadata.schema if GENERATION_EXPRESSION_KEY in f.metadata
    }
    return tuple(
        f.name for f in metadata.schema if f.name in made and f.name.casefold() not in present
    )


def columns_with_values(given: Struct, metadata: Metadata) -> tuple[str, ...]:
    """The columns that hold more than nulls by themselves: given ones, and those we fill."""
    filled = (f for f in metadata.schema if _has_value(f, defaults=True))
    return tuple(field.name for field in (*(f for f in given if f.type != VOID), *filled))


def refuse_unknown(given: Struct, metadata: Metadata) -> None:
    """Raise if the data has columns, at any level, that the table lacks."""

    def unknown(has: DataType, wants: DataType, path: ColumnPath) -> list[str]:
        match has, wants:
            case Struct(), Struct():
                found = []
                for field in has:
                    here = (*path, field.name)
                    own = wants.get(field.name)
                    if own is None:
                        found.append(f"{render_path(here)} is not in the table")
                    else:
                        found += unknown(field.type, own.type, here)
                return found
            case Array(), Array():
                return unknown(has.element, wants.element, (*path, "element"))
            case Map(), Map():
                return [
                    *unknown(has.key, wants.key, (*path, "key")),
                    *unknown(has.value, wants.value, (*path, "value")),
                ]
            case _:
                return []

    # Whatever is not selected would be lost without a word.
    found = unknown(given, metadata.schema, ())
    if found:
        refuse_mismatch(metadata, found)


def refuse_missing(given: Struct, wanted: Struct, *, defaults: bool) -> None:
    """Required columns without a value, at the top and inside structs."""
    lacking = list(_lacking(given, wanted, (), defaults=defaults))
    if lacking:
        raise UserError(
            Code.CONSTRAINT,
            f"The data lacks columns that must not be null: {', '.join(lacking)}.",
            why="the table declares them NOT NULL and has no default for them",
            fix="Give the columns values, or make them nullable with "
            "`Table.alter_column(COLUMN, nullable=True)` or `twinlake alter PATH "
            "--nullable COLUMN`.",
            delta_class="DELTA_MISSING_NOT_NULL_COLUMN_VALUE",
            fields={"columns": lacking},
        )


def _lacking(given: Struct, wanted: Struct, path: ColumnPath, *, defaults: bool) -> list[str]:
    found: list[str] = []
    for field in wanted:
        here = (*path, field.name)
        own = given.get(field.name)
        if own is None and not path and _has_value(field, defaults=defaults):
            continue
        if own is None and not field.nullable:
            found.append(render_path(here))
        elif isinstance(field.type, Struct):
            inside = own.type if own is not None else Struct()
            if isinstance(inside, Struct):
                found += _lacking(inside, field.type, here, defaults=defaults)
    return found


def _has_value(field: StructField, *, defaults: bool) -> bool:
    if defaults and CURRENT_DEFAULT_KEY in field.metadata:
        return True
    return GENERATION_EXPRESSION_KEY in field.metadata or IDENTITY_START_KEY in field.metadata
