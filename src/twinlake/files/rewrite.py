"""Rewriting of data files by Arrow without changing a row, in whatever process it is.

For OPTIMIZE, REORG and DROP FEATURE: the files of a bin become new ones, without the rows that
deletion vectors hide, under the schema and the rules that the table has then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import msgspec

from twinlake.actions import AddFile
from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.files.data_file_reader import DataFileReader
from twinlake.files.data_file_writer import WriteTask
from twinlake.files.file_layout import row_id_fields, row_tracking_columns
from twinlake.files.file_target import FileTarget, clustering_columns
from twinlake.files.read_ahead import read_ahead
from twinlake.files.unreadable import NeedsSpark
from twinlake.schema import (
    VARIANT,
    VOID,
    Geography,
    Geometry,
    Interval,
    StructField,
    UserDefined,
    char_type,
    physical_path,
    walk_types,
)
from twinlake.storage import OnDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import RewriteRequest

__all__ = ["BinResult", "RewriteBin", "RewriteJob", "RewriteTask", "loses_char"]

_SPARK_ONLY: Final = (Geography, Geometry, Interval, UserDefined)


def _first_attempt() -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteBin:
    """Files that become new ones together, and their number in the request."""

    number: int
    files: tuple[AddFile, ...]


BinResult = tuple[AddFile, ...] | TwinlakeError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteJob:
    """What all bins of one request share; it travels to the workers."""

    name: str
    target: FileTarget
    before: Metadata
    """The metadata the files are read by; ``target`` has the one they are written by."""
    row_ids: tuple[str, str] | None
    compression: str
    in_one_piece: bool

    @classmethod
    def of(cls, request: RewriteRequest, compression: str = "snappy") -> RewriteJob:
        """What a request asks for; refused where it would change rows."""
        snapshot: Snapshot = request.snapshot
        before, after = snapshot.metadata, request.metadata
        if before.schema.names() != after.schema.names():
            raise UserError(
                Code.INVALID_ARGUMENT,
                "Files cannot be rewritten for other columns.",
                why="a rewrite moves rows without changing them",
                fix="Change the columns of the table in a commit of its own.",
                fields={"before": before.schema.names(), "after": after.schema.names()},
            )
        ids = row_tracking_columns(snapshot.metadata) if request.row_ids else None
        store = snapshot.store
        return cls(
            name=str(uuid4()),
            target=FileTarget.of(
                store,
                after,
                protocol=snapshot.protocol,
                extra=row_id_fields(after, ids) if ids is not None else (),
                clustering=clustering_columns(snapshot),
            ),
            before=before,
            row_ids=ids,
            compression=compression,
            in_one_piece=not isinstance(store, OnDisk),
        )

    def fits_arrow(self) -> bool:
        """Whether pyarrow has all types of the table, and reads what Spark reads."""
        kinds = [kind for _, kind in walk_types(self.target.metadata.schema)]
        return not any(kind in (VARIANT, VOID) or isinstance(kind, _SPARK_ONLY) for kind in kinds)

    def pads(self) -> bool:
        """Whether values are to be stored with the padding that readers gave them so far."""
        both = zip(self.before.schema, self.target.metadata.schema, strict=True)
        return any(loses_char(old, new) for old, new in both)

    def rows(self) -> DataFileReader:
        """How files are read."""
        return DataFileReader(
            store=self.target.store(),
            metadata=self.before,
            row_ids=self.row_ids,
            pads_chars=self.pads(),
        )

    def _is_partition(self, field: StructField) -> bool:
        names = {name.casefold() for name in self.before.partition_columns}
        return field.name.casefold() in names

    def placed(self, old: Sequence[AddFile], new: Sequence[AddFile]) -> tuple[AddFile, ...]:
        """The new files in the very partition of the old ones, spelled as it was."""
        texts = old[0].partition_values
        after = self.target.metadata
        values = {
            _stored_name(after, field): texts.get(_stored_name(self.before, field))
            for field in after.schema
            if self._is_partition(field)
        }
        return tuple(msgspec.structs.replace(file, partition_values=values) for file in new)


def loses_char(old: StructField, new: StructField) -> bool:
    """Whether values that readers pad so far are to be stored with their padding."""
    return char_type(old) is not None and char_type(new) is None


def _stored_name(metadata: Metadata, field: StructField) -> str:
    """The key of a partition column in the partition values of files."""
    return physical_path(metadata.schema, (field.name,), metadata.column_mapping_mode)[0]


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """What a task does with a bin: its files, an error of ours, or None where it takes Spark."""

    job: RewriteJob
    attempt: Callable[[], int] = _first_attempt
    """Which attempt of its task this is, asked where it runs."""

    def __call__(self, packed: RewriteBin) -> BinResult:
        """The files of one bin."""
        task = WriteTask(
            target=self.job.target, job=self.job.name, compression=self.job.compression
        )
        rows = self.job.rows()
        ahead = read_ahead(batch for file in packed.files for batch in rows.batches(file))
        try:
            return task.write(ahead, task=packed.number, attempt=self.attempt())
        except NeedsSpark:
            return None
        except TwinlakeError as error:
            return error
        finally:
            ahead.close()
