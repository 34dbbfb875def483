"""What each configuration of the catalogue is there for: a finding, a mutant or a benchmark row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.verify.models.catalogue.model_case import CONTROL, FINDING, MUTANT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.verify.models.catalogue.model_case import ModelCase, ModelSuite

__all__ = ["counterpart_of", "purpose_of"]


def counterpart_of(
    suites: Iterable[ModelSuite], suite: ModelSuite, case: ModelCase
) -> tuple[ModelSuite, ModelCase] | None:
    """The finding or mutant that a case stands beside, and its suite; ``None`` if there is none.

    A control stands beside the mutant of the same mistake unless it names another case.
    """
    owner, _, name = case.counterpart.rpartition(": ")
    for one in suites:
        if one.format != suite.format or one.name != (owner or suite.name):
            continue
        for other in one.cases:
            if other.kind not in (FINDING, MUTANT):
                continue
            is_same_mistake = other.parameters.get("mutant") == case.parameters.get("mutant")
            if other.name == name or (case.kind == CONTROL and not name and is_same_mistake):
                return one, other
    return None


def purpose_of(suites: Iterable[ModelSuite], suite: ModelSuite, case: ModelCase) -> str:
    """What a case is there for, in words; empty if it has no place in the catalogue."""
    if case.kind == FINDING:
        return "a finding"
    if case.kind == MUTANT:
        return f"mutant {case.parameters['mutant']}"
    if case.benchmark:
        return f"benchmark {case.benchmark}"
    found = counterpart_of(suites, suite, case)
    if found is None:
        return ""
    owner, other = found
    name = other.name if owner is suite else f"{owner.name}: {other.name}"
    return f"counterpart of the {other.kind} {name}"
