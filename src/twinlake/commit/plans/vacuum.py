"""VACUUM: which files of the table's folder no retained version needs.

The rule errs on one side only. A file goes when no version within the retention can name it, it is
old enough to be no other writer's work in progress, and it is in a place that belongs to data. In
doubt (a path in the log that cannot be told to be inside or outside) it stays.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol
from urllib.parse import unquote

from twinlake.actions import DeletionVectorDescriptor
from twinlake.commit.plans.file_statistics import rendered
from twinlake.errors import Code, UserError

__all__ = [
    "RESERVED_FOLDERS",
    "STAGING_PREFIX",
    "Listed",
    "Referenced",
    "Tombstone",
    "VacuumMode",
    "VacuumPlan",
    "VacuumRules",
    "VectorPath",
    "plan_vacuum",
]

RESERVED_FOLDERS: Final = frozenset({"_delta_log", "_iceberg", "metadata"})
"""Names of the root that hold no data; Iceberg metadata made by Delta is in ``metadata``."""

STAGING_PREFIX: Final = "_twinlake_staging-"
"""Folders of the root in which writers work; left behind, all that is in them is rubbish."""

_SWEPT_THOUGH_HIDDEN: Final = frozenset({"_change_data", "_delta_index"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# What the local store writes before it gives a file its name: a writer that was killed leaves it.
_TEMPORARY = re.compile(r"\.[0-9a-f]{16}\.tmp")

VectorPath = Callable[[DeletionVectorDescriptor], str | None]
"""Where a vector is, as the log would name the file; None for an inline one."""


class Referenced(Protocol):
    """What the log says of a file: its path and its vector. Add and remove actions are this."""

    @property
    def path(self) -> str:
        """As in the log, URL-encoded."""
        ...

    @property
    def deletion_vector(self) -> DeletionVectorDescriptor | None:
        """The vector the file is live or removed under."""
        ...


class Tombstone(Referenced, Protocol):
    """A removed file; remove actions are this."""

    @property
    def deletion_timestamp(self) -> int | None:
        """When it was removed; unknown counts as long ago."""
        ...

    @property
    def size(self) -> int | None:
        """Its bytes, where the log knows."""
        ...


class Listed(Protocol):
    """A file of the folder; objects of a store listing are this."""

    @property
    def key(self) -> str:
        """Relative to the table, decoded."""
        ...

    @property
    def size(self) -> int:
        """Its bytes."""
        ...

    @property
    def modified_ms(self) -> int:
        """When it was written."""
        ...


class VacuumMode(StrEnum):
    """Where candidates come from: the folder, or the log alone."""

    FULL = "full"
    LITE = "lite"


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumRules:
    """The terms of a VACUUM."""

    retention_ms: int
    tombstone_retention_ms: int
    """The table's ``delta.deletedFileRetentionDuration``."""
    mode: VacuumMode = VacuumMode.FULL
    partition_columns: tuple[str, ...] = ()
    """Names as folders spell them (physical ones under column mapping)."""
    protected: frozenset[str] = frozenset()
    """More names of the root that are not to be touched."""
    force: bool = False
    """Go below the table's own retention."""

    def check(self) -> None:
        """Refuse a retention that deletes files of versions within the table's retention."""
        if self.retention_ms < 0:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The retention of VACUUM cannot be negative.",
                fix="Give a retention of zero or more.",
                delta_class="DELTA_VACUUM_RETENTION_PERIOD_NEGATIVE",
                fields={"retention_ms": self.retention_ms},
            )
        if self.retention_ms < self.tombstone_retention_ms and not self.force:
            hours = self.tombstone_retention_ms / 3_600_000
            raise UserError(
                Code.INVALID_ARGUMENT,
                "VACUUM cannot keep files for less time than the table's retention.",
                why=f"The table keeps removed files for {hours:g} hours "
                "(delta.deletedFileRetentionDuration); readers and writers that started within "
                "them may still need the files.",
                fix=f"Keep the files for at least {hours:g} hours. Only if nobody reads or "
                "writes the table, switch the check off: `Table.vacuum(HOURS, "
                "enforce_retention=False)` or `twinlake vacuum PATH --retention-hours HOURS "
                "--no-retention-check`.",
                delta_class="DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
                fields={
                    "retention_ms": self.retention_ms,
                    "tombstone_retention_ms": self.tombstone_retention_ms,
                },
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPlan:
    """The files that may go, as keys of the table's store, sorted."""

    delete: tuple[str, ...]
    delete_bytes: int
    cutoff_ms: int
    mode: VacuumMode
    folders: tuple[str, ...] = ()
    """Folders without a file that counts, the deepest first; they go if they are empty."""
    folders_seen: int = 0
    """How many folders belong to the data, the root not among them."""

    @property
    def metrics(self) -> dict[str, str]:
        """What the commit before the deletion reports; Delta counts folders as files there."""
        return rendered(
            {
                "numFilesToDelete": len(self.delete) + len(self.folders),
                "sizeOfDataToDelete": self.delete_bytes,
            }
        )


def plan_vacuum(
    *,
    live: Iterable[Referenced],
    tombstones: Iterable[Tombstone],
    listing: Iterable[Listed],
    vector_path: VectorPath,
    rules: VacuumRules,
    now: int,
    folders: Iterable[str] = (),
) -> VacuumPlan:
    """The files a VACUUM at ``now`` may delete.

    ``tombstones`` must hold every removal younger than the retention; where that is longer than the
    table's tombstone retention, a snapshot no longer has them all and the commits have to be read.
    For ``lite`` give the expired ones too; the listing is then not looked at, except to find tables
    that live in sub-folders. ``folders`` are those of stores that have folders.
    """
    rules.check()
    cutoff = now - rules.retention_ms
    needed: set[str] = set()
    for file in live:
        needed.update(_names(file, vector_path))
    expired = []
    for stone in tombstones:
        if (stone.deletion_timestamp or 0) < cutoff:
            expired.append(stone)
        else:
            needed.update(_names(stone, vector_path))

    present = list(listing)
    place = _Place.of(rules, (entry.key for entry in present))
    full = rules.mode is VacuumMode.FULL
    old = [e for e in present if e.modified_ms < cutoff and place.is_data(e.key)] if full else []
    candidates = (
        ((entry.key, entry.size) for entry in old)
        if full
        else ((key, size) for key, size in _named_by(expired, vector_path) if place.is_data(key))
    )
    doomed = {key: size for key, size in candidates if key not in needed}
    seen = place.folders_of(entry.key for entry in present) if full else set()
    real = {folder for folder in folders if place.is_folder(folder)}
    hollow = real - place.folders_of(entry.key for entry in old)
    if hollow:
        hollow -= place.folders_of(needed)
    return VacuumPlan(
        delete=tuple(sorted(doomed)),
        delete_bytes=sum(doomed.values()),
        cutoff_ms=cutoff,
        mode=rules.mode,
        folders=tuple(sorted(hollow, key=lambda folder: (-folder.count("/"), folder))),
        folders_seen=len(seen | real),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Which places of the folder belong to the table's data."""

    reserved: frozenset[str]
    partition_prefixes: tuple[str, ...]
    other_tables: frozenset[str]
    decided: dict[str, bool] = field(default_factory=lambda: {"": True})
    """Folders by whether they belong to the data: a table has many files in few folders."""

    @staticmethod
    def of(rules: VacuumRules, keys: Iterable[str]) -> _Place:
        # A table inside the folder of this one has files this log knows nothing about.
        nested = (key.partition("/_delta_log/") for key in keys)
        return _Place(
            reserved=RESERVED_FOLDERS | rules.protected,
            partition_prefixes=tuple(f"{name}=" for name in rules.partition_columns),
            other_tables=frozenset(folder for folder, found, _ in nested if found),
        )

    def is_data(self, key: str) -> bool:
        folder, slash, name = key.rpartition("/")
        if slash and key.startswith(STAGING_PREFIX):
            return True
        named = self._may_be_named(name) or _TEMPORARY.fullmatch(name)
        if not named or (slash and not folder):
            return False
        return self.is_folder(folder) and (bool(folder) or name not in self.reserved)

    def is_folder(self, folder: str) -> bool:
        decision = self.decided.get(folder)
        if decision is None and folder.startswith(STAGING_PREFIX):
            decision = self.decided[folder] = True
        if decision is None:
            above, _, name = folder.rpartition("/")
            decision = self.decided[folder] = (
                not folder.startswith("/")
                and self.is_folder(above)
                and self._may_be_named(name)
                and folder not in self.reserved
                and folder not in self.other_tables
            )
        return decision

    def folders_of(self, keys: Iterable[str]) -> set[str]:
        """The folders of the data above these keys, without the root."""
        found: set[str] = set()
        for key in keys:
            folder = key.rpartition("/")[0]
            while folder and folder not in found:
                if self.is_folder(folder):
                    found.add(folder)
                folder = folder.rpartition("/")[0]
        return found

    def _may_be_named(self, name: str) -> bool:
        # A key that is spelled in another way than the one plain way is not touched.
        return name not in ("", ".", "..") and not (
            name.startswith(("_", "."))
            and name not in _SWEPT_THOUGH_HIDDEN
            and not name.startswith(self.partition_prefixes)
        )


def _names(file: Referenced, vector_path: VectorPath) -> Iterator[str]:
    for path in _places(file, vector_path):
        yield from _keys_meant_by(path)


def _places(file: Referenced, vector_path: VectorPath) -> Iterator[str]:
    yield file.path
    if file.deletion_vector is not None:
        vector = vector_path(file.deletion_vector)
        if vector is not None:
            yield vector


def _keys_meant_by(path: str) -> Iterator[str]:
    """Every key that a path in the log could mean: rather one too many than one too few.

    The same place can be spelled with several schemes and hosts, so of an absolute path every tail
    is protected; and writers that forget to encode mean the text as it stands.
    """
    for text in {path, unquote(path)}:
        if not (_SCHEME.match(text) or text.startswith("/")):
            yield posixpath.normpath(text)
            continue
        parts = text.split("/")
        for start in range(len(parts)):
            yield posixpath.normpath("/".join(parts[start:]) or ".")


def _named_by(expired: Iterable[Tombstone], vector_path: VectorPath) -> Iterator[tuple[str, int]]:
    for stone in expired:
        vector = stone.deletion_vector
        sizes = (stone.size or 0, vector.size_in_bytes if vector else 0)
        for path, size in zip(_places(stone, vector_path), sizes, strict=False):
            # An absolute path is not ours to delete, even if it may point into the table.
            if not _SCHEME.match(path):
                yield unquote(path), size
