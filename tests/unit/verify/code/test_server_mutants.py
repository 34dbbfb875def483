"""Mistakes of the models' servers and clients, in the shipped code: each is found."""

from __future__ import annotations

import sys

import pytest

from tests.unit.verify.code.server_mutants import SERVER_MUTANTS, ServerMutant
from twinlake.verify.code import replay, shrink
from twinlake.verify.models.server import ServerCommits


def test_there_is_one_for_each_of_the_models() -> None:
    wanted = {name for name in ServerCommits.mutants if name is not None}
    assert {one.name for one in SERVER_MUTANTS} == wanted
    assert len(SERVER_MUTANTS) == len(wanted) == 10


@pytest.mark.parametrize("mutant", SERVER_MUTANTS, ids=lambda one: one.name)
def test_mutant_is_found(mutant: ServerMutant) -> None:
    result = mutant.find()
    assert result.violations, result.outcomes
    violation = result.violations[0]
    sys.stdout.write(f"{mutant.name}: {result.schedules} schedules, {violation}\n")
    assert violation.property in mutant.finds
    with mutant.applied():
        again = replay(violation.schedule_id)
        assert [one.property for one in again.violations] == [violation.property]
        assert again.trace == violation.trace
    # The same calls in the same order are in order without it.
    assert replay(violation.schedule_id).violations == ()


def test_what_a_mutant_replaces_is_put_back() -> None:
    for mutant in SERVER_MUTANTS:
        with pytest.raises(ZeroDivisionError), mutant.applied():
            raise ZeroDivisionError
    for mutant in SERVER_MUTANTS:
        assert replay(f"{mutant.workload}~a99").violations == ()


def test_a_lost_race_without_requirements_takes_one_switch() -> None:
    mutant = next(one for one in SERVER_MUTANTS if one.name == "retries-put")
    found = mutant.find().violations[0]
    with mutant.applied():
        small = replay(shrink(found.schedule_id))
        assert [one.property for one in small.violations] == [found.property]
        assert len(small.trace) <= len(found.trace)
