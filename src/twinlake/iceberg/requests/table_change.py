"""What a commit request asks for, sorted by subject, with everything that a Delta log cannot say.

The order of updates matters to Iceberg only where a later one speaks of an earlier one. All
refusals are collected: a client learns at once what it would have to leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.requests import updates as up
from twinlake.iceberg.requests.table_request import malformed
from twinlake.protocol import NO_ANNOTATIONS, SnapshotTag

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.iceberg.format.table_metadata import TableMetadata
    from twinlake.protocol import IcebergAnnotations

__all__ = ["ClientSnapshot", "TableChange", "read_updates"]

_LAST_ADDED: Final = -1
_MAIN: Final = "main"
_OPERATIONS: Final = frozenset({"append", "delete", "overwrite", "replace"})
_ENCRYPTION: Final = "encryption keys: twinlake does not encrypt data files"


class ClientSnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A snapshot as a client sends it; its sequence number and row ids are computed by us."""

    snapshot_id: int
    parent_snapshot_id: int | None = None
    manifest_list: str
    summary: dict[str, str] = {}

    @property
    def operation(self) -> str:
        """One of append, replace, overwrite and delete."""
        return self.summary.get("operation", "overwrite")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """A request by subject; what it leaves alone is None or empty."""

    schema: Mapping[str, Any] | None = None
    """The schema that is to count."""
    snapshots: tuple[ClientSnapshot, ...] = ()
    """Those that lead from ``main`` to its new place."""
    properties: Mapping[str, str] = field(default_factory=dict)
    removed_properties: frozenset[str] = frozenset()
    annotations: IcebergAnnotations = NO_ANNOTATIONS
    """Tags and statistics files, those that were there before among them."""
    spec: Mapping[str, Any] | None = None
    """The partition spec of a replacement."""
    replaces: bool = False
    """Whether the table is made anew in its place: ``main`` is removed before it is set."""
    refusals: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        """The operation of all snapshots together."""
        found = {one.operation for one in self.snapshots}
        return found.pop() if len(found) == 1 else "overwrite"


def read_updates(
    requested: Iterable[up.Update],
    metadata: TableMetadata,
    annotations: IcebergAnnotations = NO_ANNOTATIONS,
) -> TableChange:
    """Sort the updates of a request to a table; ``annotations`` are those it has."""
    reader = _UpdateReader(metadata, TableChange(annotations=annotations))
    for update in requested:
        reader.read(update)
    return reader.finish()


