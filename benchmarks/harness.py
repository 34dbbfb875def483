"""A fresh process a side, in alternating order, and what the medians say of each other."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class WrongResult(Exception):
    """The sides did not do the same work, or one of them failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much of everything."""

    commits_of_table: int = 100
    adds_per_commit: int = 1_000
    large_adds_per_commit: int = 10_000
    commits: int = 1_000
    interval: int = 100
    small_files: int = 1_000
    updates: int = 20
    update_commits: int = 100
    wide_columns: int = 5_000
    footers: int = 4_000
    twin_files: int = 100_000
    twin_small_files: int = 1_000
    twin_huge_files: int = 1_000_000
    """Of the table that is converted for its peak of memory."""
    twin_appends: int = 20
    twin_commits: int = 1_000
    twin_window: int = 100
    """So many conversions at the end of a row are held against so many early ones."""
    real_files: int = 2_000
    """Parquet files that the peer reads as well."""
    real_commits: int = 100
    model: dict[str, int] = field(
        default_factory=lambda: {"writers": 3, "max_write_ops": 4, "max_compaction_ops": 2}
    )
    """Parameters of the large model."""
    tlc_models: int = 7
    """How many of the models that TLC explores as well."""
    rows: int = 1_000_000
    """Of tables that are read without Spark."""
    row_files: int = 10_000
    row_appends: int = 50
    rest_requests: int = 3_000
    """For one table, of a compiled client."""
    rest_snapshots: int = 20
    rest_many_snapshots: int = 1_000
    rest_appends: int = 50
    spark_rows: int = 4_000_000
    spark_changed_rows: int = 2_000_000
    """Of the tables that are deleted from and merged into."""
    spark_files: int = 200
    """Of the tables of which one file in a hundred is read."""
    spark_small_files: int = 64
    spark_large_table: int = 100_000
    spark_small_table: int = 100
    spark_appends: int = 50
    spark_commits: int = 1_000


FULL = Sizes()
QUICK = Sizes(
    adds_per_commit=100,
    large_adds_per_commit=1_000,
    commits=100,
    small_files=500,
    updates=10,
    footers=400,
    twin_files=10_000,
    twin_small_files=500,
    twin_huge_files=50_000,
    twin_appends=10,
    twin_commits=200,
    twin_window=50,
    real_files=200,
    real_commits=20,
    model={"writers": 2, "max_write_ops": 5, "max_compaction_ops": 0},
    rows=100_000,
    row_files=1_000,
    row_appends=10,
    rest_requests=1_000,
    rest_many_snapshots=200,
    rest_appends=10,
    spark_rows=400_000,
    spark_changed_rows=200_000,
    spark_large_table=10_000,
    spark_appends=20,
    spark_commits=200,
)
TINY = Sizes(
    spark_commits=5,
    commits_of_table=10,
    adds_per_commit=10,
    large_adds_per_commit=20,
    commits=10,
    interval=5,
    small_files=50,
    updates=2,
    update_commits=2,
    wide_columns=30,
    footers=20,
    twin_files=40,
    twin_small_files=20,
    twin_huge_files=50,
    twin_appends=3,
    twin_commits=12,
    twin_window=3,
    real_files=6,
    real_commits=3,
    model={"writers": 2, "max_write_ops": 4, "max_compaction_ops": 0},
    tlc_models=1,
    rows=2_000,
    row_files=20,
    row_appends=2,
    rest_requests=20,
    rest_snapshots=2,
    rest_many_snapshots=5,
    rest_appends=2,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a case needs to know of this run."""

    runs: int
    sizes: Sizes
    data: Path
    """Where tables are kept from run to run, and where scratch tables are made: one disk."""
    say: Callable[[str], None] = print


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A job and its spec under a name."""

    name: str
    job: str
    spec: Mapping[str, Any]
    prefix: tuple[str, ...] = ()
    """A command that the process is an argument of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one process measured. Seconds and megabytes."""

    wall: float
    cpu: float
    """User and system, all threads."""
    peak_mb: float
    base_mb: float
    """The peak before the clock started: the interpreter and the imports."""
    imports: float
    late_imports: list[str]
    """Modules that were imported under the clock all the same."""
    facts: dict[str, Any]
    notes: dict[str, Any]
    metrics: dict[str, float]
    breakdown: dict[str, Any] | None = None


Samples = Mapping[str, Sequence[Sample]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A quantity of one side over its runs."""

    side: str
    median: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table of ratios."""

    what: str
    unit: str
    ours: Figure
    peer: Figure
    bar: float | None = None
    """The highest ratio that passes; None where the ratio is only printed."""
    limit: float | None = None
    """The most that ours may be, where that is what counts and not the ratio."""
    ratios: tuple[float, ...] = ()
    """Of the single rounds, where the sides took turns in them."""

    @property
    def ratio(self) -> float:
        """Ours over the other."""
        return self.ours.median / self.peer.median if self.peer.median else float("inf")

    @property
    def best_ratio(self) -> float:
        """Best run over best run: what is left when other work disturbs the medians."""
        return self.ours.low / self.peer.low if self.peer.low else float("inf")

    @property
    def verdict(self) -> str:
        """``pass``, ``MISS``, or nothing where there is no bar."""
        if self.limit is not None:
            return "pass" if self.ours.median <= self.limit else "MISS"
        if self.bar is None:
            return ""
        return "pass" if self.ratio <= self.bar else "MISS"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """What a case has to show."""

    case: str
    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    breakdowns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    samples: Samples = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the registry of cases."""

    name: str
    run: Callable[[Plan], Sequence[CaseResult]]


