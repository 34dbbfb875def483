"""Runs as traces: the shape of a model's trace, so that one renderer serves both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.verify.checker import ActionCheck, Trace, TraceStep
from twinlake.verify.checker.model import plain
from twinlake.verify.code.execution import is_commit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.verify.code.execution import Event, Execution, RunFailure
    from twinlake.verify.code.schedule import Schedule

__all__ = ["Replay", "RunViolation", "build_replay"]

_SHORT: Final = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class RunViolation:
    """A property that a run breaks, with the run."""

    property: str
    message: str
    fields: Mapping[str, Any]
    schedule_id: str
    trace: Trace

    def to_dict(self) -> dict[str, Any]:
        """The violation as JSON data."""
        return {
            "property": self.property,
            "message": self.message,
            "fields": plain(self.fields),
            "schedule": self.schedule_id,
            "trace": self.trace.to_list(),
        }

    def __str__(self) -> str:
        steps = "\n".join(_line(step) for step in self.trace.steps)
        return f"{self.property}: {self.message}\nschedule {self.schedule_id}\n{steps}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One run, step by step."""

    schedule_id: str
    trace: Trace
    replies: Mapping[str, str]
    violations: tuple[RunViolation, ...]

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON data."""
        return {
            "schedule": self.schedule_id,
            "replies": dict(self.replies),
            "violations": [one.to_dict() for one in self.violations],
            "trace": self.trace.to_list(),
        }

    def __str__(self) -> str:
        lines = [f"schedule {self.schedule_id}", *(_line(step) for step in self.trace.steps)]
        lines += [f"{actor}: {reply}" for actor, reply in self.replies.items()]
        lines += [f"{one.property}: {one.message}" for one in self.violations]
        return "\n".join(lines)


def build_replay(schedule: Schedule, run: Execution, found: RunFailure | None) -> Replay:
    """A run that is over, or that ended at what was found."""
    replies = run.replies()
    steps = tuple(_step(run, number, event) for number, event in enumerate(run.events, 1))
    trace = Trace(
        steps=steps,
        shared={"versions": sum(is_commit(key) for key in run.bodies)},
        actors=tuple(str(reply) for reply in replies.values()),
    )
    violations = (
        ()
        if found is None
        else (
            RunViolation(
                property=found.property,
                message=found.message,
                fields=found.fields,
                schedule_id=schedule.id,
                trace=trace,
            ),
        )
    )
    return Replay(
        schedule_id=schedule.id,
        trace=trace,
        replies={actor: str(reply) for actor, reply in replies.items()},
        violations=violations,
    )


def _step(run: Execution, number: int, event: Event) -> TraceStep:
    actor = run.actors[event.actor]
    last = event.number == actor.calls and actor.is_done
    arguments = {"key": event.call.key, "result": event.result}
    if event.fault is not None:
        arguments["fault"] = str(event.fault)
    statement = run.workload.actors[event.actor][1].name
    return TraceStep(
        number=number,
        actor=actor.name,
        action=event.call.operation,
        arguments=arguments,
        checks=_checks(run, event) if last else (),
        state=(statement, run.reply(event.actor).kind if last else statement),
        changes={event.call.key: _change(event)} if event.changed else {},
        actor_changes={},
        move=number,
    )


def _checks(run: Execution, event: Event) -> tuple[ActionCheck, ...]:
    """The reply, shown with the last call of an actor: for a refusal the rule that failed."""
    reply = run.reply(event.actor)
    if reply.kind == "refused":
        rule, _, why = reply.text.partition(": ")
        return (ActionCheck(rule, passed=False, detail=why),)
    return (ActionCheck(reply.kind, passed=reply.kind != "broken", detail=str(reply)),)


def _change(event: Event) -> str:
    if event.after is None:
        return "deleted"
    verb = "created" if event.before is None else "replaced"
    return f"{verb}: {_content(event.call.key, event.after)}"


def _content(key: str, body: bytes) -> str:
    if not is_commit(key):
        return f"{len(body)} bytes"
    parts: list[str] = []
    for line in body.splitlines():
        try:
            ((kind, action),) = msgspec.json.decode(line).items()
        except (msgspec.DecodeError, ValueError):
            return f"{len(body)} bytes that cannot be read"
        if kind == "commitInfo":
            by = f" by {action['userMetadata']}" if action.get("userMetadata") else ""
            parts.insert(0, f"{action.get('operation')}{by}")
        elif kind in ("add", "remove"):
            vector = " with a vector" if action.get("deletionVector") else ""
            path = action["path"]
            short = path if len(path) <= _SHORT else f"{path[:_SHORT]}..."
            parts.append(f"{kind} {short}{vector}")
    return "; ".join(parts)


def _line(step: TraceStep) -> str:
    fault = f" [{step.arguments['fault']}]" if "fault" in step.arguments else ""
    text = (
        f"{step.number:>3} {step.actor:<9} {step.action:<10} {step.arguments['key']}"
        f" -> {step.arguments['result']}{fault}"
    )
    for key, change in step.changes.items():
        text += f"\n{'':>14} {key.rsplit('/', 1)[-1]}: {change}"
    for check in step.checks:
        text += f"\n{'':>14} {step.actor} {step.state[1]}: {check.detail}"
    return text
