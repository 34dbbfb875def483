"""Changing schemas: what is allowed, what is refused, and what stays untouched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from twinlake.errors import Code, UserError
from twinlake.schema import (
    LONG,
    STRING,
    TYPE_CHANGES_KEY,
    Array,
    ColumnMappingMode,
    Map,
    Struct,
    StructField,
    add_column,
    assign_mapping,
    drop_column,
    field_at,
    merge_schemas,
    move_column,
    parse_ddl,
    parse_field_ddl,
    parse_path,
    parse_type,
    rename_column,
    render_ddl,
    set_comment,
    set_nullable,
    type_changes,
    widen_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = ColumnMappingMode.NAME
NONE = ColumnMappingMode.NONE
SCHEMA = parse_ddl(
    "id INT NOT NULL, s STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT>>, "
    "m MAP<STRUCT<k: INT>, STRUCT<v: INT>>, p DATE"
)


@pytest.mark.parametrize(
    ("ddl", "where", "first", "after"),
    [
        ("n INT", "p", False, None),
        ("n INT", None, True, None),
        ("n INT", "id", False, "ID"),
        ("s.c STRUCT<d: INT>", "b", False, None),
        ("l.element.y INT", "x", False, None),
        ("M.value.w INT", None, True, None),
        ("m.key.j INT", "k", False, "k"),
    ],
)
def test_columns_are_added(ddl: str, where: str | None, first: bool, after: str | None) -> None:
    parent, field = parse_field_ddl(ddl)
    grown = add_column(SCHEMA, field, parent=parent, first=first, after=after)
    names = (
        grown if not parent else field_at(Struct((StructField("r", grown),)), ("r", *parent)).type
    )
    assert isinstance(names, Struct)
    position = names.names().index(field.name)
    assert (names.names()[position - 1] if position else None) == where
    assert drop_column(grown, (*parent, field.name), mode=NAME) == SCHEMA


def refusals() -> list[tuple[str, Callable[[], object], str | None]]:
    def added(ddl: str, after: str | None = None) -> Callable[[], object]:
        parent, field = parse_field_ddl(ddl)
        return lambda: add_column(SCHEMA, field, parent=parent, after=after)

    return [
        ("add taken", added("ID INT"), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("add taken nested", added("s.A INT"), "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ("add to array", added("l.y INT"), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        ("add to leaf", added("id.y INT"), "DELTA_ADD_COLUMN_PARENT_NOT_STRUCT"),
        ("add to nothing", added("zz.y INT"), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ("add required", added("y INT NOT NULL"), None),
        ("add after nothing", added("y INT", "zz"), "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (
            "drop unmapped",
            lambda: drop_column(SCHEMA, ("p",), mode=NONE),
            "DELTA_UNSUPPORTED_DROP_COLUMN",
        ),
        (
            "drop partition",
            lambda: drop_column(SCHEMA, ("P",), mode=NAME, partition_columns=("p",)),
            "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
        ),
        (
            "drop only field",
            lambda: drop_column(SCHEMA, ("l", "element", "x"), mode=NAME),
            "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
        ),
        (
            "drop element",
            lambda: drop_column(SCHEMA, ("l", "element"), mode=NAME),
            "DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE",
        ),
        (
            "rename unmapped",
            lambda: rename_column(SCHEMA, ("p",), "q", mode=NONE),
            "DELTA_UNSUPPORTED_RENAME_COLUMN",
        ),
        (
            "rename to taken",
            lambda: rename_column(SCHEMA, ("p",), "ID", mode=NAME),
            "DELTA_DUPLICATE_COLUMNS_FOUND",
        ),
        (
            "rename to itself",
            lambda: rename_column(SCHEMA, ("p",), "p", mode=NAME),
            "DELTA_DUPLICATE_COLUMNS_FOUND",
        ),
        ("rename to nothing", lambda: rename_column(SCHEMA, ("p",), "", mode=NAME), None),
        ("move nowhere", lambda: move_column(SCHEMA, ("p",)), None),
        ("move twice", lambda: move_column(SCHEMA, ("p",), first=True, after="id"), None),
        ("move value", lambda: move_column(SCHEMA, ("m", "value"), first=True), None),
        (
            "tighten",
            lambda: set_nullable(SCHEMA, ("s", "a"), False),
            "DELTA_ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED",
        ),
        ("nullable key", lambda: set_nullable(SCHEMA, ("m", "key"), True), None),
        ("comment value", lambda: set_comment(SCHEMA, ("m", "value"), "x"), None),
        (
            "narrow",
            lambda: widen_column(SCHEMA, ("id",), parse_type("SMALLINT")),
            "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        ),
        (
            "widen a struct",
            lambda: widen_column(SCHEMA, ("s",), LONG),
            "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        ),
        (
            "widen beyond Iceberg",
            lambda: widen_column(SCHEMA, ("id",), parse_type("DOUBLE"), iceberg=True),
            "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
        ),
    ]


@pytest.mark.parametrize(
    ("change", "delta_class"),
    [pytest.param(change, name, id=title) for title, change, name in refusals()],
)
def test_refusals(change: Callable[[], object], delta_class: str | None) -> None:
    with pytest.raises(UserError) as caught:
        change()
    assert caught.value.delta_class == delta_class
    assert caught.value.why
    assert caught.value.fix


def test_columns_are_renamed_moved_loosened_and_commented() -> None:
    schema = rename_column(SCHEMA, ("S", "B"), "bb", mode=NAME)
    schema = move_column(schema, ("s", "bb"), first=True)
    schema = move_column(schema, ("p",), after="ID")
    schema = set_nullable(schema, ("id",), True)
    schema = set_comment(schema, ("s", "a"), "why")
    assert render_ddl(schema) == (
        "id INT, p DATE, s STRUCT<bb: STRING, a: INT COMMENT 'why'>, l ARRAY<STRUCT<x: INT>>, "
        "m MAP<STRUCT<k: INT>, STRUCT<v: INT>>"
    )
    assert render_ddl(set_comment(schema, ("s", "a"), None)).count("COMMENT") == 0
    assert move_column(schema, ("p",), after="p") == schema


def test_changing_only_the_case_of_a_name_is_a_rename() -> None:
    assert rename_column(SCHEMA, ("id",), "ID", mode=NAME).names()[0] == "ID"


@pytest.mark.parametrize("name", ["id", "P"])
def test_a_name_that_is_taken_is_told_before_the_mapping_that_is_lacking(name: str) -> None:
    with pytest.raises(UserError) as told:
        rename_column(SCHEMA, ("id",), name, mode=ColumnMappingMode.NONE)
    assert told.value.delta_class == "DELTA_DUPLICATE_COLUMNS_FOUND"


def test_elements_and_values_are_loosened() -> None:
    schema = Struct(
        (StructField("a", Array(LONG, False)), StructField("m", Map(STRING, LONG, False)))
    )
    schema = set_nullable(schema, ("a", "element"), True)
    schema = set_nullable(schema, ("m", "value"), True)
    assert schema == parse_ddl("a ARRAY<BIGINT>, m MAP<STRING, BIGINT>")
    assert set_nullable(schema, ("m", "key"), False) == schema


@pytest.mark.parametrize(
    ("path", "owner", "field_path"),
    [
        ("id", "id", None),
        ("s.a", "s.a", None),
        ("deep.element.value", "deep", "element.value"),
        ("l.element.x", "l.element.x", None),
    ],
)
def test_widening_is_recorded_on_the_nearest_field(
    path: str, owner: str, field_path: str | None
) -> None:
    schema = Struct((*SCHEMA.fields, parse_ddl("deep ARRAY<MAP<STRING, INT>>").fields[0]))
    wide = widen_column(schema, parse_path(path), LONG)
    assert field_at(wide, parse_path(path)).type == LONG
    entry = {"fromType": "integer", "toType": "long"}
    expected = entry if field_path is None else {**entry, "fieldPath": field_path}
    assert field_at(wide, parse_path(owner)).metadata[TYPE_CHANGES_KEY] == [expected]
    again = widen_column(wide, parse_path(path), parse_type("DECIMAL(20,0)"))
    history = type_changes(field_at(again, parse_path(owner)))
    assert [str(change.to_type) for change in history] == ["long", "decimal(20,0)"]
    assert widen_column(wide, parse_path(path), LONG) is wide


class TestMerge:
    @pytest.mark.parametrize(
        ("current", "incoming", "widen", "expected"),
        [
            ("a INT", "a INT", False, "a INT"),
            ("a BIGINT", "A INT", False, "a BIGINT"),
            ("a INT", "A BIGINT", True, "a BIGINT"),
            ("a INT, b INT", "c INT NOT NULL, a INT", False, "a INT, b INT, c INT"),
            ("a VOID", "a INT", False, "a INT"),
            ("a INT NOT NULL", "a VOID", False, "a INT NOT NULL"),
            (
                "m MAP<STRING, ARRAY<STRUCT<x: INT>>>",
                "m MAP<STRING, ARRAY<STRUCT<y: INT, X: INT>>>",
                False,
                "m MAP<STRING, ARRAY<STRUCT<x: INT, y: INT>>>",
            ),
        ],
    )
    def test_schemas_merge(self, current: str, incoming: str, widen: bool, expected: str) -> None:
        merged = merge_schemas(parse_ddl(current), parse_ddl(incoming), widen=widen)
        assert render_ddl(merged) == expected

    def test_ids_of_the_table_stay_and_those_of_the_data_go(self) -> None:
        mine, _ = assign_mapping(parse_ddl("a INT"), name_for="col-{}".format)
        theirs, _ = assign_mapping(parse_ddl("b INT, a INT"), name_for="x-{}".format)
        merged = merge_schemas(mine, theirs)
        assert merged.fields[0] == mine.fields[0]
        assert merged.fields[1] == parse_ddl("b INT").fields[0]

    def test_widening_of_an_element_is_recorded(self) -> None:
        merged = merge_schemas(
            parse_ddl("a ARRAY<INT>"), parse_ddl("a ARRAY<BIGINT>"), widen=True, iceberg=True
        )
        assert type_changes(merged.fields[0])[0].field_path == ("element",)

    def test_all_misfits_are_named(self) -> None:
        with pytest.raises(UserError) as caught:
            merge_schemas(
                parse_ddl("a INT, s STRUCT<x: INT>, d DATE"),
                parse_ddl("a STRING, s STRUCT<x: BOOLEAN, y: INT>, d ARRAY<INT>, n INT"),
                new_columns=False,
            )
        assert caught.value.code is Code.SCHEMA_EVOLUTION
        assert [column["path"] for column in caught.value.fields["columns"]] == [
            "a", "s.x", "s.y", "d", "n",
        ]  # fmt: skip
