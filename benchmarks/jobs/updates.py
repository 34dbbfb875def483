"""Bring an open, listed table up to date by one commit of somebody else; then commit to it."""

from __future__ import annotations

import json
import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.jobs.commits import OUR_MODULES
from benchmarks.jobs.interface import Outcome

if TYPE_CHECKING:
    from twinlake import Table


class Ours:
    """``refresh()``, ``files()`` after it, and ``commit()``: seconds of each, the median."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.source = Path(spec["path"])
        self.path = Path(spec["scratch"], "table")
        self.updates: int = spec["updates"]
        self.commits: int = spec["commits"]
        self.seconds: dict[str, list[float]] = {"refresh": [], "list": [], "commit": []}

    def setup(self) -> None:
        from twinlake import Table

        shutil.copytree(self.source / "_delta_log", self.path / "_delta_log")
        self.table = Table.open(self.path, durable=False)
        self.before = len(self.table.files())

    def run(self) -> Table:
        table = self.table
        for number in range(self.updates):
            self._somebody_commits(table.version + 1, number)
            start = time.perf_counter()
            table = table.refresh()
            moved = time.perf_counter()
            table.files()
            self.seconds["refresh"].append(moved - start)
            self.seconds["list"].append(time.perf_counter() - moved)
        for number in range(self.commits):
            add = self._add(self.updates + number)
            start = time.perf_counter()
            table = table.commit("WRITE", [add])
            self.seconds["commit"].append(time.perf_counter() - start)
        return table

    def check(self, result: Table) -> Outcome:
        facts = {"files added": len(result.files()) - self.before}
        medians = {name: statistics.median(times) for name, times in self.seconds.items() if times}
        return Outcome(facts=facts, notes={"files before": self.before}, metrics=medians)

    def _add(self, number: int) -> Any:
        from twinlake.actions import AddFile

        stats = {"numRecords": 1, "minValues": {"id": number}, "maxValues": {"id": number}}
        return AddFile(
            path=f"part=p0/new-{number:05d}.parquet",
            partition_values={"part": "p0"},
            size=1000,
            modification_time=1_700_000_000_000,
            data_change=True,
            stats=json.dumps(stats),
        )

    def _somebody_commits(self, version: int, number: int) -> None:
        # Through a handle of this process the cache would know of the commit already.
        import msgspec

        info = {"timestamp": 1_700_000_000_000 + number, "operation": "WRITE"}
        lines = (
            json.dumps({"commitInfo": info}).encode(),
            msgspec.json.encode({"add": self._add(number)}),
        )
        path = self.path / "_delta_log" / f"{version:020d}.json"
        path.write_bytes(b"\n".join(lines) + b"\n")
