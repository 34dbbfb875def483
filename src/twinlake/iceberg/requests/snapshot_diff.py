"""Which files a client's snapshots add and remove, from the manifests they brought.

A manifest that the table has already is taken as it is. Of the others every entry is accounted for:
a file of the table that they leave out without a word, or that they list although the table does
not have it, makes the request contradictory, and it is refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinlake.iceberg.requests.manifest import EntryStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.iceberg.requests.data_file import SourceFile
    from twinlake.iceberg.requests.manifest import SourceEntry

__all__ = ["SnapshotDiff", "diff_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotDiff:
    """The files that come and go, data files and delete files alike."""

    added: tuple[SourceFile, ...] = ()
    removed: frozenset[str] = frozenset()
    """Keys of files of the table: see ``diff_files``."""
    problems: tuple[str, ...] = field(default=())


def diff_files(
    entries: Iterable[SourceEntry],
    listed: Iterable[SourceEntry],
    dropped: Mapping[str, str],
    snapshot_ids: frozenset[int],
    *,
    may_leave_out: bool = False,
) -> SnapshotDiff:
    """Compare what the last snapshot of a request lists with what the table has.

    ``entries`` are those of all manifests that came with the request, ``listed`` those that its
    last snapshot still lists. ``dropped`` maps the identity of each live file in manifests of the
    table that the last snapshot no longer lists to the key by which the caller knows it. With
    ``may_leave_out`` they go without a word, as the files of a table that is replaced do.
    """
    lasting = [entry for entry in listed if entry.status is not EntryStatus.DELETED]
    live = {entry.file.identity: entry for entry in lasting}
    twice = {path for path, n in Counter(e.file.identity for e in lasting).items() if n > 1}
    own = [entry for entry in entries if _own(entry, snapshot_ids)]
    added = {e.file.identity for e in own if e.status is EntryStatus.ADDED}
    deleted = {e.file.identity for e in own if e.status is EntryStatus.DELETED}
    problems: list[str] = []
    for path, entry in live.items():
        if path in added or path in dropped:
            continue
        if entry.status is EntryStatus.ADDED:
            problems.append(f"file {path} is listed as added by another snapshot")
        else:
            problems.append(f"file {path} is listed as existing, and the table does not have it")
    problems.extend(f"file {path} is listed twice" for path in sorted(twice))
    # What is left out silently here would be taken for deleted by the client.
    problems.extend(
        f"file {path} is deleted, and it stays in a manifest of the table or was in none"
        for path in sorted(deleted - dropped.keys() - added)
    )
    gone = dropped.keys() - live.keys()
    silent = () if may_leave_out else sorted(gone - deleted)
    problems.extend(f"file {path} is neither listed nor deleted" for path in silent)
    problems.extend(
        f"file {path} is deleted and listed"
        for path in sorted(deleted & dropped.keys() & live.keys())
    )
    problems.extend(
        f"file {path} is added, and the table has it" for path in sorted(added & dropped.keys())
    )
    return SnapshotDiff(
        added=tuple(e.file for path, e in live.items() if path in added and path not in dropped),
        removed=frozenset(dropped[path] for path in gone),
        problems=tuple(problems),
    )


def _own(entry: SourceEntry, snapshot_ids: frozenset[int]) -> bool:
    # An entry without an id has that of the snapshot whose manifest it is in.
    return entry.snapshot_id is None or entry.snapshot_id in snapshot_ids
