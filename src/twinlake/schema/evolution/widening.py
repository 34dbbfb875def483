"""Which types may grow into which, and the history of it in ``delta.typeChanges``.

Delta protocol, Type Widening. The table below is the whole rule; the Iceberg subset is what an
Iceberg schema may do (rule ICV2-15).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from twinlake.errors import Code, CorruptTable, UnsupportedFeature, how_to_restore
from twinlake.schema.ddl.text import render_type
from twinlake.schema.json_codec import type_from_json, type_to_json
from twinlake.schema.metadata_keys import TYPE_CHANGES_KEY
from twinlake.schema.paths import parse_path, render_path
from twinlake.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    ColumnPath,
    DataType,
    Decimal,
    Struct,
    StructField,
    walk_fields,
)

__all__ = [
    "TypeChange",
    "can_widen",
    "check_type_changes",
    "type_changes",
    "unsupported_type_changes",
    "with_type_change",
]

_ICEBERG: Final[Mapping[DataType, frozenset[DataType]]] = {
    BYTE: frozenset({SHORT, INTEGER, LONG}),
    SHORT: frozenset({INTEGER, LONG}),
    INTEGER: frozenset({LONG}),
    FLOAT: frozenset({DOUBLE}),
}
_DELTA: Final[Mapping[DataType, frozenset[DataType]]] = {
    **{kind: _ICEBERG[kind] | {DOUBLE} for kind in (BYTE, SHORT, INTEGER)},
    FLOAT: frozenset({DOUBLE}),
    DATE: frozenset({TIMESTAMP_NTZ}),
}
#: How many digits before the point a decimal needs to hold the type.
_DIGITS: Final[Mapping[DataType, int]] = {BYTE: 10, SHORT: 10, INTEGER: 10, LONG: 20}


def can_widen(old: DataType, new: DataType, *, iceberg: bool = False) -> bool:
    """Whether a column of type ``old`` may become ``new`` without rewriting files.

    >>> can_widen(INTEGER, LONG), can_widen(INTEGER, DOUBLE, iceberg=True)
    (True, False)
    """
    if isinstance(old, Decimal) and isinstance(new, Decimal):
        more_whole = (new.precision - new.scale) - (old.precision - old.scale)
        more_scale = new.scale - old.scale
        if iceberg and more_scale:
            return False
        return more_whole >= 0 and more_scale >= 0 and (more_whole, more_scale) != (0, 0)
    if isinstance(new, Decimal) and not iceberg:
        digits = _DIGITS.get(old)
        return digits is not None and new.precision - new.scale >= digits
    return new in (_ICEBERG if iceberg else _DELTA).get(old, frozenset())


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChange:
    """One entry of the history; ``field_path`` leads from the field to an element, key or value."""

    from_type: DataType
    to_type: DataType
    field_path: ColumnPath = ()

    def to_json(self) -> dict[str, Any]:
        """The entry as the field's metadata holds it."""
        entry = {"fromType": type_to_json(self.from_type), "toType": type_to_json(self.to_type)}
        if self.field_path:
            entry["fieldPath"] = ".".join(self.field_path)
        return entry


def type_changes(field: StructField) -> tuple[TypeChange, ...]:
    """The recorded changes of the field, oldest first."""
    raw = field.metadata.get(TYPE_CHANGES_KEY)
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise _damaged(field, "it is not a list")
    return tuple(_read(field, entry) for entry in raw)


def with_type_change(field: StructField, change: TypeChange) -> StructField:
    """The field with the change added to its history; older entries stay as they are."""
    raw = field.metadata.get(TYPE_CHANGES_KEY)
    entries = [*(raw if isinstance(raw, list) else []), change.to_json()]
    return field.with_metadata(**{TYPE_CHANGES_KEY: entries})


def unsupported_type_changes(
    schema: Struct, *, iceberg: bool = False
) -> Iterator[tuple[ColumnPath, TypeChange]]:
    """Recorded changes that the rules do not know; a reader must refuse such a table."""
    for path, field in walk_fields(schema):
        for change in type_changes(field):
            if not can_widen(change.from_type, change.to_type, iceberg=iceberg):
                yield (*path, *change.field_path), change


def check_type_changes(schema: Struct) -> None:
    """Raise if the history holds a change the rules do not know: old files cannot be read then."""
    unknown = list(unsupported_type_changes(schema))
    if not unknown:
        return
    shown = [
        f"{render_path(path)} from {render_type(change.from_type)} to {render_type(change.to_type)}"
        for path, change in unknown
    ]
    raise UnsupportedFeature(
        Code.FEATURE_READ,
        f"The type of a column was changed in a way that cannot be read: {'; '.join(shown)}.",
        why="Files from before the change hold the old type, and no rule says how to widen it.",
        fix="Use a client that knows the change, or rewrite the files with one.",
        delta_class="DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA",
        fields={
            "changes": [{"path": render_path(p), **change.to_json()} for p, change in unknown],
        },
    )


def _read(field: StructField, entry: Any) -> TypeChange:
    if not isinstance(entry, Mapping) or "fromType" not in entry or "toType" not in entry:
        raise _damaged(field, "an entry lacks fromType or toType")
    where = entry.get("fieldPath")
    if where is not None and not isinstance(where, str):
        raise _damaged(field, "a fieldPath is not text")
    return TypeChange(
        from_type=type_from_json(entry["fromType"], (field.name,)),
        to_type=type_from_json(entry["toType"], (field.name,)),
        field_path=parse_path(where) if where else (),
    )


def _damaged(field: StructField, why: str) -> CorruptTable:
    return CorruptTable(
        Code.SCHEMA_INVALID,
        f"The type history of column {render_path((field.name,))} is damaged.",
        why=f"{TYPE_CHANGES_KEY}: {why}.",
        fix=f"Run {how_to_restore()} with a version before the damage.",
        fields={"path": render_path((field.name,))},
    )
