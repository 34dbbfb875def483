"""The rows of one version as Arrow batches: which files, which columns, which rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
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
)
from twinlake.protocol import features
from twinlake.schema.predicates import (
    Opaque,
    is_partition_only,
    parse_predicate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.schema.predicates import Expr

__all__ = ["RowScan", "exact_predicate"]

#: Larger files are streamed one after the other; smaller ones are read ahead, several at once.
_SMALL_FILE: Final = 8 << 20
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
    columns: tuple[str, ...] | None = None
    """Top-level columns, in their order; None for all."""
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
            names=self.columns,
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
        reader = self._reader
        files = self.snapshot.files_to_read(self.where)
        for is_large, some in groupby(files, lambda add: add.size > _SMALL_FILE):
            if is_large:
                for add in some:
                    yield from reader.readable_batches(add)
                continue
            for found in map_ahead(lambda add: list(reader.readable_batches(add)), some):
                yield from found

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
            names=(),
            where=self.where,
        )
        return sum(
            map_ahead(lambda add: sum(b.num_rows for b in reader.readable_batches(add)), files)
        )


def _resolved(snapshot: Snapshot, names: tuple[str, ...]) -> tuple[str, ...]:
    found = [snapshot.schema.get(name) for name in names]
    missing = [name for name, field in zip(names, found, strict=True) if field is None]
    if missing:
        raise UserError(
            Code.COLUMN_NOT_FOUND,
            f"The table has no column {listed(map(repr, missing), ', ')}.",
            why=f"Its columns are {', '.join(snapshot.schema.names())}.",
            fix="Name columns of the table; of a struct, the whole column.",
            fields={"missing": missing, "columns": list(snapshot.schema.names())},
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Column {listed(repeated, ', ')} is named more than once.",
            fix="Name each column once.",
        )
    return tuple(field.name for field in found if field is not None)
