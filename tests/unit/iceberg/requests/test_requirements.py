"""Each requirement, met and failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twinlake.errors import UserError
from twinlake.iceberg.format.table_metadata import TableMetadata
from twinlake.iceberg.requests import decode_commit, failed_requirements

UUID = "0a1b2c3d-0000-4000-8000-000000000001"

MET: list[dict[str, Any]] = [
    {"type": "assert-table-uuid", "uuid": UUID},
    {"type": "assert-table-uuid", "uuid": UUID.upper()},
    {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7},
    {"type": "assert-ref-snapshot-id", "ref": "none", "snapshot-id": None},
    {"type": "assert-ref-snapshot-id", "ref": "none"},
    {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 3},
    {"type": "assert-current-schema-id", "current-schema-id": 4},
    {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
    {"type": "assert-default-spec-id", "default-spec-id": 5},
    {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
]
FAILED: list[tuple[dict[str, Any], str]] = [
    ({"type": "assert-create"}, "the table exists already"),
    ({"type": "assert-table-uuid", "uuid": "x"}, "the table's uuid is"),
    ({"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 8}, "snapshot of main is 7"),
    ({"type": "assert-ref-snapshot-id", "ref": "main"}, "the request requires None"),
    ({"type": "assert-ref-snapshot-id", "ref": "v1", "snapshot-id": 7}, "snapshot of v1 is None"),
    ({"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2}, "field id is 3"),
    ({"type": "assert-current-schema-id", "current-schema-id": 0}, "schema id is 4"),
    (
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 999},
        "partition id is 1000",
    ),
    ({"type": "assert-default-spec-id", "default-spec-id": 0}, "spec id is 5"),
    ({"type": "assert-default-sort-order-id", "default-sort-order-id": 1}, "order id is 0"),
]


def failures(*requirements: dict[str, Any]) -> list[str]:
    metadata = TableMetadata(
        format_version=2,
        table_uuid=UUID,
        location="/t",
        last_sequence_number=1,
        last_updated_ms=1,
        last_column_id=3,
        schemas=({"schema-id": 4, "fields": []},),
        current_schema_id=4,
        partition_specs=({"spec-id": 5, "fields": []},),
        default_spec_id=5,
        last_partition_id=1000,
        default_sort_order_id=0,
        sort_orders=(),
        properties={},
        refs={"main": {"snapshot-id": 7, "type": "branch"}},
    )
    request = decode_commit(json.dumps({"requirements": requirements}).encode())
    return failed_requirements(request.requirements, metadata)


@pytest.mark.parametrize("requirement", MET, ids=lambda one: one["type"])
def test_met(requirement: dict[str, Any]) -> None:
    assert failures(requirement) == []


@pytest.mark.parametrize(("requirement", "why"), FAILED, ids=lambda one: str(one)[:40])
def test_failed(requirement: dict[str, Any], why: str) -> None:
    (found,) = failures(requirement)
    assert why in found


def test_all_failures_are_named() -> None:
    assert len(failures(*MET, *(one for one, _ in FAILED))) == len(FAILED)


def test_an_unknown_requirement_is_refused() -> None:
    with pytest.raises(UserError, match="malformed"):
        decode_commit(b'{"requirements": [{"type": "assert-moon-phase"}]}')
