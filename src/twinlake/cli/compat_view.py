"""Rules of Iceberg compatibility and reports on them, as blocks and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.cli.view import Grid, Prose
from twinlake.cli.wording import counted

if TYPE_CHECKING:
    from twinlake.cli.view import Block
    from twinlake.compat import Compat, Report, Rule

__all__ = ["report_blocks", "rule_grid", "rule_records"]


def report_blocks(report: Report, limit: int | None = None) -> list[Block]:
    """The verdict, then a grid for each broken rule with ``limit`` rows at most."""
    from twinlake.compat.report import groups, summary

    blocks: list[Block] = [Prose(summary(report))]
    for group in groups(report, len(report.violations) if limit is None else limit):
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


def rule_records(compat: Compat, report: Report | None) -> list[dict[str, Any]]:
    """The rules of a promise as the registry has them, and where a table stands with each."""
    from twinlake.compat import rules_of

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
        return "not asked"
    broken = {violation.rule for violation in report.violations}
    if rule.id in broken:
        places = sum(one.rule == rule.id for one in report.violations)
        return f"broken in {counted(places + report.omitted.get(rule.id, 0), 'place')}"
    # What two rules find is told by one of them, so the other one may only seem to be kept.
    others = sorted(one for one in broken if _overlap(one, rule))
    return f"see {', '.join(others)}" if others else "kept"


def _overlap(other: str, rule: Rule) -> bool:
    from twinlake.compat import RULES

    return other in rule.covers or any(rule.id in one.covers for one in RULES if one.id == other)


def rule_grid(records: list[dict[str, Any]]) -> Grid:
    """The rules for people."""
    here = bool(records) and "here" in records[0]
    header = "rule looks_at what why" if not here else "rule looks_at here what why"
    return Grid.of(
        header,
        [
            (r["id"], r["scope"], *([r["here"]] if here else []), r["title"], r["reason"])
            for r in records
        ],
        title=counted(len(records), "rule"),
        note=_NOT_ASKED if here and any(r["here"] == "not asked" for r in records) else "",
    )


_NOT_ASKED = (
    "Not asked: rules about changes are asked by every commit, rules about footers by "
    "`twinlake check --files`."
)
