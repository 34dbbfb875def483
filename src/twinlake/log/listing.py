"""Which files of the log make up a version.

``_last_checkpoint`` is only a hint: it may be missing, corrupt, stale or ahead of reality, and
then the whole folder is listed. Listings may be unsorted and hold files of other kinds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log.json_checksum import hint_checksum
from twinlake.log.names import (
    IMPORT_MARK,
    LAST_CHECKPOINT_KEY,
    LOG_FOLDER,
    LogFile,
    LogFileKind,
    commit_key,
    log_prefix,
    parse_log_file,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.storage import Store

__all__ = ["Checkpoint", "LogSegment", "find_segment", "list_log", "read_last_checkpoint"]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: one file, or all the parts of one."""

    version: int
    files: tuple[LogFile, ...]

    @property
    def kind(self) -> LogFileKind:
        """Which naming scheme the checkpoint uses."""
        return self.files[0].kind


@dataclass(frozen=True, slots=True)
class LogSegment:
    """The files a version is read from: the newest usable checkpoint and what follows it."""

    version: int
    checkpoint: Checkpoint | None
    commits: tuple[LogFile, ...]
    compactions: tuple[LogFile, ...] = ()
    checksums: frozenset[int] = frozenset()
    modified_ms: int | None = None
    """When the commit of the version itself was written; None if it is gone."""


