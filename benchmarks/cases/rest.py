"""The REST catalog beside Iceberg's reference server and PyIceberg's own catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, figure
from benchmarks.iceberg_tables import many_snapshots, twin_table
from benchmarks.rest_servers import NAMESPACE, load_client, what_is_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.harness import Sample, Samples

LOAD_BAR: Final = 1 / 3
"""Of the reference server's CPU time a request."""
APPEND_BAR: Final = 1.0
SQL_BAR: Final = 1.5
SIZE_BAR: Final = 1.5
SNAPSHOTS_LIMIT: Final = 10.0
"""Milliseconds of CPU time."""
MEMORY_LIMIT: Final = 300.0
_JOBS: Final = "benchmarks.jobs.rest"
_TWINLAKE: Final = "twinlake"
_REFERENCE: Final = "reference server"
_SQL: Final = "PyIceberg, SQLite catalog"
_KINDS: Final = {
    "plain": "loadTable",
    "packed": "loadTable, gzip",
    "unchanged": "loadTable, 304",
}
# Each is a mean of thousands of requests, or a median of many appends.
_FEW_RUNS: Final = 3
_ABOUT: Final = (
    "org.apache.iceberg:iceberg-open-api:1.11.0:test-fixtures, a JDBC catalog on SQLite, Jetty "
    "12.1, no log; every side in a network namespace of its own"
)


def run_loads(plan: Plan) -> list[CaseResult]:
    """A table of a few snapshots, loaded, loaded packed, and asked for whether it has changed."""
    sizes = plan.sizes
    spec = {"requests": sizes.rest_requests, "warm": sizes.rest_requests}
    title = f"{sizes.rest_requests:,} requests for a table of {sizes.rest_snapshots} snapshots"
    return _loads(plan, "rest-load", title, sizes.rest_snapshots, spec)


