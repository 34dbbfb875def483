"""Asking the rules: which of them a table breaks, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.registry.all_rules import RULES
from twinlake.compat.report import Report
from twinlake.compat.rule import Case, Profile, Scope
from twinlake.errors import Code, CompatViolation, listed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from twinlake.compat.compat_feature import Compat
    from twinlake.compat.rule import Rule, Violation
    from twinlake.compat.subject import Subject

__all__ = ["judge", "refusal", "rules_of"]

_ALL: Final = frozenset(Scope)


def rules_of(compat: Compat) -> tuple[Rule, ...]:
    """The rules of a promise, and then those of the promise it stands on."""
    own = tuple(rule for rule in RULES if rule.id.startswith(f"{compat.prefix}-"))
    return own if compat.base is None else (*own, *rules_of(COMPATS[compat.base]))


def judge(
    subject: Subject,
    compat: Compat,
    *,
    profile: Profile = Profile.SPEC,
    scopes: Collection[Scope] = _ALL,
) -> Report:
    """The report of a table under a promise, whether or not the table makes it.

    Where the commit gives the promise up, only the rules about that are asked.
    """
    leaves = _leaves(subject, compat)
    asked = [
        rule
        for rule in rules_of(compat)
        if rule.scope in scopes
        and (rule.leaving or not leaves)
        and rule.check_for(profile) is not None
    ]
    own = Case(subject, compat, profile)
    base = Case(subject, COMPATS[compat.base], profile) if compat.base is not None else own
    found = [
        violation
        for rule in asked
        for violation in rule.violations(own if rule.id.startswith(compat.prefix) else base)
    ]
    return Report(
        compat=compat.feature,
        table=subject.metadata.label,
        profile=profile,
        rules=tuple(rule.id for rule in asked),
        violations=_told_once(found, asked),
        files=len(subject.footers),
        promised=compat.is_enabled(subject.metadata),
    )


def _leaves(subject: Subject, compat: Compat) -> bool:
    """Whether the promise was made before and is made no more."""
    before = subject.before
    return (
        before is not None
        and compat.is_enabled(before.metadata)
        and not compat.is_enabled(subject.metadata)
    )


def _told_once(found: Sequence[Violation], asked: Sequence[Rule]) -> tuple[Violation, ...]:
    """Without what two rules say of the same thing: the stricter one speaks."""
    covers = {rule.id: rule.covers for rule in asked}
    covered = {(below, v.path) for v in found for below in covers[v.rule]}
    return tuple(v for v in found if (v.rule, v.path) not in covered)


def refusal(report: Report, operation: str) -> CompatViolation:
    """The error for a commit that would break rules; it carries the whole report."""
    first = report.violations[0]
    many = len(report.violations)
    return CompatViolation(
        Code.COMPAT,
        f"{operation} would break {many} rule{'s' if many > 1 else ''} of {report.compat}.",
        why=listed(f"{v.rule}: {v.message}" for v in report.violations) + ".",
        fix=listed(dict.fromkeys(v.fix for v in report.violations if v.fix), " "),
        rule=first.rule,
        delta_class=first.delta_class or "DELTA_ICEBERG_COMPAT_VIOLATION",
        fields={"report": report.to_dict()},
    )
