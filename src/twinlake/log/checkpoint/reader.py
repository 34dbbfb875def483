"""Checkpoints of every kind into table state.

V1 (classic, multi-part) and V2 (classic or UUID name, Parquet or JSON, with or without sidecars)
come out the same. A column that is missing means null; statistics may be there as JSON, as a
struct, as both or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinlake.actions import (
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    SidecarFile,
    decode_action,
)
from twinlake.errors import Code, CorruptTable, StorageError, TwinlakeError
from twinlake.log.columns import ADD_SCHEMA, REMOVE_SCHEMA
from twinlake.log.commit_decoder import decode_commit
from twinlake.log.footer.thrift import column_chunks
from twinlake.log.names import SIDECAR_FOLDER
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.log.reconcile import Reconciled, reconciled_file
from twinlake.storage import OnDisk, decode_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from twinlake.log.footer.thrift import Chunk
    from twinlake.log.listing import Checkpoint
    from twinlake.storage import Store

__all__ = ["CheckpointState", "open_parquet", "read_checkpoint", "read_files", "read_sidecars"]

_STATE_COLUMNS: Final = (
    "protocol",
    "metaData",
    "txn",
    "domainMetadata",
    "checkpointMetadata",
    "sidecar",
)
_BATCH_ROWS: Final = 1 << 14
# By default whole column chunks are read at once, and some writers make one row group of it all.
_READ_AHEAD: Final = 1 << 20


@dataclass(slots=True)
class CheckpointState:
    """What a checkpoint holds."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    set_transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    checkpoint_metadata: CheckpointMetadata | None = None
    sidecars: list[SidecarFile] = field(default_factory=list)
    adds: list[pa.RecordBatch] = field(default_factory=list)
    removes: list[pa.RecordBatch] = field(default_factory=list)


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    if not batches:
        return schema.empty_table()
    tables = [pa.Table.from_batches([b]) for b in batches]
    # Sidecars may be older than the newest schema, and so may their parsed statistics.
    return pa.concat_tables(tables, promote_options="permissive")


def read_checkpoint(store: Store, checkpoint: Checkpoint) -> CheckpointState:
    """What a checkpoint says besides files; the files are left for ``read_files``.

    Raises:
        CorruptTable: a file is missing, damaged, or lacks what a checkpoint must hold.
    """
    state = _read_top(store, checkpoint)
    for sidecar in state.sidecars:
        # A missing sidecar is found out here, while an older checkpoint can still stand in.
        key = sidecar_key(sidecar.path)
        if store.head(key) is None:
            raise _corrupt(key, "the sidecar is missing")
    if state.protocol is None or state.metadata is None:
        missing = "protocol" if state.protocol is None else "metaData"
        raise _corrupt(checkpoint.files[0].key, f"it holds no {missing} action")
    return state


def _read_top(store: Store, checkpoint: Checkpoint) -> CheckpointState:
    state = CheckpointState()
    for part in checkpoint.files:
        with _explained(part.key):
            if part.key.endswith(".json"):
                _read_json(store, part.key, checkpoint.version, state)
            else:
                with open_parquet(store, part.key) as parquet:
                    _read_state(parquet, state)
    return state


