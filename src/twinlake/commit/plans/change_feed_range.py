"""Which ranges of versions have a change data feed that can be read as a whole.

Delta's rules: changes were recorded in every version, and every schema of the range can be read
under the one that the rows are shown with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.actions import AddCDCFile, AddFile, Metadata, RemoveFile
from twinlake.errors import Code, UnsupportedFeature, UserError, how_to_set
from twinlake.protocol import keys
from twinlake.schema import ColumnMappingMode, is_readable_as, keeps_columns, physical_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.log import CommitActions

__all__ = ["check_change_feed"]

_SCHEMA_CHANGE: Final = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
_DATA_SCHEMA: Final = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA"


def check_change_feed(
    commits: Sequence[CommitActions], start: Metadata, read: Metadata, *, read_version: int
) -> None:
    """Refuse a range in which changes were not recorded, or cannot be read under one schema.

    Args:
        commits: the whole range.
        start: the metadata of the first version.
        read: the metadata that the rows are to be read with.
        read_version: the version that ``read`` is of.

    Raises:
        UserError: the feed was off in a version of the range.
        UnsupportedFeature: files of the range do not fit the schema.
    """
    first, last = commits[0].version, commits[-1].version
    _check_recorded(start, first, first, last)
    for commit in commits:
        for metadata in (a for a in commit.actions if isinstance(a, Metadata)):
            _check_recorded(metadata, commit.version, first, last)
            if commit.version > first and not _is_readable(metadata, read):
                raise _incompatible(_SCHEMA_CHANGE, commit.version, first, last, read_version)
    if not _is_readable(start, read):
        raise _incompatible(_DATA_SCHEMA, first, first, last, read_version)
    _check_partitions(commits, read, read_version)


def _check_recorded(metadata: Metadata, version: int, first: int, last: int) -> None:
    if metadata.flag(keys.ENABLE_CHANGE_DATA_FEED):
        return
    raise UserError(
        Code.VERSION_NOT_FOUND,
        f"There are no changes of versions {first} to {last}.",
        why=f"the change data feed was off in version {version}",
        fix="Read a range in which it was on; the history of the table shows when that was. To "
        f"record changes from now on, run {how_to_set(keys.ENABLE_CHANGE_DATA_FEED, 'true')}.",
        delta_class="DELTA_MISSING_CHANGE_DATA",
        fields={"version": version, "first": first, "last": last},
    )


def _is_readable(written: Metadata, read: Metadata) -> bool:
    return is_readable_as(written.schema, read.schema) and keeps_columns(
        written.schema, written.column_mapping_mode, read.schema, read.column_mapping_mode
    )


def _check_partitions(commits: Sequence[CommitActions], read: Metadata, read_version: int) -> None:
    """Refuse files of another partitioning: their values of partition columns are in their rows.

    Delta Spark reads them as null.
    """
    fields = [read.schema.get(name) for name in read.partition_columns]
    names = {
        field.name if read.column_mapping_mode is ColumnMappingMode.NONE else physical_name(field)
        for field in fields
        if field is not None
    }
    for commit in commits:
        for action in commit.actions:
            if not isinstance(action, AddFile | RemoveFile | AddCDCFile):
                continue
            if action.partition_values is not None and action.partition_values.keys() != names:
                first, last = commits[0].version, commits[-1].version
                raise _incompatible(_DATA_SCHEMA, commit.version, first, last, read_version)


def _incompatible(
    delta_class: str, version: int, first: int, last: int, read_version: int
) -> UnsupportedFeature:
    changed = delta_class == _SCHEMA_CHANGE
    what = "the schema changed in" if changed else "files have another schema in"
    return UnsupportedFeature(
        Code.SCHEMA_EVOLUTION,
        f"The changes of versions {first} to {last} cannot be read together.",
        why=f"{what} version {version}: a column was renamed, dropped or got another type than in "
        f"version {read_version}, or the table is partitioned by other columns",
        fix=f"Read versions {first} to {version - 1} and {version} to {last} separately."
        if version > first
        else "Read from the version of that change on, or up to the version before it.",
        delta_class=delta_class,
        fields={"version": version, "first": first, "last": last, "read_version": read_version},
    )
