"""The rules on a wide schema, and the footers of many files."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.compat_tables import COMPAT, PROPERTIES, wide_ddl
from benchmarks.jobs.commits import OUR_MODULES
from benchmarks.jobs.interface import Outcome

if TYPE_CHECKING:
    from twinlake.compat import Report


class Rules:
    """What a commit that adds a column costs: reading the schema, and the rules. CPU seconds."""

    modules = (*OUR_MODULES, "twinlake.compat")

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path = Path(spec["scratch"], "table")
        self.columns: int = spec["columns"]
        self.rounds: int = spec["rounds"]
        self.seconds: dict[str, list[float]] = {"schema": [], "rules": []}

    def setup(self) -> None:
        from twinlake import Table

        table = Table.create(
            self.path, wide_ddl(self.columns), properties=PROPERTIES, durable=False
        )
        self.versions = [table]
        for number in range(self.rounds):
            self.versions.append(self.versions[-1].add_column(f"new{number} INT"))

    def run(self) -> list[int]:
        from twinlake.compat import State, Subject, evaluate_rules, find_compat

        compat = find_compat(COMPAT)
        broken = []
        before = None
        for table in self.versions:
            # A copy that knows nothing yet of its schema: a commit meets each schema once.
            metadata = table.metadata.with_schema(table.schema)
            start = time.process_time()
            _ = metadata.schema
            read = time.process_time()
            after = State(metadata=metadata, protocol=table.protocol)
            report = evaluate_rules(Subject(after=after, before=before), compat)
            judged = time.process_time()
            self.seconds["schema"].append(read - start)
            self.seconds["rules"].append(judged - read)
            broken.append(len(report.violations))
            before = after
        return broken

    def check(self, result: list[int]) -> Outcome:
        if any(result):
            raise ValueError(f"rules are broken where none should be: {result}")
        # The first has nothing before it and is cheaper.
        metrics = {name: statistics.median(found[1:]) for name, found in self.seconds.items()}
        return Outcome(facts={"judged": len(result)}, metrics=metrics)


class Ours:
    """``check(files=True)``: every rule, every file."""

    modules = (*OUR_MODULES, "twinlake.table.operations.check", "twinlake.log.footer.nodes")

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path: str = spec["path"]

    def setup(self) -> None:
        from twinlake import Table

        self.table = Table.open(self.path)
        self.table.files()

    def run(self) -> Report:
        return self.table.check(COMPAT, files=True)

    def check(self, result: Report) -> Outcome:
        kept = result.ok and any(rule.startswith("ICV2") for rule in result.rules)
        return Outcome(facts={"files": result.files, "good": result.files if kept else 0})


class Peer:
    """pyarrow: the schema of each file, and whether each of its fields has an id."""

    modules = ("pyarrow", "pyarrow.parquet")

    def __init__(self, spec: dict[str, Any]) -> None:
        self.path = Path(spec["path"])

    def setup(self) -> None:
        self.files = sorted(str(path) for path in self.path.glob("*.parquet"))

    def run(self) -> int:
        import pyarrow.parquet as pq

        return sum(_has_ids(pq.read_schema(file)) for file in self.files)

    def check(self, result: int) -> Outcome:
        return Outcome(facts={"files": len(self.files), "good": result})


def _has_ids(fields: Any) -> bool:
    import pyarrow as pa

    for field in fields:
        if b"PARQUET:field_id" not in (field.metadata or {}):
            return False
        kind = field.type
        inner: list[Any] = []
        if pa.types.is_map(kind):
            inner = [kind.key_field, kind.item_field]
        elif pa.types.is_list(kind):
            inner = [kind.value_field]
        elif pa.types.is_struct(kind):
            inner = list(kind)
        if not _has_ids(inner):
            return False
    return True
