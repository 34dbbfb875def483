"""The rules a schema must fulfil, and the table of type widening."""

from __future__ import annotations

import pytest

from twinlake.errors import Code, CorruptTable, UnsupportedFeature, UserError
from twinlake.schema import (
    INTEGER,
    LONG,
    TYPE_CHANGES_KEY,
    VOID,
    Array,
    ColumnMappingMode,
    DataType,
    Decimal,
    Map,
    Struct,
    StructField,
    can_widen,
    check_schema,
    check_type_changes,
    parse_ddl,
    parse_type,
    render_path,
    schema_violations,
    type_changes,
    unsupported_type_changes,
)


def test_every_violation_is_named_once() -> None:
    schema = Struct(
        (
            StructField("a", LONG),
            StructField("A", LONG),
            StructField("b c", LONG),
            StructField("s", Struct((StructField("x=y", LONG), StructField("e", Struct())))),
            StructField("l", Array(Struct((StructField("q", LONG), StructField("Q", LONG))))),
            StructField("d", Decimal(50, 60)),
            StructField("m", Map(VOID, LONG)),
            StructField("", LONG),
        )
    )
    with pytest.raises(UserError) as caught:
        check_schema(schema, partition_columns=("zz", "s", "a", "A"))
    assert caught.value.code is Code.SCHEMA_INVALID
    assert sorted(v["path"] for v in caught.value.fields["violations"]) == sorted(
        ["A", "`b c`", "s.`x=y`", "s.e", "l.element.Q", "d", "m", "``", "zz", "s", "A"]
    )


@pytest.mark.parametrize(
    ("ddl", "partitions", "mode", "delta_class"),
    [
        ("a INT, b INT", ("b",), "none", None),
        ("`a b` INT", (), "name", None),
        ("`a b` INT", (), "none", "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ("a INT, b INT", ("a", "B"), "none", "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION"),
        ("a INT, b INT", ("c",), "none", "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        ("a INT, b INT, c INT", ("a", "A"), "none", "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("a ARRAY<INT>, b INT", ("a",), "none", "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        ("a VARIANT, b INT", ("a",), "none", "DELTA_INVALID_PARTITION_COLUMN_TYPE"),
        ("a INT, `A` INT", (), "none", "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("", (), "none", None),
    ],
)
def test_rules_have_deltas_names(
    ddl: str, partitions: tuple[str, ...], mode: str, delta_class: str | None
) -> None:
    found = list(
        schema_violations(
            parse_ddl(ddl), mode=ColumnMappingMode(mode), partition_columns=partitions
        )
    )
    assert [violation.delta_class for violation in found] == ([delta_class] if delta_class else [])


def test_a_schema_too_deep_to_walk_is_one_violation() -> None:
    kind: DataType = LONG
    for _ in range(5_000):
        kind = Array(kind)
    assert len(list(schema_violations(Struct((StructField("a", kind),))))) == 1


def test_mapping_is_checked_when_asked() -> None:
    with pytest.raises(UserError) as caught:
        check_schema(parse_ddl("a INT"), mode=ColumnMappingMode.ID, max_id=3)
    assert caught.value.delta_class is None


@pytest.mark.parametrize(
    ("old", "new", "delta", "iceberg"),
    [
        ("TINYINT", "SMALLINT", True, True),
        ("TINYINT", "BIGINT", True, True),
        ("INT", "BIGINT", True, True),
        ("BIGINT", "INT", False, False),
        ("INT", "INT", False, False),
        ("SMALLINT", "DOUBLE", True, False),
        ("BIGINT", "DOUBLE", False, False),
        ("INT", "FLOAT", False, False),
        ("FLOAT", "DOUBLE", True, True),
        ("DECIMAL(5,2)", "DECIMAL(7,2)", True, True),
        ("DECIMAL(5,2)", "DECIMAL(7,4)", True, False),
        ("DECIMAL(5,2)", "DECIMAL(6,4)", False, False),
        ("DECIMAL(5,2)", "DECIMAL(5,1)", False, False),
        ("DECIMAL(5,2)", "DECIMAL(5,2)", False, False),
        ("TINYINT", "DECIMAL(10,0)", True, False),
        ("INT", "DECIMAL(12,2)", True, False),
        ("INT", "DECIMAL(12,3)", False, False),
        ("BIGINT", "DECIMAL(20,0)", True, False),
        ("BIGINT", "DECIMAL(19,0)", False, False),
        ("DATE", "TIMESTAMP_NTZ", True, False),
        ("DATE", "TIMESTAMP", False, False),
        ("STRING", "BINARY", False, False),
        ("ARRAY<INT>", "ARRAY<BIGINT>", False, False),
    ],
)
def test_widening_table(old: str, new: str, delta: bool, iceberg: bool) -> None:
    assert can_widen(parse_type(old), parse_type(new)) is delta
    assert can_widen(parse_type(old), parse_type(new), iceberg=iceberg) is (iceberg or delta)
    assert can_widen(parse_type(old), parse_type(new), iceberg=True) is iceberg


def test_history_is_read_and_judged() -> None:
    field = StructField(
        "m",
        Map(INTEGER, Array(LONG)),
        metadata={
            TYPE_CHANGES_KEY: [
                {"fromType": "short", "toType": "integer", "fieldPath": "key", "tableVersion": 4},
                {"fromType": "integer", "toType": "double", "fieldPath": "value.element"},
                {"fromType": "string", "toType": "long", "fieldPath": "value.element"},
            ]
        },
    )
    assert [change.field_path for change in type_changes(field)] == [
        ("key",), ("value", "element"), ("value", "element"),
    ]  # fmt: skip
    schema = Struct((field,))
    assert [render_path(p) for p, _ in unsupported_type_changes(schema)] == ["m.value.element"]
    assert len(list(unsupported_type_changes(schema, iceberg=True))) == 2
    with pytest.raises(UnsupportedFeature, match="element from STRING to BIGINT") as caught:
        check_type_changes(schema)
    assert caught.value.code is Code.FEATURE_READ
    check_type_changes(Struct((StructField("a", LONG),)))


@pytest.mark.parametrize(
    "raw", ["x", [1], [{}], [{"fromType": "a", "toType": "b"}],
            [{"fromType": "long", "toType": "long", "fieldPath": 1}]],
    ids=str,
)  # fmt: skip
def test_damaged_history_is_reported(raw: object) -> None:
    with pytest.raises(CorruptTable):
        type_changes(StructField("a", LONG, metadata={TYPE_CHANGES_KEY: raw}))
