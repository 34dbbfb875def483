"""``twinlake stats``: numbers of the log, with bars for people."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tests.unit.cli.running import document, grid, lines, run
from twinlake import Table
from twinlake.actions import AddFile
from twinlake.cli.range_counts import range_counts

if TYPE_CHECKING:
    from pathlib import Path


def _columns(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["column"]: one for one in found["columns"]}


def test_numbers_as_json(orders: Path) -> None:
    found = document("stats", orders)
    assert {key: found[key] for key in found if key not in {"location", "columns"}} == {
        "version": 4,
        "where": None,
        "num_files": 2,
        "size_in_bytes": 3000,
        "file_size": {"min": 1000, "median": 1000, "max": 2000},
        "num_rows": 14,
        "num_rows_in_files": 20,
        "num_deleted_rows": 6,
        "num_deletion_vectors": 1,
        "file_sizes": [
            {"from": 512, "below": 1024, "files": 1, "size_in_bytes": 1000},
            {"from": 1024, "below": 2048, "files": 1, "size_in_bytes": 2000},
        ],
        "file_rows": [{"from": 8, "below": 16, "files": 2, "rows": 20}],
    }
    columns = _columns(found)
    assert list(columns) == ["id", "title", "day", "price"]
    assert columns["title"] == {
        "column": "title", "type": "STRING", "partition": False, "nulls": 2, "null_share": 0.1,
        "min": "a", "max": "z", "files_with_range": 2, "range_counts": None,
    }  # fmt: skip
    assert (columns["day"]["min"], columns["day"]["max"]) == ("2024-01-01", "2024-01-02")
    assert columns["day"]["partition"] is True
    # The column is younger than the files.
    assert columns["price"]["null_share"] is None
    assert (columns["price"]["min"], columns["price"]["files_with_range"]) == (None, 0)


def test_no_data_file_is_opened(orders: Path) -> None:
    # Its files are only in the log.
    assert list(orders.rglob("*.parquet")) == []
    text = lines("stats", orders)
    assert text[:5] == [
        "files             2",
        "bytes             3000 (2.9 KiB)",
        "file size         1000 B to 2.0 KiB, median 1000 B",
        "rows              14",
        "deletion vectors  1 of 2 files (50%), 6 rows deleted (30%)",
    ]
    assert text[6:9] == [
        "file sizes",
        "  512 B to 1.0 KiB  " + "█" * 30 + "  1 file, 1000 B",
        "1.0 KiB to 2.0 KiB  " + "█" * 30 + "  1 file, 2.0 KiB",
    ]
    assert text[10:12] == [
        "rows of files",
        "8 to 15  " + "█" * 30 + "  2 files, 20 rows",
    ]
    assert text[-3:] == [
        "value ranges: files at each part, of all",
        " id  " + "▄" * 24 + "  1 to 20",
        "day  " + "▄" + "·" * 22 + "▄" + "  2024-01-01 to 2024-01-02",
    ]
    assert grid(text, "column") == [
        ["id", "INT", "0%", "1", "20", "2/2"],
        ["title", "STRING", "10%", "a", "z", "2/2"],
        ["day", "DATE", "0%", "2024-01-01", "2024-01-02", "2/2"],
        ["price", "DECIMAL(10,2)", "-", "-", "-", "-"],
    ]


def test_all_kinds_of_columns(sales: Path) -> None:
    columns = _columns(document("stats", sales))
    assert (columns["price"]["min"], columns["price"]["max"]) == ("0.50", "5.50")
    assert columns["name"]["nulls"] == 1
    assert columns["tags"]["files_with_range"] == 0
    assert columns["seen"]["min"].startswith("2024-01-01T10:00:00")
    text = grid(lines("stats", sales), "column")
    assert text[1] == ["name", "STRING", "16.7%", "name 0", "xxxxxxxxxxxxxxxxxxxxxxxxx…", "2/2"]


def test_where_and_time_travel(orders: Path) -> None:
    assert document("stats", orders, "--where", "id > 12")["num_files"] == 1
    assert document("stats", orders, "--version", 0)["num_files"] == 0


def test_a_table_without_files(empty: Path) -> None:
    found = document("stats", empty)
    assert (found["num_files"], found["num_rows"], found["file_sizes"]) == (0, 0, [])
    assert found["file_size"] == {"min": None, "median": None, "max": None}
    assert lines("stats", empty)[:2] == ["files  0", "bytes  0"]


def _with_files(path: Path, *sizes: int) -> None:
    files = [
        AddFile(path=f"{n}.parquet", partition_values={}, size=size, modification_time=0,
                data_change=True)
        for n, size in enumerate(sizes)
    ]  # fmt: skip
    Table.open(path, durable=False).commit("WRITE", files, parameters={"mode": "Append"})


def test_files_without_statistics_have_unknown_rows(empty: Path) -> None:
    _with_files(empty, 5)
    assert document("stats", empty)["num_rows"] is None
    assert "rows       unknown: files have no statistics" in lines("stats", empty)


@pytest.mark.parametrize(
    "sizes", [(0,), (1, 2, 3, 4), (1, 1 << 40), tuple(1 << n for n in range(30))]
)
def test_every_file_is_in_one_of_a_few_buckets(empty: Path, sizes: tuple[int, ...]) -> None:
    _with_files(empty, *sizes)
    buckets = document("stats", empty)["file_sizes"]
    assert len(buckets) <= 8
    assert sum(bucket["files"] for bucket in buckets) == len(sizes)
    assert sum(bucket["size_in_bytes"] for bucket in buckets) == sum(sizes)
    assert all(a["below"] == b["from"] for a, b in pairwise(buckets))


def test_bad_input(orders: Path) -> None:
    assert run("stats", orders, "--where", "id >").stderr.startswith("TWIN-PREDICATE-INVALID")
    assert run("stats", orders / "nowhere").stderr.startswith("TWIN-TABLE-NOT-FOUND")


@pytest.mark.parametrize(
    ("low", "high", "counts"),
    [
        ([0, 12], [11, 23], [1] * 24),
        ([0, 0, 23], [0, 23, 23], [2, *[1] * 22, 2]),
        ([0.0, None, 24.0], [1.0, 5.0, 24.0], [1, 1, *[0] * 21, 1]),
        ([Decimal("0.00"), Decimal("0.25")], [Decimal("0.23"), Decimal("0.48")], [1] * 24),
        ([dt.date(2024, 1, 1)], [dt.date(2024, 1, 25)], [1] * 24),
        ([dt.datetime(2024, 1, 1)], [dt.datetime(2024, 1, 2)], [1] * 24),
        ([-(2**63), 2**62], [-(2**62), 2**63 - 1], [*[1] * 7, *[0] * 11, *[1] * 6]),
        ([5, 5], [5, 5], None),
        ([0.0], [float("inf")], None),
        (["a"], ["z"], None),
        ([True], [False], None),
        ([], [], None),
    ],
)
def test_files_at_each_part_of_a_range(
    low: list[Any], high: list[Any], counts: list[int] | None
) -> None:
    kind = pa.array([*low, *high]).type
    found = range_counts(*(pa.chunked_array([pa.array(v, kind)]) for v in (low, high)))
    assert found == counts
