"""Arrow types, both ways."""

from __future__ import annotations

import pyarrow as pa
import pytest

from twinlake.errors import Code, UserError
from twinlake.schema import (
    PARQUET_FIELD_ID,
    assign_mapping,
    field_id,
    from_arrow,
    parse_ddl,
    parse_type,
    render_ddl,
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


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (pa.large_string(), "STRING"),
        (pa.string_view(), "STRING"),
        (pa.dictionary(pa.int8(), pa.string()), "STRING"),
        (pa.uint8(), "SMALLINT"),
        (pa.uint32(), "BIGINT"),
        (pa.uint64(), "DECIMAL(20,0)"),
        (pa.float16(), "FLOAT"),
        (pa.binary(4), "BINARY"),
        (pa.date64(), "DATE"),
        (pa.timestamp("ns"), "TIMESTAMP_NTZ"),
        (pa.timestamp("s", "Europe/Berlin"), "TIMESTAMP"),
        (pa.large_list(pa.int8()), "ARRAY<TINYINT>"),
        (pa.list_(pa.int8(), 3), "ARRAY<TINYINT>"),
        (pa.decimal256(38, 2), "DECIMAL(38,2)"),
        (pa.run_end_encoded(pa.int32(), pa.int64()), "BIGINT"),
        (pa.uuid(), "BINARY"),
    ],
    ids=str,
)
def test_types_from_arrow(kind: pa.DataType, expected: str) -> None:
    assert render_ddl(from_arrow(pa.schema([("c", kind)]))) == f"c {expected}"


def test_types_that_delta_lacks_are_all_named() -> None:
    schema = pa.schema(
        [
            ("t", pa.time64("us")),
            ("s", pa.struct([("d", pa.duration("us")), ("ok", pa.int8())])),
            ("l", pa.list_(pa.decimal256(50, 2))),
        ]
    )
    with pytest.raises(UserError) as caught:
        from_arrow(schema)
    assert caught.value.code is Code.SCHEMA_INVALID
    assert [column["path"] for column in caught.value.fields["columns"]] == [
        "t", "s.d", "l.element",
    ]  # fmt: skip


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
    assert [field_id(field) for field in from_arrow(schema, field_ids=True)] == [1, 2]
    assert [field_id(field) for field in from_arrow(schema)] == [None, None]
