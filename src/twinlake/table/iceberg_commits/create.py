"""Creating a twin table as an Iceberg client asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

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
from twinlake.iceberg.format import highest_field_id
from twinlake.iceberg.requests import (
    change_properties,
    import_schema,
    malformed,
    with_fresh_ids,
)
from twinlake.iceberg.requests import updates as up
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
from twinlake.table.iceberg_commits.twin_state import TwinState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.commit import CommitResult
    from twinlake.iceberg.requests import CommitRequest, CreateRequest
    from twinlake.runtime import Runtime
    from twinlake.storage import Store
    from twinlake.table.iceberg_commits.translation import Translation

__all__ = ["NewTable", "create_table", "future_state"]

_WITH_ROWS: Final = OperationName.CREATE_TABLE_AS_SELECT
_FORMAT_VERSION: Final = "format-version"
_COMPAT_OF_FORMAT: Final = {
    2: keys.ENABLE_ICEBERG_WRITER_COMPAT_V1,
    3: keys.ENABLE_ICEBERG_WRITER_COMPAT_V3,
}
#: What the metadata of every table says: a client that asks for it gets it.
_ALWAYS: Final = {"gc.enabled": "false", "write.format.default": "parquet"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """What a client asks for: by ``createTable``, or by the commit of a staged table."""

    schema: Mapping[str, Any]
    last_column_id: int
    spec: Mapping[str, Any]
    order: Mapping[str, Any]
    properties: Mapping[str, str]
    format_version: int
    uuid: str | None = None

    @classmethod
    def of_request(cls, request: CreateRequest) -> NewTable:
        """The table of a ``CreateTableRequest``; columns get fresh ids."""
        schema, last = with_fresh_ids(request.schema)
        old = _ids_by_path(request.schema)
        new = _ids_by_path(schema)
        given = {old[path]: new[path] for path in old}
        properties = dict(request.properties or {})
        return cls(
            schema=schema,
            last_column_id=last,
            spec=_renumbered(request.partition_spec, given),
            order=request.write_order or {},
            format_version=_format_version(properties.pop(_FORMAT_VERSION, "2")),
            properties=properties,
        )

    @classmethod
    def of_updates(cls, request: CommitRequest) -> NewTable:
        """The table of the commit that ends a staged creation; its ids are in files already."""
        found: dict[str, Any] = {"properties": {}, "format_version": 2, "uuid": None}
        schemas: list[dict[str, Any]] = []
        specs: list[dict[str, Any]] = []
        orders: list[dict[str, Any]] = []
        for update in request.updates:
            match update:
                case up.AssignUuid(uuid=wanted):
                    found["uuid"] = wanted
                case up.UpgradeFormatVersion(format_version=number):
                    found["format_version"] = _format_version(str(number))
                case up.AddSchema(schema=schema):
                    schemas.append(schema)
                case up.AddSpec(spec=spec):
                    specs.append(spec)
                case up.AddSortOrder(sort_order=order):
                    orders.append(order)
                case up.SetProperties(updates=given):
                    found["properties"] |= given
        if not schemas:
            raise malformed("a table is created with a schema")
        properties = dict(found.pop("properties"))
        properties.pop(_FORMAT_VERSION, None)
        return cls(
            schema=schemas[-1],
            last_column_id=highest_field_id(schemas[-1]),
            spec=specs[-1] if specs else {},
            order=orders[-1] if orders else {},
            properties=properties,
            **found,
        )

    def metadata(self, runtime: Runtime) -> Metadata:
        """The Delta metadata of version 0; all that is against it in one error."""
        imported = import_schema(self.schema)
        problems = list(imported.problems)
        if self.order.get("fields"):
            problems.append("a sort order: cluster the table instead, through twinlake")
        if self.schema.get("identifier-field-ids"):
            problems.append("identifier fields: Delta has none")
        names = {column["id"]: column["name"] for column in self.schema["fields"]}
        partitions: list[str] = []
        for part in self.spec.get("fields") or ():
            transform, source = part.get("transform"), part.get("source-id")
            if transform != "identity" or source not in names:
                problems.append(
                    f"partition field {part.get('name')} ({transform}): Delta partitions by "
                    "columns as they are"
                )
            elif part.get("name") != names[source]:
                problems.append(
                    f"partition field {part.get('name')}: Delta calls it {names[source]}"
                )
            else:
                partitions.append(names[source])
        asked, more = change_properties({}, _ALWAYS, self.properties, ())
        problems += more
        if problems:
            raise _refused(problems)
        metadata = Metadata(
            id=self.uuid or str(runtime.ids.uuid()),
            schema_string=render_schema(imported.schema),
            partition_columns=tuple(partitions),
            configuration={
                **parse_properties(asked),
                _COMPAT_OF_FORMAT[self.format_version]: "true",
                keys.COLUMN_MAPPING_MODE: "id",
                keys.MAX_COLUMN_ID: str(self.last_column_id),
                keys.ENABLE_IN_COMMIT_TIMESTAMPS: "true",
                keys.ICEBERG_SYNC: "commit",
            },
            created_time=runtime.clock.now_ms(),
        )
        check_iceberg_properties(metadata, metadata.configuration)
        metadata = with_compat_properties(None, metadata)
        check_schema(
            metadata.schema,
            mode=metadata.column_mapping_mode,
            partition_columns=metadata.partition_columns,
        )
        return with_column_mapping(None, metadata, runtime.ids)


def create_table(
    store: Store, metadata: Metadata, runtime: Runtime, translation: Translation | None = None
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
    tags = (translation.tags if translation is not None else None) or {}
    options = CommitOptions(policy="minimal", tags=tags)
    transaction = Transaction.for_new_table(store, operation, runtime, TABLE_HOOKS, options=options)
    transaction.update_metadata(metadata)
    if translation is not None:
        transaction.add(*translation.actions)
    return transaction.commit()


def future_state(store: Store, metadata: Metadata, runtime: Runtime) -> TwinState:
    """A table as it will be before its first rows; nothing is stored.

    ``encode_metadata`` of it is what a client gets that stages the creation of a table.
    """
    location = unquote(store.url)
    commit = DeltaCommit(
        version=0,
        timestamp_ms=runtime.clock.now_ms(),
        layout=layout_of(metadata, location),
        changes=FileChanges(),
    )
    protocol = Protocol.for_new_table(metadata, policy="minimal")
    return TwinState(
        snapshot=first_snapshot(store, (protocol, metadata)),
        iceberg=IcebergState(metadata=next_metadata(commit, None, None)),
        metadata_location="",
    )


def _format_version(text: str) -> int:
    if text not in ("2", "3"):
        raise _refused([f"format version {text}: a twin table is of version 2 or 3"])
    return int(text)


def _ids_by_path(schema: Mapping[str, Any]) -> dict[str, int]:
    """The ids of the columns at the top, by name: partitions are made from no others."""
    return {column["name"]: column["id"] for column in schema["fields"]}


def _renumbered(spec: Mapping[str, Any] | None, given: Mapping[int, int]) -> Mapping[str, Any]:
    fields = (spec or {}).get("fields") or ()
    return {
        "fields": [
            {**part, "source-id": given.get(part.get("source-id"), part.get("source-id"))}
            for part in fields
        ]
    }


def _refused(problems: list[str]) -> UserError:
    return UserError(
        Code.COMPAT,
        "The table cannot be created.",
        why=listed(problems) + ".",
        fix="Leave these out, or create the table through twinlake.",
        fields={"problems": problems},
    )
