"""Partitions: conflicts are looked for only where the operation's predicate can match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import Failure, InitialState, Next, action, always
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL
from twinlake.verify.models.iceberg.snapshot_scan import ScannedFiles, live_data, live_deletes
from twinlake.verify.models.iceberg.validation import new_delete_files, new_versions
from twinlake.verify.models.iceberg.values import (
    ADDED,
    APPEND,
    IDLE,
    INSERT,
    OVERWRITE,
    ROW_DELTA,
    WRITE_DATA_FILES,
    FileNames,
    IcebergDataFile,
    Partition,
    PositionDeleteFile,
    Row,
    Table,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.verify.models.iceberg.validation import Validation

__all__ = ["PartitionedTable"]

#: Mutant: a predicate that says nothing of the partition column is taken to match no partition.
EXCLUSIVE_PROJECTION = "exclusive-projection"
#: Mutant: an update looks for conflicts where its new value goes.
FILTER_OF_NEW_VALUE = "filter-of-new-value"
#: Mutant: the newest spec is used to judge files that were written under another one.
NEW_SPEC_ON_OLD_FILES = "new-spec-on-old-files"


@dataclass(frozen=True, kw_only=True)
class PartitionedTable(IcebergV2):
    """The base model on a table that is partitioned by one column; the spec may change once.

    ``partition_by`` and ``evolve_to`` are column indexes: 0 is the id, 1 is col2, 2 is col3.
    """

    title: ClassVar[str] = "Iceberg v2 with partitions"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        EXCLUSIVE_PROJECTION,
        FILTER_OF_NEW_VALUE,
        NEW_SPEC_ON_OLD_FILES,
    )

    partition_by: int = 1
    evolve_to: int | None = None
    identity: str = CANONICAL

    def initial(self) -> Iterator[InitialState]:
        """The empty table under its first partition spec."""
        for start in super().initial():
            yield InitialState({**start.shared, "spec": self.partition_by}, start.actors)

    @action(at=IDLE, writes=("spec",))
    def evolve_partition_spec(self, _writer: Writer, spec: int) -> Iterator[Next]:
        """Change the spec, once; files that exist keep theirs."""
        if self.evolve_to is not None and spec == self.partition_by != self.evolve_to:
            yield Next(Writer(), {"spec": self.evolve_to}, {"partition by": self.evolve_to})

    def _read_for_merge_on_read(self, writer: Writer, table: Table, found: ScannedFiles) -> Writer:
        read = super()._read_for_merge_on_read(writer, table, found)
        return read._replace(partitions=tuple(file.partition for file, rows in found for _ in rows))

    @action(at=WRITE_DATA_FILES, writes=("names",))
    def write_data_files(  # type: ignore[override]
        self, writer: Writer, spec: int, names: FileNames | None = None
    ) -> Iterator[Next]:
        """Write one file a partition, and one delete file for each partition with deletes."""
        rows = writer.new_rows
        if writer.sql_op == INSERT:
            rows = (tuple(row for row, _ in writer.row_history),)
        data_files = tuple(file for one in rows for file in _split(one, spec))
        yield self._written(writer, data_files, self.delete_files(writer), names)

    def delete_files(self, writer: Writer) -> tuple[PositionDeleteFile, ...]:
        """Position deletes, one file for every partition of the data files they point to."""
        if writer.update != ROW_DELTA:
            return ()
        by_partition: dict[Partition | None, list[tuple[str, int]]] = {}
        for position, partition in zip(writer.deletes, writer.partitions, strict=True):
            by_partition.setdefault(partition, []).append(position)
        return tuple(
            PositionDeleteFile("", tuple(positions), partition)
            for partition, positions in by_partition.items()
        )

    # --- conflicts ------------------------------------------------------------------------------

    def validations(self, writer: Writer) -> tuple[Validation, ...]:
        """V2 and V4 look only at files that may concern the operation."""
        replaced: dict[str, Validation] = {
            "V2": ("V2 no new delete files that may match", self._no_new_deletes),
            "V4": ("V4 no new data files that may match", self._no_new_data_files),
        }
        return tuple(replaced.get(one[0][:2], one) for one in super().validations(writer))

    def _no_new_deletes(self, table: Table, writer: Writer) -> str | None:
        for entry, file in new_delete_files(table, writer):
            if self._may_match(writer, file):
                return f"{file.path} was added in version {entry.sequence_number}"
        return None

    def _no_new_data_files(self, table: Table, writer: Writer) -> str | None:
        for version in new_versions(table, writer, APPEND, OVERWRITE):
            for entry in version.data.entries:
                if (
                    entry.status == ADDED
                    and isinstance(entry.file, IcebergDataFile)
                    and self._may_match(writer, entry.file)
                ):
                    return f"{entry.file.path} was added in version {version.sequence_number}"
        return None

    def _may_match(self, writer: Writer, file: IcebergDataFile | PositionDeleteFile) -> bool:
        """Whether rows that the operation's predicate matches may lie in a file's partition."""
        predicate = writer.predicate
        if predicate is None or file.partition is None:
            return True
        column = file.partition.column
        if self.mutant == NEW_SPEC_ON_OLD_FILES and self.evolve_to is not None:
            column = self.evolve_to
        wanted = predicate[column]
        if self.mutant == FILTER_OF_NEW_VALUE and writer.set_values is not None:
            wanted = writer.set_values[column] or wanted
        if wanted is None:
            return self.mutant != EXCLUSIVE_PROJECTION
        return wanted == file.partition.value

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def files_keep_to_their_partition(self, table: Table) -> Failure | None:
        """No file has a row of another partition, and no delete file mixes partitions."""
        partitions: dict[str, Partition | None] = {}
        for _, file in live_data(table[-1]):
            partitions[file.path] = file.partition
            for row in file.rows:
                if file.partition is None or row[file.partition.column] != file.partition.value:
                    return Failure(f"{file.path} of {file.partition} has {row}")
        for _, deletes in live_deletes(table[-1]):
            for path, _ in deletes.positions:
                if partitions.get(path, deletes.partition) != deletes.partition:
                    return Failure(f"{deletes.path} of {deletes.partition} points to {path}")
        return None


def _split(rows: tuple[Row, ...], spec: int) -> Iterator[IcebergDataFile]:
    by_value: dict[str, list[Row]] = {}
    for row in rows:
        by_value.setdefault(row[spec], []).append(row)
    for value, found in by_value.items():
        yield IcebergDataFile("", tuple(found), Partition(spec, value))
