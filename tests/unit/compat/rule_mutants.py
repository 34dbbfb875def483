"""Breaks every rule on purpose, in turn, and looks whether the cases notice.

Run it as ``python -m tests.unit.compat.rule_mutants``; the tests run it as well.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from unittest.mock import patch

from tests.unit.compat.rule_cases import CASES, TOLD_ONCE
from tests.unit.compat.rule_tables import PREFIXES, RuleCase
from twinlake.compat import Profile, Rule, Trait, evaluate_rules
from twinlake.compat import evaluation as judging
from twinlake.compat.registry.all_rules import RULES
from twinlake.compat.rule import Case, Check, Finding

__all__ = ["Mutant", "mutants", "survivors"]

#: Rules that can find one thing at most, so that stopping at the first changes nothing.
SINGLE = frozenset(
    f"{prefix}-{number}"
    for prefix, numbers in {
        "ICV1": "02 03 05 09",
        "ICV2": "02 03 05 09",
        "ICV3": "02 03 09 19 20",
        "IWC1": "01 02 04 05 12 16 19",
        "IWC3": "01 02 04 05 12",
    }.items()
    for number in numbers.split()
)
#: Readings that find one thing where the protocol's own finds more.
SINGLE_READINGS = frozenset({("IWC1-03", Profile.KERNEL), ("IWC3-03", Profile.KERNEL)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A broken rule, and how to tell that it is broken."""

    name: str
    rule: Rule
    is_caught: Callable[[], bool]


def _off(_: Case) -> Iterable[Finding]:
    return ()


def _always(_: Case) -> Iterable[Finding]:
    yield Finding(path="anything", found="x", wanted="y", message="nothing is ever right")


def _first(check: Check) -> Check:
    def mutated(case: Case) -> Iterable[Finding]:
        return list(check(case))[:1]

    return mutated


def _where(check: Check, keeps: Callable[[str], bool]) -> Check:
    def mutated(case: Case) -> Iterable[Finding]:
        return [finding for finding in check(case) if keeps(finding.path)]

    return mutated


def mutants() -> Iterator[Mutant]:
    """Every rule, broken in every way that it can be."""
    for rule in RULES:
        for profile in (Profile.SPEC, *(p for p in rule.profiles if p is not Profile.SPEC)):
            yield from _readings(rule, profile)
        if rule.covers:
            for below in sorted(rule.covers):
                kept = rule.covers - {below}
                yield _told(rule, f"does not cover {below}", replace(rule, covers=kept))
        if Trait.ON_DISABLE in rule.traits:
            yield _left(rule)


def _readings(rule: Rule, profile: Profile) -> Iterator[Mutant]:
    check = rule.check_for(profile)
    broken: dict[str, Check | None] = {"is always broken": _always}
    if check is None:
        # A profile without the rule is broken by a reading of the rule that some profile has.
        broken = {"is asked": rule.check}
    else:
        broken["is switched off"] = _off
        if rule.id not in SINGLE and (rule.id, profile) not in SINGLE_READINGS:
            broken["stops at the first"] = _first(check)
        if check is not rule.check:
            broken["is read as by others"] = rule.check
        if _has_nested(rule, profile):
            broken["looks at the top only"] = _where(check, lambda path: "." not in path)
            broken["looks below the top only"] = _where(check, lambda path: "." in path)
    for name, mutated in broken.items():
        yield Mutant(
            name=f"{rule.id} ({profile}) {name}",
            rule=replace(rule, profiles={**rule.profiles, profile: mutated}),
            is_caught=lambda: any(_differs(case) for case in _cases(rule, profile)),
        )


def _cases(rule: Rule, profile: Profile) -> list[RuleCase]:
    return [case for case in CASES if (case.rule, case.profile) == (rule.id, profile)]


def _has_nested(rule: Rule, profile: Profile) -> bool:
    """Whether the rule finds columns in other columns."""
    paths = [path for case in _cases(rule, profile) for path in case.paths]
    nested = any(part in path for path in paths for part in (".element", ".key", ".value"))
    return nested and rule.scope.value == "metadata"


def _differs(case: RuleCase) -> bool:
    report = evaluate_rules(case.subject, case.compat, profile=case.profile)
    found = sorted(v.path for v in report.violations if v.rule == case.rule)
    return found != sorted(case.paths)


def _told(rule: Rule, name: str, mutated: Rule) -> Mutant:
    def is_caught() -> bool:
        return any(
            [v.rule for v in evaluate_rules(subject, PREFIXES[key.split()[0]]).violations] != wanted
            for key, (subject, wanted) in TOLD_ONCE.items()
        )

    return Mutant(name=f"{rule.id} {name}", rule=mutated, is_caught=is_caught)


def _left(rule: Rule) -> Mutant:
    """A rule about disabling a feature that is not asked when that happens."""
    profile = Profile.KERNEL

    def is_caught() -> bool:
        return any(_differs(case) for case in _cases(rule, profile))

    return Mutant(
        name=f"{rule.id} is silent when the feature is disabled",
        rule=replace(rule, traits=rule.traits - {Trait.ON_DISABLE}),
        is_caught=is_caught,
    )


def survivors() -> tuple[list[str], int]:
    """The mutants that no case notices, and how many there are in all."""
    alive, total = [], 0
    for mutant in mutants():
        total += 1
        registry = tuple(mutant.rule if rule.id == mutant.rule.id else rule for rule in RULES)
        with patch.object(judging, "RULES", registry):
            if not mutant.is_caught():
                alive.append(mutant.name)
    return alive, total


def main() -> int:
    """For a terminal."""
    alive, total = survivors()
    for name in alive:
        print(f"survives: {name}")  # noqa: T201
    print(f"{total - len(alive)} of {total} mutants were caught")  # noqa: T201
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
