"""Every rule on tables that keep it and on tables that break it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import twinlake
from tests.unit.compat.rule_cases import CASES
from tests.unit.compat.rule_tables import PREFIXES, RuleCase, struct, table
from twinlake.compat import (
    NOT_RULES,
    RULES,
    Profile,
    Rule,
    Scope,
    Violation,
    evaluate_rules,
    find_compat,
)
from twinlake.compat.upgrade.target_metadata import GIVE_UP_KEYS
from twinlake.schema import BYTE, INTEGER, LONG, STRING, Array, Decimal, Map, Struct, StructField

#: The numbers of the three tables of rules; 24 to 29 of the base are about files on their own.
NUMBERS = {
    "ICV1": "01 02 03 04 05 06 07 09 10 11 14 15 16 17 24 25 26 27 28 29",
    "ICV2": "01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 24 25 26 27 28 29",
    "ICV3": "01 02 03 04 07 08 09 10 11 12 13 14 15 17 18 19 20 21 22 23 24 25 26 27 28 29",
    "IWC1": "01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19",
    "IWC3": "01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18",
}


def findings(case: RuleCase) -> list[Violation]:
    """What the rule of the case says of its table."""
    report = evaluate_rules(case.subject, case.compat, profile=case.profile)
    return [violation for violation in report.violations if violation.rule == case.rule]


READINGS = sorted({(case.rule, case.profile) for case in CASES})


@pytest.mark.parametrize(
    ("rule", "profile"), READINGS, ids=[f"{rule} {profile}" for rule, profile in READINGS]
)
def test_rule(rule: str, profile: Profile) -> None:
    wrong = []
    for case in CASES:
        if (case.rule, case.profile) != (rule, profile):
            continue
        found = findings(case)
        paths = sorted(violation.path for violation in found)
        if paths != sorted(case.paths):
            wrong.append(f"{case.label}: found {paths}, wanted {sorted(case.paths)}")
        for violation in found:
            assert violation.found and violation.wanted and violation.fix, case.label
            assert violation.found != violation.wanted, case.label
            assert violation.message and not violation.message.endswith("."), case.label
    assert not wrong, "\n".join(wrong)


def test_cases_have_names_of_their_own() -> None:
    twice = [name for name, count in Counter(case.label for case in CASES).items() if count > 1]
    assert not twice


def test_every_reading_says_what_it_looks_at() -> None:
    # The reference page shows these words.
    silent = [
        f"{rule.id} {profile}"
        for rule in RULES
        for profile, check in rule.profiles.items()
        if check is not None and not check.__doc__
    ]
    assert not silent


def test_every_number_is_a_rule_or_says_why_not() -> None:
    wanted = {f"{prefix}-{n}" for prefix, numbers in NUMBERS.items() for n in numbers.split()}
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))
    assert set(ids) | set(NOT_RULES) == wanted
    assert not set(ids) & set(NOT_RULES)


def test_every_reading_has_a_table_that_passes_and_one_that_fails() -> None:
    verdicts = Counter((case.rule, case.profile, bool(case.paths)) for case in CASES)
    missing = []
    for rule in RULES:
        own = {Profile.SPEC, *rule.profiles}
        for profile in own:
            known = rule.check_for(profile) is not None
            # A profile that does not know the rule has to be content where another is not.
            needed = (True, False) if known else (False,)
            missing += [
                (rule.id, str(profile), fails)
                for fails in needed
                if not verdicts[rule.id, profile, fails]
            ]
    assert not missing


def test_nested_columns_are_covered() -> None:
    """Rules about columns have failing cases at the top, and in every kind of nested place."""
    places = ("top", "struct", "element", "map key", "map value")
    kinds = ("07", "08", "11", "14", "15", "16", "17", "21", "06", "27", "28")
    told = {
        (case.rule, place)
        for case in CASES
        for place in places
        if case.paths and case.name.endswith(f", {place}")
    }
    by_column = {
        rule.id
        for rule in RULES
        if rule.scope is Scope.METADATA
        and rule.id[5:] in kinds
        and rule.id not in ("ICV1-07", "ICV2-08", "ICV3-08", "IWC1-16", "IWC1-17", "IWC3-17")
    }
    assert by_column
    missing = [
        (rule, place) for rule in sorted(by_column) for place in places if (rule, place) not in told
    ]
    assert not missing


def test_every_name_to_give_up_belongs_to_a_rule() -> None:
    assert {rule.gives_up for rule in RULES} - {""} == GIVE_UP_KEYS.keys()


#: Parts of a rule's id that are looked at, the end of an id as a text, and a whole id.
ID_USE = re.compile(
    r"\b(?:rule|id)\.(?:endswith|startswith|r?split|r?partition|removeprefix|removesuffix)\("
    r"|\.(?:rule|id)\[[^]]*:"
    r"|[\"'](?:IC?[VW]C?\d)?-\d\d[\"']"
)
ROOT = Path(twinlake.__file__).parent
REGISTRY = ROOT / "compat" / "registry"


def test_no_code_takes_meaning_from_the_id_of_a_rule() -> None:
    # What else is true of a rule is one of its fields, so that a new rule is one entry.
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in sorted(ROOT.rglob("*.py"))
        if REGISTRY not in path.parents
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if ID_USE.search(line)
    ]
    assert found == []


def test_covered_rules_exist() -> None:
    ids = {rule.id for rule in RULES}
    assert all(rule.covers <= ids for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_text_of_a_row(rule: Rule) -> None:
    assert not rule.title.endswith(".") and rule.title[0].isupper()
    assert rule.reason.endswith(".") and rule.fix.endswith(".")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("profile", Profile)
def test_a_good_table_breaks_nothing(prefix: str, profile: Profile) -> None:
    flat = struct(a=INTEGER, s=struct(d=Decimal(9, 2)))
    nested = struct(a=INTEGER, l=Array(Map(struct(k=STRING), LONG)), s=struct(d=STRING))
    columns = flat if prefix == "ICV1" else nested
    report = evaluate_rules(table(prefix, columns), PREFIXES[prefix], profile=profile)
    assert report.ok, report.violations
    asked = {rule.id for rule in RULES if rule.check_for(profile) is not None}
    assert set(report.rules) >= {rule for rule in asked if rule.startswith(prefix)}


def test_every_column_of_a_wide_table_is_judged() -> None:
    columns = Struct(
        tuple(
            StructField(f"c{n}", (LONG, STRING, Decimal(9, 2), Array(INTEGER), BYTE)[n % 5])
            for n in range(5000)
        )
    )
    subject = table("IWC1", columns, config={"delta.columnMapping.maxColumnId": "9000"})
    report = evaluate_rules(subject, find_compat("icebergWriterCompatV1"))
    assert len(report.violations) == 1000
