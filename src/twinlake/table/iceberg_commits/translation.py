"""From a client's request to the actions of one Delta commit.

Everything is judged by the version that the commit will follow, not by what the client knew of the
table: the schema that new files must fit, the files that are live, the rules of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from twinlake.actions import AddFile
from twinlake.commit import Operation, OperationName
from twinlake.compat import VERSION_TAG
from twinlake.errors import Code, ConflictError, UserError, listed
from twinlake.iceberg.derive import file_location, layout_of, snapshot_tag
from twinlake.iceberg.format import ManifestContent, highest_field_id, leaves
from twinlake.iceberg.requests import (
    EntryStatus,
    add_action,
    change_properties,
    changed_schema,
    delta_operation,
    diff_files,
    partition_problem,
    read_updates,
)
from twinlake.iceberg.sync import MetadataFiles, StoredManifests
from twinlake.protocol import check_iceberg_properties, keys, parse_properties
from twinlake.schema import check_schema, physical_name, render_schema
from twinlake.table.iceberg_commits.row_deletes import (
    apply_position_deletes,
    copy_vectors,
    read_deletes,
)
from twinlake.table.iceberg_commits.table_rules import file_refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.actions import Action, Metadata
    from twinlake.iceberg.requests import (
        CommitTableRequest,
        ListedManifest,
        SnapshotDiff,
        SourceEntry,
        SourceFile,
        TableChange,
    )
    from twinlake.runtime import Runtime
    from twinlake.schema import StructField
    from twinlake.table.iceberg_commits.client_files import ClientFiles
    from twinlake.table.iceberg_commits.twin_state import TwinState
    from twinlake.table.rows import UncommittedFiles

__all__ = ["NAMES_TAG", "Translation", "Translator", "requirement_failed"]

NAMES_TAG: Final = "icebergNames"
"""The tag of a data file that has the names of Iceberg's columns, not Delta's physical ones."""
_REPLACE: Final = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What is to be committed; nothing where the request changes nothing."""

    operation: Operation
    actions: tuple[Action, ...] = ()
    metadata: Metadata | None = None
    tags: Mapping[str, str] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.actions and self.metadata is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """Translates requests against one state of a table."""

    state: TwinState
    files: ClientFiles
    runtime: Runtime
    made: UncommittedFiles
    """Notes files that are written for the commit."""

    def translate(self, request: CommitTableRequest) -> Translation:
        """The commit that a request asks for; all that is against it in one error."""
        change = read_updates(request.updates, self.state.table_metadata)
        _refuse(change.refusals)
        metadata = self._metadata(change)
        if not change.snapshots:
            name = (
                OperationName.UPDATE_SCHEMA
                if change.schema is not None
                else OperationName.SET_TBLPROPERTIES
            )
            return Translation(operation=Operation(name=name), metadata=metadata)
        first, last = change.snapshots[0], change.snapshots[-1]
        current = self.state.table_metadata.current_snapshot_id
        if first.parent_snapshot_id != current:
            raise requirement_failed(
                [
                    f"main is at snapshot {current}, and the new snapshot follows "
                    f"{first.parent_snapshot_id}"
                ]
            )
        actions = self._file_actions(change, metadata or self.state.snapshot.metadata)
        translation = Translation(
            operation=delta_operation(change.operation, last.snapshot_id),
            actions=tuple(actions),
            metadata=metadata,
            tags=snapshot_tag(self.state.snapshot.metadata.id, last.snapshot_id),
        )
        self._rehearse(translation)
        return translation

    # Metadata

    def _metadata(self, change: TableChange) -> Metadata | None:
        """The metadata of the table after the request; None if it stays as it is."""
        before = self.state.snapshot.metadata
        shown = self.state.table_metadata.properties
        configuration, problems = change_properties(
            before.configuration, shown, change.properties, change.removed_properties
        )
        after = before
        if change.schema is not None:
            after, more = self._with_schema(after, change.schema)
            problems += more
            configuration = {**configuration, **_mapping_properties(after)}
        _refuse(problems)
        given = {
            key: value
            for key, value in configuration.items()
            if before.configuration.get(key) != value
        }
        after = replace(after, configuration={**configuration, **parse_properties(given)})
        check_iceberg_properties(after, given)
        if after == before:
            return None
        # Rehearsed here: a schema without an Iceberg form is refused before anything is read.
        layout = layout_of(after, self.state.table_metadata.location)
        _ = layout.schema, layout.spec
        return after

    def _with_schema(
        self, before: Metadata, document: Mapping[str, Any]
    ) -> tuple[Metadata, list[str]]:
        metadata = self.state.table_metadata
        current = next(s for s in metadata.schemas if s["schema-id"] == metadata.current_schema_id)
        if document.get("fields") == current["fields"]:
            return before, []
        found = changed_schema(
            before.schema, current, document, format_version=metadata.format_version
        )
        problems = list(found.problems)
        if found.is_widened and not before.flag(keys.ENABLE_TYPE_WIDENING):
            before = before.with_configuration({keys.ENABLE_TYPE_WIDENING: "true"})
        highest = max(metadata.last_column_id, highest_field_id(document))
        # A partition column keeps its id, and may have another name now.
        names = {f["id"]: f["name"] for f in document["fields"]}
        spec = next(s for s in metadata.partition_specs if s["spec-id"] == metadata.default_spec_id)
        lost = [part["name"] for part in spec["fields"] if part["source-id"] not in names]
        problems += [f"partition column {name} cannot be dropped" for name in lost]
        if problems:
            return before, problems
        partitions = tuple(names[part["source-id"]] for part in spec["fields"])
        after = replace(
            before.with_configuration({keys.MAX_COLUMN_ID: str(highest)}),
            schema_string=render_schema(found.schema),
            partition_columns=partitions,
        )
        check_schema(found.schema, mode=after.column_mapping_mode, partition_columns=partitions)
        return after, []

    # Files

    def _file_actions(self, change: TableChange, metadata: Metadata) -> list[Action]:
        data_change = any(one.operation != _REPLACE for one in change.snapshots)
        data, deletes = self._diff(change)
        live = self.state.snapshot.live_files(data.removed)
        missing = data.removed - live.keys()
        _refuse([*data.problems, *deletes.problems])
        _refuse([f"file {path} is not in the table" for path in sorted(missing)])
        _refuse(
            file_refusals(
                metadata, adds=bool(data.added), removes=bool(data.removed or deletes.added)
            )
        )
        now = self.runtime.clock.now_ms()
        added = self._adds(data.added, metadata, now=now, data_change=data_change)
        actions: list[Action] = [
            add.remove(deletion_timestamp=now, data_change=data_change) for add in live.values()
        ]
        if deletes.added:
            actions += self._deletes(deletes.added, added, set(live), data_change=data_change)
        return [*actions, *added.values()]

    def _deletes(
        self,
        deletes: tuple[SourceFile, ...],
        added: dict[str, AddFile],
        removed: set[str],
        *,
        data_change: bool,
    ) -> list[Action]:
        deleted = read_deletes(deletes, self.files)
        location = self.state.table_metadata.location
        paths = {self.files.data_key(target): target for target in deleted if target not in added}
        found = self.state.snapshot.live_files(paths.keys() - removed)
        live = {file_location(location, path): add for path, add in found.items()}
        # A client may spell the same file in another way.
        live |= {paths[path]: add for path, add in found.items()}
        if self.state.table_metadata.format_version > 2:
            return copy_vectors(
                deleted,
                live,
                added,
                snapshot=self.state.snapshot,
                runtime=self.runtime,
                data_change=data_change,
                made=self.made,
            )
        return apply_position_deletes(
            deleted,
            live,
            added,
            snapshot=self.state.snapshot,
            runtime=self.runtime,
            limit=self.files.limits.applied_bytes,
            made=self.made,
        )

    def _diff(self, change: TableChange) -> tuple[SnapshotDiff, SnapshotDiff]:
        """What the snapshots add and remove: data files, and delete files."""
        ours = {row.path: row for row in self.state.iceberg.rows}
        lists = [self.files.manifest_list(one.manifest_list) for one in change.snapshots]
        new: dict[str, ListedManifest] = {
            row.path: row for rows in lists for row in rows if row.path not in ours
        }
        entries = self.files.entries(new.values())
        last = {row.path for row in lists[-1]}
        ids = frozenset(one.snapshot_id for one in change.snapshots)
        manifests = StoredManifests(MetadataFiles(self.state.snapshot.store))
        diffs = []
        for content in (ManifestContent.DATA, ManifestContent.DELETES):
            kinds = [path for path, row in new.items() if row.content is content]
            dropped = {
                entry.file.path: self._key(entry.file.path, content)
                for path, row in ours.items()
                if row.content is content and path not in last
                for entry in manifests.entries(row)
                if entry.status is not EntryStatus.DELETED
            }
            diffs.append(
                diff_files(
                    _flat(entries, kinds),
                    _flat(entries, (path for path in kinds if path in last)),
                    dropped,
                    ids,
                )
            )
        data, deletes = diffs
        known = self.state.snapshot.live_files(self.files.data_key(f.path) for f in data.added)
        again = tuple(f"file {path} is added, and the table has it" for path in sorted(known))
        return replace(data, problems=(*data.problems, *again)), deletes

    def _key(self, location: str, content: ManifestContent) -> str:
        """By what a file of the table is known: data files by their path in the log."""
        return self.files.data_key(location) if content is ManifestContent.DATA else location

    def _adds(
        self, files: Iterable[SourceFile], metadata: Metadata, *, now: int, data_change: bool
    ) -> dict[str, AddFile]:
        """New data files as actions, by their location."""
        spec_id = self.state.table_metadata.default_spec_id
        problems: list[str] = []
        found: dict[str, AddFile] = {}
        partitions: tuple[StructField, ...] = tuple(
            column
            for name in metadata.partition_columns
            if (column := metadata.schema.get(name)) is not None
        )
        known = tuple(leaves(metadata.schema))
        required = {leaf.id: leaf.path for leaf in known if _is_required(metadata, leaf.path)}
        for file in files:
            if problem := _file_problem(file, spec_id, required):
                problems.append(f"file {file.path} {problem}")
                continue
            found[file.path] = add_action(
                file,
                self.files.data_key(file.path),
                partitions,
                known,
                modification_time=now,
                data_change=data_change,
                tags={VERSION_TAG: str(self._compat_version), NAMES_TAG: "true"},
            )
        _refuse(problems)
        return found

    @property
    def _compat_version(self) -> int:
        return 3 if self.state.table_metadata.format_version > 2 else 2

    def _rehearse(self, translation: Translation) -> None:
        """Say every new file in Iceberg's words: what cannot be is refused before the commit."""
        metadata = translation.metadata or self.state.snapshot.metadata
        layout = layout_of(metadata, self.state.table_metadata.location)
        for action in translation.actions:
            if isinstance(action, AddFile):
                layout.data_file(action)