def read_last_checkpoint(store: Store) -> dict[str, Any] | None:
    """The hint, or None whenever it cannot be used."""
    try:
        hint = msgspec.json.decode(store.read(LAST_CHECKPOINT_KEY))
        usable = isinstance(hint, dict) and type(hint.get("version")) is int
        if not usable or hint["version"] < 0:
            return None
        stated = hint.get("checksum")
        return hint if stated is None or stated == hint_checksum(hint) else None
    except (StorageError, msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def list_log(store: Store, from_version: int = 0) -> list[LogFile]:
    """The recognised files from a version on, ascending by version."""
    # "~" sorts after every name of the version before, so nothing of it is listed again.
    after = f"{LOG_FOLDER}/{log_prefix(from_version - 1)}.~" if from_version > 0 else ""
    found = (
        parse_log_file(item.key, item.size, item.modified_ms)
        for item in store.list_from(LOG_FOLDER, after)
    )
    known = [item for item in found if item is not None and item.version >= from_version]
    known += _passed_by(store, [item.version for item in known if item.kind is LogFileKind.COMMIT])
    known.sort(key=lambda item: (item.version, item.key))
    return known


def _passed_by(store: Store, versions: list[int]) -> list[LogFile]:
    """The commits in between that a listing missed although it found later ones.

    Neither a folder nor the pages of an object store are listed at one moment: of two commits made
    meanwhile the second may be seen and the first not. Asked for by name it is there.
    """
    if not versions or max(versions) - min(versions) < len(versions):
        return []
    present = set(versions)
    missing = (v for v in range(max(versions), min(versions), -1) if v not in present)
    found = []
    for version in islice(missing, 100):
        meta = store.head(commit_key(version))
        if meta is None:
            break
        found.append(
            LogFile(
                LogFileKind.COMMIT, meta.key, version, size=meta.size, modified_ms=meta.modified_ms
            )
        )
    return found


def complete_checkpoints(files: Iterable[LogFile]) -> list[Checkpoint]:
    """The checkpoints all of whose parts are there, ascending; the best of a version last."""
    single: list[Checkpoint] = []
    parts: defaultdict[tuple[int, int], dict[int, LogFile]] = defaultdict(dict)
    for item in files:
        if item.kind in (LogFileKind.CLASSIC, LogFileKind.UUID):
            single.append(Checkpoint(item.version, (item,)))
        elif item.kind is LogFileKind.MULTIPART:
            parts[item.version, item.parts][item.part] = item
    for (version, count), present in parts.items():
        # The count first: a name may claim ten thousand million parts.
        if len(present) == count and set(present) == set(range(1, count + 1)):
            single.append(Checkpoint(version, tuple(present[n] for n in range(1, count + 1))))
    # Among equals the single file is preferred over parts, and a UUID one (V2) over classic.
    rank = {LogFileKind.MULTIPART: 0, LogFileKind.CLASSIC: 1, LogFileKind.UUID: 2}
    single.sort(key=lambda c: (c.version, rank[c.kind], c.files[0].key))
    return single


def find_segment(
    store: Store, version: int | None = None, *, damaged: frozenset[str] = frozenset()
) -> LogSegment:
    """The segment of a version, or of the latest one.

    ``damaged`` names checkpoint files that turned out unreadable and must not be chosen again.

    Raises:
        UserError: there is no table here, or no such version.
        CorruptTable: commits are missing in between.
    """
    hint = None if damaged else read_last_checkpoint(store)
    start = hint["version"] if hint is not None else 0
    if version is not None and start > version:
        start = 0
    files = list_log(store, start)
    checkpoints = _usable(files, version, damaged)
    if start > 0 and not checkpoints:
        # The hint names a checkpoint that is not there.
        files = list_log(store)
        checkpoints = _usable(files, version, damaged)
    return _assemble(store, files, checkpoints, version)


def _usable(files: list[LogFile], version: int | None, damaged: frozenset[str]) -> list[Checkpoint]:
    return [
        c
        for c in complete_checkpoints(files)
        if (version is None or c.version <= version) and c.files[0].key not in damaged
    ]


def _assemble(
    store: Store, files: list[LogFile], checkpoints: list[Checkpoint], version: int | None
) -> LogSegment:
    commits = [f for f in files if f.kind is LogFileKind.COMMIT]
    if not commits and not checkpoints:
        raise UserError(
            Code.TABLE_NOT_FOUND,
            f"There is no Delta table at {store.url}.",
            why=f"the folder {LOG_FOLDER} holds neither a commit nor a checkpoint",
            fix="Check the path, or create the table with `Table.create(PATH, SCHEMA)`.",
            delta_class="DELTA_TABLE_NOT_FOUND",
            fields={"location": store.url},
        )
    chosen = checkpoints[-1] if checkpoints else None
    base = chosen.version if chosen is not None else -1
    available = max([base, *(c.version for c in commits)])
    if version is not None and not 0 <= version <= available:
        raise UserError(
            Code.VERSION_NOT_FOUND,
            f"Version {version} does not exist.",
            why=f"the latest version is {available}",
            fix=f"Ask for a version from 0 to {available}.",
            delta_class="DELTA_VERSION_NOT_FOUND",
            fields={
                "version": version,
                "earliest": _earliest(list_log(store)),
                "latest": available,
            },
        )
    target = available if version is None else version
    tail = tuple(c for c in commits if base < c.version <= target)
    _check_contiguous(store, tail, base, target, files)
    return LogSegment(
        version=target,
        checkpoint=chosen,
        commits=tail,
        compactions=tuple(
            f
            for f in files
            if f.kind is LogFileKind.COMPACTION and base < f.version <= f.end_version <= target
        ),
        checksums=frozenset(f.version for f in files if f.kind is LogFileKind.CHECKSUM),
        modified_ms=next((c.modified_ms for c in reversed(commits) if c.version == target), None),
    )


def _earliest(files: list[LogFile]) -> int | None:
    """The first version of a whole log that can be read."""
    if any(f.kind is LogFileKind.COMMIT and f.version == 0 for f in files):
        return 0
    return next((c.version for c in complete_checkpoints(files)), None)


def _check_contiguous(
    store: Store, tail: tuple[LogFile, ...], base: int, target: int, files: list[LogFile]
) -> None:
    gaps = target - base - len(tail)
    if not gaps:
        return
    present = {commit.version for commit in tail}
    # One odd name far ahead makes for more missing versions than anybody could list.
    missing = list(islice((v for v in range(base + 1, target + 1) if v not in present), 100))
    from_start = base < 0 and (not tail or tail[0].version == gaps)
    if from_start and any(c.version > target for c in complete_checkpoints(files)):
        earliest = gaps
        raise UserError(
            Code.VERSION_NOT_FOUND,
            f"Version {target} is no longer available.",
            why=f"the log was cleaned up: the commits before {earliest} are gone",
            fix="Ask for a newer version.",
            delta_class="DELTA_VERSION_NOT_FOUND",
            fields={"version": target, "earliest": earliest, "latest": files[-1].version},
        )
    if missing[0] == 0:
        _refuse_unfinished_import(store)
    shown = ", ".join(str(v) for v in missing[:5]) + (" ..." if gaps > 5 else "")
    raise CorruptTable(
        Code.LOG_CORRUPT,
        f"The log has a gap: {gaps} commit(s) are missing before {target} ({shown}).",
        why=(
            "without a checkpoint every commit from 0 on is needed"
            if base < 0
            else f"every commit after the checkpoint of version {base} is needed"
        ),
        fix=f"Restore {commit_key(missing[0])} from a backup, or open an earlier version.",
        delta_class="DELTA_VERSIONS_NOT_CONTIGUOUS",
        fields={"missing": missing, "version": target},
    )


def _refuse_unfinished_import(store: Store) -> None:
    """An import writes version 0 last; until then its mark says what the other versions are."""
    if any(IMPORT_MARK.fullmatch(meta.key) for meta in store.list_from(LOG_FOLDER)):
        raise UserError(
            Code.TABLE_NOT_FOUND,
            f"There is no Delta table at {store.url} yet.",
            why="the import of an Iceberg table has not come to its end",
            fix="Where none is running, run `twinlake import SOURCE` again: it goes on from there.",
            delta_class="DELTA_TABLE_NOT_FOUND",
            fields={"location": store.url},
        )
