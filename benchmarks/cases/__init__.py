"""The cases by name, in the order they run."""

from __future__ import annotations

from benchmarks.cases.commits import run_commits
from benchmarks.cases.compat import run_footers, run_rules
from benchmarks.cases.imports import run_imports
from benchmarks.cases.listing import run_checkpoint, run_json, run_large
from benchmarks.cases.updates import run_updates
from benchmarks.harness import Case

CASES: dict[str, Case] = {
    case.name: case
    for case in (
        Case(name="json", run=run_json),
        Case(name="checkpoint", run=run_checkpoint),
        Case(name="large", run=run_large),
        Case(name="properties", run=run_commits("properties")),
        Case(name="adds", run=run_commits("adds")),
        Case(name="update", run=run_updates),
        Case(name="compat-rules", run=run_rules),
        Case(name="footers", run=run_footers),
        Case(name="import", run=run_imports),
    )
}
