"""Checks of the schema after a commit, and of what the commit changes in it.

A commit that leaves schema, partitioning and column mapping as they are is not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.commit.checks.check import CheckFailure
from twinlake.errors import Code
from twinlake.protocol import features, keys
from twinlake.schema import (
    SchemaChange,
    schema_change_violations,
    schema_violations,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.actions import Metadata
    from twinlake.commit.change import Change
    from twinlake.commit.checks.check import Draft
    from twinlake.log import Snapshot
    from twinlake.schema import SchemaViolation

__all__ = ["keeps_files", "schema_change_rules", "valid_schema"]


def valid_schema(draft: Draft) -> Iterator[CheckFailure]:
    """The schema is valid, or as invalid as it was before."""
    for found in _new_schema_violations(draft.change):
        yield CheckFailure(
            message=str(found),
            code=Code.SCHEMA_INVALID,
            delta_class=found.delta_class,
            path=found.path,
            fix="Correct the columns named above.",
        )


def schema_change_rules(draft: Draft) -> Iterator[CheckFailure]:
    """The rules of schema changes hold for the files that stay."""
    change = _schema_change(draft.change)
    if change is None or (draft.change.operation.is_replace and not draft.keeps_files):
        return
    for found in schema_change_violations(
        change, keeps_files=draft.keeps_files, waived=draft.waived_rules
    ):
        yield CheckFailure(
            message=str(found),
            code=Code.SCHEMA_EVOLUTION,
            delta_class=found.rule.delta_class,
            path=found.path,
            rule=found.rule.id,
            fix=found.rule.fix,
        )


def _schema_change(change: Change) -> SchemaChange | None:
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
        old_max_id=before.max_column_id or 0,
        new_max_id=after.max_column_id or 0,
        widens=after.flag(keys.ENABLE_TYPE_WIDENING),
        records_widening=change.protocol.supports_either(features.TYPE_WIDENING),
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


def _new_schema_violations(change: Change) -> Iterator[SchemaViolation]:
    """What is wrong with the schema after the commit and was not before.

    A table that another writer broke still accepts commits.
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
        max_id=metadata.max_column_id,
    )


def _is_same(before: Metadata, after: Metadata) -> bool:
    return (
        before.schema_string == after.schema_string
        and before.partition_columns == after.partition_columns
        and all(
            before.get(key) == after.get(key)
            for key in (keys.COLUMN_MAPPING_MODE, keys.MAX_COLUMN_ID)
        )
    )
