"""The updates of an Iceberg commit request, as the REST catalog's specification names them.

What an update carries (a schema, a spec, a snapshot) stays a document, with whatever fields a later
specification gives it.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "AddEncryptionKey",
    "AddSchema",
    "AddSnapshot",
    "AddSortOrder",
    "AddSpec",
    "AssignUuid",
    "RemoveEncryptionKey",
    "RemovePartitionSpecs",
    "RemovePartitionStatistics",
    "RemoveProperties",
    "RemoveSchemas",
    "RemoveSnapshotRef",
    "RemoveSnapshots",
    "RemoveStatistics",
    "SetCurrentSchema",
    "SetDefaultSortOrder",
    "SetDefaultSpec",
    "SetLocation",
    "SetPartitionStatistics",
    "SetProperties",
    "SetSnapshotRef",
    "SetStatistics",
    "Update",
    "UpgradeFormatVersion",
]

Document = dict[str, Any]


class _Update(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="kebab",
    tag_field="action",
    tag=lambda name: "".join(f"-{c.lower()}" if c.isupper() else c for c in name)[1:],
):
    """One update; its ``action`` is the name of the class."""


class AssignUuid(_Update, frozen=True):
    """Give the table its id."""

    uuid: str


class UpgradeFormatVersion(_Update, frozen=True):
    """Move the table to a later version of the format."""

    format_version: int


class AddSchema(_Update, frozen=True):
    """Add a schema."""

    schema: Document
    last_column_id: int | None = None


class SetCurrentSchema(_Update, frozen=True):
    """Let a schema count; -1 is the one that this request added last."""

    schema_id: int


class AddSpec(_Update, frozen=True):
    """Add a partition spec."""

    spec: Document


class SetDefaultSpec(_Update, frozen=True):
    """Let a spec count; -1 is the one that this request added last."""

    spec_id: int


class AddSortOrder(_Update, frozen=True):
    """Add a sort order."""

    sort_order: Document


class SetDefaultSortOrder(_Update, frozen=True):
    """Let a sort order count; -1 is the one that this request added last."""

    sort_order_id: int


class AddSnapshot(_Update, frozen=True):
    """Add a snapshot, which nothing points to yet."""

    snapshot: Document


class SetSnapshotRef(_Update, frozen=True):
    """Point a branch or tag at a snapshot."""

    ref_name: str
    type: str
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None


class RemoveSnapshots(_Update, frozen=True):
    """Expire snapshots."""

    snapshot_ids: tuple[int, ...]


class RemoveSnapshotRef(_Update, frozen=True):
    """Remove a branch or tag."""

    ref_name: str


class SetLocation(_Update, frozen=True):
    """Move the table."""

    location: str


class SetProperties(_Update, frozen=True):
    """Set table properties."""

    updates: dict[str, str]


class RemoveProperties(_Update, frozen=True):
    """Remove table properties."""

    removals: tuple[str, ...]


class SetStatistics(_Update, frozen=True):
    """Name the Puffin file with statistics of a snapshot."""

    statistics: Document
    snapshot_id: int | None = None


class RemoveStatistics(_Update, frozen=True):
    """Forget the statistics of a snapshot."""

    snapshot_id: int


class SetPartitionStatistics(_Update, frozen=True):
    """Name the file with partition statistics of a snapshot."""

    partition_statistics: Document


class RemovePartitionStatistics(_Update, frozen=True):
    """Forget the partition statistics of a snapshot."""

    snapshot_id: int


class RemovePartitionSpecs(_Update, frozen=True):
    """Remove partition specs."""

    spec_ids: tuple[int, ...]


class RemoveSchemas(_Update, frozen=True):
    """Remove schemas."""

    schema_ids: tuple[int, ...]


class AddEncryptionKey(_Update, frozen=True):
    """Add an encryption key."""

    encryption_key: Document


class RemoveEncryptionKey(_Update, frozen=True):
    """Remove an encryption key."""

    key_id: str


Update = (
    AddEncryptionKey
    | AddSchema
    | AddSnapshot
    | AddSortOrder
    | AddSpec
    | AssignUuid
    | RemoveEncryptionKey
    | RemovePartitionSpecs
    | RemovePartitionStatistics
    | RemoveProperties
    | RemoveSchemas
    | RemoveSnapshotRef
    | RemoveSnapshots
    | RemoveStatistics
    | SetCurrentSchema
    | SetDefaultSortOrder
    | SetDefaultSpec
    | SetLocation
    | SetPartitionStatistics
    | SetProperties
    | SetSnapshotRef
    | SetStatistics
    | UpgradeFormatVersion
)
