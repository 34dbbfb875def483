"""Equality deletes: writers that never scan, and what compaction must keep for their sake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import Next, action
from twinlake.verify.models.iceberg.metadata import build
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL, Started
from twinlake.verify.models.iceberg.snapshot_scan import ScannedFiles, scan
from twinlake.verify.models.iceberg.values import (
    DELETE,
    IDLE,
    INSERT,
    OVERWRITE,
    REWRITE_FILES,
    ROW_DELTA,
    WRITE_DATA_FILES,
    DeleteFile,
    EqualityDeleteFile,
    Predicate,
    Row,
    Table,
    TableVersion,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.verify.models.iceberg.validation import Validation

__all__ = ["EqualityDeletes"]

#: Mutant: an equality delete also hides rows of its own sequence number.
EQUAL_SEQUENCE = "equal-sequence"
#: Mutant: rewritten files get the new sequence number, and nobody looks at equality deletes.
UNCHECKED_REWRITE = "unchecked-rewrite"


def no_new_equality_deletes(table: Table, writer: Writer) -> str | None:
    """No equality delete was committed since the scan: it could not hide rewritten rows."""
    for version in table[writer.scan_version + 1 :]:
        if version.operation != OVERWRITE or version.deletes is None:
            continue
        for entry in version.deletes.entries:
            if (
                entry.is_live
                and isinstance(entry.file, EqualityDeleteFile)
                and entry.sequence_number > writer.scan_version
            ):
                return f"{entry.file.path} was added in version {entry.sequence_number}"
    return None


@dataclass(frozen=True, kw_only=True)
class EqualityDeletes(IcebergV2):
    """Upserts and deletes by key that write equality deletes without reading, and compaction.

    With ``starting_sequence`` a compaction gives its file the sequence number of its scan, so
    that equality deletes committed meanwhile still hide what it rewrote. Without it, it must
    abort if there are any.
    """

    title: ClassVar[str] = "Iceberg v2 with equality deletes"
    mutants: ClassVar[tuple[str | None, ...]] = (None, EQUAL_SEQUENCE, UNCHECKED_REWRITE)

    starting_sequence: bool = True
    identity: str = CANONICAL

    @action(at=IDLE, writes=("started",))
    def start_upsert_operation(
        self, _writer: Writer, table: Table, started: Started
    ) -> Iterator[Next]:
        """Replace a row by its key, whether it is there or not: nothing is read."""
        if started[0] >= self.max_write_ops:
            return
        for col1 in self.col1_values:
            for col2 in self.col2_values:
                for col3 in self.col3_values:
                    row = (col1, col2, col3)
                    opened = self._opened(INSERT, table, row)
                    yield Next(opened, {"started": (started[0] + 1, started[1])}, {"row": row})

    @action(at=IDLE, writes=("started",))
    def start_equality_delete_operation(
        self, _writer: Writer, table: Table, started: Started
    ) -> Iterator[Next]:
        """Delete by key, whether there is such a row or not: nothing is read."""
        if started[0] >= self.max_write_ops or len(table) == 1:
            return
        for col1 in self.col1_values:
            opened = self._opened(DELETE, table, (col1, "", ""))
            yield Next(opened, {"started": (started[0] + 1, started[1])}, {"id": col1})

    def _opened(self, sql_op: str, table: Table, row: Row) -> Writer:
        return Writer(
            state=WRITE_DATA_FILES,
            sql_op=sql_op,
            update=ROW_DELTA,
            scan_version=len(table) - 1,
            row_history=((row, 0),),
        )

    # Every write of this workload goes by key.
    def start_insert_operation(self) -> None:  # type: ignore[override]
        """Taken out: an upsert inserts as well."""

    def start_delete_operation(self) -> None:  # type: ignore[override]
        """Taken out: deletes go by key."""

    def start_update_operation(self) -> None:  # type: ignore[override]
        """Taken out: an upsert updates as well."""

    def delete_files(self, writer: Writer) -> tuple[DeleteFile, ...]:
        """One equality delete of the key."""
        if writer.update == REWRITE_FILES:
            return ()
        return (EqualityDeleteFile("", (writer.row_history[0][0][0],)),)

    def validations(self, writer: Writer) -> tuple[Validation, ...]:
        """A compaction that cannot keep the sequence number must look at equality deletes."""
        checks = super().validations(writer)
        unsafe = not self.starting_sequence and self.mutant != UNCHECKED_REWRITE
        if writer.update == REWRITE_FILES and unsafe:
            return (*checks, ("E no new equality deletes", no_new_equality_deletes))
        return checks

    def build(self, table: Table, writer: Writer) -> TableVersion:
        """As ever, but rewritten files may keep the sequence number of the scan."""
        keep = writer.update == REWRITE_FILES and self.starting_sequence
        return build(
            table,
            writer,
            data_sequence_number=table[writer.scan_version].sequence_number if keep else None,
        )

    def scan(self, version: TableVersion, predicate: Predicate | None = None) -> ScannedFiles:
        """Read under the rule for sequence numbers, or under its mutant."""
        return scan(version, predicate, equality_hides_equal=self.mutant == EQUAL_SEQUENCE)
