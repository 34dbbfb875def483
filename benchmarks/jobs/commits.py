"""Many small commits through one table handle."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.jobs.interface import Outcome
from benchmarks.jobs.listing import OUR_MODULES as LISTING_MODULES

if TYPE_CHECKING:
    from collections.abc import Callable

OUR_MODULES = (
    *LISTING_MODULES,
    "twinlake.commit.row_tracking",
    "twinlake.log.checkpoint.columns",
    "twinlake.log.checkpoint.writer",
    "twinlake.log.checksum",
)
INTERVAL = "delta.checkpointInterval"
STATS = '{"numRecords":10,"minValues":{"id":0},"maxValues":{"id":9},"nullCount":{"id":0}}'


class _Commits:
    def __init__(self, spec: dict[str, Any]) -> None:
        self.path: str = spec["scratch"] + "/table"
        self.kind: str = spec["kind"]
        self.count: int = spec["commits"]
        interval: int | None = spec["interval"]
        self.configuration = {} if interval is None else {INTERVAL: str(interval)}
        self.durable: bool = spec.get("durable", False)
        self.parts: dict[str, float] = {}

    def run(self) -> None:
        steps: dict[str, Callable[[int], None]] = {"properties": self.alter, "adds": self.add}
        step = steps[self.kind]
        for number in range(self.count):
            step(number)

    def alter(self, number: int) -> None:
        """Commit a property."""
        raise NotImplementedError

    def add(self, number: int) -> None:
        """Commit a file."""
        raise NotImplementedError

    def check(self, result: object) -> Outcome:
        """Judged by one reader for both sides, from the log alone."""
        del result
        import pyarrow as pa
        import pyarrow.compute as pc
        from deltalake import DeltaTable

        table = DeltaTable(self.path)
        files = pa.table(table.get_add_actions(flatten=True))
        facts = {
            "version": table.version(),
            "files": len(files),
            "bytes": pc.sum(files["size_bytes"]).as_py(),
            "records": pc.sum(files["num_records"]).as_py(),
            "counter": table.metadata().configuration.get("bench.counter"),
        }
        names = [item.name for item in Path(self.path, "_delta_log").iterdir()]
        kinds = Counter(name if name[0] == "_" else name.split(".", 1)[1] for name in names)
        return Outcome(facts=facts, notes={"written": dict(kinds)}, metrics=self.parts)


class Ours(_Commits):
    """``set_properties`` or ``commit``, which return the table at its new version."""

    modules = OUR_MODULES

    def setup(self) -> None:
        from twinlake import Table

        self.table = Table.create(
            self.path, "id BIGINT", properties=self.configuration, durable=self.durable
        )

    def alter(self, number: int) -> None:
        self.table = self.table.set_properties({"bench.counter": str(number)})

    def add(self, number: int) -> None:
        from twinlake.actions import AddFile

        add = AddFile(
            path=f"part-{number:05d}.parquet",
            partition_values={},
            size=1000 + number,
            modification_time=1_700_000_000_000,
            data_change=True,
            stats=STATS,
        )
        self.table = self.table.commit("WRITE", [add], parameters={"mode": "Append"})


class Peer(_Commits):
    """``alter.set_table_properties`` or ``create_write_transaction``.

    The latter leaves the handle at its version, and every further commit through it then checks
    all versions since for conflicts; so the handle is moved on after each, which is the faster use.
    """

    modules = ("deltalake", "deltalake.transaction")

    def setup(self) -> None:
        from deltalake import DeltaTable, Field, Schema
        from deltalake.schema import PrimitiveType

        self.schema = Schema([Field("id", PrimitiveType("long"))])
        self.table = DeltaTable.create(
            self.path, schema=self.schema, configuration=dict(self.configuration)
        )

    def alter(self, number: int) -> None:
        properties = {"bench.counter": str(number)}
        self.table.alter.set_table_properties(properties, raise_if_not_exists=False)

    def add(self, number: int) -> None:
        from deltalake.transaction import AddAction

        add = AddAction(
            path=f"part-{number:05d}.parquet",
            size=1000 + number,
            partition_values={},
            modification_time=1_700_000_000_000,
            data_change=True,
            stats=STATS,
        )
        start = time.perf_counter()
        self.table.create_write_transaction([add], "append", self.schema, [])
        written = time.perf_counter()
        self.table.update_incremental()
        spent = {"commit": written - start, "update": time.perf_counter() - written}
        self.parts = {name: self.parts.get(name, 0.0) + spent[name] for name in spent}
