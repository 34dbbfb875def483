"""Partition values: the strings of the log to typed values and back.

Delta protocol, Partition Value Serialization. None and the empty string both mean null. Timestamps
come as ISO instants or without a zone, in which case the writer's zone (an argument here, UTC
unless told) decides. Binary values are the texts whose UTF-8 form they are, as Delta Spark has it;
other bytes have no text that gives them back.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Context, DecimalException
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any, Final

from twinlake._lazy_exports import lazy_module
from twinlake.errors import Code, CorruptTable, UserError
from twinlake.schema.arrow import type_to_arrow
from twinlake.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = lazy_module("pyarrow")
    pc = lazy_module("pyarrow.compute")

__all__ = [
    "has_zone",
    "is_binary_text",
    "parse_partition_value",
    "partition_array",
    "render_partition_value",
]

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_REAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
    r"\s*(Z|[+-][0-9]{2}(?::?[0-9]{2}){0,2})?"
)
_ZONED: Final = r"(Z|[T ][0-9:.]+\s*[+-][0-9]{2}(:?[0-9]{2}){0,2})$"
_EXACT: Final = Context(prec=80)
_NON_FINITE: Final[Mapping[str, float]] = {
    "nan": math.nan,
    "infinity": math.inf,
    "+infinity": math.inf,
    "inf": math.inf,
    "-infinity": -math.inf,
    "-inf": -math.inf,
}


def parse_partition_value(text: str | None, kind: DataType, *, zone: tzinfo = UTC) -> Any:
    """The value a partition string stands for; ``zone`` is that of timestamps without one.

    >>> parse_partition_value("2024-02-29", DATE)
    datetime.date(2024, 2, 29)
    >>> parse_partition_value("", STRING) is None
    True
    """
    codec = _codec(kind)
    if text is None or text == "":
        return None
    try:
        return codec.parse(text, kind, zone)
    except (ValueError, OverflowError, ArithmeticError) as cause:
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"{text[:100]!r} is not a partition value of type {kind}.",
            why=str(cause),
            fix="The entry of the file in the log is wrong: rewrite or remove that file "
            "with the engine that wrote it.",
            fields={"value": text[:1000], "type": str(kind)},
        ) from cause


def render_partition_value(value: Any, kind: DataType) -> str | None:
    """The partition string of a value; an empty text cannot be told from null and becomes null.

    >>> render_partition_value(datetime(2024, 1, 1, tzinfo=UTC), TIMESTAMP)
    '2024-01-01T00:00:00.000000Z'
    """
    codec = _codec(kind)
    if value is None:
        return None
    try:
        return codec.render(value, kind) or None
    except (ValueError, TypeError, AttributeError, OverflowError, ArithmeticError) as cause:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"A {type(value).__name__} is not a value of partition type {kind}.",
            why=str(cause),
            fix=f"Give a Python value that fits {kind}.",
            fields={"type": str(kind)},
        ) from cause


def has_zone(text: str) -> bool:
    """Whether the text of a timestamp says in which zone it is meant.

    >>> has_zone("2024-01-31T12:00:00Z"), has_zone("2024-01-31 12:00:00")
    (True, False)
    """
    match = _TIMESTAMP.fullmatch(text.strip())
    return match is not None and match[8] is not None


def is_binary_text(value: bytes) -> bool:
    r"""Whether bytes can be a partition value: those that are not UTF-8 have no text in the log.

    >>> is_binary_text("ü".encode()), is_binary_text(b"\xff")
    (True, False)
    """
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def partition_array(
    strings: pa.Array | pa.ChunkedArray, kind: DataType, *, zone: tzinfo = UTC
) -> pa.Array:
    """The typed column of a column of partition strings; each distinct string is parsed once.

    >>> import pyarrow as pa
    >>> partition_array(pa.array(["1", None, "", "1"]), INTEGER).to_pylist()
    [1, None, None, 1]
    """
    _codec(kind)
    target = type_to_arrow(kind)
    if isinstance(strings, pa.ChunkedArray):
        strings = strings.combine_chunks()
    if not pa.types.is_dictionary(strings.type):
        strings = strings.cast(pa.string()).dictionary_encode()
    words = strings.dictionary.cast(pa.string())
    words = pc.if_else(pc.equal(words, ""), pa.scalar(None, pa.string()), words)
    try:
        typed = _cast(words, kind, target, zone)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Arrow is stricter than the protocol; value by value also names the bad one.
        values = [parse_partition_value(word, kind, zone=zone) for word in words.to_pylist()]
        typed = pa.array(values, target)
    return typed.take(strings.indices)


def _cast(words: pa.StringArray, kind: DataType, target: pa.DataType, zone: tzinfo) -> pa.Array:
    if kind in (BINARY, BOOLEAN):
        raise pa.ArrowNotImplementedError("few or odd values: one by one")
    if kind in (BYTE, SHORT, INTEGER, LONG) and not _all_match(words, "^-?[0-9]+$"):
        raise pa.ArrowNotImplementedError("hexadecimal is no partition value")
    if kind == TIMESTAMP_NTZ and pc.any(pc.match_substring_regex(words, _ZONED)).as_py():
        raise pa.ArrowNotImplementedError("a zone where there should be none")
    if kind != TIMESTAMP:
        return words.cast(target)
    zoned = pc.match_substring_regex(words, _ZONED)
    if zone is not UTC and not pc.all(zoned).as_py():
        raise pa.ArrowNotImplementedError("zone rules are Python's")
    nothing = pa.scalar(None, pa.string())
    local = pc.if_else(zoned, nothing, words).cast(pa.timestamp("us")).cast(target)
    return pc.coalesce(pc.if_else(zoned, words, nothing).cast(target), local)


def _all_match(words: pa.StringArray, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(words, pattern)).as_py() is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codec:
    parse: Callable[[str, DataType, tzinfo], Any]
    render: Callable[[Any, DataType], str]


def _codec(kind: DataType) -> _Codec:
    found = _DECIMAL if isinstance(kind, Decimal) else _CODECS.get(kind)
    if found is None:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"A table cannot be partitioned by type {kind}.",
            why="Partition columns have a primitive type.",
            fix="Partition by another column.",
            delta_class="DELTA_INVALID_PARTITION_COLUMN_TYPE",
        )
    return found


def _integers(bits: int) -> _Codec:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def check(value: int) -> int:
        if not lowest <= value <= highest:
            raise ValueError(f"not between {lowest} and {highest}")
        return value

    def parse(text: str, _kind: DataType, _zone: tzinfo) -> int:
        if not _INTEGER.fullmatch(text.strip()):
            raise ValueError("not a whole number")
        return check(int(text))

    def render(value: Any, _kind: DataType) -> str:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError("not a whole number")
        return str(check(value))

    return _Codec(parse=parse, render=render)


def _parse_boolean(text: str, _kind: DataType, _zone: tzinfo) -> bool:
    folded = text.strip().casefold()
    if folded not in ("true", "false"):
        raise ValueError("neither true nor false")
    return folded == "true"


def _render_boolean(value: Any, _kind: DataType) -> str:
    if not isinstance(value, bool):
        raise TypeError("neither True nor False")
    return "true" if value else "false"


def _parse_real(text: str, kind: DataType, _zone: tzinfo) -> float:
    stripped = text.strip()
    named = _NON_FINITE.get(stripped.casefold())
    if named is not None:
        return named
    if not _REAL.fullmatch(stripped):
        raise ValueError("not a number")
    return _single(float(stripped)) if kind == FLOAT else float(stripped)


def _render_real(value: Any, kind: DataType) -> str:
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if kind != FLOAT:
        return repr(number)
    single = _single(number)
    if math.isinf(single):
        raise OverflowError("too large for a float")
    # The shortest text that reads back as the same single-precision number.
    short = next(
        f"{single:.{n}g}" for n in range(6, 18) if _single(float(f"{single:.{n}g}")) == single
    )
    return repr(float(short))


def _single(value: float) -> float:
    import struct

    try:
        (single,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(single)


def _parse_decimal(text: str, kind: DataType, _zone: tzinfo) -> Number:
    if not _REAL.fullmatch(text.strip()) or len(text) > 200:
        raise ValueError("not a decimal number")
    return _fitted(Number(text.strip()), kind)


def _render_decimal(value: Any, kind: DataType) -> str:
    if isinstance(value, (bool, float)):
        raise TypeError("not an exact number")
    return f"{_fitted(Number(value), kind):f}"


def _fitted(number: Number, kind: DataType) -> Number:
    """The number at the type's scale, refused if digits would be lost."""
    if not isinstance(kind, Decimal) or not number.is_finite():
        raise ValueError("not a finite number")
    try:
        fitted = number.quantize(Number(1).scaleb(-kind.scale), context=_EXACT)
    except DecimalException as cause:
        raise ValueError("too many digits") from cause
    if fitted != number or (fitted.adjusted() >= kind.precision - kind.scale and fitted):
        raise ValueError(f"does not fit {kind}")
    return fitted


