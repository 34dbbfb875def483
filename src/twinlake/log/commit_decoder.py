"""Commit files straight into columns: a few thousand lines at a time, never all as objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.actions import (
    PRECEDENCE,
    AddCDCFile,
    AddFile,
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    SidecarFile,
    decode_action,
    decode_lines,
    decode_whole_commit,
)
from twinlake.errors import Code, CorruptTable
from twinlake.log.columns import add_batch, remove_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from twinlake.actions import Action

__all__ = ["CommitColumns", "check_once", "decode_commit"]

# About 2,000 lines of a table with statistics; the objects of one block die before the next.
_BLOCK_BYTES: Final = 1 << 20


class _Object(msgspec.Struct):
    """Any object; what is in it is not looked at."""


class _Line(msgspec.Struct, gc=False):
    add: AddFile | None = None
    remove: RemoveFile | None = None
    protocol: msgspec.Raw = msgspec.Raw()
    metaData: msgspec.Raw = msgspec.Raw()
    txn: msgspec.Raw = msgspec.Raw()
    domainMetadata: msgspec.Raw = msgspec.Raw()
    # Only their shape matters here, so that no damage is passed over.
    commitInfo: _Object | None = None
    cdc: AddCDCFile | None = None
    checkpointMetadata: CheckpointMetadata | None = None
    sidecar: SidecarFile | None = None


_DECODER: Final = msgspec.json.Decoder(_Line)
_NULL: Final = b"null"
_STATE: Final = tuple(
    n for n in PRECEDENCE if n in {"protocol", "metaData", "txn", "domainMetadata"}
)


@dataclass(slots=True)
class CommitColumns:
    """What one commit (or compaction file) says, files as columns."""

    version: int
    adds: list[pa.RecordBatch] = field(default_factory=list)
    removes: list[pa.RecordBatch] = field(default_factory=list)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    set_transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    # A compaction file stands for many commits, each of which may have removed the same path.
    compacted: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing that this release knows of."""
        return not (
            self.adds
            or self.removes
            or self.protocol
            or self.metadata
            or self.set_transactions
            or self.domains
        )


def decode_commit(data: bytes, version: int, source: str) -> CommitColumns:
    """The columns of a commit file; ``source`` names the file in errors."""
    try:
        columns = _decode_blocks(data, version, source)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        # The careful decoder is the one that decides, and it says which line is wrong.
        columns = _decode_carefully(data, version, source)
    if columns.is_empty:
        # Nothing but commitInfo, or nothing at all, which no commit is.
        decode_whole_commit(data, source=source)
    return columns


def _decode_blocks(data: bytes, version: int, source: str) -> CommitColumns:
    out = CommitColumns(version)
    for block in _blocks(data):
        if not block.isascii():
            # What the decoder skips it does not look at, and damage should not depend on where.
            block.decode()
        lines = _DECODER.decode_lines(block)
        # The decoder does not mind where an object ends; the log holds one a line.
        if len(lines) != block.count(b"\n") + (block[-1:] not in (b"", b"\n")):
            raise msgspec.DecodeError("not one object a line")
        adds = [line.add for line in lines if line.add is not None]
        if adds:
            out.adds.append(add_batch(adds))
        if len(adds) == len(lines):
            continue
        # Should a line hold several actions, one of them counts, as in Delta Spark.
        rest = [line for line in lines if line.add is None]
        removes = [line.remove for line in rest if line.remove is not None]
        if removes:
            out.removes.append(remove_batch(removes))
        for line in rest:
            if line.remove is None:
                _take_state(out, line, source)
    return out


def _decode_carefully(data: bytes, version: int, source: str) -> CommitColumns:
    out = CommitColumns(version)
    actions = list(decode_lines(data, source=source))
    adds = [action for action in actions if isinstance(action, AddFile)]
    removes = [action for action in actions if isinstance(action, RemoveFile)]
    if adds:
        out.adds.append(add_batch(adds))
    if removes:
        out.removes.append(remove_batch(removes))
    for action in actions:
        _take(out, action, source)
    return out


def _blocks(data: bytes) -> Iterator[bytes]:
    if len(data) <= _BLOCK_BYTES:
        yield data
        return
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + _BLOCK_BYTES)
        end = len(data) if end < 0 else end + 1
        yield data[start:end]
        start = end


def _take_state(out: CommitColumns, line: _Line, source: str) -> None:
    for name in _STATE:
        raw: msgspec.Raw = getattr(line, name)
        if raw and bytes(raw) != _NULL:
            _take(out, decode_action(name, msgspec.json.decode(raw)), source)
            return


def _take(out: CommitColumns, action: Action, source: str) -> None:
    match action:
        case Protocol():
            check_once(out.protocol, "protocol", source)
            out.protocol = action
        case Metadata():
            check_once(out.metadata, "metaData", source)
            out.metadata = action
        case SetTransaction():
            out.set_transactions[action.app_id] = action
        case DomainMetadata():
            out.domains[action.domain] = action
        case _:
            pass


def check_once(current: object, name: str, source: str) -> None:
    """Refuse a second action of a kind that a commit holds at most once."""
    if current is not None:
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"{source} holds more than one {name} action.",
            why="a commit may set it at most once (Delta protocol, Actions)",
            fix="Restore the file from a backup.",
            fields={"file": source, "action": name},
        )
