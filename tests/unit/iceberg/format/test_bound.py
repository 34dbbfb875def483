"""Predicates that land on bounds: no file is passed over that holds a row they want."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import expression_to_pyarrow

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V3 as FORMAT_3
from tests.support.iceberg.both_sides import hide, iceberg_rows, opened, sql, twin
from twinlake.iceberg import sync_table
from twinlake.schema import physical_name
from twinlake.table import Table

pytestmark = pytest.mark.slow

INF, NAN = float("inf"), float("nan")
MS = datetime(2024, 2, 29, 1, 2, 3, 456_000)
LONG_TEXT = "same beginning, more than 32 characters of it: "
TENS = Decimal("1234567890123456.7891")
DEEP = Decimal("1234567890123456789012345678.0123456789")

#: By type: the values of each file, and more values to ask for.
FILES: dict[str, tuple[list[list[Any]], list[Any]]] = {
    "BYTE": ([[-128, -1], [0], [127, None]], [1]),
    "INT": ([[-(2**31)], [-1, 5], [2**31 - 1, None]], [0, 4]),
    "LONG": ([[2**53 + 1], [2**53 + 2, 2**62 + 1], [-(2**63)], [2**63 - 1]], [2**53, 2**62]),
    # PyIceberg does not round what it is asked for to a float.
    "FLOAT": ([[0.125, 0.5], [-0.0], [0.0], [NAN, 1.5], [-INF, INF], [NAN]], [0.25]),
    "DOUBLE": ([[0.1, 0.5], [-0.0], [0.0], [NAN, 1.5], [-INF, INF], [NAN], [None]], [1e300]),
    "DECIMAL(20, 4)": ([[TENS], [-TENS, Decimal("0.0001")], [Decimal("-0.0001"), None]], []),
    "DECIMAL(38, 10)": (
        [[DEEP], [DEEP.copy_negate()]],
        [],
    ),
    "STRING": (
        [
            ["a", "b"],
            [LONG_TEXT + "a", LONG_TEXT + "b"],
            [LONG_TEXT[:32]],
            ["x" * 31 + "\U0010ffff" * 3],
            ["\uffff" * 33, "\U00010000" * 33],
            ["é" * 40, None],
            [""],
        ],
        [LONG_TEXT, LONG_TEXT[:32] + "\x7f", "x" * 31, "é" * 32, "c"],
    ),
    "BINARY": ([[b"\x00"], [b"\xff\xfe", b"abc"], [None]], [b"abd"]),
    "BOOLEAN": ([[True], [False], [True, None]], []),
    "DATE": ([[date(1969, 12, 31)], [date(1970, 1, 1), date(9999, 12, 31)]], [date(1970, 1, 2)]),
    "TIMESTAMP": (
        [
            [MS.replace(tzinfo=UTC, microsecond=456_999)],
            [MS.replace(tzinfo=UTC), MS.replace(tzinfo=UTC, microsecond=456_001)],
            [datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), None],
            [datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)],
        ],
        [MS.replace(tzinfo=UTC, microsecond=457_000), datetime(1970, 1, 1, tzinfo=UTC)],
    ),
    "TIMESTAMP_NTZ": (
        [[MS.replace(microsecond=456_999)], [MS, MS + timedelta(microseconds=1)], [datetime.min]],
        [MS.replace(microsecond=457_000)],
    ),
}
COMPARISONS = (
    sql.EqualTo,
    sql.NotEqualTo,
    sql.LessThan,
    sql.LessThanOrEqual,
    sql.GreaterThan,
    sql.GreaterThanOrEqual,
)


def predicates(kind: str, column: str) -> Iterator[Any]:
    files, more = FILES[kind]
    values = [v for v in (*(v for file in files for v in file), *more) if v is not None and v == v]
    yield from (compare(column, value) for value in values for compare in COMPARISONS)
    yield sql.IsNull(column)
    yield sql.NotNull(column)
    yield sql.In(column, set(values[:2]))
    if kind in ("FLOAT", "DOUBLE"):
        yield sql.IsNaN(column)
        yield sql.NotNaN(column)
    if kind == "STRING":
        starts = {value[:size] for value in values for size in (1, 16, 32, 33)} - {""}
        yield from (sql.StartsWith(column, text) for text in sorted(starts))
        yield from (sql.NotStartsWith(column, text) for text in sorted(starts))


def check_pruning(table: Table, folder: Path, wanted: Iterator[Any]) -> int:
    """Every file with a row that is wanted is read; returns how many were passed over."""
    sync_table(table.snapshot)
    whole = opened(folder)
    data: pa.Table = whole.scan().to_arrow()
    key = physical_name(table.schema.fields[0])
    holds = {
        path.name: set(pq.ParquetFile(path).read([key]).column(0).to_pylist())
        for path in folder.glob("*.parquet")
    }
    skipped = 0
    for predicate in wanted:
        bound = bind(whole.schema(), predicate, case_sensitive=True)
        condition = expression_to_pyarrow(bound, whole.schema())
        ids = set(data.filter(condition)["id"].to_pylist())
        planned = [task.file.file_path for task in whole.scan(row_filter=predicate).plan_files()]
        read = set().union(*(holds[path.rsplit("/", 1)[1]] for path in planned))
        assert ids <= read, predicate
        skipped += len(holds) - len(planned)
    return skipped


@pytest.mark.parametrize("kind", FILES)
def test_bounds_of_files(tmp_path: Path, kind: str) -> None:
    table = twin(tmp_path, f"id INT, v {kind}")
    groups = [
        [{"id": 10 * at + place, "v": value} for place, value in enumerate(values)]
        for at, values in enumerate(FILES[kind][0])
    ]
    table = append(table, tmp_path, *groups)

    skipped = check_pruning(table, tmp_path, predicates(kind, "v"))

    # Bounds that are never there would keep every row, too.
    assert skipped > 0


@pytest.mark.parametrize("kind", FILES)
def test_bounds_of_partitions(tmp_path: Path, kind: str) -> None:
    table = twin(tmp_path, f"id INT, v {kind}", "v")
    values = [v for file in FILES[kind][0] for v in file]
    # No text can stand for the one, and PyIceberg reads the other from a manifest as a float.
    values = [v for v in values if v not in (b"\xff\xfe", 0.1)]
    for at, value in enumerate(values):
        table = append(table, tmp_path, [{"id": at, "v": value}])

    assert check_pruning(table, tmp_path, predicates(kind, "v")) > 0


def test_bounds_inside_structs(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, s STRUCT<v: DOUBLE, n: STRUCT<x: LONG>>")
    for at, value in enumerate((-0.0, 0.0, NAN, None, 0.1)):
        inner = {"v": value, "n": {"x": None if value is None else 2**53 + at}}
        table = append(table, tmp_path, [{"id": at, "s": inner}, {"id": at, "s": None}])
    wanted = [
        *(compare("s.v", value) for value in (0.0, 0.1, -0.1) for compare in COMPARISONS),
        *(compare("s.n.x", 2**53 + 1) for compare in COMPARISONS),
        sql.IsNull("s.v"),
        sql.IsNaN("s.v"),
    ]

    assert check_pruning(table, tmp_path, iter(wanted)) > 0


def test_counts_of_files_with_hidden_rows(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, v INT", properties=FORMAT_3)
    table = append(table, tmp_path, [{"id": 1, "v": None}, {"id": 2, "v": 5}, {"id": 3, "v": 7}])
    (file,) = table.snapshot.adds()
    table = hide(table, tmp_path, {file.path: [0, 2]})
    sync_table(table.snapshot)

    ask: Callable[[Any], list[int]] = lambda where: [  # noqa: E731
        row["id"] for row in iceberg_rows(tmp_path, where=where)
    ]
    assert ask(sql.NotNull("v")) == [2]
    assert ask(sql.IsNull("v")) == []
    assert ask(sql.GreaterThan("v", 4)) == [2]
