"""The Spark benchmarks by name, in the order they run: one process a side, warm, taking turns."""

from __future__ import annotations

import time
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import CaseResult, Row, Sample
from benchmarks.spark_process import OURS, THEIRS, workers
from benchmarks.spark_rounds import (
    BOTH,
    THROWN_AWAY,
    Bench,
    Contestant,
    compare,
    of_rounds,
    spread,
    where_it_goes,
)
from benchmarks.spark_tables import SELECTIVE, SparkTable, appended, fabricated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.harness import Plan

_PARQUET: Final = Contestant(engine="Parquet", worker=OURS, spec={"bare": True})
_CHANGED_FILES: Final = 8
_PLAN_SECONDS: Final = 3.0
_SIZE_BAR: Final = 1.5
# Nine, so that no checkpoint is among them.
_ONE_ROWS: Final = 9
_APPEND_RUNS: Final = 3
_APPENDED_ROWS: Final = 100
_FEED_BAR: Final = 0.6
_FEED_LOG_SECONDS: Final = 0.2
# Reads are short, and the JVM compiles them in more than two.
_READS: Final = 5


def _append(bench: Bench) -> list[CaseResult]:
    """Against Delta, and against files without a table."""
    count = bench.plan.sizes.spark_rows
    what = f"append {count:,} rows x 7 columns"
    spec = {"rows": count, "table": bench.table(SparkTable(rows=0, files=0))}
    samples = bench.rounds("append", spec, (*BOTH, _PARQUET))
    wall, cpu = attrgetter("wall"), attrgetter("cpu")
    over = "over plain Parquet (moonshot)"
    rows = (
        of_rounds(f"{what}: time", samples, wall, bar=1.0),
        of_rounds(f"{what}: CPU time", samples, cpu),
        of_rounds(f"{what}: time {over}", samples, wall, bar=1.1, peer="Parquet"),
        of_rounds(f"{what}: CPU time {over}", samples, cpu, peer="Parquet"),
    )
    bench.plan.say(f"  {what}: " + ", ".join(f"{row.ratio:.2f}" for row in rows))
    missed = any(row.verdict == "MISS" for row in rows)
    notes, breakdowns = where_it_goes(bench, "append", spec) if missed else ((), {})
    return [
        CaseResult(
            case="spark-append",
            title=what,
            rows=rows,
            notes=notes,
            breakdowns=breakdowns,
            samples=samples,
        )
    ]


def _partitioned_append(bench: Bench) -> list[CaseResult]:
    count = bench.plan.sizes.spark_rows
    spec = {
        "rows": count,
        "table": bench.table(SparkTable(rows=0, files=0, partition_by="kind")),
    }
    what = f"append {count:,} rows to 20 partitions"
    return [compare(bench, "spark-partitioned-append", what, "append", spec, bar=1.0)]


def _full_scan(bench: Bench) -> list[CaseResult]:
    count = bench.plan.sizes.spark_rows
    spec = {"table": bench.table(SparkTable(rows=count, files=_CHANGED_FILES))}
    what = f"full scan of {count:,} rows"
    return [compare(bench, "spark-scan", what, "full scan", spec, bar=1.0, thrown_away=_READS)]


