"""Converting to Iceberg: all files of a table, a few more, a thousand commits; and PyIceberg."""

from __future__ import annotations

import os
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, figure, rehearsed
from benchmarks.iceberg_tables import real_files, twin_table
from tests.support.servers.s3 import find_binary

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.harness import Sample, Samples, Sizes

FIRST_LIMIT: Final = 40.0
"""Microseconds a file: 25,000 files a second on two cores, and of CPU time on one."""
APPEND_LIMIT: Final = 0.15
"""CPU seconds."""
SIZE_BAR: Final = 1.5
FLAT_BAR: Final = 1.5
OWN_FLAT_BAR: Final = 1.2
MEMORY_LIMIT: Final = 2048.0
_APPENDED: Final = 10
_ONCE: Final = 1
# These take long, and each is a mean over many conversions already.
_FEW_RUNS: Final = 3
_TWINLAKE: Final = "twinlake"
_PEER: Final = "PyIceberg"
_ON_S3: Final = "twinlake on S3"
_SHORT: Final = "twinlake, short history"
_TWO: Final = "twinlake, two processes"
# It takes the longer the more snapshots there are.
_PEER_COMMITS: Final = 300
_MEMORY: Final = Path("/dev/shm")
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
            Side(name=_TWO, job=f"{_JOBS}:FirstOnTwo", spec=spec),
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
    on_two = Row(
        what=f"first conversion, {files:,} files, on two cores: time a file",
        unit="us",
        ours=figure(_TWO, samples, lambda sample: sample.wall * 1e6 / files),
        peer=figure(_TWINLAKE, samples, lambda sample: sample.wall * 1e6 / files),
        limit=FIRST_LIMIT,
    )
    rate = figure(_TWINLAKE, samples, lambda sample: files / sample.cpu)
    elapsed = figure(_TWO, samples, lambda sample: files / sample.wall)
    return [
        CaseResult(
            case="iceberg-first",
            title=f"Iceberg metadata of {files:,} files from scratch",
            rows=(row, on_two, _memory(f"first conversion, {files:,} files", samples)),
            notes=(
                f"{rate.median:,.0f} files a CPU second by one process, {elapsed.median:,.0f} a "
                "second of the clock by two (at least 25,000 on two cores)",
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
    cold = [figure(side.name, samples, _metric("cold conversion")) for side in sides]
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
                Row(
                    what=f"{what} over {counts[0]:,} files, nothing in memory: CPU time",
                    unit="s",
                    ours=cold[1],
                    peer=cold[0],
                    bar=SIZE_BAR,
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
    # Not on a disk: a file in a large folder of some file systems is dearer than in a small one.
    quiet = replace(plan, data=_MEMORY) if os.access(_MEMORY, os.W_OK) else plan
    many, few = sizes.twin_commits, min(sizes.twin_commits, _PEER_COMMITS)
    spec = {"window": sizes.twin_window}
    ours = Side(name=_TWINLAKE, job=f"{_JOBS}:Rows", spec={**spec, "commits": many})
    peer = Side(name=_PEER, job=f"{_JOBS}:PeerRows", spec={**spec, "commits": few})
    short = Side(name=_SHORT, job=f"{_JOBS}:RowsOfShortHistory", spec={**spec, "commits": many})
    on_s3 = Side(name=_ON_S3, job=f"{_JOBS}:RowsOnS3", spec={**spec, "commits": many})
    has_server = find_binary() is not None
    samples: Samples = {
        **alternate([ours, short, *[on_s3] * has_server], quiet, min(plan.runs, _FEW_RUNS)),
        **alternate([peer], quiet, _ONCE),
    }
    what = f"{many:,} conversions"
    rows = [
        _growth(what, _TWINLAKE, sizes, samples, bar=FLAT_BAR),
        _growth(
            f"{what} but for the bytes of the metadata file",
            _TWINLAKE,
            sizes,
            samples,
            bar=OWN_FLAT_BAR,
            metric="{} without bytes",
        ),
        _growth(f"{what}, snapshots expiring", _SHORT, sizes, samples, bar=OWN_FLAT_BAR),
    ]
    if has_server:
        rows.append(_growth(f"{what} on S3", _ON_S3, sizes, samples, bar=OWN_FLAT_BAR))
    rows.append(_growth(f"{few:,} commits of PyIceberg", _PEER, sizes, samples))
    return [
        CaseResult(
            case="iceberg-commits",
            title=f"{many:,} commits, iceberg.sync() after each of them",
            rows=tuple(rows),
            notes=(
                f"the mean of {sizes.twin_window} after the first {sizes.twin_window}, and of the "
                f"last {sizes.twin_window}, taking turns on two tables; merging of manifests is "
                "part of it, and the share of one of the looks at all files that come now and then",
                "no snapshot expires, so that the metadata file lists them all; in memory, where "
                "there is such a file system",
                "with snapshots expiring: both tables ask for a history of 0.3 s, and the younger "
                "has three times as many commits behind it, so that both expire and clean up",
                "a metadata file is 700 KB by then, and another one of that size is deleted: what "
                "a plain copy of these files costs is taken off in the second row",
                f"on S3: {'a real server' if has_server else 'left out, make s3 builds the server'}"
                "; only this process is counted, not the server",
                "PyIceberg's append writes a small file as well",
            ),
            samples=samples,
        )
    ]


def _growth(
    what: str,
    side: str,
    sizes: Sizes,
    samples: Samples,
    *,
    bar: float | None = None,
    metric: str = "{}",
) -> Row:
    early = figure(side, samples, _metric(metric.format("early"), 1000))
    return Row(
        what=f"{what}, the last {sizes.twin_window}: CPU time of one",
        unit="ms",
        ours=figure(side, samples, _metric(metric.format("late"), 1000)),
        peer=replace(early, side="early ones"),
        bar=bar,
    )


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
            Side(name=_PEER, job=f"{_JOBS}:PeerFirst", spec={"path": folder}),
        ],
        plan,
    )
    samples = alternate(sides, plan)
    what = f"Iceberg metadata of {files:,} Parquet files"
    return CaseResult(
        case="iceberg-peer",
        title=f"{what}: iceberg.sync() and PyIceberg's add_files",
        rows=(_against(_PEER, f"{what}, add_files", samples), _memory(what, samples)),
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
    (peer,) = samples.keys() - {_TWINLAKE, _TWO}
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
