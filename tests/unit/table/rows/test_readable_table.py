"""Rows read without Spark: columns, predicates, limits, and the libraries that take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from twinlake import Table, UserError
from twinlake.errors import Code

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Table:
    t = Table.create(tmp_path / "t", "id INT, s STRING, p INT", partition_by=["p"])
    for p in range(3):
        t = t.append({"id": [3 * p, 3 * p + 1, 3 * p + 2], "s": ["a", "b", None], "p": [p] * 3})
    return t


def test_columns_come_in_the_order_asked_for(table: Table) -> None:
    assert table.to_arrow(columns=["p", "ID"]).column_names == ["p", "id"]
    with pytest.raises(UserError, match="nope"):
        table.to_arrow(columns=["nope"])
    with pytest.raises(UserError, match="more than once"):
        table.to_arrow(columns=["id", "id"])


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("p = 1", [3, 4, 5]),
        ("id > 6", [7, 8]),
        ("s IS NULL", [2, 5, 8]),
        ("s = 'a' AND p <> 0", [3, 6]),
        ("s LIKE 'b%' OR id = 0", [0, 1, 4, 7]),
        ("p = 9", []),
    ],
)
def test_predicates_choose_rows(table: Table, where: str, expected: list[int]) -> None:
    assert sorted(table.to_arrow(columns=["id"], where=where)["id"].to_pylist()) == expected
    assert table.count(where) == len(expected)


def test_limits(table: Table) -> None:
    assert table.to_arrow(limit=4).num_rows == 4
    assert table.head(2).num_rows == 2
    assert table.to_arrow(limit=0).num_rows == 0
    assert sum(batch.num_rows for batch in table.to_batches(limit=5)) == 5
    with pytest.raises(UserError, match=r"twinlake\.spark\.scan"):
        table.to_arrow(limit_bytes=10)
    with pytest.raises(UserError):
        table.to_arrow(limit=-1)


def test_row_ids_are_refused_where_there_are_none(table: Table) -> None:
    with pytest.raises(UserError, match="no row ids"):
        table.to_arrow(row_ids=True)


def test_the_arrow_stream_is_taken_by_others(table: Table) -> None:
    import duckdb

    assert pa.table(table).num_rows == 9
    t = table
    assert duckdb.sql("SELECT sum(id) FROM t WHERE p > 0").fetchone() == (33,)
    assert table.to_duckdb().aggregate("count(*)").fetchone() == (9,)
    with duckdb.connect() as connection:
        relation = t.to_duckdb(connection)
        assert relation.filter("id > 6").fetchall() == relation.filter("id > 6").fetchall()
    with pytest.raises(UserError):
        table.to_duckdb("not a connection")


def test_pandas_and_polars(table: Table) -> None:
    import polars

    assert sorted(table.to_pandas(columns=["id"], where="p = 0")["id"]) == [0, 1, 2]
    assert table.to_polars(limit=3).height == 3
    assert polars.DataFrame(table).height == 9


def test_what_is_missing_is_named_with_its_extra(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    real = importlib.import_module

    def absent(name: str, *rest: Any) -> Any:
        if name in ("pandas", "polars", "duckdb"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr("twinlake.table.rows.readable_table.import_module", absent)
    for name in ("pandas", "polars", "duckdb"):
        with pytest.raises(UserError, match=rf"twinlake\[{name}\]"):
            getattr(table, f"to_{name}")()


def test_a_version_is_read_as_it_was(table: Table) -> None:
    assert Table.open(table.location, version=1).count() == 3
    assert table.at(2).to_arrow().num_rows == 6


def test_a_file_that_is_gone_is_an_error_of_ours(table: Table, tmp_path: Path) -> None:
    next((tmp_path / "t").rglob("*.parquet")).unlink()
    from twinlake import TwinlakeError

    with pytest.raises(TwinlakeError) as caught:
        table.to_arrow()
    assert caught.value.code in (Code.STORAGE, Code.STORAGE_NOT_FOUND)
