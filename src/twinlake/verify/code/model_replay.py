"""Counterexamples of the models, replayed on the shipped code.

A model's trace says who moved when, in its own words. The same operations run here on the real
commit path, each held where the trace holds it: between loading and scanning, between writing its
files and committing. What the model shows either shows here as well, or something masks it, and
the report says what.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.verify.checker import check
from twinlake.verify.code.execution import Execution, is_commit
from twinlake.verify.code.run_properties import RunChecker
from twinlake.verify.code.run_trace import Replay, build_replay
from twinlake.verify.code.schedule import Schedule
from twinlake.verify.code.storage_call import FaultName
from twinlake.verify.code.workloads import find_workload
from twinlake.verify.models import DeltaLog, IcebergV2
from twinlake.verify.models.delta import (
    Checkpoints,
    ConcurrentVectors,
    DeltaRowTracking,
    DeltaVacuum,
    LogStore,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from twinlake.verify.checker import Model, Trace, TraceStep
    from twinlake.verify.code.execution import RunFailure
    from twinlake.verify.code.storage_call import PlacedFault, StorageCall

__all__ = ["ModelReplay", "model_replays"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Example:
    """A model that breaks a property, and the workload with the operations of its trace."""

    name: str
    title: str
    model: Callable[[], Model]
    workload: str
    roles: tuple[str, ...] = ()
    """For models whose actors do one thing each: the actor that stands for which of ours."""


_EXAMPLES: Final = (
    _Example(
        name="seed",
        title="Iceberg: a row that comes back, DELETE held while UPDATE commits, merge-on-read",
        model=IcebergV2,
        workload="model-seed",
    ),
    _Example(
        name="reinsert",
        title="Iceberg: two DELETEs of one row with an INSERT of it in between",
        model=lambda: IcebergV2(update_mode="COPY_ON_WRITE", max_write_ops=4, identity="canonical"),
        workload="model-reinsert",
    ),
    _Example(
        name="u2",
        title="Delta: two INSERTs write the same log entry, without put-if-absent",
        model=lambda: DeltaLog(col1_values=("a", "b"), put_if_absent=False),
        workload="model-inserts",
    ),
    _Example(
        name="give-up",
        title="Delta: an entry whose reply was lost is reported as failed",
        model=lambda: LogStore(mutant="give-up"),
        workload="model-insert",
    ),
    _Example(
        name="retry-blindly",
        title="Delta: an entry whose reply was lost is put again as the next version",
        model=lambda: LogStore(mutant="retry-blindly"),
        workload="model-insert",
    ),
    _Example(
        name="non-atomic",
        title="Delta: an entry is visible before it is complete",
        model=lambda: LogStore(mutant="non-atomic"),
        workload="model-insert",
    ),
    _Example(
        name="path-only",
        title="Delta: two deletion vectors for one file, compared by path alone",
        model=lambda: ConcurrentVectors(mutant="path-only"),
        workload="model-deletes",
    ),
    _Example(
        name="keeps-base-ids",
        title="Delta: a retry keeps the row ids that the winner handed out",
        model=lambda: DeltaRowTracking(mutant="keeps-base-ids"),
        workload="model-row-ids",
    ),
    _Example(
        name="accepts-incomplete",
        title="Delta: a checkpoint is read of which a part is missing",
        model=lambda: Checkpoints(mutant="accepts-incomplete"),
        workload="model-half-checkpoint",
        roles=("checkpointer-0", "cleaner-0"),
    ),
    _Example(
        name="cleans-too-early",
        title="Delta: history is deleted for a checkpoint of which a part is missing",
        model=lambda: Checkpoints(mutant="cleans-too-early"),
        workload="model-half-checkpoint",
        roles=("checkpointer-0", "cleaner-0"),
    ),
    _Example(
        name="cleans-to-newest",
        title="Delta: history is deleted up to the newest checkpoint, however young",
        model=lambda: Checkpoints(mutant="cleans-to-newest"),
        workload="model-clean-up",
        roles=("committer-0", "checkpointer-0", "cleaner-0"),
    ),
    _Example(
        name="no-grace",
        title="Delta: VACUUM deletes a file that is about to be committed",
        model=lambda: DeltaVacuum(mutant="no-grace"),
        workload="model-vacuum",
        roles=("writer-0", "vacuum-0"),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReplay:
    """A counterexample of a model, and what became of it on the real code."""

    name: str
    title: str
    model: str
    property: str
    """What the model breaks."""
    message: str
    model_trace: Trace
    replay: Replay
    masked: bool
    """Whether the real code does not show it."""
    by: str
    """What masked it; empty where nothing did."""

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "name": self.name,
            "title": self.title,
            "model": self.model,
            "property": self.property,
            "message": self.message,
            "masked": self.masked,
            "by": self.by,
            "model_trace": self.model_trace.to_list(),
            "replay": self.replay.to_dict(),
        }


def model_replays(names: Sequence[str] = ()) -> tuple[ModelReplay, ...]:
    """Replay counterexamples of the models on the real code: all, or those that are named."""
    wanted = [one for one in _EXAMPLES if not names or one.name in names]
    return tuple(_replayed(example) for example in wanted)


def _replayed(example: _Example) -> ModelReplay:
    model = example.model()
    result = check(model)
    if result.trace is None:
        raise AssertionError(f"{example.name}: the model has no counterexample any more")
    again = _follow(example, result.trace)
    return ModelReplay(
        name=example.name,
        title=example.title,
        model=result.model,
        property=result.violations[0].property,
        message=result.violations[0].message,
        model_trace=result.trace,
        replay=again,
        masked=not again.violations,
        by="" if again.violations else _masking(again),
    )


def _masking(replay: Replay) -> str:
    """What kept the counterexample from showing, in the words of the code itself."""
    refused = [f"{actor}: {reply}" for actor, reply in replay.replies.items() if "(" in reply]
    lost = [
        f"{step.actor} found {step.arguments['key'].rsplit('/', 1)[-1]} taken, and followed it"
        for step in replay.trace.steps
        if step.arguments["result"] == "there is one already"
    ]
    settled = [
        f"{step.actor} read {step.arguments['key'].rsplit('/', 1)[-1]} back to settle a lost reply"
        for before, step in zip(replay.trace.steps, replay.trace.steps[1:], strict=False)
        if before.arguments.get("fault") == FaultName.LOST_REPLY
    ]
    ends = [f"{actor} {reply}" for actor, reply in replay.replies.items() if "(" not in reply]
    cleaners = {step.actor for step in replay.trace.steps if step.state[0] in _CLEANERS}
    gone = any("deleted" in step.changes.values() for step in replay.trace.steps)
    kept = [f"{actor} deleted nothing" for actor in sorted(cleaners) if not gone]
    reasons = [*lost, *settled, *refused, *kept]
    return "; ".join(reasons) or f"nothing went wrong: {', '.join(ends)}"


# Following a trace


def _is_log(call: StorageCall) -> bool:
    return call.key.startswith("_delta_log")


def _reads(call: StorageCall) -> bool:
    return call.operation in ("read", "read_range", "head", "list_from")


_CALLS_OF_ACTION: Final[Mapping[str, Callable[[StorageCall], bool]]] = {
    "Start": lambda call: _reads(call) and _is_log(call),
    "Read": lambda call: _reads(call) and not _is_log(call),
    "WriteData": lambda call: not _is_log(call),
    "WriteMetadata": lambda _call: False,
    "WriteFile": lambda call: call.operation != "create",
    "ListFiles": lambda call: call.operation != "create",
    "BeginCheckpoint": _reads,
    "PlanCleanup": lambda call: call.operation != "delete",
}
"""How far an action of a model takes the real code: while this holds of its next call."""
_ONE_CALL: Final = ("WritePart", "DeleteEntry")
_DELETES: Final = "DeleteFile"
_CLEANERS: Final = ("clean log", "vacuum")
_COMMITS: Final = ("Commit", "TryCommit", "Put")


def _follow(example: _Example, trace: Trace) -> Replay:
    workload = find_workload(example.workload)
    checker = RunChecker(workload)
    placed: list[PlacedFault] = []
    with Execution(workload) as run:
        found = None
        for number, step in _numbered(example, trace):
            if step.arguments.get("reply") == "lost":
                _hold_before_commit(run, number)
                placed.append(run.place(number, FaultName.LOST_REPLY))
            found = found or _advance(run, checker, number, step)
        while run.enabled and found is None:
            found = checker.step(run, run.enabled[0])
        found = found or checker.check_end(run)
        choices = tuple(event.actor for event in run.events)
        return build_replay(Schedule(workload, choices, tuple(placed)), run, found)


def _numbered(example: _Example, trace: Trace) -> Iterator[tuple[int, TraceStep]]:
    """The steps with the actor of ours that takes each: one for every operation that starts."""
    current: dict[str, int] = {role: n for n, role in enumerate(example.roles)}
    begun = 0
    for step in trace.steps:
        if step.action.startswith("Start"):
            current[step.actor] = begun
            begun += 1
        if step.actor in current:
            yield current[step.actor], step


def _advance(
    run: Execution, checker: RunChecker, number: int, step: TraceStep
) -> RunFailure | None:
    actor = run.actors[number]
    continues = next(
        (f for name, f in _CALLS_OF_ACTION.items() if step.action.startswith(name)), None
    )
    found: RunFailure | None = None
    if step.action in _COMMITS:
        while actor.pending is not None and found is None:
            call = actor.pending
            found = checker.step(run, number)
            if call.operation == "create" and is_commit(call.key):
                break
    elif step.action == _DELETES:
        while (pending := actor.pending) is not None and found is None:
            found = checker.step(run, number)
            if pending.operation == "delete":
                break
    elif step.action in _ONE_CALL:
        found = checker.step(run, number) if actor.pending is not None else None
    elif continues is not None:
        while actor.pending is not None and continues(actor.pending) and found is None:
            found = checker.step(run, number)
    return found


def _hold_before_commit(run: Execution, number: int) -> None:
    while (call := run.actors[number].pending) is not None:
        if call.operation == "create" and is_commit(call.key):
            return
        run.step(number)
