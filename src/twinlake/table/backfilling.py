"""Row ids for the files of a table that gets row tracking: metadata alone, no row is moved.

Before ``delta.enableRowTracking`` may be set every live file must have a first row id (Delta
protocol, Row Tracking). So the feature is added first, from then on every writer hands out ids, and
then the files that are older are committed again with ids, in batches. Killed between two batches,
the table is whole and the next run goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.commit import DEFAULT_HOOKS, CommitOptions, Operation, OperationName, Transaction
from twinlake.commit.plans import physical_rows
from twinlake.commit.readset import ReadSet
from twinlake.errors import Code, ConflictError, UserError
from twinlake.log import CACHE
from twinlake.storage import resolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.commit import CommitResult
    from twinlake.protocol import Metadata
    from twinlake.storage import Store
    from twinlake.table.table import Table

__all__ = ["ENABLEMENT_TAGS", "backfill_row_ids", "wants_backfill"]

ENABLEMENT_TAGS: Final = {"rowTrackingEnablementOnly": "true"}
"""The tags of the commit that sets ``delta.enableRowTracking`` after a backfill."""

_FEATURE: Final = "rowTracking"
_ENABLED: Final = "delta.enableRowTracking"
_SUSPENDED: Final = "delta.rowTrackingSuspended"
_BATCH: Final = 100_000
_ROUNDS: Final = 10


def wants_backfill(table: Table, wanted: Metadata) -> bool:
    """Whether this new metadata switches row tracking on for files that have no row ids."""
    if table.metadata.flag(_ENABLED) or not wanted.flag(_ENABLED):
        return False
    return bool(table.snapshot.add_files()["base_row_id"].null_count)


def backfill_row_ids(table: Table, *, batch_size: int = _BATCH) -> Table:
    """The table with row ids on every live file; its properties stay as they are.

    Files that other writers add meanwhile get their ids from them; files that they remove are left
    out.
    """
    if table.metadata.flag(_SUSPENDED):
        raise UserError(
            Code.FEATURE_ENABLE,
            "Row ids cannot be handed out while row tracking is suspended.",
            why=f"{_SUSPENDED} is true",
            fix=f"Unset {_SUSPENDED} first.",
            delta_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            fields={"property": _SUSPENDED},
        )
    table = _with_feature(table.refresh())
    for batch in range(_ROUNDS * (table.snapshot.num_files // batch_size + 1)):
        left = [add for add in table.snapshot.adds() if add.base_row_id is None]
        if not left:
            return table
        table = _commit_batch(table, _counted(table, left[:batch_size]), batch)
    raise UserError(
        Code.FEATURE_ENABLE,
        "Row ids could not be handed out to all files.",
        why="other writers keep bringing in files without row ids",
        fix="Stop those writers, then enable row tracking again.",
        fields={"feature": _FEATURE},
    )


def _with_feature(table: Table) -> Table:
    if table.protocol.is_supported(_FEATURE):
        return table
    wanted = table.metadata.with_configuration({f"delta.feature.{_FEATURE}": "supported"})
    protocol = table.protocol.upgraded_for(wanted, policy=table.policy)
    operation = Operation(
        name=OperationName.UPGRADE_PROTOCOL, parameters={"newProtocol": protocol.to_dict()}
    )
    return _became(table, _transaction(table, operation).add(protocol).commit())


def _commit_batch(table: Table, files: Sequence[AddFile], batch: int) -> Table:
    operation = Operation(
        name=OperationName.ROW_TRACKING_BACKFILL, parameters={"batchId": str(batch)}
    )
    transaction = _transaction(table, operation)
    transaction.record(ReadSet(files=frozenset(file.path for file in files)))
    try:
        return _became(table, transaction.add(*files).commit())
    except ConflictError:
        # Somebody changed those very files; what is left of them is seen in the next round.
        return table.refresh()


def _counted(table: Table, files: Sequence[AddFile]) -> list[AddFile]:
    """The files with row counts, without which no ids can be set aside; footers have them."""
    unknown = [file for file in files if physical_rows(file) is None]
    paths = [file.path for file in unknown]
    counts = table.runtime.executor.map(_CountRows(table.snapshot.store), paths)
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


def _transaction(table: Table, operation: Operation) -> Transaction:
    options = CommitOptions(policy=table.policy)
    return Transaction(table.snapshot, operation, table.runtime, DEFAULT_HOOKS, options=options)


def _became(table: Table, result: CommitResult) -> Table:
    CACHE.offer(result.snapshot)
    return table.refresh()