def _selective(bench: Bench) -> list[CaseResult]:
    """One file in a hundred, chosen by partition or by statistics, said in two ways."""
    count, files = bench.plan.sizes.spark_rows, bench.plan.sizes.spark_files
    wanted = max(1, files // SELECTIVE)
    first, last = files // 2, files // 2 + wanted
    a_file = count // files
    tables = {
        "partition": (
            SparkTable(rows=count, files=files, partition_by="bucket"),
            f"bucket >= {first} and bucket < {last}",
        ),
        "statistics": (
            SparkTable(rows=count, files=files),
            f"id >= {first * a_file} and id < {last * a_file}",
        ),
    }
    return [
        compare(
            bench,
            "spark-selective",
            f"{wanted} of {files} files by {by}, {said}",
            work,
            {"table": bench.table(recipe), "where": where},
            bar=1.0,
            thrown_away=_READS,
        )
        for by, (recipe, where) in tables.items()
        for work, said in (("scan", "scan(where=)"), ("filtered", "toDF().where()"))
    ]


def _changes(bench: Bench) -> list[CaseResult]:
    """A feed of many small commits: what it costs is the log and the list of files."""
    commits = bench.plan.sizes.spark_commits
    table = str(appended(bench.plan.data, commits, _APPENDED_ROWS))
    what = f"change feed over {commits:,} appends"
    samples = bench.rounds("changes", {"table": table}, thrown_away=_READS)
    ours = (Contestant(engine=OURS, worker=OURS),)
    logs = bench.rounds("read log", {"table": table}, ours)
    log_part = spread(OURS, [sample.metrics["log"] for sample in logs[OURS]])
    rows = (
        of_rounds(f"{what}: time", samples, attrgetter("wall"), bar=_FEED_BAR),
        of_rounds(f"{what}: CPU time", samples, attrgetter("cpu"), bar=_FEED_BAR),
    )
    bench.plan.say(f"  {what}: " + ", ".join(f"{row.ratio:.2f}" for row in rows))
    bench.plan.say(f"  of it the log: {log_part.median:.3f} CPU seconds")
    missed = any(row.verdict == "MISS" for row in rows)
    notes, breakdowns = where_it_goes(bench, "changes", {"table": table}) if missed else ((), {})
    note = f"our log part: {log_part.median:.3f} CPU seconds, where {_FEED_LOG_SECONDS} are allowed"
    return [
        CaseResult(
            case="spark-changes",
            title=what,
            rows=rows,
            notes=(note, *notes),
            breakdowns=breakdowns,
            samples=samples,
        )
    ]


def _delete(bench: Bench) -> list[CaseResult]:
    count = bench.plan.sizes.spark_changed_rows
    recipe = SparkTable(rows=count, files=_CHANGED_FILES, vectors=True)
    spec = {"table": bench.table(recipe), "where": "id % 100 = 7"}
    what = f"delete 1% of {count:,} rows, deletion vectors"
    return [compare(bench, "spark-delete", what, "delete", spec, bar=0.8)]


def _merge(bench: Bench) -> list[CaseResult]:
    count = bench.plan.sizes.spark_changed_rows
    return [
        compare(
            bench,
            "spark-merge",
            f"merge 10% into {count:,} rows, {how}",
            "merge",
            {
                "table": bench.table(SparkTable(rows=count, files=_CHANGED_FILES, vectors=vectors)),
                "rows": count,
            },
            bar=0.8,
        )
        for how, vectors in (("copy on write", False), ("deletion vectors", True))
    ]


def _optimize(bench: Bench) -> list[CaseResult]:
    count, files = bench.plan.sizes.spark_changed_rows // 2, bench.plan.sizes.spark_small_files
    spec = {"table": bench.table(SparkTable(rows=count, files=files))}
    what = f"optimize {files} files of {count:,} rows"
    return [compare(bench, "spark-optimize", what, "optimize", spec, bar=0.9)]


def _one_row(bench: Bench) -> list[CaseResult]:
    table = bench.table(SparkTable(rows=0, files=0))
    sources = (("sql", 'spark.sql("select ...")', 0.5), ("list", "createDataFrame([...])", None))
    return [
        compare(
            bench,
            "spark-one-row",
            f"append one row from {said}",
            "one row",
            {"table": table, "source": source, "appends": _ONE_ROWS},
            bar=bar,
            quantity=_milliseconds("each"),
            unit="ms",
        )
        for source, said, bar in sources
    ]


def _memory(bench: Bench) -> list[CaseResult]:
    """What both processes hold and held, after all that was run in them so far."""
    found = {name: worker.ask(do="memory") for name, worker in bench.workers.items()}

    def row(what: str, quantity: Callable[[dict[str, Any]], float], bar: float | None) -> Row:
        ours, theirs = (spread(side, [quantity(found[side])]) for side in (OURS, THEIRS))
        return Row(what=what, unit="MB", ours=ours, peer=theirs, bar=bar)

    rows = (
        row("memory: heap after GC + Python's peak", lambda m: m["heap"] + m["python"], 1.0),
        row("memory: JVM heap after GC", lambda m: m["heap"], None),
        row("memory: Python's peak", lambda m: m["python"], None),
        row("memory: peak of Python workers still alive", lambda m: m["workers"], None),
    )
    notes = (
        "Python's peak is that of the driver; workers share pages with the daemon they come from",
    )
    return [
        CaseResult(case="spark-memory", title="memory of the Spark sides", rows=rows, notes=notes)
    ]


def _plan_scan(bench: Bench) -> list[CaseResult]:
    files = bench.plan.sizes.spark_large_table
    spec = {"table": str(fabricated(bench.plan.data, files))}
    what = f"plan a scan of {files:,} files"
    samples = bench.rounds("plan", spec)
    rows = (
        of_rounds(f"{what}: CPU time", samples, attrgetter("cpu"), limit=_PLAN_SECONDS),
        of_rounds(f"{what}: time", samples, attrgetter("wall")),
    )
    bench.plan.say(f"  {what}: {rows[0].ours.median:.2f} CPU seconds")
    notes, breakdowns = where_it_goes(bench, "plan", spec)
    parts = ("python", "jvm", "workers")
    split = {p: spread(p, [s.metrics[f"cpu_{p}"] for s in samples[OURS]]).median for p in parts}
    told = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in split.items())
    return [
        CaseResult(
            case="spark-plan",
            title=what,
            rows=rows,
            notes=(f"our CPU time: {told}", *notes),
            breakdowns=breakdowns,
            samples=samples,
        )
    ]


