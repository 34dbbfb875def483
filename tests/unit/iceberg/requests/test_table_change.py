"""The updates of a request by subject, and those that a Delta log cannot say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twinlake.errors import UserError
from twinlake.iceberg.format.table_metadata import TableMetadata
from twinlake.iceberg.requests import TableChange, decode_commit, read_updates

UUID = "0a1b2c3d-0000-4000-8000-000000000001"
SPEC = {"spec-id": 5, "fields": [{"source-id": 1, "transform": "identity", "name": "p"}]}
MAIN = 7


def change(*updates: dict[str, Any]) -> TableChange:
    metadata = TableMetadata(
        format_version=2,
        table_uuid=UUID,
        location="/t",
        last_sequence_number=1,
        last_updated_ms=1,
        last_column_id=3,
        schemas=({"schema-id": 4, "fields": [{"id": 1, "name": "p", "type": "int"}]},),
        current_schema_id=4,
        partition_specs=(SPEC,),
        default_spec_id=5,
        last_partition_id=1000,
        default_sort_order_id=0,
        sort_orders=({"order-id": 0, "fields": []},),
        properties={},
        current_snapshot_id=MAIN,
        refs={"main": {"snapshot-id": MAIN, "type": "branch"}},
    )
    return read_updates(decode_commit(json.dumps({"updates": updates}).encode()).updates, metadata)


def snapshot(number: int, parent: int | None = MAIN, operation: str = "append") -> dict[str, Any]:
    made = {
        "snapshot-id": number,
        "parent-snapshot-id": parent,
        "manifest-list": f"/t/{number}",
        "summary": {"operation": operation},
    }
    return {"action": "add-snapshot", "snapshot": made}


def ref(number: int, name: str = "main", kind: str = "branch", **rest: Any) -> dict[str, Any]:
    return {
        "action": "set-snapshot-ref",
        "ref-name": name,
        "type": kind,
        "snapshot-id": number,
        **rest,
    }


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"action": "assign-uuid", "uuid": "x"}, "uuid x"),
    ({"action": "upgrade-format-version", "format-version": 3}, "format version 3"),
    ({"action": "set-location", "location": "/u"}, "location /u"),
    ({"action": "set-current-schema", "schema-id": 9}, "schema 9: there is none"),
    ({"action": "set-current-schema", "schema-id": -1}, "schema -1: there is none"),
    ({"action": "set-default-spec", "spec-id": 9}, "partition spec 9"),
    ({"action": "add-spec", "spec": {"fields": []}}, "another partition spec"),
    ({"action": "set-default-sort-order", "sort-order-id": 9}, "sort order 9"),
    (
        {
            "action": "add-sort-order",
            "sort-order": {"fields": [{"source-id": 1, "transform": "identity"}]},
        },
        "another sort order",
    ),
    (snapshot(8), "staged snapshots"),
    (ref(6), "main at snapshot 6"),
    ({**ref(MAIN), "min-snapshots-to-keep": 3}, "retention of main"),
    ({**ref(MAIN), "max-snapshot-age-ms": 3}, "retention of main"),
    (ref(MAIN, "b"), "branch b"),
    (ref(6, "v", "tag"), "no such snapshot"),
    (ref(MAIN, "v", "tag", **{"min-snapshots-to-keep": 3}), "only a branch"),
    ({"action": "remove-snapshots", "snapshot-ids": [7]}, "expiring snapshots"),
    ({"action": "remove-partition-specs", "spec-ids": [5]}, "removing schemas or specs"),
    ({"action": "remove-schemas", "schema-ids": [4]}, "removing schemas or specs"),
    ({"action": "add-encryption-key", "encryption-key": {}}, "encryption"),
    ({"action": "remove-encryption-key", "key-id": "k"}, "encryption"),
]


@pytest.mark.parametrize(("update", "why"), REFUSED, ids=lambda one: str(one)[:60])
def test_refused(update: dict[str, Any], why: str) -> None:
    assert any(why in found for found in change(update).refusals)


def test_all_refusals_are_named_at_once() -> None:
    every = [one for one, _ in REFUSED if one["action"] != "add-snapshot"]
    assert len(change(*every).refusals) >= len({why for _, why in REFUSED}) - 2


@pytest.mark.parametrize(
    "update",
    [
        {"action": "assign-uuid", "uuid": UUID.upper()},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "set-location", "location": "/t/"},
        {"action": "set-default-spec", "spec-id": 5},
        {"action": "add-spec", "spec": {**SPEC, "spec-id": 9}},
        {"action": "add-sort-order", "sort-order": {"order-id": 3, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": 0},
        {"action": "remove-snapshot-ref", "ref-name": "never"},
        {"action": "remove-statistics", "snapshot-id": 3},
        {"action": "remove-partition-statistics", "snapshot-id": 3},
        ref(MAIN),
    ],
    ids=lambda one: one["action"],
)
def test_what_is_so_already_changes_nothing(update: dict[str, Any]) -> None:
    assert change(update) == TableChange()


@pytest.mark.parametrize(
    "updates",
    [
        [snapshot(8), snapshot(8)],
        [snapshot(8, operation="merge")],
        [ref(MAIN, kind="tag")],
        [ref(MAIN, "", "tag")],
        [ref(MAIN, "v", "tag", **{"max-ref-age-ms": 0})],
        [{"action": "add-snapshot", "snapshot": {"snapshot-id": 8}}],
        [{"action": "add-snapshot", "snapshot": {"snapshot-id": True, "manifest-list": "x"}}],
    ],
    ids=["id twice", "operation", "main as a tag", "no name", "no age", "no list", "no id"],
)
def test_malformed(updates: list[dict[str, Any]]) -> None:
    with pytest.raises(UserError, match="malformed"):
        change(*updates)


def test_snapshots_are_in_the_order_of_their_parents() -> None:
    found = change(snapshot(10, 9), snapshot(9), ref(10))
    assert [one.snapshot_id for one in found.snapshots] == [9, 10]
    assert found.operation == "append"
    assert change(snapshot(9, operation="delete"), snapshot(10, 9), ref(10)).operation == (
        "overwrite"
    )


def test_a_cycle_of_parents_ends() -> None:
    found = change(snapshot(9, 10), snapshot(10, 9), ref(9))
    assert {one.snapshot_id for one in found.snapshots} == {9, 10}


def test_the_last_word_on_a_property_counts() -> None:
    found = change(
        {"action": "set-properties", "updates": {"a": "1", "b": "1"}},
        {"action": "remove-properties", "removals": ["a", "c"]},
        {"action": "set-properties", "updates": {"c": "2"}},
    )
    assert found.properties == {"b": "1", "c": "2"}
    assert found.removed_properties == {"a"}


def test_a_replacement_may_choose_its_spec() -> None:
    found = change(
        {"action": "remove-snapshot-ref", "ref-name": "main"},
        {"action": "add-spec", "spec": {"fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
    )
    assert (found.replaces, found.spec, found.refusals) == (True, {"fields": []}, ())


def test_identifier_fields_and_empty_schemas_are_refused() -> None:
    field = {"id": 1, "name": "p", "type": "int", "required": True}
    current = {"action": "set-current-schema", "schema-id": -1}
    keyed = {"fields": [field], "identifier-field-ids": [1]}
    assert "identifier" in str(change({"action": "add-schema", "schema": keyed}, current).refusals)
    empty = {"action": "add-schema", "schema": {"fields": []}}
    assert "without columns" in str(change(empty, current).refusals)
