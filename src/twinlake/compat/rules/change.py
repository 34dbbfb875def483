"""Rules about what a commit may change: partitioning, map keys, the compat features themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.rule import Finding
from twinlake.compat.rules.map_key_diff import key_changes
from twinlake.compat.rules.schema_index import index_schema
from twinlake.protocol import keys
from twinlake.schema import render_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.compat.rule import Case

__all__ = [
    "map_keys_keep_their_structs",
    "partition_names_stay",
    "row_tracking_comes_later",
    "third_version_stays_on",
]

_TEXTS: Final[Mapping[str, str]] = {
    "added": "was added to",
    "dropped": "was dropped from",
    "renamed": "was renamed in",
    "moved": "has its fields in another order, in",
    "type": "changes its type in",
    "nullability": "changes whether it may be null, in",
    "id": "changes its id in",
    "physical name": "changes its physical name in",
}


def partition_names_stay(case: Case) -> Iterator[Finding]:
    """Once a table is partitioned, its partition columns keep their names and their order."""
    before = case.subject.before
    if before is None or not before.metadata.partition_columns:
        return
    old, new = before.metadata.partition_columns, case.subject.metadata.partition_columns
    if old != new:
        shown = [", ".join(names) or "(none)" for names in (old, new)]
        yield Finding(
            path=", ".join(render_path((name,)) for name in old),
            found=shown[1],
            wanted=shown[0],
            message=f"the partition columns change from {shown[0]} to {shown[1]}",
        )


def map_keys_keep_their_structs(case: Case) -> Iterator[Finding]:
    """Nothing inside a struct that serves as a map key changes while the feature is enabled."""
    before, after = case.subject.before, case.subject.metadata
    # Whichever writer feature was enabled before, Iceberg writers may have written keys since.
    writers = [row for row in COMPATS.values() if row.is_writer]
    if before is None or not any(row.is_enabled(before.metadata) for row in writers):
        return
    if before.metadata.schema_string == after.schema_string:
        return
    if not any(index_schema(metadata).has_struct_key for metadata in (before.metadata, after)):
        return
    for change in key_changes(before.metadata.schema, after.schema):
        where = render_path(change.path)
        yield Finding(
            path=where,
            found=change.after,
            wanted=change.before,
            message=f"{where} {_TEXTS[change.kind]} the key of a map "
            f"({change.before} before, {change.after} after)",
        )


def row_tracking_comes_later(case: Case) -> Iterator[Finding]:
    """icebergCompatV3 is enabled where rows have ids already."""
    subject = case.subject
    if subject.before is None or subject.replaces:
        return
    was, now = (case.compat.is_enabled(m) for m in (subject.before.metadata, subject.metadata))
    if now and not was and subject.before.metadata.flag(keys.ENABLE_ROW_TRACKING):
        yield Finding(
            path=keys.ENABLE_ROW_TRACKING,
            found="true before",
            wanted="not true before",
            message=f"row tracking was enabled before {case.compat} was",
        )


def third_version_stays_on(case: Case) -> Iterator[Finding]:
    """What the third version wrote cannot be read under a lower one."""
    before = case.subject.before
    third = [row for row in COMPATS.values() if row.version >= 3 and not row.is_writer]
    if before is None:
        return
    was, now = (
        any(row.is_enabled(metadata) for row in third)
        for metadata in (before.metadata, case.subject.metadata)
    )
    if was and not now:
        yield Finding(
            path=case.compat.key,
            found=case.subject.metadata.get(case.compat.key, "(not set)"),
            wanted="true",
            message=f"{case.compat} cannot be disabled once it is enabled",
        )
