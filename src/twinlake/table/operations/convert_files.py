"""The one step of an upgrade that touches files: metadata and files change in the same commit.

By default files are rewritten for the new names, ids and types. Where they may stay, every one
of them is committed again with its statistics and partition values under the new names.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.actions import clustering_action, find_clustering
from twinlake.commit import Operation, OperationName
from twinlake.compat import VERSION_TAG
from twinlake.compat.upgrade import converted, has_same_layout, metadata_for_files, renaming
from twinlake.errors import Code, CommitUnknown, UserError
from twinlake.protocol import CLUSTERING_DOMAIN, keys
from twinlake.schema import check_schema
from twinlake.table.operations.upgrade_inspection import TAGGED_FROM

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.actions import Action, AddFile
    from twinlake.commit.plans import Outcome
    from twinlake.compat import Goal
    from twinlake.compat.upgrade import Renaming
    from twinlake.protocol import Metadata
    from twinlake.table.operations.context import CommitSequence, OperationContext
    from twinlake.table.operations.upgrade_inspection import FileInspection

__all__ = ["UPGRADE_UNIFORM", "Conversion"]

UPGRADE_UNIFORM: Final = "REORG TABLE UPGRADE UNIFORM"
_LISTS: Final = {keys.MIN_READER_VERSION: "3", keys.MIN_WRITER_VERSION: "7"}
_IN_PLACE: Final = frozenset({"SCH-01", "SCH-03", "SCH-04", "SCH-05"})
"""Files that stay were found to have the new ids in their footers, and are read by those."""


class Conversion:
    """New metadata for a table, and files that fit it."""

    def __init__(
        self,
        context: OperationContext,
        commits: CommitSequence,
        goal: Goal,
        inspection: FileInspection,
        described: str,
    ) -> None:
        self._context = context
        self._commits = commits
        self._snapshot = commits.snapshot
        self._goal = goal
        self._inspection = inspection
        self._described = described

    def purge(self) -> None:
        """Write files again that may not stay as they are, under the metadata as it is."""
        outcome = self._rewritten(self._snapshot.metadata, stale=self._inspection.unfit_values)
        if outcome is not None:
            operation = Operation(
                name=OperationName.REORG, parameters={"predicate": [], "applyPurge": True}
            )
            self._swap(operation, outcome, outcome.adds)

    def run(self) -> None:
        """Change metadata and files."""
        before = self._snapshot.metadata
        after = converted(before, self._goal)
        if after.schema_string != before.schema_string:
            check_schema(
                after.schema,
                mode=after.column_mapping_mode,
                partition_columns=after.partition_columns,
            )
        alike = has_same_layout(before, after)
        changes: list[Action] = [self._stated(after)] if after != before else []
        changes += self._clustering(renaming(before, after)) if not alike else []
        outcome = None
        if alike or not self._goal.in_place:
            outcome = self._rewritten(
                metadata_for_files(after, self._goal), stale=self._inspection.stale
            )
        self._swap(
            self._operation(before, after),
            outcome,
            [self._tagged(add) for add in outcome.adds] if outcome is not None else (),
            others=(*changes, *self._listed(before, after, alike=alike)),
            # Files and metadata must fit each other: one that comes in now must not pass.
            reads_table=bool(changes),
            waived_rules=_IN_PLACE if self._goal.in_place else frozenset(),
        )

    def _stated(self, metadata: Metadata) -> Metadata:
        """The metadata to commit; the command of Delta also asks for features by name."""
        return metadata.with_configuration(_LISTS) if self._goal.uniform else metadata

    def _operation(self, before: Metadata, after: Metadata) -> Operation:
        changed: Mapping[str, str] = {
            key: value
            for key, value in sorted(after.configuration.items())
            if before.configuration.get(key) != value
        }
        return Operation(
            name=UPGRADE_UNIFORM,
            parameters={
                "properties": changed,
                "icebergCompatVersion": self._goal.base.version,
                "step": self._described,
            },
        )

    def _rewritten(self, metadata: Metadata, *, stale: Iterable[str]) -> Outcome | None:
        """New files in the place of those that are stale or hide rows; nothing is committed."""
        from twinlake.table.operations.rewrite_files import rewrite

        hidden = self._snapshot.counters.num_deletion_vectors and not self._goal.hides_rows
        chosen = frozenset(stale)
        if not chosen and not hidden:
            return None
        rewriter = self._context.rewriter
        if rewriter is None:
            raise UserError(
                Code.SPARK_REQUIRED,
                f"{len(chosen) or hidden} file(s) have to be rewritten.",
                why=self._described,
                fix="Pass a SparkSession as `spark=`; the commands `twinlake upgrade PATH "
                "--yes` and `twinlake reorg PATH --yes` start Spark themselves.",
                fields={"files": len(chosen) or hidden},
            )
        return rewrite(
            self._snapshot, rewriter, self._context.runtime, metadata=metadata, stale=chosen
        )

    def _swap(
        self,
        operation: Operation,
        outcome: Outcome | None,
        added: Iterable[AddFile],
        *,
        others: Iterable[Action] = (),
        reads_table: bool = False,
        waived_rules: frozenset[str] = frozenset(),
    ) -> None:
        from twinlake.table.operations.rewrite_files import discard

        domains = frozenset({CLUSTERING_DOMAIN})
        if outcome is None:
            self._commits.commit(
                operation,
                *others,
                reads_table=reads_table,
                system_domains=domains,
                waived_rules=waived_rules,
            )
            return
        try:
            self._commits.commit(
                replace(operation, metrics=outcome.metrics),
                *others,
                *outcome.removes,
                *added,
                reads=outcome.reads.files,
                reads_table=reads_table,
                system_domains=domains,
                waived_rules=waived_rules,
                tags=outcome.tags,
            )
        except CommitUnknown:
            # It may have been a commit: then the files belong to the table.
            raise
        except Exception:
            discard(self._snapshot.store, outcome.adds)
            raise

    def _tagged(self, add: AddFile) -> AddFile:
        version = self._goal.base.version
        if version < TAGGED_FROM:
            return add
        tags = {**(add.tags or {}), VERSION_TAG: str(version)}
        return msgspec.structs.replace(add, tags=tags)

    def _listed(self, before: Metadata, after: Metadata, *, alike: bool) -> list[AddFile]:
        """The files that are committed again as they are, under their new names or with a tag."""
        if not alike and self._goal.in_place:
            moved = renaming(before, after)
            return [self._tagged(moved.add(add)) for add in self._snapshot.adds()]
        if not self._inspection.untagged:
            return []
        files = self._snapshot.live_files(self._inspection.untagged).values()
        return [self._tagged(msgspec.structs.replace(a, data_change=False)) for a in files]

    def _clustering(self, moved: Renaming) -> list[Action]:
        """Clustering names its columns as files do."""
        found = find_clustering(self._snapshot.domains.values())
        if found is None:
            return []
        paths = found.physical_paths(self._snapshot.metadata)
        return [clustering_action(replace(found, columns=tuple(moved.path(p) for p in paths)))]
