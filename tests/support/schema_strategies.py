"""Hypothesis strategies for schemas."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
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
)

COMMON = (
    STRING, LONG, INTEGER, SHORT, BYTE, FLOAT, DOUBLE, BOOLEAN, BINARY, DATE, TIMESTAMP,
    TIMESTAMP_NTZ,
)  # fmt: skip

decimals = st.integers(1, 38).flatmap(
    lambda precision: st.builds(Decimal, st.just(precision), st.integers(0, precision))
)
common_types: st.SearchStrategy[DataType] = st.sampled_from(COMMON) | decimals
leaf_types: st.SearchStrategy[DataType] = common_types | st.sampled_from(
    [
        VARIANT,
        VOID,
        Interval("day", "second"),
        Interval("year", "year"),
        Geometry(),
        Geography("EPSG:4326", "vincenty"),
    ]
)

# Real text has no lone surrogates; JSON in UTF-8 cannot hold them.
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = text.filter(bool)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(-1e9, 1e9) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=4,
)
metadata = st.dictionaries(text, json_values, max_size=3)


def structs(
    kinds: st.SearchStrategy[DataType],
    *,
    field_metadata: st.SearchStrategy[dict[str, Any]] | None = None,
    nullable: st.SearchStrategy[bool] | None = None,
    min_size: int = 0,
) -> st.SearchStrategy[Struct]:
    """Structs of fields with names unique ignoring case."""
    fields = st.builds(
        StructField,
        names,
        kinds,
        st.booleans() if nullable is None else nullable,
        st.just({}) if field_metadata is None else field_metadata,
    )
    return st.lists(
        fields, min_size=min_size, max_size=4, unique_by=lambda field: field.name.casefold()
    ).map(lambda found: Struct(tuple(found)))


def schemas(
    *,
    leaves: st.SearchStrategy[DataType] = leaf_types,
    field_metadata: st.SearchStrategy[dict[str, Any]] | None = None,
    holds_null: st.SearchStrategy[bool] | None = None,
) -> st.SearchStrategy[Struct]:
    """Schemas with nested types; ``holds_null`` is for elements and map values."""
    inner_null = st.booleans() if holds_null is None else holds_null
    kinds = st.recursive(
        leaves,
        lambda inner: (
            st.builds(Array, inner, inner_null)
            | st.builds(Map, inner, inner, inner_null)
            | structs(inner, field_metadata=field_metadata, min_size=1)
        ),
        max_leaves=6,
    )
    return structs(kinds, field_metadata=field_metadata)