def _parse_date(text: str, _kind: DataType, _zone: tzinfo) -> date:
    match = _DATE.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a date like 2024-01-31")
    return date(*(int(part) for part in match.groups()))


def _render_date(value: Any, _kind: DataType) -> str:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError("not a date")
    return value.isoformat()


def _parse_moment(text: str) -> tuple[datetime, tzinfo | None]:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise ValueError("not a timestamp like 2024-01-31T12:00:00Z or 2024-01-31 12:00:00")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    micros = int((fraction or "0").ljust(6, "0")[:6])
    moment = datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros
    )
    return moment, _parse_offset(offset) if offset else None


def _parse_offset(text: str) -> tzinfo:
    if text == "Z":
        return UTC
    digits = text[1:].replace(":", "").ljust(6, "0")
    span = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:6]))
    return timezone(-span if text[0] == "-" else span)


def _parse_timestamp(text: str, _kind: DataType, zone: tzinfo) -> datetime:
    moment, offset = _parse_moment(text)
    return moment.replace(tzinfo=offset or zone).astimezone(UTC)


def _render_timestamp(value: Any, _kind: DataType) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError("not a datetime with a time zone")
    utc = value.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat("T", "microseconds") + "Z"


def _parse_local(text: str, _kind: DataType, _zone: tzinfo) -> datetime:
    moment, offset = _parse_moment(text)
    if offset is not None:
        raise ValueError("a timestamp_ntz has no time zone")
    return moment


