"""Checkpoints of every kind: the state of one version in one place.

A checkpoint is written under its final name whole or not at all, and only for a version whose
commit is published. ``_last_checkpoint`` follows once every file is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from twinlake.actions import RemoveFile, SetTransaction, encode_action
from twinlake.errors import Code, UserError, listed
from twinlake.log.checkpoint.columns import (
    STATE_TYPES,
    V2_TYPES,
    FileRows,
    StatsLayout,
    distribute,
    file_rows,
)
from twinlake.log.checkpoint.last_checkpoint import write_last_checkpoint
from twinlake.log.checkpoint.parts import CheckpointPart, PresentFile
from twinlake.log.columns import adds_from, removes_from
from twinlake.log.listing import Checkpoint
from twinlake.log.names import (
    LOG_FOLDER,
    SIDECAR_FOLDER,
    LogFile,
    checkpoint_key,
    commit_key,
    log_prefix,
    multipart_key,
    parse_log_file,
    uuid_checkpoint_key,
)
from twinlake.log.stats.parsed import with_json_stats
from twinlake.protocol import features, keys, property_value
from twinlake.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from twinlake.log.snapshot import Snapshot
    from twinlake.storage import Store

__all__ = ["CheckpointKind", "checkpoint_kind", "live_transactions", "write_checkpoint"]

_OTHER_SPLITS: Final = 8


class CheckpointKind(Enum):
    """The kinds of checkpoint there are: name, format and which specification it follows."""

    CLASSIC = "classic"
    MULTIPART = "multi-part"
    V2_PARQUET = "v2 parquet"
    V2_JSON = "v2 json"
    V2_CLASSIC = "v2 under the classic name"

    @property
    def is_v2(self) -> bool:
        """Whether the content follows the V2 specification."""
        return self.value.startswith("v2")


def checkpoint_kind(snapshot: Snapshot) -> CheckpointKind:
    """The kind the table asks for."""
    wants_v2 = property_value(snapshot.metadata, keys.CHECKPOINT_POLICY) == "v2"
    if wants_v2 and snapshot.protocol.is_supported(features.V2_CHECKPOINT):
        return CheckpointKind.V2_PARQUET
    return CheckpointKind.CLASSIC


def write_checkpoint(
    snapshot: Snapshot,
    *,
    runtime: Runtime | None = None,
    kind: CheckpointKind | None = None,
    parts: int | None = None,
    sidecars: int = 0,
    now_ms: int | None = None,
) -> Checkpoint:
    """Write a checkpoint of the snapshot's version and point ``_last_checkpoint`` to it.

    Args:
        snapshot: the version to write down.
        runtime: clock, ids and the executor that parts and sidecars are encoded by.
        kind: by default what the table's ``delta.checkpointPolicy`` asks for.
        parts: more than one makes a multi-part checkpoint.
        sidecars: how many files to move the file actions of a V2 checkpoint to; 0 keeps them in it.
        now_ms: the time that decides which tombstones and applications are expired.

    Raises:
        UserError: the kind does not fit the table, or the version is not published.
        UnsupportedFeature: the table needs features that this release lacks.
    """
    runtime = runtime or Runtime()
    if kind is None:
        kind = checkpoint_kind(snapshot) if parts in (None, 1) else CheckpointKind.MULTIPART
    _check_request(snapshot, kind, parts, sidecars)
    # Nobody may write for a table it does not understand in full; this is also what checkpoint
    # protection asks of checkpoints of protected versions.
    snapshot.protocol.check_read_write(metadata=snapshot.metadata)
    _check_published(snapshot)
    content = _content(snapshot, runtime.clock.now_ms() if now_ms is None else now_ms)
    written = _WRITERS[kind](_Job(snapshot, content, runtime, parts or 1, sidecars))
    _point_to(snapshot, kind, content, written)
    return Checkpoint(snapshot.version, written.files)


def _check_request(
    snapshot: Snapshot, kind: CheckpointKind, parts: int | None, sidecars: int
) -> None:
    name = features.V2_CHECKPOINT
    v2 = snapshot.protocol.is_supported(name)
    problems = {
        f"{kind.value} checkpoints need the feature {name}, which the table lacks": (
            kind.is_v2 and not v2
        ),
        f"multi-part checkpoints are not allowed on a table with the feature {name}": (
            kind is CheckpointKind.MULTIPART and v2
        ),
        "parts must be at least 1 and belong to multi-part checkpoints": (
            parts is not None
            and (parts < 1 or (parts > 1 and kind is not CheckpointKind.MULTIPART))
        ),
        "sidecars must not be negative and belong to V2 checkpoints": (
            sidecars < 0 or (sidecars > 0 and not kind.is_v2)
        ),
    }
    found = [text for text, wrong in problems.items() if wrong]
    if found:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Version {snapshot.version} cannot have a {kind.value} checkpoint as asked.",
            why=listed(found),
            fix="Leave the kind out to get the one that suits the table.",
            fields={"kind": kind.value, "parts": parts, "sidecars": sidecars},
        )


def _check_published(snapshot: Snapshot) -> None:
    known = snapshot.checkpoint is not None and snapshot.checkpoint.version == snapshot.version
    if known or snapshot.is_still_there():
        return
    raise UserError(
        Code.VERSION_NOT_FOUND,
        f"Version {snapshot.version} of {snapshot.store.url} cannot be checkpointed.",
        why=f"{commit_key(snapshot.version)} is missing, or the table was replaced meanwhile",
        fix="Open the table again and checkpoint that version.",
        delta_class="DELTA_VERSION_NOT_FOUND",
        fields={"version": snapshot.version},
    )


# What goes in


@dataclass(frozen=True, slots=True)
class _Content:
    now_ms: int
    state: tuple[tuple[str, dict[str, Any]], ...]
    adds: pa.Table
    removes: pa.Table

    @property
    def num_actions(self) -> int:
        return len(self.state) + len(self.adds) + len(self.removes)


def _content(snapshot: Snapshot, now_ms: int) -> _Content:
    state: list[tuple[str, dict[str, Any]]] = [
        ("protocol", snapshot.protocol.to_dict()),
        ("metaData", snapshot.metadata.to_dict()),
    ]
    state += [
        ("txn", {"appId": t.app_id, "version": t.version, "lastUpdated": t.last_updated})
        for t in live_transactions(snapshot, now_ms)
    ]
    state += [
        ("domainMetadata", {"domain": d.domain, "configuration": d.configuration, "removed": False})
        for d in snapshot.domains.values()
    ]
    return _Content(now_ms, tuple(state), snapshot.add_files(), _unexpired(snapshot, now_ms))


def live_transactions(snapshot: Snapshot, now_ms: int) -> list[SetTransaction]:
    """The application versions that are not expired; without a time they never are."""
    retention = property_value(snapshot.metadata, keys.SET_TRANSACTION_RETENTION_DURATION)
    return [
        t
        for t in snapshot.set_transactions.values()
        if retention is None or t.last_updated is None or t.last_updated > now_ms - retention
    ]


def _unexpired(snapshot: Snapshot, now_ms: int) -> pa.Table:
    retention = property_value(snapshot.metadata, keys.DELETED_FILE_RETENTION_DURATION)
    removes = snapshot.tombstones()
    deleted_at = pc.fill_null(removes["deletion_timestamp"], 0)
    return removes.filter(pc.greater(deleted_at, now_ms - retention))


# How each kind is written


@dataclass(frozen=True, slots=True)
class _Job:
    snapshot: Snapshot
    content: _Content
    runtime: Runtime
    parts: int
    sidecars: int

    @property
    def store(self) -> Store:
        return self.snapshot.store

    def rows(self) -> FileRows:
        layout = StatsLayout.of(self.snapshot.metadata)
        adds = self.content.adds
        # Columns alone may come from columns alone; as soon as text is wanted it is completed.
        adds = with_json_stats(adds) if layout.as_json or _mixed(adds) else adds
        return file_rows(adds, self.content.removes, self.snapshot.metadata, layout)

    def files(self, data: Mapping[str, int]) -> tuple[LogFile, ...]:
        found = (parse_log_file(key, size, self.content.now_ms) for key, size in data.items())
        return tuple(file for file in found if file is not None)


def _mixed(adds: pa.Table) -> bool:
    return "stats_parsed" in adds.schema.names and adds["stats_parsed"].null_count > 0


@dataclass(frozen=True, slots=True)
class _Written:
    files: tuple[LogFile, ...]
    sidecars: tuple[dict[str, Any], ...] = ()


def _write_classic(job: _Job) -> _Written:
    key = checkpoint_key(job.snapshot.version)
    piece = CheckpointPart(job.store, key, job.content.state, job.rows(), STATE_TYPES, unique=False)
    return _Written(job.files(dict([piece.write()])))


def _write_multipart(job: _Job) -> _Written:
    """All parts from one hand: how another writer split the files is not known.

    Parts of the same name that say something else are never touched and never completed; then
    the checkpoint gets one part more, and so names of its own.
    """
    rows = job.rows()
    for parts in range(job.parts, job.parts + _OTHER_SPLITS):
        written = _try_multipart(job, rows, parts)
        if written is not None:
            return written
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"Version {job.snapshot.version} cannot have a checkpoint of {job.parts} parts.",
        why="Parts that other writers left are in the way.",
        fix="Ask for another number of parts, or for a checkpoint in one file.",
        fields={"version": job.snapshot.version, "parts": job.parts},
    )


def _try_multipart(job: _Job, rows: FileRows, parts: int) -> _Written | None:
    keys = [multipart_key(job.snapshot.version, n + 1, parts) for n in range(parts)]
    pieces = [
        # The few actions that have no path all go to the first part.
        CheckpointPart(
            job.store, key, job.content.state if n == 0 else (), part, STATE_TYPES, unique=False
        )
        for n, (key, part) in enumerate(zip(keys, distribute(rows, parts), strict=True))
    ]
    folder = job.store.list_from(LOG_FOLDER, f"{LOG_FOLDER}/{log_prefix(job.snapshot.version)}")
    nothing_there = not {item.key for item in folder}.intersection(keys)
    found = (
        {} if nothing_there else dict(job.runtime.executor.map(CheckpointPart.present_file, pieces))
    )
    if PresentFile.FOREIGN in found.values():
        return None
    # Whoever has the first part goes on; a rival that came first is noticed before more is done.
    sizes, created, ours = dict[str, int](), list[str](), True
    for some in (pieces[:1], pieces[1:]):
        for key, size, by_us, same in job.runtime.executor.map(CheckpointPart.claim, some):
            sizes[key] = size
            ours = ours and same
            created += [key] if by_us else []
        if not ours:
            job.store.delete(created)
            return None
    return _Written(job.files(sizes))


def _write_v2_parquet(job: _Job) -> _Written:
    uuid = str(job.runtime.ids.uuid())
    return _write_v2(job, uuid_checkpoint_key(job.snapshot.version, uuid, "parquet"), unique=True)


def _write_v2_classic(job: _Job) -> _Written:
    return _write_v2(job, checkpoint_key(job.snapshot.version), unique=False)


def _write_v2(job: _Job, key: str, *, unique: bool) -> _Written:
    rows = job.rows()
    sidecars = _write_sidecars(job, rows) if job.sidecars else ()
    state = (*_v2_state(job, sidecars), *job.content.state)
    inline = FileRows(rows.adds.slice(0, 0), rows.removes.slice(0, 0)) if sidecars else rows
    piece = CheckpointPart(
        job.store, key, state, inline, {**STATE_TYPES, **V2_TYPES}, unique=unique
    )
    return _Written(job.files(dict([piece.write()])), sidecars)


def _write_v2_json(job: _Job) -> _Written:
    sidecars = _write_sidecars(job, job.rows()) if job.sidecars else ()
    state = (*_v2_state(job, sidecars), *job.content.state)
    lines = [msgspec.json.encode({name: _without_nulls(value)}) for name, value in state]
    if not sidecars:
        lines += _json_files(job)
    uuid = str(job.runtime.ids.uuid())
    key = uuid_checkpoint_key(job.snapshot.version, uuid, "json")
    data = b"\n".join([*lines, b""])
    job.store.put(key, data)
    return _Written(job.files({key: len(data)}), sidecars)


def _without_nulls(action: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in action.items() if v is not None}


def _json_files(job: _Job) -> Iterator[bytes]:
    adds = with_json_stats(job.content.adds)
    for add in adds_from(adds, data_change=False):
        yield encode_action(add)
    for remove in removes_from(job.content.removes):
        yield encode_action(_quiet(remove))


def _quiet(remove: RemoveFile) -> RemoveFile:
    return msgspec.structs.replace(remove, data_change=False)


def _write_sidecars(job: _Job, rows: FileRows) -> tuple[dict[str, Any], ...]:
    # Every one gets a name of its own: a rival's checkpoint of this version never shares them.
    pieces = [
        CheckpointPart(
            job.store, f"{SIDECAR_FOLDER}/{job.runtime.ids.uuid()}.parquet", (), part, {}, True
        )
        for part in distribute(rows, job.sidecars)
    ]
    return tuple(
        {
            "path": key.rpartition("/")[2],
            "sizeInBytes": size,
            "modificationTime": job.content.now_ms,
        }
        for key, size in job.runtime.executor.map(CheckpointPart.write, pieces)
    )


def _v2_state(
    job: _Job, sidecars: Sequence[dict[str, Any]]
) -> tuple[tuple[str, dict[str, Any]], ...]:
    marker: dict[str, Any] = {"version": job.snapshot.version}
    if sidecars:
        marker["tags"] = {
            "sidecarNumActions": str(len(job.content.adds) + len(job.content.removes)),
            "sidecarSizeInBytes": str(sum(s["sizeInBytes"] for s in sidecars)),
            "numOfAddFiles": str(len(job.content.adds)),
        }
    return (("checkpointMetadata", marker), *(("sidecar", s) for s in sidecars))


_WRITERS: Final[dict[CheckpointKind, Callable[[_Job], _Written]]] = {
    CheckpointKind.CLASSIC: _write_classic,
    CheckpointKind.MULTIPART: _write_multipart,
    CheckpointKind.V2_PARQUET: _write_v2_parquet,
    CheckpointKind.V2_JSON: _write_v2_json,
    CheckpointKind.V2_CLASSIC: _write_v2_classic,
}


def _point_to(
    snapshot: Snapshot, kind: CheckpointKind, content: _Content, written: _Written
) -> None:
    top = sum(file.size for file in written.files)
    beside = sum(s["sizeInBytes"] for s in written.sidecars)
    hint: dict[str, Any] = {
        "version": snapshot.version,
        "size": content.num_actions + (1 + len(written.sidecars) if kind.is_v2 else 0),
        "sizeInBytes": top + beside,
        "numOfAddFiles": len(content.adds),
    }
    if kind is CheckpointKind.MULTIPART:
        hint["parts"] = len(written.files)
    if kind.is_v2:
        hint["v2Checkpoint"] = {
            "path": written.files[0].key.removeprefix(f"{LOG_FOLDER}/"),
            "sizeInBytes": top,
            "modificationTime": content.now_ms,
        }
    write_last_checkpoint(snapshot.store, hint)
