"""The actions that name files: add, remove, cdc, and the deletion vector they may carry."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from twinlake.protocol import Int, Long

__all__ = ["AddCDCFile", "AddFile", "DeletionVectorDescriptor", "FileKey", "RemoveFile"]

FileKey = tuple[str, str | None]
"""Path and deletion-vector id: what the protocol's Action Reconciliation compares."""

# Unknown fields of an action are kept under a name that no JSON key of a real writer has, so that
# they never mix with known ones and drop out of the encoding when there are none.
EXTRA_NAME = "\x7fextra"


# File actions come by the hundred thousand and hold plain JSON, which has no cycles: the garbage
# collector need not look at them.


class DeletionVectorDescriptor(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False
):
    """Where the deleted positions of a file are written down."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: Int
    cardinality: Long
    offset: Int | None = None

    @property
    def unique_id(self) -> str:
        """The identity that reconciliation compares."""
        suffix = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{suffix}"


class _RowCount(msgspec.Struct, rename="camel"):
    num_records: int | None = None


_ROW_COUNT: Final = msgspec.json.Decoder(_RowCount)


class AddFile(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """A file that is part of the table from this version on."""

    path: str
    partition_values: dict[str, str | None]
    size: Long
    modification_time: Long
    data_change: bool
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    clustering_provider: str | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)

    @property
    def key(self) -> FileKey:
        """Path and deletion-vector id."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None

    @property
    def num_records(self) -> int | None:
        """The rows of the file, deleted ones included; None where the statistics do not say.

        >>> AddFile(path="a", partition_values={}, size=1, modification_time=0,
        ...         data_change=True, stats='{"numRecords":3}').num_records
        3
        """
        # Statistics may be absent, empty or damaged; then nothing is known, which is always safe.
        try:
            count = _ROW_COUNT.decode(self.stats).num_records if self.stats else None
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return count if count is None or count >= 0 else None

    @property
    def num_live_records(self) -> int | None:
        """The rows a reader sees: all of them less those that the deletion vector marks."""
        rows = self.num_records
        return (
            rows
            if rows is None or not self.deletion_vector
            else rows - self.deletion_vector.cardinality
        )

    def remove(self, *, deletion_timestamp: int, data_change: bool = True) -> RemoveFile:
        """The tombstone of this very file, with all that is known of it."""
        return RemoveFile(
            path=self.path,
            data_change=data_change,
            deletion_timestamp=deletion_timestamp,
            extended_file_metadata=True,
            partition_values=self.partition_values,
            size=self.size,
            stats=self.stats,
            tags=self.tags,
            deletion_vector=self.deletion_vector,
            base_row_id=self.base_row_id,
            default_row_commit_version=self.default_row_commit_version,
        )


class RemoveFile(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False
):
    """A file that is no longer part of the table; its tombstone keeps VACUUM off it for a while."""

    path: str
    data_change: bool
    deletion_timestamp: Long | None = None
    extended_file_metadata: bool | None = None
    partition_values: dict[str, str | None] | None = None
    size: Long | None = None
    stats: str | None = None
    tags: dict[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)

    @property
    def key(self) -> FileKey:
        """Path and deletion-vector id."""
        return self.path, self.deletion_vector.unique_id if self.deletion_vector else None


class AddCDCFile(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A file of row changes; where a version has any, they are its only change data."""

    path: str
    partition_values: dict[str, str | None]
    size: Long
    data_change: bool
    tags: dict[str, str | None] | None = None
    extra: dict[str, Any] = msgspec.field(default_factory=dict, name=EXTRA_NAME)
