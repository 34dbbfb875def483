"""``twinlake append``: rows of files in one commit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.running import document, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    Table.create(path, "id INT, name STRING, day DATE", durable=False)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "day,id,name\n2024-01-01,1,a\n2024-01-02,2,\n"),
        ("a.jsonl", '{"id":1, "day":"2024-01-01", "name":"a"}\n{"id": 2, "day": "2024-01-02"}\n'),
    ],
)  # fmt: skip
def test_text(table: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    found = document("append", table, tmp_path / name)
    assert found["version"] == 1
    assert (found["num_rows"], found["format"]) == (2, name.partition(".")[2])
    rows = sorted(document("head", table)["rows"], key=lambda row: row["id"])
    assert rows == [
        {"id": 1, "name": "a", "day": "2024-01-01"},
        {"id": 2, "name": None, "day": "2024-01-02"},
    ]


def test_parquet(table: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int32())}), tmp_path / "a.parquet")
    assert lines("append", table, tmp_path / "a.parquet") == [
        "Appended 3 rows of a.parquet in version 1."
    ]
    assert Table.open(table).count() == 3


def test_the_format_may_be_named(table: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.txt").write_text("id\n7\n")
    assert document("append", table, tmp_path / "rows.txt", "--format", "csv")["num_rows"] == 1


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.csv", "id,nope,nada\n1,2,3\n", "TWIN-COLUMN-NOT-FOUND"),
        ("a.txt", "id\n1\n", "TWIN-INVALID-ARGUMENT"),
        ("a.jsonl", "nothing\n", "TWIN-INVALID-ARGUMENT"),
        ("a.parquet", "nothing\n", "TWIN-INVALID-ARGUMENT"),
    ],
)
def test_a_bad_file_changes_nothing(
    table: Path, tmp_path: Path, name: str, text: str, code: str
) -> None:
    (tmp_path / name).write_text(text)
    result = run("append", table, tmp_path / name)
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 3
    assert result.stderr.startswith(code)
    failed = run("append", table, tmp_path / name, "--json")
    assert json.loads(failed.stdout)["error"]["code"] == code
    assert Table.open(table).version == 0


def test_a_bad_value_in_the_middle_changes_nothing(table: Path, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\nx\n")
    result = run("append", table, tmp_path / "a.csv")
    assert result.exit_code == 1
    assert result.stderr.startswith("TWIN-INVALID-ARGUMENT  a.csv cannot be read as CSV.")
    assert Table.open(table).version == 0
    assert list(table.rglob("*.parquet")) == []


def test_wrong_usage(table: Path) -> None:
    assert run("append", table).exit_code == 2
    assert run("append", table, "x", "--format", "orc").exit_code == 2