def read_files(
    store: Store,
    checkpoint: Checkpoint,
    state: CheckpointState,
    *,
    typed: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> Reconciled:
    """The file actions of a checkpoint, from its own files or its sidecars.

    ``typed`` is applied to every batch of adds as it is read, so that what it drops is never held
    for the whole table.
    """
    make = typed or (lambda batch: batch)
    adds = [make(batch) for batch in state.adds]
    removes = list(state.removes)
    keys = [sidecar_key(sidecar.path) for sidecar in state.sidecars]
    for key in [*(f.key for f in checkpoint.files if f.key.endswith(".parquet")), *keys]:
        with _explained(key), open_parquet(store, key) as parquet:
            filled = _filled(parquet)
            if "add" in filled:
                wanted = _leaves(parquet, "add", ADD_FIELDS, skip_text=typed is not None)
                for rows, present in _rows_with(parquet, "add", wanted):
                    batch = make(_add_columns(rows, present))
                    # Last, when the text of the statistics is gone: filtering copies what it keeps.
                    adds.append(batch.filter(present) if present.false_count else batch)
            if "remove" in filled:
                wanted = _leaves(parquet, "remove", REMOVE_FIELDS)
                for rows, present in _rows_with(parquet, "remove", wanted):
                    removes.append(_remove_columns(rows.filter(present)))
    with _explained(checkpoint.files[0].key):
        paths = CanonicalPaths.of(store.url)
        return reconciled_file(_table(adds, ADD_SCHEMA), _table(removes, REMOVE_SCHEMA), paths)


def sidecar_key(path: str) -> str:
    """Where a sidecar is: by bare name in its folder; any other place is refused."""
    name = decode_path(path)
    prefix, _, base = name.rpartition("/")
    if base in ("", ".", "..") or (prefix and not prefix.endswith(SIDECAR_FOLDER)):
        raise CorruptTable(
            Code.PATH_UNSAFE,
            f"A checkpoint names a sidecar outside {SIDECAR_FOLDER}: {path}",
            why="sidecars live in the log folder of their own table",
            fix="Write a new checkpoint with `Table.open(PATH, version=N).checkpoint()` "
            "from a version that can be read.",
            fields={"path": path},
        )
    return f"{SIDECAR_FOLDER}/{base}"


def is_v2_checkpoint(store: Store, checkpoint: Checkpoint) -> bool:
    """Whether the checkpoint follows the V2 specification, whatever its name."""
    return _read_top(store, checkpoint).checkpoint_metadata is not None


def read_sidecars(store: Store, checkpoint: Checkpoint) -> set[str]:
    """The keys of the sidecars a checkpoint refers to (for cleanup)."""
    return {sidecar_key(s.path) for s in _read_top(store, checkpoint).sidecars}


class _Parquet(pq.ParquetFile):  # type: ignore[misc]
    """A Parquet file that knows what its columns hold."""

    chunks: tuple[Chunk, ...] = ()


def open_parquet(store: Store, key: str) -> _Parquet:
    """The object as a Parquet file: by path where it is local, else from memory."""
    source: Any
    if isinstance(store, OnDisk):
        meta = store.head(key)
        chunks = column_chunks(meta.size if meta is not None else 0, partial(store.read_range, key))
        source = store.local_path(key)
    else:
        data = store.read(key)
        chunks = column_chunks(len(data), lambda start, length: data[start : start + length])
        source = pa.BufferReader(data)
    opened = _Parquet(source, buffer_size=_READ_AHEAD, pre_buffer=False)
    opened.chunks = chunks
    return opened


class _explained:
    """Turns whatever a damaged file makes pyarrow raise into one clear error."""

    def __init__(self, key: str) -> None:
        self._key = key

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, CorruptTable) and error.code == Code.LOG_CORRUPT:
            # A JSON checkpoint is read as a commit is; here it is not the commits that are damaged.
            raise _corrupt(self._key, error.why) from error
        missing = isinstance(error, StorageError) and error.code == Code.STORAGE_NOT_FOUND
        if error is None or (isinstance(error, TwinlakeError) and not missing):
            return
        damaged = (
            pa.ArrowException,
            OSError,
            ValueError,
            LookupError,
            TypeError,
            ArithmeticError,
            MemoryError,
            RecursionError,
        )
        if isinstance(error, (*damaged, msgspec.DecodeError, StorageError)):
            raise _corrupt(self._key, str(error).splitlines()[0] if str(error) else "") from error


def _corrupt(key: str, why: str) -> CorruptTable:
    return CorruptTable(
        Code.CHECKPOINT_CORRUPT,
        f"The checkpoint file {key} cannot be read.",
        why=why or "it is damaged",
        fix="Delete the checkpoint if the commits it stands for are still there; else "
        "restore it from a backup.",
        fields={"file": key},
    )


def _read_json(store: Store, key: str, version: int, state: CheckpointState) -> None:
    data = store.read(key)
    columns = decode_commit(data, version, key)
    state.protocol = columns.protocol
    state.metadata = columns.metadata
    state.set_transactions.update(columns.set_transactions)
    state.domains.update({n: d for n, d in columns.domains.items() if not d.removed})
    state.adds.extend(columns.adds)
    state.removes.extend(columns.removes)
    for line in data.split(b"\n"):
        for name in ("checkpointMetadata", "sidecar"):
            # The name of an application or a domain may be the same word.
            if f'"{name}"'.encode() in line:
                found = msgspec.json.decode(line).get(name)
                if found is not None:
                    _keep(state, decode_action(name, found))


def _filled(parquet: _Parquet) -> set[str]:
    """The top-level columns that hold anything, as far as the footer can tell."""
    # Values inside lists and maps outnumber rows, so only an exact count of nulls is proof.
    return {
        chunk.path[0]
        for chunk in parquet.chunks
        if chunk.nulls is None or chunk.nulls < chunk.values
    }


def _read_state(parquet: _Parquet, state: CheckpointState) -> None:
    filled = _filled(parquet)
    names = [name for name in _STATE_COLUMNS if name in filled]
    if not names:
        return
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=names):
        for name in names:
            column = batch.column(name)
            if column.null_count == len(column):
                continue
            for value in column.drop_null().to_pylist(maps_as_pydicts="lossy"):
                _keep(state, decode_action(name, _without_nulls(value)))


def _without_nulls(value: Any) -> Any:
    # Checkpoints spell an absent field as null; a null inside a map is data and stays.
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _keep(state: CheckpointState, action: Any) -> None:
    match action:
        case Protocol():
            state.protocol = action
        case Metadata():
            state.metadata = action
        case SetTransaction():
            state.set_transactions[action.app_id] = action
        case DomainMetadata() if not action.removed:
            state.domains[action.domain] = action
        case CheckpointMetadata():
            state.checkpoint_metadata = action
        case SidecarFile():
            state.sidecars.append(action)
        case _:
            pass


