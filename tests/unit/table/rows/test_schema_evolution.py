"""What a write does to a table's schema, and how identity high-water marks move."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from twinlake.actions import AddFile
from twinlake.errors import TwinlakeError, UserError
from twinlake.protocol import Metadata
from twinlake.runtime import RandomIds
from twinlake.schema import (
    IDENTITY_HIGH_WATER_MARK_KEY,
    field_id,
    parse_ddl,
    physical_name,
    render_ddl,
    type_changes,
)
from twinlake.spark.rows.identity import with_high_water_marks
from twinlake.table.rows import evolve, identity_paths, read_field_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

WIDENING = {"delta.enableTypeWidening": "true"}
MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "0"}


def table(
    ddl: str, configuration: Mapping[str, str] | None = None, partitions: tuple[str, ...] = ()
) -> Metadata:
    metadata = Metadata(
        id="t", configuration=configuration or {}, partition_columns=partitions
    ).with_schema(parse_ddl(ddl))
    if configuration is MAPPED:
        from twinlake.compat import with_column_mapping

        return with_column_mapping(None, metadata, RandomIds(7))
    return metadata


def after(metadata: Metadata, frame: str, /, **options: Any) -> Metadata:
    chosen = {"merge_schema": False, "overwrite_schema": False, **options}
    return evolve(parse_ddl(frame), metadata, ids=RandomIds(1), **chosen)


SAME = [
    pytest.param("a INT, b STRING", "b STRING, A INT", id="other order and case"),
    pytest.param("a INT, b STRING", "b STRING", id="missing column"),
    pytest.param("a INT NOT NULL", "a INT", id="nullability is for the rows"),
    pytest.param("s STRUCT<x: INT, y: INT>", "s STRUCT<Y: INT>", id="missing field"),
    pytest.param("a ARRAY<STRUCT<x: INT, y: INT>>", "a ARRAY<STRUCT<y: INT, x: INT>>", id="array"),
    pytest.param("a SMALLINT", "a TINYINT", id="narrower integer"),
    pytest.param("a INT", "a VOID", id="nulls"),
]


@pytest.mark.parametrize(("ddl", "frame"), SAME)
@pytest.mark.parametrize("merge", [False, True])
def test_a_frame_that_fits_changes_nothing(ddl: str, frame: str, merge: bool) -> None:
    before = table(ddl)
    assert after(before, frame, merge_schema=merge) is before


GROWS = [
    pytest.param("a INT", "b INT NOT NULL, a INT", "a INT, b INT", id="new column, nullable"),
    pytest.param(
        "s STRUCT<x: INT>, a INT",
        "s STRUCT<y: INT, X: INT>",
        "s STRUCT<x: INT, y: INT>, a INT",
        id="in a struct",
    ),
    pytest.param(
        "m MAP<STRING, ARRAY<STRUCT<x: INT>>>",
        "m MAP<STRING, ARRAY<STRUCT<z: INT>>>",
        "m MAP<STRING, ARRAY<STRUCT<x: INT, z: INT>>>",
        id="below maps and arrays",
    ),
    pytest.param("a TINYINT", "a INT", "a INT", id="small integers need no feature"),
]


@pytest.mark.parametrize(("ddl", "frame", "expected"), GROWS)
def test_merging_adds_and_refusing_names_every_difference(
    ddl: str, frame: str, expected: str
) -> None:
    before = table(ddl)
    assert render_ddl(after(before, frame, merge_schema=True).schema) == expected
    with pytest.raises(UserError) as caught:
        after(before, frame)
    assert caught.value.delta_class == "DELTA_METADATA_MISMATCH"


def test_all_differences_are_listed() -> None:
    with pytest.raises(UserError) as caught:
        after(table("a INT, s STRUCT<x: TINYINT>"), "z INT, s STRUCT<q: INT, x: INT>")
    told = " ".join(caught.value.fields["differences"])
    assert all(name in told for name in ("z INT", "s.q INT", "s.x is INT"))


MISFITS = [("BIGINT", "INT"), ("INT", "BIGINT"), ("STRING", "INT"), ("INT", "STRUCT<x: INT>")]


@pytest.mark.parametrize(("own", "given"), MISFITS, ids=[" <- ".join(pair) for pair in MISFITS])
@pytest.mark.parametrize("merge", [False, True])
def test_other_types_are_refused_as_delta_refuses_them(own: str, given: str, merge: bool) -> None:
    with pytest.raises(UserError) as caught:
        after(table(f"a {own}"), f"a {given}", merge_schema=merge)
    assert caught.value.delta_class == "DELTA_FAILED_TO_MERGE_FIELDS"


def test_widening_keeps_a_history_and_needs_merge_schema() -> None:
    before = table("a INT", WIDENING)
    wide = after(before, "a BIGINT", merge_schema=True)
    assert render_ddl(wide.schema) == "a BIGINT"
    assert len(type_changes(wide.schema.fields[0])) == 1
    with pytest.raises(UserError) as caught:
        after(before, "a BIGINT")
    assert caught.value.delta_class == "DELTA_METADATA_MISMATCH"
    iceberg = {**WIDENING, "delta.enableIcebergCompatV2": "true"}
    with pytest.raises(UserError):
        after(table("a INT", iceberg), "a DOUBLE", merge_schema=True)


def test_columns_that_rules_name_keep_their_type() -> None:
    checked = table("a SMALLINT", {**WIDENING, "delta.constraints.c": "a > 0"})
    with pytest.raises(UserError) as caught:
        after(checked, "a INT", merge_schema=True)
    assert caught.value.delta_class == "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH"


def test_implicit_casts_keep_the_column_but_still_add_new_ones() -> None:
    grown = after(
        table("a INT, s STRUCT<x: STRING>"),
        "a BIGINT, s STRUCT<x: INT, y: INT>",
        merge_schema=True,
        implicit_casts=True,
    )
    assert render_ddl(grown.schema) == "a INT, s STRUCT<x: STRING, y: INT>"


def test_untyped_nulls_become_a_column_but_not_an_element() -> None:
    before = table("a ARRAY<INT>")
    assert after(before, "a ARRAY<VOID>") is before
    assert render_ddl(after(before, "b VOID", merge_schema=True).schema).endswith("b VOID")
    with pytest.raises(UserError) as caught:
        after(before, "b ARRAY<STRUCT<x: VOID>>", merge_schema=True)
    assert caught.value.delta_class == "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE"


def test_names_that_differ_in_case_only_are_duplicates() -> None:
    with pytest.raises(UserError) as caught:
        after(table("a INT"), "a INT, s STRUCT<x: INT, X: INT>", merge_schema=True)
    assert caught.value.delta_class == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA"


def test_new_columns_of_mapped_tables_get_ids_and_names() -> None:
    before = table("a INT", MAPPED)
    grown = after(before, "a INT, s STRUCT<x: INT>", merge_schema=True)
    old, new = grown.schema.fields
    assert (old, field_id(new)) == (before.schema.fields[0], 2)
    assert physical_name(new).startswith("col-")
    assert grown.get("delta.columnMapping.maxColumnId") == "3"


def test_overwriting_keeps_the_mapping_of_what_stays() -> None:
    before = table("a INT NOT NULL, c INT, s STRUCT<x: INT>", MAPPED, ("a",))
    new = after(before, "A INT, c BIGINT, s STRUCT<x: INT, y: INT>", overwrite_schema=True)
    a, c, s = new.schema.fields
    assert (a.name, a.nullable, field_id(a)) == ("A", True, 1)
    assert (field_id(c), field_id(s)) == (5, 6)
    assert field_id(s.type.fields[0]) == 4  # type: ignore[attr-defined]
    assert new.partition_columns == ()


@pytest.mark.parametrize(
    ("given", "fits"),
    [(None, True), (("P",), True), (("a",), False), (("p", "a"), False)],
    ids=["not given", "same", "other", "more"],
)
def test_partitioning_changes_only_with_the_schema(
    given: tuple[str, ...] | None, fits: bool
) -> None:
    before = table("a INT, p INT, q INT", partitions=("p",))
    frame = "a INT, p INT, q INT"
    if fits:
        assert after(before, frame, partition_by=given) is before
    else:
        with pytest.raises(UserError) as caught:
            after(before, frame, partition_by=given)
        assert caught.value.delta_class == "DELTA_METADATA_MISMATCH"
    replaced = after(before, frame, partition_by=given, overwrite_schema=True)
    assert [n.casefold() for n in replaced.partition_columns] == [n.casefold() for n in given or ()]


def test_bookkeeping_of_other_tables_does_not_come_along() -> None:
    foreign = table("a INT, b INT COMMENT 'kept' DEFAULT 3", MAPPED).schema
    grown = evolve(foreign, table("a INT"), merge_schema=True, overwrite_schema=False)
    assert dict(grown.schema.fields[1].metadata) == {"comment": "kept"}


def test_an_empty_table_takes_the_frame() -> None:
    assert render_ddl(after(Metadata(), "a INT NOT NULL").schema) == "a INT"


def test_read_columns_show_lengths_and_hide_bookkeeping() -> None:
    (field,) = table("c CHAR(3) COMMENT 'code'", MAPPED).schema.fields
    assert read_field_metadata(field) == {
        "__CHAR_VARCHAR_TYPE_STRING": "char(3)",
        "comment": "code",
    }


def identity(start: int, step: int, mark: int | None = None) -> Metadata:
    (field,) = parse_ddl("id BIGINT").fields
    keys: dict[str, Any] = {
        "delta.identity.start": start,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": True,
        IDENTITY_HIGH_WATER_MARK_KEY: mark,
    }
    schema = parse_ddl("id BIGINT, a INT")
    return Metadata().with_schema(type(schema)((field.with_metadata(**keys), *schema.fields[1:])))


def written(low: int | None, high: int | None, nulls: int = 0) -> AddFile:
    stats = {
        "numRecords": 3,
        "minValues": {"id": low} if low is not None else {},
        "maxValues": {"id": high} if high is not None else {},
        "nullCount": {"id": nulls},
    }
    return AddFile(
        path="f",
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        stats=json.dumps(stats),
    )


MARKS = [
    pytest.param(1, 1, None, [(1, 4), (2, 7)], 7, id="first write"),
    pytest.param(1, 1, 7, [(8, 9)], 9, id="goes on"),
    pytest.param(1, 1, 9, [(2, 3)], None, id="never back"),
    pytest.param(-5, -3, None, [(-26, -8)], -26, id="downwards"),
    pytest.param(-5, -3, -26, [(-29, 100)], -29, id="downwards on"),
    pytest.param(1, 10, None, [(3, 12)], 21, id="onto the lattice"),
    pytest.param(0, -10, None, [(-13, 0)], -20, id="onto the lattice, downwards"),
    pytest.param(1, 1, None, [(-9, -5)], None, id="before the start"),
    pytest.param(1, 1, None, [(1, 2**63 - 1)], 2**63 - 1, id="exact"),
    pytest.param(1, 1, None, [], None, id="no files"),
]


@pytest.mark.parametrize(("start", "step", "old", "files", "expected"), MARKS)
def test_marks_move_to_the_furthest_value(
    start: int, step: int, old: int | None, files: list[tuple[int, int]], expected: int | None
) -> None:
    metadata = identity(start, step, old)
    moved = with_high_water_marks(metadata, [written(*bounds) for bounds in files])
    found = None if moved is None else moved.schema.fields[0].metadata[IDENTITY_HIGH_WATER_MARK_KEY]
    assert found == expected


def test_marks_need_statistics_and_only_look_at_generated_columns() -> None:
    metadata = identity(1, 1)
    assert identity_paths(metadata) == (("id",),)
    assert with_high_water_marks(metadata, [written(1, 9)], columns=()) is None
    assert with_high_water_marks(metadata, [written(None, None, nulls=3)]) is None
    with pytest.raises(TwinlakeError, match="no statistics"):
        with_high_water_marks(metadata, [written(None, None)])
