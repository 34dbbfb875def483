"""UPGRADE: from a table as it is to a compat feature, step by step.

Every run looks at the table again and does what is left to do, so a run that was killed, or that
has to wait until history may be deleted, is finished by the next one. Every step is an ordinary
transaction that leaves a valid table; whoever writes meanwhile either fits in or makes the step
start again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import (
    Operation,
    OperationName,
)
from twinlake.compat import (
    COMPATS,
    Cost,
    Goal,
    Plan,
    State,
    Step,
    StepKind,
    StepState,
    Trait,
    UpgradeMode,
    find_compat,
    plan_upgrade,
    rules_with,
)
from twinlake.compat.upgrade import GIVE_UP_KEYS, switched, with_compat_enabled, with_uniform
from twinlake.errors import Code, CompatViolation, ConflictError, UserError, how_to_upgrade, listed
from twinlake.log import CACHE
from twinlake.protocol import Metadata, features
from twinlake.table.operations.backfill import backfill_row_ids, wants_backfill
from twinlake.table.operations.check import chosen_profile
from twinlake.table.operations.context import CommitSequence
from twinlake.table.operations.convert_files import UPGRADE_UNIFORM, Conversion
from twinlake.table.operations.drop_feature import FeatureDrop
from twinlake.table.operations.upgrade_inspection import FileInspector, HistoryInspector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from twinlake.log import Snapshot
    from twinlake.table.operations.context import OperationContext
    from twinlake.table.operations.upgrade_inspection import FileInspection

__all__ = ["Upgrade", "upgrade_goal", "upgrade_table", "upgrade_uniform"]

_ROUNDS: Final = 5
_WAITS: Final = frozenset(
    {
        "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
        "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST",
    }
)
_MAX_UNIFORM: Final = 2


def upgrade_goal(
    target: str,
    *,
    mode: str = "strict",
    in_place: bool = False,
    profile: str = "spec",
    give_up: Iterable[str] = (),
    policy: str = "bundled",
) -> Goal:
    """What was asked for, checked; all that is wrong with it is reported at once."""
    wanted = frozenset(give_up)
    problems = []
    if mode not in set(UpgradeMode):
        problems.append(f"mode is {mode!r}, and there are {', '.join(UpgradeMode)}")
    if unknown := sorted(wanted - GIVE_UP_KEYS.keys()):
        problems.append(
            f"give_up names {', '.join(unknown)}, and there are {', '.join(GIVE_UP_KEYS)}"
        )
    if problems:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The upgrade cannot be planned.",
            why=listed(problems),
            fix="Correct the arguments that are named.",
            fields={"problems": problems},
        )
    return Goal(
        compat=find_compat(target),
        mode=UpgradeMode(mode),
        profile=chosen_profile(profile, Metadata()),
        in_place=in_place,
        give_up=wanted,
        policy=policy,
    )


def upgrade_uniform(
    context: OperationContext, snapshot: Snapshot, version: int, *, dry_run: bool = False
) -> Plan:
    """``REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = version))``.

    A table that finds its columns by id keeps doing so. Files that fit are not rewritten: they are
    committed again with the tag that says so.
    """
    current = CACHE.latest(snapshot.store)
    refused = _uniform_refusal(current, version)
    if refused is not None:
        raise refused
    goal = Goal(compat=COMPATS[f"icebergCompatV{version}"], uniform=True, policy=context.policy)
    return upgrade_table(context, current, goal, dry_run=dry_run)


def upgrade_table(
    context: OperationContext, snapshot: Snapshot, goal: Goal, *, dry_run: bool = False
) -> Plan:
    """Plan the upgrade of a table and, unless it is only looked at, do it."""
    upgrade = Upgrade(context, snapshot, goal)
    return upgrade.plan() if dry_run else upgrade.run()


def _uniform_refusal(snapshot: Snapshot, version: int) -> UserError | None:
    if not 1 <= version <= _MAX_UNIFORM:
        return UserError(
            Code.INVALID_ARGUMENT,
            f"A table cannot be upgraded to ICEBERG_COMPAT_VERSION = {version}.",
            why=f"this command knows the versions 1 to {_MAX_UNIFORM}, as Delta's does",
            fix=f"Run {how_to_upgrade(features.ICEBERG_COMPAT_V3)}.",
            delta_class="DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
            fields={"version": version, "max": _MAX_UNIFORM},
        )
    if snapshot.protocol.is_supported(features.CATALOG_MANAGED):
        return UserError(
            Code.FEATURE_ENABLE,
            "A table whose commits go through a catalog cannot be upgraded.",
            why="the catalog owns its commits",
            fix="Ask the owner of the catalog.",
            delta_class="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        )
    return None


class Upgrade:
    """One upgrade of one table."""

    def __init__(self, context: OperationContext, snapshot: Snapshot, goal: Goal) -> None:
        self._context = context
        self._commits = CommitSequence(context, snapshot)
        self._goal = goal
        self._inspector = FileInspector(goal, context.executor)
        self._inspection: FileInspection | None = None
        self._history = HistoryInspector(context.runtime)
        self._steps: Mapping[StepKind, Callable[[Step], None]] = {
            StepKind.SWITCH: self._switch,
            StepKind.PURGE: self._purge,
            StepKind.CONVERT: self._convert,
            StepKind.DROP_FEATURE: self._drop,
            StepKind.ENABLE: self._enable,
            StepKind.UNIFORM: self._uniform,
        }

    @property
    def _snapshot(self) -> Snapshot:
        return self._commits.snapshot

    def plan(self) -> Plan:
        """What is left to do, from the newest version that was seen."""
        snapshot, goal = self._snapshot, self._goal
        state = State(metadata=snapshot.metadata, protocol=snapshot.protocol)
        self._inspection = self._inspector.inspect(snapshot)
        known: dict[str, Any] = {
            "version": snapshot.version,
            "files": self._inspection.summary,
            "now_ms": self._context.runtime.clock.now_ms(),
        }
        first = plan_upgrade(state, goal, **known)
        names = [step.subject for step in first.steps if step.truncates]
        if not names:
            return _labelled(first, snapshot)
        history = {name: self._history.inspect(snapshot, name) for name in names}
        return _labelled(plan_upgrade(state, goal, history=history, **known), snapshot)

    def run(self) -> Plan:
        """Do it, as far as it goes now; the plan says what was done and what is left."""
        plan = self._feasible_plan()
        self._need_engine(plan)
        report, done, tries = plan.report, list[Step](), dict[Any, int]()
        while plan.steps and plan.steps[0].state is not StepState.WAITING:
            step = plan.steps[0]
            tries[step.key] = tries.get(step.key, 0) + 1
            if tries[step.key] > _ROUNDS:
                raise self._endless(step)
            foreign, finished = self._commits.foreign_commits, False
            try:
                self._steps[step.kind](step)
            except ConflictError:
                if tries[step.key] == _ROUNDS:
                    raise
            except UserError as error:
                if error.delta_class not in _WAITS:
                    raise
                self._commits.refresh()
                plan = self.plan()
                if plan.steps[0].state is StepState.WAITING:
                    break
                if tries[step.key] == _ROUNDS:
                    plan = self._waiting(plan)
                    break
                # Nothing of the feature is left in the history: there is nothing to wait for.
                continue
            else:
                done = [d for d in done if d.key != step.key]
                done.append(step.finished(self._snapshot.version))
                finished = True
            self._commits.refresh()
            left = plan.steps[1:]
            if finished and self._commits.foreign_commits == foreign and _is_free(left):
                # The planner has foreseen this state, and neither a file nor a commit can differ.
                plan = replace(plan, version=self._snapshot.version, steps=left)
            else:
                plan = self._feasible_plan()
        return replace(plan, steps=(*done, *plan.steps), report=report)

    def _feasible_plan(self) -> Plan:
        plan = self.plan()
        if plan.refused:
            raise _refusal(plan)
        return plan

    def _waiting(self, plan: Plan) -> Plan:
        """The plan with its first step marked: history was found too young for it."""
        first, *rest = plan.steps
        # What others committed meanwhile counts from now at the latest.
        until = self._context.runtime.clock.now_ms() + first.cost.wait_ms
        cost = replace(first.cost, until_ms=first.cost.until_ms or until)
        return replace(plan, steps=(replace(first, state=StepState.WAITING, cost=cost), *rest))

    def _need_engine(self, plan: Plan) -> None:
        if plan.files and self._context.rewriter is None:
            raise UserError(
                Code.SPARK_REQUIRED,
                f"The upgrade has to rewrite {plan.files} file(s).",
                why=listed(step.what for step in plan.steps if step.cost.files),
                fix="Pass a SparkSession as `spark=`, or run `twinlake upgrade PATH --yes`, "
                "which starts Spark; with `dry_run=True` the plan is shown without.",
                fields={"files": plan.files, "plan": plan.to_dict()},
            )

    def _endless(self, step: Step) -> UserError:
        return UserError(
            Code.COMPAT,
            f"Cannot upgrade the table: {step.what}.",
            why=f"the step ran {_ROUNDS} times, and other writers undid it each time",
            fix="Stop the other writers, then run the upgrade again.",
            fields={"step": step.to_dict()},
        )

    # The steps

    def _properties(self, after: Metadata) -> Operation:
        """What history shows for new properties."""
        before = self._snapshot.metadata.configuration
        changed = {k: v for k, v in sorted(after.configuration.items()) if before.get(k) != v}
        gone = sorted(before.keys() - after.configuration.keys())
        if gone and not changed:
            return Operation(
                name=OperationName.UNSET_TBLPROPERTIES,
                parameters={"properties": gone, "ifExists": True},
            )
        if not changed:
            return Operation(name=OperationName.CHANGE_COLUMNS)
        name = UPGRADE_UNIFORM if self._goal.uniform else OperationName.SET_TBLPROPERTIES
        return Operation(name=name, parameters={"properties": changed})

    def _switch(self, _: Step) -> None:
        after = switched(self._snapshot.metadata, self._goal)
        self._commits.commit(self._properties(after), after)

    def _purge(self, step: Step) -> None:
        self._conversion(step).purge()

    def _convert(self, step: Step) -> None:
        self._conversion(step).run()

    def _conversion(self, step: Step) -> Conversion:
        inspection = self._inspection or self._inspector.inspect(self._snapshot)
        return Conversion(self._context, self._commits, self._goal, inspection, step.what)

    def _drop(self, step: Step) -> None:
        drop = FeatureDrop(
            self._context, self._snapshot, step.subject, truncate_history=step.truncates
        )
        self._commits.follow(drop.run())

    def _enable(self, _: Step) -> None:
        after = with_compat_enabled(self._snapshot.metadata, self._goal)
        if wants_backfill(self._snapshot, after):
            self._commits.snapshot = backfill_row_ids(self._context, self._snapshot)
            after = with_compat_enabled(self._snapshot.metadata, self._goal)
        self._commits.commit(
            self._properties(after),
            after,
            reads_table=True,
            waived_rules=rules_with(Trait.AT_CREATION),
        )

    def _uniform(self, _: Step) -> None:
        after = with_uniform(self._snapshot.metadata)
        self._commits.commit(self._properties(after), after)


def _is_free(steps: Iterable[Step]) -> bool:
    """Whether the steps touch neither files nor history."""
    return all(step.cost == Cost() for step in steps)


def _labelled(plan: Plan, snapshot: Snapshot) -> Plan:
    """The plan and its report under the name that the caller knows the table by."""
    report = replace(plan.report, table=snapshot.label)
    return replace(plan, table=snapshot.label, report=report)


def _refusal(plan: Plan) -> CompatViolation:
    """The error for a plan that leads nowhere, with the whole report."""
    reasons = [f"{v.rule}: {v.message}" for v in plan.blockers] + list(plan.obstacles)
    fixes = dict.fromkeys(violation.fix for violation in plan.blockers if violation.fix)
    first = plan.blockers[0] if plan.blockers else None
    return CompatViolation(
        Code.COMPAT,
        f"Table {plan.table} cannot be upgraded to {plan.goal}.",
        why=listed(reasons),
        fix=" ".join((*fixes, plan.advice)).strip()
        or "Correct these first, then run the upgrade again.",
        rule=first.rule if first else None,
        delta_class=(first.delta_class if first else None) or "DELTA_ICEBERG_COMPAT_VIOLATION",
        fields={"report": plan.report.to_dict(), "plan": plan.to_dict()},
    )
