"""Rows that a client deletes by position: delete files of format 2, vectors of format 3.

Delta has no position delete files. In format 2 the data files are rewritten without those rows, in
the same commit. In format 3 a client's vector is copied into a vector file of Delta's: VACUUM of
Delta Spark would delete a Puffin file that is named by its absolute path, and the table with it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.errors import Code, CorruptTable, UserError, how_to_set
from twinlake.log import (
    decode_payload,
    dv_key,
    inline_descriptor,
    page_sizes,
    read_dv,
    write_dv_file,
)
from twinlake.protocol import keys
from twinlake.runtime import RewriteRequest
from twinlake.table.rows import ArrowRewriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from twinlake.actions import Action, AddFile
    from twinlake.iceberg.requests import SourceFile
    from twinlake.log import Snapshot
    from twinlake.runtime import Runtime
    from twinlake.table.iceberg_commits.client_files import ClientFiles
    from twinlake.table.rows import UncommittedFiles

__all__ = ["DeletedRows", "apply_position_deletes", "copy_vectors", "read_deletes"]

_POSITION: Final = 1
_PUFFIN: Final = "PUFFIN"
_PARQUET: Final = "PARQUET"
#: Rows of a delete file that are in memory at a time, at most.
_BATCH: Final = 1 << 16
_LENGTH_SIZE: Final = 4
#: Length, magic number, number of bitmaps, and checksum.
_SMALLEST_VECTOR: Final = 20

DeletedRows = dict[str, Any]
"""Bitmaps of deleted positions by the path of the data file, as the log spells it."""


def read_deletes(
    deletes: Iterable[SourceFile], files: ClientFiles, *, by_vectors: bool
) -> DeletedRows:
    """The positions that delete files name; equality deletes are refused.

    ``by_vectors`` is for format 3, where rows are deleted by vectors only, and before it by none.
    """
    from pyroaring import BitMap64

    listed = list(deletes)
    equality = [one.path for one in listed if one.content != _POSITION]
    if equality:
        raise _refused(
            f"{len(equality)} delete files delete rows by equality, which Delta cannot say",
            "Let the writer delete rows by position or copy on write.",
        )
    wanted = _PUFFIN if by_vectors else _PARQUET
    other = [one for one in listed if one.format != wanted]
    if other:
        raise _refused(
            f"delete file {other[0].path} is of format {other[0].format}, and rows of a table of "
            f"this format version are deleted by files of format {wanted}",
            "Let the writer delete rows by copy on write.",
        )
    found: DeletedRows = {}
    left = files.limits.deleted_rows
    for one in listed:
        if by_vectors:
            positions: Mapping[str, Any] = {_target_of(one): _vector(one, files)}
        else:
            positions = _positions(one, files, left)
            left -= one.record_count
        for target, hidden in positions.items():
            # Writers spell the location of one file in more than one way.
            path = files.data_key(target)
            found[path] = found.get(path, BitMap64()) | hidden
    return found


def _target_of(file: SourceFile) -> str:
    if file.referenced_data_file is None:
        raise _refused(f"deletion vector {file.path} names no data file", "Name it.")
    return file.referenced_data_file


def _vector(file: SourceFile, files: ClientFiles) -> Any:
    """The bitmap of a ``deletion-vector-v1`` blob."""
    if file.content_offset is None or file.content_size is None:
        raise _refused(f"deletion vector {file.path} has no offset or size", "State both.")
    if not _SMALLEST_VECTOR <= file.content_size <= files.limits.unpacked_bytes:
        raise _refused(f"deletion vector {file.path} has an odd size", "Write it again.")
    blob = files.read_range(file.path, file.content_offset, file.content_size)
    payload, checksum = blob[_LENGTH_SIZE:-_LENGTH_SIZE], blob[-_LENGTH_SIZE:]
    if (
        len(blob) != file.content_size
        or struct.unpack(">I", blob[:_LENGTH_SIZE])[0] != len(payload)
        or struct.unpack(">I", checksum)[0] != zlib.crc32(payload)
    ):
        raise _refused(f"deletion vector {file.path} is damaged", "Write it again.")
    try:
        return decode_payload(payload)
    except CorruptTable as error:
        raise _refused(
            f"deletion vector {file.path} is damaged: {error.why}", "Write it again."
        ) from error


def _positions(file: SourceFile, files: ClientFiles, limit: int) -> Mapping[str, Any]:
    """The positions of a delete file of format 2, by the location of the data file."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyroaring import BitMap64

    found: dict[str, Any] = {}
    try:
        data = files.read(file.path)
        batch_rows = _rows_of_a_batch(data, files.limits.unpacked_bytes)
        # A path is often that of thousands of rows, and may be as long as a writer likes.
        with pq.ParquetFile(pa.BufferReader(data), read_dictionary=["file_path"]) as opened:
            rows = opened.metadata.num_rows
            if rows != file.record_count:
                raise ValueError(
                    f"it has {rows:,} rows, and its manifest says {file.record_count:,}"
                )
            if rows > limit:
                raise ValueError(
                    f"one commit deletes {files.limits.deleted_rows:,} rows by position at most"
                )
            for batch in opened.iter_batches(batch_rows, columns=["file_path", "pos"]):
                for path, positions in _by_file(batch):
                    found[path] = found.get(path, BitMap64()) | BitMap64(positions)
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError, OverflowError) as error:
        raise _refused(
            f"delete file {file.path} cannot be read: {error}", "Write it again."
        ) from error
    return found


