"""Plans an upgrade to a compat feature: its steps, in an order that is always legal.

The planner applies every step to metadata and protocol as values and evaluates the rules before and
after it. The difference is what the step fixes; what is still broken at the end no step can fix,
and then the plan is refused. Nothing is stored between runs: a table that was left half-way needs
fewer steps.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS, enabled_compats
from twinlake.compat.evaluation import evaluate_rules
from twinlake.compat.registry.all_rules import rules_with
from twinlake.compat.rule import Profile, Scope, Trait
from twinlake.compat.subject import State, Subject
from twinlake.compat.upgrade.plan import Plan
from twinlake.compat.upgrade.step import (
    Cost,
    FileSummary,
    HistoryTruncation,
    Step,
    StepKind,
    StepState,
)
from twinlake.compat.upgrade.step_metadata import (
    converted,
    stripped,
    switched,
    with_compat_enabled,
    with_uniform,
)
from twinlake.compat.upgrade.step_text import convert_text, drop_text, purge_text, switch_text
from twinlake.compat.upgrade.target_metadata import has_same_layout
from twinlake.errors import UserError
from twinlake.protocol import FEATURES, features, keys, plan_drop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.compat.compat_feature import Compat
    from twinlake.compat.report import Report
    from twinlake.compat.rule import Violation
    from twinlake.compat.upgrade.step import Goal
    from twinlake.protocol import Metadata

__all__ = ["plan_upgrade"]

_SCOPES: Final = frozenset({Scope.METADATA, Scope.COMMIT})
_NOTHING: Final = HistoryTruncation()


def plan_upgrade(
    state: State,
    goal: Goal,
    *,
    version: int = 0,
    files: FileSummary | None = None,
    history: Mapping[str, HistoryTruncation] | None = None,
    now_ms: int = 0,
) -> Plan:
    """The plan for a table in that state.

    Args:
        state: metadata and protocol as they are.
        goal: the compat feature to reach, and how.
        version: the version they belong to.
        files: the live files, checked under the metadata after the upgrade.
        history: what must be truncated to drop features, by feature.
        now_ms: the current time, to compare with ``history``.
    """
    planner = _Planner(state, goal, files or FileSummary(), history or {}, now_ms)
    report = planner.report()
    planner.run()
    return Plan(
        goal=goal,
        table=state.metadata.label,
        version=version,
        steps=tuple(planner.steps),
        report=report,
        blockers=planner.blockers(),
        obstacles=tuple(planner.obstacles),
    )


class _Evaluation:
    """The rules of one goal, evaluated once for each state that the planner comes through."""

    def __init__(self, goal: Goal) -> None:
        self._goal = goal
        self._compat = goal.compat if goal.sets_writer_flag else goal.base
        self._reports: dict[tuple[State, str, int], Report] = {}

    def report(self, state: State, files: FileSummary) -> Report:
        """The report on a table for the goal, its files included."""
        found = self.evaluate(state, self._compat, files.vectors)
        rules, violations = self._layout(state, files.vectors)
        shown = Counter(violation.rule for violation in files.examples)
        return replace(
            found,
            compat=str(self._goal),
            rules=(*rules, *found.rules),
            violations=(*violations, *found.violations, *files.examples),
            omitted={
                rule: count - shown[rule]
                for rule, count in files.broken.items()
                if count > shown[rule]
            },
            files=files.files,
        )

    def evaluate(self, state: State, compat: Compat, vectors: int = 0) -> Report:
        """The rules about metadata and log, of that compat feature."""
        key = state, compat.feature, vectors
        if key not in self._reports:
            subject = Subject(after=state, vectors=vectors)
            profile = self._goal.profile
            self._reports[key] = evaluate_rules(subject, compat, profile=profile, scopes=_SCOPES)
        return self._reports[key]

    def evaluate_change(
        self, before: State, after: State, compat: Compat | None = None
    ) -> tuple[Violation, ...]:
        """What the change itself breaks, whatever the table is like after it."""
        found = evaluate_rules(
            Subject(after=after, before=before),
            compat or self._compat,
            profile=self._goal.profile,
            scopes={Scope.CHANGE},
        )
        exempt = rules_with(Trait.AT_CREATION)
        return tuple(v for v in found.violations if v.rule not in exempt)

    def _layout(self, state: State, vectors: int) -> tuple[tuple[str, ...], tuple[Violation, ...]]:
        """The rules of the writer feature that hold without it being enabled, in mode ``shared``.

        Ids and violations.
        """
        goal = self._goal
        if not goal.compat.is_writer or goal.sets_writer_flag:
            return (), ()
        whole, own = self.evaluate(state, goal.compat, vectors), rules_with(Trait.SHARED_MODE)
        return (
            tuple(rule for rule in whole.rules if rule in own),
            tuple(v for v in whole.violations if v.rule in own),
        )


class _Planner:
    """Applies the steps to metadata and protocol, one after the other."""

    def __init__(
        self,
        state: State,
        goal: Goal,
        files: FileSummary,
        history: Mapping[str, HistoryTruncation],
        now_ms: int,
    ) -> None:
        self._before = state
        self._state = state
        self._goal = goal
        self._files = files
        self._hidden = files.vectors
        self._history = history
        self._now_ms = now_ms
        self._enabling: tuple[Violation, ...] = ()
        self._rules = _Evaluation(goal)
        self.steps: list[Step] = []
        self.obstacles: list[str] = []

    def report(self) -> Report:
        """Where the table stands now."""
        return self._rules.report(self._state, self._files)

    def run(self) -> None:
        """Every step that the table needs."""
        self._switch()
        self._drop(early=True)
        self._purge()
        self._convert()
        self._drop(early=False)
        self._enable()
        self._uniform()

    def blockers(self) -> tuple[Violation, ...]:
        """What is broken when all steps are done."""
        left = self._rules.report(self._state, FileSummary()).violations
        # Only icebergCompatV3 cannot be taken back; other changes are the point of it all.
        disabling = [
            violation
            for compat in enabled_compats(self._before.metadata)
            if not compat.is_enabled(self._state.metadata)
            for violation in self._rules.evaluate_change(self._before, self._state, compat)
        ]
        return tuple(dict.fromkeys((*left, *self._enabling, *disabling)))

    def _state_after(self, metadata: Metadata) -> State:
        """The state after a commit of that metadata."""
        protocol = self._state.protocol.upgraded_for(metadata, policy=self._goal.policy)
        return State(metadata=stripped(metadata), protocol=protocol)

    def _add_step(self, step: Step, after: State, *, hidden: int | None = None) -> None:
        """Add the step, with the rules that it fixes."""
        broken = self._broken()
        self._state = after
        self._hidden = self._hidden if hidden is None else hidden
        left = self._broken()
        fixed = [rule for rule in broken if rule not in left]
        if step.kind is StepKind.CONVERT:
            fixed += [rule for rule in self._files.broken if rule not in fixed]
        elif step.kind is StepKind.PURGE and self._files.unfit_values:
            fixed += [r for r in self._files.broken if r in rules_with(Trait.STORED_VALUES)]
        self.steps.append(replace(step, why=tuple(sorted(fixed))))

    def _broken(self) -> tuple[str, ...]:
        files = FileSummary(vectors=self._hidden)
        found = self._rules.report(self._state, files).violations
        return tuple(dict.fromkeys(violation.rule for violation in found))

    def _switch(self) -> None:
        before = self._state.metadata
        after = switched(before, self._goal)
        if after != before:
            what, notes = switch_text(before, after)
            step = Step(kind=StepKind.SWITCH, what=what, notes=notes)
            self._add_step(step, self._state_after(after))

    def _purge(self) -> None:
        """Rewrite files before an upgrade in place; otherwise they are converted with the rest."""
        files, goal = self._files, self._goal
        vectors = 0 if goal.hides_rows or not self._hidden else files.vectors
        if not (vectors or files.unfit_values) or not self._stays():
            return
        step = Step(
            kind=StepKind.PURGE,
            what=purge_text(hides_rows=bool(vectors), rewrites_values=bool(files.unfit_values)),
            cost=Cost(
                files=vectors + files.unfit_values,
                size=(files.vectors_size if vectors else 0) + files.unfit_values_size,
            ),
        )
        self._add_step(step, self._state, hidden=0 if vectors else self._hidden)

    def _stays(self) -> bool:
        """Whether files stay although their columns get other physical names."""
        before = self._state.metadata
        return self._goal.in_place and not has_same_layout(before, converted(before, self._goal))

    def _convert(self) -> None:
        goal, files, before = self._goal, self._files, self._state.metadata
        after = converted(before, goal)
        alike = has_same_layout(before, after)
        if after == before and not files.unfit and not files.untagged:
            return
        stays = self._stays()
        if stays:
            self.obstacles += files.rewrite_reasons
        cost = Cost(listed=files.files) if stays else Cost(files=files.files, size=files.size)
        if alike:
            cost = Cost(files=files.unfit, size=files.unfit_size, listed=files.untagged)
        what, notes = convert_text(before, after, goal, cost)
        step = Step(kind=StepKind.CONVERT, what=what, notes=notes, cost=cost)
        self._add_step(
            step, self._state_after(after), hidden=self._hidden if goal.hides_rows else 0
        )

    def _drop(self, *, early: bool) -> None:
        """Features that may not even be supported leave one by one, dependents first."""
        again = True
        while again:
            again = False
            for name in self._refused_features(early=early):
                after, truncates = self._without(name)
                if after is None:
                    continue
                self._add_step(self._drop_step(name, truncates=truncates), after, hidden=None)
                if name == features.DELETION_VECTORS:
                    self._hidden = 0
                again = True
                break

    def _drop_step(self, name: str, *, truncates: bool) -> Step:
        found = self._history.get(name, _NOTHING) if truncates else _NOTHING
        if found.kept:
            self.obstacles.append(f"{name} cannot leave the history: {found.kept}")
        waits = found.until_ms is not None and found.until_ms > self._now_ms
        rewrites = name == features.DELETION_VECTORS and self._hidden > 0
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
        goal, state = self._goal, self._state
        compat = goal.compat if goal.sets_writer_flag and not early else goal.base
        found = self._rules.evaluate(state, compat)
        named = {v.path for v in found.violations if v.rule in rules_with(Trait.NAMES_FEATURE)}
        return tuple(sorted(named & state.protocol.feature_names & FEATURES.keys()))

    def _without(self, name: str) -> tuple[State | None, bool]:
        """The state without the feature, and whether history must be truncated; None if stuck."""
        row, goal = FEATURES[name], self._goal
        # The fast way leaves checkpointProtection behind, which only the kernel puts up with.
        protects = goal.profile is not Profile.KERNEL
        truncates = row.only_with_truncation or (row.history_protected and protects)
        protocol, metadata = self._state.protocol, self._state.metadata
        try:
            plan = plan_drop(protocol, metadata, name, truncate_history=truncates)
        except UserError:
            return None, truncates
        lowered = plan.downgrade(plan.prepare(metadata), version=0)
        return State(metadata=lowered, protocol=plan.protocol), truncates

    def _enable(self) -> None:
        before = self._state.metadata
        after = with_compat_enabled(before, self._goal)
        if stripped(after) == before:
            return
        flags = [
            row.key
            for row in COMPATS.values()
            if row.is_enabled(after) and not row.is_enabled(before)
        ]
        notes: tuple[str, ...] = ()
        if self._goal.sets_writer_flag:
            notes = ("Delta Spark can read the table from here on, and no longer write it.",)
        rows = after.flag(keys.ENABLE_ROW_TRACKING) > before.flag(keys.ENABLE_ROW_TRACKING)
        if rows:
            notes += ("Every file gets row ids, which takes a commit of its own.",)
        step = Step(
            kind=StepKind.ENABLE,
            what=f"Set {' and '.join(flags)} to true" if flags else "Add the features",
            notes=notes,
        )
        made = self._state_after(after)
        self._enabling = self._rules.evaluate_change(self._state, made)
        self._add_step(step, made)

    def _uniform(self) -> None:
        before = self._state.metadata
        after = with_uniform(before) if self._goal.uniform else before
        if after != before:
            step = Step(kind=StepKind.UNIFORM, what="Ask for Iceberg metadata to be kept")
            self._add_step(step, self._state_after(after))
