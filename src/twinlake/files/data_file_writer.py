"""Arrow batches to data files, in whatever process they are: a Spark worker or the driver.

Files are written straight under their final names, which nobody looks at before the commit.
Names hold the job and the attempt, so that two attempts of one task never meet in a file.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinlake.actions import AddFile
from twinlake.errors import Code, UserError
from twinlake.files.arrow_conversion import conform_array
from twinlake.files.file_layout import FileLayout, file_tags
from twinlake.log import BatchStats, stats_json
from twinlake.schema import HIVE_NULL, Struct, render_partition_path, render_partition_value
from twinlake.schema import to_arrow as schema_to_arrow
from twinlake.storage import Durable, OnDisk, encode_path, os_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.files.file_target import FileTarget

__all__ = ["DataFileWriter", "WriteTask"]

_GROUP_BYTES: Final = 64 << 20
_GROUP_ROWS: Final = 1 << 20
_OPEN_FILES: Final = 64
# Object stores take a file in one piece, which is held in memory until it is whole.
_BUFFERED_FILE: Final = 256 << 20
# A file this close to the asked size is not worth another row group.
_FULL_ENOUGH: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """The files of one task, in a Spark worker or in the driver."""

    target: FileTarget
    job: str
    compression: str = "snappy"

    def write(
        self, batches: Iterable[pa.RecordBatch], *, task: int = 0, attempt: int = 0
    ) -> tuple[AddFile, ...]:
        """The files of these batches; if anything fails none of them is left."""
        files = DataFileWriter(
            self.target,
            stem=f"part-{task:05d}-{self.job}-{attempt}",
            compression=self.compression,
        )
        try:
            for batch in batches:
                files.add(batch)
            return files.close()
        except BaseException:
            files.abort()
            raise


class DataFileWriter:
    """The files that one task writes: one open file a partition, closed when it is full."""

    def __init__(self, target: FileTarget, *, stem: str, compression: str) -> None:
        self._target = target
        self._store = target.store()
        self._layout = FileLayout.of(target)
        self._stem = stem
        self._compression = compression
        columns = Struct(self._layout.columns)
        self._columns = schema_to_arrow(columns, field_ids=self._layout.field_ids)
        self._schema = pa.schema([self._columns.field(i) for i in self._layout.kept])
        self._dictionaries = _with_dictionary(self._schema)
        self._stats = target.stats_columns
        self._open: dict[tuple[str | None, ...], _File] = {}
        self._started: list[str] = []
        self._done: list[AddFile] = []
        limit = target.target_file_size
        if not isinstance(self._store, OnDisk):
            limit = min(limit or _BUFFERED_FILE, _BUFFERED_FILE)
        self._limit = limit
        # Bytes of a file for a byte of Arrow, learnt from the row groups written so far.
        self._ratio = 1.0

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows that have the columns of the frame, in its order."""
        with os_errors(f"Could not write data files in {self._store.url}.", self._store.url):
            self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        if batch.num_columns != len(self._columns):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The rows have {batch.num_columns} columns and the files {len(self._columns)}.",
                fix="Give the columns of the table in their order.",
            )
        if not batch.num_rows:
            return
        arrays = [
            conform_array(a, f.type) for a, f in zip(batch.columns, self._columns, strict=True)
        ]
        for i in self._layout.partitions:
            arrays[i] = _empty_as_null(arrays[i])
        data = pa.RecordBatch.from_arrays(
            [arrays[i] for i in self._layout.kept], schema=self._schema
        )
        # Not nbytes: it ends the process where Spark sends empty lists inside of others.
        a_row = max(data.get_total_buffer_size() / data.num_rows, 1.0)
        if not self._layout.partitions:
            self._write((), data, a_row)
            return
        keys = [arrays[i] for i in self._layout.partitions]
        order, ends = _groups(keys)
        if order is not None:
            data = data.take(order)
            firsts = order.take(pa.array([0, *ends[:-1]], pa.int64())).to_pylist()
        else:
            firsts = [0]
        start = 0
        for first, end in zip(firsts, ends, strict=True):
            self._write(self._texts(keys, first), data.slice(start, end - start), a_row)
            start = end

    def close(self) -> tuple[AddFile, ...]:
        """Finish all files; returns what to commit."""
        with os_errors(f"Could not write data files in {self._store.url}.", self._store.url):
            while self._open:
                self._finish(next(iter(self._open)))
        return tuple(self._done)

    def abort(self) -> None:
        """Delete everything written so far, as far as possible."""
        for file in self._open.values():
            with contextlib.suppress(Exception):
                file.abandon()
        self._open.clear()
        with contextlib.suppress(Exception):
            self._store.delete(self._started)

    def _texts(self, keys: list[pa.Array], row: int) -> tuple[str | None, ...]:
        return tuple(
            _partition_text(key[row], self._layout.columns[i])
            for key, i in zip(keys, self._layout.partitions, strict=True)
        )

    def _write(self, key: tuple[str | None, ...], data: pa.RecordBatch, a_row: float) -> None:
        """Rows of one partition; ``a_row`` is about how many bytes one of them takes."""
        while data.num_rows:
            file = self._open.pop(key, None) or self._begin(key)
            # Put back at the end: the first one is the one not used for longest.
            self._open[key] = file
            rows = data.num_rows
            if self._limit is not None:
                rows = min(file.room(a_row, self._limit), rows)
            file.pend(data.slice(0, rows), a_row)
            data = data.slice(rows)
            if file.is_due(self._limit):
                self._flush(file)
            if self._limit is not None and file.written >= self._limit * _FULL_ENOUGH:
                self._finish(key)
        if sum(file.pending_bytes for file in self._open.values()) > _GROUP_BYTES:
            self._flush(max(self._open.values(), key=lambda file: file.pending_bytes))
        if len(self._open) > _OPEN_FILES:
            self._finish(next(iter(self._open)))

    def _begin(self, key: tuple[str | None, ...]) -> _File:
        names = (self._layout.columns[i].name for i in self._layout.partitions)
        values = dict(zip(names, key, strict=True))
        name = f"{self._stem}-{len(self._started):03d}.{self._compression}.parquet"
        parts = (self._target.folder, render_partition_path(values), name)
        path = "/".join(part for part in parts if part)
        self._started.append(path)
        return _File(self, path, values)

    def _flush(self, file: _File) -> None:
        raw, written = file.flush()
        if raw:
            self._ratio = max(written / raw, 1e-3)
            for other in self._open.values():
                other.ratio = self._ratio

    def _finish(self, key: tuple[str | None, ...]) -> None:
        file = self._open.pop(key)
        try:
            self._done.append(file.finish())
        except BaseException:
            with contextlib.suppress(Exception):
                file.abandon()
            raise


