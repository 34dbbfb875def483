"""From a client's request to the actions of one Delta commit.

Everything is judged by the version that the commit will follow, not by what the client knew of the
table: the schema that new files must fit, the files that are live, the rules of the table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from twinlake.actions import AddFile, annotations_action, find_annotations
from twinlake.commit import Operation, OperationName
from twinlake.compat import VERSION_TAG
from twinlake.iceberg.derive import layout_of, snapshot_tag
from twinlake.iceberg.format import ManifestContent
from twinlake.iceberg.requests import EntryStatus, diff_files, file_identity, read_updates
from twinlake.iceberg.sync import MetadataFiles, StoredManifests
from twinlake.protocol import NO_ANNOTATIONS, features, keys
from twinlake.table.iceberg_commits.changed_metadata import changed_metadata
from twinlake.table.iceberg_commits.new_files import NewFiles
from twinlake.table.iceberg_commits.operation import delta_operation
from twinlake.table.iceberg_commits.refusals import refuse, requirement_failed
from twinlake.table.iceberg_commits.row_deletes import (
    apply_position_deletes,
    copy_vectors,
    read_deletes,
)
from twinlake.table.iceberg_commits.scanned_files import check_scanned_files
from twinlake.table.iceberg_commits.table_rules import file_refusals, operation_problems

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
    from twinlake.protocol import IcebergAnnotations
    from twinlake.runtime import Runtime
    from twinlake.table.iceberg_commits.client_files import ClientFiles
    from twinlake.table.iceberg_commits.row_deletes import DeletedRows
    from twinlake.table.iceberg_commits.twin_state import TwinState
    from twinlake.table.rows import UncommittedFiles

__all__ = ["NAMES_TAG", "Translation", "Translator"]

NAMES_TAG: Final = "icebergNames"
"""The tag of a data file that has the names of Iceberg's columns, not Delta's physical ones."""
_REPLACE: Final = "replace"
_VECTORS_SINCE: Final = 3


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
        annotations = find_annotations(self.state.snapshot.domains.values()) or NO_ANNOTATIONS
        change = read_updates(request.updates, self.state.table_metadata, annotations)
        refuse(change.refusals)
        self._check_parent(change)
        metadata = self._metadata(change, annotations)
        actions: list[Action] = []
        if change.annotations != annotations:
            self._check_statistics(change, annotations)
            actions.append(annotations_action(change.annotations))
        if change.replaces or change.snapshots:
            actions += self._file_actions(change, metadata or self.state.snapshot.metadata)
        translation = Translation(
            operation=_operation(change),
            actions=tuple(actions),
            metadata=metadata,
            tags=self._tags(change),
        )
        self._rehearse(translation)
        return translation

    def _check_parent(self, change: TableChange) -> None:
        """New snapshots follow the current one, unless the table is made anew."""
        current = self.state.table_metadata.current_snapshot_id
        parent = change.snapshots[0].parent_snapshot_id if change.snapshots else current
        if not change.replaces and parent != current:
            raise requirement_failed(
                [f"main is at snapshot {current}, and the new snapshot follows {parent}"]
            )

    def _metadata(self, change: TableChange, annotations: IcebergAnnotations) -> Metadata | None:
        """The metadata of the table after the request; None if it stays as it is."""
        before = self.state.snapshot.metadata
        after = changed_metadata(self.state, change)
        if change.annotations != annotations and not self.state.snapshot.protocol.is_supported(
            features.DOMAIN_METADATA
        ):
            after = after.with_configuration(keys.support(features.DOMAIN_METADATA))
        return None if after == before else after

    def _check_statistics(self, change: TableChange, before: IcebergAnnotations) -> None:
        """Statistics files lie where the table keeps its Iceberg metadata."""
        known = (*before.statistics, *before.partition_statistics)
        wanted = change.annotations
        for document in (*wanted.statistics, *wanted.partition_statistics):
            if document not in known:
                self.files.metadata_key(document["statistics-path"])

    def _tags(self, change: TableChange) -> Mapping[str, str]:
        if not change.snapshots:
            return {}
        last = change.snapshots[-1]
        return snapshot_tag(self.state.snapshot.metadata.id, last.snapshot_id)

    # Files

    def _file_actions(self, change: TableChange, metadata: Metadata) -> list[Action]:
        data_change = _changes_data(change)
        data, deletes = self._diff(change)
        live = self.state.snapshot.live_files(data.removed)
        missing = data.removed - live.keys()
        refuse([*data.problems, *deletes.problems])
        refuse([f"file {path} is not in the table" for path in sorted(missing)])
        by_vectors = self.state.table_metadata.format_version >= _VECTORS_SINCE
        deleted = read_deletes(deletes.added, self.files, by_vectors=by_vectors)
        # A file that goes takes its deleted rows along.
        deleted = {path: rows for path, rows in deleted.items() if path not in live}
        hit = dict(self.state.snapshot.live_files(deleted))
        bare = deletes.removed - live.keys() - hit.keys()
        refuse([f"deleted rows of file {path} come back" for path in sorted(bare)])
        rewrites = bool(deleted) and not by_vectors
        updates = bool(data.added) and bool(data.removed or deleted)
        refuse(file_refusals(metadata, adds=bool(data.added), updates=updates or rewrites))
        check_scanned_files(self.state, change.snapshots, (*live.values(), *hit.values()))
        now = self.runtime.clock.now_ms()
        added = self._adds(change, data.added, metadata, now)
        actions: list[Action] = [
            add.remove(deletion_timestamp=now, data_change=data_change) for add in live.values()
        ]
        if deleted:
            actions += self._deletes(deleted, hit, added, data_change=data_change)
        actions += added.values()
        if not change.replaces:
            refuse(operation_problems(change.snapshots, actions, {**live, **hit}))
        return actions

    def _deletes(
        self,
        deleted: DeletedRows,
        live: dict[str, AddFile],
        added: dict[str, AddFile],
        *,
        data_change: bool,
    ) -> list[Action]:
        snapshot, runtime, made = self.state.snapshot, self.runtime, self.made
        if self.state.table_metadata.format_version >= _VECTORS_SINCE:
            return copy_vectors(
                deleted,
                live,
                added,
                snapshot=snapshot,
                runtime=runtime,
                data_change=data_change,
                made=made,
            )
        return apply_position_deletes(
            deleted,
            live,
            added,
            snapshot=snapshot,
            runtime=runtime,
            limit=self.files.limits.applied_bytes,
            made=made,
        )

    def _diff(self, change: TableChange) -> tuple[SnapshotDiff, SnapshotDiff]:
        """What the snapshots add and remove: data files, and delete files."""
        ours = {row.path: row for row in self.state.iceberg.rows}
        lists = [self.files.manifest_list(one.manifest_list) for one in change.snapshots]
        new: dict[str, ListedManifest] = {
            row.path: row for rows in lists for row in rows if row.path not in ours
        }
        entries = self.files.entries(new.values())
        last = {row.path for row in lists[-1]} if lists else set[str]()
        ids = frozenset(one.snapshot_id for one in change.snapshots)
        manifests = StoredManifests(MetadataFiles(self.state.snapshot.store))
        diffs = []
        for content in (ManifestContent.DATA, ManifestContent.DELETES):
            kinds = [path for path, row in new.items() if row.content is content]
            dropped = {
                file_identity(entry.file.path, entry.file.content_offset): self.files.data_key(
                    entry.file.key
                )
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
                    # DuckDB leaves out vectors that it replaces; rows that would come back by
                    # it are found later.
                    may_leave_out=change.replaces or content is ManifestContent.DELETES,
                )
            )
        data, deletes = diffs
        known = self.state.snapshot.live_files(self.files.data_key(f.path) for f in data.added)
        again = tuple(f"file {path} is added, and the table has it" for path in sorted(known))
        return replace(data, problems=(*data.problems, *again)), deletes

    def _adds(
        self, change: TableChange, files: Iterable[SourceFile], metadata: Metadata, now: int
    ) -> dict[str, AddFile]:
        """New data files as actions, by their path."""
        spec_id = self.state.table_metadata.default_spec_id
        if change.spec is not None:
            spec_id = change.spec.get("spec-id", spec_id)
        return NewFiles(
            files=self.files,
            metadata=metadata,
            spec_id=spec_id,
            executor=self.runtime.executor,
        ).actions(
            files,
            modification_time=now,
            data_change=_changes_data(change),
            tags={VERSION_TAG: str(self._compat_version), NAMES_TAG: "true"},
        )

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


def _operation(change: TableChange) -> Operation:
    """What the history of the table calls the commit."""
    if change.replaces:
        name = OperationName.REPLACE_TABLE_AS_SELECT
        return Operation(name=name if change.snapshots else OperationName.REPLACE_TABLE)
    if change.snapshots:
        return delta_operation(change.operation, change.snapshots[-1].snapshot_id)
    if change.schema is not None:
        return Operation(name=OperationName.UPDATE_SCHEMA)
    return Operation(name=OperationName.SET_TBLPROPERTIES)


def _flat(entries: Mapping[str, list[SourceEntry]], paths: Iterable[str]) -> list[SourceEntry]:
    return [entry for path in paths for entry in entries[path]]


def _changes_data(change: TableChange) -> bool:
    """Only a commit that rewrites rows as they are does not."""
    return change.replaces or any(one.operation != _REPLACE for one in change.snapshots)
