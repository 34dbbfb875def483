"""The rows of one version as Arrow batches: which files, which columns, which rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import Code, UserError, listed
from twinlake.files import (
    ROW_COMMIT_VERSION,
    ROW_ID,
    DataFileReader,
    map_ahead,
    row_tracking_columns,
    stream_ahead,
)
from twinlake.protocol import features
from twinlake.schema import Struct, parse_path, resolve_path, type_at
from twinlake.schema.predicates import (
    Opaque,
    is_partition_only,
    parse_predicate,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.schema import ColumnPath
    from twinlake.schema.predicates import Expr

__all__ = ["RowScan", "exact_predicate"]

#: Smaller files are read by one thread each, which opens them; of larger ones each row group is.
_SMALL_FILE: Final = 8 << 20
#: So much waits to be used, however large row groups are. Memory takes about three times as much.
_AHEAD_BYTES: Final = 8 << 20
#: What users see of row tracking; Delta Spark has the two as fields of ``_metadata``.
_SHOWN: Final = {ROW_ID: "_row_id", ROW_COMMIT_VERSION: "_row_commit_version"}


def exact_predicate(text: str, snapshot: Snapshot) -> Expr:
    """The predicate, if rows can be judged by it exactly; one that takes Spark is refused."""
    expr = parse_predicate(text, snapshot.schema)
    opaque = [node.sql for node in expr.walk() if isinstance(node, Opaque)]
    if opaque:
        raise UserError(
            Code.PREDICATE_INVALID,
            f"Only Spark can evaluate {listed(opaque)}.",
            why="The predicate uses a function or a form that is not evaluated without Spark.",
            fix="Use comparisons, IN, LIKE 'prefix%', IS NULL, AND, OR and NOT, or run "
            "`twinlake.spark.scan(spark, path, where=...)`.",
            fields={"parts": opaque},
        )
    return expr


@dataclass(frozen=True, kw_only=True)
class RowScan:
    """Rows of a version, read when they are asked for."""

    snapshot: Snapshot
    columns: tuple[ColumnPath, ...] | None = None
    """Columns, or fields of structs, in their order; None for all."""
    where: Expr | None = None
    row_ids: bool = False

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        *,
        columns: tuple[str, ...] | None,
        where: str | None,
        row_ids: bool = False,
    ) -> RowScan:
        """The scan that arguments of users ask for."""
        if row_ids and not snapshot.protocol.is_supported(features.ROW_TRACKING):
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The table has no row ids.",
                why="It does not have the table feature rowTracking.",
                fix="Leave `row_ids=True` out, or set `delta.enableRowTracking` first.",
            )
        return cls(
            snapshot=snapshot,
            columns=None if columns is None else _resolved(snapshot, columns),
            where=None if where is None else exact_predicate(where, snapshot),
            row_ids=row_ids,
        )

    @cached_property
    def _reader(self) -> DataFileReader:
        return DataFileReader(
            store=self.snapshot.store,
            metadata=self.snapshot.metadata,
            columns=self.columns,
            where=self.where,
            row_ids=row_tracking_columns(self.snapshot.metadata) if self.row_ids else None,
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the batches."""
        return pa.schema([f.with_name(_SHOWN.get(f.name, f.name)) for f in self._reader.schema])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in the order of the files in the log and of the rows in them."""
        for batch in self._batches():
            if batch.num_rows:
                yield batch.rename_columns(self.schema.names) if self.row_ids else batch

    def _batches(self) -> Iterator[pa.RecordBatch]:
        files = self.snapshot.files_to_read(self.where)
        parts = (part for add in files for part in self._parts(add))
        return stream_ahead(parts, size=lambda batch: batch.nbytes, budget=_AHEAD_BYTES)

    def _parts(self, add: AddFile) -> Iterator[Callable[[], Iterator[pa.RecordBatch]]]:
        """What can be read at once of a file: all of a small one, else each row group."""
        if add.size <= _SMALL_FILE:
            yield lambda: self._reader.readable_batches(add)
            return
        for part in self._reader.readable_parts(add):
            yield part.readable_batches

    def limited(self, rows: int | None) -> Iterator[pa.RecordBatch]:
        """The first rows; no file is opened after enough of them are there."""
        if rows is None:
            yield from self.batches()
            return
        left = rows
        for batch in self.batches() if rows else ():
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return

    def count(self) -> int:
        """How many rows there are; files are only opened where the log does not know."""
        snapshot, where = self.snapshot, self.where
        exact = where is None or is_partition_only(where, snapshot.metadata.partition_columns)
        files = snapshot.files(where)
        hidden = pc.fill_null(pc.struct_field(files["deletion_vector"], "cardinality"), 0)
        known = pc.subtract(files["num_records"], hidden)
        if exact and not known.null_count:
            return pc.sum(known).as_py() or 0
        return self._count_rows(snapshot.files_to_read(where))

    def _count_rows(self, files: Iterator[AddFile]) -> int:
        reader = DataFileReader(
            store=self.snapshot.store,
            metadata=self.snapshot.metadata,
            columns=(),
            where=self.where,
        )
        return sum(
            map_ahead(lambda add: sum(b.num_rows for b in reader.readable_batches(add)), files)
        )


def _resolved(snapshot: Snapshot, names: tuple[str, ...]) -> tuple[ColumnPath, ...]:
    schema = snapshot.schema
    found = [_path(schema, name) for name in names]
    missing = [name for name, path in zip(names, found, strict=True) if path is None]
    if missing:
        raise UserError(
            Code.COLUMN_NOT_FOUND,
            f"The table has no column {listed(map(repr, missing), ', ')}.",
            why=f"Its columns are {', '.join(schema.names())}.",
            fix="Name columns of the table, or fields of structs with a dot between the names.",
            fields={"missing": missing, "columns": list(schema.names())},
        )
    paths = tuple(path for path in found if path is not None)
    repeated = sorted(
        {
            name
            for number, (name, path) in enumerate(zip(names, paths, strict=True))
            if any(path[: len(one)] == one for n, one in enumerate(paths) if n != number)
        }
    )
    if repeated:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Column {listed(repeated, ', ')} is named more than once.",
            fix="Name each column once: all of a struct, or fields of it.",
        )
    return paths


def _path(schema: Struct, name: str) -> ColumnPath | None:
    """A column of that name, else the field of a struct; None if there is neither."""
    column = schema.get(name)
    if column is not None:
        return (column.name,)
    try:
        path = resolve_path(schema, parse_path(name))
    except UserError:
        return None
    # Below arrays and maps nothing can be chosen.
    parents = (type_at(schema, path[:depth]) for depth in range(len(path)))
    return path if all(isinstance(kind, Struct) for kind in parents) else None
