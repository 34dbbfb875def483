"""Which files an overwrite takes out: all, those of the partitions written, or by predicate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.commit import ReadSet
from twinlake.commit.plans import total_size
from twinlake.protocol import partition_zone
from twinlake.schema import parse_partition_value, physical_path
from twinlake.schema.predicates import (
    Column,
    Comparison,
    IsNull,
    Literal,
    Op,
    all_of,
    any_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import AddFile, RemoveFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr

__all__ = ["RemovedFiles", "all_files", "same_partitions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedFiles:
    """Files that go, and what had to be looked at to know."""

    files: tuple[AddFile, ...]
    reads: ReadSet

    def removes(self, now: int) -> tuple[RemoveFile, ...]:
        """The actions."""
        return tuple(file.remove(deletion_timestamp=now) for file in self.files)

    @property
    def size(self) -> int:
        """Bytes that leave the table."""
        return total_size(self.files)


def all_files(snapshot: Snapshot) -> RemovedFiles:
    """Everything there is."""
    return RemovedFiles(files=tuple(snapshot.adds()), reads=ReadSet(whole_table=True))


def same_partitions(snapshot: Snapshot, new: Iterable[AddFile]) -> RemovedFiles:
    """The files in the partitions that new files are in."""
    metadata = snapshot.metadata
    if not metadata.partition_columns:
        return all_files(snapshot)
    wanted = {_values(file, metadata) for file in new}
    files = tuple(add for add in snapshot.adds() if _values(add, metadata) in wanted)
    return RemovedFiles(
        files=files,
        reads=ReadSet(predicates=(_in_partitions(wanted, metadata),)),
    )


def _values(file: AddFile, metadata: Metadata) -> tuple[object, ...]:
    """Parsed, because two spellings of one timestamp are one partition."""
    found = []
    for name in metadata.partition_columns:
        field = metadata.schema.get(name)
        if field is not None:
            (stored,) = physical_path(metadata.schema, (name,), metadata.column_mapping_mode)
            text = file.partition_values.get(stored)
            found.append(parse_partition_value(text, field.type, zone=partition_zone(metadata)))
    return tuple(found)


def _in_partitions(partitions: set[tuple[object, ...]], metadata: Metadata) -> Expr:
    fields = [metadata.schema.get(name) for name in metadata.partition_columns]
    columns = [Column((f.name,), f.type) for f in fields if f is not None]

    def equal(column: Column, value: object) -> Expr:
        if value is None:
            return IsNull(column)
        return Comparison(Op.EQ, column, Literal(value, column.type))  # type: ignore[arg-type]

    return any_of(
        all_of(equal(column, value) for column, value in zip(columns, values, strict=True))
        for values in sorted(partitions, key=repr)
    )
