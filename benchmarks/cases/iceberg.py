"""Converting to Iceberg: all files of a table, a few more, a thousand commits; and PyIceberg."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, figure, rehearsed
from benchmarks.iceberg_tables import real_files, twin_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.harness import Sample, Samples

FIRST_LIMIT: Final = 40.0
"""CPU microseconds a file: 25,000 files a second, and that on one core."""
APPEND_LIMIT: Final = 0.15
"""CPU seconds."""
SIZE_BAR: Final = 1.5
FLAT_BAR: Final = 1.5
MEMORY_LIMIT: Final = 2048.0
_APPENDED: Final = 10
_ONCE: Final = 1
# These take long, and each is a mean over many conversions already.
_FEW_RUNS: Final = 3
_TWINLAKE: Final = "twinlake"
_JOBS: Final = "benchmarks.jobs.iceberg"
_XTABLE: Final = (
    "Apache XTable is left out: org.apache.xtable:xtable-core_2.12 and xtable-utilities_2.12 did "
    "not resolve from Maven Central (tried 0.1.0 to 0.4.0-incubating: not found)"
)


def run_first(plan: Plan) -> list[CaseResult]:
    """The first conversion of a large table."""
    files = plan.sizes.twin_files
    spec = {"path": str(twin_table(plan.data, files))}
    sides = rehearsed(
        [
            Side(name=_TWINLAKE, job=f"{_JOBS}:First", spec=spec),
            Side(name="reading the log", job=f"{_JOBS}:Actions", spec=spec),
        ],
        plan,
    )
    samples = alternate(sides, plan)
    row = Row(
        what=f"first conversion, {files:,} files: CPU time a file",
        unit="us",
        ours=figure(_TWINLAKE, samples, _micros_a_file(files)),
        peer=figure("reading the log", samples, _micros_a_file(files)),
        limit=FIRST_LIMIT,
    )
    rate = figure(_TWINLAKE, samples, lambda sample: files / sample.cpu)
    elapsed = figure(_TWINLAKE, samples, lambda sample: files / sample.wall)
    return [
        CaseResult(
            case="iceberg-first",
            title=f"Iceberg metadata of {files:,} files from scratch",
            rows=(row, _memory(f"first conversion, {files:,} files", samples)),
            notes=(
                f"{rate.median:,.0f} files a CPU second, {elapsed.median:,.0f} a second of the "
                "clock, by one process (at least 25,000 on two cores)",
                "six columns, five with statistics; beside it only the reading of all add actions, "
                "by twinlake as well",
            ),
            samples=samples,
        )
    ]


def run_memory(plan: Plan) -> list[CaseResult]:
    """The peak of a first conversion of a huge table. Once: it is memory that counts."""
    files = plan.sizes.twin_huge_files
    spec = {"path": str(twin_table(plan.data, files))}
    sides = [
        Side(name=_TWINLAKE, job=f"{_JOBS}:First", spec=spec),
        Side(name="reading the log", job=f"{_JOBS}:Actions", spec=spec),
    ]
    samples = alternate(sides, plan, _ONCE)
    seconds = samples[_TWINLAKE][0].cpu
    return [
        CaseResult(
            case="iceberg-memory",
            title=f"Iceberg metadata of {files:,} files from scratch",
            rows=(_memory(f"first conversion, {files:,} files", samples, limit=MEMORY_LIMIT),),
            notes=(f"the whole process, interpreter and all; {seconds:.0f} CPU seconds",),
            samples=samples,
        )
    ]


def run_appends(plan: Plan) -> list[CaseResult]:
    """The same append to a small and to a large table."""
    sizes = plan.sizes
    counts = (sizes.twin_small_files, sizes.twin_files)
    sides = [
        Side(
            name=f"{files:,} files",
            job=f"{_JOBS}:Appends",
            spec={
                "path": str(twin_table(plan.data, files)),
                "commits": sizes.twin_appends,
                "files": _APPENDED,
            },
        )
        for files in counts
    ]
    samples = alternate(sides, plan)
    small, large = (figure(side.name, samples, _metric("conversion")) for side in sides)
    what = f"convert an append of {_APPENDED} files, {counts[1]:,}"
    return [
        CaseResult(
            case="iceberg-append",
            title=f"Iceberg metadata of an append of {_APPENDED} files",
            rows=(
                Row(
                    what=f"{what} over {counts[0]:,} files: CPU time",
                    unit="s",
                    ours=large,
                    peer=small,
                    bar=SIZE_BAR,
                ),
                Row(
                    what=f"{what} files: CPU time",
                    unit="s",
                    ours=large,
                    peer=small,
                    limit=APPEND_LIMIT,
                ),
            ),
            notes=(
                f"iceberg.sync() after each of {sizes.twin_appends} commits of another writer, "
                "the median of a process and of the processes; twinlake on both sides",
            ),
            samples=samples,
        )
    ]


def run_row(plan: Plan) -> list[CaseResult]:
    """Many commits in a row, each converted: the last ones against early ones."""
    sizes = plan.sizes
    side = Side(
        name=_TWINLAKE,
        job=f"{_JOBS}:Row",
        spec={"commits": sizes.twin_commits, "files": 1, "window": sizes.twin_window},
    )
    samples = alternate([side], plan, min(plan.runs, _FEW_RUNS))
    early = replace(figure(_TWINLAKE, samples, _metric("first", 1000)), side="early conversions")
    written = samples[_TWINLAKE][0].notes["files"]
    window = sizes.twin_window
    row = Row(
        what=f"{sizes.twin_commits:,} commits, the last {window} conversions: CPU time of one",
        unit="ms",
        ours=figure(_TWINLAKE, samples, _metric("last", 1000)),
        peer=early,
        bar=FLAT_BAR,
    )
    return [
        CaseResult(
            case="iceberg-commits",
            title=f"{sizes.twin_commits:,} commits, each converted as a commit hook does",
            rows=(row,),
            notes=(
                f"the mean of the last {window} conversions over that of the {window} after the "
                f"first {window}; merging of manifests is part of it; twinlake on both sides",
                f"no snapshot expires, so the metadata file lists {sizes.twin_commits:,} in the "
                f"end; {written:,} files of metadata are there then",
            ),
            samples=samples,
        )
    ]


def run_peer(plan: Plan) -> list[CaseResult]:
    """PyIceberg takes the same files: all at once, and one by one."""
    sizes = plan.sizes
    folder = real_files(plan.data, sizes.real_files)
    return [_at_once(plan, str(folder)), _one_by_one(plan, str(folder))]


def _at_once(plan: Plan, folder: str) -> CaseResult:
    files = plan.sizes.real_files
    sides = rehearsed(
        [
            Side(name=_TWINLAKE, job=f"{_JOBS}:First", spec={"path": f"{folder}/table"}),
            Side(name="PyIceberg", job=f"{_JOBS}:PeerFirst", spec={"path": folder}),
        ],
        plan,
    )
    samples = alternate(sides, plan)
    what = f"Iceberg metadata of {files:,} Parquet files"
    return CaseResult(
        case="iceberg-peer",
        title=f"{what}: iceberg.sync() and PyIceberg's add_files",
        rows=(_against("PyIceberg", f"{what}, add_files", samples), _memory(what, samples)),
        notes=(
            "twinlake takes statistics from the Delta log, PyIceberg reads every footer; its table "
            "is in an SQLite catalog",
            _XTABLE,
        ),
        samples=samples,
    )


def _one_by_one(plan: Plan, folder: str) -> CaseResult:
    commits = plan.sizes.real_commits
    spec = {"path": folder, "commits": commits}
    jobs = {_TWINLAKE: "OneByOne", "add_files": "PeerOneByOne", "append": "PeerAppends"}
    sides = rehearsed(
        [Side(name=name, job=f"{_JOBS}:{job}", spec=spec) for name, job in jobs.items()], plan
    )
    samples = alternate(sides, plan, min(plan.runs, _FEW_RUNS))
    what = f"{commits:,} commits of one Parquet file"
    return CaseResult(
        case="iceberg-peer-commits",
        title=f"{what}: with twinlake.iceberg.sync=commit, and by PyIceberg",
        rows=tuple(_against(name, f"{what}, {name}", samples) for name in ("add_files", "append")),
        notes=(
            "twinlake commits to the Delta log, checks the footer and converts; durable=False, "
            "since PyIceberg does not sync",
            "PyIceberg's append writes the file as well, a few rows",
        ),
        samples=samples,
    )


def _against(peer: str, what: str, samples: Samples) -> Row:
    return Row(
        what=f"{what}: CPU time",
        unit="s",
        ours=figure(_TWINLAKE, samples, attrgetter("cpu")),
        peer=figure(peer, samples, attrgetter("cpu")),
    )


def _memory(what: str, samples: Samples, limit: float | None = None) -> Row:
    (peer,) = samples.keys() - {_TWINLAKE}
    return Row(
        what=f"{what}: peak memory",
        unit="MB",
        ours=figure(_TWINLAKE, samples, attrgetter("peak_mb")),
        peer=figure(peer, samples, attrgetter("peak_mb")),
        limit=limit,
    )


def _micros_a_file(files: int) -> Callable[[Sample], float]:
    return lambda sample: sample.cpu * 1e6 / files


def _metric(name: str, scale: float = 1.0) -> Callable[[Sample], float]:
    return lambda sample: sample.metrics[name] * scale
