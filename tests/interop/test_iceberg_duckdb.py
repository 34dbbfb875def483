"""DuckDB's ``iceberg_scan`` on tables of ours: the rows of our Delta reader, at every version.

Against the rows of Delta Spark it is held in the tests of Iceberg Spark, on the same tables.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, V3, as_text, hide, opened, remove_files, twin
from tests.support.iceberg.duckdb import connect, scanned
from tests.support.local_engine import rows_of
from tests.support.not_run import not_run
from tests.unit.iceberg.format.test_types import VALUES
from twinlake.iceberg import sync_table
from twinlake.table import Table

NAN = float("nan")


@pytest.fixture(scope="module")
def duck() -> Iterator[Any]:
    found = connect()
    if isinstance(found, str):
        not_run(found, required_by="TWINLAKE_REQUIRE_INTEROP")
    yield found
    found.close()


def same(duck: Any, table: Table, folder: Path) -> None:
    sync_table(table.snapshot)
    assert scanned(duck, folder) == as_text(rows_of(table.snapshot))
    for snapshot in opened(folder).metadata.snapshots:
        assert snapshot.summary is not None
        version = int(snapshot.summary.additional_properties["delta-version"])
        expected = as_text(rows_of(table.at(version).snapshot))
        assert scanned(duck, folder, snapshot.snapshot_id) == expected, version


COLUMNS = (
    "id INT, l LONG, f FLOAT, d DOUBLE, n DECIMAL(18, 3), s STRING, b BINARY, o BOOLEAN, day DATE, "
    "ts TIMESTAMP, ntz TIMESTAMP_NTZ, st STRUCT<x: INT, y: STRUCT<z: STRING>>, "
    "ll ARRAY<ARRAY<STRUCT<x: LONG>>>, m MAP<STRING, STRUCT<v: DATE>>"
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1, "l": 2**53 + 1, "f": 0.5, "d": 0.1, "n": Decimal("1.125"), "s": "ü☃ 𝄞",
        "b": b"\0\xff",
        "o": True, "day": dt.date(2024, 2, 29),
        "ts": dt.datetime(2024, 2, 29, 1, 2, 3, 456_999, dt.UTC),
        "ntz": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), "st": {"x": 1, "y": {"z": "t"}},
        "ll": [[{"x": 1}, None], []], "m": {"k": {"v": dt.date(2024, 1, 1)}, "e": None},
    },
    {"id": 2, "d": -0.0, "s": "x" * 40, "st": {"x": None, "y": None}, "ll": [], "m": {}},
    {"id": 3},
    {"id": 4, "l": -(2**63), "f": NAN, "d": NAN, "n": Decimal("-0.001"), "s": "", "o": False},
]  # fmt: skip


def test_types_and_predicates(duck: Any, tmp_path: Path) -> None:
    table = twin(tmp_path, COLUMNS)
    for row in ROWS:
        table = append(table, tmp_path, [row])

    same(duck, table, tmp_path)

    wanted = {
        "l = 9007199254740993": {1},
        "l < 0": {4},
        "d = 0.0": {2},
        "d IS NULL": {3},
        "n < 0": {4},
        "s = ''": {4},
        f"s = '{'x' * 40}'": {2},
        "ts = TIMESTAMPTZ '2024-02-29 01:02:03.456999+00'": {1},
        "ntz >= TIMESTAMP '1969-12-31 23:59:59.999'": {1},
        "st.y.z = 't'": {1},
    }
    for where, ids in wanted.items():
        query = f"SELECT id FROM iceberg_scan('{tmp_path}/_iceberg') WHERE {where}"
        assert {found for (found,) in duck.execute(query).fetchall()} == ids, where


@pytest.mark.parametrize("kind", VALUES)
def test_partitions_of_every_type(duck: Any, tmp_path: Path, kind: str) -> None:
    table = twin(tmp_path, f"id INT, v {kind}", "v")
    for at, value in enumerate([*VALUES[kind], None]):
        table = append(table, tmp_path, [{"id": at, "v": value}], [{"id": -at, "v": value}])

    same(duck, table, tmp_path)

    rows = rows_of(table.snapshot)
    without = [row for row in rows if row["v"] is None]
    assert scanned(duck, tmp_path, where="v IS NULL") == as_text(without)
    assert len(scanned(duck, tmp_path, where="v IS NOT NULL")) == len(rows) - len(without)


def test_changes_of_schema_and_files(duck: Any, tmp_path: Path) -> None:
    properties = {**V2, "delta.enableTypeWidening": "true"}
    table = twin(tmp_path, "id INT, name STRING, p DATE", "p", properties=properties)
    table = append(table, tmp_path, [{"id": 1, "name": "a", "p": dt.date(2024, 1, 1)}])
    table = append(table, tmp_path, [{"id": 2, "name": "b", "p": None}])
    table = table.rename_column("name", "label").add_column("name INT").widen_column("id", "LONG")
    table = append(table, tmp_path, [{"id": 2**40, "label": "c", "name": 7}])
    table = remove_files(table, [next(iter(table.snapshot.adds()))])
    same(duck, table, tmp_path)
    table = table.restore(2)

    same(duck, table, tmp_path)

    assert len(scanned(duck, tmp_path, where="p IS NULL")) == 1


def test_hidden_rows(duck: Any, tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT", properties=V3)
    table = append(table, tmp_path, [{"id": at} for at in range(5)])
    (file,) = table.snapshot.adds()
    table = hide(table, tmp_path, {file.path: [0, 4]})

    same(duck, table, tmp_path)