def _appends(bench: Bench) -> list[CaseResult]:
    sizes = bench.plan.sizes
    files = {"large": sizes.spark_large_table, "small": sizes.spark_small_table}
    tables = {name: str(fabricated(bench.plan.data, count)) for name, count in files.items()}
    spec = {"tables": tables, "appends": sizes.spark_appends}
    runs = min(_APPEND_RUNS, bench.plan.runs)
    samples = bench.rounds("appends", spec, runs=runs, thrown_away=min(1, THROWN_AWAY))
    what = f"append to {files['large']:,} files"

    def by_size(side: str, kind: str, bar: float | None) -> Row:
        large, small = (
            [_milliseconds(f"{name}{kind}")(sample) for sample in samples[side]]
            for name in ("large", "small")
        )
        return Row(
            what=f"{what} over {files['small']}, {side}{kind and ', commits with a checkpoint'}",
            unit="ms",
            ours=spread(f"{files['large']:,} files", large),
            peer=spread(f"{files['small']} files", small),
            bar=bar,
            ratios=tuple(a / b for a, b in zip(large, small, strict=True)),
        )

    rows = (
        by_size(OURS, "", _SIZE_BAR),
        by_size(OURS, " checkpoint", None),
        by_size(THEIRS, "", None),
        by_size(THEIRS, " checkpoint", None),
        of_rounds(what, samples, _milliseconds("large"), unit="ms"),
    )
    bench.plan.say(f"  {rows[0].what}: {rows[0].ratio:.2f}")
    note = f"medians of {sizes.spark_appends} appends of one row, of {runs} rounds"
    title = "appends to large and small tables"
    return [
        CaseResult(case="spark-appends", title=title, rows=rows, notes=(note,), samples=samples)
    ]


def _milliseconds(metric: str) -> Callable[[Sample], float]:
    return lambda sample: sample.metrics[metric] * 1000


SPARK_CASES: Final[dict[str, Callable[[Bench], list[CaseResult]]]] = {
    "spark-append": _append,
    "spark-partitioned-append": _partitioned_append,
    "spark-scan": _full_scan,
    "spark-selective": _selective,
    "spark-changes": _changes,
    "spark-delete": _delete,
    "spark-merge": _merge,
    "spark-optimize": _optimize,
    "spark-one-row": _one_row,
    # Before the tables that have so many files: their listings are kept in memory.
    "spark-memory": _memory,
    "spark-plan": _plan_scan,
    "spark-appends": _appends,
}


def run_spark(plan: Plan, names: Sequence[str]) -> list[CaseResult]:
    """The chosen cases, all in the same two processes."""
    results: list[CaseResult] = []
    with workers(plan.data) as sides:
        bench = Bench(plan=plan, workers=sides)
        for name in names:
            start = time.perf_counter()
            results += SPARK_CASES[name](bench)
            plan.say(f"{name}: {time.perf_counter() - start:.0f} s")
    return results
