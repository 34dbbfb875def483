"""The plan of an upgrade: for people at a terminal, in a notebook, and for machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.compat.registry.all_rules import RULES_BY_ID
from twinlake.compat.report import report_groups
from twinlake.compat.upgrade.plan_text import moment_text, render_html, render_text
from twinlake.compat.upgrade.step import StepState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.compat.report import Report
    from twinlake.compat.rule import Violation
    from twinlake.compat.upgrade.step import Goal, Step

__all__ = ["Plan"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """The steps of an upgrade to a compat feature; ``str()`` is for people."""

    goal: Goal
    table: str
    version: int
    """The version of the table that was looked at last."""
    steps: tuple[Step, ...]
    report: Report
    """The report on the table before the first step."""
    blockers: tuple[Violation, ...] = ()
    """The violations that no step can fix; with any, nothing is changed."""
    obstacles: tuple[str, ...] = ()
    """Other reasons why the upgrade cannot run, in sentences."""

    @property
    def refused(self) -> bool:
        """Whether the upgrade cannot run."""
        return bool(self.blockers or self.obstacles)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the upgrade cannot run, in sentences."""
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
        """What ``give_up`` can remove, where rules for writers block the upgrade."""
        found = (RULES_BY_ID[violation.rule].gives_up for violation in self.blockers)
        names = [name for name in dict.fromkeys(found) if name]
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
        """Files to rewrite, in all steps."""
        return sum(step.cost.files for step in self.steps if step.state is not StepState.DONE)

    @property
    def summary(self) -> str:
        """The state of the upgrade in a sentence."""
        to = f"table {self.table} to {self.goal}"
        if self.refused:
            return f"Cannot upgrade {to}; nothing was changed."
        if not self.steps:
            return f"Nothing to do: table {self.table} fulfils {self.goal}."
        if self.done:
            return f"Upgraded {to}, as version {self.version}."
        count = f"{len(self.steps)} step{'' if len(self.steps) == 1 else 's'}"
        if self.waiting_until is not None:
            return f"Upgrade {to}: {count}, waiting until {moment_text(self.waiting_until)}."
        return f"Upgrade {to}: {count}."

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
        return render_text(self.summary, self.steps, self.refusals, report)

    def __repr__(self) -> str:
        return f"<Plan: {self.summary}>"

    def _repr_html_(self) -> str:
        from twinlake._html import FOLDED

        groups = report_groups(self.report, FOLDED) if self.refused else ()
        return render_html(self.summary, self.steps, self.refusals, groups)
