"""Looking at a table before an upgrade: which files can stay, and what holds history back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from msgspec import structs

from twinlake.commit.checks.footers import file_footers
from twinlake.compat import VERSION_TAG, FileFacts, HistoryFacts, Scope, State, Subject, judge
from twinlake.compat.upgrade.physical_names import id_misfits
from twinlake.compat.upgrade.planner import RULES_OF_VALUES
from twinlake.compat.upgrade.step_metadata import as_written, converted, switched
from twinlake.compat.upgrade.target_metadata import lays_out_alike
from twinlake.log import load_snapshot, read_commit
from twinlake.protocol import PROTECTION_PROPERTY, property_value
from twinlake.table.operations.feature_trace import leaves_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.actions import Action, AddFile
    from twinlake.compat import FileFooter, Goal, Violation
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import Executor, Runtime

__all__ = ["TAGGED_FROM", "FileSurvey", "HistorySurvey", "Surveyor"]

_TRUNCATION_RETENTION: Final = "delta.dropFeatureTruncateHistory.retentionDuration"
TAGGED_FROM: Final = 2
"""The first version whose files say for which they were written."""
_CLEANUP: Final = "delta.enableExpiredLogCleanup"
_MINUTE_MS: Final = 60_000
_BATCH: Final = 256
_EXAMPLES: Final = 10
_SCOPES: Final = frozenset({Scope.COMMIT, Scope.FOOTER})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSurvey:
    """What an upgrade has to know of the live files, and which they are."""

    facts: FileFacts
    stale: frozenset[str]
    """Paths of the files that cannot stay under the metadata they shall have."""
    recast: frozenset[str] = frozenset()
    """Paths of those whose values alone break a rule."""
    untagged: frozenset[str] = frozenset()
    """Paths of those that can, and do not say for which version they were written."""


class Surveyor:
    """Looks at files for one upgrade, at each footer once however often the plan is made."""

    def __init__(self, goal: Goal, executor: Executor) -> None:
        self._goal = goal
        self._executor = executor
        self._footers: dict[str, FileFooter] = {}

    def look(self, snapshot: Snapshot) -> FileSurvey:
        """The files of a version."""
        before = switched(snapshot.metadata, self._goal)
        after = converted(before, self._goal)
        adds = list(snapshot.adds())
        hidden = [add for add in adds if add.deletion_vector is not None]
        facts = FileFacts(
            files=len(adds),
            size=sum(add.size for add in adds),
            vectors=len(hidden),
            vectors_size=sum(add.size for add in hidden),
        )
        alike = lays_out_alike(before, after)
        if not alike and not self._goal.in_place:
            # All of them are written again, whatever their footers say.
            stale = frozenset(add.path for add in adds)
            whole = replace(facts, unfit=facts.files, unfit_size=facts.size)
            return FileSurvey(facts=whole, stale=stale)
        return self._judged(snapshot, adds, facts, (before, after))

    def _judged(
        self,
        snapshot: Snapshot,
        adds: Sequence[AddFile],
        facts: FileFacts,
        step: tuple[Metadata, Metadata],
    ) -> FileSurvey:
        goal, (before, after) = self._goal, step
        found = _Findings()
        state = State(metadata=as_written(after, goal), protocol=snapshot.protocol)
        for footers in self._read(snapshot, adds):
            found.judge(footers, state, goal)
        stale = set(found.stale)
        if not goal.hides_rows:
            stale.update(_hidden_paths(adds))
        misfits: list[str] = []
        recast: set[str] = set()
        if not lays_out_alike(before, after):
            misfits = self._misfits(adds, before, after, found)
            # Files with hidden rows are written again for that reason.
            recast = found.recast if goal.hides_rows else found.recast - set(_hidden_paths(adds))
        tag = str(goal.base.version)
        asked = goal.uniform and goal.base.version >= TAGGED_FROM
        untagged = frozenset(
            add.path
            for add in adds
            if asked and add.path not in stale and (add.tags or {}).get(VERSION_TAG) != tag
        )
        return FileSurvey(
            facts=replace(
                facts,
                unfit=len(stale),
                unfit_size=sum(add.size for add in adds if add.path in stale),
                broken=found.broken,
                examples=tuple(found.examples),
                untagged=len(untagged),
                recast=len(recast),
                recast_size=sum(add.size for add in adds if add.path in recast),
                misfits=tuple(misfits),
            ),
            stale=frozenset(stale),
            recast=frozenset(recast),
            untagged=untagged,
        )

    def _misfits(
        self, adds: Sequence[AddFile], before: Metadata, after: Metadata, found: _Findings
    ) -> list[str]:
        """Why files cannot stay where columns get other names, a few of the reasons."""
        reasons = dict(found.reasons)
        for add in adds:
            root = self._footers[add.path].root
            if root is not None and add.path not in reasons:
                wrong = next(id_misfits(root, before, after), None)
                if wrong is not None:
                    reasons[add.path] = wrong
        if not reasons:
            return []
        first = [f"{path} cannot stay as it is: {why}" for path, why in reasons.items()][:3]
        left = len(reasons) - len(first)
        more = [f"and {left} more files cannot stay"] if left else []
        return [*first, *more, "Leave in_place out, so that these files are written again."]

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
        self.recast: set[str] = set()

    def judge(self, footers: Sequence[FileFooter], state: State, goal: Goal) -> None:
        """A batch; where it has something wrong, file by file."""
        if not self._violations(footers, state, goal):
            return
        for footer in footers:
            found = self._violations([footer], state, goal)
            if not found:
                continue
            self.stale.add(footer.path)
            if all(violation.rule.endswith(RULES_OF_VALUES) for violation in found):
                self.recast.add(footer.path)
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
        return judge(subject, goal.base, profile=goal.profile, scopes=_SCOPES).violations


class HistorySurvey:
    """Looks through history for one upgrade, at each commit once."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._traces: dict[tuple[str, int], bool] = {}

    def look(self, snapshot: Snapshot, feature: str) -> HistoryFacts:
        """What has to leave the history before the feature can, and when it may."""
        from twinlake.log.listing import complete_checkpoints, list_log
        from twinlake.log.timestamps import CommitTimes, contiguous_commits

        metadata = snapshot.metadata
        retention = int(property_value(metadata, _TRUNCATION_RETENTION) or 0)
        if not property_value(metadata, _CLEANUP):
            return HistoryFacts(retention_ms=retention, kept=f"{_CLEANUP} is false")
        files = list_log(snapshot.store)
        commits = contiguous_commits(files, snapshot.version)
        old = self._expired(snapshot, retention) if retention else len(commits)
        last = self._last_trace(snapshot, feature, [commit.version for commit in commits])
        if last is None:
            return HistoryFacts(versions=old)
        lost = max(old, sum(commit.version <= last for commit in commits))
        facts = HistoryFacts(versions=lost, retention_ms=retention)
        after = [c.version for c in complete_checkpoints(files) if last < c.version]
        if last >= snapshot.version or not after or not retention:
            return facts
        times = CommitTimes(snapshot.store, snapshot, commits)
        made = -(-times.time(min(after)) // _MINUTE_MS) * _MINUTE_MS
        return replace(facts, until_ms=made + retention)

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

    def _last_trace(self, snapshot: Snapshot, feature: str, versions: Sequence[int]) -> int | None:
        """The newest version that shows the feature; None if none does."""
        if feature == "checkpointProtection":
            before = int(property_value(snapshot.metadata, PROTECTION_PROPERTY) or 0)
            return before - 1 if versions and versions[0] < before else None
        if _shows(snapshot, feature):
            return snapshot.version
        for version in reversed(versions):
            if self._has_trace(snapshot, feature, version):
                return version
        # The earliest state may come from a checkpoint whose own commits are gone.
        first = versions[0] if versions else None
        earliest = None if first is None else load_snapshot(snapshot.store, first)
        return first if earliest is not None and _shows(earliest, feature) else None

    def _has_trace(self, snapshot: Snapshot, feature: str, version: int) -> bool:
        key = feature, version
        if key not in self._traces:
            actions = read_commit(snapshot.store, version)
            self._traces[key] = any(leaves_trace(feature, action) for action in actions)
        return self._traces[key]


def _shows(snapshot: Snapshot, feature: str) -> bool:
    state: list[Action] = [snapshot.metadata, *snapshot.adds()]
    return any(leaves_trace(feature, action) for action in state)
