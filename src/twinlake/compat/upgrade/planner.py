"""From a table as it is to a promise about Iceberg: the steps, in an order that is always legal.

The plan is found by doing it on values: every step is applied to metadata and protocol, and the
rules are asked before and after. What a step mends is the difference; what is still broken at the
end no step can mend, and then the plan refuses. Nothing is remembered from one run to the next:
a table that was left half-way simply needs fewer steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS, enabled_compats
from twinlake.compat.evaluation import judge
from twinlake.compat.rule import Profile, Scope
from twinlake.compat.subject import State, Subject
from twinlake.compat.upgrade.plan import Plan
from twinlake.compat.upgrade.step import (
    Cost,
    FileFacts,
    HistoryFacts,
    Step,
    StepKind,
    StepState,
)
from twinlake.compat.upgrade.step_metadata import (
    converted,
    promised,
    stripped,
    switched,
    with_uniform,
)
from twinlake.compat.upgrade.step_text import convert_text, drop_text, purge_text, switch_text
from twinlake.compat.upgrade.target_metadata import lays_out_alike
from twinlake.errors import UserError
from twinlake.protocol import FEATURES, plan_drop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.compat.report import Report
    from twinlake.compat.rule import Violation
    from twinlake.compat.upgrade.step import Goal
    from twinlake.protocol import Metadata

__all__ = ["ONLY_AT_CREATION", "RULES_OF_VALUES", "plan_upgrade", "report_on"]

ONLY_AT_CREATION: Final = frozenset({"IWC1-19"})
"""The kernel has no way to this promise for tables that exist; an upgrade is that way."""

_SCOPES: Final = frozenset({Scope.METADATA, Scope.COMMIT})
_VECTORS: Final = "deletionVectors"
_PROTECTION: Final = "checkpointProtection"
_NOTHING: Final = HistoryFacts()
#: Rules about which features a protocol may list, by the end of their ids.
_FEATURE_RULES: Final = ("-05", "-10", "-17")
#: What a table has to have for Iceberg writers, flag or no flag: id mode and names by id.
_LAYOUT_RULES: Final = ("-05", "-06")
RULES_OF_VALUES: Final = ("-12", "-26")
"""The rules about how files store values; to write a file again mends them, by whatever names."""


def plan_upgrade(
    state: State,
    goal: Goal,
    *,
    version: int = 0,
    files: FileFacts | None = None,
    history: Mapping[str, HistoryFacts] | None = None,
    now_ms: int = 0,
) -> Plan:
    """The plan for a table in that state.

    Args:
        state: metadata and protocol as they are.
        goal: what is asked for.
        version: the version they belong to.
        files: what is known of the live files, looked at under the metadata they shall have.
        history: what stands in the way of the features that have to leave the history.
        now_ms: when this is; only compared with what ``history`` says.
    """
    walk = _Walk(state, goal, files or FileFacts(), history or {}, now_ms)
    walk.run()
    return Plan(
        goal=goal,
        table=state.metadata.label,
        version=version,
        steps=tuple(walk.steps),
        report=report_on(state, goal, files or FileFacts()),
        blockers=walk.blockers(),
        obstacles=tuple(walk.obstacles),
    )


def report_on(state: State, goal: Goal, files: FileFacts) -> Report:
    """Where a table stands on its way to the goal, what is known of its files included."""
    compat = goal.compat if goal.sets_writer_flag else goal.base
    subject = Subject(after=state, vectors=files.vectors)
    found = judge(subject, compat, profile=goal.profile, scopes=_SCOPES)
    layout = _layout_report(subject, goal)
    shown: dict[str, int] = {}
    for violation in files.examples:
        shown[violation.rule] = shown.get(violation.rule, 0) + 1
    violations = (*layout.violations, *found.violations) if layout else found.violations
    return replace(
        found,
        compat=str(goal),
        rules=(*layout.rules, *found.rules) if layout else found.rules,
        violations=(*violations, *files.examples),
        omitted={
            rule: count - shown.get(rule, 0)
            for rule, count in files.broken.items()
            if count > shown.get(rule, 0)
        },
        files=files.files,
        promised=compat.is_enabled(state.metadata),
    )


def _layout_report(subject: Subject, goal: Goal) -> Report | None:
    """The few rules of the writer promise that hold without its flag, in mode ``shared``."""
    if not goal.compat.is_writer or goal.sets_writer_flag:
        return None
    whole = judge(subject, goal.compat, profile=goal.profile, scopes=_SCOPES)
    own = tuple(f"{goal.compat.prefix}{end}" for end in _LAYOUT_RULES)
    return replace(
        whole,
        rules=tuple(rule for rule in whole.rules if rule in own),
        violations=tuple(v for v in whole.violations if v.rule in own),
    )


class _Walk:
    """One way through the steps, on values."""

    def __init__(
        self,
        state: State,
        goal: Goal,
        files: FileFacts,
        history: Mapping[str, HistoryFacts],
        now_ms: int,
    ) -> None:
        self._before = state
        self._state = state
        self._goal = goal
        self._files = files
        self._hidden = files.vectors
        self._history = history
        self._now_ms = now_ms
        self._late: tuple[Violation, ...] = ()
        self.steps: list[Step] = []
        self.obstacles: list[str] = []

    def run(self) -> None:
        """Every step that the table needs."""
        self._switch()
        self._drop(early=True)
        self._purge()
        self._convert()
        self._drop(early=False)
        self._promise()
        self._uniform()

    def blockers(self) -> tuple[Violation, ...]:
        """What is broken when all steps are done."""
        left = report_on(self._state, self._goal, FileFacts()).violations
        taken_back = [
            violation
            for compat in enabled_compats(self._before.metadata)
            for violation in judge(
                Subject(after=self._state, before=self._before),
                compat,
                profile=self._goal.profile,
                scopes={Scope.CHANGE},
            ).violations
            # Only icebergCompatV3 cannot be taken back; other changes are the point of it all.
            if violation.rule == "ICV3-20" and not compat.is_enabled(self._state.metadata)
        ]
        return tuple(dict.fromkeys((*left, *self._late, *taken_back)))

    def _became(self, metadata: Metadata) -> State:
        """The state after a commit of that metadata."""
        protocol = self._state.protocol.upgraded_for(metadata, policy=self._goal.policy)
        return State(metadata=stripped(metadata), protocol=protocol)

    def _take(self, step: Step, after: State, *, hidden: int | None = None) -> None:
        """Add the step, with the rules that it mends."""
        broken = self._broken()
        self._state = after
        self._hidden = self._hidden if hidden is None else hidden
        left = self._broken()
        mended = [rule for rule in broken if rule not in left]
        if step.kind is StepKind.CONVERT:
            mended += [rule for rule in self._files.broken if rule not in mended]
        elif step.kind is StepKind.PURGE and self._files.recast:
            mended += [r for r in self._files.broken if r.endswith(RULES_OF_VALUES)]
        self.steps.append(replace(step, why=tuple(sorted(mended))))

    def _broken(self) -> tuple[str, ...]:
        facts = FileFacts(vectors=self._hidden)
        found = report_on(self._state, self._goal, facts).violations
        return tuple(dict.fromkeys(violation.rule for violation in found))

    def _switch(self) -> None:
        before = self._state.metadata
        after = switched(before, self._goal)
        if after != before:
            what, notes = switch_text(before, after)
            step = Step(kind=StepKind.SWITCH, what=what, notes=notes)
            self._take(step, self._became(after))

    def _purge(self) -> None:
        """What has to be written again before files stay; else they are converted with the rest."""
        files, goal = self._files, self._goal
        vectors = 0 if goal.hides_rows or not self._hidden else files.vectors
        if not (vectors or files.recast) or not self._stays():
            return
        step = Step(
            kind=StepKind.PURGE,
            what=purge_text(hides_rows=bool(vectors), recasts=bool(files.recast)),
            cost=Cost(
                files=vectors + files.recast,
                size=(files.vectors_size if vectors else 0) + files.recast_size,
            ),
        )
        self._take(step, self._state, hidden=0 if vectors else self._hidden)

    def _stays(self) -> bool:
        """Whether files are asked to stay although their columns get other names."""
        before = self._state.metadata
        return self._goal.in_place and not lays_out_alike(before, converted(before, self._goal))

    def _convert(self) -> None:
        goal, files, before = self._goal, self._files, self._state.metadata
        after = converted(before, goal)
        alike = lays_out_alike(before, after)
        if after == before and not files.unfit and not files.untagged:
            return
        stays = self._stays()
        if stays:
            self.obstacles += files.misfits
        cost = Cost(listed=files.files) if stays else Cost(files=files.files, size=files.size)
        if alike:
            cost = Cost(files=files.unfit, size=files.unfit_size, listed=files.untagged)
        what, notes = convert_text(before, after, goal, cost)
        step = Step(kind=StepKind.CONVERT, what=what, notes=notes, cost=cost)
        self._take(step, self._became(after), hidden=self._hidden if goal.hides_rows else 0)

    def _drop(self, *, early: bool) -> None:
        """Features that may not even be supported leave one by one, dependents first."""
        again = True
        while again:
            again = False
            for name in self._refused_features(early=early):
                after, truncates = self._without(name)
                if after is None:
                    continue
                self._take(self._drop_step(name, truncates=truncates), after, hidden=None)
                if name == _VECTORS:
                    self._hidden = 0
                again = True
                break

    def _drop_step(self, name: str, *, truncates: bool) -> Step:
        found = self._history.get(name, _NOTHING) if truncates else _NOTHING
        if found.kept:
            self.obstacles.append(f"{name} cannot leave the history: {found.kept}")
        waits = found.until_ms is not None and found.until_ms > self._now_ms
        rewrites = name == _VECTORS and self._hidden > 0
        cost = Cost(
            files=self._files.vectors if rewrites else 0,
            size=self._files.vectors_size if rewrites else 0,
            history=found.versions,
            wait_ms=found.retention_ms,
            until_ms=found.until_ms if waits else None,
        )
        what, notes = drop_text(name, truncates=truncates)
        return Step(
            kind=StepKind.DROP_FEATURE,
            subject=name,
            truncates=truncates,
            what=what,
            cost=cost,
            notes=notes,
            state=StepState.WAITING if waits else StepState.PLANNED,
        )

    def _refused_features(self, *, early: bool) -> tuple[str, ...]:
        """Supported features that the rules name; ``early``: those the base must be without."""
        goal = self._goal
        state = self._state
        compat = goal.compat if goal.sets_writer_flag and not early else goal.base
        found = judge(Subject(after=state), compat, profile=goal.profile, scopes=_SCOPES)
        named = {v.path for v in found.violations if v.rule.endswith(_FEATURE_RULES)}
        return tuple(sorted(named & state.protocol.feature_names & FEATURES.keys()))

    def _without(self, name: str) -> tuple[State | None, bool]:
        """The state without the feature, and whether history must be truncated; None if stuck."""
        row, goal = FEATURES[name], self._goal
        # The fast way leaves checkpointProtection behind, which only the kernel puts up with.
        protects = goal.profile is not Profile.KERNEL
        truncates = name == _PROTECTION or (row.history_protected and protects)
        protocol, metadata = self._state.protocol, self._state.metadata
        try:
            plan = plan_drop(protocol, metadata, name, truncate_history=truncates)
        except UserError:
            return None, truncates
        lowered = plan.downgrade(plan.prepare(metadata), version=0)
        return State(metadata=lowered, protocol=plan.protocol), truncates

    def _promise(self) -> None:
        before = self._state.metadata
        after = promised(before, self._goal)
        if stripped(after) == before:
            return
        keys = [
            row.key
            for row in COMPATS.values()
            if row.is_enabled(after) and not row.is_enabled(before)
        ]
        notes: tuple[str, ...] = ()
        if self._goal.sets_writer_flag:
            notes = ("Delta Spark can read the table from here on, and no longer write it.",)
        rows = after.flag("delta.enableRowTracking") > before.flag("delta.enableRowTracking")
        if rows:
            notes += ("Every file gets row ids, which takes a commit of its own.",)
        step = Step(
            kind=StepKind.PROMISE,
            what=f"Set {' and '.join(keys)} to true" if keys else "Add the features",
            notes=notes,
        )
        made = self._became(after)
        self._late = self._against(made)
        self._take(step, made)

    def _against(self, made: State) -> tuple[Violation, ...]:
        """What the last change itself breaks, whatever the table is like after it."""
        goal = self._goal
        compat = goal.compat if goal.sets_writer_flag else goal.base
        subject = Subject(after=made, before=self._state)
        found = judge(subject, compat, profile=goal.profile, scopes={Scope.CHANGE})
        return tuple(v for v in found.violations if v.rule not in ONLY_AT_CREATION)

    def _uniform(self) -> None:
        before = self._state.metadata
        after = with_uniform(before) if self._goal.uniform else before
        if after != before:
            step = Step(kind=StepKind.UNIFORM, what="Ask for Iceberg metadata to be kept")
            self._take(step, self._became(after))
