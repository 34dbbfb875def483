"""A partition value that the rows of its file contradict: Delta reads one, Iceberg the other."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import twin
from tests.support.log_tables import commit, info
from twinlake.actions import AddFile
from twinlake.errors import Code, CompatViolation
from twinlake.iceberg import sync_table
from twinlake.table import Table

SPARK = "Apache-Spark/4.1.4 Delta-Lake/4.4.0"
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
TYPES: dict[str, tuple[Any, str]] = {
    "STRING": ("a", "b"),
    "INT": (7, "8"),
    "BIGINT": (7, "8"),
    "DATE": (dt.date(2024, 2, 29), "2024-02-28"),
    "TIMESTAMP": (NOON, "2024-02-29T13:00:00.000000Z"),
    "DECIMAL(9, 2)": (Decimal("1.50"), "1.51"),
    "DECIMAL(30, 2)": (Decimal("1.50"), "1.51"),
    "DOUBLE": (0.5, "0.25"),
    "BOOLEAN": (True, "false"),
    "BINARY": (b"a", "b"),
}


def moved(add: AddFile, text: str | None) -> AddFile:
    """The file, as if it were of another partition."""
    (name,) = add.partition_values
    return msgspec.structs.replace(add, partition_values={name: text})


def refused(table: Table, add: AddFile) -> None:
    with pytest.raises(CompatViolation) as caught:
        table.commit("WRITE", [add])
    assert (caught.value.code, caught.value.rule) == (Code.COMPAT, "ICV2-29")
    assert add.path in caught.value.why


@pytest.mark.parametrize("kind", TYPES)
def test_a_commit_is_refused(tmp_path: Path, kind: str) -> None:
    value, other = TYPES[kind]
    table = twin(tmp_path, f"id INT, p {kind}", "p")
    add = write_file(table, tmp_path, [{"id": 1, "p": value}])
    refused(table, moved(add, other))
    refused(table, moved(add, None))
    table = table.commit("WRITE", [add])
    nothing = write_file(table, tmp_path, [{"id": 1, "p": None}])
    refused(table, moved(nothing, other))
    table = table.commit("WRITE", [nothing])
    assert table.check("icebergCompatV2", files=True).ok


def test_a_file_of_two_partitions_is_refused(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p INT", "p")
    refused(table, write_file(table, tmp_path, [{"id": 1, "p": 7}, {"id": 2, "p": 8}]))
    refused(table, write_file(table, tmp_path, [{"id": 1, "p": 7}, {"id": 2, "p": None}]))


def test_a_file_of_another_engine_is_told_and_not_published(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT, p INT", "p"), tmp_path, [{"id": 1, "p": 7}])
    sync_table(table.snapshot)
    add = moved(write_file(table, tmp_path, [{"id": 2, "p": 7}]), "8")
    commit(table.snapshot.store, table.version + 1, info(engine_info=SPARK), add)
    table = table.refresh()
    report = table.check("icebergCompatV2", files=True)
    assert [v.rule for v in report.violations] == ["ICV2-29"]
    with pytest.raises(CompatViolation) as caught:
        sync_table(table.snapshot)
    assert (caught.value.rule, caught.value.fields["path"]) == ("ICV2-29", add.path)


def test_a_plain_table_reads_no_file(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, p INT", partition_by=["p"], durable=False)
    add = write_file(table, tmp_path, [{"id": 1, "p": 7}])
    (tmp_path / add.path).unlink()
    assert table.commit("WRITE", [moved(add, "8")]).snapshot.num_files == 1
