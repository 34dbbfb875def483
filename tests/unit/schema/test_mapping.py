"""Column mapping: ids, physical names, nested ids."""

from __future__ import annotations

import pytest

from twinlake.errors import UserError
from twinlake.schema import (
    ID_KEY,
    LONG,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    ColumnMappingMode,
    Struct,
    StructField,
    add_column,
    assign_mapping,
    field_at,
    field_id,
    mapping_problems,
    nested_ids,
    parse_ddl,
    parse_field_ddl,
    physical_name,
    physical_path,
    physical_schema,
    rename_column,
    render_path,
    strip_mapping,
    walk_fields,
)


def by_id(number: int) -> str:
    return f"col-{number}"


def ids_of(schema: Struct) -> dict[str, int | None]:
    return {render_path(path): field_id(field) for path, field in walk_fields(schema)}


def test_struct_fields_come_first_then_nested_ids_depth_first() -> None:
    schema = parse_ddl("a INT, b MAP<ARRAY<INT>, ARRAY<STRING>>, c INT")
    mapped, top = assign_mapping(schema, name_for=by_id, nested_ids=True)
    assert ids_of(mapped) == {"a": 1, "b": 2, "c": 3}
    assert nested_ids(mapped.fields[1]) == {
        "col-2.key": 4,
        "col-2.key.element": 5,
        "col-2.value": 6,
        "col-2.value.element": 7,
    }
    assert NESTED_IDS_KEY not in mapped.fields[0].metadata
    assert top == 7


def test_a_struct_inside_an_array_owns_its_nested_ids() -> None:
    schema = parse_ddl("a ARRAY<STRUCT<x: ARRAY<INT>, y: INT>>, z MAP<INT, INT>")
    mapped, top = assign_mapping(schema, name_for=by_id, nested_ids=True)
    assert ids_of(mapped) == {"a": 1, "a.element.x": 2, "a.element.y": 3, "z": 4}
    assert nested_ids(field_at(mapped, ("a",))) == {"col-1.element": 5}
    assert nested_ids(field_at(mapped, ("a", "element", "x"))) == {"col-2.element": 6}
    assert nested_ids(field_at(mapped, ("z",))) == {"col-4.key": 7, "col-4.value": 8}
    assert top == 8


def test_new_columns_continue_after_the_highest_id_ever_used() -> None:
    mapped, top = assign_mapping(parse_ddl("a INT, b INT"), name_for=by_id)
    parent, field = parse_field_ddl("c STRUCT<d: INT>")
    grown, again = assign_mapping(
        add_column(mapped, field, parent=parent, first=True), max_id=top + 10, name_for=by_id
    )
    assert ids_of(grown) == {"c": 13, "c.d": 14, "a": 1, "b": 2}
    assert again == 14


def test_the_highest_id_never_comes_down() -> None:
    mapped, _ = assign_mapping(parse_ddl("a INT"), name_for=by_id)
    assert assign_mapping(mapped, max_id=9, name_for=by_id)[1] == 9


def test_existing_ids_names_and_nested_ids_are_kept() -> None:
    given_field = StructField(
        "a",
        parse_ddl("a ARRAY<ARRAY<INT>>").fields[0].type,
        metadata={ID_KEY: 5, PHYSICAL_NAME_KEY: "p", NESTED_IDS_KEY: {"p.element": 40}},
    )
    schema = Struct((given_field, StructField("b", LONG, metadata={ID_KEY: 7})))
    mapped, top = assign_mapping(schema, name_for=by_id, nested_ids=True)
    assert nested_ids(mapped.fields[0]) == {"p.element": 40, "p.element.element": 41}
    assert [physical_name(field) for field in mapped] == ["p", "col-7"]
    assert top == 41


def test_switching_mapping_on_keeps_the_names_in_the_files() -> None:
    mapped, _ = assign_mapping(
        parse_ddl("A INT, s STRUCT<B: INT>"), name_for=by_id, keep_names=True
    )
    assert [physical_name(field) for _, field in walk_fields(mapped)] == ["A", "s", "B"]


def test_physical_names_survive_a_rename() -> None:
    mapped, _ = assign_mapping(parse_ddl("a INT, m MAP<INT, STRUCT<b: INT>>"), name_for=by_id)
    renamed = rename_column(mapped, ("m", "value", "b"), "z", mode=ColumnMappingMode.NAME)
    path = ("m", "value", "z")
    assert physical_path(renamed, path, ColumnMappingMode.NAME) == ("col-2", "value", "col-3")
    assert physical_path(renamed, path, ColumnMappingMode.NONE) == path
    assert physical_schema(renamed, ColumnMappingMode.ID).names() == ("col-1", "col-2")
    assert strip_mapping(renamed) == parse_ddl("a INT, m MAP<INT, STRUCT<z: INT>>")


def test_problems_are_all_found() -> None:
    schema = Struct(
        (
            StructField("a", LONG, metadata={ID_KEY: 1, PHYSICAL_NAME_KEY: "p"}),
            StructField("b", LONG, metadata={ID_KEY: 1, PHYSICAL_NAME_KEY: "P"}),
            StructField("c", LONG, metadata={ID_KEY: 9, NESTED_IDS_KEY: {"x.element": 1}}),
            StructField("d", LONG),
        )
    )
    assert [path for path, _ in mapping_problems(schema, max_id=8)] == [
        "b", "b", "c", "c", "c", "d", "d",
    ]  # fmt: skip


def test_ids_end_at_32_bits() -> None:
    with pytest.raises(UserError):
        assign_mapping(parse_ddl("a INT"), max_id=2**31 - 1, name_for=by_id)
