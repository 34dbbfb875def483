"""Rows read and written by libraries, in a process without Spark."""

from __future__ import annotations

from typing import Any

from benchmarks.jobs.interface import Outcome
from benchmarks.row_tables import COLUMNS, rows

_OURS = (
    "twinlake.table",
    "twinlake.table.rows.row_scan",
    "twinlake.table.rows.merge",
    "twinlake.table.rows.write",
    "twinlake.files.data_file_reader",
    "twinlake.files.data_file_writer",
    "twinlake.schema.predicates.parser",
    "pyarrow.parquet",
    "pyarrow.acero",
    "pyroaring",
)
_PEER = ("deltalake", "deltalake.writer", "pyarrow.dataset", "pyarrow.parquet")


class _Read:
    def __init__(self, spec: dict[str, Any]) -> None:
        self.path: str = spec["path"]
        self.where: str | None = spec.get("where")
        self.deleted: float = spec.get("deleted", 0.0)
        self.sums: bool = spec.get("sums", True)
        self.times: int = spec.get("times", 1)

    def read(self) -> Any:
        """The rows."""
        raise NotImplementedError

    def run(self) -> Any:
        for _ in range(self.times):
            found = self.read()
        return found

    def check(self, result: Any) -> Outcome:
        """Both sides have the same rows."""
        import pyarrow.compute as pc

        # The table from which a part was deleted is held against the whole one.
        facts = {
            "rows": round(result.num_rows / (1 - self.deleted)),
            "columns": result.num_columns,
        }
        if self.sums:
            facts["sum"] = pc.sum(result["id"]).as_py()
        return Outcome(facts=facts)


class ReadOurs(_Read):
    """``Table.to_arrow``."""

    modules = _OURS

    def setup(self) -> None:
        from twinlake import Table

        self.table = Table.open(self.path)
        # As delta-rs does when it opens a table.
        self.table.files()

    def read(self) -> Any:
        return self.table.to_arrow(where=self.where)


class ReadPeer(_Read):
    """``DeltaTable.to_pyarrow_table``."""

    modules = _PEER

    def setup(self) -> None:
        from deltalake import DeltaTable

        self.table = DeltaTable(self.path)

    def read(self) -> Any:
        return self.table.to_pyarrow_table()


class ReadDataset(_Read):
    """``pyarrow.dataset`` on the same files."""

    modules = _PEER

    def setup(self) -> None:
        from deltalake import DeltaTable

        self.files = DeltaTable(self.path).file_uris()

    def read(self) -> Any:
        import pyarrow.dataset as ds

        return ds.dataset(self.files, format="parquet").to_table()


class Stream(_Read):
    """``Table.to_batches``, each batch dropped when the next one comes."""

    modules = _OURS

    def setup(self) -> None:
        from twinlake import Table

        self.table = Table.open(self.path)

    def run(self) -> Any:
        return sum(batch.num_rows for batch in self.table.to_batches())

    def check(self, result: Any) -> Outcome:
        return Outcome(facts={"rows": result})


class _Write:
    def __init__(self, spec: dict[str, Any]) -> None:
        self.path: str = spec["scratch"] + "/table"
        self.count: int = spec["rows"]
        self.appends: int = spec.get("appends", 1)
        self.into: int = spec.get("into", 0)
        self.durable: bool = spec.get("durable", False)

    def setup(self) -> None:
        from twinlake import Table

        table = Table.create(self.path, COLUMNS, durable=False)
        if self.into:
            for number in range(4):
                table = table.append(rows(number * self.into // 4, self.into // 4))
        self.data = [rows(self.into // 2 + n, self.count) for n in range(self.appends)]
        self.open()

    def open(self) -> None:
        """Open the table on the side that is measured."""
        raise NotImplementedError

    def check(self, result: Any) -> Outcome:
        del result
        from twinlake import Table

        table = Table.open(self.path)
        return Outcome(facts={"rows": table.count(), "version": table.version})


class _Ours(_Write):
    modules = _OURS

    def open(self) -> None:
        from twinlake import Table

        self.table = Table.open(self.path, durable=self.durable)


class AppendOurs(_Ours):
    """``Table.append``."""

    def run(self) -> None:
        for data in self.data:
            self.table = self.table.append(data)


class MergeOurs(_Ours):
    """``Table.merge``."""

    def run(self) -> None:
        self.table = self.table.merge(self.data[0], on="id")


class _Peer(_Write):
    modules = (*_PEER, *_OURS)

    def open(self) -> None:
        from deltalake import DeltaTable

        self.table = DeltaTable(self.path)


class AppendPeer(_Peer):
    """``write_deltalake`` through one handle."""

    def run(self) -> None:
        from deltalake import write_deltalake

        for data in self.data:
            write_deltalake(self.table, data, mode="append")


class MergePeer(_Peer):
    """``DeltaTable.merge``."""

    def run(self) -> None:
        merge = self.table.merge(self.data[0], "t.id = s.id", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()
