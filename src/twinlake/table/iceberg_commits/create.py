"""Creating a twin table as an Iceberg client asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import msgspec

from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.compat import with_column_mapping, with_compat_properties
from twinlake.errors import Code, UserError, listed
from twinlake.iceberg.derive import (
    DeltaCommit,
    FileChanges,
    IcebergState,
    layout_of,
    next_metadata,
)
from twinlake.iceberg.format import encode_metadata
from twinlake.iceberg.requests import change_properties, import_schema, partition_columns
from twinlake.log import first_snapshot
from twinlake.protocol import (
    Metadata,
    Protocol,
    check_iceberg_properties,
    keys,
    parse_properties,
)
from twinlake.schema import check_schema, render_schema
from twinlake.table.catalog import TABLE_HOOKS
from twinlake.table.iceberg_commits.table_rules import reserved_names
from twinlake.table.iceberg_commits.twin_state import TwinState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.commit import CommitResult
    from twinlake.iceberg.format import TableMetadata
    from twinlake.iceberg.requests import NewTable
    from twinlake.runtime import Runtime
    from twinlake.storage import Store
    from twinlake.table.iceberg_commits.translation import Translation

__all__ = ["create_table", "future_state", "staged_metadata", "table_metadata"]

_WITH_ROWS: Final = OperationName.CREATE_TABLE_AS_SELECT
_COMPAT_OF_FORMAT: Final = {
    2: keys.ENABLE_ICEBERG_WRITER_COMPAT_V1,
    3: keys.ENABLE_ICEBERG_WRITER_COMPAT_V3,
}
#: Writers of format 3 delete rows by vectors; and under these names they keep row ids when they
#: rewrite rows, so Delta's do as well.
_FORMAT_3: Final = {
    keys.ENABLE_DELETION_VECTORS: "true",
    keys.MATERIALIZED_ROW_ID: "_row_id",
    keys.MATERIALIZED_ROW_COMMIT_VERSION: "_last_updated_sequence_number",
}
_OF_VERSIONS: Final = frozenset({"base-delta-version", "delta-timestamp", "delta-version"})


def table_metadata(table: NewTable, location: str, runtime: Runtime) -> Metadata:
    """The Delta metadata of version 0; all that is against it in one error."""
    imported = import_schema(table.schema, format_version=table.format_version)
    problems = [*imported.problems, *table.problems]
    if table.location is not None and table.location.rstrip("/") != location.rstrip("/"):
        problems.append(f"location {table.location}: the table is created at {location}")
    if not table.schema["fields"]:
        problems.append("a schema without columns: a table has one at least")
    if table.order.get("fields"):
        problems.append("a sort order: cluster the table instead, through twinlake")
    if table.schema.get("identifier-field-ids"):
        problems.append("identifier fields: Delta has none")
    partitions, more = partition_columns(table.schema, table.spec)
    problems += more
    compat = _COMPAT_OF_FORMAT.get(table.format_version)
    if compat is None:
        raise _refused([*problems, f"format version {table.format_version}: it is 2 or 3"])
    metadata = Metadata(
        id=table.uuid or str(runtime.ids.uuid()),
        schema_string=render_schema(imported.schema),
        partition_columns=partitions,
        configuration={
            compat: "true",
            keys.COLUMN_MAPPING_MODE: "id",
            keys.MAX_COLUMN_ID: str(table.last_column_id),
            keys.ENABLE_IN_COMMIT_TIMESTAMPS: "true",
            keys.ICEBERG_SYNC: "commit",
            **(_FORMAT_3 if table.format_version > 2 else {}),
        },
        created_time=runtime.clock.now_ms(),
    )
    problems += reserved_names(metadata)
    if problems:
        raise _refused(problems)
    # A client that stages a table sends back the properties it was shown, those of versions too.
    shown = dict(_iceberg_metadata(metadata, location, runtime).properties)
    shown |= {name: value for name, value in table.properties.items() if name in _OF_VERSIONS}
    asked, problems = change_properties({}, shown, table.properties, ())
    if problems:
        raise _refused(problems)
    metadata = metadata.with_configuration(parse_properties(asked))
    check_iceberg_properties(metadata, metadata.configuration)
    metadata = with_compat_properties(None, metadata)
    check_schema(
        metadata.schema,
        mode=metadata.column_mapping_mode,
        partition_columns=metadata.partition_columns,
    )
    return with_column_mapping(None, metadata, runtime.ids)


def create_table(
    store: Store,
    metadata: Metadata,
    runtime: Runtime,
    translation: Translation | None = None,
    *,
    tags: Mapping[str, str],
) -> CommitResult:
    """Write version 0, with the first files where a staged table has some."""
    name = OperationName.CREATE_TABLE if translation is None else _WITH_ROWS
    operation = Operation(
        name=name,
        parameters={
            "partitionBy": list(metadata.partition_columns),
            "clusterBy": [],
            "description": None,
            "isManaged": "false",
            "properties": dict(metadata.configuration),
        },
    )
    of_rows = (translation.tags if translation is not None else None) or {}
    options = CommitOptions(policy="minimal", tags={**of_rows, **tags})
    transaction = Transaction.for_new_table(store, operation, runtime, TABLE_HOOKS, options=options)
    transaction.update_metadata(metadata)
    if translation is not None:
        transaction.add(*translation.actions)
    return transaction.commit()


def future_state(store: Store, metadata: Metadata, runtime: Runtime) -> TwinState:
    """A table as it will be before its first rows; nothing is stored."""
    protocol = Protocol.for_new_table(metadata, policy="minimal")
    return TwinState(
        snapshot=first_snapshot(store, (protocol, metadata)),
        iceberg=IcebergState(metadata=_iceberg_metadata(metadata, unquote(store.url), runtime)),
        metadata_location="",
    )


def staged_metadata(store: Store, metadata: Metadata, runtime: Runtime) -> bytes:
    """What a client gets that stages the creation of a table; nothing is stored.

    Its schema is number 0: DuckDB looks the first schema of a table up by that number, and goes
    down where there is none. Nobody else has seen this metadata, and the commit that ends the
    creation gives the schema anew.
    """
    staged = future_state(store, metadata, runtime).table_metadata
    (schema,) = staged.schemas
    numbered = msgspec.structs.replace(
        staged, current_schema_id=0, schemas=({**schema, "schema-id": 0},)
    )
    return b"".join(encode_metadata(numbered))


def _iceberg_metadata(metadata: Metadata, location: str, runtime: Runtime) -> TableMetadata:
    """What the Iceberg side says of a table without rows."""
    commit = DeltaCommit(
        version=0,
        timestamp_ms=runtime.clock.now_ms(),
        layout=layout_of(metadata, location),
        changes=FileChanges(),
    )
    return next_metadata(commit, None, None)


def _refused(problems: list[str]) -> UserError:
    return UserError(
        Code.COMPAT,
        "The table cannot be created.",
        why=listed(problems) + ".",
        fix="Leave these out, or create the table through twinlake.",
        fields={"problems": problems},
    )
