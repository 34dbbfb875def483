"""Partition values that mean something else from a commit on, although no file of it says so.

The log holds texts. Delta reads them in the type that the column has now and, where they are
timestamps without a zone, in the zone that the table names now; manifests hold values. The text of
the float 0.1 is the double 0.1 once the column is a double, and that is not what the old value is
promoted to.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from twinlake.schema import BYTE, INTEGER, LONG, SHORT, TIMESTAMP, Decimal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import AddFile
    from twinlake.iceberg.derive.operation import FileChanges
    from twinlake.iceberg.derive.table_layout import TableLayout
    from twinlake.schema import DataType

__all__ = ["moves_files", "with_moved_files"]

_WHOLE: Final = frozenset({BYTE, SHORT, INTEGER, LONG})


def moves_files(before: TableLayout, after: TableLayout) -> bool:
    """Whether texts may be read as other values than before; only then files need a look."""
    pairs = [
        (was.type, now.type)
        for now in after.spec.fields
        for was in before.spec.fields
        if was.source_id == now.source_id
    ]
    if before.zone != after.zone and any(now == TIMESTAMP for _, now in pairs):
        return True
    return any(was != now and not _promotes_alike(was, now) for was, now in pairs)


def with_moved_files(
    changes: FileChanges,
    live: Iterable[AddFile],
    *,
    before: TableLayout,
    after: TableLayout,
    timestamp_ms: int,
) -> FileChanges:
    """The changes of a commit, and with them each live file that has another partition now.

    Its deletion vector goes along: engines look for vectors in the partition of the file.
    """
    named = {add.path for add in changes.added} | {add.path for add, _ in changes.remasked}
    moved = [
        add
        for add in live
        if add.path not in named and before.partition(add) != after.partition(add)
    ]
    if not moved:
        return changes
    masked = [
        (add, add.remove(deletion_timestamp=timestamp_ms, data_change=False))
        for add in moved
        if add.deletion_vector is not None
    ]
    return replace(
        changes,
        added=(*changes.added, *moved),
        remasked=(*changes.remasked, *masked),
        # The rows are those that were there.
        data_changes=changes.data_changes or frozenset({False}),
    )


def _promotes_alike(old: DataType, new: DataType) -> bool:
    """Whether an old value, made wider, is what its text is read as in the new type."""
    both = (old, new)
    return _WHOLE.issuperset(both) or all(isinstance(kind, Decimal) for kind in both)
