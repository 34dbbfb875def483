"""What the formats say each side sees of a data file, beyond what a reader at hand returns.

No reader shows all of it: PyIceberg and twinlake return dates as they are stored, while Delta
readers on Spark move those of the legacy calendar and fill up CHAR values with spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.log import read_nodes
from twinlake.schema import (
    TIMESTAMP_NTZ,
    Array,
    ColumnMappingMode,
    Map,
    Struct,
    char_lengths,
    physical_name,
    render_path,
)
from twinlake.table.twin.column_projection import projection_mismatches
from twinlake.table.twin.report import DifferenceKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.actions import AddFile, Metadata
    from twinlake.log import FooterNodes
    from twinlake.runtime import Executor
    from twinlake.schema import ColumnPath, DataType, LegacyColumn, StructField
    from twinlake.storage import Store
    from twinlake.table.twin.statistics import Remark

__all__ = ["CharColumns", "FooterCheck"]


@dataclass(frozen=True, slots=True)
class FooterCheck:
    """Compares what both sides make of a file by its footer."""

    store: Store
    executor: Executor
    name_mapping: str | None
    """The property ``schema.name-mapping.default`` of the Iceberg table."""

    def remarks(
        self, files: Iterable[tuple[Metadata, AddFile]]
    ) -> Iterator[tuple[AddFile, list[Remark]]]:
        """The differences of each file that has some; each file with the metadata it is read by."""
        known = list(files)
        nodes = read_nodes(self.store, ((add.path, add.size) for _, add in known), self.executor)
        for (metadata, add), footer in zip(known, nodes, strict=True):
            found = list(self._file(metadata, footer))
            if found:
                yield add, found

    def _file(self, metadata: Metadata, footer: FooterNodes) -> Iterator[Remark]:
        if footer.root is None:
            # Reading the rows shows what is wrong with it.
            return
        for path, delta, iceberg in projection_mismatches(footer.root, metadata, self.name_mapping):
            yield DifferenceKind.FIELD_IDS, render_path(path) if path else "", delta, iceberg
        for column in footer.legacy:
            path, kind = _logical(metadata, column)
            # Spark moves no values of this type, and none of a column that the table dropped.
            if column.is_read_differently and kind is not None and kind != TIMESTAMP_NTZ:
                yield (
                    DifferenceKind.CALENDAR,
                    render_path(path),
                    "values of the legacy calendar, which Spark moves",
                    "values as they are stored",
                )


def _logical(metadata: Metadata, column: LegacyColumn) -> tuple[ColumnPath, DataType | None]:
    """The table's column that a leaf of a file is, and its type; no type where it is none."""
    kind: DataType | None = metadata.schema
    path: list[str] = []
    parts = iter(column.path)
    for part in parts:
        match kind:
            case Struct():
                field = _field(kind, part, metadata.column_mapping_mode)
                path.append(part if field is None else field.name)
                kind = None if field is None else field.type
            case Array(element):
                # The wrapper of the list, then the element.
                next(parts, None)
                path.append("element")
                kind = element
            case Map(key, value):
                name = next(parts, "")
                path.append("key" if name == "key" else "value")
                kind = key if name == "key" else value
            case _:
                return column.path, None
    return tuple(path), kind


def _field(kind: Struct, name: str, mode: ColumnMappingMode) -> StructField | None:
    is_mapped = mode is not ColumnMappingMode.NONE
    return next((f for f in kind if (physical_name(f) if is_mapped else f.name) == name), None)


@dataclass(frozen=True, slots=True)
class CharColumns:
    """The CHAR columns of a table, whose values Delta readers on Spark fill up with spaces."""

    lengths: Mapping[ColumnPath, int]

    @classmethod
    def of(cls, metadata: Metadata) -> CharColumns:
        """The columns of one version."""
        found: dict[ColumnPath, int] = {}
        for field in metadata.schema:
            for path, length in char_lengths(field).items():
                found[field.name, *path] = length
        return cls(found)

    def unpadded(self, row: Mapping[str, Any]) -> Iterator[ColumnPath]:
        """The columns in which a row, by logical names, has a value that is too short."""
        for path, length in self.lengths.items():
            if any(len(text) < length for text in _texts(row, path)):
                yield path


_PAIR: Final = {"key": 0, "value": 1}


def _texts(value: Any, path: ColumnPath) -> Iterator[str]:
    """The texts at a path: struct values are dictionaries, maps are lists of pairs."""
    if not path:
        if isinstance(value, str):
            yield value
        return
    first, rest = path[0], path[1:]
    if isinstance(value, dict):
        yield from _texts(value.get(first), rest)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item[_PAIR[first]] if first in _PAIR else item, rest)
