"""The plan of an upgrade: for people at a terminal, in a notebook, and for machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.compat.upgrade.plan_text import moment_text, render_html, render_text
from twinlake.compat.upgrade.step import StepState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.compat.report import Report
    from twinlake.compat.rule import Violation
    from twinlake.compat.upgrade.step import Goal, Step

__all__ = ["Plan"]

#: The rules about rules for writers, by the end of their ids, and the names these go by.
_GIVEN_UP: Final = {
    "-11": "invariants",
    "-13": "constraints",
    "-14": "identityColumns",
    "-15": "generatedColumns",
    "-21": "defaults",
    "-27": "char",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps from a table as it is to the promise; ``str()`` is for people."""

    goal: Goal
    table: str
    version: int
    """The version of the table that was looked at last."""
    steps: tuple[Step, ...]
    report: Report
    """Where the table stood before the first step."""
    blockers: tuple[Violation, ...] = ()
    """What no step can mend; with any, nothing is done."""
    obstacles: tuple[str, ...] = ()
    """What else stands in the way, in sentences."""

    @property
    def refused(self) -> bool:
        """Whether there is no way to the goal."""
        return bool(self.blockers or self.obstacles)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why there is no way, in sentences."""
        return tuple(self._refusals())

    def _refusals(self) -> Iterator[str]:
        for violation in self.blockers:
            where = f"{violation.path}: " if violation.path else ""
            yield f"{violation.rule} {where}{violation.message}. {violation.fix}".rstrip()
        yield from self.obstacles
        if self.advice:
            yield self.advice

    @property
    def advice(self) -> str:
        """What may be given up to get on, where rules for writers block."""
        ends = dict.fromkeys(violation.rule[-3:] for violation in self.blockers)
        names = [_GIVEN_UP[end] for end in ends if end in _GIVEN_UP]
        if not names:
            return ""
        return (
            f"If writers need not keep these rules any more, remove them: `give_up={names}` in "
            f"Python, `--give-up {names[0]}` on the command line."
        )

    @property
    def done(self) -> bool:
        """Whether nothing is left to do."""
        return not self.refused and all(step.state is StepState.DONE for step in self.steps)

    @property
    def waiting_until(self) -> int | None:
        """When it can go on, in milliseconds since the epoch; None if it does not wait."""
        waiting = (s.cost.until_ms for s in self.steps if s.state is StepState.WAITING)
        return next(waiting, None)

    @property
    def files(self) -> int:
        """Files to write again, in all steps."""
        return sum(step.cost.files for step in self.steps if step.state is not StepState.DONE)

    @property
    def verdict(self) -> str:
        """Where the plan stands, in a sentence."""
        to = f"table {self.table} to {self.goal}"
        if self.refused:
            return f"There is no way from {to}: nothing was done and nothing will be."
        if not self.steps:
            return f"Nothing is to be done from {to}: it is there."
        if self.done:
            return f"From {to}: done, as version {self.version}."
        count = f"{len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"
        if self.waiting_until is not None:
            return f"From {to}: {count}, waiting until {moment_text(self.waiting_until)}."
        return f"From {to}: {count}."

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "target": self.goal.compat.feature,
            "mode": str(self.goal.mode),
            "profile": str(self.goal.profile),
            "in_place": self.goal.in_place,
            "table": self.table,
            "version": self.version,
            "done": self.done,
            "refused": self.refused,
            "waiting_until": self.waiting_until,
            "steps": [{"number": n, **s.to_dict()} for n, s in enumerate(self.steps, 1)],
            "blockers": [violation.to_dict() for violation in self.blockers],
            "obstacles": list(self.obstacles),
            "advice": self.advice,
            "report": self.report.to_dict(),
        }

    def __str__(self) -> str:
        report = str(self.report) if self.refused else ""
        return render_text(self.verdict, self.steps, self.refusals, report)

    def _repr_html_(self) -> str:
        report = self.report._repr_html_() if self.refused else ""
        return render_html(self.verdict, self.steps, self.refusals, report)
