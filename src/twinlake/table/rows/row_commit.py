"""From new files to a new version: all commits that change rows."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from twinlake.actions import AddCDCFile
from twinlake.commit import CommitOptions, Transaction
from twinlake.commit.plans import WriteDeletionVector
from twinlake.errors import Code, CommitUnknown, UserError, how_to_set
from twinlake.files import FileTarget, clustering_columns
from twinlake.log import CACHE, dv_key, write_dv_file
from twinlake.protocol import keys
from twinlake.schema import STRING, StructField, physical_path, render_path, walk_fields
from twinlake.storage import decode_path
from twinlake.table.catalog import TABLE_HOOKS
from twinlake.table.rows.given_columns import identity_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from twinlake.actions import Action, AddFile
    from twinlake.commit import CommitResult, Operation, ReadSet
    from twinlake.commit.plans import RowPlan
    from twinlake.protocol import Metadata
    from twinlake.storage import Store
    from twinlake.table.view import TableView

    View = TypeVar("View", bound=TableView)

__all__ = [
    "CHANGE_FIELDS",
    "CHANGE_FOLDER",
    "CHANGE_TYPE",
    "UncommittedFiles",
    "change_actions",
    "commit_change",
    "is_committed",
    "table_after",
    "table_target",
    "write_metrics",
    "write_vectors",
]


def commit_change(
    table: TableView,
    operation: Operation,
    actions: Iterable[Action],
    *,
    metadata: Metadata | None = None,
    reads: ReadSet | None = None,
    metrics: Mapping[str, Any] | None = None,
    options: CommitOptions | None = None,
    tags: Mapping[str, str] | None = None,
    txn: tuple[str, int] | None = None,
    made: UncommittedFiles,
    trusted: bool = True,
) -> CommitResult | None:
    """Commit ``made`` and other changes on top of the table.

    ``trusted`` says that our own writers made the files for this commit.

    None if the application that ``txn`` names wrote this before, or if nothing changes: Delta
    records no empty versions either.
    """
    actions = list(actions)
    changed = metadata is not None and metadata != table.metadata
    if not actions and not changed and txn is None:
        return None
    chosen = replace(options or CommitOptions(policy=table.policy), trusted_files=trusted)
    if tags:
        chosen = replace(chosen, tags={**chosen.tags, **tags})
    transaction = Transaction(table.snapshot, operation, table.runtime, TABLE_HOOKS, options=chosen)
    if reads is not None:
        transaction.record(reads)
    if txn is not None and transaction.set_transaction(*txn) is not None:
        return None
    if metadata is not None and changed:
        if actions:
            # Features that the columns lack are reported first, as in Delta.
            table.protocol.upgraded_for(metadata, policy=chosen.policy)
            _refuse_broken_feed(table.metadata, metadata, operation)
        transaction.update_metadata(metadata)
    result = transaction.add(*actions).commit(metrics=metrics)
    made.keep()
    CACHE.offer(result.snapshot)
    return result


def table_after(table: View, result: CommitResult) -> View:
    """The table as the commit left it; nothing is read, so that nothing can fail any more."""
    return type(table)(
        result.snapshot, policy=table.policy, runtime=table.runtime, warnings=result.warnings
    )


def is_committed(table: TableView, txn: tuple[str, int] | None) -> bool:
    """Whether the application that ``txn`` names wrote this before; then no file is written."""
    if txn is None:
        return False
    known = table.snapshot.set_transactions.get(txn[0])
    return known is not None and known.version >= txn[1]


def _refuse_broken_feed(before: Metadata, after: Metadata, operation: Operation) -> None:
    """Rows and lost columns in one commit: its changes fit neither schema, as Delta sees it."""
    mode = after.column_mapping_mode
    if not after.flag(keys.ENABLE_CHANGE_DATA_FEED) or mode == "none":
        return
    old, new = (
        {physical_path(m.schema, path, mode): path for path, _ in walk_fields(m.schema)}
        for m in (before, after)
    )
    lost = [render_path(path) for key, path in old.items() if new.get(key) != path]
    if lost:
        raise UserError(
            Code.SCHEMA_EVOLUTION,
            f"Columns of table {before.label} cannot go with the rows that are written.",
            why=f"the change data feed is on, and {', '.join(lost)} would be dropped or renamed "
            "by the commit that changes rows",
            fix="Drop or rename the columns first, or run "
            f"{how_to_set(keys.ENABLE_CHANGE_DATA_FEED, 'false')}.",
            delta_class="DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
            fields={"columns": lost, "operation": str(operation.name)},
        )


class UncommittedFiles:
    """Files that were written for a commit; if the commit fails, they are deleted again.

    ``commits`` says whether the commit is made in the same block. Then an interrupt keeps the
    files: it may come after the commit, while a checkpoint or Iceberg metadata is written. After
    ``keep`` nothing deletes them.
    """

    def __init__(self, store: Store, *, commits: bool = True) -> None:
        self._store = store
        self._commits = commits
        self._keys: list[str] = []

    def add(self, *files: AddFile) -> None:
        """Files by their actions."""
        self._keys += [decode_path(file.path) for file in files]

    def add_key(self, key: str) -> None:
        """A file by its key in the store."""
        self._keys.append(key)

    def keep(self) -> None:
        """The files are committed: whatever fails from now on, they stay."""
        self._keys.clear()

    def __enter__(self) -> UncommittedFiles:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or not self._keys or (self._commits and _may_be_committed(error)):
            return
        # What cannot be deleted is VACUUM's; the error that brought us here is what matters.
        with contextlib.suppress(Exception):
            self._store.delete(self._keys)


def _may_be_committed(error: BaseException) -> bool:
    """Whether files may belong to the table: all other errors say that there was no commit."""
    return isinstance(error, CommitUnknown) or not isinstance(error, Exception)


def table_target(
    table: TableView,
    metadata: Metadata,
    *,
    folder: str = "",
    extra: Sequence[StructField] = (),
    target_file_size: int | None = None,
) -> FileTarget:
    """Where new files of a table go, under the metadata it will have."""
    return FileTarget.of(
        table.snapshot.store,
        metadata,
        folder=folder,
        extra=extra,
        target_file_size=target_file_size,
        clustering=(*clustering_columns(table.snapshot), *identity_paths(metadata)),
        protocol=table.protocol,
    )


def write_metrics(files: Sequence[AddFile]) -> dict[str, str]:
    """How much was written, by the names of Delta's metrics."""
    rows = [file.num_live_records for file in files]
    found = {
        "numFiles": str(len(files)),
        "numOutputBytes": str(sum(file.size for file in files)),
    }
    if all(count is not None for count in rows):
        found["numOutputRows"] = str(sum(count or 0 for count in rows))
    return found


# What every engine writes for a plan beside data files.

CHANGE_TYPE: Final = "_change_type"
CHANGE_FOLDER: Final = "_change_data"
CHANGE_FIELDS: Final = (StructField(CHANGE_TYPE, STRING),)


def write_vectors(plan: RowPlan, table: TableView, made: UncommittedFiles) -> dict[str, Any]:
    """The deletion vectors that a plan asks for, in one file; by path of the data file."""
    steps = [step for step in plan.steps if isinstance(step, WriteDeletionVector)]
    if not steps:
        return {}
    name = table.runtime.ids.uuid()
    content, descriptors = write_dv_file([step.positions for step in steps], name)
    # First, because a write that fails may have kept the file.
    made.add_key(dv_key(name))
    table.snapshot.store.put(dv_key(name), content)
    return {s.file.add.path: d for s, d in zip(steps, descriptors, strict=True)}


def change_actions(files: Iterable[AddFile]) -> tuple[AddCDCFile, ...]:
    """New files of ``_change_data`` as the actions that name them."""
    return tuple(
        AddCDCFile(path=f.path, partition_values=f.partition_values, size=f.size, data_change=False)
        for f in files
    )
