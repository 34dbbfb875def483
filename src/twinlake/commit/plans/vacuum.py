"""VACUUM: which files of the table's folder nobody can need any more.

The rule errs on one side only. A file goes when no version within the retention can name it, it is
old enough to be no other writer's work in progress, and it is in a place that belongs to data. In
doubt (a path in the log that cannot be told to be inside or outside) it stays.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol
from urllib.parse import unquote

from twinlake.actions import DeletionVectorDescriptor
from twinlake.commit.plans.figures import rendered
from twinlake.errors import Code, UserError

__all__ = [
    "RESERVED_FOLDERS",
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

_SWEPT_THOUGH_HIDDEN: Final = frozenset({"_change_data", "_delta_index"})
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

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
        """Refuse a retention that would take files from versions that are still promised."""
        if self.retention_ms < 0:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The retention of VACUUM cannot be negative.",
                fix="Give a retention of zero or more.",
                fields={"retention_ms": self.retention_ms},
            )
        if self.retention_ms < self.tombstone_retention_ms and not self.force:
            hours = self.tombstone_retention_ms / 3_600_000
            raise UserError(
                Code.INVALID_ARGUMENT,
                "VACUUM was asked to keep files for less time than the table promises.",
                why=f"The table keeps removed files for {hours:g} hours "
                "(delta.deletedFileRetentionDuration); readers and writers that started within "
                "them may still need the files.",
                fix="Use that retention or a longer one, or force it if nobody uses the table.",
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

    @property
    def metrics(self) -> dict[str, str]:
        """What the commit before the deletion reports."""
        return rendered(
            {"numFilesToDelete": len(self.delete), "sizeOfDataToDelete": self.delete_bytes}
        )


def plan_vacuum(
    *,
    live: Iterable[Referenced],
    tombstones: Iterable[Tombstone],
    listing: Iterable[Listed],
    vector_path: VectorPath,
    rules: VacuumRules,
    now: int,
) -> VacuumPlan:
    """The files a VACUUM at ``now`` may delete.

    ``tombstones`` must hold every removal younger than the retention; where that is longer than the
    table's tombstone retention, a snapshot no longer has them all and the commits have to be read.
    For ``lite`` give the expired ones too; the listing is then not looked at, except to find tables
    that live in sub-folders.
    """
    rules.check()
    cutoff = now - rules.retention_ms
    removed = list(tombstones)
    needed: set[str] = set()
    for file in live:
        needed.update(_names(file, vector_path))
    expired = []
    for stone in removed:
        if (stone.deletion_timestamp or 0) < cutoff:
            expired.append(stone)
        else:
            needed.update(_names(stone, vector_path))

    present = list(listing)
    place = _Place.of(rules, (entry.key for entry in present))
    candidates = (
        ((entry.key, entry.size) for entry in present if entry.modified_ms < cutoff)
        if rules.mode is VacuumMode.FULL
        else _named_by(expired, vector_path)
    )
    doomed = {key: size for key, size in candidates if key not in needed and place.is_data(key)}
    return VacuumPlan(
        delete=tuple(sorted(doomed)),
        delete_bytes=sum(doomed.values()),
        cutoff_ms=cutoff,
        mode=rules.mode,
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """Which places of the folder belong to the table's data."""

    reserved: frozenset[str]
    partition_prefixes: tuple[str, ...]
    other_tables: frozenset[str]

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
        parts = key.split("/")
        return (
            _is_inside(key)
            and parts[0] not in self.reserved
            and not any(self._is_hidden(part) for part in parts)
            and not (
                self.other_tables
                and any("/".join(parts[:n]) in self.other_tables for n in range(1, len(parts)))
            )
        )

    def _is_hidden(self, name: str) -> bool:
        return (
            name.startswith(("_", "."))
            and name not in _SWEPT_THOUGH_HIDDEN
            and not name.startswith(self.partition_prefixes)
        )


def _is_inside(key: str) -> bool:
    """Whether a key is a plain one below the root, spelled in the only way there is."""
    return not key.startswith("/") and all(part not in ("", ".", "..") for part in key.split("/"))


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
