"""Open a table and list its files: from commits, from checkpoints, from a large checkpoint."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from benchmarks.harness import (
    CaseResult,
    Plan,
    Row,
    Side,
    WrongResult,
    alternate,
    figure,
    measure,
    rehearsed,
)
from benchmarks.tables import TableRecipe, table

TIME_BAR: Final = 1.0
MEMORY_BAR: Final = 1.5
_QUANTITIES: Final = (
    ("time", "wall", "s", TIME_BAR),
    ("peak memory", "peak_mb", "MB", MEMORY_BAR),
    ("CPU time", "cpu", "s", None),
    ("imports before", "imports", "s", None),
)


def run_json(plan: Plan) -> list[CaseResult]:
    """From JSON commits only."""
    sizes = plan.sizes
    recipe = TableRecipe(commits=sizes.commits_of_table, adds=sizes.adds_per_commit)
    return [_compare(plan, "json", recipe)]


def run_checkpoint(plan: Plan) -> list[CaseResult]:
    """From a checkpoint of the peer's, and from one of ours."""
    sizes = plan.sizes
    return [
        _compare(
            plan,
            "checkpoint",
            TableRecipe(
                commits=sizes.commits_of_table, adds=sizes.adds_per_commit, checkpoint=writer
            ),
        )
        for writer in ("delta-rs", "twinlake")
    ]


def run_large(plan: Plan) -> list[CaseResult]:
    """From a large checkpoint of the peer's."""
    sizes = plan.sizes
    recipe = TableRecipe(
        commits=sizes.commits_of_table, adds=sizes.large_adds_per_commit, checkpoint="delta-rs"
    )
    return [_compare(plan, "large", recipe)]


def _compare(plan: Plan, case: str, recipe: TableRecipe) -> CaseResult:
    source = f"a checkpoint by {recipe.checkpoint}" if recipe.checkpoint else "JSON commits"
    what = f"list {recipe.files:,} files from {source}"
    spec = {"path": str(table(plan.data, recipe))}
    sides = rehearsed(
        (
            Side(name="twinlake", job="benchmarks.jobs.listing:Ours", spec=spec),
            Side(name="delta-rs", job="benchmarks.jobs.listing:Peer", spec=spec),
        ),
        plan,
    )
    samples = alternate(sides, plan)
    found = {s.facts["files"] for taken in samples.values() for s in taken}
    if found != {recipe.files}:
        raise WrongResult(f"both sides list {found} files where {recipe.files} were made")
    rows = tuple(
        Row(
            what=f"{what}: {name}",
            unit=unit,
            ours=figure("twinlake", samples, attrgetter(quantity)),
            peer=figure("delta-rs", samples, attrgetter(quantity)),
            bar=bar,
        )
        for name, quantity, unit, bar in _QUANTITIES
    )
    base = figure("twinlake", samples, lambda s: s.base_mb)
    peer_base = figure("delta-rs", samples, lambda s: s.base_mb)
    late = sorted({name for s in samples["twinlake"] for name in s.late_imports})
    notes = [
        f"peak memory of the whole process; after imports alone it is {base.median:.0f} MB "
        f"(twinlake) and {peer_base.median:.0f} MB (delta-rs)"
    ]
    if late:
        notes.append(f"imported under our clock: {', '.join(late)}")
    profiled = measure(sides[0], plan, profile="listing")
    return CaseResult(
        case=case,
        title=what,
        rows=rows,
        notes=tuple(notes),
        breakdowns={what: profiled.breakdown or {}},
        samples=samples,
    )
