"""No input breaks the decoders of this room in any but the announced ways."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlake.errors import TwinlakeError
from twinlake.protocol import PROPERTIES, Metadata, Protocol, is_secret, parse_properties
from twinlake.protocol.properties.value_parsers import duration_ms, integer, json_object, size

FUZZ = settings(max_examples=100, deadline=None)

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


def shaped(*keys: str) -> st.SearchStrategy[Any]:
    return st.one_of(plain, st.dictionaries(st.sampled_from(keys), plain))


@FUZZ
@given(shaped("minReaderVersion", "minWriterVersion", "readerFeatures", "writerFeatures"))
def test_protocol_from_anything(data: Any) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        protocol = Protocol.from_dict(data)
        assert Protocol.from_dict(protocol.to_dict()) == protocol


@FUZZ
@given(shaped("id", "name", "format", "schemaString", "partitionColumns", "configuration", "x"))
def test_metadata_from_anything(data: Any) -> None:
    with contextlib.suppress(msgspec.ValidationError):
        metadata = Metadata.from_dict(data)
        assert Metadata.from_dict(metadata.to_dict()) == metadata
        with contextlib.suppress(TwinlakeError):
            _ = metadata.schema


@FUZZ
@given(
    st.dictionaries(
        st.sampled_from([*PROPERTIES, "delta.feature.x", "delta.constraints.c"]) | st.text(),
        plain | st.text(),
        max_size=4,
    )
)
def test_properties_from_anything(given_properties: dict[str, Any]) -> None:
    with contextlib.suppress(TwinlakeError):
        stored = parse_properties(given_properties)
        assert parse_properties(stored) == stored


@FUZZ
@given(st.text())
def test_value_parsers_raise_value_errors_only(text: str) -> None:
    for parse in (duration_ms, size, json_object, integer(0)):
        with contextlib.suppress(ValueError):
            parse(text)
    is_secret(text)


@FUZZ
@given(
    st.lists(
        st.tuples(st.integers(0, 1000), st.sampled_from(["day", "hours", "minute", "weeks"])),
        min_size=1,
        max_size=3,
    )
)
def test_durations_add_up(terms: list[tuple[int, str]]) -> None:
    text = " ".join(f"{count} {unit}" for count, unit in terms)
    single = sum(duration_ms(f"interval {count} {unit}") for count, unit in terms)
    assert duration_ms(f"interval {text}") == single
