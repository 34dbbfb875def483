"""Whether the columns of a data file have the types that the table has for their ids.

A reader goes by ids and takes for granted that the type is the column's, or one that Iceberg widens
to it. Where it is not, engines differ in what they make of the bytes: an error, or other values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.protocol import keys
from twinlake.schema import (
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
    Array,
    Decimal,
    Map,
    Struct,
    field_id,
    nested_ids,
    physical_name,
    walk_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.actions import Metadata
    from twinlake.schema import DataType, ParquetNode

__all__ = ["FileColumns"]

#: Reserved by Iceberg: the id and the last sequence number of a row.
_ROW_TRACKING: Final[Mapping[int, str]] = {
    2147483540: keys.MATERIALIZED_ROW_ID,
    2147483539: keys.MATERIALIZED_ROW_COMMIT_VERSION,
}
_FIRST_RESERVED: Final = 2147483447
_MAPS: Final = frozenset({"MAP", "MAP_KEY_VALUE"})
_DECIMALS: Final = frozenset({"INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "BYTE_ARRAY"})
_ONE_UTC: Final[Mapping[DataType, int]] = {TIMESTAMP: 1, TIMESTAMP_NTZ: 0}
#: Spark and Iceberg read both; nanoseconds lose digits.
_SECOND_DIGITS: Final = (3, 6)
_PLAIN: Final[Mapping[DataType, frozenset[tuple[str, str | None]]]] = {
    BOOLEAN: frozenset({("BOOLEAN", None)}),
    FLOAT: frozenset({("FLOAT", None)}),
    DOUBLE: frozenset({("DOUBLE", None), ("FLOAT", None)}),
    STRING: frozenset({("BYTE_ARRAY", "STRING"), ("BYTE_ARRAY", "ENUM"), ("BYTE_ARRAY", "JSON")}),
    BINARY: frozenset({("BYTE_ARRAY", None), ("BYTE_ARRAY", "BSON")}),
    DATE: frozenset({("INT32", "DATE")}),
}
_WHOLE: Final[Mapping[DataType, frozenset[str]]] = {
    BYTE: frozenset({"INT32"}),
    SHORT: frozenset({"INT32"}),
    INTEGER: frozenset({"INT32"}),
    LONG: frozenset({"INT32", "INT64"}),
}


class FileColumns:
    """The columns of a table, to hold those of its files against."""

    def __init__(self, metadata: Metadata) -> None:
        self._types = dict(_types(metadata.schema))
        self._configuration = metadata.configuration
        self._most = int(metadata.get(keys.MAX_COLUMN_ID) or 0)

    def problems(self, root: ParquetNode) -> Iterator[str]:
        """What of the schema of a file does not fit the table."""
        for path, node in walk_nodes(root):
            number = node.field_id
            if number is None:
                # Whether there has to be one is for the rules of the table's compat feature.
                continue
            shown = ".".join(path)
            if number > _FIRST_RESERVED:
                yield from self._reserved(number, node, shown)
            elif number > self._most:
                yield f"has column {shown} with id {number}, which the table has not given out"
            elif (kind := self._types.get(number)) is not None and not _fits(node, kind):
                yield f"stores column {shown} as {_shown(node)}, and the table has {kind}"

    def _reserved(self, number: int, node: ParquetNode, name: str) -> Iterator[str]:
        key = _ROW_TRACKING.get(number)
        if key is None:
            yield f"has column {name} with id {number}, which Iceberg reserves"
        elif self._configuration.get(key) != name:
            # Delta finds it by its name, and would number the rows afresh.
            yield f"has ids of rows in column {name}, where Delta readers do not look for them"
        elif not _fits(node, LONG):
            yield f"stores column {name} as {_shown(node)}, and Iceberg has {LONG}"


def _types(struct: Struct) -> Iterator[tuple[int, DataType]]:
    """The type of every field, element, key and value by its id."""
    for column in struct:
        number = field_id(column)
        if number is not None:
            yield number, column.type
        yield from _types_inside(column.type, physical_name(column), nested_ids(column))


def _types_inside(
    kind: DataType, at: str, ids: Mapping[str, int]
) -> Iterator[tuple[int, DataType]]:
    match kind:
        case Struct():
            yield from _types(kind)
            return
        case Array(element=element):
            parts = {"element": element}
        case Map(key=key, value=value):
            parts = {"key": key, "value": value}
        case _:
            return
    for part, inner in parts.items():
        here = f"{at}.{part}"
        if here in ids:
            yield ids[here], inner
        yield from _types_inside(inner, here, ids)


def _fits(node: ParquetNode, kind: DataType) -> bool:
    match kind:
        case Struct():
            return node.is_group and node.annotation is None
        case Array():
            return node.is_group and node.annotation == "LIST"
        case Map():
            return node.is_group and node.annotation in _MAPS
        case Decimal(precision=precision, scale=scale):
            return (
                node.physical_type in _DECIMALS
                and node.annotation == "DECIMAL"
                and node.parameters[0] <= precision
                and node.parameters[1] == scale
            )
    own = (node.physical_type or "", node.annotation)
    if kind in _WHOLE:
        is_signed = node.annotation is None or (
            node.annotation == "INTEGER" and node.parameters[1] == 1
        )
        return own[0] in _WHOLE[kind] and is_signed
    if kind in _ONE_UTC:
        return (
            own == ("INT64", "TIMESTAMP")
            and node.parameters[0] == _ONE_UTC[kind]
            and node.parameters[1] in _SECOND_DIGITS
        )
    # Others, such as variants, have a form that readers check themselves.
    return kind not in _PLAIN or own in _PLAIN[kind]


def _shown(node: ParquetNode) -> str:
    """A node as an error names its type.

    >>> from twinlake.schema import ParquetNode
    >>> node = ParquetNode(name="t", physical_type="INT64", annotation="TIMESTAMP", parameters=(1,))
    >>> _shown(node)
    'INT64 TIMESTAMP(1)'
    """
    words = [word for word in (node.physical_type, node.annotation) if word]
    numbers = f"({', '.join(map(str, node.parameters))})" if node.parameters else ""
    return (" ".join(words) or "a group") + numbers
