"""Row ids for the files of a table that gets row tracking: metadata alone, no row is moved.

Before ``delta.enableRowTracking`` may be set every live file must have a first row id (Delta
protocol, Row Tracking). So the feature is added first, from then on every writer hands out ids, and
then the files that are older are committed again with ids, in batches. Killed between two batches,
the table is whole and the next run goes on.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.commit import Operation, OperationName
from twinlake.errors import Code, ConflictError, UserError, how_to_set, how_to_unset
from twinlake.protocol import features, keys
from twinlake.storage import resolve
from twinlake.table.operations.context import CommitSequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.storage import Store
    from twinlake.table.operations.context import OperationContext

__all__ = ["ENABLEMENT_TAGS", "backfill_row_ids", "is_enablement", "wants_backfill"]

ENABLEMENT_TAGS: Final = {"rowTrackingEnablementOnly": "true"}
"""The tags of the commit that sets ``delta.enableRowTracking`` after a backfill."""

_BATCH: Final = 100_000
_ROUNDS: Final = 10


def wants_backfill(snapshot: Snapshot, wanted: Metadata) -> bool:
    """Whether this new metadata switches row tracking on for files that have no row ids."""
    if snapshot.metadata.flag(keys.ENABLE_ROW_TRACKING) or not wanted.flag(
        keys.ENABLE_ROW_TRACKING
    ):
        return False
    return bool(snapshot.add_files()["base_row_id"].null_count)


def is_enablement(before: Metadata, after: Metadata) -> bool:
    """Whether nothing but row tracking is switched on."""
    return before.with_configuration(
        {keys.ENABLE_ROW_TRACKING: "true"}
    ) == after.with_configuration({keys.ENABLE_ROW_TRACKING: "true"})


def backfill_row_ids(
    context: OperationContext, snapshot: Snapshot, *, batch_size: int = _BATCH
) -> Snapshot:
    """The table with row ids on every live file; its properties stay as they are.

    Files that other writers add meanwhile get their ids from them; files that they remove are left
    out.
    """
    if snapshot.metadata.flag(keys.ROW_TRACKING_SUSPENDED):
        raise UserError(
            Code.FEATURE_ENABLE,
            "Row ids cannot be handed out while row tracking is suspended.",
            why=f"{keys.ROW_TRACKING_SUSPENDED} is true",
            fix=f"Run {how_to_unset(keys.ROW_TRACKING_SUSPENDED)} first.",
            delta_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            fields={"property": keys.ROW_TRACKING_SUSPENDED},
        )
    commits = CommitSequence(context, snapshot)
    commits.refresh()
    _add_feature(context, commits)
    for batch in range(_ROUNDS * (commits.snapshot.num_files // batch_size + 1)):
        left = [add for add in commits.snapshot.adds() if add.base_row_id is None]
        if not left:
            return commits.snapshot
        _commit_batch(context, commits, left[:batch_size], batch)
    raise UserError(
        Code.FEATURE_ENABLE,
        "Row ids could not be handed out to all files.",
        why="other writers keep bringing in files without row ids",
        fix=f"Stop those writers, then run {how_to_set(keys.ENABLE_ROW_TRACKING, 'true')} again.",
        fields={"feature": features.ROW_TRACKING},
    )


def _add_feature(context: OperationContext, commits: CommitSequence) -> None:
    snapshot = commits.snapshot
    if snapshot.protocol.is_supported(features.ROW_TRACKING):
        return
    wanted = snapshot.metadata.with_configuration(keys.support(features.ROW_TRACKING))
    protocol = snapshot.protocol.upgraded_for(wanted, policy=context.policy)
    operation = Operation(
        name=OperationName.UPGRADE_PROTOCOL, parameters={"newProtocol": protocol.to_dict()}
    )
    commits.commit(operation, protocol)
    commits.refresh()


def _commit_batch(
    context: OperationContext, commits: CommitSequence, files: Sequence[AddFile], batch: int
) -> None:
    operation = Operation(
        name=OperationName.ROW_TRACKING_BACKFILL, parameters={"batchId": str(batch)}
    )
    counted = _counted(commits.snapshot.store, files, context)
    # Somebody may change those very files; what is left of them is seen in the next round.
    with contextlib.suppress(ConflictError):
        commits.commit(operation, *counted, reads=[file.path for file in files])
    commits.refresh()


def _counted(store: Store, files: Sequence[AddFile], context: OperationContext) -> list[AddFile]:
    """The files with row counts, without which no ids can be set aside; footers have them."""
    unknown = [file for file in files if file.num_records is None]
    paths = [file.path for file in unknown]
    counts = context.executor.map(_CountRows(store), paths)
    known = dict(zip(paths, counts, strict=True))
    return [
        msgspec.structs.replace(
            file,
            data_change=False,
            stats=_with_count(file.stats, known[file.path]) if file.path in known else file.stats,
        )
        for file in files
    ]


@dataclass(frozen=True, slots=True)
class _CountRows:
    """A value and no closure, so that an executor may send it to another process."""

    store: Store

    def __call__(self, path: str) -> int:
        from twinlake.log import read_footer

        return int(read_footer(*resolve(self.store, path)).metadata.num_rows)


def _with_count(stats: str | None, rows: int) -> str:
    try:
        found: dict[str, Any] = msgspec.json.decode(stats or "{}", type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        found = {}
    return msgspec.json.encode({**found, "numRecords": rows}).decode()