def measure(side: Side, plan: Plan, *, profile: str | None = None) -> Sample:
    """One run of one side in a fresh process, with a scratch folder of its own."""
    with scratch_folder(plan.data) as scratch:
        spec = {**side.spec, "scratch": str(scratch), "profile": profile}
        worker = [sys.executable, "-m", "benchmarks.worker", side.job, json.dumps(spec)]
        command = [*side.prefix, *worker]
        done = subprocess.run(
            command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
    # Threads of a peer's runtime now and then abort a process that ends, after it has said all.
    if done.returncode and not (done.returncode < 0 and done.stdout.endswith("}\n")):
        raise WrongResult(f"{side.name} failed:\n{done.stderr.strip()}")
    return Sample(**json.loads(done.stdout.splitlines()[-1]))


def _environment() -> dict[str, str]:
    """Ours, but modules are compiled once and not anew by every process, as with any user."""
    return {name: it for name, it in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def rehearsed(sides: Sequence[Side], plan: Plan) -> tuple[Side, ...]:
    """The sides after a run that does not count, so that what they import late is known.

    A single run has to do without.
    """
    if plan.runs == 1:
        return tuple(sides)
    return tuple(
        replace(side, spec={**side.spec, "modules_seen": measure(side, plan).late_imports})
        for side in sides
    )


def alternate(sides: Sequence[Side], plan: Plan, runs: int | None = None) -> Samples:
    """All sides in turn, the order reversed every time; all must come to the same facts."""
    samples: dict[str, list[Sample]] = {side.name: [] for side in sides}
    for number in range(plan.runs if runs is None else runs):
        for side in sides if number % 2 == 0 else reversed(sides):
            samples[side.name].append(measure(side, plan))
    check_same(samples)
    return samples


def check_same(samples: Samples) -> None:
    """Raise if any two runs disagree about what they found or made."""
    found = [(name, sample.facts) for name, taken in samples.items() for sample in taken]
    for name, facts in found[1:]:
        first, expected = found[0]
        differing = [
            f"  {key}: {expected.get(key)!r} in {first}, {facts.get(key)!r} in {name}"
            for key in sorted(expected.keys() | facts.keys())
            if expected.get(key) != facts.get(key)
        ]
        if differing:
            raise WrongResult("\n".join(["The sides disagree:", *differing]))


def figure(side: str, samples: Samples, quantity: Callable[[Sample], float]) -> Figure:
    """Median and range of a quantity."""
    values = [quantity(sample) for sample in samples[side]]
    return Figure(
        side=side,
        median=statistics.median(values),
        low=min(values),
        high=max(values),
        runs=len(values),
    )


def java() -> str | None:
    """The Java VM to use."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")


@contextmanager
def scratch_folder(data: Path) -> Iterator[Path]:
    """A folder that is gone afterwards."""
    data.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="scratch-", dir=data))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
