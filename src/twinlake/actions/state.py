"""The actions that carry state other than files, and those that only checkpoints hold."""

from __future__ import annotations

from typing import Any

import msgspec

from twinlake.actions.files import EXTRA_NAME
from twinlake.protocol import Long

__all__ = [
    "CheckpointMetadata",
    "CommitInfo",
    "DomainMetadata",
    "SetTransaction",
    "SidecarFile",
    "UnknownAction",
]


class SetTransaction(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The latest version an application wrote; makes its retries idempotent."""

    app_id: str
    version: Long
    last_updated: Long | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)


class DomainMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A named configuration; ``delta.*`` names belong to the system."""

    domain: str
    configuration: str
    removed: bool
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)


class CommitInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What happened and who did it. Free-form; unknown keys are kept in ``extra``."""

    in_commit_timestamp: Long | None = None
    timestamp: Long | None = None
    user_id: str | None = None
    user_name: str | None = None
    operation: str | None = None
    operation_parameters: dict[str, Any] | None = None
    read_version: Long | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    operation_metrics: dict[str, Any] | None = None
    user_metadata: str | None = None
    tags: dict[str, Any] | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)


class CheckpointMetadata(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """Marks a checkpoint as V2."""

    version: Long
    tags: dict[str, str | None] | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)


class SidecarFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A Parquet file with the file actions of a V2 checkpoint."""

    path: str
    size_in_bytes: Long
    modification_time: Long
    tags: dict[str, str | None] | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)


class UnknownAction(msgspec.Struct, frozen=True):
    """An action this library has no name for; ignored in state, kept when lines are copied."""

    name: str
    value: Any
