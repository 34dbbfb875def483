"""A commit's actions, sorted once by kind: what rules and checks look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from twinlake.actions import (
    Action,
    AddCDCFile,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["CommitSummary", "Winner", "summarize"]


@dataclass(frozen=True, kw_only=True)
class CommitSummary:
    """The actions of one commit by kind. Metadata and protocol stay lists, to find doubles."""

    adds: tuple[AddFile, ...] = ()
    removes: tuple[RemoveFile, ...] = ()
    changes: tuple[AddCDCFile, ...] = ()
    transactions: tuple[SetTransaction, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()
    metadatas: tuple[Metadata, ...] = ()
    protocols: tuple[Protocol, ...] = ()
    infos: tuple[CommitInfo, ...] = ()
    others: tuple[Action, ...] = ()

    @property
    def metadata(self) -> Metadata | None:
        """The metadata the commit sets, if any."""
        return self.metadatas[-1] if self.metadatas else None

    @property
    def protocol(self) -> Protocol | None:
        """The protocol the commit sets, if any."""
        return self.protocols[-1] if self.protocols else None

    @property
    def info(self) -> CommitInfo | None:
        """The commit's own description, if it has one."""
        return self.infos[0] if self.infos else None

    @cached_property
    def added_paths(self) -> frozenset[str]:
        """The paths among the adds."""
        return frozenset(add.path for add in self.adds)

    @cached_property
    def removed_paths(self) -> frozenset[str]:
        """The paths among the removes, whatever their deletion vectors."""
        return frozenset(remove.path for remove in self.removes)

    @property
    def only_adds(self) -> bool:
        """Whether no file action is anything but an add."""
        return not self.removes and not self.changes

    @property
    def changes_data(self) -> bool:
        """Whether any file action is marked as changing rows."""
        return (
            any(add.data_change for add in self.adds)
            or any(remove.data_change for remove in self.removes)
            or any(cdc.data_change for cdc in self.changes)
        )

    @property
    def has_files(self) -> bool:
        """Whether there is any file action."""
        return bool(self.adds or self.removes or self.changes)


_FIELDS: dict[type, str] = {
    AddFile: "adds",
    RemoveFile: "removes",
    AddCDCFile: "changes",
    SetTransaction: "transactions",
    DomainMetadata: "domains",
    Metadata: "metadatas",
    Protocol: "protocols",
    CommitInfo: "infos",
}


def summarize(actions: Iterable[Action]) -> CommitSummary:
    """Sort actions by kind, keeping their order within a kind."""
    others: list[Action] = []
    kinds: dict[type, list[Action]] = {kind: [] for kind in _FIELDS}
    for action in actions:
        kinds.get(type(action), others).append(action)
    fields = {_FIELDS[kind]: tuple(found) for kind, found in kinds.items() if found}
    fields["others"] = tuple(others)
    return CommitSummary(**fields)  # type: ignore[arg-type]  # keyed by type just above


@dataclass(frozen=True, kw_only=True)
class Winner:
    """A commit that took a version this transaction wanted, or one before it."""

    version: int
    actions: tuple[Action, ...]
    modified_ms: int | None = None
    """The time of its file, where it is needed."""

    @cached_property
    def summary(self) -> CommitSummary:
        """Its actions by kind."""
        return summarize(self.actions)

    @property
    def operation(self) -> str:
        """What it says it did."""
        info = self.summary.info
        return (info.operation if info else None) or "an unnamed operation"

    @property
    def is_blind_append(self) -> bool:
        """Whether it only added and says it read nothing; without the flag it may have read."""
        info = self.summary.info
        return bool(info and info.is_blind_append) and self.summary.only_adds

    @property
    def timestamp_ms(self) -> int | None:
        """Its in-commit timestamp, or else the time of its file if known."""
        info = self.summary.info
        stamp = info.in_commit_timestamp if info else None
        return self.modified_ms if stamp is None else stamp
