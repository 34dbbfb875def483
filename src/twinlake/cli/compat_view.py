"""Rules of Iceberg compatibility, reports on them and plans of upgrades, as blocks and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.cli.text import count_text
from twinlake.cli.view import Grid, Lines, Paragraph
from twinlake.compat import RULES, report_groups, report_summary, rules_of
from twinlake.compat.upgrade import step_lines

if TYPE_CHECKING:
    from twinlake.cli.view import Block
    from twinlake.compat import Compat, Plan, Report, Rule

__all__ = ["plan_blocks", "report_blocks", "rule_grid", "rule_records"]

#: How many violations of a rule a plan lists.
_PLAN_ROWS = 10


def report_blocks(report: Report, limit: int | None = None) -> list[Block]:
    """A summary, then a grid for each broken rule with ``limit`` rows at most."""
    blocks: list[Block] = [Paragraph(report_summary(report))]
    for group in report_groups(report, len(report.violations) if limit is None else limit):
        notes = [f"fix: {' '.join(group.fixes)}"] if group.fixes else []
        if group.more:
            notes.insert(0, f"{len(group.shown)} of {group.count}.")
        rows = [(one.path or "the table", one.found, one.wanted) for one in group.shown]
        blocks.append(
            Grid.of(
                "where found wanted",
                rows,
                title=f"{group.rule}  {group.title}",
                note=" ".join(notes),
            )
        )
    return blocks


def plan_blocks(plan: Plan, *, report: bool = False) -> list[Block]:
    """The state of a plan and its steps; ``report`` adds the violations."""
    blocks: list[Block] = [Paragraph(plan.summary)]
    if plan.refused:
        reasons = tuple(f"- {text}" for text in plan.refusals)
        blocks += [Paragraph("No step can fix:"), Lines(reasons)]
        blocks += [Paragraph("Option of the command line: --give-up NAME.")] if plan.advice else []
    elif plan.steps:
        blocks.append(Lines(step_lines(plan.steps)))
    if report or plan.refused:
        blocks += report_blocks(plan.report, _PLAN_ROWS)
    return blocks


def rule_records(compat: Compat, report: Report | None) -> list[dict[str, Any]]:
    """The rules of a compat feature, with the state of a table if there is a report."""
    return [
        {
            "id": rule.id,
            "title": rule.title,
            "reason": rule.reason,
            "scope": str(rule.scope),
            "fix": rule.fix,
            "profiles": sorted(str(profile) for profile in rule.profiles),
            **({"here": _here(rule, report)} if report is not None else {}),
        }
        for rule in rules_of(compat)
    ]


def _here(rule: Rule, report: Report) -> str:
    if rule.id not in report.rules:
        return "not checked"
    broken = {violation.rule for violation in report.violations}
    if rule.id in broken:
        found = sum(one.rule == rule.id for one in report.violations)
        return f"broken: {count_text(found + report.omitted.get(rule.id, 0), 'violation')}"
    # Of two rules that find the same, one reports it: the other may be broken as well.
    others = sorted(one for one in broken if _overlap(one, rule))
    return f"see {', '.join(others)}" if others else "kept"


def _overlap(other: str, rule: Rule) -> bool:
    return other in rule.covers or any(rule.id in one.covers for one in RULES if one.id == other)


def rule_grid(records: list[dict[str, Any]]) -> Grid:
    """The rules as a grid."""
    here = bool(records) and "here" in records[0]
    header = "rule looks_at what why" if not here else "rule looks_at here what why"
    return Grid.of(
        header,
        [
            (r["id"], r["scope"], *([r["here"]] if here else []), r["title"], r["reason"])
            for r in records
        ],
        title=count_text(len(records), "rule"),
        note=_NOT_CHECKED if here and any(r["here"] == "not checked" for r in records) else "",
    )


_NOT_CHECKED = (
    "Not checked: every commit checks the rules about changes, `twinlake check --files` those "
    "about footers."
)
