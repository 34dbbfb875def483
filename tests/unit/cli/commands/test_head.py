"""``twinlake head``: rows of real files, without Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.running import document, grid, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_rows_in_the_order_of_the_log(sales: Path) -> None:
    rows = grid(lines("head", sales, "-n", 3, "--columns", "id,name,price"), "id")
    assert rows == [["0", "name 0", "0.50"], ["1", "null", "1.50"], ["2", "name 2", "2.50"]]


def test_all_kinds_of_values_as_json(sales: Path) -> None:
    found = document("head", sales, "--rows", 1)
    assert set(found) == {"location", "version", "where", "columns", "rows"}
    assert found["columns"] == list(Table.open(sales).schema.names())
    assert found["rows"] == [
        {
            "id": 0, "name": "name 0", "day": "2024-01-01", "price": "0.50", "ratio": None,
            "seen": "2024-01-01T10:00:00Z", "raw": "AP8=",
            "tags": {"a": [1, None]}, "token": "visible",
        }
    ]  # fmt: skip


def test_where_and_columns(sales: Path) -> None:
    found = document("head", sales, "--where", "id >= 3 AND day = '2024-01-02'", "--columns", "ID")
    assert found["rows"] == [{"id": 3}, {"id": 4}, {"id": 5}]


def test_a_name_in_backticks_may_hold_a_comma(tmp_path: Path) -> None:
    Table.create(
        tmp_path / "t", "`a,b` INT, c INT", (), {"delta.columnMapping.mode": "name"}, durable=False
    )
    found = document("head", tmp_path / "t", "--columns", "c, `a,b`")
    assert found["columns"] == ["c", "a,b"]


def test_long_values_are_cut_in_text_only(sales: Path) -> None:
    words = ("head", sales, "--where", "id = 5", "--columns", "name")
    assert lines(*words)[1] == "x" * 59 + "…"
    assert document(*words)["rows"] == [{"name": "x" * 1000}]


def test_no_rows_still_name_the_columns(empty: Path, sales: Path) -> None:
    assert lines("head", empty) == ["id", "no rows"]
    assert lines("head", sales, "-n", 0, "--columns", "id,name") == ["id  name", "no rows"]


def test_an_older_version(sales: Path) -> None:
    assert document("head", sales, "--version", 0)["rows"] == []
    assert len(document("head", sales, "--version", 1)["rows"]) == 6


def test_a_wide_table_shows_a_column_a_line_on_a_terminal(
    sales: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    text = run("head", sales, "-n", 1).stdout.splitlines()
    assert [line.split()[0] for line in text] == list(Table.open(sales).schema.names())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--columns", "id,nope,nada"], "TWIN-COLUMN-NOT-FOUND"),
        (["--columns", ""], "TWIN-COLUMN-NOT-FOUND"),
        (["--columns", "id,id"], "TWIN-INVALID-ARGUMENT"),
        (["--where", "id >"], "TWIN-PREDICATE-INVALID"),
        (["--where", "upper(name) = 'A'"], "TWIN-PREDICATE-INVALID"),
        (["--version", "99"], "TWIN-"),
    ],
)
def test_bad_input_is_an_error_of_three_lines(sales: Path, words: list[str], code: str) -> None:
    result = run("head", sales, *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 3
    assert result.stderr.startswith(code)
    failed = run("head", sales, *words, "--json")
    assert json.loads(failed.stdout)["error"]["code"].startswith(code)


def test_every_missing_column_is_named(sales: Path) -> None:
    assert "'nope', 'nada'" in run("head", sales, "--columns", "id,nope,nada").stderr


def test_a_negative_number_is_wrong_usage(sales: Path) -> None:
    assert run("head", sales, "-n", "-1").exit_code == 2


def test_a_missing_data_file_is_an_error_of_three_lines(orders: Path) -> None:
    result = run("head", orders)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 3
