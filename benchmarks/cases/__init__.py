"""The cases by name, in the order they run."""

from __future__ import annotations

from benchmarks.cases.commits import run_commits
from benchmarks.cases.compat import run_footers, run_rules
from benchmarks.cases.iceberg import run_appends, run_first, run_memory, run_peer, run_row
from benchmarks.cases.imports import run_imports
from benchmarks.cases.listing import run_checkpoint, run_json, run_large
from benchmarks.cases.rest import run_appends as run_rest_appends
from benchmarks.cases.rest import run_large as run_rest_large
from benchmarks.cases.rest import run_loads, run_snapshots
from benchmarks.cases.rows import (
    run_append,
    run_lookup,
    run_merge,
    run_read,
    run_stream,
    run_vectors,
)
from benchmarks.cases.tlc import run_tlc
from benchmarks.cases.updates import run_updates
from benchmarks.cases.verify import run_large as run_large_model
from benchmarks.cases.verify import run_seed
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
        Case(name="rows-read", run=run_read),
        Case(name="rows-vectors", run=run_vectors),
        Case(name="rows-lookup", run=run_lookup),
        Case(name="rows-append", run=run_append),
        Case(name="rows-merge", run=run_merge),
        Case(name="rows-stream", run=run_stream),
        Case(name="iceberg-first", run=run_first),
        Case(name="iceberg-append", run=run_appends),
        Case(name="iceberg-commits", run=run_row),
        Case(name="iceberg-memory", run=run_memory),
        Case(name="iceberg-peer", run=run_peer),
        Case(name="rest-load", run=run_loads),
        Case(name="rest-snapshots", run=run_snapshots),
        Case(name="rest-append", run=run_rest_appends),
        Case(name="rest-large", run=run_rest_large),
        Case(name="verify-seed", run=run_seed),
        Case(name="verify-large", run=run_large_model),
        Case(name="verify-tlc", run=run_tlc),
    )
}
