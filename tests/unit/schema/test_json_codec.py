"""Schema JSON: what is accepted, what is refused, and how."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twinlake.errors import Code, CorruptTable, UserError
from twinlake.schema import (
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    VARIANT,
    VOID,
    Array,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Map,
    Struct,
    StructField,
    UserDefined,
    field_at,
    parse_schema,
    render_schema,
    type_from_json,
    type_to_json,
)

SEED_TEXT = (
    '{"type":"struct","fields":[{"name":"a","type":"integer","nullable":false,"metadata":'
    '{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"}},{"name":"m","type":'
    '{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"decimal(10,2)",'
    '"containsNull":false},"valueContainsNull":true},"nullable":true,"metadata":{"zeta":{"b":1,'
    '"a":[1,"x",null]},"comment":"ü","delta.columnMapping.nested.ids":{"m.key":3}}}]}'
)


def wrap(kind: Any) -> str:
    return json.dumps({"type": "struct", "fields": [{"name": "c", "type": kind}]})


def test_text_comes_back_letter_for_letter() -> None:
    assert render_schema(parse_schema(SEED_TEXT)) == SEED_TEXT


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("long", LONG),
        ("null", VOID),
        ("void", VOID),
        ("timestamp_ltz", TIMESTAMP),
        ("variant", VARIANT),
        ("decimal(10,2)", Decimal(10, 2)),
        ("decimal(10, 2)", Decimal(10, 2)),
        ("decimal", Decimal(10, 0)),
        ("interval day to second", Interval("day", "second")),
        ("interval month", Interval("month", "month")),
        ("geometry(OGC:CRS84)", Geometry("OGC:CRS84")),
        ("geography(EPSG:4326, VINCENTY)", Geography("EPSG:4326", "VINCENTY")),
        ({"type": "array", "elementType": "long"}, Array(LONG, True)),
        (
            {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": False},
            Map(STRING, LONG, False),
        ),
    ],
    ids=str,
)
def test_types_are_read(raw: Any, expected: DataType) -> None:
    found = type_from_json(raw)
    assert found == expected
    assert type_from_json(type_to_json(found)) == found


def test_user_defined_type_keeps_its_definition() -> None:
    raw = {
        "type": "udt",
        "class": "org.example.Point",
        "sqlType": {"type": "array", "elementType": "double", "containsNull": False},
        "pyClass": "example.Point",
    }
    found = type_from_json(raw)
    assert isinstance(found, UserDefined)
    assert found.sql_type == Array(DOUBLE, False)
    assert json.dumps(type_to_json(found)) == json.dumps(raw)


def test_nullable_and_metadata_may_be_missing() -> None:
    assert field_at(parse_schema(wrap("long")), ("c",)) == StructField("c", LONG)


def deep(levels: int) -> str:
    opened = '{"type":"array","containsNull":true,"elementType":' * levels
    return (
        '{"type":"struct","fields":[{"name":"c","type":' + opened + '"long"' + "}" * levels + "}]}"
    )


@pytest.mark.parametrize(
    "source",
    [
        deep(10_000),
        deep(500),
        deep(150),
        wrap("long")[:-3] + ',"metadata":' + '{"a":' * 10_000 + "1" + "}" * 10_000 + "}]}",
        wrap("long")[:-3] + ',"metadata":' + '{"a":' * 300 + "1" + "}" * 300 + "}]}",
        "[" * 100_000,
    ],
    ids=["10000", "500", "150", "metadata 10000", "metadata 300", "brackets"],
)
def test_deep_nesting_is_one_clear_error(source: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_schema(source)
    assert caught.value.code is Code.SCHEMA_INVALID
    assert "deeper" in caught.value.what


def test_nesting_within_the_limit_is_fine() -> None:
    schema = parse_schema(deep(99))
    assert parse_schema(render_schema(schema)) == schema


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("\ud800", "not JSON"),
        ('"long"', "has to be a struct"),
        ("[]", "name or an object"),
        ("{}", "Unknown kind"),
        ('{"type":"struct"}', "list of fields"),
        ('{"type":"struct","fields":{}}', "list of fields"),
        ('{"type":"struct","fields":[1]}', "has to be an object"),
        ('{"type":"struct","fields":[{"type":"long"}]}', "no name"),
        ('{"type":"struct","fields":[{"name":"c"}]}', "no type"),
        ('{"type":"struct","fields":[{"name":"c","type":"long","nullable":1}]}', "nullable"),
        ('{"type":"struct","fields":[{"name":"c","type":"long","metadata":[1]}]}', "metadata"),
        (wrap("lnog"), "Unknown type 'lnog'"),
        (wrap("decimal(39,0)"), "not possible"),
        (wrap("decimal(3,4)"), "not possible"),
        (wrap("decimal(3,-1)"), "not possible"),
        (wrap("interval second to day"), "Unknown type"),
        (wrap({"type": "array"}), "name or an object"),
        (wrap({"type": "udt"}), "name or an object"),
        (wrap({"type": "list", "elementType": "long"}), "Unknown kind"),
    ],
)
def test_bad_text_is_refused(source: str, words: str) -> None:
    with pytest.raises(CorruptTable) as caught:
        parse_schema(source)
    assert caught.value.code is Code.SCHEMA_INVALID
    assert words in caught.value.what


def test_errors_name_the_column() -> None:
    raw = {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": "x"}}
    with pytest.raises(CorruptTable) as caught:
        parse_schema(wrap(raw))
    assert caught.value.fields["path"] == "c.value.element"


def test_the_error_class_is_the_callers_choice() -> None:
    with pytest.raises(UserError):
        parse_schema("{", error=UserError)


@pytest.mark.parametrize("value", [object(), 1j], ids=["object", "complex"])
def test_metadata_that_is_not_json_is_refused_on_writing(value: object) -> None:
    with pytest.raises(UserError):
        render_schema(Struct((StructField("a", LONG, metadata={"k": value}),)))
