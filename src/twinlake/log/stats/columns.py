"""Which columns of a table get file statistics, by Delta's rules.

The first 32 leaf columns outside the partitioning, or those the table names. Members of structs
are leaves; an array, a map or a variant is one leaf, of which only nulls are counted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import UserError
from twinlake.protocol import features, keys, property_value
from twinlake.schema import (
    COLLATIONS_KEY,
    VARIANT,
    Array,
    ColumnMappingMode,
    ColumnPath,
    DataType,
    Decimal,
    Map,
    Primitive,
    Struct,
    StructField,
    parse_path,
    physical_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.protocol import Metadata, Protocol

__all__ = ["PREFIX_LENGTH", "StatsColumn", "StatsColumns"]

#: How many characters of a string a bound keeps.
PREFIX_LENGTH: Final = 32

_LISTED: Final = re.compile(r"(?:`(?:[^`]|``)*`|[^,`])+")
_ORDERED: Final = frozenset(
    {
        "string",
        "long",
        "integer",
        "short",
        "byte",
        "float",
        "double",
        "date",
        "timestamp",
        "timestamp_ntz",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsColumn:
    """One leaf with statistics."""

    path: ColumnPath
    """Physical names from the root."""
    type: DataType
    ordered: bool
    """Whether the log states its smallest and largest value."""

    @property
    def is_group(self) -> bool:
        """Whether files spread it over several Parquet columns."""
        return isinstance(self.type, Array | Map) or self.type == VARIANT


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsColumns:
    """The leaves that get statistics, in schema order; small and picklable.

    >>> from twinlake.protocol import Metadata
    >>> from twinlake.schema import parse_ddl
    >>> metadata = Metadata().with_schema(parse_ddl("a INT, s STRUCT<b: STRING, c: ARRAY<INT>>"))
    >>> [(column.path, column.ordered) for column in StatsColumns.of(metadata).columns]
    [(('a',), True), (('s', 'b'), True), (('s', 'c'), False)]
    """

    columns: tuple[StatsColumn, ...]
    prefix_length: int = PREFIX_LENGTH
    states_tightness: bool = False
    """Whether files say ``tightBounds``, as they do where deletion vectors are possible."""
    by_id: bool = False
    """Whether files are read by field id, so that a missing name does not mean a missing column."""

    @classmethod
    def of(
        cls,
        metadata: Metadata,
        protocol: Protocol | None = None,
        *,
        clustering: tuple[ColumnPath, ...] = (),
        prefix_length: int = PREFIX_LENGTH,
    ) -> StatsColumns:
        """The columns of a table; ``clustering`` are physical paths that need statistics too."""
        mode = metadata.column_mapping_mode
        partitioned = {name.casefold() for name in metadata.partition_columns}
        data = Struct(tuple(f for f in metadata.schema if f.name.casefold() not in partitioned))
        leaves = list(_leaves(data, mode is not ColumnMappingMode.NONE, (), ()))
        named = _named(metadata)
        if named is not None:
            chosen = {column.path for logical, column in leaves if _is_below(logical, named)}
        else:
            limit = property_value(metadata, keys.DATA_SKIPPING_NUM_INDEXED_COLS)
            kept = leaves if limit < 0 else leaves[:limit]
            chosen = {column.path for _, column in kept}
        for _, column in leaves:
            if any(column.path[: len(path)] == tuple(path) for path in clustering):
                chosen.add(column.path)
        return cls(
            columns=tuple(column for _, column in leaves if column.path in chosen),
            prefix_length=prefix_length,
            states_tightness=protocol is not None
            and protocol.is_supported(features.DELETION_VECTORS),
            by_id=mode is ColumnMappingMode.ID,
        )


def _leaves(
    kind: Struct, mapped: bool, logical: ColumnPath, physical: ColumnPath
) -> Iterator[tuple[ColumnPath, StatsColumn]]:
    for field in kind:
        own = (*logical, field.name)
        path = (*physical, physical_name(field) if mapped else field.name)
        if isinstance(field.type, Struct):
            yield from _leaves(field.type, mapped, own, path)
        else:
            yield own, StatsColumn(path=path, type=field.type, ordered=_is_ordered(field))


def _is_ordered(field: StructField) -> bool:
    match field.type:
        case Primitive("string"):
            # Footers know one order of strings; what a collation makes of it is another.
            return COLLATIONS_KEY not in field.metadata
        case Primitive(name):
            return name in _ORDERED
        case kind:
            return isinstance(kind, Decimal)


def _named(metadata: Metadata) -> tuple[ColumnPath, ...] | None:
    """The logical paths the table names, folded, or None if it names none."""
    text = metadata.configuration.get(keys.DATA_SKIPPING_STATS_COLUMNS)
    if text is None:
        return None
    paths = []
    for item in (part.strip() for part in _LISTED.findall(text)):
        if not item:
            continue
        try:
            paths.append(_folded(parse_path(item)))
        except UserError:
            # It was checked when it was set; a name nobody can read stands for no column.
            continue
    return tuple(paths)


def _is_below(path: ColumnPath, named: tuple[ColumnPath, ...]) -> bool:
    own = _folded(path)
    return any(own[: len(name)] == name for name in named)


def _folded(path: ColumnPath) -> ColumnPath:
    return tuple(part.casefold() for part in path)
