"""A transaction as a value: its base version, what it read, what it writes.

Nothing here does I/O. A ``Change`` plus the winners it lost to is all the conflict rules need,
so that a model checker can run the shipped rules through every interleaving.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from twinlake.actions import CommitInfo, Metadata, Protocol
from twinlake.commit.isolation import IsolationLevel, effective_level, table_level
from twinlake.commit.read_set import ReadSet
from twinlake.commit.row_tracking import (
    NO_MARK,
    PRESERVED_TAG,
    assign_row_ids,
    assigns_row_ids,
)
from twinlake.commit.summary import CommitSummary, summarize
from twinlake.commit.timestamps import commit_timestamp, with_provenance
from twinlake.protocol import keys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from twinlake.actions import Action
    from twinlake.commit.operation import Operation

__all__ = ["Base", "Body", "Change", "assemble"]

_NO_TAGS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The state of the table just before the version that is tried."""

    version: int = -1
    protocol: Protocol
    metadata: Metadata
    row_id_mark: int = NO_MARK
    timestamp_ms: int | None = None


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a transaction wants to do. ``actions`` hold no ``commitInfo`` and no assigned ids."""

    base: Base
    operation: Operation
    actions: tuple[Action, ...] = ()
    reads: ReadSet = field(default_factory=ReadSet)
    read_version: int = -1
    read_mark: int = NO_MARK
    timestamp_ms: int = 0
    isolation: IsolationLevel | None = None
    """Asked for by the caller instead of by the table."""

    @cached_property
    def summary(self) -> CommitSummary:
        """The actions by kind."""
        return summarize(self.actions)

    @property
    def version(self) -> int:
        """The version to try next."""
        return self.base.version + 1

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol after the commit."""
        return self.summary.protocol or self.base.protocol

    @cached_property
    def metadata(self) -> Metadata:
        """The metadata after the commit."""
        return self.summary.metadata or self.base.metadata

    @property
    def is_blind_append(self) -> bool:
        """Only adds among the file actions, and nothing read."""
        return self.summary.only_adds and not self.reads.reads_data

    @cached_property
    def level(self) -> IsolationLevel:
        """The level this commit is checked under."""
        asked = self.isolation or table_level(self.base.metadata)
        return effective_level(asked, self.summary, self.operation)

    def with_actions(self, actions: Sequence[Action]) -> Change:
        """The same with other actions."""
        return replace(self, actions=tuple(actions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A commit ready to be written at ``version``."""

    version: int
    actions: tuple[Action, ...]
    """``commitInfo`` first."""
    in_commit_timestamp: int | None
    row_id_mark: int


def assemble(
    change: Change,
    *,
    txn_id: str,
    engine_info: str,
    user_metadata: str | None = None,
    tags: Mapping[str, str] = _NO_TAGS,
) -> Body:
    """The body for the next version, with the timestamps, ids and provenance of that version."""
    version, base, summary = change.version, change.base, change.summary
    protocol, metadata = change.protocol, change.metadata
    stamp = commit_timestamp(change.timestamp_ms, base.timestamp_ms)
    has_stamp = metadata.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS)

    actions: list[Action] = list(change.actions)
    if summary.metadatas:
        actions = [
            _placed(action, change, version, stamp) if isinstance(action, Metadata) else action
            for action in actions
        ]
    mark = base.row_id_mark
    assigning = assigns_row_ids(protocol, metadata)
    if assigning:
        actions, mark = assign_row_ids(
            actions, read_mark=change.read_mark, mark=mark, version=version
        )
    # Readers that stop early find what gates them first.
    actions.sort(key=_rank)
    info = CommitInfo(
        in_commit_timestamp=stamp if has_stamp else None,
        timestamp=stamp if has_stamp else change.timestamp_ms,
        operation=change.operation.name,
        operation_parameters=change.operation.to_dict(),
        read_version=change.read_version if change.read_version >= 0 else None,
        isolation_level=str(change.level),
        is_blind_append=change.is_blind_append,
        operation_metrics=change.operation.metrics_to_dict(),
        user_metadata=user_metadata,
        tags=_tags(tags, change, assigning),
        engine_info=engine_info,
        txn_id=txn_id,
    )
    return Body(
        version=version,
        actions=(info, *actions),
        in_commit_timestamp=stamp if has_stamp else None,
        row_id_mark=mark,
    )


def _placed(metadata: Metadata, change: Change, version: int, stamp: int) -> Metadata:
    before = None if change.base.version < 0 else change.base.metadata
    placed = with_provenance(metadata, before=before, version=version, timestamp_ms=stamp)
    protects = placed.configuration.get(keys.REQUIRE_CHECKPOINT_PROTECTION)
    asked_now = protects is not None and protects != change.base.metadata.get(
        keys.REQUIRE_CHECKPOINT_PROTECTION
    )
    if change.operation.is_feature_drop and asked_now:
        # History before the drop is protected up to the version the drop really lands on.
        placed = placed.with_configuration({keys.REQUIRE_CHECKPOINT_PROTECTION: str(version)})
    return placed


def _tags(tags: Mapping[str, str], change: Change, assigning: bool) -> dict[str, Any] | None:
    merged = dict(tags)
    if assigning and PRESERVED_TAG not in merged:
        # A commit that removes nothing cannot lose a row id; one that does must say it kept them.
        merged[PRESERVED_TAG] = "false" if change.summary.removes else "true"
    return merged or None


def _rank(action: Action) -> int:
    return 0 if isinstance(action, Protocol) else 1 if isinstance(action, Metadata) else 2
