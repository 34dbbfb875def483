"""Laws of schema text: JSON, DDL and paths read back what they write, and refuse cleanly."""

from __future__ import annotations

import json
import pickle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.schema_strategies import json_values, metadata, names, schemas, text
from twinlake.errors import TwinlakeError
from twinlake.schema import (
    Struct,
    parse_ddl,
    parse_field_ddl,
    parse_path,
    parse_schema,
    parse_type,
    render_ddl,
    render_path,
    render_schema,
    render_type,
    schema_from_dict,
    schema_to_dict,
)


@given(schemas(field_metadata=metadata))
@settings(max_examples=80)
def test_json_round_trip_keeps_everything(schema: Struct) -> None:
    written = render_schema(schema)
    again = parse_schema(written)
    assert again == schema
    assert render_schema(again) == written
    assert pickle.loads(pickle.dumps(schema)) == schema


@given(schemas(field_metadata=metadata))
@settings(max_examples=50)
def test_metadata_keeps_the_order_of_its_keys(schema: Struct) -> None:
    assert json.dumps(schema_to_dict(parse_schema(render_schema(schema)))) == json.dumps(
        schema_to_dict(schema)
    )


comments = st.one_of(st.just({}), st.builds(lambda value: {"comment": value}, text))


@given(schemas(field_metadata=comments, holds_null=st.just(True)))
@settings(max_examples=80)
def test_ddl_round_trip(schema: Struct) -> None:
    assert parse_ddl(render_ddl(schema)) == schema


@given(schemas(holds_null=st.just(True)))
@settings(max_examples=50)
def test_type_round_trip(schema: Struct) -> None:
    assert parse_type(render_type(schema)) == schema


@given(st.lists(names, min_size=1, max_size=4).map(tuple))
def test_path_round_trip(path: tuple[str, ...]) -> None:
    assert parse_path(render_path(path)) == path


@given(st.text(max_size=200))
@settings(max_examples=100)
def test_any_text_gives_a_schema_or_an_error_of_ours(source: str) -> None:
    for parse in (parse_schema, parse_ddl, parse_field_ddl, parse_type, parse_path):
        _only_ours(parse, source)


ddl_words = st.sampled_from(
    [
        "a", "`b`", "struct", "<", ">", "array", "map", ",", ":", "(", ")", "int", "decimal", "10",
        "38", "NOT", "NULL", "COMMENT", "'x'", '"', "'", "`", "DEFAULT", "GENERATED", "ALWAYS",
        "AS", "IDENTITY", "START", "WITH", "varchar", "string", "COLLATE", "interval", "day", "TO",
        "second", ".", "--", "/*", "geometry", "OGC", "BY", "-1", "99999999999999999999",
    ]
)  # fmt: skip


@given(st.lists(ddl_words, max_size=30).map(" ".join))
@settings(max_examples=100)
def test_any_words_give_a_schema_or_an_error_of_ours(source: str) -> None:
    for parse in (parse_ddl, parse_field_ddl, parse_type):
        _only_ours(parse, source)


type_objects = st.recursive(
    json_values | st.sampled_from(["long", "decimal(3,9)", "struct", "null"]),
    lambda inner: st.fixed_dictionaries(
        {"type": st.sampled_from(["struct", "array", "map", "udt", "long"]) | inner},
        optional={
            "fields": st.lists(inner, max_size=3) | inner,
            "name": text | inner,
            "elementType": inner,
            "keyType": inner,
            "valueType": inner,
            "sqlType": inner,
            "nullable": st.booleans() | inner,
            "containsNull": inner,
            "metadata": inner,
        },
    ),
    max_leaves=12,
)


@given(type_objects)
@settings(max_examples=100)
def test_any_json_gives_a_schema_or_an_error_of_ours(raw: Any) -> None:
    _only_ours(schema_from_dict, raw)
    _only_ours(parse_schema, json.dumps(raw))


@given(st.binary(max_size=100))
@settings(max_examples=50)
def test_any_bytes_give_a_schema_or_an_error_of_ours(raw: bytes) -> None:
    _only_ours(parse_schema, raw)
    _only_ours(parse_ddl, raw.decode("utf-8", "surrogateescape"))


def _only_ours(parse: Any, source: Any) -> None:
    try:
        parse(source)
    except TwinlakeError as error:
        assert error.what
        assert str(error)
