"""Iceberg v2 under concurrent writers: merge-on-read, copy-on-write, compaction, two isolations.

Actors are writers. The catalog is one register with compare-and-swap and the object store keeps
immutable objects; together they are the variable ``table``, the committed versions, of which the
register names the last. Files that a writer has written but not committed are the writer's own.

``faithful`` identity gives every file, manifest, snapshot and metadata object a name from global
counters (``names``) and keeps the files of aborted operations (``orphans``); states that differ
in names differ. ``canonical`` identity names files after the version that commits them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.verify.checker import (
    ActionCheck,
    CompareAndSwap,
    Failure,
    Next,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.iceberg.metadata import build, draw_file_names, draw_metadata_names
from twinlake.verify.models.iceberg.operations import COW_IGNORES_DELETES, Aborted, Operations
from twinlake.verify.models.iceberg.snapshot_scan import (
    KEY,
    ROW,
    ScannedFiles,
    dangling,
    expected,
    matches,
    scan,
)
from twinlake.verify.models.iceberg.validation import Validation, checks_for, run_checks
from twinlake.verify.models.iceberg.values import (
    ABORTED,
    COMMIT,
    COMMITTED,
    IDLE,
    INSERT,
    NEVER,
    OVERWRITE_FILES,
    READ_DATA_FILES,
    ROW_DELTA,
    UPDATE,
    WRITE_DATA_FILES,
    WRITE_METADATA_FILES,
    DeleteFile,
    FileNames,
    IcebergDataFile,
    PositionDeleteFile,
    Predicate,
    Row,
    Table,
    TableVersion,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["IcebergV2"]

Orphans = tuple[IcebergDataFile | DeleteFile, ...]


@dataclass(frozen=True, kw_only=True)
class IcebergV2(Operations):
    """The Iceberg v2 model; its parameters bound what the writers may do.

    >>> from twinlake.verify import check
    >>> result = check(IcebergV2())
    >>> result.violated, len(result.trace.steps)
    ('ConsistentRead', 14)
    """

    # --- it reads -----------------------------------------------------------------------------

    @action(at=READ_DATA_FILES, frozen={"table": "scan_version"})
    def read_data_files(self, writer: Writer, table: Table) -> Iterator[Next]:
        """Scan the scan version and work out what to write."""
        found = self.scan(table[-1], writer.predicate)
        if writer.update == ROW_DELTA:
            read = self._read_for_merge_on_read(writer, table, found)
        elif writer.update == OVERWRITE_FILES:
            read = self._read_for_copy_on_write(writer, table, found)
        else:
            live = tuple(row for _, rows in found for _, row in rows)
            replaced = tuple(file.path for file, _ in found)
            read = writer._replace(replaced=replaced, new_rows=(live,))
        seen = {file.path: [row for _, row in rows] for file, rows in found}
        yield Next(read._replace(state=WRITE_DATA_FILES), arguments={"found": seen})

    def _read_for_merge_on_read(self, writer: Writer, table: Table, found: ScannedFiles) -> Writer:
        born = self._births(table)
        changed = tuple(
            (_assigned(row, writer.set_values), born.get(row[0], 0))
            for _, rows in found
            for _, row in rows
        )
        return writer._replace(
            deletes=tuple((file.path, index) for file, rows in found for index, _ in rows),
            row_history=changed,
            new_rows=(tuple(row for row, _ in changed),) if writer.sql_op == UPDATE else (),
        )

    def _read_for_copy_on_write(self, writer: Writer, table: Table, found: ScannedFiles) -> Writer:
        born = self._births(table)
        survivors = {file.path: dict(rows) for file, rows in self.scan(table[-1])}
        changed: list[tuple[Row, int]] = []
        new_rows: list[tuple[Row, ...]] = []
        for file, _ in found:
            copied: list[Row] = []
            for index, row in enumerate(file.rows):
                if index not in survivors[file.path] and self.mutant != COW_IGNORES_DELETES:
                    continue
                if not matches(row, writer.predicate):
                    copied.append(row)
                    continue
                assigned = _assigned(row, writer.set_values)
                changed.append((assigned, born.get(row[0], 0)))
                if writer.sql_op == UPDATE:
                    copied.append(assigned)
            new_rows.append(tuple(copied))
        return writer._replace(
            replaced=tuple(file.path for file, _ in found),
            row_history=tuple(changed),
            new_rows=tuple(new_rows),
        )

    def scan(self, version: TableVersion, predicate: Predicate | None = None) -> ScannedFiles:
        """The rows of a version that match, with their positions, file by file."""
        return scan(version, predicate)

    def _births(self, table: Table) -> dict[str, int]:
        """Which version inserted the row of each id: needed only where rows have an identity."""
        if self.history == KEY:
            return {}
        return {key: row[2] for key, row in expected(table, ROW).items()}

    # --- it writes files ------------------------------------------------------------------------

    @action(at=WRITE_DATA_FILES, writes=("names",))
    def write_data_files(self, writer: Writer, names: FileNames | None = None) -> Iterator[Next]:
        """Write the data files and, for merge-on-read, one delete file."""
        rows = writer.new_rows
        if writer.sql_op == INSERT:
            rows = (tuple(row for row, _ in writer.row_history),)
        data_files = tuple(IcebergDataFile("", one) for one in rows)
        yield self._written(writer, data_files, self.delete_files(writer), names)

    def _written(
        self,
        writer: Writer,
        data_files: tuple[IcebergDataFile, ...],
        delete_files: tuple[DeleteFile, ...],
        names: FileNames | None,
    ) -> Next:
        written = writer._replace(
            state=WRITE_METADATA_FILES,
            new_rows=(),
            data_files=data_files,
            delete_files=delete_files,
        )
        shared: dict[str, Hashable] = {}
        if names is not None:
            written, shared["names"] = draw_file_names(written, names)
        files = {"data files": written.data_files, "delete files": written.delete_files}
        return Next(written, shared, {key: value for key, value in files.items() if value})

    def delete_files(self, writer: Writer) -> tuple[DeleteFile, ...]:
        """The delete files that an operation writes, still without a name."""
        return (PositionDeleteFile("", writer.deletes),) if writer.update == ROW_DELTA else ()

    # --- it writes metadata, or aborts -----------------------------------------------------------

    @action(at=WRITE_METADATA_FILES, writes=("names",))
    def write_metadata_files(
        self, writer: Writer, table: Table, names: FileNames | None = None
    ) -> Iterator[Next]:
        """Refresh, validate against what was committed since the scan, write new metadata."""
        checks = self._validate(table, writer)
        if not all(check.passed for check in checks):
            return
        ready = writer._replace(state=COMMIT, base=len(table) - 1)
        shared: dict[str, Hashable] = {}
        if names is not None:
            ready, shared["names"] = draw_metadata_names(table, ready, names)
        yield Next(ready, shared, {"base version": ready.base}, checks)

    @action(
        at=WRITE_METADATA_FILES,
        writes=("aborted", "names", "orphans"),
        name="WriteMetadataFiles (abort)",
    )
    def abort(
        self,
        writer: Writer,
        table: Table,
        aborted: Aborted,
        names: FileNames | None = None,
        orphans: Orphans | None = None,
    ) -> Iterator[Next]:
        """Give the operation up because a validation fails; its files stay in the store."""
        checks = self._validate(table, writer)
        if all(check.passed for check in checks):
            return
        shared: dict[str, Hashable] = {"aborted": (aborted[0] + 1,)}
        if names is not None and orphans is not None:
            left = (*orphans, *writer.data_files, *writer.delete_files)
            shared["orphans"] = tuple(sorted(left))
            if checks[-1].name.startswith("V5"):
                # This check comes while manifests are generated: one name is already taken.
                shared["names"] = names._replace(manifests=names.manifests + 1)
        yield Next(Writer(state=ABORTED), shared, {"base version": len(table) - 1}, checks)

    def _validate(self, table: Table, writer: Writer) -> tuple[ActionCheck, ...]:
        return run_checks(table, writer, self.validations(writer))

    def validations(self, writer: Writer) -> tuple[Validation, ...]:
        """The checks that an operation runs, in order."""
        return checks_for(writer, self.isolation, self.fix)

    # --- it commits -------------------------------------------------------------------------------

    @action(
        at=COMMIT,
        writes=("table", "inserting"),
        swap=CompareAndSwap(variable="table", base="base", otherwise="retry"),
    )
    def commit(self, writer: Writer, table: Table, inserting: frozenset[str]) -> Iterator[Next]:
        """Swap the catalog's register from the base's metadata to the new one."""
        version = self.build(table, writer)
        shared: dict[str, Hashable] = {"table": (*table, version)}
        if writer.sql_op == INSERT:
            shared["inserting"] = inserting - {writer.row_history[0][0][0]}
        yield Next(Writer(state=COMMITTED), shared, {"version": len(table)})

    def build(self, table: Table, writer: Writer) -> TableVersion:
        """The version that the writer's files make on top of the newest one."""
        return build(table, writer)

    def retry(self, writer: Writer) -> Writer:
        """The swap failed: drop the attempt's metadata, refresh and validate again."""
        return writer._replace(
            state=WRITE_METADATA_FILES, base=NEVER, metadata_files=(), snapshot_id=NEVER
        )

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def sequential_sequence_numbers(self, table: Table) -> Failure | None:
        """Snapshots are numbered 1, 2, 3, ... without a gap."""
        numbers = [version.sequence_number for version in table]
        if numbers == list(range(len(table))):
            return None
        return Failure(f"sequence numbers are {numbers[1:]}")

    @always
    def no_dangling_delete_files(self, table: Table) -> Failure | None:
        """Every position of every live delete file points to a live data file."""
        left = dangling(table[-1])
        if not left:
            return None
        return Failure(
            f"version {len(table) - 1} deletes {left[0]} of a file that is gone",
            {"version": len(table) - 1, "dangling": left},
        )

    @always
    def dangling_deletes_hide_no_row(self, table: Table) -> Failure | None:
        """A position delete whose data file is gone never hides a row of the version."""
        current = table[-1]
        gone = frozenset(path for path, _ in dangling(current))
        if not gone or scan(current) == scan(current, without=gone):
            return None
        return Failure(f"a dangling delete of version {len(table) - 1} hides a row")

    @always
    def consistent_read(self, table: Table) -> Failure | None:
        """Reading a row by its id gives what the history says; old versions never change."""
        number = len(table) - 1
        wanted = expected(table, self.history)
        for col1 in self.col1_values:
            found = [
                (file, index, row)
                for file, rows in self.scan(table[-1], (col1, None, None))
                for index, row in rows
            ]
            failure = _compare(col1, number, wanted.get(col1), found)
            if failure is not None:
                return failure
        return None

    @eventually_always
    def operations_eventually_commit_or_abort(self, actors: tuple[Writer, ...]) -> bool:
        """In the end all writers are idle."""
        return all(writer.state in IDLE for writer in actors)

    @eventually_always
    def all_snapshots_committed(self, table: Table, aborted: Aborted) -> bool:
        """In the end every operation of the budget has made a snapshot or has aborted."""
        done = len(table) - 1 + aborted[0]
        return done == self.max_write_ops + self.max_compaction_ops


def _assigned(row: Row, set_values: Predicate | None) -> Row:
    if set_values is None:
        return row
    return (row[0], set_values[1] or row[1], set_values[2] or row[2])


def _compare(
    col1: str,
    version: int,
    wanted: tuple[str | None, str | None, int] | None,
    found: list[tuple[IcebergDataFile, int, Row]],
) -> Failure | None:
    fields_: dict[str, Any] = {"id": col1, "version": version}
    fields_ |= {"files": [f"{file.path} position {index}" for file, index, _ in found]}
    if len(found) > 1:
        rows = [row for _, _, row in found]
        return Failure(
            f"row {col1!r} is read {len(rows)} times in version {version}",
            fields_ | {"expected": wanted and wanted[:2], "actual": rows},
        )
    row = found[0][2] if found else None
    for column in (1, 2):
        should = wanted[column - 1] if wanted else None
        does = row[column] if row else None
        if should != does:
            return Failure(
                f"row {col1!r}, column col{column + 1}, version {version}:"
                f" expected {should}, read {does}",
                fields_ | {"column": f"col{column + 1}", "expected": should, "actual": does},
            )
    return None