class _File:
    """One file that is being written."""

    def __init__(self, files: DataFileWriter, key: str, values: Mapping[str, str | None]) -> None:
        self._files = files
        self._key = key
        self._values = dict(values)
        self._pending: list[pa.RecordBatch] = []
        self._footers: list[pq.FileMetaData] = []
        self._stats = None if files._stats is None else BatchStats(files._stats)
        self.pending_bytes = 0
        self.pending_rows = 0
        self.ratio = files._ratio
        self._sink: Any = self._open_sink()
        try:
            self._writer = self._open_writer()
        except BaseException:
            # Its first bytes found no room: whoever keeps the error must not keep the file open.
            with contextlib.suppress(OSError):
                self._sink.close()
            raise

    def _open_writer(self) -> pq.ParquetWriter:
        files = self._files
        return pq.ParquetWriter(
            self._sink,
            files._schema,
            version="2.6",
            compression=files._compression,
            use_dictionary=files._dictionaries,
            # Otherwise Arrow types are kept beside the Parquet ones and readers may differ.
            store_schema=False,
            store_decimal_as_integer=True,
            metadata_collector=self._footers,
        )

    def _open_sink(self) -> Any:
        store = self._files._store
        if not isinstance(store, OnDisk):
            return pa.BufferOutputStream()
        path = store.local_path(self._key)
        os.makedirs(path[: path.rindex("/")], exist_ok=True)  # noqa: PTH103
        return pa.OSFile(path, "wb")

    @property
    def written(self) -> int:
        """Bytes of the file so far."""
        return int(self._sink.tell())

    def room(self, a_row: float, limit: int) -> int:
        """How many rows fit before the file has about ``limit`` bytes; at least one."""
        left = (limit - self.written) / self.ratio - self.pending_bytes
        return max(int(left / a_row) + 1, 1)

    def pend(self, data: pa.RecordBatch, a_row: float) -> None:
        """Take rows into the row group to come."""
        self._pending.append(data)
        self.pending_bytes += int(data.num_rows * a_row)
        self.pending_rows += data.num_rows

    def is_due(self, limit: int | None) -> bool:
        """Whether the rows that wait make a row group."""
        if self.pending_bytes >= _GROUP_BYTES or self.pending_rows >= _GROUP_ROWS:
            return True
        return limit is not None and self.written + self.pending_bytes * self.ratio >= limit

    def flush(self) -> tuple[int, int]:
        """Write what waits as one row group; its bytes in memory and in the file."""
        if not self._pending:
            return 0, 0
        raw, before = self.pending_bytes, self.written
        table = pa.Table.from_batches(self._pending, self._files._schema)
        if self._stats is not None:
            self._stats.update(table)
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._pending, self.pending_bytes, self.pending_rows = [], 0, 0
        return raw, self.written - before

    def finish(self) -> AddFile:
        """Close the file; the action that adds it."""
        self.flush()
        self._writer.close()
        size = self.written
        store = self._files._store
        modified = int(time.time() * 1000)
        if isinstance(store, OnDisk):
            self._sink.close()
            if isinstance(store, Durable):
                store.sync(self._key)
            if (meta := store.head(self._key)) is not None:
                modified = meta.modified_ms
        else:
            store.put(self._key, self._sink.getvalue().to_pybytes())
        columns = self._files._stats
        return AddFile(
            path=encode_path(self._key),
            partition_values=self._values,
            size=size,
            modification_time=modified,
            data_change=True,
            stats=None if columns is None else stats_json(self._footers[0], columns, self._stats),
            tags=file_tags(self._files._target),
        )

    def abandon(self) -> None:
        """Close the file; it is not used."""
        self._pending = []
        try:
            self._writer.close()
        finally:
            self._sink.close()


