"""Two readings of one log: replayed as Delta does, and derived as an Iceberg table.

Both are pure functions of the log. Also here: how the files of an Iceberg commit become the
actions of a Delta commit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from twinlake.verify.models.iceberg.values import (
    ADDED,
    DELETED,
    EMPTY,
    EXISTING,
    FileEntry,
    Manifest,
    PositionDeleteFile,
    Row,
    Table,
    TableVersion,
    Writer,
)
from twinlake.verify.models.server.values import (
    METADATA,
    AddedFile,
    Log,
    RemovedFile,
    ServerLogEntry,
    Vector,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "changed_since",
    "delta_rows",
    "replay",
    "schema_of",
    "snapshot_id_of",
    "touched",
    "translate",
    "view",
]


@lru_cache(maxsize=200_000)
def replay(log: Log) -> dict[str, AddedFile]:
    """The live files of the newest version by path: the last action on a path counts."""
    live = dict(replay(log[:-1])) if len(log) > 1 else {}
    for removed in log[-1].removes:
        live.pop(removed.path, None)
    for added in log[-1].adds:
        live[added.file.path] = added
    return live


def delta_rows(log: Log) -> list[Row]:
    """What a Delta reader reads from the newest version, with multiplicity."""
    return sorted(
        row
        for added in replay(log).values()
        for at, row in enumerate(added.file.rows)
        if at not in added.vector
    )


def schema_of(log: Log) -> int:
    """The id of the newest version's schema."""
    return max(entry.schema for entry in log)


def snapshot_id_of(log: Log, version: int) -> int:
    """The id of the snapshot that is current in a version; 0 where there is none yet.

    It is what the client chose, or else it follows from the number of the version.
    """
    for number in range(version, 0, -1):
        if log[number].makes_snapshot:
            return log[number].snapshot_id or number
    return 0


@lru_cache(maxsize=200_000)
def view(log: Log) -> Table:
    """The log as an Iceberg table, version by version.

    A version's sequence number is its number in the log. An entry that changes no file makes no
    snapshot: the view of its version is that of the version before.
    """
    if len(log) == 1:
        return (EMPTY,)
    before = view(log[:-1])
    entry, number = log[-1], len(log) - 1
    if not entry.makes_snapshot:
        return (*before, before[-1]._replace(operation=METADATA, recorded=()))
    snapshot_id = snapshot_id_of(log, number)
    parent = before[-1]
    data = tuple(_data_entries(parent, entry, snapshot_id, number))
    deletes = tuple(_delete_entries(parent, entry, snapshot_id, number))
    version = TableVersion(
        location=f"metadata-{number}",
        sequence_number=number,
        snapshot_id=snapshot_id,
        operation=entry.operation,
        manifest_list=f"manifest-list-{number}",
        data=_manifest("data-manifest", data, number),
        deletes=_manifest("delete-manifest", deletes, number) if deletes else None,
        recorded=entry.recorded,
    )
    return (*before, version)


def _manifest(kind: str, entries: tuple[FileEntry, ...], number: int) -> Manifest:
    least = min((one.sequence_number for one in entries if one.is_live), default=number)
    return Manifest(f"{kind}-{number}", entries, least)


def _data_entries(
    parent: TableVersion, entry: ServerLogEntry, snapshot_id: int, number: int
) -> Iterator[FileEntry]:
    kept = {added.file.path for added in entry.adds}
    gone = {removed.path for removed in entry.removes} - kept
    known = set()
    for old in parent.data.entries:
        if not old.is_live:
            continue
        known.add(old.file.path)
        if old.file.path in gone:
            yield old._replace(status=DELETED, snapshot_id=snapshot_id)
        else:
            yield old._replace(status=EXISTING)
    for added in entry.adds:
        if added.file.path not in known:
            known.add(added.file.path)
            yield FileEntry(ADDED, added.file, snapshot_id, number)


def _delete_entries(
    parent: TableVersion, entry: ServerLogEntry, snapshot_id: int, number: int
) -> Iterator[FileEntry]:
    """Every vector is a delete file for one data file; a new one takes the old one's place."""
    touched_ = {removed.path for removed in entry.removes}
    for old in parent.deletes.entries if parent.deletes is not None else ():
        if old.is_live and isinstance(old.file, PositionDeleteFile):
            if old.file.positions[0][0] in touched_:
                yield old._replace(status=DELETED, snapshot_id=snapshot_id)
            else:
                yield old._replace(status=EXISTING)
    for index, added in enumerate(entry.adds):
        if added.vector:
            positions = tuple((added.file.path, at) for at in sorted(added.vector))
            yield FileEntry(
                ADDED,
                PositionDeleteFile(f"vector-{number}.{index}", positions),
                snapshot_id,
                number,
            )


# --- an Iceberg commit as a Delta commit ----------------------------------------------------------


def touched(client: Writer) -> frozenset[str]:
    """The data files that a commit replaces or deletes rows of."""
    return frozenset(client.replaced).union(path for path, _ in client.deletes)


def changed_since(log: Log, version: int, paths: frozenset[str]) -> str | None:
    """The first of these files that is not as it was in a version: gone, or with a new vector."""
    before, now = replay(log[: version + 1]), replay(log)
    for path in sorted(paths):
        if before.get(path) != now.get(path):
            return path
    return None


def translate(
    log: Log, client: Writer, *, two_vectors: bool = False, drop_emptied: bool = False
) -> tuple[tuple[AddedFile, ...], tuple[RemovedFile, ...]]:
    """The files of a commit as actions on top of the newest version of the log.

    The position deletes for a data file, whatever files they come in, unite with the vector that
    it has. ``two_vectors`` makes one of every delete file instead. ``drop_emptied`` removes a
    file of which no row is left.
    """
    live = replay(log)
    removes = [RemovedFile(path, live[path].vector) for path in client.replaced if path in live]
    adds: list[AddedFile] = []
    for path in dict.fromkeys(path for path, _ in client.deletes):
        old = live.get(path)
        if old is None:
            continue
        removes.append(RemovedFile(path, old.vector))
        vectors = [_positions(file, path) for file in client.delete_files]
        vectors = [vector for vector in vectors if vector]
        if not two_vectors:
            vectors = [old.vector.union(*vectors)]
        adds += [
            AddedFile(old.file, vector)
            for vector in vectors
            if not drop_emptied or len(vector) < len(old.file.rows)
        ]
    adds += [AddedFile(file) for file in client.data_files]
    return tuple(adds), tuple(removes)


def _positions(file: object, path: str) -> Vector:
    if not isinstance(file, PositionDeleteFile):
        return frozenset()
    return frozenset(at for name, at in file.positions if name == path)
