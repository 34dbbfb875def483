"""Arrow types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from twinlake.schema import (
    PARQUET_FIELD_ID,
    assign_mapping,
    parse_ddl,
    parse_type,
    to_arrow,
    type_to_arrow,
)


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("TIMESTAMP", pa.timestamp("us", "UTC")),
        ("TIMESTAMP_NTZ", pa.timestamp("us")),
        ("DATE", pa.date32()),
        ("DECIMAL(38,10)", pa.decimal128(38, 10)),
        ("ARRAY<INT>", pa.list_(pa.int32())),
        ("MAP<STRING, BIGINT>", pa.map_(pa.string(), pa.int64())),
        ("STRUCT<a: BINARY NOT NULL>", pa.struct([pa.field("a", pa.binary(), nullable=False)])),
        ("VOID", pa.null()),
        ("INTERVAL YEAR TO MONTH", pa.int32()),
        ("INTERVAL DAY", pa.int64()),
        ("GEOGRAPHY", pa.binary()),
    ],
)
def test_types_to_arrow(ddl: str, expected: pa.DataType) -> None:
    assert type_to_arrow(parse_type(ddl)) == expected


def test_field_ids_reach_every_node() -> None:
    mapped, _ = assign_mapping(
        parse_ddl("a INT, m MAP<STRING, ARRAY<STRUCT<x: INT>>>"),
        name_for="col-{}".format,
        nested_ids=True,
    )
    schema = to_arrow(mapped, field_ids=True)

    def number(field: pa.Field) -> int:
        return int(field.metadata[PARQUET_FIELD_ID])

    column = schema.field("m").type
    items = column.item_field.type
    assert [number(schema.field("a")), number(schema.field("m"))] == [1, 2]
    assert [number(column.key_field), number(column.item_field)] == [4, 5]
    assert number(items.value_field) == 6
    assert number(items.value_type.field("x")) == 3
    assert all(field.metadata is None for field in to_arrow(mapped))
