"""The Delta metadata after a request: properties, schema, or another table in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from twinlake.iceberg.derive import layout_of
from twinlake.iceberg.format import highest_field_id
from twinlake.iceberg.requests import (
    change_properties,
    changed_schema,
    import_schema,
    partition_columns,
)
from twinlake.protocol import check_iceberg_properties, keys, parse_properties
from twinlake.schema import check_schema, render_schema
from twinlake.table.iceberg_commits.refusals import refuse
from twinlake.table.iceberg_commits.table_rules import reserved_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.actions import Metadata
    from twinlake.iceberg.format import TableMetadata
    from twinlake.iceberg.requests import ImportedSchema, TableChange
    from twinlake.table.iceberg_commits.twin_state import TwinState

__all__ = ["changed_metadata"]


def changed_metadata(state: TwinState, change: TableChange) -> Metadata:
    """The metadata of a table after a request; all that is against it in one error."""
    before, table = state.snapshot.metadata, state.table_metadata
    configuration, problems = change_properties(
        before.configuration, table.properties, change.properties, change.removed_properties
    )
    after = before
    if change.replaces:
        after, more = _replaced(before, table, change)
        problems += more
    elif change.schema is not None:
        after, more = _with_schema(before, table, change.schema)
        problems += more
    if after is not before:
        problems += reserved_names(after)
    refuse(problems)
    configuration |= _mapping_properties(after)
    given = {
        key: value for key, value in configuration.items() if before.configuration.get(key) != value
    }
    after = replace(after, configuration={**configuration, **parse_properties(given)})
    check_iceberg_properties(after, given)
    if after != before:
        # Rehearsed here: a schema without an Iceberg form is refused before anything is read.
        layout = layout_of(after, table.location)
        _ = layout.schema, layout.spec
    return after


def _replaced(
    before: Metadata, table: TableMetadata, change: TableChange
) -> tuple[Metadata, list[str]]:
    """A new table in the place of the old one: any schema, any partitioning by columns."""
    document = _current_schema(table) if change.schema is None else change.schema
    imported = import_schema(document, format_version=table.format_version)
    spec = change.spec if change.spec is not None else _current_spec(table)
    partitions, problems = partition_columns(document, spec)
    problems = [*imported.problems, *problems]
    if problems:
        return before, problems
    return _with(before, table, document, imported, partitions), []


def _with_schema(
    before: Metadata, table: TableMetadata, document: Mapping[str, Any]
) -> tuple[Metadata, list[str]]:
    current = _current_schema(table)
    if document.get("fields") == current["fields"]:
        return before, []
    found = changed_schema(before.schema, current, document, format_version=table.format_version)
    problems = list(found.problems)
    # A partition column keeps its id, and may have another name now.
    names = {f["id"]: f["name"] for f in document["fields"]}
    parts = _current_spec(table)["fields"]
    lost = [part["name"] for part in parts if part["source-id"] not in names]
    problems += [f"partition column {name} cannot be dropped" for name in lost]
    if problems:
        return before, problems
    partitions = tuple(names[part["source-id"]] for part in parts)
    return _with(before, table, document, found, partitions), []


def _with(
    before: Metadata,
    table: TableMetadata,
    document: Mapping[str, Any],
    found: ImportedSchema,
    partitions: tuple[str, ...],
) -> Metadata:
    highest = max(table.last_column_id, highest_field_id(document))
    widening = found.is_widened and not before.flag(keys.ENABLE_TYPE_WIDENING)
    after = replace(
        before.with_configuration(
            {
                keys.MAX_COLUMN_ID: str(highest),
                **({keys.ENABLE_TYPE_WIDENING: "true"} if widening else {}),
            }
        ),
        schema_string=render_schema(found.schema),
        partition_columns=partitions,
    )
    check_schema(found.schema, mode=after.column_mapping_mode, partition_columns=partitions)
    return after


def _current_schema(table: TableMetadata) -> dict[str, Any]:
    return next(s for s in table.schemas if s["schema-id"] == table.current_schema_id)


def _current_spec(table: TableMetadata) -> dict[str, Any]:
    return next(s for s in table.partition_specs if s["spec-id"] == table.default_spec_id)


def _mapping_properties(metadata: Metadata) -> dict[str, str]:
    wanted = (keys.MAX_COLUMN_ID, keys.ENABLE_TYPE_WIDENING)
    return {k: metadata.configuration[k] for k in wanted if k in metadata.configuration}