def run_snapshots(plan: Plan) -> list[CaseResult]:
    """A table of many snapshots, all of them in the reply."""
    sizes = plan.sizes
    requests = max(sizes.rest_requests // 10, 10)
    spec = {"requests": requests, "warm": requests}
    count = sizes.rest_many_snapshots
    title = f"{requests:,} requests for a table of {count:,} snapshots"
    return _loads(plan, "rest-snapshots", title, count, spec, limit=SNAPSHOTS_LIMIT)


def _loads(
    plan: Plan,
    case: str,
    title: str,
    snapshots: int,
    spec: dict[str, int],
    limit: float | None = None,
) -> list[CaseResult]:
    if (missing := _missing(plan, case, title)) is not None:
        return [missing]
    given = {
        **spec,
        "path": str(many_snapshots(plan.data, snapshots)),
        "client": str(load_client(plan.data)),
    }
    sides = [
        _side(_TWINLAKE, "OurLoads", given),
        _side(_REFERENCE, "ReferenceLoads", given),
    ]
    samples = alternate(sides, plan, min(plan.runs, _FEW_RUNS))
    rows = [
        Row(
            what=f"{snapshots:,} snapshots, {what}: CPU time a request",
            unit="ms",
            ours=figure(_TWINLAKE, samples, _metric(kind, 1000)),
            peer=figure(_REFERENCE, samples, _metric(kind, 1000)),
            bar=LOAD_BAR if limit is None else None,
            limit=limit,
        )
        for kind, what in _KINDS.items()
    ]
    rates = "; ".join(
        f"{what}: {_median(samples, _TWINLAKE, kind)} and {_median(samples, _REFERENCE, kind)}"
        for kind, what in _KINDS.items()
    )
    size = samples[_TWINLAKE][0].notes["bytes"]
    return [
        CaseResult(
            case=case,
            title=title,
            rows=(*rows, *_memory(title, samples, _TWINLAKE, _REFERENCE)),
            notes=(
                _ABOUT,
                f"the same table registered at both, {size:,} bytes of metadata; two connections "
                f"of a compiled client, after {spec['warm']:,} requests that do not count",
                f"requests a second on two cores, client and all, ours and theirs: {rates}",
            ),
            samples=samples,
        )
    ]


def run_appends(plan: Plan) -> list[CaseResult]:
    """PyIceberg appends through both servers, and through its own catalog."""
    sizes = plan.sizes
    title = f"{sizes.rest_appends} appends of PyIceberg"
    if (missing := _missing(plan, "rest-append", title)) is not None:
        return [missing]
    spec = {"appends": sizes.rest_appends, "warm": min(sizes.rest_appends, 5)}
    sides = [
        _side(_TWINLAKE, "OurAppends", spec),
        _side(_REFERENCE, "ReferenceAppends", spec),
        Side(name=_SQL, job=f"{_JOBS}:SqlAppends", spec=spec),
    ]
    samples = alternate(sides, plan, min(plan.runs, _FEW_RUNS))
    latency = _metric("latency", 1000)
    ours = figure(_TWINLAKE, samples, latency)
    return [
        CaseResult(
            case="rest-append",
            title=title,
            rows=(
                *(
                    Row(
                        what=f"an append of PyIceberg, beside {peer}: latency",
                        unit="ms",
                        ours=ours,
                        peer=figure(peer, samples, latency),
                        bar=bar,
                    )
                    for peer, bar in ((_REFERENCE, APPEND_BAR), (_SQL, SQL_BAR))
                ),
                Row(
                    what="an append of PyIceberg: CPU time of the server",
                    unit="ms",
                    ours=figure(_TWINLAKE, samples, _metric("server", 1000)),
                    peer=figure(_REFERENCE, samples, _metric("server", 1000)),
                ),
            ),
            notes=(
                _ABOUT,
                "the median of a process and of the processes, from the call to its return, the "
                "file that PyIceberg writes included; twinlake syncs its log to the disk, the "
                "others do not",
            ),
            samples=samples,
        )
    ]


def run_large(plan: Plan) -> list[CaseResult]:
    """The same append to a small and to a large table, by the server alone."""
    sizes = plan.sizes
    counts = (sizes.twin_small_files, sizes.twin_files)
    title = f"an append of PyIceberg over {counts[1]:,} and {counts[0]:,} files"
    if (missing := _missing(plan, "rest-large", title, reference=False)) is not None:
        return [missing]
    sides = [
        _side(
            f"{files:,} files",
            "CommitsToLargeTable",
            {"path": str(twin_table(plan.data, files)), "appends": sizes.rest_appends},
        )
        for files in counts
    ]
    samples = alternate(sides, plan, min(plan.runs, _FEW_RUNS))
    small, large = (side.name for side in sides)
    rows = [
        Row(
            what=f"{title}: {what}",
            unit="ms",
            ours=figure(large, samples, _metric(name, 1000)),
            peer=figure(small, samples, _metric(name, 1000)),
            bar=SIZE_BAR,
        )
        for name, what in (("latency", "latency"), ("server", "CPU time of the server"))
    ]
    return [
        CaseResult(
            case="rest-large",
            title=title,
            rows=(*rows, *_memory(title, samples, large, small)),
            notes=("twinlake on both sides; the latency has PyIceberg's own work in it",),
            samples=samples,
        )
    ]


def _side(name: str, job: str, spec: Mapping[str, object]) -> Side:
    return Side(name=name, job=f"{_JOBS}:{job}", spec=spec, prefix=NAMESPACE)


def _missing(plan: Plan, case: str, title: str, *, reference: bool = True) -> CaseResult | None:
    """The result of a case that cannot be run here."""
    missing = what_is_missing(reference=reference)
    if missing is None:
        return None
    note = f"not run: {missing}"
    plan.say(f"{case}: {note}")
    return CaseResult(case=case, title=title, rows=(), notes=(note,))


def _memory(what: str, samples: Samples, ours: str, peer: str) -> tuple[Row, Row]:
    """What the largest process of each server holds in the end, and its peak."""
    resident, peak = (
        Row(
            what=f"{what}: {words}",
            unit="MB",
            ours=figure(ours, samples, _metric(name)),
            peer=figure(peer, samples, _metric(name)),
            limit=limit,
        )
        for name, words, limit in (
            ("resident", "memory of a process of the server", MEMORY_LIMIT),
            ("peak", "the most it ever was", None),
        )
    )
    return resident, peak


def _median(samples: Samples, side: str, kind: str) -> str:
    return f"{figure(side, samples, _metric(f'{kind} a second')).median:,.0f}"


def _metric(name: str, scale: float = 1.0) -> Callable[[Sample], float]:
    return lambda sample: sample.metrics[name] * scale
