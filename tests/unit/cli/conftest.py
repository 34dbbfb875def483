"""A small table with two files, a deletion vector, a secret and a renamed column."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append
from twinlake import Table
from twinlake.actions import AddFile, DeletionVectorDescriptor

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2"


def file(number: int, day: str, low: int, *, vector: bool = False) -> AddFile:
    """The add action of a file that is only told of."""
    stats = {
        "numRecords": 10,
        "minValues": {"id": low, "name": "a"},
        "maxValues": {"id": low + 9, "name": "z"},
        "nullCount": {"id": 0, "name": 1},
    }
    return AddFile(
        path=f"day={day}/part-{number}.parquet",
        partition_values={"day": day},
        size=1000 * number,
        modification_time=1_700_000_000_000,
        data_change=True,
        stats=json.dumps(stats),
        deletion_vector=DeletionVectorDescriptor(
            "i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 40, 6
        )
        if vector
        else None,
    )


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Version 0 creates, 1 writes two files, 2 maps columns, 3 renames, 4 adds a column."""
    path = tmp_path / "orders"
    table = Table.create(
        path,
        "id INT COMMENT 'the key', name STRING, day DATE",
        ["day"],
        {"fs.s3a.secret.key": SECRET, "team": "orders", "delta.enableDeletionVectors": "true"},
        name="orders",
        durable=False,
    )
    files = [file(1, "2024-01-01", 1), file(2, "2024-01-02", 11, vector=True)]
    table = table.commit("WRITE", files, parameters={"mode": "Append"})
    table = table.set_properties({"delta.columnMapping.mode": "name"})
    table.rename_column("name", "title").add_column("price DECIMAL(10, 2)")
    return path


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A table at version 0 with one column."""
    path = tmp_path / "empty"
    Table.create(path, "id INT", durable=False)
    return path


def sales_row(number: int) -> dict[str, Any]:
    """A row of the table below; row 1 has no name, row 5 a long one."""
    return {
        "id": number,
        "name": {1: None, 5: "x" * 1000}.get(number, f"name {number}"),
        "day": dt.date(2024, 1, 1 + number // 3),
        "price": Decimal(f"{number}.50"),
        "ratio": float("nan") if number == 0 else number / 4,
        "seen": dt.datetime(2024, 1, 1, 10, number, tzinfo=dt.UTC),
        "raw": b"\x00\xff",
        "tags": {"a": [1, None]},
        "token": "visible",
    }


@pytest.fixture
def sales(tmp_path: Path) -> Path:
    """A table with rows: version 1 has two files of three rows, one a day."""
    path = tmp_path / "sales"
    table = Table.create(
        path,
        "id BIGINT, name STRING, day DATE, price DECIMAL(10,2), ratio DOUBLE, seen TIMESTAMP, "
        "raw BINARY, tags MAP<STRING, ARRAY<INT>>, token STRING",
        ["day"],
        durable=False,
    )
    append(table, path, [sales_row(n) for n in range(3)], [sales_row(n) for n in range(3, 6)])
    return path
