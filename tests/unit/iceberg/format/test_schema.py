"""Delta schemas in Iceberg's words, read by PyIceberg."""

from __future__ import annotations

import pytest
from pyiceberg.schema import Schema
from pyiceberg.table.name_mapping import parse_mapping_from_json

from twinlake.errors import CompatViolation
from twinlake.iceberg.format.name_mapping import name_mapping
from twinlake.iceberg.format.schema import highest_id, iceberg_schema, leaves
from twinlake.protocol import Metadata
from twinlake.schema import Struct, assign_mapping, parse_ddl, render_schema

EVERY_TYPE = """
    b BYTE, s SHORT, i INT NOT NULL, l LONG, f FLOAT, d DOUBLE, n DECIMAL(12, 3), t STRING COMMENT
    'what it is', x BINARY, o BOOLEAN, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ,
    nested STRUCT<a: INT, `dotted.name`: ARRAY<STRUCT<deep: LONG>>>,
    lists ARRAY<ARRAY<INT>>, maps MAP<STRING, MAP<INT, STRUCT<v: DATE>>>
"""


def mapped(ddl: str) -> Metadata:
    """Metadata with ids on every node."""
    schema = parse_ddl(ddl)
    assert isinstance(schema, Struct)
    found, _ = assign_mapping(schema, name_for=lambda number: f"col-{number}", nested_ids=True)
    return Metadata(id="t", schema_string=render_schema(found))


def test_every_type_has_its_iceberg_form() -> None:
    schema = Schema.model_validate(iceberg_schema(mapped(EVERY_TYPE)).to_dict())

    assert {field.name: str(field.field_type) for field in schema.fields[:13]} == {
        "b": "int",
        "s": "int",
        "i": "int",
        "l": "long",
        "f": "float",
        "d": "double",
        "n": "decimal(12, 3)",
        "t": "string",
        "x": "binary",
        "o": "boolean",
        "day": "date",
        "at": "timestamptz",
        "local": "timestamp",
    }
    assert schema.find_field("i").required
    assert schema.find_field("t").doc == "what it is"
    maps = str(schema.find_field("maps").field_type)
    assert maps == "map<string, map<int, struct<20: v: optional date>>>"


def test_ids_are_those_of_delta_at_every_depth() -> None:
    metadata = mapped(EVERY_TYPE)
    schema = Schema.model_validate(iceberg_schema(metadata).to_dict())

    paths = {schema.find_column_name(number): number for number in range(1, 100)}
    paths.pop(None, None)

    assert paths["nested"] == 14
    assert paths["nested.dotted.name"] == 16
    assert sorted(number for number in paths.values()) == list(range(1, len(paths) + 1))


def test_equal_schemas_share_an_id_and_others_do_not() -> None:
    one, same, other = (mapped(ddl) for ddl in ("a INT, b LONG", "a INT, b LONG", "a INT, c LONG"))

    assert iceberg_schema(one).id == iceberg_schema(same).id
    assert iceberg_schema(one).id != iceberg_schema(other).id


def test_what_iceberg_cannot_have_is_refused_all_at_once() -> None:
    metadata = mapped("v VOID, ok INT, i INTERVAL DAY, a ARRAY<VARIANT>")

    with pytest.raises(CompatViolation) as refused:
        iceberg_schema(metadata)

    problems = refused.value.fields["problems"]
    assert [text.split()[0] for text in problems] == ["v", "i", "a.element"]


def test_columns_without_ids_are_refused() -> None:
    schema = parse_ddl("a INT, m MAP<INT, INT>")
    assert isinstance(schema, Struct)
    with pytest.raises(CompatViolation) as refused:
        iceberg_schema(Metadata(id="t", schema_string=render_schema(schema)))

    assert len(refused.value.fields["problems"]) == 4


def test_leaves_are_what_statistics_can_speak_of() -> None:
    found = list(leaves(mapped("a INT, s STRUCT<x: DATE, l: ARRAY<INT>>, m MAP<INT, INT>").schema))

    assert [(leaf.path, leaf.id) for leaf in found] == [(("col-1",), 1), (("col-2", "col-3"), 3)]


def test_the_name_mapping_knows_both_names() -> None:
    text = name_mapping(mapped("a INT, m MAP<STRING, STRUCT<v: INT>>").schema)

    plain, keyed = parse_mapping_from_json(text).root
    assert (plain.field_id, plain.names) == (1, ["a", "col-1"])
    assert [(f.field_id, f.names) for f in keyed.fields] == [(4, ["key"]), (5, ["value"])]
    assert [(f.field_id, f.names) for f in keyed.fields[1].fields] == [(3, ["v", "col-3"])]


def changed(ddl: str, **keys: object) -> Metadata:
    """Metadata whose first column has more to it."""
    metadata = mapped(ddl)
    first, *rest = metadata.schema
    return metadata.with_schema(Struct((first.with_metadata(**keys), *rest)))


@pytest.mark.parametrize(
    ("ddl", "keys", "problem"),
    [
        ("a STRING", {"__COLLATIONS": {"a": "spark.UTF8_LCASE"}}, "a is compared by collation"),
        (
            "a ARRAY<STRING>",
            {"__COLLATIONS": {"a.element": "icu.de_CI"}},
            "a.element is compared by collation icu.de_CI",
        ),
        ("a CHAR(5), b VARCHAR(5)", {}, "a is char(5)"),
        ("a STRUCT<b: ARRAY<CHAR(5)>>", {}, "a is struct<b:array<char(5)>>"),
        ("a INT", {"EXISTS_DEFAULT": "5"}, "a has a value for files that lack it"),
        ("a INT, b INT", {"delta.columnMapping.id": 2}, "b has id 2 like another column"),
        (
            "a INT, b ARRAY<INT>",
            {"delta.columnMapping.id": 3},
            "b.element has id 3 like another column",
        ),
        ("a INT", {"delta.columnMapping.id": 2147483540}, "a has id 2147483540"),
        (
            "a DOUBLE",
            {"delta.typeChanges": [{"fromType": "integer", "toType": "double"}]},
            "a was widened from integer to double",
        ),
        ("a DOUBLE", {"delta.typeChanges": "rubbish"}, "delta.typeChanges"),
    ],
)
def test_what_readers_would_stumble_over_is_refused(
    ddl: str, keys: dict[str, object], problem: str
) -> None:
    with pytest.raises(CompatViolation) as refused:
        iceberg_schema(changed(ddl, **keys))
    (found,) = refused.value.fields["problems"]
    assert found.startswith(problem)


def test_what_iceberg_can_widen_may_have_been_widened() -> None:
    history = [
        {"fromType": "byte", "toType": "short"},
        {"fromType": "short", "toType": "long"},
    ]
    iceberg_schema(changed("a LONG", **{"delta.typeChanges": history}))
    iceberg_schema(changed("a STRING", **{"__COLLATIONS": {"a": "spark.UTF8_BINARY"}}))


def test_format_3_has_more_types() -> None:
    metadata = mapped("v VARIANT, g GEOMETRY, h GEOGRAPHY")
    schema = iceberg_schema(metadata, format_version=3).to_dict()

    assert [field["type"] for field in schema["fields"]] == ["variant", "geometry", "geography"]
    Schema.model_validate({**schema, "fields": schema["fields"][1:]})


def test_the_highest_id_counts_elements_keys_and_values() -> None:
    assert highest_id(iceberg_schema(mapped("a INT"))) == 1
    assert highest_id(iceberg_schema(mapped(EVERY_TYPE))) == 27
