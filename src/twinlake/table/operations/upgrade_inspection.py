"""Looking at a table before an upgrade: which files can stay, and what holds history back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from msgspec import structs

from twinlake.commit import file_footers
from twinlake.compat import (
    VERSION_TAG,
    FileSummary,
    HistoryTruncation,
    Scope,
    State,
    Subject,
    Trait,
    evaluate_rules,
    rules_with,
)
from twinlake.compat.upgrade import (
    converted,
    has_same_layout,
    id_mismatches,
    metadata_for_files,
    switched,
)
from twinlake.log import load_snapshot, read_commit
from twinlake.protocol import FEATURES, FeatureTrace, keys, property_value
from twinlake.table.operations.feature_trace import leaves_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.actions import Action, AddFile
    from twinlake.compat import FileFooter, Goal, Violation
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import Executor, Runtime

__all__ = ["TAGGED_FROM", "FileInspection", "FileInspector", "HistoryInspector"]

TAGGED_FROM: Final = 2
"""The first version whose files say for which they were written."""
_MINUTE_MS: Final = 60_000
_BATCH: Final = 256
_EXAMPLES: Final = 10
_SCOPES: Final = frozenset({Scope.COMMIT, Scope.FOOTER})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInspection:
    """What an upgrade has to know of the live files, and which they are."""

    summary: FileSummary
    stale: frozenset[str]
    """Paths of the files that cannot stay under the metadata they shall have."""
    unfit_values: frozenset[str] = frozenset()
    """Paths of those whose values alone break a rule."""
    untagged: frozenset[str] = frozenset()
    """Paths of those that can, and do not say for which version they were written."""


class FileInspector:
    """Looks at files for one upgrade, at each footer once however often the plan is made."""

    def __init__(self, goal: Goal, executor: Executor) -> None:
        self._goal = goal
        self._executor = executor
        self._footers: dict[str, FileFooter] = {}

    def inspect(self, snapshot: Snapshot) -> FileInspection:
        """The files of a version."""
        before = switched(snapshot.metadata, self._goal)
        after = converted(before, self._goal)
        adds = list(snapshot.adds())
        hidden = [add for add in adds if add.deletion_vector is not None]
        summary = FileSummary(
            files=len(adds),
            size=sum(add.size for add in adds),
            vectors=len(hidden),
            vectors_size=sum(add.size for add in hidden),
        )
        alike = has_same_layout(before, after)
        if not alike and not self._goal.in_place:
            # All of them are rewritten, whatever their footers say.
            stale = frozenset(add.path for add in adds)
            whole = replace(summary, unfit=summary.files, unfit_size=summary.size)
            return FileInspection(summary=whole, stale=stale)
        return self._inspect_footers(snapshot, adds, summary, (before, after))

    def _inspect_footers(
        self,
        snapshot: Snapshot,
        adds: Sequence[AddFile],
        summary: FileSummary,
        step: tuple[Metadata, Metadata],
    ) -> FileInspection:
        goal, (before, after) = self._goal, step
        found = _Findings()
        state = State(metadata=metadata_for_files(after, goal), protocol=snapshot.protocol)
        for footers in self._read(snapshot, adds):
            found.evaluate_rules(footers, state, goal)
        stale = set(found.stale)
        if not goal.hides_rows:
            stale.update(_hidden_paths(adds))
        reasons: list[str] = []
        unfit_values: set[str] = set()
        if not has_same_layout(before, after):
            reasons = self._rewrite_reasons(adds, before, after, found)
            # Files with deletion vectors are rewritten for that reason.
            unfit_values = (
                found.unfit_values
                if goal.hides_rows
                else found.unfit_values - set(_hidden_paths(adds))
            )
        tag = str(goal.base.version)
        asked = goal.uniform and goal.base.version >= TAGGED_FROM
        untagged = frozenset(
            add.path
            for add in adds
            if asked and add.path not in stale and (add.tags or {}).get(VERSION_TAG) != tag
        )
        return FileInspection(
            summary=replace(
                summary,
                unfit=len(stale),
                unfit_size=sum(add.size for add in adds if add.path in stale),
                broken=found.broken,
                examples=tuple(found.examples),
                untagged=len(untagged),
                unfit_values=len(unfit_values),
                unfit_values_size=sum(add.size for add in adds if add.path in unfit_values),
                rewrite_reasons=tuple(reasons),
            ),
            stale=frozenset(stale),
            unfit_values=frozenset(unfit_values),
            untagged=untagged,
        )

    def _rewrite_reasons(
        self, adds: Sequence[AddFile], before: Metadata, after: Metadata, found: _Findings
    ) -> list[str]:
        """Why files cannot stay where columns get other names, a few of the reasons."""
        reasons = dict(found.reasons)
        for add in adds:
            root = self._footers[add.path].root
            if root is not None and add.path not in reasons:
                wrong = next(id_mismatches(root, before, after), None)
                if wrong is not None:
                    reasons[add.path] = wrong
        if not reasons:
            return []
        first = [f"{path} cannot stay as it is: {why}" for path, why in reasons.items()][:3]
        left = len(reasons) - len(first)
        more = [f"and {left} more files cannot stay"] if left else []
        return [*first, *more, "Leave in_place out, so that these files are rewritten."]

    def _read(self, snapshot: Snapshot, adds: Sequence[AddFile]) -> Iterator[list[FileFooter]]:
        new = [add for add in adds if add.path not in self._footers]
        for footer in file_footers(snapshot.store, new, self._executor, snapshot.metadata):
            self._footers[footer.path] = footer
        for start in range(0, len(adds), _BATCH):
            chunk = adds[start : start + _BATCH]
            yield [replace(self._footers[add.path], add=_unhidden(add)) for add in chunk]


def _hidden_paths(adds: Sequence[AddFile]) -> Iterator[str]:
    return (add.path for add in adds if add.deletion_vector is not None)


def _unhidden(add: AddFile) -> AddFile:
    """The file as it would be without hidden rows, which are counted apart."""
    return add if add.deletion_vector is None else structs.replace(add, deletion_vector=None)


class _Findings:
    """What is wrong with files, gathered batch by batch."""

    def __init__(self) -> None:
        self.stale: set[str] = set()
        self.broken: dict[str, int] = {}
        self.examples: list[Violation] = []
        self.reasons: dict[str, str] = {}
        self.unfit_values: set[str] = set()

    def evaluate_rules(self, footers: Sequence[FileFooter], state: State, goal: Goal) -> None:
        """A batch; where it has something wrong, file by file."""
        if not self._violations(footers, state, goal):
            return
        for footer in footers:
            found = self._violations([footer], state, goal)
            if not found:
                continue
            self.stale.add(footer.path)
            if {violation.rule for violation in found} <= rules_with(Trait.STORED_VALUES):
                self.unfit_values.add(footer.path)
            else:
                self.reasons[footer.path] = found[0].message
            for rule in {violation.rule for violation in found}:
                self.broken[rule] = self.broken.get(rule, 0) + 1
            if len(self.examples) < _EXAMPLES:
                self.examples.append(found[0])

    @staticmethod
    def _violations(
        footers: Sequence[FileFooter], state: State, goal: Goal
    ) -> tuple[Violation, ...]:
        subject = Subject(after=state, adds=[f.add for f in footers], footers=footers)
        return evaluate_rules(subject, goal.base, profile=goal.profile, scopes=_SCOPES).violations


class HistoryInspector:
    """Looks through history for one upgrade, at each commit once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._traces: dict[tuple[FeatureTrace | None, int], bool] = {}

    def inspect(self, snapshot: Snapshot, feature: str) -> HistoryTruncation:
        """What has to leave the history before the feature can, and when it may."""
        from twinlake.log import CommitTimes, complete_checkpoints, contiguous_commits, list_log

        metadata = snapshot.metadata
        retention = int(property_value(metadata, keys.TRUNCATE_HISTORY_RETENTION_DURATION) or 0)
        if not property_value(metadata, keys.ENABLE_EXPIRED_LOG_CLEANUP):
            return HistoryTruncation(
                retention_ms=retention, kept=f"{keys.ENABLE_EXPIRED_LOG_CLEANUP} is false"
            )
        files = list_log(snapshot.store)
        commits = contiguous_commits(files, snapshot.version)
        old = self._expired(snapshot, retention) if retention else len(commits)
        removal = FEATURES[feature].removal
        trace = None if removal is None else removal.trace
        last = self._last_trace(snapshot, trace, [commit.version for commit in commits])
        if last is None:
            return HistoryTruncation(versions=old)
        lost = max(old, sum(commit.version <= last for commit in commits))
        truncation = HistoryTruncation(versions=lost, retention_ms=retention)
        after = [c.version for c in complete_checkpoints(files) if last < c.version]
        if last >= snapshot.version or not after or not retention:
            return truncation
        times = CommitTimes(snapshot.store, snapshot, commits)
        made = -(-times.time(min(after)) // _MINUTE_MS) * _MINUTE_MS
        return replace(truncation, until_ms=made + retention)

    def _expired(self, snapshot: Snapshot, retention: int) -> int:
        """What is old enough goes in any case, whether or not it shows the feature."""
        from twinlake.log import cleanup_log

        plan = cleanup_log(
            snapshot,
            runtime=self._runtime,
            retention_ms=retention,
            granularity_ms=_MINUTE_MS,
            dry_run=True,
        )
        return len(plan.commits)

    def _last_trace(
        self, snapshot: Snapshot, trace: FeatureTrace | None, versions: Sequence[int]
    ) -> int | None:
        """The newest version that shows the feature; None if none does."""
        if trace is FeatureTrace.PROTECTED_HISTORY:
            before = int(property_value(snapshot.metadata, keys.REQUIRE_CHECKPOINT_PROTECTION) or 0)
            return before - 1 if versions and versions[0] < before else None
        if _shows(snapshot, trace):
            return snapshot.version
        for version in reversed(versions):
            if self._has_trace(snapshot, trace, version):
                return version
        # The earliest state may come from a checkpoint whose own commits are gone.
        first = versions[0] if versions else None
        earliest = None if first is None else load_snapshot(snapshot.store, first)
        return first if earliest is not None and _shows(earliest, trace) else None

    def _has_trace(self, snapshot: Snapshot, trace: FeatureTrace | None, version: int) -> bool:
        key = trace, version
        if key not in self._traces:
            actions = read_commit(snapshot.store, version)
            self._traces[key] = any(leaves_trace(trace, action) for action in actions)
        return self._traces[key]


def _shows(snapshot: Snapshot, trace: FeatureTrace | None) -> bool:
    state: list[Action] = [snapshot.metadata, *snapshot.adds()]
    return any(leaves_trace(trace, action) for action in state)
