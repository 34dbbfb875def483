"""The benchmarks run, both sides agree, and the results have their shape. Nothing is timed here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from benchmarks.cases import CASES
from benchmarks.harness import TINY, Figure, Plan, Row, Sample, WrongResult, check_same
from benchmarks.report import machine, print_results, write_json, write_plot
from tests.support.servers.s3 import find_binary

if TYPE_CHECKING:
    from pathlib import Path

BARS = {
    "json": [1.0, 1.5],
    "checkpoint": [1.0, 1.5, 1.0, 1.5],
    "large": [1.0, 1.5],
    "properties": [1.0],
    "adds": [1.0],
    "update": [1.5],
    "compat-rules": [],
    "footers": [],
    "import": [],
    "rows-read": [1.05, 1.05],
    "rows-vectors": [1.3],
    "rows-lookup": [],
    "rows-append": [1.0],
    "rows-merge": [1.0],
    "rows-stream": [],
    "iceberg-first": [],
    "iceberg-append": [1.5, 1.5],
    # On S3 where there is a server.
    "iceberg-commits": [1.5, 1.2, 1.2, *[1.2] * (find_binary() is not None)],
    "iceberg-memory": [],
    "iceberg-peer": [],
    "rest-load": [1 / 3] * 3,
    "rest-snapshots": [],
    "rest-append": [1.0, 1.5],
    "rest-large": [1.5, 1.5],
    "verify-seed": [],
    "verify-large": [],
    "verify-tlc": [0.2],
}


def test_every_case_has_its_bars() -> None:
    assert list(CASES) == list(BARS)


# The others are these in another size and with another action, or need a tool of their own.
OTHERS = (
    "large",
    "properties",
    "iceberg-memory",
    "rest-load",
    "rest-snapshots",
    "rest-append",
    "rest-large",
    "verify-tlc",
)


@pytest.mark.process
@pytest.mark.parametrize("name", [name for name in BARS if name not in OTHERS])
def test_case_in_a_tiny_size(name: str, tmp_path: Path) -> None:
    plan = Plan(runs=1, sizes=TINY, data=tmp_path / "data")
    results = CASES[name].run(plan)
    rows = [row for result in results for row in result.rows]
    assert [row.bar for row in rows if row.bar is not None] == BARS[name]
    assert all(row.ratio > 0 for row in rows)
    assert all(row.verdict in ("pass", "MISS") for row in rows if row.bar is not None)
    for result in results:
        for side, samples in result.samples.items():
            assert [s.peak_mb >= s.base_mb > 0 for s in samples] == [True], side
        for breakdown in result.breakdowns.values():
            assert sum(breakdown["phases"].values()) > 0
    # Scratch folders are gone; the tables stay for the next run.
    assert not list(plan.data.glob("scratch-*"))

    about = machine()
    write_json(tmp_path / "latest.json", results, about)
    write_plot(tmp_path / "latest.png", results, about)
    console = Console(width=160, record=True, quiet=True)
    print_results(results, about, console)
    written = json.loads((tmp_path / "latest.json").read_bytes())
    assert written["machine"]["packages"].keys() >= {"twinlake", "deltalake", "pyarrow"}
    assert [len(case["rows"]) for case in written["cases"]] == [len(r.rows) for r in results]
    assert (tmp_path / "latest.png").exists() == bool(BARS[name])


def _sample(**facts: int) -> Sample:
    return Sample(
        wall=1.0,
        cpu=1.0,
        peak_mb=1.0,
        base_mb=1.0,
        imports=0.0,
        late_imports=[],
        facts=dict(facts),
        notes={},
        metrics={},
    )


def test_sides_that_disagree_are_an_error() -> None:
    check_same({"ours": [_sample(files=3)], "theirs": [_sample(files=3)]})
    with pytest.raises(WrongResult, match="files: 3 in ours, 4 in theirs"):
        check_same({"ours": [_sample(files=3)], "theirs": [_sample(files=4)]})


@pytest.mark.parametrize(
    ("ours", "bar", "verdict"),
    [(1.0, 1.0, "pass"), (1.01, 1.0, "MISS"), (1.5, 1.5, "pass"), (9.0, None, "")],
)
def test_verdict(ours: float, bar: float | None, verdict: str) -> None:
    def figure(median: float) -> Figure:
        return Figure(side="", median=median, low=median, high=median, runs=1)

    row = Row(what="", unit="s", ours=figure(ours), peer=figure(1.0), bar=bar)
    assert row.verdict == verdict
