"""Open a table and list all its files, statistics as columns."""

from __future__ import annotations

import zlib
from typing import Any

from benchmarks.jobs.interface import Outcome

# Modules twinlake imports only when they are needed; here they are needed.
OUR_MODULES = (
    "twinlake",
    "pyarrow.compute",
    "pyarrow.json",
    "pyarrow.parquet",
    # Arrow looks for it when it first makes an array of Python values.
    "dateutil.relativedelta",
    "twinlake.log.checkpoint.reader",
    "twinlake.log.commit_decoder",
    "twinlake.log.typed_files",
    "twinlake.log.reconcile",
)


class Ours:
    """``Table.open(path).files()``."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path: str = spec["path"]

    def setup(self) -> None:
        """Nothing: the table is there."""

    def run(self) -> Any:
        import twinlake

        return twinlake.Table.open(self.path).files()

    def check(self, result: Any) -> Outcome:
        import pyarrow.compute as pc

        columns = {
            "path": result["path"],
            "size": result["size"],
            "records": result["num_records"],
            "partition": pc.struct_field(result["partition_values"], "part"),
        }
        for name, kind in (("min", "min_values"), ("max", "max_values")):
            for column in ("id", "name", "amount", "ts", "d"):
                columns[f"{name}.{column}"] = pc.struct_field(result["stats"], [kind, column])
        columns["nulls.name"] = pc.struct_field(result["stats"], ["null_count", "name"])
        return Outcome(facts=_facts(columns))


class Peer:
    """``DeltaTable(path).get_add_actions(flatten=True)``."""

    modules = ("deltalake",)

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path: str = spec["path"]

    def setup(self) -> None:
        """Nothing: the table is there."""

    def run(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(self.path).get_add_actions(flatten=True)

    def check(self, result: Any) -> Outcome:
        import pyarrow as pa

        table = pa.table(result)
        columns = {
            "path": table["path"],
            "size": table["size_bytes"],
            "records": table["num_records"],
            "partition": table["partition.part"],
            "nulls.name": table["null_count.name"],
        }
        for kind in ("min", "max"):
            for column in ("id", "name", "amount", "ts", "d"):
                columns[f"{kind}.{column}"] = table[f"{kind}.{column}"]
        return Outcome(facts=_facts(columns))


def _facts(columns: dict[str, Any]) -> dict[str, Any]:
    """What both sides must agree on, whatever order they list the files in."""
    import pyarrow as pa
    import pyarrow.compute as pc

    paths = columns["path"].cast(pa.binary())
    facts: dict[str, Any] = {
        "files": len(paths),
        "paths": sum(map(zlib.crc32, (path.as_py() for chunk in paths.chunks for path in chunk))),
        "partitions": pc.count_distinct(columns["partition"]).as_py(),
    }
    for name in ("size", "records", "nulls.name", "min.id", "max.id"):
        facts[f"sum of {name}"] = pc.sum(columns[name]).as_py()
    for name in sorted(columns):
        if name.startswith(("min.", "max.")):
            ends = pc.min_max(columns[name]).as_py()
            facts[name] = [str(ends["min"]), str(ends["max"]), columns[name].null_count]
    return facts
