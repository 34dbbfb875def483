"""The next metadata file: what stays of the one before, and what a commit adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.iceberg.derive.annotations import annotated
from twinlake.iceberg.derive.table_properties import iceberg_properties
from twinlake.iceberg.format.schema import highest_id
from twinlake.iceberg.format.sort_order import UNSORTED, sort_order
from twinlake.iceberg.format.table_metadata import TableMetadata, table_uuid
from twinlake.iceberg.format.unparsed_list import NO_ENTRIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.iceberg.derive.table_layout import DeltaCommit, TableLayout
    from twinlake.iceberg.format.table_metadata import SnapshotEntry

__all__ = ["moment_of", "next_metadata", "next_row_id"]


def next_metadata(
    commit: DeltaCommit, old: TableMetadata | None, snapshot: SnapshotEntry | None
) -> TableMetadata:
    """The metadata after a commit, which made a snapshot or did not."""
    layout = commit.layout
    schema, spec = layout.schema, layout.spec
    order = sort_order(commit.clustering, layout.metadata.schema)
    metadata = TableMetadata(
        format_version=layout.format_version,
        # Readers hold on to it, whatever a REPLACE does to the id of the Delta table.
        table_uuid=old.table_uuid if old else table_uuid(layout.metadata.id),
        location=layout.location,
        last_sequence_number=commit.version,
        last_updated_ms=moment_of(commit, old),
        last_column_id=max(_last_column_id(layout), old.last_column_id if old else 0),
        current_schema_id=schema.id,
        schemas=_listed(old.schemas if old else (), schema.to_dict(), "schema-id"),
        default_spec_id=spec.id,
        partition_specs=_apart(
            _listed(old.partition_specs if old else (), spec.to_dict(), "spec-id"), schema.to_dict()
        ),
        last_partition_id=max(spec.last_field_id, old.last_partition_id if old else 0),
        default_sort_order_id=order["order-id"],
        sort_orders=_listed(old.sort_orders if old else (UNSORTED,), order, "order-id"),
        properties=iceberg_properties(commit, old),
        current_snapshot_id=old.current_snapshot_id if old else None,
        refs=old.refs if old else {},
        statistics=old.statistics if old else (),
        partition_statistics=old.partition_statistics if old else (),
        snapshot_texts=old.snapshot_texts if old else NO_ENTRIES,
        snapshot_log=old.snapshot_log if old else NO_ENTRIES,
        next_row_id=next_row_id(commit, old),
    )
    if snapshot is not None:
        metadata = metadata.followed_by(snapshot)
    return annotated(metadata, commit.annotations)


def _last_column_id(layout: TableLayout) -> int:
    """The highest id that was ever given, as far as the table knows."""
    return max(layout.metadata.max_column_id or 0, highest_id(layout.schema))


def moment_of(commit: DeltaCommit, old: TableMetadata | None) -> int:
    """The time of a commit, always after the one before it: so Delta counts where clocks differ."""
    return commit.timestamp_ms if old is None else max(commit.timestamp_ms, old.last_updated_ms + 1)


def next_row_id(commit: DeltaCommit, old: TableMetadata | None) -> int | None:
    """The first row id that no row has had; only format version 3 knows it."""
    if commit.layout.format_version < 3:
        return None
    known = (old.next_row_id if old else None) or 0
    return known if commit.row_id_mark is None else max(known, commit.row_id_mark + 1)


def _listed(
    known: tuple[dict[str, Any], ...], wanted: dict[str, Any], key: str
) -> tuple[dict[str, Any], ...]:
    return known if any(one[key] == wanted[key] for one in known) else (*known, wanted)


def _apart(
    specs: tuple[dict[str, Any], ...], schema: Mapping[str, Any]
) -> tuple[dict[str, Any], ...]:
    """The specs, with no field called like a column that it does not come from.

    The column of an old spec may have been renamed and its name given to another one; readers
    refuse a table that says so. Fields go by their ids, so that their names are free.
    """
    owners = {column["name"]: column["id"] for column in schema["fields"]}

    def named(part: dict[str, Any]) -> dict[str, Any]:
        if owners.get(part["name"], part["source-id"]) == part["source-id"]:
            return part
        return {**part, "name": f"{part['name']}_{part['field-id']}"}

    return tuple({**spec, "fields": [named(part) for part in spec["fields"]]} for spec in specs)
