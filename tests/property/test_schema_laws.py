"""Laws of Arrow conversion, column mapping, merging and partition values."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.schema_strategies import common_types, schemas, text
from twinlake.errors import TwinlakeError
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    ColumnMappingMode,
    DataType,
    Decimal,
    Struct,
    assign_mapping,
    can_widen,
    escape_path_name,
    field_id,
    mapping_problems,
    merge_schemas,
    nested_ids,
    parse_partition_path,
    parse_partition_value,
    partition_array,
    physical_name,
    physical_path,
    physical_schema,
    render_partition_path,
    render_partition_value,
    strip_mapping,
    unescape_path_name,
    walk_fields,
    widen_column,
)


@given(schemas(), st.integers(0, 50), st.booleans(), st.booleans())
@settings(max_examples=80)
def test_mapping_is_complete_stable_and_idempotent(
    schema: Struct, max_id: int, nested: bool, keep_names: bool
) -> None:
    def assign(given_schema: Struct, start: int) -> tuple[Struct, int]:
        return assign_mapping(
            given_schema,
            max_id=start,
            name_for="col-{}".format,
            nested_ids=nested,
            keep_names=keep_names,
        )

    mapped, top = assign(schema, max_id)
    assert top >= max_id
    assert list(mapping_problems(mapped, max_id=top)) == []
    assert assign(mapped, top) == (mapped, top)
    # Forgetting the highest id must not change what is there either.
    assert assign(mapped, 0)[0] == mapped
    assert strip_mapping(mapped) == schema
    ids = [field_id(field) for _, field in walk_fields(mapped)]
    assert ids == list(range(max_id + 1, max_id + 1 + len(ids)))
    nested_numbers = [n for _, field in walk_fields(mapped) for n in nested_ids(field).values()]
    assert sorted(nested_numbers) == list(range(max_id + len(ids) + 1, top + 1))


@given(schemas())
@settings(max_examples=50)
def test_physical_schema_and_paths_agree(schema: Struct) -> None:
    mapped, _ = assign_mapping(schema, name_for="col-{}".format)
    physical = physical_schema(mapped, ColumnMappingMode.ID)
    paths = [path for path, _ in walk_fields(mapped)]
    expected = [path for path, _ in walk_fields(physical)]
    assert [physical_path(mapped, path, ColumnMappingMode.ID) for path in paths] == expected
    assert all(physical_name(field) == field.name for _, field in walk_fields(physical))
    assert physical_schema(mapped, ColumnMappingMode.NONE) is mapped


@given(schemas(), schemas())
@settings(max_examples=80)
def test_merge_is_idempotent_and_keeps_the_table_first(current: Struct, incoming: Struct) -> None:
    assert merge_schemas(current, current) == current
    try:
        merged = merge_schemas(current, incoming, widen=True)
    except TwinlakeError:
        return
    assert merged.names()[: len(current)] == current.names()
    assert merge_schemas(merged, incoming, widen=True) == merged


@given(common_types, common_types, common_types)
def test_widening_is_an_order_and_iceberg_is_a_part_of_it(
    first: DataType, second: DataType, third: DataType
) -> None:
    assert not can_widen(first, first)
    assert not (can_widen(first, second) and can_widen(second, first))
    assert not can_widen(first, second, iceberg=True) or can_widen(first, second)
    for iceberg in (False, True):
        if can_widen(first, second, iceberg=iceberg) and can_widen(second, third, iceberg=iceberg):
            assert can_widen(first, third, iceberg=iceberg)


@given(schemas(leaves=st.just(LONG)))
@settings(max_examples=50)
def test_widening_touches_one_type_only(schema: Struct) -> None:
    for path, field in walk_fields(schema):
        if field.type == LONG:
            wide = widen_column(schema, path, Decimal(20, 0))
            assert [p for p, _ in walk_fields(wide)] == [p for p, _ in walk_fields(schema)]
            changed = [
                p
                for (p, new), (_, old) in zip(walk_fields(wide), walk_fields(schema), strict=True)
                if new.metadata != old.metadata
            ]
            assert changed == [path]


utc_moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))
partition_values: list[tuple[DataType, st.SearchStrategy[Any]]] = [
    (STRING, text.filter(bool)),
    (BYTE, st.integers(-128, 127)),
    (LONG, st.integers(-(2**63), 2**63 - 1)),
    (BOOLEAN, st.booleans()),
    (DOUBLE, st.floats()),
    (FLOAT, st.floats(width=32)),
    (DATE, st.dates()),
    (TIMESTAMP, utc_moments),
    (TIMESTAMP_NTZ, st.datetimes()),
    (BINARY, text.filter(bool).map(str.encode)),
    (Decimal(10, 3), st.decimals(-9999999, 9999999, places=3)),
]
typed_values = st.one_of(
    *(st.tuples(st.just(kind), st.lists(values, max_size=4)) for kind, values in partition_values)
)


@given(typed_values)
@settings(max_examples=100)
def test_partition_values_round_trip_one_by_one_and_as_a_column(
    sample: tuple[DataType, list[Any]],
) -> None:
    kind, values = sample
    written = [render_partition_value(value, kind) for value in values]
    single = [parse_partition_value(word, kind) for word in written]
    column = partition_array(pa.array(written, pa.string()), kind).to_pylist()
    assert all(_same(a, b) for a, b in zip(values, single, strict=True))
    assert all(_same(a, b) for a, b in zip(values, column, strict=True))


@given(st.text(max_size=20), st.sampled_from([kind for kind, _ in partition_values]))
@settings(max_examples=100)
def test_any_partition_string_gives_a_value_or_an_error_of_ours(word: str, kind: DataType) -> None:
    try:
        value = parse_partition_value(word, kind)
    except TwinlakeError:
        value = "refused"
    assert value is None or isinstance(
        value, (str, int, float, bool, date, datetime, bytes, Number)
    )


@given(st.dictionaries(text.filter(bool), st.none() | text.filter(bool), max_size=3))
def test_partition_folders_round_trip(values: dict[str, str | None]) -> None:
    assert parse_partition_path(render_partition_path(values)) == values


@given(st.text())
def test_escaping_is_undone(name: str) -> None:
    escaped = escape_path_name(name)
    assert unescape_path_name(escaped) == name
    assert not set(escaped) & set("/=:\n?#")


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)
