"""Import times."""

from __future__ import annotations

from operator import attrgetter

from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, figure
from benchmarks.jobs.listing import OUR_MODULES

_SETS = {
    "pyarrow": ["pyarrow"],
    "twinlake": ["twinlake"],
    "twinlake and what a listing needs": list(OUR_MODULES),
    "deltalake": ["deltalake"],
}


def run_imports(plan: Plan) -> list[CaseResult]:
    """Everything over pyarrow."""
    sides = [
        Side(name=name, job="benchmarks.jobs.imports:Import", spec={"modules": modules})
        for name, modules in _SETS.items()
    ]
    samples = alternate(sides, plan)
    wall = attrgetter("wall")
    rows = tuple(
        Row(
            what=f"import {name} over import pyarrow",
            unit="s",
            ours=figure(name, samples, wall),
            peer=figure("pyarrow", samples, wall),
        )
        for name in _SETS
        if name != "pyarrow"
    )
    return [CaseResult(case="import", title="import times", rows=rows, samples=samples)]
