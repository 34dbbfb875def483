"""Delta's statistics of a file as Iceberg's metrics: counts and bounds by column id.

Delta protocol, Per-file Statistics; Iceberg table format, Data File Fields. The JSON is decoded by
a type that is made for the table once, so that decimals and large longs never become floats.
"""

from __future__ import annotations

import decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from twinlake.iceberg.format.schema import Leaf, leaves
from twinlake.iceberg.format.single_value import bound_encoder
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
    from collections.abc import Callable, Mapping

    from twinlake.iceberg.format.single_value import Bound
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


class FileMetrics(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a manifest says of the values of a file; nothing where nothing is known."""

    record_count: int | None = None
    value_counts: dict[int, int] = {}
    null_value_counts: dict[int, int] = {}
    lower_bounds: dict[int, bytes] = {}
    upper_bounds: dict[int, bytes] = {}


class _Column(NamedTuple):
    """Where the statistics have the values of one column."""

    id: int
    count: Callable[[Any], Any]
    """Finds its count among counts."""
    value: Callable[[Any], Any]
    """Finds its value among values."""
    bound: Bound | None
    """Encodes that value; None where Iceberg has no bounds."""


class MetricsReader:
    """Reads the statistics of the files of one table."""

    def __init__(self, metadata: Metadata) -> None:
        found = tuple(leaves(metadata.schema))
        shape = _Shape(found)
        self._typed = msgspec.json.Decoder(_document(shape, typed=True))
        self._loose = msgspec.json.Decoder(_document(shape, typed=False))
        self._columns = tuple(_typed_column(leaf, shape) for leaf in found)
        self._loose_columns = tuple(_loose_column(leaf, shape) for leaf in found)

    def read(self, stats: str | None) -> FileMetrics:
        """The metrics of a file with these statistics; damaged ones say nothing."""
        if not stats:
            return FileMetrics()
        try:
            document = self._typed.decode(stats)
        except msgspec.DecodeError:
            return self._read_loosely(stats)
        return _metrics(document, self._columns)

    def _read_loosely(self, stats: str) -> FileMetrics:
        """Value by value: one that is odd costs its own bound and no other."""
        try:
            document = self._loose.decode(stats)
        except (msgspec.DecodeError, RecursionError):
            return FileMetrics()
        return _metrics(document, self._loose_columns)


def _metrics(document: Any, columns: tuple[_Column, ...]) -> FileMetrics:
    count, counted, is_tight = document.numRecords, document.nullCount, document.tightBounds
    nulls = {}
    if counted is not None:
        for number, count_of, _, _ in columns:
            found = count_of(counted)
            # Where bounds are not tight, counts are those before rows were hidden.
            if found is not None and (is_tight or found in (0, count)):
                nulls[number] = found
    return FileMetrics(
        record_count=count,
        value_counts={} if count is None else dict.fromkeys(nulls, count),
        null_value_counts=nulls,
        lower_bounds=_bounds(document.minValues, columns, upper=False),
        upper_bounds=_bounds(document.maxValues, columns, upper=True),
    )


def _bounds(values: Any, columns: tuple[_Column, ...], *, upper: bool) -> dict[int, bytes]:
    bounds: dict[int, bytes] = {}
    if values is None:
        return bounds
    for number, _, value_of, bound in columns:
        if bound is None or (value := value_of(values)) is None:
            continue
        if (found := bound(value, upper)) is not None:
            bounds[number] = found
    return bounds


def _typed_column(leaf: Leaf, shape: _Shape) -> _Column:
    find = _finder(shape.attribute_path(leaf.path))
    return _Column(leaf.id, find, find, bound_encoder(leaf.type))


def _loose_column(leaf: Leaf, shape: _Shape) -> _Column:
    find, kind = _finder(shape.attribute_path(leaf.path)), _json_type(leaf.type)
    return _Column(
        leaf.id,
        lambda counts: _decoded(find(counts), int),
        lambda values: _decoded(find(values), kind),
        bound_encoder(leaf.type),
    )


def _finder(path: tuple[str, ...]) -> Callable[[Any], Any]:
    return attrgetter(*path) if len(path) == 1 else lambda values: _at(values, path)


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
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

    def attribute_path(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The attributes that lead to a leaf."""
        first, *rest = path
        child = self.children[first]
        below = child.attribute_path(tuple(rest)) if isinstance(child, _Shape) else ()
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
        # Raw text, and what is not looked at, may be null in any case.
        fields.append((attribute, kind if kind in (Any, msgspec.Raw) else kind | None, None))
    spelt = {attribute: name for name, attribute in shape.attributes.items()}
    return msgspec.defstruct("Values", fields, rename=spelt, gc=False)
