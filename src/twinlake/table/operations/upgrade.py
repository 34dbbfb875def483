"""UPGRADE: from a table as it is to a compat feature, step by step.

Every run looks at the table again and does what is left to do, so a run that was killed, or that
has to wait until history may be deleted, is finished by the next one. Every step is an ordinary
transaction that leaves a valid table; whoever writes meanwhile either fits in or makes the step
start again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from twinlake.commit import (
    CHECKS,
    CommitOptions,
    Operation,
    OperationName,
    Transaction,
    Violation,
)
from twinlake.commit.checks.compat import compat_refusal
from twinlake.compat import (
    COMPATS,
    Goal,
    Plan,
    State,
    Step,
    StepKind,
    StepState,
    UpgradeMode,
    find_compat,
    plan_upgrade,
)
from twinlake.compat.upgrade.planner import ONLY_AT_CREATION
from twinlake.compat.upgrade.step_metadata import promised, switched, with_uniform
from twinlake.compat.upgrade.target_metadata import BURDENS
from twinlake.errors import Code, CompatViolation, ConflictError, UserError, how_to_upgrade, listed
from twinlake.log import CACHE
from twinlake.protocol import Metadata
from twinlake.runtime import engine_for
from twinlake.table.operations.check import chosen_profile
from twinlake.table.operations.convert_files import UPGRADE_UNIFORM, Conversion
from twinlake.table.operations.upgrade_input import HistorySurvey, Surveyor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from twinlake.actions import Action
    from twinlake.commit import Draft, HookWarning, PostCommitHook
    from twinlake.log import Snapshot
    from twinlake.runtime import Engine, Runtime
    from twinlake.table.operations.upgrade_input import FileSurvey

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
    """What was asked for, checked; all that is wrong with it is told at once."""
    wanted = frozenset(give_up)
    problems = []
    if mode not in set(UpgradeMode):
        problems.append(f"mode is {mode!r}, and there are {', '.join(UpgradeMode)}")
    if unknown := sorted(wanted - BURDENS.keys()):
        problems.append(f"give_up names {', '.join(unknown)}, and there are {', '.join(BURDENS)}")
    if problems:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The upgrade cannot be planned.",
            why=listed(problems),
            fix="Correct the arguments.",
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


class Upgradable(Protocol):
    """What an upgrade asks of a table."""

    @property
    def snapshot(self) -> Snapshot:
        """The version it shows."""
        ...

    @property
    def runtime(self) -> Runtime:
        """The ports it works through."""
        ...

    @property
    def policy(self) -> str:
        """How its protocol grows."""
        ...

    def refresh(self) -> Upgradable:
        """The same at its latest version."""
        ...


def upgrade_table(
    table: Upgradable,
    goal: Goal,
    *,
    dry_run: bool,
    hooks: Iterable[PostCommitHook],
    engine: Engine | None,
) -> Plan:
    """Plan the upgrade of a table and, unless it is only looked at, do it."""
    work = Upgrade(
        table.refresh().snapshot, goal, runtime=table.runtime, hooks=hooks, engine=engine
    )
    if dry_run:
        return work.plan()
    try:
        return work.run()
    finally:
        CACHE.offer(work.snapshot)


def upgrade_uniform(
    table: Upgradable, version: int, spark: Any = None, *, dry_run: bool = False
) -> Plan:
    """``REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = version))``.

    A table that finds its columns by id keeps doing so. Files that fit are not written again: they
    are committed again with the tag that says so.
    """
    from twinlake.table.catalog.publish import HOOKS

    current = table.refresh()
    refused = _uniform_refusal(current, version)
    if refused is not None:
        raise refused
    goal = Goal(compat=COMPATS[f"icebergCompatV{version}"], uniform=True, policy=current.policy)
    engine = engine_for(spark)
    return upgrade_table(current, goal, dry_run=dry_run, hooks=HOOKS, engine=engine)


def _uniform_refusal(table: Upgradable, version: int) -> UserError | None:
    if not 1 <= version <= _MAX_UNIFORM:
        return UserError(
            Code.INVALID_ARGUMENT,
            f"A table cannot be upgraded to ICEBERG_COMPAT_VERSION = {version}.",
            why=f"this command knows the versions 1 to {_MAX_UNIFORM}, as Delta's does",
            fix=f"Run {how_to_upgrade('icebergCompatV3')}.",
            delta_class="DELTA_ICEBERG_COMPAT_VIOLATION.COMPAT_VERSION_NOT_SUPPORTED",
            fields={"version": version, "max": _MAX_UNIFORM},
        )
    if table.snapshot.protocol.is_supported("catalogManaged"):
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

    def __init__(
        self,
        snapshot: Snapshot,
        goal: Goal,
        *,
        runtime: Runtime,
        hooks: Iterable[PostCommitHook],
        engine: Engine | None,
    ) -> None:
        self.snapshot = snapshot
        """The newest version that was seen."""
        self.warnings: tuple[HookWarning, ...] = ()
        self._goal = goal
        self._runtime = runtime
        self._hooks = tuple(hooks)
        self._engine = engine
        self._surveyor = Surveyor(goal, engine.executor if engine else runtime.executor)
        self._survey: FileSurvey | None = None
        self._history = HistorySurvey(runtime)
        self._work: Mapping[StepKind, Callable[[Step], None]] = {
            StepKind.SWITCH: self._switch,
            StepKind.PURGE: self._purge,
            StepKind.CONVERT: self._convert,
            StepKind.DROP_FEATURE: self._drop,
            StepKind.PROMISE: self._promise,
            StepKind.UNIFORM: self._uniform,
        }

    def plan(self) -> Plan:
        """What is left to do, from the newest version that was seen."""
        snapshot, goal = self.snapshot, self._goal
        state = State(metadata=snapshot.metadata, protocol=snapshot.protocol)
        self._survey = self._surveyor.look(snapshot)
        now = self._runtime.clock.now_ms()
        facts: dict[str, Any] = {
            "version": snapshot.version,
            "files": self._survey.facts,
            "now_ms": now,
        }
        first = plan_upgrade(state, goal, **facts)
        features = [step.subject for step in first.steps if step.truncates]
        if not features:
            return _labelled(first, snapshot)
        history = {name: self._history.look(snapshot, name) for name in features}
        return _labelled(plan_upgrade(state, goal, history=history, **facts), snapshot)

    def run(self) -> Plan:
        """Do it, as far as it goes now; the plan says what was done and what is left."""
        plan = self.plan()
        if plan.refused:
            raise _refusal(plan)
        self._need_engine(plan)
        report, done, tries = plan.report, list[Step](), dict[Any, int]()
        while plan.steps and plan.steps[0].state is not StepState.WAITING:
            step = plan.steps[0]
            tries[step.key] = tries.get(step.key, 0) + 1
            if tries[step.key] > _ROUNDS:
                raise self._endless(step)
            try:
                self._work[step.kind](step)
            except ConflictError:
                if tries[step.key] == _ROUNDS:
                    raise
            except UserError as error:
                if error.delta_class not in _WAITS:
                    raise
                self._refresh()
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
                done.append(step.finished(self.snapshot.version))
            self._refresh()
            plan = self.plan()
            if plan.refused:
                raise _refusal(plan)
        return replace(plan, steps=(*done, *plan.steps), report=report)

    def _waiting(self, plan: Plan) -> Plan:
        """The plan with its first step marked: history was found too young for it."""
        first, *rest = plan.steps
        # What others committed meanwhile counts from now at the latest.
        until = self._runtime.clock.now_ms() + first.cost.wait_ms
        cost = replace(first.cost, until_ms=first.cost.until_ms or until)
        return replace(plan, steps=(replace(first, state=StepState.WAITING, cost=cost), *rest))

    def _refresh(self) -> None:
        CACHE.offer(self.snapshot)
        self.snapshot = CACHE.latest(self.snapshot.store)

    def _need_engine(self, plan: Plan) -> None:
        if plan.files and self._engine is None:
            raise UserError(
                Code.SPARK_REQUIRED,
                f"The upgrade has to write {plan.files} file(s) again.",
                why=listed(step.what for step in plan.steps if step.cost.files),
                fix="Pass a SparkSession as `spark=`, or run `twinlake upgrade PATH --yes`, "
                "which starts Spark; with `dry_run=True` the plan is shown without.",
                fields={"files": plan.files, "plan": plan.to_dict()},
            )

    def _endless(self, step: Step) -> UserError:
        return UserError(
            Code.COMPAT,
            f"The upgrade does not get on: {step.what}.",
            why=f"after {_ROUNDS} times it is still to be done; other writers keep undoing it",
            fix="Stop the other writers, then run the upgrade again.",
            fields={"step": step.to_dict()},
        )

    # The steps

    def _commit(
        self,
        operation: Operation,
        *actions: Action,
        reads: Iterable[str] = (),
        reads_table: bool = False,
        **options: Any,
    ) -> None:
        transaction = Transaction(
            self.snapshot,
            operation,
            self._runtime,
            self._hooks,
            options=CommitOptions(policy=self._goal.policy, **options),
        ).read_paths(reads)
        if reads_table:
            transaction.record_whole_table()
        result = transaction.add(*actions).commit()
        self.snapshot = result.snapshot
        self.warnings += result.warnings

    def _properties(self, after: Metadata) -> Operation:
        """What history shows for new properties."""
        before = self.snapshot.metadata.configuration
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
        after = switched(self.snapshot.metadata, self._goal)
        self._commit(self._properties(after), after)

    def _purge(self, step: Step) -> None:
        self._conversion(step).purge(self._commit)

    def _convert(self, step: Step) -> None:
        self._conversion(step).run(self._commit)

    def _conversion(self, step: Step) -> Conversion:
        survey = self._survey or self._surveyor.look(self.snapshot)
        return Conversion(
            self.snapshot,
            self._goal,
            survey,
            runtime=self._runtime,
            rewriter=self._engine.rewriter if self._engine else None,
            described=step.what,
        )

    def _drop(self, step: Step) -> None:
        from twinlake.table.operations.drop_feature import FeatureDrop

        drop = FeatureDrop(
            self.snapshot,
            step.subject,
            truncate_history=step.truncates,
            policy=self._goal.policy,
            runtime=self._runtime,
            hooks=self._hooks,
            rewriter=self._engine.rewriter if self._engine else None,
        )
        self.snapshot = drop.run()
        self.warnings += drop.warnings

    def _promise(self, _: Step) -> None:
        from twinlake.table.operations.backfill import backfill_row_ids, wants_backfill

        after = promised(self.snapshot.metadata, self._goal)
        if wants_backfill(self.snapshot, after):
            self.snapshot = backfill_row_ids(
                self.snapshot, policy=self._goal.policy, runtime=self._runtime
            )
            after = promised(self.snapshot.metadata, self._goal)
        self._commit(self._properties(after), after, reads_table=True, checks=_CHECKS)

    def _uniform(self, _: Step) -> None:
        after = with_uniform(self.snapshot.metadata)
        self._commit(self._properties(after), after)


def _promises(draft: Draft) -> Iterator[Violation]:
    """What a commit asks about promises, except that they may be made for a table that exists."""
    error = compat_refusal(draft.change, draft.evidence)
    if error is None:
        return
    if {violation["rule"] for violation in error.report["violations"]} - ONLY_AT_CREATION:
        yield Violation(
            message=f"{error.what} {error.why}", code=error.code, fix=error.fix, error=error
        )


_CHECKS: Final = tuple(
    replace(check, run=_promises) if check.id == "CMT-15" else check for check in CHECKS
)


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
