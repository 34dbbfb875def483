"""``import_iceberg``: an existing Iceberg table becomes a twinlake table in place, zero copy.

The log is made in memory by the same transactions that every change goes through, with all their
checks, and then put in place at once. Of the Iceberg table nothing is changed or moved.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.compat import VERSION_TAG, UpgradeMode
from twinlake.errors import Code, CompatViolation, TwinlakeError, UserError
from twinlake.iceberg.catalogs import settings_of
from twinlake.iceberg.derive import SNAPSHOT_TAG
from twinlake.iceberg.format import leaves
from twinlake.iceberg.importing import find_metadata, key_or_url, read_history
from twinlake.iceberg.requests import add_action
from twinlake.log import CACHE, dv_key, write_dv_file
from twinlake.protocol import (
    ICEBERG_PREFIX,
    Metadata,
    auto_enabled_features,
    is_reserved_for_iceberg,
    keys,
)
from twinlake.runtime import RandomIds, Runtime, engine_for
from twinlake.schema import StructField, check_schema, field_id, render_schema
from twinlake.table.iceberg_commits.operation import delta_operation
from twinlake.table.importing.staged_log import (
    StagedLog,
    is_in_place,
    last_mark,
    put_in_place,
    remove_marks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from twinlake.actions import Action, AddFile
    from twinlake.iceberg.importing import ImportStep, SourceHistory
    from twinlake.log import Snapshot
    from twinlake.schema import Struct
    from twinlake.storage import Store
    from twinlake.table.table import Table

__all__ = ["ImportResult", "import_table"]

_NAMESPACE: Final = uuid.UUID("3b6f0a7e-92f1-5c1c-8f5e-7a2d3a4f9c10")
_WAIVED: Final = frozenset({"SCH-07", "SCH-11", "SCH-12"})
"""The first version knows all ids that Iceberg ever gave out, so later columns have some of them;
and a column that Iceberg made required over existing rows is so for its readers."""
_COMPAT_CHOICES: Final = (
    (keys.ENABLE_ICEBERG_WRITER_COMPAT_V1, keys.ENABLE_ICEBERG_COMPAT_V2),
    (keys.ENABLE_ICEBERG_COMPAT_V2,),
    (),
)
"""The compat features to try, the strictest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """What was imported, and what could not be."""

    table: Table
    metadata_location: str
    """The metadata file that was imported."""
    snapshots: int
    """How many snapshots became versions."""
    left_out: int = 0
    """How many older ones did not."""
    is_twin: bool = False
    """Whether the table is an Iceberg table again from now on, through its Delta log."""
    accepts_iceberg_writers: bool = False
    """Whether writers may write it by the rules of Iceberg, too."""
    notes: tuple[str, ...] = ()
    """What is worth knowing: what was left out, and why."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "location": self.table.location,
            "version": self.table.version,
            "metadata_location": self.metadata_location,
            "snapshots": self.snapshots,
            "left_out": self.left_out,
            "is_twin": self.is_twin,
            "accepts_iceberg_writers": self.accepts_iceberg_writers,
            "notes": list(self.notes),
        }


def import_table(
    source: str,
    open_table: Callable[..., Table],
    *,
    mode: str,
    spark: Any,
    durable: bool,
    options: Mapping[str, Any] | None,
    runtime: Runtime | None = None,
) -> ImportResult:
    """What ``Table.import_iceberg`` does; ``open_table`` opens the result."""
    choices = _compat_choices(mode)
    engine = engine_for(spark)
    runtime = runtime or Runtime()
    if engine is not None:
        runtime = replace(runtime, executor=engine.executor)
    found, store = find_metadata(source, durable=durable, options=options)
    mark = last_mark(store)
    is_done = is_in_place(store, found.metadata_location, mark)
    history = read_history(found, store, runtime.executor)
    notes = list(history.notes)
    if not is_done:
        attempt, versions = _write(history, store, runtime, choices, notes)
        put_in_place(attempt, versions, found.metadata_location, mark)
    CACHE.forget(store.url)
    table = open_table(store.url, durable=durable, options=settings_of(store))
    if history.left_out:
        why = "; ".join(history.why_left_out)
        notes.append(f"{history.left_out} older snapshots were left out: {why}")
    if history.has_vectors:
        notes.append(
            "rows that were deleted by position are hidden by deletion vectors, with which "
            "icebergCompatV2 cannot be: purge them and upgrade to make the table a twin"
        )
    is_twin = table.metadata.flag(keys.ENABLE_ICEBERG_COMPAT_V2)
    if is_twin:
        try:
            table.iceberg.sync(spark)
        except TwinlakeError as error:
            notes.append(f"the Iceberg metadata could not be made yet: {error.what}")
    remove_marks(store)
    return ImportResult(
        table=table,
        metadata_location=found.metadata_location,
        snapshots=len(history.steps),
        left_out=history.left_out,
        is_twin=is_twin,
        accepts_iceberg_writers=table.metadata.flag(keys.ENABLE_ICEBERG_WRITER_COMPAT_V1),
        notes=tuple(notes),
    )


def _compat_choices(mode: str) -> tuple[tuple[str, ...], ...]:
    """The compat features of a mode to try, the strictest first."""
    if mode not in set(UpgradeMode):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no mode {mode!r}.",
            fix=f"Choose one of {', '.join(UpgradeMode)}.",
            fields={"mode": mode},
        )
    if mode == UpgradeMode.STRICT:
        return _COMPAT_CHOICES
    return tuple(
        compat_keys
        for compat_keys in _COMPAT_CHOICES
        if keys.ENABLE_ICEBERG_WRITER_COMPAT_V1 not in compat_keys
    )


def _write(
    history: SourceHistory,
    store: Store,
    runtime: Runtime,
    wanted: tuple[tuple[str, ...], ...],
    notes: list[str],
) -> tuple[StagedLog, int]:
    """Make the log in memory, with the strictest compat features whose rules allow it.

    Returns it and how many versions it has.
    """
    *more, least = ((),) if history.has_vectors else wanted
    for compat_keys in more:
        attempt = StagedLog(store)
        try:
            return attempt, _LogWriter(history, attempt, runtime, compat_keys).run()
        except CompatViolation as error:
            notes.append(f"{compat_keys[0]} could not be set: {error.why or error.what}")
    attempt = StagedLog(store)
    return attempt, _LogWriter(history, attempt, runtime, least).run()


@dataclass
class _Clock:
    """The time of the snapshot that is being written, so that versions have their own times."""

    now: int = 0

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        del seconds


@dataclass
class _LogWriter:
    """Writes one version a snapshot. What it writes is a function of the Iceberg metadata."""

    history: SourceHistory
    store: StagedLog
    runtime: Runtime
    compat_keys: tuple[str, ...]
    live: dict[str, AddFile] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    clock: _Clock = field(default_factory=_Clock)
    _hidden: dict[str, frozenset[int]] = field(default_factory=dict)

    def run(self) -> int:
        """Write all versions; returns how many they are."""
        source = self.history.source
        digest = hashlib.sha256(f"{source.table_id}{source.metadata_location}".encode()).digest()
        self.runtime = replace(
            self.runtime, clock=self.clock, ids=RandomIds(int.from_bytes(digest, "big"))
        )
        steps = self.history.steps
        for done, step in enumerate(steps, 1):
            self._step(step)
            self.runtime.progress("import", done, len(steps))
        updated = source.document.get("last-updated-ms", 0)
        self.clock.now = max(self.clock.now, updated)
        if self.snapshot is None:
            self._commit(self._convert(()), self.history.schema, ())
        elif self._metadata(self.history.schema) != self.snapshot.metadata:
            operation = Operation(name=OperationName.UPDATE_SCHEMA)
            self._commit(operation, self.history.schema, ())
        return (self.snapshot.version if self.snapshot is not None else -1) + 1

    def _step(self, step: ImportStep) -> None:
        self.clock.now = max(step.snapshot.timestamp_ms, self.clock.now)
        actions = list(self._actions(step))
        if self.snapshot is None:
            operation = self._convert(step.added)
        else:
            operation = delta_operation(step.snapshot.operation, step.snapshot.id)
        # Whoever knows a snapshot by its id finds it again.
        self._commit(operation, step.schema, actions, {SNAPSHOT_TAG: str(step.snapshot.id)})

    def _convert(self, files: Iterable[Any]) -> Operation:
        return Operation(
            name=OperationName.CONVERT,
            parameters={
                "numFiles": len(tuple(files)),
                "partitionedBy": [c.name for c in self._partitions(self.history.schema)],
                "sourceFormat": "iceberg",
                "collectStats": True,
            },
        )

    def _commit(
        self,
        operation: Operation,
        schema: Struct,
        actions: Iterable[Action],
        tags: Mapping[str, str] | None = None,
    ) -> None:
        metadata = self._metadata(schema)
        options = CommitOptions(policy="minimal", tags=tags or {}, waived_rules=_WAIVED)
        if self.snapshot is None:
            transaction = Transaction.for_new_table(
                self.store, operation, self.runtime, (), options=options
            )
        else:
            transaction = Transaction(self.snapshot, operation, self.runtime, (), options=options)
        if self.snapshot is None:
            transaction.update_metadata(self._with_later_features(metadata))
        elif metadata != self.snapshot.metadata:
            transaction.update_metadata(metadata)
        self.snapshot = transaction.add(*actions).commit().snapshot

    def _with_later_features(self, first: Metadata) -> Metadata:
        """The first metadata, asking for what the types of later columns need as well.

        A table that is there gains such features by hand only, and nobody reads this one yet.
        """
        schemas = (self.history.schema, *(step.schema for step in self.history.steps))
        # Long histories have few schemas.
        later = [self._metadata(schema) for schema in {id(one): one for one in schemas}.values()]
        needed = {name for metadata in later for name in auto_enabled_features(metadata)}
        asked = keys.support(*sorted(needed - auto_enabled_features(first)))
        return replace(first, configuration={**first.configuration, **asked})

    def _actions(self, step: ImportStep) -> Iterable[Action]:
        now, change = self.clock.now, step.snapshot.operation != "replace"
        known = tuple(leaves(step.schema))
        parts = self._partitions(step.schema)
        before = dict(self.live)
        # By which other engines know that the files need not be rewritten for the feature.
        tags = {VERSION_TAG: "2"} if self.compat_keys else None
        for path in step.removed:
            del self.live[path]
            self._hidden.pop(path, None)
        for file in step.added:
            self.live[file.path] = add_action(
                file,
                key_or_url(self.history.source.location, file.path)[0],
                parts,
                known,
                modification_time=now,
                data_change=change,
                tags=tags,
            )
        self._hide(step)
        for path, add in before.items():
            if self.live.get(path) is not add:
                yield add.remove(deletion_timestamp=now, data_change=change)
        for path, add in self.live.items():
            if before.get(path) is not add:
                # A file that came by a rewrite and loses rows now changes data now.
                yield msgspec.structs.replace(add, data_change=change)

    def _hide(self, step: ImportStep) -> None:
        """Give files the vectors that the snapshot asks for."""
        changed = []
        for path, add in self.live.items():
            wanted = step.vectors.get(path, frozenset())
            own = add.deletion_vector
            if wanted and self._hidden.get(path) != wanted:
                changed.append(path)
            elif not wanted and own is not None:
                self.live[path] = msgspec.structs.replace(add, deletion_vector=None)
                self._hidden.pop(path, None)
        if not changed:
            return
        # Named after what it holds, so that a second attempt writes the same file again.
        name = uuid.uuid5(_NAMESPACE, f"{self.history.source.table_id}/{step.snapshot.id}")
        data, descriptors = write_dv_file([sorted(step.vectors[path]) for path in changed], name)
        self.store.put(dv_key(name), data)
        for path, descriptor in zip(changed, descriptors, strict=True):
            add = self.live[path]
            self.live[path] = msgspec.structs.replace(add, deletion_vector=descriptor)
            self._hidden[path] = step.vectors[path]

    def _partitions(self, schema: Struct) -> tuple[StructField, ...]:
        columns = {field_id(column): column for column in schema}
        return tuple(columns[number] for number in self.history.partition_ids)

    def _metadata(self, schema: Struct) -> Metadata:
        source = self.history.source
        flags = dict.fromkeys(self.compat_keys, "true") | {keys.ENABLE_IN_COMMIT_TIMESTAMPS: "true"}
        if self.history.has_vectors:
            flags[keys.ENABLE_DELETION_VECTORS] = "true"
        if self.history.is_widened:
            flags[keys.ENABLE_TYPE_WIDENING] = "true"
        kept = {
            f"{ICEBERG_PREFIX}{key}": str(value)
            for key, value in source.properties.items()
            # Settings of the old metadata that would be wrong beside the new one.
            if not is_reserved_for_iceberg(key)
        }
        partitions = tuple(column.name for column in self._partitions(schema))
        metadata = Metadata(
            id=source.table_id,
            schema_string=render_schema(schema),
            partition_columns=partitions,
            configuration={
                **kept,
                **flags,
                keys.COLUMN_MAPPING_MODE: "id",
                keys.MAX_COLUMN_ID: str(source.last_column_id),
            },
            created_time=self.history.steps[0].snapshot.timestamp_ms if self.history.steps else 0,
        )
        check_schema(schema, mode=metadata.column_mapping_mode, partition_columns=partitions)
        return metadata