@dataclass
class _UpdateReader:
    metadata: TableMetadata
    change: TableChange = field(default_factory=TableChange)
    refusals: list[str] = field(default_factory=list)
    schemas: list[Mapping[str, Any]] = field(default_factory=list)
    specs: list[Mapping[str, Any]] = field(default_factory=list)
    orders: list[Mapping[str, Any]] = field(default_factory=list)
    added: dict[int, ClientSnapshot] = field(default_factory=dict)
    main: int | None = None
    """Where the request points ``main``."""
    default_spec: int | None = None

    @property
    def _replaces(self) -> bool:
        """Whether the table is replaced: clients remove ``main`` before anything else."""
        return self.change.replaces

    def read(self, update: up.Update) -> None:
        match update:
            case up.AddSchema(schema=schema):
                self.schemas.append(schema)
            case up.SetCurrentSchema(schema_id=number):
                self._current_schema(number)
            case up.AddSpec(spec=spec):
                self.specs.append(spec)
                self._spec(spec)
            case up.SetDefaultSpec(spec_id=number):
                known = {self.metadata.default_spec_id, _LAST_ADDED, *_ids(self.specs, "spec-id")}
                self.default_spec = number
                if number not in known and not self._replaces:
                    self._refuse(f"partition spec {number}: Delta tables have one partitioning")
            case up.AddSortOrder(sort_order=order):
                self.orders.append(order)
                self._order(order)
            case up.SetDefaultSortOrder(sort_order_id=number):
                if number not in {
                    self.metadata.default_sort_order_id,
                    _LAST_ADDED,
                    *_ids(self.orders, "order-id"),
                }:
                    self._refuse(f"sort order {number}: the order follows from the clustering")
            case up.AddSnapshot(snapshot=document):
                self._snapshot(document)
            case up.SetSnapshotRef():
                self._reference(update)
            case up.SetProperties(updates=given):
                kept = self.change.removed_properties - given.keys()
                properties = {**self.change.properties, **given}
                self.change = replace(self.change, properties=properties, removed_properties=kept)
            case up.RemoveProperties(removals=names):
                left = {k: v for k, v in self.change.properties.items() if k not in names}
                removed = self.change.removed_properties | set(names)
                self.change = replace(self.change, properties=left, removed_properties=removed)
            case (
                up.RemoveSnapshotRef()
                | up.SetStatistics()
                | up.RemoveStatistics()
                | up.SetPartitionStatistics()
                | up.RemovePartitionStatistics()
            ):
                self._annotate(update)
            case _:
                self._read_what_must_not_change(update)

    def _annotate(self, update: up.Update) -> None:
        now = self.change.annotations
        match update:
            case up.RemoveSnapshotRef(ref_name=name):
                if name == _MAIN:
                    if self.main is not None:
                        self._refuse("removing main where the request has set it before")
                    self.change = replace(self.change, replaces=True)
                now = now.without_tag(name)
            case up.SetStatistics(statistics=document):
                now = now.with_statistics(self._of_snapshot(document), of_partitions=False)
            case up.SetPartitionStatistics(partition_statistics=document):
                now = now.with_statistics(self._of_snapshot(document), of_partitions=True)
            case up.RemoveStatistics(snapshot_id=number):
                now = now.without_statistics(number, of_partitions=False)
            case up.RemovePartitionStatistics(snapshot_id=number):
                now = now.without_statistics(number, of_partitions=True)
        self.change = replace(self.change, annotations=now)

    def _of_snapshot(self, document: dict[str, Any]) -> dict[str, Any]:
        """Statistics of a snapshot that the table has."""
        number = document["snapshot-id"]
        if not self._has_snapshot(number):
            self._refuse(f"statistics of snapshot {number}: the table has no such snapshot")
        return document

    def _has_snapshot(self, number: int) -> bool:
        return number in self.added or self.metadata.has_snapshot(number)

    def _read_what_must_not_change(self, update: up.Update) -> None:
        metadata = self.metadata
        match update:
            case up.AssignUuid(uuid=wanted):
                if wanted.lower() != metadata.table_uuid:
                    self._refuse(f"uuid {wanted}: the table has {metadata.table_uuid}")
            case up.SetLocation(location=wanted):
                if wanted.rstrip("/") != metadata.location:
                    self._refuse(f"location {wanted}: the table stays at {metadata.location}")
            case up.UpgradeFormatVersion(format_version=wanted):
                if wanted != metadata.format_version:
                    self._refuse(
                        f"format version {wanted}: `twinlake upgrade PATH --to "
                        "icebergWriterCompatV3 --yes` moves a table to version 3"
                    )
            case up.RemoveSnapshots():
                self._refuse(
                    "expiring snapshots: they expire with the Delta history, by VACUUM and "
                    "`history.expire.max-snapshot-age-ms`"
                )
            case up.RemovePartitionSpecs() | up.RemoveSchemas():
                self._refuse("removing schemas or specs: they go with the snapshots that use them")
            case _:
                self._refuse(_ENCRYPTION)

    def finish(self) -> TableChange:
        if self.change.replaces:
            self._replace()
        return replace(self.change, snapshots=self._line_of_main(), refusals=tuple(self.refusals))

    def _replace(self) -> None:
        spec = self.specs[-1] if self.specs else None
        if self.default_spec not in (None, _LAST_ADDED):
            known = (*self.metadata.partition_specs, *self.specs)
            spec = _by_id(known, "spec-id", self.default_spec or 0)
        self.change = replace(self.change, spec=spec)

    def _refuse(self, why: str) -> None:
        if why not in self.refusals:
            self.refusals.append(why)

    def _current_schema(self, number: int) -> None:
        known = {one["schema-id"]: one for one in self.metadata.schemas}
        known |= {one.get("schema-id", 0): one for one in self.schemas}
        if number == _LAST_ADDED and self.schemas:
            found: Mapping[str, Any] | None = self.schemas[-1]
        else:
            found = known.get(number)
        if found is None:
            self._refuse(f"schema {number}: there is none")
            return
        if found.get("identifier-field-ids"):
            self._refuse("identifier fields: Delta has none")
        if not found["fields"]:
            self._refuse("a schema without columns: a table keeps one at least")
        self.change = replace(self.change, schema=found)

    def _spec(self, spec: Mapping[str, Any]) -> None:
        current = _by_id(self.metadata.partition_specs, "spec-id", self.metadata.default_spec_id)
        if _parts(spec) != _parts(current) and not self._replaces:
            self._refuse(
                "another partition spec: a Delta table keeps its partitioning; create a new table"
            )

    def _order(self, order: Mapping[str, Any]) -> None:
        current = _by_id(self.metadata.sort_orders, "order-id", self.metadata.default_sort_order_id)
        if order.get("fields") and order.get("fields") != current.get("fields"):
            self._refuse("another sort order: the order follows from the clustering columns")

    def _snapshot(self, document: Mapping[str, Any]) -> None:
        try:
            found = msgspec.convert(document, ClientSnapshot)
        except (msgspec.MsgspecError, ValueError) as error:
            raise malformed(f"the snapshot is none: {error}") from error
        if found.operation not in _OPERATIONS:
            raise malformed(f"{found.operation!r} is no operation of a snapshot")
        if found.snapshot_id in self.added:
            raise malformed(f"snapshot {found.snapshot_id} is added twice")
        self.added[found.snapshot_id] = found

    def _reference(self, update: up.SetSnapshotRef) -> None:
        if update.ref_name != _MAIN:
            self._tag(update)
            return
        if update.type != "branch":
            raise malformed(f"main is a branch, and no {update.type!r}")
        if (update.max_ref_age_ms, update.max_snapshot_age_ms, update.min_snapshots_to_keep) != (
            None,
            None,
            None,
        ):
            self._refuse(
                "retention of main: set `history.expire.max-snapshot-age-ms`, a property of the "
                "table"
            )
        current = self.metadata.current_snapshot_id
        if update.snapshot_id not in self.added and update.snapshot_id != current:
            self._refuse(
                f"main at snapshot {update.snapshot_id}: to go back, run `twinlake restore PATH "
                "VERSION --yes`, which commits a new snapshot"
            )
            return
        if self._replaces and update.snapshot_id == current:
            # It would be a replacement without rows, and the client means to keep all of them.
            self._refuse("main at its old snapshot where the request has removed it before")
        self.main = update.snapshot_id

    def _tag(self, update: up.SetSnapshotRef) -> None:
        name, number = update.ref_name, update.snapshot_id
        if not name or (update.max_ref_age_ms is not None and update.max_ref_age_ms < 1):
            raise malformed("a tag has a name, and a `max-ref-age-ms` above 0 if any")
        if update.type != "tag":
            self._refuse(f"branch {name}: Delta has one line of versions, main")
        elif update.max_snapshot_age_ms is not None or update.min_snapshots_to_keep is not None:
            self._refuse(f"snapshots to keep for tag {name}: only a branch has several")
        elif not self._has_snapshot(number):
            self._refuse(f"tag {name} at snapshot {number}: the table has no such snapshot")
        else:
            found = self.change.annotations.with_tag(
                SnapshotTag(name, number, update.max_ref_age_ms)
            )
            self.change = replace(self.change, annotations=found)

    def _line_of_main(self) -> tuple[ClientSnapshot, ...]:
        """The added snapshots that lead to where ``main`` is to be, oldest first."""
        line: list[ClientSnapshot] = []
        at = self.main
        while at in self.added and len(line) < len(self.added):
            line.append(self.added[at])
            at = line[-1].parent_snapshot_id
        if len(line) < len(self.added):
            self._refuse("staged snapshots: a snapshot that main does not reach has no version")
        return tuple(reversed(line))


def _ids(documents: Iterable[Mapping[str, Any]], key: str) -> set[Any]:
    return {one.get(key) for one in documents}


def _by_id(documents: Iterable[Mapping[str, Any]], key: str, number: int) -> Mapping[str, Any]:
    return next((one for one in documents if one.get(key) == number), {})


def _parts(spec: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    """The fields of a spec, however they are numbered."""
    fields = spec.get("fields") or ()
    return [(one.get("source-id"), one.get("transform"), one.get("name")) for one in fields]
