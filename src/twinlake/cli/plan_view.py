"""Plans of upgrades, as blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.cli.compat_view import report_blocks
from twinlake.cli.view import Lines, Prose

if TYPE_CHECKING:
    from twinlake.cli.view import Block
    from twinlake.compat import Plan

__all__ = ["plan_blocks"]

_LIMIT = 10


def plan_blocks(plan: Plan, *, report: bool = False) -> list[Block]:
    """Where the plan stands, its steps, and what to know before; ``report`` adds the rules."""
    from twinlake.compat.upgrade.plan_text import step_lines

    blocks: list[Block] = [Prose(plan.verdict)]
    if plan.refused:
        reasons = tuple(f"- {text}" for text in plan.refusals)
        blocks += [Prose("No step can mend:"), Lines(reasons)]
        blocks += [Prose("On the command line: --give-up NAME.")] if plan.advice else []
    elif plan.steps:
        blocks.append(Lines(step_lines(plan.steps)))
    if report or plan.refused:
        blocks += report_blocks(plan.report, _LIMIT)
    return blocks
