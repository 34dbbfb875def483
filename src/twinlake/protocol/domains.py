"""The metadata domains of Delta's own that twinlake gives a meaning to, as values.

A domain's configuration is JSON inside a string, which any writer may have put there. Whoever needs
one asks here, so that damage has one answer: ``CorruptTable`` with the name of the domain. Delta
Spark reads the same two shapes and fails on everything else as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from twinlake.errors import Code, CorruptTable, how_to_restore
from twinlake.schema import ColumnMappingMode, Struct, physical_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.protocol.metadata import Metadata
    from twinlake.schema import ColumnPath

__all__ = ["CLUSTERING_DOMAIN", "NO_MARK", "ROW_TRACKING_DOMAIN", "Clustering", "RowTracking"]

CLUSTERING_DOMAIN: Final = "delta.clustering"
ROW_TRACKING_DOMAIN: Final = "delta.rowTracking"
NO_MARK: Final = -1
"""The mark of a table that never handed out a row id."""

_COLUMNS: Final = "clusteringColumns"
_NAME: Final = "domainName"
_MARK: Final = "rowIdHighWaterMark"

_Part = Annotated[str, msgspec.Meta(min_length=1)]


class _Clustering(msgspec.Struct):
    # Delta Spark writes each column as a list of parts, the protocol's sample as one text.
    columns: list[Annotated[list[_Part], msgspec.Meta(min_length=1)] | _Part] = msgspec.field(
        name=_COLUMNS
    )


class _RowTracking(msgspec.Struct):
    mark: Annotated[int, msgspec.Meta(ge=NO_MARK, le=2**63 - 1)] = msgspec.field(name=_MARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clustering:
    """The columns that files are clustered by (Delta protocol, Clustered Table).

    >>> Clustering.parse('{"clusteringColumns":[["a"],["s","x"]]}').columns
    (('a',), ('s', 'x'))
    """

    columns: tuple[ColumnPath, ...] = ()
    """Paths of physical names; one that was written as a single text has one part."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What else the configuration holds; kept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "extra", MappingProxyType(dict(self.extra)))

    @classmethod
    def parse(cls, text: str) -> Clustering:
        """The configuration of the domain.

        Raises:
            CorruptTable: it is damaged.
        """
        try:
            raw = msgspec.json.decode(text)
            found = msgspec.convert(raw, _Clustering).columns
        except (msgspec.DecodeError, RecursionError) as error:
            raise _damaged_clustering(str(error) or type(error).__name__) from error
        return cls(
            columns=tuple(tuple(one) if isinstance(one, list) else (one,) for one in found),
            extra={key: value for key, value in raw.items() if key not in (_COLUMNS, _NAME)},
        )

    def render(self) -> str:
        """The configuration, as Delta Spark spells it."""
        columns = [list(path) for path in self.columns]
        return msgspec.json.encode(
            {_COLUMNS: columns, _NAME: CLUSTERING_DOMAIN, **self.extra}
        ).decode()

    def physical_paths(self, metadata: Metadata) -> tuple[ColumnPath, ...]:
        """The columns by physical path, part by part.

        Raises:
            CorruptTable: the table has no such column.
        """
        return tuple(physical for physical, _ in self._found(metadata))

    def logical_paths(self, metadata: Metadata) -> tuple[ColumnPath, ...]:
        """The columns by the names that people know.

        Raises:
            CorruptTable: the table has no such column.
        """
        return tuple(logical for _, logical in self._found(metadata))

    def _found(self, metadata: Metadata) -> list[tuple[ColumnPath, ColumnPath]]:
        if not self.columns:
            return []
        found = [(path, _find(metadata, path)) for path in self.columns]
        unknown = [".".join(path) for path, paths in found if paths is None]
        if unknown:
            raise _damaged_clustering(f"the table has no column {', '.join(unknown)}")
        return [paths for _, paths in found if paths is not None]


@dataclass(frozen=True, slots=True)
class RowTracking:
    """How far row ids were handed out (Delta protocol, Row Tracking).

    >>> RowTracking.parse('{"rowIdHighWaterMark":9}').high_water_mark
    9
    """

    high_water_mark: int = NO_MARK

    @classmethod
    def parse(cls, text: str) -> RowTracking:
        """The configuration of the domain.

        Raises:
            CorruptTable: it is damaged; starting again from 0 would hand out ids twice.
        """
        try:
            return cls(msgspec.json.decode(text, type=_RowTracking).mark)
        except (msgspec.DecodeError, RecursionError) as error:
            raise CorruptTable(
                Code.LOG_CORRUPT,
                f"The {ROW_TRACKING_DOMAIN} domain cannot be read.",
                why=str(error) or type(error).__name__,
                fix="Let the engine that wrote the domain state the mark again; no row ids are "
                "handed out until then.",
                fields={"domain": ROW_TRACKING_DOMAIN},
            ) from error

    def render(self) -> str:
        """The configuration, as Delta Spark spells it."""
        return msgspec.json.encode({_MARK: self.high_water_mark}).decode()


def _damaged_clustering(why: str) -> CorruptTable:
    return CorruptTable(
        Code.LOG_CORRUPT,
        f"The {CLUSTERING_DOMAIN} domain cannot be read.",
        why=why,
        fix=f"Set the clustering again with the engine that wrote it, or run {how_to_restore()} "
        "with an earlier version.",
        fields={"domain": CLUSTERING_DOMAIN},
    )


def _find(metadata: Metadata, path: ColumnPath) -> tuple[ColumnPath, ColumnPath] | None:
    """The physical and the logical path of a column; None if there is none."""
    found = _walk(metadata, path)
    # In a single text the parts of a path are joined, unless the dot is in a name.
    return found or (_walk(metadata, tuple(path[0].split("."))) if len(path) == 1 else None)


def _walk(metadata: Metadata, path: ColumnPath) -> tuple[ColumnPath, ColumnPath] | None:
    mapped = metadata.column_mapping_mode is not ColumnMappingMode.NONE
    kind: Any = metadata.schema
    physical: list[str] = []
    logical: list[str] = []
    for part in path:
        columns = kind if isinstance(kind, Struct) else Struct()
        for column in columns:
            name = physical_name(column) if mapped else column.name
            if name == part:
                break
        else:
            return None
        physical.append(part)
        logical.append(column.name)
        kind = column.type
    return tuple(physical), tuple(logical)
