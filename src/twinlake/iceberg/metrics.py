"""Delta's statistics of a file as Iceberg's metrics: counts and bounds by column id.

Delta protocol, Per-file Statistics; Iceberg table format, Data File Fields. The JSON is decoded by
a type that is made for the table once, so that decimals and large longs never become floats.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.schemas import Leaf, leaves
from twinlake.iceberg.single_values import encode_bound
from twinlake.schema import (
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
    Decimal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.protocol import Metadata
    from twinlake.schema import DataType

__all__ = ["FileMetrics", "MetricsReader"]

_NUMBER: Final = int | float
_JSON_TYPES: Final[Mapping[Any, Any]] = {
    BYTE: _NUMBER,
    SHORT: _NUMBER,
    INTEGER: _NUMBER,
    LONG: _NUMBER,
    # Not a number and the infinities are texts.
    FLOAT: float | str,
    DOUBLE: float | str,
    STRING: str,
    DATE: str,
    TIMESTAMP: str,
    TIMESTAMP_NTZ: str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMetrics:
    """What a manifest says of the values of a file; nothing where nothing is known."""

    record_count: int | None = None
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)


class MetricsReader:
    """Reads the statistics of the files of one table."""

    def __init__(self, metadata: Metadata) -> None:
        found = tuple(leaves(metadata.schema))
        self._bounded = tuple(leaf for leaf in found if _json_type(leaf.type) is not None)
        shape = _Shape(found)
        self._typed = msgspec.json.Decoder(_document(shape, typed=True))
        self._loose = msgspec.json.Decoder(_document(shape, typed=False))
        self._places = {leaf.id: shape.place(leaf.path) for leaf in found}
        self._leaves = found

    def read(self, stats: str | None) -> FileMetrics:
        """The metrics of a file with these statistics; damaged ones say nothing."""
        if not stats:
            return FileMetrics()
        try:
            document = self._typed.decode(stats)
        except msgspec.DecodeError:
            return self._read_loosely(stats)
        return self._metrics(document, lambda value, _: value)

    def _read_loosely(self, stats: str) -> FileMetrics:
        """Value by value: one that is odd costs its own bound and no other."""
        try:
            document = self._loose.decode(stats)
        except (msgspec.DecodeError, RecursionError):
            return FileMetrics()
        return self._metrics(document, _decoded)

    def _metrics(self, document: Any, value_of: Any) -> FileMetrics:
        count = document.numRecords
        counts, nulls = {}, {}
        if document.nullCount is not None:
            for leaf in self._leaves:
                found = value_of(_at(document.nullCount, self._places[leaf.id]), int)
                # Where bounds are not tight, counts are those before rows were hidden.
                if found is None or not (document.tightBounds or found in (0, count)):
                    continue
                nulls[leaf.id] = found
                if count is not None:
                    counts[leaf.id] = count
        return FileMetrics(
            record_count=count,
            value_counts=counts,
            null_value_counts=nulls,
            lower_bounds=dict(self._bounds(document.minValues, value_of, upper=False)),
            upper_bounds=dict(self._bounds(document.maxValues, value_of, upper=True)),
        )

    def _bounds(self, values: Any, value_of: Any, *, upper: bool) -> Iterator[tuple[int, bytes]]:
        if values is None:
            return
        for leaf in self._bounded:
            value = value_of(_at(values, self._places[leaf.id]), _json_type(leaf.type))
            if value is not None:
                bound = encode_bound(value, leaf.type, upper=upper)
                if bound is not None:
                    yield leaf.id, bound


def _at(values: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        if values is None:
            return None
        values = getattr(values, name)
    return values


def _decoded(raw: Any, kind: Any) -> Any:
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=kind | None)
    except msgspec.DecodeError:
        return None


def _json_type(kind: DataType) -> Any:
    return decimal.Decimal if isinstance(kind, Decimal) else _JSON_TYPES.get(kind)


class _Shape:
    """The nesting of physical names; attributes get names that Python can have."""

    def __init__(self, found: tuple[Leaf, ...], depth: int = 0) -> None:
        self.children: dict[str, _Shape | Leaf] = {}
        groups: dict[str, list[Leaf]] = {}
        for leaf in found:
            if len(leaf.path) == depth + 1:
                self.children[leaf.path[depth]] = leaf
            else:
                groups.setdefault(leaf.path[depth], []).append(leaf)
        for name, inner in groups.items():
            self.children[name] = _Shape(tuple(inner), depth + 1)
        self.attributes = {name: f"f{index}" for index, name in enumerate(self.children)}

    def place(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The attributes that lead to a leaf."""
        first, *rest = path
        child = self.children[first]
        below = child.place(tuple(rest)) if isinstance(child, _Shape) else ()
        return (self.attributes[first], *below)


def _document(shape: _Shape, *, typed: bool) -> type[msgspec.Struct]:
    def count_type(_: Leaf) -> Any:
        return int if typed else msgspec.Raw

    def value_type(leaf: Leaf) -> Any:
        # Values of columns without bounds in Iceberg are not looked at, whatever they are.
        return (_json_type(leaf.type) or Any) if typed else msgspec.Raw

    values = _values(shape, value_type) | None
    return msgspec.defstruct(
        "Statistics",
        [
            ("numRecords", int | None, None),
            ("tightBounds", bool | None, True),
            ("minValues", values, None),
            ("maxValues", values, None),
            ("nullCount", _values(shape, count_type) | None, None),
        ],
    )


def _values(shape: _Shape, leaf_type: Any) -> type[msgspec.Struct]:
    fields = []
    for name, attribute in shape.attributes.items():
        child = shape.children[name]
        kind = _values(child, leaf_type) if isinstance(child, _Shape) else leaf_type(child)
        # Raw text, and what is not looked at, may be null without being told so.
        fields.append((attribute, kind if kind in (Any, msgspec.Raw) else kind | None, None))
    spelt = {attribute: name for name, attribute in shape.attributes.items()}
    return msgspec.defstruct("Values", fields, rename=spelt, gc=False)