def requirement_failed(reasons: Iterable[str]) -> ConflictError:
    """The error for a request that was built on another state of the table."""
    return ConflictError(
        Code.CONFLICT_REQUIREMENT,
        "The table has changed since the request was built.",
        why=listed(reasons) + ".",
        fix="Refresh the table and commit again.",
    )


def _refuse(reasons: Iterable[str]) -> None:
    found = list(reasons)
    if found:
        raise UserError(
            Code.COMPAT,
            "The table cannot take this commit.",
            why=listed(found) + ".",
            fix="Leave these out of the commit, or write them through twinlake.",
            fields={"problems": found},
        )


def _flat(entries: Mapping[str, list[SourceEntry]], paths: Iterable[str]) -> list[SourceEntry]:
    return [entry for path in paths for entry in entries[path]]


def _file_problem(file: SourceFile, spec_id: int, required: Mapping[int, tuple[str, ...]]) -> str:
    if file.content != 0:
        return "is no data file"
    if file.format != "PARQUET":
        return f"is of format {file.format}, and Delta reads Parquet"
    if file.is_encrypted:
        return "is encrypted"
    if file.spec_id != spec_id:
        return f"is of partition spec {file.spec_id}, and the table has {spec_id}"
    nulls = [".".join(path) for n, path in required.items() if file.null_value_counts.get(n)]
    if nulls:
        return f"has nulls in required columns: {', '.join(nulls)}"
    return partition_problem(file)


def _is_required(metadata: Metadata, path: tuple[str, ...]) -> bool:
    """Whether a top-level column, by its physical path, must not be null."""
    if len(path) != 1:
        return False
    return any(physical_name(c) == path[0] and not c.nullable for c in metadata.schema)


def _mapping_properties(metadata: Metadata) -> dict[str, str]:
    wanted = (keys.MAX_COLUMN_ID, keys.ENABLE_TYPE_WIDENING)
    return {k: metadata.configuration[k] for k in wanted if k in metadata.configuration}