def _groups(keys: list[pa.Array]) -> tuple[pa.Array | None, list[int]]:
    """Rows in an order that puts equal keys together, and where each group ends.

    The order is None where all rows are of one group.
    """
    codes: Any = None
    for key in keys:
        encoded = pc.dictionary_encode(key, null_encoding="encode")
        own = encoded.indices.cast(pa.int64())
        if codes is not None:
            own = pc.add(pc.multiply(codes, len(encoded.dictionary)), own)
            # Made dense again, so that many columns cannot overflow the product.
            own = pc.dictionary_encode(own).indices.cast(pa.int64())
        codes = own
    if pc.count_distinct(codes).as_py() == 1:
        return None, [len(codes)]
    order = pc.sort_indices(codes)
    runs = pc.run_end_encode(codes.take(order), run_end_type=pa.int64())
    return order, runs.run_ends.to_pylist()


def _with_dictionary(schema: pa.Schema) -> list[str]:
    """The leaf columns that may have a dictionary: all but floats and doubles.

    Spark's reader looks filters up in dictionaries bit by bit. Where all zeros of a file are
    negative it does not find 0.0 there, skips the file and loses rows that are equal to it.
    """
    sink = pa.BufferOutputStream()
    pq.ParquetWriter(sink, schema).close()
    columns = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    leaves = (columns.column(index) for index in range(len(columns)))
    return [leaf.path for leaf in leaves if leaf.physical_type not in ("FLOAT", "DOUBLE")]


def _empty_as_null(array: pa.Array) -> pa.Array:
    """An empty text or binary of a partition column as the null that the log states for it.

    Files may hold the column too, and readers of Iceberg take it from there.
    """
    if not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        return array
    empty = pc.equal(pc.binary_length(array), 0)
    if not pc.any(empty).as_py():
        return array
    return pc.if_else(empty, pa.scalar(None, array.type), array)


def _partition_text(value: pa.Scalar, field: Any) -> str | None:
    try:
        plain = value.as_py()
    except (ValueError, OverflowError) as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"A value of partition column {field.name} cannot be stored.",
            why="it is not in the range of Python's dates",
            fix="Partition values have years 1 to 9999.",
            fields={"column": field.name},
        ) from error
    text = render_partition_value(plain, field.type)
    if text == HIVE_NULL:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{HIVE_NULL} cannot be a value of partition column {field.name}.",
            why="as the name of a folder it stands for null",
            fix="Use null, or another text.",
            fields={"column": field.name},
        )
    return text
