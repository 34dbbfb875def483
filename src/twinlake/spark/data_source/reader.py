"""Reading: files packed into tasks by size, rows by the Arrow reader of ``twinlake.files``.

Filters that Spark offers skip files and row groups and drop rows; all of them are given back, so
that Spark judges each row itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from twinlake.actions import AddFile
from twinlake.errors import Code, UserError
from twinlake.files import DataFileReader
from twinlake.schema.predicates import all_of
from twinlake.spark.data_source.filters import filter_expression
from twinlake.spark.data_source.variants import with_variants

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from twinlake.log import Snapshot
    from twinlake.schema.predicates import Expr
    from twinlake.spark.data_source.options import DataSourceOptions

__all__ = ["FilePack", "FileShare", "TableReader", "packed"]

#: As ``spark.sql.files.maxPartitionBytes`` and ``openCostInBytes`` are unless somebody sets them;
#: the process that plans has no settings of the session.
_TASK_BYTES: Final = 128 << 20
_FILE_COST: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class FileShare:
    """A file, or the row groups of a large one that fall to one of several tasks."""

    file: AddFile
    share: int = 0
    of: int = 1


class FilePack(InputPartition):
    """What one task reads; the actions travel as JSON."""

    def __init__(self, shares: Sequence[FileShare]) -> None:
        super().__init__(0)
        self.shares = [(msgspec.json.encode(one.file), one.share, one.of) for one in shares]

    def __iter__(self) -> Iterator[FileShare]:
        for action, share, of in self.shares:
            yield FileShare(msgspec.json.decode(action, type=AddFile), share, of)


def packed(files: Iterable[AddFile]) -> list[FilePack]:
    """Files as tasks of about the same size; at least one, which may be empty."""
    packs: list[list[FileShare]] = [[]]
    room = _TASK_BYTES
    for file in files:
        of = -(-file.size // _TASK_BYTES) or 1
        for share in range(of):
            cost = file.size // of + _FILE_COST
            if cost > room and packs[-1]:
                packs.append([])
                room = _TASK_BYTES
            packs[-1].append(FileShare(file, share, of))
            room -= cost
    return [FilePack(pack) for pack in packs]


class TableReader(DataSourceReader):
    """The rows of one version."""

    def __init__(self, asked: DataSourceOptions, schema: StructType, version: int | None) -> None:
        snapshot = asked.open(version).snapshot
        if version is None and schema != asked.read_schema(snapshot):
            raise UserError(
                Code.SCHEMA_INVALID,
                "A table cannot be read with a schema of the reader's own.",
                why="its columns are those that its log has",
                fix="Leave the schema out, and use `select` and `cast` on the frame.",
                delta_class="DELTA_UNSUPPORTED_SCHEMA_DURING_READ",
            )
        self._snapshot: Snapshot | None = snapshot
        self._names = tuple(schema.names)
        self._arrow = to_arrow_schema(schema)
        self._where: Expr | None = None
        self._files: DataFileReader | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Skip what cannot match; Spark checks all filters again."""
        assert self._snapshot is not None
        schema = self._snapshot.schema
        found = [filter_expression(one, schema) for one in filters]
        parts = [one for one in found if one is not None]
        self._where = all_of(parts) if parts else None
        return filters

    def partitions(self) -> list[InputPartition]:
        """The tasks."""
        assert self._snapshot is not None
        return list(packed(self._snapshot.files_to_read(self._where)))

    def __getstate__(self) -> dict[str, object]:
        # The list of files stays with the plan: a task is told of its own.
        assert self._snapshot is not None
        files = DataFileReader(
            store=self._snapshot.store,
            metadata=self._snapshot.metadata,
            columns=tuple((name,) for name in self._names),
            where=self._where,
        )
        return {**self.__dict__, "_snapshot": None, "_files": files}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        assert isinstance(partition, FilePack)
        assert self._files is not None
        return self._rows(self._files, partition, self._arrow)

    @staticmethod
    def _rows(files: DataFileReader, pack: FilePack, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for one in pack:
            for part in files.readable_parts(one.file):
                if part.group % one.of == one.share:
                    for batch in part.readable_batches():
                        if batch.num_rows:
                            yield with_variants(batch, schema)
