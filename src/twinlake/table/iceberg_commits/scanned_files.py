"""Whether the files that a commit touches are still as the client scanned them.

A request names the snapshot it was built on, and a client refreshes before it commits, so that this
is a later one than it scanned. Rows deleted in between are then deleted from files that the client
has never seen as they are. A client that says what it scanned is held to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, TwinlakeError, UserError, listed
from twinlake.log import load_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.actions import AddFile
    from twinlake.iceberg.requests import ClientSnapshot
    from twinlake.table.iceberg_commits.twin_state import TwinState

__all__ = ["SCANNED", "check_scanned_files"]

SCANNED: Final = "twinlake.scanned-snapshot-id"
"""The key in the summary of a client's snapshot."""


def check_scanned_files(
    state: TwinState, snapshots: Iterable[ClientSnapshot], touched: Iterable[AddFile]
) -> None:
    """Refuse a commit whose files have lost rows since they were scanned.

    ``touched`` are the files that are removed or lose rows, as they are now.
    """
    files = {add.path: add for add in touched}
    for scanned in {one.summary[SCANNED] for one in snapshots if SCANNED in one.summary}:
        version = _version(state, scanned)
        then = {} if version is None else _files(state, version, files)
        changed = [
            path for path, now in files.items() if path not in then or then[path].key != now.key
        ]
        if changed:
            raise UserError(
                Code.COMPAT,
                "Rows of the files were changed after they were scanned.",
                why=f"since snapshot {scanned}: {listed(sorted(changed))}.",
                fix="Scan the table again, then change the rows.",
                fields={"paths": changed, "scanned_snapshot_id": scanned},
            )


def _version(state: TwinState, scanned: str) -> int | None:
    found = (s for s in state.table_metadata.snapshots() if str(s.snapshot_id) == scanned)
    return next((snapshot.sequence_number for snapshot in found), None)


def _files(state: TwinState, version: int, paths: Iterable[str]) -> Mapping[str, AddFile]:
    """The files as a version has them; none where it is not known any more."""
    try:
        return load_snapshot(state.snapshot.store, version).live_files(paths)
    except TwinlakeError as error:
        if error.code is Code.VERSION_NOT_FOUND:
            return {}
        raise
