"""What an Iceberg v2 table is made of, as values: files, manifests, versions, writers.

Files are immutable and their names unique, so a value holds the file where the format holds its
path. A version is what one swap of the catalog's register makes visible: the table metadata, its
snapshot, and the history that the commit recorded.
"""

from __future__ import annotations

from typing import NamedTuple

# Where a writer is in its program.
READY = "READY"
READ_DATA_FILES = "READ_DATA_FILES"
WRITE_DATA_FILES = "WRITE_DATA_FILES"
WRITE_METADATA_FILES = "WRITE_METADATA_FILES"
COMMIT = "COMMIT"
COMMITTED = "COMMITTED"
ABORTED = "ABORTED"
IDLE = (READY, COMMITTED, ABORTED)

# Settings of the table.
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"
SERIALIZABLE, SNAPSHOT_ISOLATION = "SERIALIZABLE", "SNAPSHOT_ISOLATION"

# What a statement is, how it updates the table, and the kind of snapshot it makes.
INSERT, UPDATE, DELETE = "INSERT", "UPDATE", "DELETE"
MERGE_APPEND, ROW_DELTA = "MERGE_APPEND", "ROW_DELTA"
OVERWRITE_FILES, REWRITE_FILES = "OVERWRITE_FILES", "REWRITE_FILES"
APPEND, OVERWRITE, REPLACE, DELETE_KIND = "append", "overwrite", "replace", "delete"
NEVER = -1

# The status of a manifest entry.
ADDED, EXISTING, DELETED = "ADDED", "EXISTING", "DELETED"

#: ``(id, col2, col3)``.
Row = tuple[str, str, str]
#: One wanted value a column, or ``None`` for any; exactly one column is fixed.
Predicate = tuple[str | None, str | None, str | None]


class Partition(NamedTuple):
    """Where a file lies: the column its spec partitions by, and the value of that column."""

    column: int
    value: str


class IcebergDataFile(NamedTuple):
    """A data file; a row's position is its index."""

    path: str
    rows: tuple[Row, ...]
    partition: Partition | None = None


class PositionDeleteFile(NamedTuple):
    """A position-delete file: which positions of which data files are gone."""

    path: str
    positions: tuple[tuple[str, int], ...]
    partition: Partition | None = None


class EqualityDeleteFile(NamedTuple):
    """An equality-delete file: rows with one of these ids are gone from all older files."""

    path: str
    ids: tuple[str, ...]


DeleteFile = PositionDeleteFile | EqualityDeleteFile


class FileEntry(NamedTuple):
    """A manifest entry; the snapshot id is that of the snapshot that set the status."""

    status: str
    file: IcebergDataFile | DeleteFile
    snapshot_id: int
    sequence_number: int

    @property
    def is_live(self) -> bool:
        """Whether the file belongs to the version."""
        return self.status != DELETED


class Manifest(NamedTuple):
    """A manifest with the least sequence number it recorded when it was written."""

    path: str
    entries: tuple[FileEntry, ...]
    min_sequence_number: int


class Record(NamedTuple):
    """One line of the linearised history: this column of this row took this value.

    ``value`` is ``None`` where the row was deleted; ``born`` is the version that inserted the row
    the operation saw, which tells a re-inserted row from the one before it. Where the history goes
    by key, ``born`` says nothing.
    """

    id: str
    column: int
    value: str | None
    born: int


class TableVersion(NamedTuple):
    """A committed version: table metadata, its current snapshot, and the history it adds."""

    location: str
    sequence_number: int
    snapshot_id: int
    operation: str
    manifest_list: str
    data: Manifest
    deletes: Manifest | None
    recorded: tuple[Record, ...]
    #: The idempotency key of the commit, where commits go through a server.
    token: int = 0


#: Committed versions by number; the last one is where the catalog's register points.
Table = tuple[TableVersion, ...]

#: The table as it was just created: no snapshot.
EMPTY = TableVersion("metadata-0", 0, 0, "create", "", Manifest("", (), 0), None, ())


class FileNames(NamedTuple):
    """The names given out so far; a name is its kind and the next number of that kind."""

    #: The kinds of the data and delete files, in the order in which the store took them.
    files: tuple[str, ...] = ()
    manifests: int = 0
    manifest_lists: int = 0
    snapshots: int = 0


class Writer(NamedTuple):
    """A writer: where it is, and what it holds of the operation it runs."""

    state: str = READY
    sql_op: str | None = None
    update: str = ""
    scan_version: int = NEVER
    predicate: Predicate | None = None
    set_values: Predicate | None = None
    #: The rows the operation believes it changes, with the version that inserted each.
    row_history: tuple[tuple[Row, int], ...] = ()
    #: What the scan found: positions to delete, files to replace, rows to write a file each.
    deletes: tuple[tuple[str, int], ...] = ()
    #: The partitions of the files that the deletes point to, delete by delete.
    partitions: tuple[Partition | None, ...] = ()
    replaced: tuple[str, ...] = ()
    new_rows: tuple[tuple[Row, ...], ...] = ()
    data_files: tuple[IcebergDataFile, ...] = ()
    delete_files: tuple[DeleteFile, ...] = ()
    #: The version whose metadata the new metadata was built on.
    base: int = NEVER
    #: The names of this attempt's manifests, manifest list and metadata, and its snapshot id:
    #: given out beforehand in faithful identity, otherwise they follow from the version.
    metadata_files: tuple[str, ...] = ()
    snapshot_id: int = NEVER
    #: The idempotency key of the commit, where commits go through a server.
    token: int = 0
    #: How many swaps have failed, where there is a limit to that.
    failed_swaps: int = 0
