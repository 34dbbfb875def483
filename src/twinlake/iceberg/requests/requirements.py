"""The requirements of an Iceberg commit request, and whether a table meets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.iceberg.format.table_metadata import TableMetadata

__all__ = [
    "AssertCreate",
    "AssertCurrentSchemaId",
    "AssertDefaultSortOrderId",
    "AssertDefaultSpecId",
    "AssertLastAssignedFieldId",
    "AssertLastAssignedPartitionId",
    "AssertRefSnapshotId",
    "AssertTableUuid",
    "Requirement",
    "failed_requirements",
]


class _Requirement(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename="kebab",
    tag_field="type",
    tag=lambda name: "".join(f"-{c.lower()}" if c.isupper() else c for c in name)[1:],
):
    """One requirement; its ``type`` is the name of the class."""


class AssertCreate(_Requirement, frozen=True):
    """The table does not exist."""


class AssertTableUuid(_Requirement, frozen=True):
    """The table is the one the client loaded."""

    uuid: str


class AssertRefSnapshotId(_Requirement, frozen=True):
    """A branch or tag is where the client saw it; None means that it does not exist."""

    ref: str
    snapshot_id: int | None = None


class AssertLastAssignedFieldId(_Requirement, frozen=True):
    """No column got an id meanwhile."""

    last_assigned_field_id: int


class AssertCurrentSchemaId(_Requirement, frozen=True):
    """The schema did not change meanwhile."""

    current_schema_id: int


class AssertLastAssignedPartitionId(_Requirement, frozen=True):
    """No partition field got an id meanwhile."""

    last_assigned_partition_id: int


class AssertDefaultSpecId(_Requirement, frozen=True):
    """The partition spec did not change meanwhile."""

    default_spec_id: int


class AssertDefaultSortOrderId(_Requirement, frozen=True):
    """The sort order did not change meanwhile."""

    default_sort_order_id: int


Requirement = (
    AssertCreate
    | AssertCurrentSchemaId
    | AssertDefaultSortOrderId
    | AssertDefaultSpecId
    | AssertLastAssignedFieldId
    | AssertLastAssignedPartitionId
    | AssertRefSnapshotId
    | AssertTableUuid
)


def failed_requirements(requirements: Iterable[Requirement], metadata: TableMetadata) -> list[str]:
    """Every requirement that the table does not meet, as a sentence."""
    return [text for one in requirements if (text := _failure(one, metadata))]


def _failure(requirement: Requirement, metadata: TableMetadata) -> str:
    match requirement:
        case AssertCreate():
            return "the table exists already"
        case AssertTableUuid(uuid=wanted):
            # Java and Python spell ids in lower case; others need not.
            found: object = metadata.table_uuid
            return _differs("the table's uuid", wanted.lower(), found)
        case AssertRefSnapshotId(ref=ref, snapshot_id=expected):
            current = metadata.refs.get(ref)
            found = None if current is None else current["snapshot-id"]
            return _differs(f"the snapshot of {ref}", expected, found)
        case AssertLastAssignedFieldId(last_assigned_field_id=number):
            return _differs("the last assigned field id", number, metadata.last_column_id)
        case AssertCurrentSchemaId(current_schema_id=number):
            return _differs("the current schema id", number, metadata.current_schema_id)
        case AssertLastAssignedPartitionId(last_assigned_partition_id=number):
            return _differs("the last assigned partition id", number, metadata.last_partition_id)
        case AssertDefaultSpecId(default_spec_id=number):
            return _differs("the default spec id", number, metadata.default_spec_id)
        case AssertDefaultSortOrderId(default_sort_order_id=number):
            return _differs("the default sort order id", number, metadata.default_sort_order_id)
        case _:
            assert_never(requirement)


def _differs(what: str, wanted: object, found: object) -> str:
    return "" if wanted == found else f"{what} is {found}, and the request requires {wanted}"
