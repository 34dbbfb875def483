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

from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.commit.plans import physical_rows
from twinlake.commit.readset import ReadSet
from twinlake.errors import Code, ConflictError, UserError, how_to_set, how_to_unset
from twinlake.log import CACHE
from twinlake.storage import resolve
from twinlake.table.catalog.publish import HOOKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import Runtime
    from twinlake.storage import Store

__all__ = ["ENABLEMENT_TAGS", "backfill_row_ids", "is_enablement", "wants_backfill"]

ENABLEMENT_TAGS: Final = {"rowTrackingEnablementOnly": "true"}
"""The tags of the commit that sets ``delta.enableRowTracking`` after a backfill."""

_FEATURE: Final = "rowTracking"
_ENABLED: Final = "delta.enableRowTracking"
_SUSPENDED: Final = "delta.rowTrackingSuspended"
_BATCH: Final = 100_000
_ROUNDS: Final = 10


def wants_backfill(snapshot: Snapshot, wanted: Metadata) -> bool:
    """Whether this new metadata switches row tracking on for files that have no row ids."""
    if snapshot.metadata.flag(_ENABLED) or not wanted.flag(_ENABLED):
        return False
    return bool(snapshot.add_files()["base_row_id"].null_count)


def is_enablement(before: Metadata, after: Metadata) -> bool:
    """Whether nothing but row tracking is switched on."""
    return before.with_configuration({_ENABLED: "true"}) == after.with_configuration(
        {_ENABLED: "true"}
    )


def backfill_row_ids(
    snapshot: Snapshot, *, policy: str, runtime: Runtime, batch_size: int = _BATCH
) -> Snapshot:
    """The table with row ids on every live file; its properties stay as they are.

    Files that other writers add meanwhile get their ids from them; files that they remove are left
    out.
    """
    if snapshot.metadata.flag(_SUSPENDED):
        raise UserError(
            Code.FEATURE_ENABLE,
            "Row ids cannot be handed out while row tracking is suspended.",
            why=f"{_SUSPENDED} is true",
            fix=f"Run {how_to_unset(_SUSPENDED)} first.",
            delta_class="DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
            fields={"property": _SUSPENDED},
        )
    work = _Backfill(policy=policy, runtime=runtime)
    current = work.with_feature(CACHE.latest(snapshot.store))
    for batch in range(_ROUNDS * (current.num_files // batch_size + 1)):
        left = [add for add in current.adds() if add.base_row_id is None]
        if not left:
            return current
        current = work.commit_batch(current, left[:batch_size], batch)
    raise UserError(
        Code.FEATURE_ENABLE,
        "Row ids could not be handed out to all files.",
        why="other writers keep bringing in files without row ids",
        fix=f"Stop those writers, then run {how_to_set('delta.enableRowTracking', 'true')} again.",
        fields={"feature": _FEATURE},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backfill:
    """The commits of one backfill."""

    policy: str
    runtime: Runtime

    def with_feature(self, snapshot: Snapshot) -> Snapshot:
        if snapshot.protocol.is_supported(_FEATURE):
            return snapshot
        wanted = snapshot.metadata.with_configuration({f"delta.feature.{_FEATURE}": "supported"})
        protocol = snapshot.protocol.upgraded_for(wanted, policy=self.policy)
        operation = Operation(
            name=OperationName.UPGRADE_PROTOCOL, parameters={"newProtocol": protocol.to_dict()}
        )
        return self._committed(self._transaction(snapshot, operation).add(protocol))

    def commit_batch(self, snapshot: Snapshot, files: Sequence[AddFile], batch: int) -> Snapshot:
        operation = Operation(
            name=OperationName.ROW_TRACKING_BACKFILL, parameters={"batchId": str(batch)}
        )
        transaction = self._transaction(snapshot, operation)
        transaction.record(ReadSet(files=frozenset(file.path for file in files)))
        counted = _counted(snapshot.store, files, self.runtime)
        try:
            return self._committed(transaction.add(*counted))
        except ConflictError:
            # Somebody changed those very files; what is left of them is seen in the next round.
            return CACHE.latest(snapshot.store)

    def _transaction(self, snapshot: Snapshot, operation: Operation) -> Transaction:
        options = CommitOptions(policy=self.policy)
        return Transaction(snapshot, operation, self.runtime, HOOKS, options=options)

    def _committed(self, transaction: Transaction) -> Snapshot:
        snapshot = transaction.commit().snapshot
        CACHE.offer(snapshot)
        return CACHE.latest(snapshot.store)


def _counted(store: Store, files: Sequence[AddFile], runtime: Runtime) -> list[AddFile]:
    """The files with row counts, without which no ids can be set aside; footers have them."""
    unknown = [file for file in files if physical_rows(file) is None]
    paths = [file.path for file in unknown]
    counts = runtime.executor.map(_CountRows(store), paths)
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
