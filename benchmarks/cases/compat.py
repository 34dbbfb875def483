"""The rules of Iceberg compatibility: what they cost a commit, and how fast footers are judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from benchmarks.compat_tables import footer_table
from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, figure, rehearsed

if TYPE_CHECKING:
    from benchmarks.harness import Sample

RULES_LIMIT: Final = 0.1
"""CPU seconds of the rules in one commit."""
FOOTER_LIMIT: Final = 1.0
"""CPU milliseconds a file: 2,000 files a second on two cores."""


def run_rules(plan: Plan) -> list[CaseResult]:
    """A commit that changes a wide schema, judged in full."""
    columns = plan.sizes.wide_columns
    side = Side(
        name="twinlake", job="benchmarks.jobs.compat:Rules", spec={"columns": columns, "rounds": 7}
    )
    samples = alternate([side], plan)
    ours = figure(side.name, samples, lambda sample: sample.metrics["rules"])
    schema = figure(side.name, samples, lambda sample: sample.metrics["schema"])
    row = Row(
        what=f"rules over reading the schema, {columns:,} columns: CPU time",
        unit="s",
        ours=ours,
        peer=replace(schema, side="reading the schema"),
        limit=RULES_LIMIT,
    )
    return [
        CaseResult(
            case="compat-rules",
            title=f"icebergWriterCompatV1 on a schema of {columns:,} columns",
            rows=(row,),
            notes=("the rules of one commit that changes the schema; twinlake on both sides",),
            samples=samples,
        )
    ]


def run_footers(plan: Plan) -> list[CaseResult]:
    """``check(files=True)`` on many small files; the peer only reads what is checked."""
    files = plan.sizes.footers
    path = str(footer_table(plan.data, files))
    names = {"twinlake": "Ours", "pyarrow": "Peer"}
    sides = rehearsed(
        [
            Side(name=name, job=f"benchmarks.jobs.compat:{job}", spec={"path": path})
            for name, job in names.items()
        ],
        plan,
    )
    samples = alternate(sides, plan)

    def milliseconds(sample: Sample) -> float:
        return sample.cpu * 1000 / files

    row = Row(
        what=f"check a footer, {files:,} files: CPU time a file",
        unit="ms",
        ours=figure("twinlake", samples, milliseconds),
        peer=figure("pyarrow", samples, milliseconds),
        limit=FOOTER_LIMIT,
    )
    speed = figure("twinlake", samples, lambda sample: files / sample.wall)
    return [
        CaseResult(
            case="footers",
            title=f"the footers of {files:,} files against all rules",
            rows=(row,),
            notes=(
                f"{speed.median:,.0f} files a second in one process (at least 2,000 on two cores)",
                "pyarrow reads each footer, makes its schema and looks for field ids, no more",
            ),
            samples=samples,
        )
    ]
