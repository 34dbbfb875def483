"""Rows as a view: plain values for JSON, a grid for the console.

Text is cut where a value is long; JSON has every value whole.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from twinlake.cli.text import truncate
from twinlake.cli.view import EMPTY_CELL, Fields, Grid, Paragraph, ViewColumn
from twinlake.protocol.properties import Verbatim

if TYPE_CHECKING:
    from twinlake.cli.view import Block

__all__ = ["VALUE_WIDTH", "row_blocks", "row_records", "value_text"]

VALUE_WIDTH: Final = 60
"""Longer values are cut in text."""


def row_records(rows: pa.Table) -> Verbatim:
    """One object a row, by column name; the second of two equal names gets ``_1``, and so on.

    >>> row_records(pa.table({"id": [1], "tags": pa.array([[("a", 2)]], pa.map_("str", "int8"))}))
    [{'id': 1, 'tags': {'a': 2}}]
    """
    names = _unique(rows.column_names)
    columns = [_values(column) for column in rows.columns]
    return Verbatim(dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def row_blocks(rows: pa.Table, note: str = "", *, is_terminal: bool = False) -> list[Block]:
    """A grid; on a terminal that is far too narrow for it, the columns of each row one a line."""
    columns = [[value_text(value) for value in _values(column)] for column in rows.columns]
    names = rows.column_names
    lines = list(zip(*columns, strict=True))
    if is_terminal and _width(names, columns) > 2 * shutil.get_terminal_size().columns:
        blocks: list[Block] = [Fields(tuple(zip(names, line, strict=True))) for line in lines]
        return [*blocks, Paragraph(note)] if note else blocks
    kinds = rows.schema.types
    header = tuple(ViewColumn(n, _is_number(kind)) for n, kind in zip(names, kinds, strict=True))
    return [Grid(header, lines, note=note)]


def value_text(value: Any) -> str:
    """A value in one cell.

    >>> value_text(None), value_text({"a": [1, None]}), value_text(b"a"), len(value_text("x" * 99))
    ('null', '{"a":[1,null]}', '0x61', 60)
    """
    match value:
        case None:
            text = "null"
        case bool():
            text = "true" if value else "false"
        case bytes():
            text = f"0x{value[:VALUE_WIDTH].hex()}"
        case dt.datetime() | dt.date() | dt.time():
            text = value.isoformat().replace("+00:00", "Z")
        case Mapping() | list():
            text = msgspec.json.encode(value, enc_hook=str).decode()
        case _:
            text = str(value) or EMPTY_CELL
    return truncate(text, VALUE_WIDTH)


def _width(names: Sequence[str], columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, (n, *c))) + 2 for n, c in zip(names, columns, strict=True))


def _is_number(kind: pa.DataType) -> bool:
    found: bool = (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
    return found


def _unique(names: Sequence[str]) -> list[str]:
    """The columns of a query may have equal names; an object has each once."""
    found: dict[str, None] = {}
    for name in names:
        candidate, number = name, 0
        while candidate in found:
            number += 1
            candidate = f"{name}_{number}"
        found[candidate] = None
    return list(found)


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        # Years before 1 and nanoseconds, for which Python has no value.
        column = column.cast(_with_text_for_time(column.type))
        found = column.to_pylist()
    if not (pa.types.is_nested(column.type) or pa.types.is_interval(column.type)):
        return found
    return [_plain(value, column.type) for value in found]


def _with_text_for_time(kind: pa.DataType) -> pa.DataType:
    match kind:
        case pa.StructType():
            return pa.struct([f.with_type(_with_text_for_time(f.type)) for f in kind])
        case pa.MapType():
            key, item = _with_text_for_time(kind.key_type), _with_text_for_time(kind.item_type)
            return pa.map_(key, item)
        case pa.ListType():
            return pa.list_(kind.value_field.with_type(_with_text_for_time(kind.value_type)))
        case _:
            return pa.string() if pa.types.is_temporal(kind) else kind


def _plain(value: Any, kind: pa.DataType) -> Any:
    """Maps as objects, if their keys are text; intervals as text."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        pairs = [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in value]
        return dict(pairs) if pa.types.is_string(kind.key_type) else [list(p) for p in pairs]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_plain(item, kind.value_type) for item in value]
    return _duration(value) if pa.types.is_interval(kind) else value


def _duration(value: Any) -> str:
    """An interval in the spelling of ISO 8601."""
    return f"P{value.months}M{value.days}DT{value.nanoseconds / 1e9:g}S"
