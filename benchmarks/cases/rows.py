"""Rows without Spark: reading, looking up, appending, merging, streaming."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, check_same, figure
from benchmarks.row_tables import row_table

if TYPE_CHECKING:
    from collections.abc import Mapping

_JOBS: Final = "benchmarks.jobs.rows"
_READ_BAR: Final = 1.05
_VECTOR_BAR: Final = 1.3
_TIMES: Final = 5
_OFTEN: Final = f"read {_TIMES} times: the first touch of memory costs as much as the reading"
_WRITE_BAR: Final = 1.0
_LOOKUP_CPU: Final = 0.05
_STREAM_MB: Final = 300.0


def _side(name: str, job: str, **spec: Any) -> Side:
    return Side(name=name, job=f"{_JOBS}:{job}", spec=spec)


def _cpu(
    what: str,
    samples: Mapping[str, Any],
    peer: str,
    *,
    bar: float | None = None,
    limit: float | None = None,
) -> Row:
    return Row(
        what=f"{what}: CPU time",
        unit="s",
        ours=figure("twinlake", samples, attrgetter("cpu")),
        peer=figure(peer, samples, attrgetter("cpu")),
        bar=bar,
        limit=limit,
    )


def _wall(what: str, samples: Mapping[str, Any], peer: str, ours: str = "twinlake") -> Row:
    return Row(
        what=f"{what}: time",
        unit="s",
        ours=figure(ours, samples, attrgetter("wall")),
        peer=figure(peer, samples, attrgetter("wall")),
    )


def run_read(plan: Plan) -> list[CaseResult]:
    """All rows of a table, as one Arrow table."""
    path = row_table(plan.data, count=plan.sizes.rows, files=8)
    sides = (
        _side("twinlake", "ReadOurs", path=path, times=_TIMES),
        _side("delta-rs", "ReadPeer", path=path, times=_TIMES),
        _side("pyarrow.dataset", "ReadDataset", path=path, times=_TIMES),
    )
    samples = alternate(sides, plan)
    check_same(samples)
    what = f"{plan.sizes.rows:,} rows of six columns"
    rows = [
        row
        for peer in ("delta-rs", "pyarrow.dataset")
        for row in (
            _cpu(f"{what}, against {peer}", samples, peer, bar=_READ_BAR),
            _wall(f"{what}, against {peer}", samples, peer),
        )
    ]
    return [
        CaseResult(case="rows-read", title=what, rows=tuple(rows), notes=(_OFTEN,), samples=samples)
    ]


def run_vectors(plan: Plan) -> list[CaseResult]:
    """The same with deletion vectors on a tenth of the rows."""
    whole = row_table(plan.data, count=plan.sizes.rows, files=8)
    less = row_table(plan.data, count=plan.sizes.rows, files=8, deleted=True)
    spec = {"sums": False, "times": _TIMES}
    sides = (
        _side("twinlake", "ReadOurs", path=less, deleted=0.1, **spec),
        _side("without vectors", "ReadOurs", path=whole, **spec),
    )
    samples = alternate(sides, plan)
    what = f"{plan.sizes.rows:,} rows with vectors on a tenth"
    row = _cpu(f"{what}, against none", samples, "without vectors", bar=_VECTOR_BAR)
    return [
        CaseResult(case="rows-vectors", title=what, rows=(row,), notes=(_OFTEN,), samples=samples)
    ]


def run_lookup(plan: Plan) -> list[CaseResult]:
    """Ten rows by key out of many files."""
    files = plan.sizes.row_files
    path = row_table(plan.data, count=files * 10, files=files)
    middle = files * 5
    where = f"id >= {middle} AND id < {middle + 10}"
    sides = (_side("twinlake", "ReadOurs", path=path, where=where),)
    samples = alternate(sides, plan)
    what = f"ten rows by key from {files:,} files"
    row = _cpu(what, samples, "twinlake", limit=_LOOKUP_CPU)
    return [CaseResult(case="rows-lookup", title=what, rows=(row,), samples=samples)]


def run_append(plan: Plan) -> list[CaseResult]:
    """Small appends."""
    spec = {"rows": 1_000, "appends": plan.sizes.row_appends}
    sides = (
        _side("twinlake", "AppendOurs", **spec),
        _side("delta-rs", "AppendPeer", **spec),
        _side("twinlake, synced", "AppendOurs", durable=True, **spec),
    )
    samples = alternate(sides, plan)
    check_same(samples)
    what = f"{spec['appends']} appends of 1,000 rows"
    rows = (
        _cpu(what, samples, "delta-rs", bar=_WRITE_BAR),
        _wall(what, samples, "delta-rs"),
        _wall(f"{what}, synced", samples, "delta-rs", "twinlake, synced"),
    )
    notes = ("ours with durable=False, since delta-rs does not sync; durable is our default",)
    return [CaseResult(case="rows-append", title=what, rows=rows, notes=notes, samples=samples)]


def run_merge(plan: Plan) -> list[CaseResult]:
    """An upsert of few rows into many."""
    spec = {"rows": 1_000, "into": plan.sizes.rows}
    sides = (
        _side("twinlake", "MergeOurs", **spec),
        _side("delta-rs", "MergePeer", **spec),
    )
    samples = alternate(sides, plan)
    check_same(samples)
    what = f"1,000 rows merged into {plan.sizes.rows:,}"
    rows = (_cpu(what, samples, "delta-rs", bar=_WRITE_BAR), _wall(what, samples, "delta-rs"))
    return [CaseResult(case="rows-merge", title=what, rows=rows, samples=samples)]


def run_stream(plan: Plan) -> list[CaseResult]:
    """Many rows, batch by batch."""
    count = plan.sizes.rows * 10
    path = row_table(plan.data, count=count, files=10)
    samples = alternate((_side("twinlake", "Stream", path=path),), plan)
    what = f"{count:,} rows streamed"
    peak = figure("twinlake", samples, attrgetter("peak_mb"))
    row = Row(what=f"{what}: peak memory", unit="MB", ours=peak, peer=peak, limit=_STREAM_MB)
    return [CaseResult(case="rows-stream", title=what, rows=(row,), samples=samples)]
