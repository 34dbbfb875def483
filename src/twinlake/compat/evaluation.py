"""Evaluates the rules of a compat feature on a table; every violation is reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS, enabled_compats
from twinlake.compat.registry.all_rules import RULES, rules_with
from twinlake.compat.report import Report
from twinlake.compat.rule import Case, Profile, Scope, Trait
from twinlake.compat.subject import Subject
from twinlake.errors import Code, CompatViolation, listed
from twinlake.schema import walk_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from twinlake.compat.compat_feature import Compat
    from twinlake.compat.rule import Rule, Violation
    from twinlake.compat.subject import FileFooter, State

__all__ = ["divergent_files", "evaluate_rules", "refusal", "rules_of"]

_ALL: Final = frozenset(Scope)


def rules_of(compat: Compat) -> tuple[Rule, ...]:
    """The rules of a compat feature, and then those of its base."""
    own = tuple(rule for rule in RULES if rule.compat == compat)
    return own if compat.base is None else (*own, *rules_of(COMPATS[compat.base]))


def evaluate_rules(
    subject: Subject,
    compat: Compat,
    *,
    profile: Profile = Profile.SPEC,
    scopes: Collection[Scope] = _ALL,
) -> Report:
    """The report of a table on a compat feature, whether or not it is enabled.

    Where the commit disables the feature, only the rules about disabling it are evaluated.
    """
    disables = _disables(subject, compat)
    rules = [
        rule
        for rule in rules_of(compat)
        if rule.scope in scopes
        and (Trait.ON_DISABLE in rule.traits or not disables)
        and rule.check_for(profile) is not None
    ]
    found = [
        violation
        for rule in rules
        if subject.footers or rule.scope is not Scope.FOOTER
        for violation in rule.violations(Case(subject, rule.compat, profile))
    ]
    return Report(
        compat=compat.feature,
        table=subject.metadata.label,
        profile=profile,
        rules=tuple(rule.id for rule in rules),
        violations=_without_covered(found, rules),
        files=len(subject.footers),
        enabled=compat.is_enabled(subject.metadata),
    )


def _disables(subject: Subject, compat: Compat) -> bool:
    """Whether the feature was enabled before and is no longer."""
    before = subject.before
    return (
        before is not None
        and compat.is_enabled(before.metadata)
        and not compat.is_enabled(subject.metadata)
    )


def _without_covered(found: Sequence[Violation], rules: Sequence[Rule]) -> tuple[Violation, ...]:
    """Without the violations that a stricter rule reports for the same path."""
    covers = {rule.id: rule.covers for rule in rules}
    covered = {(below, v.path) for v in found for below in covers[v.rule]}
    return tuple(v for v in found if (v.rule, v.path) not in covered)


def refusal(report: Report, operation: str) -> CompatViolation:
    """The error for a commit that breaks rules, with the whole report."""
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


# Files whose rows Iceberg readers do not return as Delta readers do. They break a rule about
# footers; not every file that breaks one diverges, and the profile of the table does not matter.


def divergent_files(
    footers: Sequence[FileFooter], state: State
) -> Iterator[tuple[FileFooter, Violation]]:
    """The files that Iceberg and Delta readers read differently, each with its first violation."""
    # Most files are sound, so one evaluation of them all comes first.
    for footer in footers if _footer_violations(footers, state) else ():
        for violation in _footer_violations((footer,), state):
            if _changes_rows(violation, footer):
                yield footer, violation
                break


def _footer_violations(footers: Sequence[FileFooter], state: State) -> tuple[Violation, ...]:
    base = next(one for one in enabled_compats(state.metadata) if not one.is_writer)
    subject = Subject(after=state, footers=footers)
    return evaluate_rules(subject, base, scopes=(Scope.FOOTER,)).violations


def _changes_rows(violation: Violation, footer: FileFooter) -> bool:
    if violation.rule in rules_with(Trait.NAME_MAPPED):
        # A file without any id is read by the name mapping. Of one with some, readers that go by
        # ids miss columns, and PyIceberg stops at a column that the mapping does not know.
        nodes = walk_nodes(footer.root) if footer.root is not None else ()
        return any(node.field_id is not None for _, node in nodes)
    return violation.rule not in rules_with(Trait.PROJECTED)
