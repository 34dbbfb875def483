"""Making a new table: version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.actions import DomainMetadata, clustering_action
from twinlake.commit import CommitOptions, Operation, OperationName, Transaction
from twinlake.compat import with_column_mapping, with_compat_properties, with_mapping_of
from twinlake.errors import Code, UserError
from twinlake.protocol import (
    CLUSTERING_DOMAIN,
    Clustering,
    Metadata,
    check_iceberg_properties,
    features,
    keys,
    parse_properties,
    refuse_kept_properties,
)
from twinlake.schema import (
    Struct,
    check_schema,
    parse_ddl,
    parse_path,
    physical_path,
    render_schema,
    resolve_path,
    type_at,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from twinlake.commit import CommitResult
    from twinlake.runtime import Runtime
    from twinlake.storage import Store
    from twinlake.table.operations.context import OperationContext

__all__ = ["clustering_domain", "create_table", "new_metadata"]


def create_table(
    context: OperationContext,
    store: Store,
    schema: Struct | str,
    *,
    partition_by: Sequence[str] = (),
    cluster_by: Sequence[str] = (),
    properties: Mapping[str, object] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> CommitResult:
    """Write version 0."""
    metadata = new_metadata(
        schema,
        partition_by=partition_by,
        cluster_by=cluster_by,
        properties=properties or {},
        name=name,
        description=description,
        runtime=context.runtime,
    )
    operation = Operation(
        name=OperationName.CREATE_TABLE,
        parameters={
            "partitionBy": list(metadata.partition_columns),
            "clusterBy": list(cluster_by),
            "description": description,
            "isManaged": "false",
            "properties": parse_properties(properties or {}),
        },
    )
    options = CommitOptions(policy=context.policy, system_domains=frozenset({CLUSTERING_DOMAIN}))
    transaction = Transaction.for_new_table(
        store, operation, context.runtime, context.hooks, options=options
    )
    transaction.update_metadata(metadata)
    if cluster_by:
        transaction.add(clustering_domain(metadata, cluster_by))
    return transaction.commit()


def new_metadata(
    schema: Struct | str,
    *,
    partition_by: Sequence[str],
    cluster_by: Sequence[str],
    properties: Mapping[str, object],
    name: str | None,
    description: str | None,
    runtime: Runtime,
    replaces: Metadata | None = None,
) -> Metadata:
    """The metadata of a table that is to be made: checked, with ids and physical names.

    ``replaces`` is the metadata of the table in whose place it comes.
    """
    struct = parse_ddl(schema) if isinstance(schema, str) else schema
    if not isinstance(struct, Struct):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"A {type(schema).__name__} is not a schema.",
            fix="Give DDL text such as `id INT, name STRING`, or a `twinlake.schema.Struct`.",
        )
    parsed = parse_properties(properties)
    refuse_kept_properties(parsed)
    if cluster_by:
        parsed = {**keys.support(features.CLUSTERING), **parsed}
    asked = Metadata(
        id=str(runtime.ids.uuid()),
        name=name,
        description=description,
        schema_string=render_schema(struct),
        partition_columns=_partitions(struct, partition_by, cluster_by),
        configuration=parsed,
        created_time=runtime.clock.now_ms(),
    )
    check_iceberg_properties(asked, parsed)
    metadata = with_compat_properties(None, asked)
    if replaces is not None:
        metadata = with_mapping_of(replaces, metadata)
    check_schema(
        metadata.schema,
        mode=metadata.column_mapping_mode,
        partition_columns=metadata.partition_columns,
    )
    return with_column_mapping(None, metadata, runtime.ids)


def clustering_domain(metadata: Metadata, columns: Sequence[str]) -> DomainMetadata:
    """The system's record of the clustering columns, by physical path."""
    mode = metadata.column_mapping_mode
    paths = []
    for column in columns:
        path = resolve_path(metadata.schema, parse_path(column))
        if isinstance(type_at(metadata.schema, path), Struct):
            raise UserError(
                Code.SCHEMA_INVALID,
                f"The table cannot be clustered by {column}.",
                why="it is a struct, and only its leaves have an order",
                fix="Name a column inside it.",
                delta_class="DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
            )
        paths.append(physical_path(metadata.schema, path, mode))
    return clustering_action(Clustering(columns=tuple(paths)))


def _partitions(
    schema: Struct, partition_by: Sequence[str], cluster_by: Sequence[str]
) -> tuple[str, ...]:
    if partition_by and cluster_by:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "A table is partitioned or clustered, not both.",
            fix="Leave out `partition_by=` or `cluster_by=`.",
            delta_class="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        )
    found = (schema.get(name) for name in partition_by)
    # The schema's own spelling is what the log must name; what is missing is reported later.
    return tuple(
        field.name if field is not None else name
        for field, name in zip(found, partition_by, strict=True)
    )
