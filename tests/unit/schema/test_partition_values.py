"""Partition values and folders."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
import pytest

from twinlake.errors import Code, CorruptTable, UserError
from twinlake.schema import (
    BINARY,
    HIVE_NULL,
    INTEGER,
    STRING,
    TIMESTAMP,
    escape_path_name,
    has_zone,
    is_binary_text,
    parse_partition_path,
    parse_partition_value,
    parse_type,
    partition_array,
    render_partition_path,
    render_partition_value,
    unescape_path_name,
)

NOON = datetime(2024, 1, 31, 12, 0, 0, 500, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("7", "TINYINT", 7),
        ("-32768", "SMALLINT", -32768),
        ("9223372036854775807", "BIGINT", 2**63 - 1),
        ("TRUE", "BOOLEAN", True),
        ("1.5E3", "DOUBLE", 1500.0),
        ("-Infinity", "FLOAT", -math.inf),
        ("1.5", "DECIMAL(10,2)", Number("1.50")),
        ("-0.01", "DECIMAL(2,2)", Number("-0.01")),
        ("2024-02-29", "DATE", date(2024, 2, 29)),
        ("2024-01-31T12:00:00.000500Z", "TIMESTAMP", NOON),
        ("2024-01-31 12:00:00.0005", "TIMESTAMP", NOON),
        ("2024-01-31T14:00:00.0005+02:00", "TIMESTAMP", NOON),
        ("2024-01-31 12:00:00.000500999", "TIMESTAMP", NOON),
        ("2024-01-31", "TIMESTAMP", datetime(2024, 1, 31, tzinfo=UTC)),
        ("2024-01-31 12:00:00", "TIMESTAMP_NTZ", datetime(2024, 1, 31, 12)),
        ("2024-01-31T12:00:00.000001", "TIMESTAMP_NTZ", datetime(2024, 1, 31, 12, 0, 0, 1)),
        ("\x01\x02ü", "BINARY", b"\x01\x02\xc3\xbc"),
        ("€", "BINARY", "€".encode()),
        (HIVE_NULL, "STRING", HIVE_NULL),
        ("", "STRING", None),
        ("", "INT", None),
        (None, "DATE", None),
    ],
)
def test_strings_become_values_one_by_one_and_as_a_column(
    text: str | None, kind: str, value: Any
) -> None:
    found = parse_partition_value(text, parse_type(kind))
    assert found == value
    assert type(found) is type(value)
    column = partition_array(pa.array([text, None, text], pa.string()), parse_type(kind))
    assert column.to_pylist() == [value, None, value]


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, "BOOLEAN", "true"),
        (0.1, "DOUBLE", "0.1"),
        (0.10000000149011612, "FLOAT", "0.1"),
        (math.nan, "DOUBLE", "NaN"),
        (math.inf, "FLOAT", "Infinity"),
        (Number("1E+2"), "DECIMAL(10,2)", "100.00"),
        (5, "DECIMAL(10,2)", "5.00"),
        (NOON.astimezone(timezone(timedelta(hours=5))), "TIMESTAMP", "2024-01-31T12:00:00.000500Z"),
        (datetime(2024, 1, 31, 12), "TIMESTAMP_NTZ", "2024-01-31 12:00:00"),
        (date(5, 1, 2), "DATE", "0005-01-02"),
        (b"\x00\xc3\xbc", "BINARY", "\x00ü"),
        (memoryview("😀".encode()), "BINARY", "😀"),
        ("", "STRING", None),
        (b"", "BINARY", None),
        (None, "INT", None),
    ],
)
def test_values_become_strings(value: Any, kind: str, text: str | None) -> None:
    assert render_partition_value(value, parse_type(kind)) == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x", "INT"),
        ("1_0", "INT"),
        ("0x1f", "INT"),
        ("1", "BOOLEAN"),
        ("128", "TINYINT"),
        ("1.0", "INT"),
        ("1_0", "DOUBLE"),
        ("0x1p3", "DOUBLE"),
        ("yes", "BOOLEAN"),
        ("1.234", "DECIMAL(10,2)"),
        ("100", "DECIMAL(4,2)"),
        ("1e999", "DECIMAL(4,2)"),
        ("NaN", "DECIMAL(4,2)"),
        ("2024-02-30", "DATE"),
        ("20240230", "DATE"),
        ("yesterday", "TIMESTAMP"),
        ("2024-01-01T25:00:00Z", "TIMESTAMP"),
        ("2024-01-01T00:00:00+99:00", "TIMESTAMP"),
        ("2024-01-01T00:00:00Z", "TIMESTAMP_NTZ"),
        ("9" * 5000, "BIGINT"),
    ],
)
def test_bad_strings_are_named(text: str, kind: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_partition_value(text, parse_type(kind))
    assert caught.value.code is Code.LOG_CORRUPT
    assert caught.value.fields["value"] == text[:1000]
    with pytest.raises(CorruptTable):
        partition_array(pa.array([text]), parse_type(kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, "STRING"),
        ("1", "INT"),
        (True, "INT"),
        (2**40, "INT"),
        (1, "BOOLEAN"),
        (1e300, "FLOAT"),
        (1.5, "DECIMAL(4,2)"),
        (Number("1.234"), "DECIMAL(4,2)"),
        (datetime(2024, 1, 1), "TIMESTAMP"),
        (NOON, "TIMESTAMP_NTZ"),
        (NOON, "DATE"),
        ("x", "BINARY"),
        ("x", "DOUBLE"),
    ],
    ids=str,
)
def test_values_of_the_wrong_kind_are_refused(value: Any, kind: str) -> None:
    with pytest.raises(UserError):
        render_partition_value(value, parse_type(kind))


@pytest.mark.parametrize(
    "value", [b"\xff", b"a\xc3", b"\xed\xa0\x80", bytearray(b"\xc0\x80")], ids=repr
)
def test_bytes_that_no_text_gives_back_are_refused(value: bytes) -> None:
    with pytest.raises(UserError) as caught:
        render_partition_value(value, BINARY)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert caught.value.fields == {"type": "binary"}
    assert repr(bytes(value))[1:] not in str(caught.value)
    assert "UTF-8" in caught.value.what
    assert "hexadecimal" in caught.value.fix
    assert not is_binary_text(bytes(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31T12:00:00Z", True),
        ("2024-01-31 12:00:00.5 +02:00", True),
        ("2024-01-31T12:00:00-0530", True),
        ("2024-01-31 12:00:00", False),
        ("2024-01-31T12:00", False),
        ("2024-01-31", False),
        ("noon", False),
    ],
)
def test_texts_say_whether_they_have_a_zone(text: str, expected: bool) -> None:
    assert has_zone(text) is expected


@pytest.mark.parametrize("kind", ["ARRAY<INT>", "VARIANT", "VOID", "INTERVAL DAY"])
def test_types_that_cannot_partition_are_refused(kind: str) -> None:
    with pytest.raises(UserError):
        partition_array(pa.array(["1"]), parse_type(kind))


def test_timestamps_of_both_forms_share_a_column() -> None:
    words = ["2024-01-31T12:00:00.000500Z", "2024-01-31 13:00:00.0005", "", None]
    berlin = timezone(timedelta(hours=1))
    found = partition_array(pa.chunked_array([words[:2], words[2:]]), TIMESTAMP, zone=berlin)
    assert found.to_pylist() == [NOON, NOON, None, None]
    utc = partition_array(pa.array(words), TIMESTAMP)
    assert utc.to_pylist() == [NOON, NOON + timedelta(hours=1), None, None]


def test_empty_columns_keep_their_type() -> None:
    assert partition_array(pa.array([], pa.string()), INTEGER).type == pa.int32()
    assert partition_array(pa.nulls(2), STRING).to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("plain-1.5_x", "plain-1.5_x"),
        ("2024-01-01 00:00:00", "2024-01-01 00%3A00%3A00"),
        ("a/b=c%d", "a%2Fb%3Dc%25d"),
        ("ü}", "ü}"),
        ("\x01\x7f{[]^\"#'*?\\", "%01%7F%7B%5B%5D%5E%22%23%27%2A%3F%5C"),
    ],
)
def test_folder_names_are_escaped_as_spark_does(name: str, escaped: str) -> None:
    assert escape_path_name(name) == escaped
    assert unescape_path_name(escaped) == name


def test_stray_percent_signs_stay() -> None:
    assert unescape_path_name("100%_%zz%4") == "100%_%zz%4"


def test_folders_hold_nulls() -> None:
    values = {"a b": "x/y", "n": None}
    path = render_partition_path({**values, "e": ""})
    assert path == f"a b=x%2Fy/n={HIVE_NULL}/e={HIVE_NULL}"
    assert parse_partition_path(f"{path}/part-0.parquet") == {**values, "e": None}
