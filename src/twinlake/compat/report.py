"""The report on a table: for people at a terminal, in a notebook, and for machines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from twinlake.compat.registry.all_rules import RULES_BY_ID
from twinlake.compat.report_text import SHOWN, Group, render_html, render_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.compat.rule import Profile, Violation

__all__ = ["Report", "report_groups", "report_summary"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """Which rules were evaluated, and everything that breaks one."""

    compat: str
    table: str
    profile: Profile
    rules: tuple[str, ...]
    violations: tuple[Violation, ...]
    files: int = 0
    """How many footers were looked at."""
    enabled: bool = True
    """Whether the compat feature is enabled; if not, the report says what would break."""
    omitted: Mapping[str, int] = field(default_factory=dict)
    """How many further violations of a rule were found and only counted."""

    def __post_init__(self) -> None:
        # A plain copy: a view of a mapping cannot be sent to another process.
        object.__setattr__(self, "omitted", dict(self.omitted))

    @property
    def ok(self) -> bool:
        """Whether no rule is broken."""
        return not self.violations

    @property
    def count(self) -> int:
        """How many violations were found, those that were only counted too."""
        return len(self.violations) + sum(self.omitted.values())

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "compat": self.compat,
            "table": self.table,
            "profile": str(self.profile),
            "enabled": self.enabled,
            "ok": self.ok,
            "rules": list(self.rules),
            "files": self.files,
            "violations": [violation.to_dict() for violation in self.violations],
            **({"omitted": dict(self.omitted)} if self.omitted else {}),
        }

    def __str__(self) -> str:
        return render_text(report_summary(self), report_groups(self))

    def __repr__(self) -> str:
        return f"<Report: {report_summary(self)}>"

    def _repr_html_(self) -> str:
        from twinlake._html import FOLDED

        return render_html(report_summary(self), report_groups(self, FOLDED))


def report_groups(report: Report, shown: int = SHOWN) -> tuple[Group, ...]:
    """The broken rules in the order of evaluation, with a few violations of each."""
    by_rule: dict[str, list[Violation]] = {}
    for violation in report.violations:
        by_rule.setdefault(violation.rule, []).append(violation)
    ranks = {rule: rank for rank, rule in enumerate(report.rules)}
    found = []
    for name in sorted(by_rule, key=lambda name: ranks.get(name, len(ranks))):
        rule, violations = RULES_BY_ID.get(name), by_rule[name]
        head = tuple(violations[:shown])
        found.append(
            Group(
                rule=name,
                title=rule.title if rule else violations[0].message,
                reason=rule.reason if rule else "",
                shown=head,
                count=len(violations) + report.omitted.get(name, 0),
                fixes=tuple(dict.fromkeys(one.fix for one in head if one.fix)),
            )
        )
    return tuple(found)


def report_summary(report: Report) -> str:
    """The result in a sentence or two."""
    checked = f"{_number(len(report.rules), 'rule')} checked"
    if report.files:
        checked += f", {_number(report.files, 'file')} read"
    checked += f", profile {report.profile}"
    table = f"Table {report.table}"
    if report.ok:
        text = f"{table} {'keeps' if report.enabled else 'would keep'} {report.compat}"
        return f"{text}: no rule is broken ({checked})."
    broken = len({violation.rule for violation in report.violations})
    text = (
        f"{table} {'breaks' if report.enabled else 'would break'} {_number(broken, 'rule')} "
        f"of {report.compat} in {_number(report.count, 'place')} ({checked})."
    )
    if report.enabled:
        return text
    return f"{text} {report.compat} is not enabled yet; fix these violations first."


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