def _render_local(value: Any, _kind: DataType) -> str:
    if not isinstance(value, datetime) or value.tzinfo is not None:
        raise TypeError("not a datetime without a time zone")
    return value.isoformat(" ", "microseconds" if value.microsecond else "seconds")


def _parse_binary(text: str, _kind: DataType, _zone: tzinfo) -> bytes:
    return text.encode()


def _render_binary(value: Any, _kind: DataType) -> str:
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("not bytes")
    plain = bytes(value)
    if not is_binary_text(plain):
        # Delta Spark puts a replacement character for them, and other bytes come back.
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Bytes that are not valid UTF-8 cannot be a partition value.",
            why="the log holds partition values as texts",
            fix="Partition by another column, for instance by the bytes in hexadecimal.",
            fields={"type": "binary"},
        )
    return plain.decode()


def _render_string(value: Any, _kind: DataType) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


_REALS: Final = _Codec(parse=_parse_real, render=_render_real)
_DECIMAL: Final = _Codec(parse=_parse_decimal, render=_render_decimal)
_CODECS: Final[Mapping[DataType, _Codec]] = {
    STRING: _Codec(parse=lambda text, _kind, _zone: text, render=_render_string),
    BOOLEAN: _Codec(parse=_parse_boolean, render=_render_boolean),
    BYTE: _integers(8),
    SHORT: _integers(16),
    INTEGER: _integers(32),
    LONG: _integers(64),
    FLOAT: _REALS,
    DOUBLE: _REALS,
    DATE: _Codec(parse=_parse_date, render=_render_date),
    TIMESTAMP: _Codec(parse=_parse_timestamp, render=_render_timestamp),
    TIMESTAMP_NTZ: _Codec(parse=_parse_local, render=_render_local),
    BINARY: _Codec(parse=_parse_binary, render=_render_binary),
}
