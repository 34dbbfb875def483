"""What updates carry: a document that an Iceberg library cannot parse is never kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twinlake.errors import UserError
from twinlake.iceberg.requests import decode_commit, decode_create

FIELD = {"id": 1, "name": "a", "type": "int", "required": False}
STATISTICS = {
    "snapshot-id": 5,
    "statistics-path": "/s",
    "file-size-in-bytes": 4,
    "file-footer-size-in-bytes": 4,
    "blob-metadata": [],
}


def schema(*fields: Any, **rest: Any) -> dict[str, Any]:
    document = {"type": "struct", "schema-id": 0, "fields": list(fields), **rest}
    return {"action": "add-schema", "schema": document}


def spec(*fields: Any) -> dict[str, Any]:
    return {"action": "add-spec", "spec": {"spec-id": 0, "fields": list(fields)}}


def statistics(**changes: Any) -> dict[str, Any]:
    made = {key: value for key, value in (STATISTICS | changes).items() if value is not ...}
    return {"action": "set-statistics", "snapshot-id": 5, "statistics": made}


MALFORMED = [
    schema({**FIELD, "id": "1"}),
    schema({**FIELD, "id": True}),
    schema({**FIELD, "id": 1.5}),
    schema({**FIELD, "name": 7}),
    schema({**FIELD, "doc": {"x": 1}}),
    schema({**FIELD, "required": "false"}),
    schema({**FIELD, "type": None}),
    schema({**FIELD, "type": {"type": "set", "element": "int"}}),
    schema({**FIELD, "type": {"type": "list", "element": "int"}}),
    schema({**FIELD, "type": {"type": "map", "key-id": 2, "key": "int"}}),
    schema(5),
    schema(**{"identifier-field-ids": ["a"]}),
    {"action": "add-schema", "schema": {}},
    spec(5),
    spec({"source-id": [1], "transform": "identity", "name": "a"}),
    spec({"source-id": 1, "name": "a"}),
    {"action": "add-spec", "spec": {"fields": 7}},
    {"action": "add-sort-order", "sort-order": {"order-id": [1]}},
    {"action": "add-sort-order", "sort-order": {"fields": [5]}},
    statistics(**{"file-size-in-bytes": ...}),
    statistics(**{"file-size-in-bytes": "4"}),
    statistics(**{"blob-metadata": ...}),
    statistics(**{"blob-metadata": [5]}),
    statistics(**{"snapshot-id": True}),
    {
        "action": "set-partition-statistics",
        "partition-statistics": {"snapshot-id": 5, "statistics-path": "/s"},
    },
    {"action": "unheard-of"},
    {},
    5,
]


@pytest.mark.parametrize("update", MALFORMED, ids=lambda one: json.dumps(one)[:70])
def test_malformed(update: Any) -> None:
    with pytest.raises(UserError, match="malformed"):
        decode_commit(json.dumps({"updates": [update]}).encode())


@pytest.mark.parametrize(
    "update",
    [
        schema(FIELD, {**FIELD, "id": 2, "later": {"x": 1}}, later=[1]),
        schema({**FIELD, "type": {"type": "list", "element-id": 2, "element": "int"}}),
        spec({"source-id": 1, "field-id": 1000, "transform": "identity", "name": "a"}),
        statistics(later=1),
    ],
    ids=["schema", "list", "spec", "statistics"],
)
def test_what_the_specification_says_passes_with_more(update: dict[str, Any]) -> None:
    (found,) = decode_commit(json.dumps({"updates": [update]}).encode()).updates
    name = next(key for key in update if isinstance(update[key], dict))
    assert getattr(found, name) == update[name]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"5",
        b"[]",
        b"{",
        b"\xff",
        b'{"updates": 5}',
        b"[" * 100_000,
        b'{"updates": [{"action": "add-schema", "schema": ' + b'{"a":' * 20_000,
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_no_request(body: bytes) -> None:
    for decode in (decode_commit, decode_create):
        with pytest.raises(UserError, match="malformed"):
            decode(body)
