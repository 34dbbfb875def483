"""What a commit does to the columns of the table, for the rules about schema changes.

A commit that leaves schema, partitioning and column mapping as they are is not asked anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.schema import (
    MAX_COLUMN_ID_KEY,
    MODE_KEY,
    SchemaChange,
    schema_violations,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.actions import Metadata
    from twinlake.commit.change import Change
    from twinlake.log import Snapshot
    from twinlake.schema import SchemaViolation

__all__ = ["keeps_files", "new_schema_violations", "schema_change"]

_WIDENING: Final = "delta.enableTypeWidening"
_WIDENING_FEATURES: Final = ("typeWidening", "typeWidening-preview")


def schema_change(change: Change) -> SchemaChange | None:
    """The change of the columns; None where there is none, or no table before."""
    after = change.summary.metadata
    if after is None or change.version == 0 or _is_same(change.base.metadata, after):
        return None
    before = change.base.metadata
    return SchemaChange(
        before=before.schema,
        after=after.schema,
        old_mode=before.column_mapping_mode,
        new_mode=after.column_mapping_mode,
        old_partitions=before.partition_columns,
        new_partitions=after.partition_columns,
        old_max_id=_max_id(before) or 0,
        new_max_id=_max_id(after) or 0,
        widens=after.flag(_WIDENING),
        records_widening=any(change.protocol.is_supported(name) for name in _WIDENING_FEATURES),
    )


def keeps_files(change: Change, current: Snapshot) -> bool:
    """Whether a file stays in the table that was written before the commit.

    Only looked up where the columns change: the answer may take a look at all files.
    """
    after = change.summary.metadata
    if after is None or _is_same(change.base.metadata, after) or not current.num_files:
        return False
    removed = {remove.key for remove in change.summary.removes}
    if not removed:
        return True
    # One that is removed and added again is the same file.
    wanted = change.summary.removed_paths - change.summary.added_paths
    gone = sum(add.key in removed for add in current.live_files(wanted).values())
    return gone < current.num_files


def new_schema_violations(change: Change) -> Iterator[SchemaViolation]:
    """What is wrong with the schema after the commit and was not before.

    A table that somebody else broke is not locked by it.
    """
    after = change.summary.metadata
    if after is None:
        return
    before = change.base.metadata if change.version > 0 else None
    found = [] if before is not None and _is_same(before, after) else list(_violations(after))
    # Most schemas are sound, and then the one before need not be looked at.
    known = frozenset(_violations(before)) if found and before is not None else frozenset()
    yield from (violation for violation in found if violation not in known)


def _violations(metadata: Metadata) -> Iterator[SchemaViolation]:
    return schema_violations(
        metadata.schema,
        mode=metadata.column_mapping_mode,
        partition_columns=metadata.partition_columns,
        max_id=_max_id(metadata),
    )


def _is_same(before: Metadata, after: Metadata) -> bool:
    return (
        before.schema_string == after.schema_string
        and before.partition_columns == after.partition_columns
        and all(before.get(key) == after.get(key) for key in (MODE_KEY, MAX_COLUMN_ID_KEY))
    )


def _max_id(metadata: Metadata) -> int | None:
    """The highest column id that the table gave out; None where it does not say."""
    text = metadata.get(MAX_COLUMN_ID_KEY)
    return int(text) if text.isascii() and text.isdigit() else None