ADD_FIELDS: Final = {
    "path": "path",
    "partitionValues": "partition_values",
    "size": "size",
    "modificationTime": "modification_time",
    "dataChange": "data_change",
    "stats": "stats",
    "tags": "tags",
    "deletionVector": "deletion_vector",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
    "clusteringProvider": "clustering_provider",
    "stats_parsed": "stats_parsed",
}
REMOVE_FIELDS: Final = {
    "path": "path",
    "dataChange": "data_change",
    "deletionTimestamp": "deletion_timestamp",
    "extendedFileMetadata": "extended_file_metadata",
    "partitionValues": "partition_values",
    "size": "size",
    "deletionVector": "deletion_vector",
    "baseRowId": "base_row_id",
    "defaultRowCommitVersion": "default_row_commit_version",
}
DV_FIELDS: Final = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


def _leaves(
    parquet: _Parquet, name: str, fields: Mapping[str, str], *, skip_text: bool = False
) -> list[str]:
    present = {f.name for f in parquet.schema_arrow.field(name).type if f.name in fields}
    if skip_text and "stats_parsed" in present and _is_parsed(parquet):
        present.discard("stats")
    return [f"{name}.{field}" for field in fields if field in present]


def _is_parsed(parquet: _Parquet) -> bool:
    """Whether every file has its statistics as a struct, by the footer's null counts."""
    nulls: dict[tuple[str, ...], int] = {}
    for chunk in parquet.chunks:
        if chunk.path in (("add", "path"), ("add", "stats_parsed", "numRecords")):
            if chunk.nulls is None:
                return False
            nulls[chunk.path] = nulls.get(chunk.path, 0) + chunk.nulls
    return len(nulls) == 2 and len(set(nulls.values())) == 1


def _rows_with(
    parquet: pq.ParquetFile, name: str, columns: list[str]
) -> Iterator[tuple[pa.StructArray, pa.BooleanArray]]:
    """Batches of one kind of action, and which of their rows hold one."""
    for batch in parquet.iter_batches(batch_size=_BATCH_ROWS, columns=columns):
        struct = batch.column(name)
        present = struct.field("path").is_valid() if struct.null_count == 0 else struct.is_valid()
        if present.true_count:
            yield struct, present


def _add_columns(struct: pa.StructArray, present: pa.BooleanArray) -> pa.RecordBatch:
    given = {ADD_FIELDS[f.name]: struct.field(f.name) for f in struct.type}
    arrays = [_conform(given.get(f.name), f.type, len(struct)) for f in ADD_SCHEMA]
    _check_path(arrays[0], present)
    schema = ADD_SCHEMA
    parsed = given.get("stats_parsed")
    if parsed is not None:
        arrays.append(parsed)
        schema = schema.append(pa.field("stats_parsed", parsed.type))
    return _sound(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _sound(batch: pa.RecordBatch) -> pa.RecordBatch:
    # Parquet's bytes become text unseen; damaged ones would surface wherever they are shown.
    batch.validate(full=True)
    return batch


def _remove_columns(struct: pa.StructArray) -> pa.RecordBatch:
    given = {REMOVE_FIELDS[f.name]: struct.field(f.name) for f in struct.type}
    arrays = [_conform(given.get(f.name), f.type, len(struct)) for f in REMOVE_SCHEMA]
    _check_path(arrays[0])
    return _sound(pa.RecordBatch.from_arrays(arrays, schema=REMOVE_SCHEMA))


def _check_path(paths: pa.StringArray, present: pa.BooleanArray | None = None) -> None:
    # Where no action is, the path is null, or empty if the writer declared it required.
    given = paths if present is None or not paths.null_count else paths.filter(present)
    if given.null_count:
        raise ValueError(f"{given.null_count} file actions have no path")


def _conform(column: pa.Array | None, kind: pa.DataType, rows: int) -> pa.Array:
    if column is None:
        return pa.nulls(rows, kind)
    if pa.types.is_struct(kind):
        if column.null_count == rows:
            return pa.nulls(rows, kind)
        return _deletion_vectors(column, kind)
    if column.type == kind:
        return column
    if pa.types.is_map(kind) and column.null_count == rows:
        return pa.nulls(rows, kind)
    return _cast(column, kind)


# Arrow turns nearly anything into text and numbers into each other; a path is no number.
_ALIKE: Final = (
    (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_dictionary,
        pa.types.is_binary,
    ),
    (pa.types.is_integer,),
    (pa.types.is_boolean,),
    (pa.types.is_map,),
)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    for group in _ALIKE:
        if any(is_one(kind) for is_one in group):
            if pa.types.is_null(column.type) or any(is_one(column.type) for is_one in group):
                return pc.cast(column, kind)
            break
    raise ValueError(f"a column of type {column.type} stands where {kind} should")


def _deletion_vectors(column: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    present = {f.name for f in column.type}
    children = [
        _cast(column.field(name), f.type) if name in present else pa.nulls(len(column), f.type)
        for name, f in zip(DV_FIELDS, kind, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
