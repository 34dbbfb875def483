"""The statistics of many files at once: JSON text, or a checkpoint's struct, into typed columns.

The fast way hands whole chunks of JSON to Arrow's reader. Whatever that refuses (``"NaN"``, a
number where a date should be, text that is not JSON) is read again row by row, and what makes no
sense becomes null: a missing statistic only costs a skipped file, a wrong one costs rows.

That reader trusts its input: a ``null`` in front ends the process, and two objects in one text
move every later row. So it only gets texts that are one object each (ADR 0022).
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from twinlake.schema import Array, Map, Primitive, Struct, type_to_arrow

if TYPE_CHECKING:
    from twinlake.schema import DataType

__all__ = ["StatsShape", "conform_stats", "render_stats", "with_json_stats"]

# Types whose smallest and largest value the log can state (spec: binary and boolean have none
# in Spark; other writers do give booleans, and reading them does no harm).
_ORDERED: Final = frozenset(
    [
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
    ]
)

# A bound that had to be rounded could exclude rows that are there, so rounding is an error.
_EXACT: Final = decimal.Context(
    prec=38, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow]
)
_BELOW_MICROSECONDS: Final = re.compile(r"[.,]\d{6}\d*[1-9]")


def _number(text: str) -> decimal.Decimal | None:
    try:
        return decimal.Decimal(text)
    except ArithmeticError:
        return None


# Decimals must not pass through binary floating point: a bound would move.
_ROW: Final = msgspec.json.Decoder(dict[str, Any], float_hook=_number)


class StatsShape:
    """How the statistics of a schema look: by physical name in the log, typed as the columns."""

    def __init__(self, physical: Struct) -> None:
        self.values = _values_type(physical)
        self.counts = _counts_type(physical)
        self.arrow = pa.struct(
            [
                ("numRecords", pa.int64()),
                ("minValues", self.values),
                ("maxValues", self.values),
                ("nullCount", self.counts),
                ("tightBounds", pa.bool_()),
            ]
        )
        readable = pa.struct(
            [
                ("numRecords", pa.int64()),
                ("minValues", _dates_as_text(self.values)),
                ("maxValues", _dates_as_text(self.values)),
                ("nullCount", self.counts),
                ("tightBounds", pa.bool_()),
            ]
        )
        self._has_decimals = _has_decimals(self.values)
        self._parse_options = pj.ParseOptions(
            explicit_schema=pa.schema(list(readable)), unexpected_field_behavior="ignore"
        )

    def parse(self, text: pa.Array | None, given: pa.Array | None, rows: int) -> pa.StructArray:
        """One struct a file; a checkpoint's own struct (``given``) is used where it is complete."""
        unwritten = text is None or text.null_count == rows
        if given is not None and (unwritten or given.null_count == 0):
            return conform_stats(given, self)
        if text is None or unwritten:
            return pa.nulls(rows, self.arrow)
        parsed = self._parse_text(pc.fill_null(text, "{}") if text.null_count else text)
        if given is None or not text.null_count:
            return parsed
        # Files of a checkpoint without text and files of later commits, side by side.
        return pc.if_else(pc.is_valid(text), parsed, conform_stats(given, self))

    def _parse_text(self, text: pa.Array) -> pa.StructArray:
        try:
            return self._by_arrow(text)
        except (pa.ArrowException, ValueError):
            return self._row_by_row(text)

    def _by_arrow(self, text: pa.Array) -> pa.StructArray:
        whole = pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text)
        if not _are_objects_on_one_line(text, pc.binary_join(whole, "")[0].as_buffer()):
            raise ValueError("some text is not an object on one line")
        lines = pc.binary_join(whole, "\n")[0].as_buffer()
        table = pj.read_json(
            pa.BufferReader(lines),
            read_options=pj.ReadOptions(block_size=max(1 << 20, lines.size // 8)),
            parse_options=self._parse_options,
        )
        if len(table) != len(text):
            raise ValueError("some text holds more than one object")
        whole_batch = table.combine_chunks().to_batches()[0]
        parsed = _shape(whole_batch.to_struct_array(), self.arrow)
        if self._has_decimals:
            # The reader lets numbers pass that have too many digits for their column.
            parsed.validate(full=True)
        return parsed

    def _row_by_row(self, text: pa.Array) -> pa.StructArray:
        rows = []
        for item in text.to_pylist():
            try:
                row = _ROW.decode(item)
            except (msgspec.DecodeError, RecursionError):
                row = {}
            rows.append({f.name: _coerce(row.get(f.name), f.type) for f in self.arrow})
        return pa.array(rows, self.arrow)


def _are_objects_on_one_line(text: pa.Array, joined: pa.Buffer) -> bool:
    """Whether every text starts and ends as an object does and holds no control character.

    ``joined`` is all of the text. Where texts are joined by line breaks, no break then stands
    inside a value: no JSON continues from ``}`` to ``{``, and a string holds no raw line break. So
    every text is one value or more, and as many values as texts are one each. The reader cuts its
    blocks at line breaks, so none of its blocks begins with anything but an object.
    """
    characters = pa.Array.from_buffers(pa.uint8(), joined.size, [None, joined])
    return bool(
        pc.all(pc.starts_with(text, "{")).as_py()
        and pc.all(pc.ends_with(text, "}")).as_py()
        and pc.min(characters).as_py() >= ord(" ")
    )


def conform_stats(stats: pa.Array, shape: StatsShape) -> pa.Array:
    """Statistics of an earlier or a checkpoint's schema in the given shape."""
    return _shape(stats, shape.arrow)


def render_stats(parsed: dict[str, Any] | None) -> str | None:
    """A checkpoint's struct as the JSON text of an add action, for files that have no text."""
    if parsed is None:
        return None
    return msgspec.json.encode(_plain(parsed)).decode()


def with_json_stats(raw: pa.Table) -> pa.Table:
    """The raw layout with JSON statistics wherever there are any, and no other form of them."""
    if "stats_parsed" not in raw.schema.names:
        return raw
    stats = raw["stats"]
    lacking = pc.and_(pc.is_null(stats), pc.is_valid(raw["stats_parsed"]))
    if pc.any(lacking).as_py():
        # A checkpoint without JSON statistics: text is made for those rows alone.
        rendered = [render_stats(row) for row in raw["stats_parsed"].filter(lacking).to_pylist()]
        text = pa.array(rendered, pa.string())
        stats = pa.chunked_array([pc.replace_with_mask(_flat(stats), _flat(lacking), text)])
    kept = raw.drop_columns(["stats_parsed"])
    return kept.set_column(kept.schema.get_field_index("stats"), "stats", stats)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        return combined.chunk(0) if combined.num_chunks else pa.array([], combined.type)
    return combined


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {k: _plain(v) for k, v in value.items() if v is not None}
        case dt.datetime():
            # Milliseconds as Delta writes them; never less than is there, a bound must not move.
            unit = "microseconds" if value.microsecond % 1000 else "milliseconds"
            text = value.isoformat(timespec=unit)
            return text.replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case decimal.Decimal():
            return msgspec.Raw(format(value, "f").encode())
        case float() if value != value or value in (float("inf"), float("-inf")):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case bytes():
            return value.decode("utf-8", "replace")
        case _:
            return value


def _values_type(schema: Struct) -> pa.StructType:
    children = []
    for child in schema:
        match child.type:
            case Struct():
                children.append(pa.field(child.name, _values_type(child.type)))
            case Primitive(name) if name not in _ORDERED:
                pass
            case Array() | Map():
                pass
            case kind:
                if (arrow := _ordered_arrow(kind)) is not None:
                    children.append(pa.field(child.name, arrow))
    return pa.struct(children)


def _ordered_arrow(kind: DataType) -> pa.DataType | None:
    arrow = type_to_arrow(kind)
    return None if pa.types.is_nested(arrow) or pa.types.is_binary(arrow) else arrow


def _counts_type(schema: Struct) -> pa.StructType:
    return pa.struct(
        [
            pa.field(c.name, _counts_type(c.type) if isinstance(c.type, Struct) else pa.int64())
            for c in schema
        ]
    )


def _has_decimals(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_decimals(child.type) for child in kind)
    return bool(pa.types.is_decimal(kind))


def _dates_as_text(kind: pa.StructType) -> pa.StructType:
    # Arrow's JSON reader takes timestamps and decimals from text but not dates.
    def convert(child: pa.DataType) -> pa.DataType:
        if pa.types.is_struct(child):
            return _dates_as_text(child)
        return pa.string() if pa.types.is_date(child) else child

    return pa.struct([pa.field(f.name, convert(f.type)) for f in kind])


def _shape(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """``array`` as ``kind``: struct fields by name, missing ones null, leaves cast."""
    if array.type == kind:
        return array
    if not pa.types.is_struct(kind):
        return _cast(array, kind)
    if not pa.types.is_struct(array.type):
        return pa.nulls(len(array), kind)
    given = {f.name: i for i, f in enumerate(array.type)}
    children = [
        _shape(array.field(given[f.name]), f.type)
        if f.name in given
        else pa.nulls(len(array), f.type)
        for f in kind
    ]
    if not children:
        return pa.nulls(len(array), kind)
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)


def _cast(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_floating(array.type) and pa.types.is_decimal(kind):
        # Such a cast rounds, and says nothing.
        return pa.nulls(len(array), kind)
    try:
        return pc.cast(array, kind)
    except pa.ArrowException:
        cells = [_coerce(cell, kind) for cell in array.to_pylist()]
        return pa.array(cells, kind)


def _coerce(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        if not isinstance(value, dict):
            return None
        return {f.name: _coerce(value.get(f.name), f.type) for f in kind}
    try:
        converted = _coerce_leaf(value, kind)
        pa.scalar(converted, kind)
    except (pa.ArrowException, ValueError, TypeError, ArithmeticError, OverflowError):
        return None
    return converted


def _coerce_leaf(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_boolean(kind):
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        # To Python it is a number.
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else None
    if pa.types.is_integer(kind):
        return value if isinstance(value, int) else None
    if pa.types.is_floating(kind):
        return _floating(value)
    if pa.types.is_decimal(kind):
        exact = decimal.Decimal(value) if isinstance(value, int | str) else value
        return _EXACT.quantize(exact, decimal.Decimal(1).scaleb(-kind.scale))
    if pa.types.is_date(kind):
        return value if isinstance(value, dt.date) else dt.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        if _BELOW_MICROSECONDS.search(value):
            return None
        moment = dt.datetime.fromisoformat(value)
        moment = moment.astimezone(dt.UTC) if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return moment if kind.tz is not None else moment.replace(tzinfo=None)
    return None


def _floating(value: Any) -> float | None:
    found = float(value)
    # Infinity is given as text; a number that large is none that the column could hold.
    return None if math.isinf(found) and not isinstance(value, str | float) else found
