"""Schema evolution on write: one schema that can hold the table's rows and the incoming ones."""

from __future__ import annotations

from dataclasses import replace

from twinlake.errors import Code, UserError, listed
from twinlake.schema.evolution.widening import TypeChange, can_widen, with_type_change
from twinlake.schema.mapping import strip_mapping
from twinlake.schema.paths import render_path
from twinlake.schema.types import (
    BYTE,
    INTEGER,
    SHORT,
    VOID,
    Array,
    ColumnPath,
    DataType,
    Map,
    Struct,
    StructField,
)

__all__ = ["merge_schemas"]

_STORED_AS_INT = frozenset({BYTE, SHORT, INTEGER})


def merge_schemas(
    current: Struct,
    incoming: Struct,
    *,
    new_columns: bool = True,
    widen: bool = False,
    iceberg: bool = False,
    exact: bool = False,
) -> Struct:
    """The table's schema grown so that ``incoming`` rows fit; all misfits raise together.

    Columns match by name ignoring case and keep the table's spelling, order, nullability and
    metadata. New ones are appended, nullable, without column ids. A narrower incoming type is
    cast to the table's; a wider one widens the column if ``widen`` allows it. With ``exact`` types
    must be the table's, as in appends of Delta Spark: only byte, short and int mix, to the wider.

    >>> from twinlake.schema import parse_ddl, render_ddl
    >>> render_ddl(merge_schemas(parse_ddl("id BIGINT"), parse_ddl("ID INT, note STRING")))
    'id BIGINT, note STRING'
    """
    merger = _Merger(new_columns=new_columns, widen=widen, iceberg=iceberg, exact=exact)
    merged = merger.struct(current, incoming, ())
    if merger.misfits:
        raise UserError(
            Code.SCHEMA_EVOLUTION,
            f"The incoming data does not fit the table in {len(merger.misfits)} "
            f"column{'s' if len(merger.misfits) > 1 else ''}.",
            why=listed(f"{path}: {message}" for path, message in merger.misfits),
            fix="Cast or rename the incoming columns, or change the table's columns first.",
            delta_class="DELTA_FAILED_TO_MERGE_FIELDS",
            fields={"columns": [{"path": p, "message": m} for p, m in merger.misfits]},
        )
    return merged


class _Merger:
    def __init__(self, *, new_columns: bool, widen: bool, iceberg: bool, exact: bool) -> None:
        self.new_columns = new_columns
        self.widen = widen
        self.iceberg = iceberg
        self.exact = exact
        self.misfits: list[tuple[str, str]] = []

    def struct(self, current: Struct, incoming: Struct, path: ColumnPath) -> Struct:
        arriving: dict[str, StructField] = {}
        for field in incoming:
            if field.name.casefold() in arriving:
                self.misfit((*path, field.name), "appears twice in the incoming data")
            arriving.setdefault(field.name.casefold(), field)
        fields = []
        for field in current:
            match = arriving.pop(field.name.casefold(), None)
            fields.append(self.field(field, match, path) if match is not None else field)
        for field in arriving.values():
            if self.new_columns:
                fields.append(_as_new(field))
            else:
                self.misfit((*path, field.name), "is not a column of the table")
        return Struct(tuple(fields))

    def field(self, current: StructField, incoming: StructField, path: ColumnPath) -> StructField:
        changes: list[TypeChange] = []
        kind = self.type(current.type, incoming.type, (*path, current.name), (), changes)
        merged = replace(current, type=kind)
        for change in changes:
            merged = with_type_change(merged, change)
        return merged

    def type(
        self,
        current: DataType,
        incoming: DataType,
        path: ColumnPath,
        below: ColumnPath,
        changes: list[TypeChange],
    ) -> DataType:
        """``below`` leads from the nearest field to here; its history gathers in ``changes``."""

        def deeper(old: DataType, new: DataType, step: str) -> DataType:
            return self.type(old, new, (*path, step), (*below, step), changes)

        match current, incoming:
            case Struct(), Struct():
                return self.struct(current, incoming, path)
            case Array(), Array():
                return replace(
                    current, element=deeper(current.element, incoming.element, "element")
                )
            case Map(), Map():
                key = deeper(current.key, incoming.key, "key")
                return replace(
                    current, key=key, value=deeper(current.value, incoming.value, "value")
                )
            case _:
                return self.leaf(current, incoming, path, below, changes)

    def leaf(
        self,
        current: DataType,
        incoming: DataType,
        path: ColumnPath,
        below: ColumnPath,
        changes: list[TypeChange],
    ) -> DataType:
        both_small = current in _STORED_AS_INT and incoming in _STORED_AS_INT
        cast = (not self.exact or both_small) and can_widen(incoming, current)
        if incoming in (current, VOID) or cast:
            return current
        if current == VOID:
            # A void column holds only nulls, so it may take any type.
            return incoming
        if self.widen and can_widen(current, incoming, iceberg=self.iceberg):
            changes.append(TypeChange(from_type=current, to_type=incoming, field_path=below))
            return incoming
        if self.exact and both_small:
            # Files hold all three as the same 32 bits, so Delta needs no feature for this.
            return incoming
        hint = " (type widening is off)" if not self.widen and can_widen(current, incoming) else ""
        self.misfit(path, f"{incoming} does not fit {current}{hint}")
        return current

    def misfit(self, path: ColumnPath, message: str) -> None:
        self.misfits.append((render_path(path), message))


def _as_new(field: StructField) -> StructField:
    (plain,) = strip_mapping(Struct((field,))).fields
    return replace(plain, nullable=True)
