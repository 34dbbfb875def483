"""Commit files straight into columns: a few thousand lines at a time, never all as objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import (
    AddFile,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    decode_action,
    decode_lines,
)
from twinlake.errors import Code, CorruptTable
from twinlake.log.columns import add_batch, remove_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["CommitColumns", "decode_commit"]

# About 2,000 lines of a table with statistics; the objects of one block die before the next.
_BLOCK_BYTES: Final = 1 << 20


class _Line(msgspec.Struct):
    add: AddFile | None = None
    remove: RemoveFile | None = None
    protocol: msgspec.Raw = msgspec.Raw()
    metaData: msgspec.Raw = msgspec.Raw()
    txn: msgspec.Raw = msgspec.Raw()
    domainMetadata: msgspec.Raw = msgspec.Raw()


_DECODER: Final = msgspec.json.Decoder(_Line)
_NULL: Final = b"null"


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


def decode_commit(data: bytes, version: int, source: str) -> CommitColumns:
    """The columns of a commit file; ``source`` names the file in errors."""
    out = CommitColumns(version)
    for block in _blocks(data):
        try:
            lines = _DECODER.decode_lines(block)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            _raise_with_line(data, source)
            raise
        adds = [line.add for line in lines if line.add is not None]
        removes = [line.remove for line in lines if line.remove is not None]
        if adds:
            out.adds.append(add_batch(adds))
        if removes:
            out.removes.append(remove_batch(removes))
        # A line holds one action, so those of files say nothing else.
        others = [line for line in lines if line.add is None and line.remove is None]
        if others:
            _take_state(out, others, source)
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


def _take_state(out: CommitColumns, lines: list[_Line], source: str) -> None:
    for line in lines:
        for name in ("protocol", "metaData", "txn", "domainMetadata"):
            raw: msgspec.Raw = getattr(line, name)
            if raw and bytes(raw) != _NULL:
                _take(out, name, raw, source)


def _take(out: CommitColumns, name: str, raw: msgspec.Raw, source: str) -> None:
    try:
        action: Any = decode_action(name, msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError) as error:
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"{source} holds a malformed {name} action.",
            why=str(error),
            fix="Restore the file from a backup; twinlake never edits a published commit.",
            fields={"file": source, "action": name},
        ) from error
    match action:
        case Protocol():
            _once(out.protocol, "protocol", source)
            out.protocol = action
        case Metadata():
            _once(out.metadata, "metaData", source)
            out.metadata = action
        case SetTransaction():
            out.set_transactions[action.app_id] = action
        case DomainMetadata():
            out.domains[action.domain] = action


def _once(current: object, name: str, source: str) -> None:
    if current is not None:
        raise CorruptTable(
            Code.LOG_CORRUPT,
            f"{source} holds more than one {name} action.",
            why="a commit may set it at most once (Delta protocol, Actions)",
            fix="Restore the file from a backup.",
            fields={"file": source, "action": name},
        )


def _raise_with_line(data: bytes, source: str) -> None:
    # The fast decoder does not say which line; the careful one does, and raises for it.
    for _ in decode_lines(data, source=source):
        pass
