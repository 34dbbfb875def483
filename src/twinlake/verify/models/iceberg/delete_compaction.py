"""Compaction of delete files: many position-delete files become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import Failure, Next, action, always, eventually_always
from twinlake.verify.models.iceberg.metadata import build
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL, Aborted, Started
from twinlake.verify.models.iceberg.snapshot_scan import live_data, live_deletes, scan
from twinlake.verify.models.iceberg.values import (
    IDLE,
    READ_DATA_FILES,
    REPLACE,
    WRITE_DATA_FILES,
    DeleteFile,
    PositionDeleteFile,
    Table,
    TableVersion,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.verify.models.iceberg.validation import Validation

__all__ = ["DeleteFileCompaction"]

#: Not mutants but controls: the result gets the new sequence number; entries are judged dangling
#: at the scan. Both must be harmless, since a position delete names its file and paths never
#: come back.
NEW_SEQUENCE, DROPS_AT_SCAN = "new-sequence", "drops-at-scan"
#: Mutant: replaced delete files are not looked for again, and all delete files are replaced.
LOSES_DELETES = "loses-deletes"

REWRITE_DELETES = "REWRITE_DELETES"


def replaced_deletes_are_live(table: Table, writer: Writer) -> str | None:
    """V5 for delete files: every delete file I replace is live in the version I build on."""
    live = {file.path for _, file in live_deletes(table[-1])}
    for path in writer.replaced:
        if path not in live:
            return f"{path} is not live in version {len(table) - 1}"
    return None


@dataclass(frozen=True, kw_only=True)
class DeleteFileCompaction(IcebergV2):
    """The base model with an operation that merges delete files and drops what dangles."""

    title: ClassVar[str] = "Iceberg v2 with compaction of delete files"
    mutants: ClassVar[tuple[str | None, ...]] = (None, NEW_SEQUENCE, DROPS_AT_SCAN, LOSES_DELETES)

    max_delete_compactions: int = 1
    identity: str = CANONICAL

    @action(at=IDLE, writes=("started",))
    def start_delete_file_compaction(
        self, _writer: Writer, table: Table, started: Started
    ) -> Iterator[Next]:
        """Rewrite the delete files of the newest version, if it has any."""
        budget = self.max_compaction_ops + self.max_delete_compactions
        if started[1] < budget and any(True for _ in live_deletes(table[-1])):
            opened = Writer(
                state=READ_DATA_FILES, update=REWRITE_DELETES, scan_version=len(table) - 1
            )
            yield Next(opened, {"started": (started[0], started[1] + 1)})

    @action(at=READ_DATA_FILES, frozen={"table": "scan_version"})
    def read_data_files(self, writer: Writer, table: Table) -> Iterator[Next]:
        """Read the delete files of the scan version."""
        if writer.update != REWRITE_DELETES:
            yield from super().read_data_files(writer, table)
            return
        found = [file for _, file in live_deletes(table[-1])]
        positions = dict.fromkeys(one for file in found for one in file.positions)
        if self.mutant == DROPS_AT_SCAN:
            positions = _not_dangling(positions, table[-1])
        read = writer._replace(
            state=WRITE_DATA_FILES,
            replaced=tuple(file.path for file in found),
            deletes=tuple(positions),
        )
        yield Next(read, arguments={"delete files": read.replaced})

    def delete_files(self, writer: Writer) -> tuple[DeleteFile, ...]:
        """One delete file with everything that was read."""
        if writer.update == REWRITE_DELETES:
            return (PositionDeleteFile("", writer.deletes),)
        return super().delete_files(writer)

    def validations(self, writer: Writer) -> tuple[Validation, ...]:
        """A rewrite of delete files needs no check but that they are still there."""
        if writer.update != REWRITE_DELETES:
            return super().validations(writer)
        if self.mutant == LOSES_DELETES:
            return ()
        return (("V5 replaced delete files are live", replaced_deletes_are_live),)

    def build(self, table: Table, writer: Writer) -> TableVersion:
        """Replace the delete files; what dangles in the version built on is left out."""
        if writer.update != REWRITE_DELETES:
            return super().build(table, writer)
        replaced = set(writer.replaced)
        sequence = max(
            (
                entry.sequence_number
                for entry, file in live_deletes(table[-1])
                if file.path in replaced
            ),
            default=len(table),
        )
        if self.mutant == LOSES_DELETES:
            replaced = {file.path for _, file in live_deletes(table[-1])}
        positions = writer.deletes
        if self.mutant != DROPS_AT_SCAN:
            positions = tuple(_not_dangling(dict.fromkeys(positions), table[-1]))
        merged = tuple(
            file._replace(positions=positions)  # type: ignore[call-arg]
            for file in writer.delete_files
        )
        version = build(
            table,
            writer._replace(delete_files=merged, replaced=()),
            delete_sequence_number=None if self.mutant == NEW_SEQUENCE else sequence,
            replaced_deletes=replaced,
        )
        return version._replace(operation=REPLACE)

    @eventually_always
    def all_snapshots_committed(self, table: Table, aborted: Aborted) -> bool:
        """As ever; rewrites of delete files may find nothing to rewrite and then never start."""
        done = len(table) - 1 + aborted[0]
        return self.max_write_ops + self.max_compaction_ops <= done

    @always
    def rewrites_change_nothing(self, table: Table) -> Failure | None:
        """A version made by a rewrite reads like the one before it."""
        if len(table) < 2 or table[-1].operation != REPLACE:
            return None
        before, after = (
            sorted(row for _, rows in scan(version) for _, row in rows) for version in table[-2:]
        )
        if before == after:
            return None
        return Failure(f"version {len(table) - 1} reads {after}, the one before it {before}")


def _not_dangling(
    positions: dict[tuple[str, int], None], version: TableVersion
) -> dict[tuple[str, int], None]:
    live = {file.path for _, file in live_data(version)}
    return {one: None for one in positions if one[0] in live}
