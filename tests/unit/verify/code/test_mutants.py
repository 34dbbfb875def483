"""Every mistake of the registry is found by the workload that is named for it, and by luck none."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tests.support.scale import is_full_scale, scale
from tests.unit.verify.code.mutants import MUTANTS, Mutant
from twinlake.commit import DELTA_HOOKS
from twinlake.commit.conflict.rules import RULES
from twinlake.iceberg import ICEBERG_HOOKS
from twinlake.verify.code import GROUPS, WORKLOADS, Exploration, explore, sample, sweep

#: Runs until a mistake must be found; most take fewer than ten.
RUNS = scale(400, 5_000)
#: Runs of each workload without a mistake.
CLEAN = scale(6, 100_000)
FOUND: dict[str, Exploration] = {}


def _run(mutant: Mutant) -> Exploration:
    if mutant.sampled:
        return sample(mutant.workload, seed=1, runs=RUNS, faults=2)
    if mutant.fault is not None:
        return sweep(mutant.workload, kinds=(mutant.fault,), limit=RUNS)
    return explore(mutant.workload, limit=RUNS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{one.layer}: {one.name}" for one in MUTANTS])
def test_the_mistake_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    # The table is made before the mistake is: it is shared by all tests.
    WORKLOADS[mutant.workload].table()
    mutant.put(monkeypatch)
    found = FOUND[mutant.name] = _run(mutant)
    assert found.violations, f"it survives {found.schedules} runs: {dict(found.outcomes)}"
    assert found.violations[0].property in mutant.breaks
    sys.stdout.write(
        f"{mutant.layer:10} {mutant.name:42} {mutant.workload:34} {found.schedules:4}"
        f" {found.violations[0].property}\n"
    )


@pytest.mark.parametrize("name", GROUPS["table"])
def test_the_workload_is_clean_without_a_mistake(name: str) -> None:
    found = explore(name, limit=CLEAN)
    assert not found.violations, str(found.violations[0])
    if is_full_scale():
        assert found.complete
        assert sample(name, seed=7, runs=500, faults=2).violations == ()


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name not in GROUPS["pairs"]])
def test_two_faults_at_once_break_nothing(name: str) -> None:
    found = sample(name, seed=20, runs=scale(2, 300), faults=2)
    assert not found.violations, str(found.violations[0])


def test_every_part_of_the_commit_path_has_a_mistake() -> None:
    layers = Counter(one.layer for one in MUTANTS)
    assert len(MUTANTS) >= 40
    assert set(layers) == {
        "conflict",
        "commit",
        "snapshot",
        "checkpoint",
        "hook",
        "cleanup",
        "vacuum",
        "conversion",
    }
    named = " ".join(one.name for one in MUTANTS if one.layer == "conflict").split()
    assert {rule.id for rule in RULES} <= set(named)
    # Checksum, checkpoint and cleanup, and the sync of twins.
    assert {hook.name for hook in (*DELTA_HOOKS, *ICEBERG_HOOKS)} == {
        "checksum",
        "checkpoint",
        "cleanup",
        "iceberg",
    }
    assert len({one.name for one in MUTANTS}) == len(MUTANTS)
