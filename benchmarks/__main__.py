"""``python -m benchmarks``: a table of ratios, ``latest.json`` and ``latest.png``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console

from benchmarks.cases import CASES
from benchmarks.harness import FULL, QUICK, ROOT, CaseResult, Plan, WrongResult
from benchmarks.report import machine, print_results, write_json, write_plot
from benchmarks.spark_cases import SPARK_CASES, run_spark
from benchmarks.spark_process import SparkMissing

RESULTS = ROOT / "benchmarks" / "results"
PARTIAL = ROOT / "benchmarks" / "out"
_PARTS = ("iceberg", "rest", "rows", "verify")
"""Parts whose cases begin with their name."""
GROUPS = {
    "log": tuple(name for name in CASES if name.partition("-")[0] not in _PARTS),
    **{part: tuple(name for name in CASES if name.startswith(f"{part}-")) for part in _PARTS},
    "spark": tuple(SPARK_CASES),
}
"""What may be said for all the cases of a part."""


@click.command()
@click.option(
    "--only",
    type=click.Choice([*GROUPS, *CASES, *SPARK_CASES]),
    multiple=True,
    help="Run these cases, or all cases of a part, only.",
)
@click.option("--runs", type=click.IntRange(1), default=7, show_default=True, help="Runs a side.")
@click.option("--quick", is_flag=True, help="Tables and loops a tenth of the size.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where latest.json and latest.png go; by default benchmarks/results for a whole run and "
    "benchmarks/out for a partial one.",
)
def main(only: tuple[str, ...], runs: int, quick: bool, out: Path | None) -> None:
    """Compare with the peers, a fresh process a side. A missed bar is reported, not an error."""
    console = Console(width=None if sys.stdout.isatty() else 160)

    def say(text: str) -> None:
        console.print(text, highlight=False, markup=False)
        # Into a file too: a whole run takes minutes.
        console.file.flush()

    plan = Plan(
        runs=runs,
        sizes=QUICK if quick else FULL,
        data=ROOT / "benchmarks" / "data",
        say=say,
    )
    about = {**machine(), "runs": runs, "quick": quick}
    chosen = {name for given in only or GROUPS for name in GROUPS.get(given, (given,))}
    results: list[CaseResult] = []
    try:
        for name, case in CASES.items():
            if name in chosen:
                start = time.perf_counter()
                results += case.run(plan)
                plan.say(f"{name}: {time.perf_counter() - start:.0f} s")
        if on_spark := [name for name in SPARK_CASES if name in chosen]:
            results += run_spark(plan, on_spark)
    except SparkMissing as error:
        plan.say(f"the Spark part did not run: {error}")
    except WrongResult as error:
        console.print(f"wrong result: {error}", markup=False, highlight=False)
        sys.exit(1)
    print_results(results, about, console)
    partial = quick or bool(only)
    folder = out or (PARTIAL if partial else RESULTS)
    write_json(folder / "latest.json", results, about)
    write_plot(folder / "latest.png", results, about)
    plan.say(f"written to {folder}")


if __name__ == "__main__":
    main()
