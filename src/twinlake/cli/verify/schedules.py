"""Schedules with a name: runs of a model that are known beforehand, followed step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.verify.models import unknown
from twinlake.verify.checker import ModelError, ScheduledStep, plain, run_schedule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.verify.checker import Model, Trace

__all__ = ["SCHEDULES", "Path", "follow_schedule"]

_JACK: Final = ("jack", None, None)
_BLUE: Final = {"predicate": _JACK, "set": (None, "blue", None)}
_Step = tuple[str, str, dict[str, Any]]

_INSERT: Final[tuple[_Step, ...]] = (
    ("writer-0", "StartInsertOperation", {"row": ("jack", "red", "A")}),
    ("writer-0", "WriteDataFiles", {}),
    ("writer-0", "WriteMetadataFiles", {}),
    ("writer-0", "Commit", {"version": 1}),
)
_REST: Final = ("ReadDataFiles", "WriteDataFiles", "WriteMetadataFiles", "Commit")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSchedule:
    """A run that is known beforehand."""

    name: str
    family: str
    shows: str
    steps: tuple[_Step, ...]


SCHEDULES: Final = (
    NamedSchedule(
        name="document",
        family="iceberg",
        shows="The published model's own run: UPDATE and DELETE of one row overlap, and both "
        "commit.",
        steps=(
            *_INSERT,
            ("writer-0", "StartUpdateOperation", _BLUE),
            ("writer-1", "StartDeleteOperation", {"predicate": _JACK}),
            ("writer-0", "ReadDataFiles", {}),
            ("writer-1", "ReadDataFiles", {}),
            ("writer-0", "WriteDataFiles", {}),
            ("writer-1", "WriteDataFiles", {}),
            ("writer-0", "WriteMetadataFiles", {"base version": 1}),
            ("writer-0", "Commit", {"version": 2}),
            ("writer-1", "WriteMetadataFiles", {"base version": 2}),
            ("writer-1", "Commit", {"version": 3}),
        ),
    ),
    NamedSchedule(
        name="serial",
        family="iceberg",
        shows="The same statements one after the other: red in version 1, blue in 2, none in 3.",
        steps=(
            *_INSERT,
            ("writer-0", "StartUpdateOperation", _BLUE),
            *(("writer-0", action, {}) for action in _REST),
            ("writer-1", "StartDeleteOperation", {"predicate": _JACK}),
            *(("writer-1", action, {}) for action in _REST),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Where a schedule led."""

    schedule: NamedSchedule
    trace: Trace
    #: Properties that fail, with the step after which they do, the message and the fields.
    failures: tuple[tuple[int, str, str, dict[str, Any]], ...]
    #: Why the schedule could not be followed to its end.
    refused: str | None

    @property
    def ok(self) -> bool:
        """Whether no property fails on it."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """The path as JSON data."""
        return {
            "schedule": self.schedule.name,
            "ok": self.ok,
            "violated": self.failures[0][1] if self.failures else None,
            "refused": self.refused,
            "violations": [
                {"step": step, "property": name, "message": message, "fields": fields}
                for step, name, message, fields in self.failures
            ],
            "trace": self.trace.to_list(),
        }


def follow_schedule(family: str, name: str, model: Model) -> Path:
    """Follow a schedule as far as the model lets it go.

    Where a step is refused because a validation fails, the trace ends with the abort.
    """
    known = {one.name: one for one in SCHEDULES if one.family == family}
    if name not in known:
        raise unknown("schedule", name, known, family)
    planned = [ScheduledStep(*step) for step in known[name].steps]
    refused: str | None = None
    try:
        followed = run_schedule(model, planned)
    except ModelError as error:
        refused = str(error)
        followed = run_schedule(model, _possible(model, planned))
    failures = tuple(
        (step, wrong, failure.message, plain(failure.fields))
        for step, wrong, failure in followed.failures
    )
    return Path(schedule=known[name], trace=followed.trace, failures=failures, refused=refused)


def _possible(model: Model, planned: Sequence[ScheduledStep]) -> list[ScheduledStep]:
    """The part of a schedule that can be followed, and the abort that ends it if there is one."""
    done: list[ScheduledStep] = []
    for step in planned:
        for tried in (step, step._replace(action=f"{step.action} (abort)", arguments={})):
            try:
                run_schedule(model, [*done, tried])
            except ModelError:
                continue
            done.append(tried)
            break
        else:
            return done
        if done[-1] is not step:
            return done
    return done
