"""What one commit costs an open table, and whether that depends on the table's size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, figure
from benchmarks.tables import TableRecipe, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.harness import Sample

SIZE_BAR: Final = 1.5
_STEPS: Final = (
    ("refresh", "refresh() by one commit", SIZE_BAR),
    ("commit", "commit() of one add", None),
    ("list", "files() after the refresh", None),
)


def run_updates(plan: Plan) -> list[CaseResult]:
    """The same steps on a small and on a large table."""
    sizes = plan.sizes
    small = TableRecipe(commits=10, adds=max(1, sizes.small_files // 10), checkpoint="delta-rs")
    large = TableRecipe(
        commits=sizes.commits_of_table, adds=sizes.adds_per_commit, checkpoint="delta-rs"
    )
    sides = [
        Side(
            name=f"{recipe.files:,} files",
            job="benchmarks.jobs.updates:Ours",
            spec={
                "path": str(table(plan.data, recipe)),
                "updates": sizes.updates,
                "commits": sizes.update_commits,
            },
        )
        for recipe in (small, large)
    ]
    samples = alternate(sides, plan)
    rows = tuple(
        Row(
            what=f"{what}, {large.files:,} over {small.files:,} files",
            unit="ms",
            ours=figure(sides[1].name, samples, _milliseconds(step)),
            peer=figure(sides[0].name, samples, _milliseconds(step)),
            bar=bar,
        )
        for step, what, bar in _STEPS
    )
    return [
        CaseResult(
            case="update",
            title="one commit to an open, listed table",
            rows=rows,
            notes=(
                f"each the median of {sizes.updates} refreshes and {sizes.update_commits} commits "
                "(durable=False) in a process, and of the processes; twinlake on both sides",
                "files() merges the new commits in when it is asked for, which costs what the "
                "table holds",
            ),
            samples=samples,
        )
    ]


def _milliseconds(step: str) -> Callable[[Sample], float]:
    return lambda sample: sample.metrics[step] * 1000
