"""Log compaction files: what a run of commits comes to, in one file.

Lines are carried over as they were written, so that fields and actions this release has no name
for survive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import DeletionVectorDescriptor
from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log.names import LogFile, LogFileKind, commit_key, compaction_key
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.storage import Committed, Conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.actions import FileKey
    from twinlake.storage import Store

__all__ = ["compact_lines", "write_compaction"]

# They describe one commit, or only have meaning in a checkpoint.
_LEFT_OUT: Final = frozenset({"commitInfo", "cdc", "checkpointMetadata", "sidecar"})


class _File(msgspec.Struct, rename="camel"):
    path: str
    deletion_vector: DeletionVectorDescriptor | None = None

    def key(self, paths: CanonicalPaths) -> FileKey:
        vector = self.deletion_vector
        return paths.key(self.path), None if vector is None else paths.vector_key(vector)


class _Txn(msgspec.Struct, rename="camel"):
    app_id: str


class _Domain(msgspec.Struct):
    domain: str


_LINE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_FILE: Final = msgspec.json.Decoder(_File)


@dataclass(slots=True)
class _Reconciled:
    """The newest of everything; a newer line of the same key takes the older one's place."""

    paths: CanonicalPaths
    single: dict[str, bytes] = field(default_factory=dict)
    transactions: dict[str, bytes] = field(default_factory=dict)
    domains: dict[str, bytes] = field(default_factory=dict)
    files: dict[FileKey, tuple[str, bytes]] = field(default_factory=dict)
    unknown: list[tuple[str, bytes]] = field(default_factory=list)

    def take(self, name: str, raw: bytes) -> None:
        match name:
            case "protocol" | "metaData":
                self.single[name] = raw
            case "txn":
                self.transactions[msgspec.json.decode(raw, type=_Txn).app_id] = raw
            case "domainMetadata":
                # Tombstones too: an older version may still have the domain.
                self.domains[msgspec.json.decode(raw, type=_Domain).domain] = raw
            case "add" | "remove":
                key = _FILE.decode(raw).key(self.paths)
                self.files.pop(key, None)
                self.files[key] = name, raw
            case _ if name not in _LEFT_OUT:
                self.unknown.append((name, raw))
            case _:
                pass

    def lines(self) -> Iterator[bytes]:
        for name in ("protocol", "metaData"):
            if name in self.single:
                yield _line(name, self.single[name])
        for raw in self.transactions.values():
            yield _line("txn", raw)
        for raw in self.domains.values():
            yield _line("domainMetadata", raw)
        for name, raw in self.files.values():
            yield _line(name, raw)
        for name, raw in self.unknown:
            yield _line(name, raw)


def _line(name: str, raw: bytes) -> bytes:
    return msgspec.json.encode({name: msgspec.Raw(raw)}) + b"\n"


def compact_lines(commits: list[tuple[str, bytes]], root: str) -> bytes:
    """The reconciled lines of commits given ascending, each with a name for errors.

    >>> body = b'{"remove":{"path":"./a","dataChange":true}}'
    >>> commits = [("0", b'{"add":{"path":"a"}}'), ("1", body)]
    >>> compact_lines(commits, "file:///lake/t") == body + bytes([10])
    True
    """
    state = _Reconciled(CanonicalPaths.of(root))
    for source, data in commits:
        for name, raw in _ordered(source, data):
            try:
                state.take(name, raw)
            except (msgspec.DecodeError, RecursionError) as error:
                raise _corrupt(source, error) from error
    return b"".join(state.lines())


def _ordered(source: str, data: bytes) -> list[tuple[str, bytes]]:
    """The actions of a commit; removes before adds, whose order within a commit means nothing."""
    found: list[tuple[str, bytes]] = []
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            parsed: dict[str, Any] = _LINE.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise _corrupt(source, error) from error
        found += [(name, bytes(raw)) for name, raw in parsed.items() if bytes(raw) != b"null"]
    found.sort(key=lambda pair: pair[0] == "add")
    return found


def _corrupt(source: str, error: Exception) -> CorruptTable:
    return CorruptTable(
        Code.LOG_CORRUPT,
        f"{source} holds a line that is not a valid action.",
        why=str(error) or type(error).__name__,
        fix="Restore the file from a backup; twinlake never edits a published commit.",
        fields={"file": source},
    )


def write_compaction(store: Store, start: int, end: int) -> LogFile:
    """Write the compaction file of the commits ``start`` to ``end``, both included.

    One that is there already says the same and stays.

    Raises:
        UserError: the range is empty or some of its commits are gone.
        CorruptTable: a commit of the range cannot be read.
    """
    if not 0 <= start < end:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Commits {start} to {end} cannot be compacted.",
            why="a compaction covers at least two versions, the first of them not negative",
            fix="Give a start that is smaller than the end.",
            fields={"start": start, "end": end},
        )
    commits = [(commit_key(v), _read(store, v)) for v in range(start, end + 1)]
    data = compact_lines(commits, store.url)
    key = compaction_key(start, end)
    outcome = store.create(key, data)
    if not isinstance(outcome, (Committed, Conflict)):
        if outcome.refusal is not None:
            raise outcome.refusal
        # Whoever writes it writes the same lines.
        store.put(key, data)
    return LogFile(LogFileKind.COMPACTION, key, start, len(data), end_version=end)


def _read(store: Store, version: int) -> bytes:
    try:
        return store.read(commit_key(version))
    except StorageError as error:
        if error.code != Code.STORAGE_NOT_FOUND:
            raise
        raise UserError(
            Code.VERSION_NOT_FOUND,
            f"Version {version} cannot be compacted.",
            why=f"{commit_key(version)} does not exist",
            fix="Choose versions whose commits are all there.",
            delta_class="DELTA_VERSION_NOT_FOUND",
            fields={"version": version},
        ) from error
