"""Metadata as a value."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pytest

from twinlake.errors import Code, CorruptTable
from twinlake.protocol import Metadata, extract_automatically_enabled_features
from twinlake.schema import INTEGER, ColumnMappingMode, Struct, StructField

WIRE: dict[str, Any] = {
    "id": "1-2",
    "name": "orders",
    "format": {"provider": "parquet", "options": {"a": "b"}},
    "schemaString": '{"type":"struct","fields":[]}',
    "partitionColumns": ["day"],
    "configuration": {"delta.appendOnly": "true"},
    "createdTime": 5,
    "fromTheFuture": {"x": [1]},
}


def test_round_trip_keeps_what_is_not_known() -> None:
    metadata = Metadata.from_dict(WIRE)
    assert metadata.to_dict() == WIRE
    assert metadata.extra == {"fromTheFuture": {"x": [1]}}
    assert pickle.loads(pickle.dumps(metadata)) == metadata
    changed = metadata.with_configuration({"k": "v"}, remove=["delta.appendOnly"])
    assert changed.to_dict() == {**WIRE, "configuration": {"k": "v"}}


def test_defaults() -> None:
    assert Metadata.from_dict(Metadata().to_dict()) == Metadata()
    assert Metadata().to_dict().keys() == {
        "id",
        "format",
        "schemaString",
        "partitionColumns",
        "configuration",
    }
    assert len(Metadata().schema) == 0


@pytest.mark.parametrize(
    "data",
    [
        None,
        "x",
        [],
        {**WIRE, "id": 1},
        {**WIRE, "configuration": {"a": 1}},
        {**WIRE, "configuration": []},
        {**WIRE, "partitionColumns": "day"},
        {**WIRE, "format": "parquet"},
        {**WIRE, "createdTime": "now"},
        {**WIRE, "schemaString": {}},
    ],
)
def test_wrong_shapes(data: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        Metadata.from_dict(data)


@pytest.mark.parametrize("text", ["", "{", "[]", '"int"', '{"type":"struct"}', '{"a":' * 5000])
def test_bad_schema_is_told_when_it_is_needed(text: str) -> None:
    metadata = Metadata.from_dict({**WIRE, "schemaString": text})
    with pytest.raises(CorruptTable) as caught:
        _ = metadata.schema
    assert caught.value.code is Code.SCHEMA_INVALID
    assert caught.value.fields["table"] == "orders"


def test_schema_is_parsed_once_and_shared_by_copies() -> None:
    metadata = Metadata().with_schema(Struct((StructField("a", INTEGER),)))
    schema = metadata.schema
    assert metadata.schema is schema
    assert metadata.with_configuration({"a": "b"}).schema is schema
    assert metadata.with_schema(Struct()).schema == Struct()


@pytest.mark.parametrize(
    ("text", "is_on"),
    [
        ("true", True),
        ("TRUE", True),
        ("tRuE", True),
        ("false", False),
        # Delta Spark cannot read these, and the Java kernel takes them for false.
        (" true", False),
        ("true ", False),
        ("true\n", False),
        ("yes", False),
        ("1", False),
        ("", False),
    ],
    ids=repr,
)
def test_only_true_is_true(text: str, is_on: bool) -> None:
    key = "delta.appendOnly"
    metadata = Metadata(configuration={key: text})
    assert metadata.flag(key) is is_on
    assert metadata.flag(key, default=True) is is_on
    assert ("appendOnly" in extract_automatically_enabled_features(metadata)) is is_on


def test_flags_and_mapping_mode() -> None:
    metadata = Metadata(
        configuration={"delta.appendOnly": "True", "delta.columnMapping.mode": "ID"}
    )
    assert metadata.flag("delta.appendOnly")
    assert not metadata.flag("absent")
    assert metadata.flag("absent", default=True)
    assert metadata.column_mapping_mode is ColumnMappingMode.ID
    assert Metadata().column_mapping_mode is ColumnMappingMode.NONE
    with pytest.raises(CorruptTable):
        _ = Metadata(configuration={"delta.columnMapping.mode": "by luck"}).column_mapping_mode


def test_values_are_immutable() -> None:
    source = {"a": "b"}
    metadata = Metadata(configuration=source)
    source["a"] = "c"
    assert metadata.configuration == {"a": "b"}
    with pytest.raises(TypeError):
        metadata.configuration["a"] = "d"  # type: ignore[index]
    assert hash(metadata) == hash(Metadata(configuration={"a": "b"}))
