"""Format v3: deletion vectors, at most one for a data file, each holding all before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import Failure, always
from twinlake.verify.models.iceberg.metadata import build
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL
from twinlake.verify.models.iceberg.snapshot_scan import ScannedFiles, live_data, live_deletes
from twinlake.verify.models.iceberg.validation import new_delete_files
from twinlake.verify.models.iceberg.values import (
    REPLACE,
    ROW_DELTA,
    DeleteFile,
    PositionDeleteFile,
    Table,
    TableVersion,
    Writer,
)

if TYPE_CHECKING:
    from twinlake.verify.models.iceberg.validation import Validation

__all__ = ["DeletionVectors"]

#: Mutant: a vector replaces the one before it without taking over its positions.
NO_UNION = "no-union"
#: Mutant: nobody looks whether a vector was added for the same data file meanwhile.
UNCHECKED_VECTOR = "unchecked-vector"


def no_new_vector_for_my_files(table: Table, writer: Writer) -> str | None:
    """No vector was added for a data file for which I add one."""
    mine = {path for path, _ in writer.deletes}
    for entry, file in new_delete_files(table, writer, REPLACE):
        if file.positions and file.positions[0][0] in mine:
            return f"{file.path} of version {entry.sequence_number} is for {file.positions[0][0]}"
    return None


@dataclass(frozen=True, kw_only=True)
class DeletionVectors(IcebergV2):
    """The base model on a v3 table: the anomaly of position deletes cannot happen there."""

    title: ClassVar[str] = "Iceberg v3 with deletion vectors"
    mutants: ClassVar[tuple[str | None, ...]] = (None, NO_UNION, UNCHECKED_VECTOR)

    identity: str = CANONICAL

    def _read_for_merge_on_read(self, writer: Writer, table: Table, found: ScannedFiles) -> Writer:
        read = super()._read_for_merge_on_read(writer, table, found)
        if self.mutant == NO_UNION:
            return read
        touched = {path for path, _ in read.deletes}
        before = {
            position
            for _, file in live_deletes(table[-1])
            for position in file.positions
            if position[0] in touched
        }
        return read._replace(deletes=tuple(sorted(before.union(read.deletes))))

    def delete_files(self, writer: Writer) -> tuple[DeleteFile, ...]:
        """One vector for every data file with deleted rows."""
        if writer.update != ROW_DELTA:
            return ()
        paths = dict.fromkeys(path for path, _ in writer.deletes)
        return tuple(
            PositionDeleteFile("", tuple(one for one in writer.deletes if one[0] == path))
            for path in paths
        )

    def validations(self, writer: Writer) -> tuple[Validation, ...]:
        """The check on vectors is always on, whatever the statement and the isolation."""
        checks = super().validations(writer)
        if writer.update == ROW_DELTA and self.mutant != UNCHECKED_VECTOR:
            return (*checks, ("V7 no new vector for my files", no_new_vector_for_my_files))
        return checks

    def build(self, table: Table, writer: Writer) -> TableVersion:
        """A new vector takes the place of the one before it; a rewritten file takes its own."""
        gone = {path for path, _ in writer.deletes} | set(writer.replaced)
        replaced = {
            file.path
            for _, file in live_deletes(table[-1])
            if file.positions and file.positions[0][0] in gone
        }
        return build(table, writer, replaced_deletes=replaced)

    @always
    def one_vector_for_each_file(self, table: Table) -> Failure | None:
        """No data file has two vectors."""
        paths = [file.positions[0][0] for _, file in live_deletes(table[-1]) if file.positions]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        if not twice:
            return None
        return Failure(f"{twice[0]} has {paths.count(twice[0])} vectors", {"files": twice})

    @always
    def vectors_only_grow(self, table: Table) -> Failure | None:
        """What was deleted from a file stays deleted while the file is there."""
        if len(table) < 2:
            return None
        after = {file.path for _, file in live_data(table[-1])}
        now = {one for _, file in live_deletes(table[-1]) for one in file.positions}
        for _, file in live_deletes(table[-2]):
            for position in file.positions:
                if position[0] in after and position not in now:
                    return Failure(
                        f"{position} was deleted in version {len(table) - 2}"
                        f" and is back in version {len(table) - 1}"
                    )
        return None
