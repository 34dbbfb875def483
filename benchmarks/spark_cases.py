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
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.harness import Plan

_SQL: Final = Contestant(engine="twinlake SQL", worker=OURS)
_SQL_BAR: Final = 1.05
_TAKEOVER: Final = Contestant(engine="twinlake takeover", worker=OURS)
_DATA_SOURCE: Final = Contestant(engine="twinlake data source", worker=OURS)
_PARQUET: Final = Contestant(engine="Parquet", worker=OURS, spec={"bare": True})
_CHANGED_FILES: Final = 8
_PLAN_SECONDS: Final = 3.0
_SIZE_BAR: Final = 1.5
# Nine, so that no checkpoint is among them.
_ONE_ROWS: Final = 9
_APPEND_RUNS: Final = 3
_BATCHES: Final = 10
_BATCH_ROWS: Final = 20_000
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


def _sql(bench: Bench) -> list[CaseResult]:
    """A query and a MERGE in SQL against the same by ``scan`` and ``DeltaTable``."""
    sizes = bench.plan.sizes
    count, files = sizes.spark_rows, sizes.spark_files
    first, a_file = files // 2, count // files
    changed = sizes.spark_changed_rows
    works: dict[str, tuple[str, Mapping[str, Any], str]] = {
        "query": (
            "scan",
            {
                "table": bench.table(SparkTable(rows=count, files=files)),
                "where": f"id >= {first * a_file} and id < {(first + 1) * a_file}",
            },
            "scan(where=)",
        ),
        "merge": (
            "merge",
            {
                "table": bench.table(SparkTable(rows=changed, files=_CHANGED_FILES)),
                "rows": changed,
            },
            "DeltaTable.merge",
        ),
    }
    results = []
    for name, (work, spec, said) in works.items():
        samples = bench.rounds(work, spec, (BOTH[0], _SQL), thrown_away=_READS)
        what = f"{name} by sql over {said}"
        wall, cpu = (
            of_rounds(
                f"{what}: {shown}",
                samples,
                attrgetter(quantity),
                bar=_SQL_BAR,
                one=_SQL.engine,
                peer=OURS,
            )
            for shown, quantity in (("time", "wall"), ("CPU time", "cpu"))
        )
        bench.plan.say(f"  {what}: {wall.ratio:.2f}, CPU {cpu.ratio:.2f}")
        results.append(CaseResult(case="spark-sql", title=what, rows=(wall, cpu), samples=samples))
    return results


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


def _streams(bench: Bench) -> list[CaseResult]:
    """Micro-batches out of a table, and into one."""
    count = _BATCHES * _BATCH_ROWS
    full = bench.table(SparkTable(rows=count, files=_BATCHES))
    empty = bench.table(SparkTable(rows=0, files=0))
    what = f"{_BATCHES} micro-batches of {_BATCH_ROWS:,} rows"
    return [
        compare(
            bench, "spark-streams", f"{what} from a table", "stream from", {"table": full}, bar=1.0
        ),
        compare(
            bench,
            "spark-streams",
            f"{what} into a table",
            "stream into",
            {"table": empty, "files": full},
            bar=0.7,
        ),
    ]


def _milliseconds(metric: str) -> Callable[[Sample], float]:
    return lambda sample: sample.metrics[metric] * 1000


def _formats(bench: Bench) -> list[CaseResult]:
    """The same by other calls: those of code for Delta Spark, and a data source in Python."""
    count = bench.plan.sizes.spark_rows
    full = {"table": bench.table(SparkTable(rows=count, files=_CHANGED_FILES))}
    bars: dict[str, dict[str, float]] = {
        "append": {_TAKEOVER.engine: 1.05, _DATA_SOURCE.engine: 1.5},
        "full scan": {_TAKEOVER.engine: 1.05, _DATA_SOURCE.engine: 4.0},
        "filtered": {_TAKEOVER.engine: 1.05, _DATA_SOURCE.engine: 4.0},
    }
    specs: dict[str, dict[str, Any]] = {
        "append": {"rows": count, "table": bench.table(SparkTable(rows=0, files=0))},
        "full scan": full,
        "filtered": {**full, "where": f"id >= {count // 2} and id < {count // 2 + count // 1000}"},
    }
    results = []
    for work, spec in specs.items():
        who = (Contestant(engine=OURS, worker=OURS), _TAKEOVER, _DATA_SOURCE)
        thrown_away = THROWN_AWAY if work == "append" else _READS
        samples = bench.rounds(work, spec, who, thrown_away=thrown_away)
        what = f"{work} of {count:,} rows"
        rows = tuple(
            of_rounds(
                f"{what}, {engine}: CPU time over our own calls",
                samples,
                attrgetter("cpu"),
                bar=bar,
                one=engine,
                peer=OURS,
            )
            for engine, bar in bars[work].items()
        )
        bench.plan.say(f"  {what}: " + ", ".join(f"{row.ratio:.2f}" for row in rows))
        results.append(CaseResult(case="spark-formats", title=what, rows=rows, samples=samples))
    return results


SPARK_CASES: Final[dict[str, Callable[[Bench], list[CaseResult]]]] = {
    "spark-append": _append,
    "spark-partitioned-append": _partitioned_append,
    "spark-scan": _full_scan,
    "spark-selective": _selective,
    "spark-changes": _changes,
    "spark-delete": _delete,
    "spark-merge": _merge,
    "spark-optimize": _optimize,
    "spark-sql": _sql,
    "spark-one-row": _one_row,
    "spark-formats": _formats,
    "spark-streams": _streams,
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