def _rows_of_a_batch(data: bytes, limit: int) -> int:
    """How many rows are in memory at a time; ``ValueError`` where even one page is too much."""
    sizes = page_sizes(data)
    if sizes.total > limit:
        raise ValueError(f"it unpacks to {sizes.total:,} bytes, and the server reads {limit:,}")
    return min(_BATCH, max(limit // max(sizes.longest_value, 1), 1))


def _by_file(batch: Any) -> Iterator[tuple[str, Any]]:
    """The positions of a batch by their file; ``ValueError`` where it has none."""
    import numpy as np
    import pyarrow as pa

    paths, positions = batch.column("file_path"), batch.column("pos")
    if not pa.types.is_dictionary(paths.type) or not pa.types.is_integer(positions.type):
        raise ValueError(f"its columns are {paths.type} and {positions.type}")
    if paths.null_count or positions.null_count:
        raise ValueError("it has nulls")
    numbers, values = paths.indices.to_numpy(), positions.to_numpy()
    order = np.argsort(numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    groups = np.split(values[order], starts[1:]) if len(present) else []
    for number, hidden in zip(present.tolist(), groups, strict=True):
        path = paths.dictionary[number].as_py()
        if not isinstance(path, str):
            raise ValueError("its paths are no text")
        yield path, hidden


@dataclass(frozen=True, slots=True)
class _Target:
    """A data file that loses rows, and the positions of those it loses."""

    add: AddFile
    is_live: bool
    """Whether the table has it already; else it came with the same request."""
    hidden: Any


def _targets(
    deleted: DeletedRows, live: Mapping[str, AddFile], added: Mapping[str, AddFile]
) -> list[_Target]:
    targets, dead = [], []
    for path, hidden in deleted.items():
        if path in added:
            targets.append(_Target(added[path], False, hidden))
        elif path in live:
            targets.append(_Target(live[path], True, hidden))
        else:
            dead.append(path)
    if dead:
        raise _refused(
            f"rows are deleted from files that the table does not have any more: "
            f"{', '.join(sorted(dead)[:5])}",
            "Scan the table again, then delete the rows that are to go.",
        )
    for target in targets:
        rows = target.add.num_records
        if rows is not None and target.hidden and target.hidden.max() >= rows:
            raise _refused(
                f"a row after the last of {target.add.path} is deleted", "Write the delete again."
            )
    return targets


def apply_position_deletes(
    deleted: DeletedRows,
    live: Mapping[str, AddFile],
    added: dict[str, AddFile],
    *,
    snapshot: Snapshot,
    runtime: Runtime,
    limit: int,
    made: UncommittedFiles,
) -> list[Action]:
    """Rewrite the data files without the deleted rows; returns what the commit does beside.

    Files of ``added``, which came with the same request, are replaced in place.
    """
    if snapshot.metadata.get(keys.ICEBERG_POSITION_DELETES).strip().lower() == "refuse":
        raise _refused(
            f"the table refuses position deletes (`{keys.ICEBERG_POSITION_DELETES}`)",
            "Delete by copy on write, or run "
            f"{how_to_set(keys.ICEBERG_POSITION_DELETES, 'apply')}.",
        )
    targets = [target for target in _targets(deleted, live, added) if target.hidden]
    size = sum(target.add.size for target in targets)
    if size > limit:
        raise _refused(
            f"{size:,} bytes of data files would be rewritten, and the server rewrites {limit:,}",
            "Delete fewer rows at once, or delete by copy on write.",
        )
    now = runtime.clock.now_ms()
    actions: list[Action] = []
    hollow = [t for t in targets if len(t.hidden) < (t.add.num_records or 0)]
    request = RewriteRequest(
        snapshot=snapshot,
        bins=tuple(
            (msgspec.structs.replace(t.add, deletion_vector=inline_descriptor(t.hidden)),)
            for t in hollow
        ),
        metadata=snapshot.metadata,
        row_ids=False,
        progress=runtime.progress,
    )
    written = ArrowRewriter().rewrite(request) if hollow else []
    new = {t.add.path: list(files) for t, files in zip(hollow, written, strict=True)}
    for target in targets:
        rewritten = [
            msgspec.structs.replace(file, data_change=True) for file in new.get(target.add.path, [])
        ]
        made.add(*rewritten)
        if target.is_live:
            actions.append(target.add.remove(deletion_timestamp=now, data_change=True))
        else:
            del added[target.add.path]
        actions.extend(rewritten)
    return actions


def copy_vectors(
    deleted: DeletedRows,
    live: Mapping[str, AddFile],
    added: dict[str, AddFile],
    *,
    snapshot: Snapshot,
    runtime: Runtime,
    data_change: bool,
    made: UncommittedFiles,
) -> list[Action]:
    """Give data files the vectors of a client, in a vector file of Delta's.

    A vector must contain the one that the file has: rows do not come back.
    """
    targets = _targets(deleted, live, added)
    for target in targets:
        own = target.add.deletion_vector
        if own is not None and not read_dv(snapshot.store, own).issubset(target.hidden):
            raise _refused(
                f"the vector of {target.add.path} brings back rows that were deleted",
                "Scan the table again: a vector holds all rows that were deleted before.",
            )
    targets = [target for target in targets if target.hidden]
    if not targets:
        return []
    name = runtime.ids.uuid()
    content, descriptors = write_dv_file([target.hidden for target in targets], name)
    made.add_key(dv_key(name))
    snapshot.store.put(dv_key(name), content)
    now = runtime.clock.now_ms()
    actions: list[Action] = []
    for target, descriptor in zip(targets, descriptors, strict=True):
        masked = msgspec.structs.replace(
            target.add, deletion_vector=descriptor, data_change=data_change
        )
        if target.is_live:
            actions.append(target.add.remove(deletion_timestamp=now, data_change=data_change))
            actions.append(masked)
        else:
            added[target.add.path] = masked
    return actions


def _refused(why: str, fix: str) -> UserError:
    return UserError(
        Code.COMPAT,
        "The deletes of this commit cannot be committed.",
        why=why,
        fix=fix,
    )
