"""What a rule is, as data: an id, a scope, a reason and a check that finds every violation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from twinlake.compat.compat_feature import Compat
    from twinlake.compat.subject import Subject
    from twinlake.protocol import Metadata

__all__ = [
    "PROFILE_KEY",
    "Case",
    "Check",
    "Finding",
    "Profile",
    "Rule",
    "Scope",
    "Trait",
    "Violation",
    "profile_of",
]

PROFILE_KEY: Final = "twinlake.compat.profile"
"""The property that says whose reading of the rules counts for a table."""


class Profile(StrEnum):
    """Whose reading of a rule counts, where the implementations differ."""

    SPEC = "spec"
    """The protocol and its RFCs, to the letter."""
    SPARK = "spark"
    """What Delta Spark enforces."""
    KERNEL = "kernel"
    """What the Java kernel enforces, its gaps included."""


def profile_of(metadata: Metadata) -> Profile:
    """Whose reading counts for a table; the specification's, unless it names another."""
    text = metadata.get(PROFILE_KEY).strip().lower()
    return Profile(text) if text in set(Profile) else Profile.SPEC


class Scope(StrEnum):
    """What a rule has to look at."""

    METADATA = "metadata"
    CHANGE = "change"
    COMMIT = "commit"
    FOOTER = "footer"


class Trait(StrEnum):
    """What else is true of a rule, beyond what it checks."""

    NAMES_FEATURE = "names_feature"
    """The path of a violation is the table feature to drop."""
    STORED_VALUES = "stored_values"
    """It is about how files store values: a rewrite fixes it under any column names."""
    AT_CREATION = "at_creation"
    """Only a new table can fulfil it; an upgrade is exempt, as the way for existing tables."""
    ON_DISABLE = "on_disable"
    """It is about disabling the compat feature; no other rule is checked when that happens."""
    SHARED_MODE = "shared_mode"
    """It holds for a table upgraded in mode ``shared``, which leaves the writer feature out."""
    UNREADABLE = "unreadable"
    """Files that break it cannot be read, hence not rewritten."""
    PROJECTED = "projected"
    """Iceberg readers return the rows of files that break it: column projection fills the gap."""
    NAME_MAPPED = "name_mapped"
    """Iceberg readers return the rows of files that break it by having no field id at all."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule is evaluated on: a table, a compat feature, a profile."""

    subject: Subject
    compat: Compat
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a check found wrong."""

    path: str
    """Dotted column path, property key, feature name or file path; "" for the whole table."""
    found: str
    wanted: str
    message: str
    """A sentence without the full stop."""
    fix: str = ""
    """Instead of the fix of the rule, where this finding has a better one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One thing that is wrong with a table, and the rule that says so."""

    rule: str
    scope: Scope
    path: str
    found: str
    wanted: str
    message: str
    fix: str
    delta_class: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "rule": self.rule,
            "scope": str(self.scope),
            "path": self.path,
            "found": self.found,
            "wanted": self.wanted,
            "message": self.message,
            "fix": self.fix,
            **({"delta_class": self.delta_class} if self.delta_class else {}),
        }


Check = Callable[[Case], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of the registry."""

    id: str
    compat: Compat
    """The compat feature it belongs to."""
    title: str
    """What a compliant table does, in one line."""
    reason: str
    """Why Iceberg needs it."""
    scope: Scope
    check: Check
    profiles: Mapping[Profile, Check | None] = field(default_factory=dict)
    """Other readings of the rule; None where a profile does not know it."""
    fix: str
    subclass: str | None = None
    """Delta's name for the violation, below ``DELTA_ICEBERG_COMPAT_VIOLATION``."""
    covers: frozenset[str] = frozenset()
    """Rules of the base that this one is stricter than: where both are broken by the same path,
    only this one is reported."""
    gives_up: str = ""
    """What ``give_up`` names to have an upgrade remove what breaks the rule; "" for nothing."""
    traits: frozenset[Trait] = frozenset()

    def check_for(self, profile: Profile) -> Check | None:
        """The check as the profile reads the rule."""
        return self.profiles.get(profile, self.check)

    def violations(self, case: Case) -> Iterable[Violation]:
        """Everything that breaks the rule."""
        check = self.check_for(case.profile)
        for finding in check(case) if check is not None else ():
            yield Violation(
                rule=self.id,
                scope=self.scope,
                path=finding.path,
                found=finding.found or "(empty)",
                wanted=finding.wanted,
                message=finding.message,
                fix=finding.fix or self.fix,
                delta_class=(
                    f"DELTA_ICEBERG_COMPAT_VIOLATION.{self.subclass}" if self.subclass else None
                ),
            )
