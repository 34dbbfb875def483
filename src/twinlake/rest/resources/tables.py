"""Tables: made, staged, loaded, committed to, registered, renamed, dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.iceberg.requests import malformed
from twinlake.rest.catalog import PageRequest, Tables
from twinlake.rest.names import TableIdentity
from twinlake.rest.resources.namespaces import requested_page
from twinlake.rest.response import ApiResponse, json_response, no_content
from twinlake.rest.routes import Route

if TYPE_CHECKING:
    from twinlake.rest.catalog import Connection
    from twinlake.rest.context import ServerContext
    from twinlake.rest.request import ApiRequest
    from twinlake.rest.table_answers import TableAnswer

__all__ = ["ROUTES", "TableIdentifier"]

_NAMESPACE: Final = "/v1/{prefix}/namespaces/{namespace}"
_TABLE: Final = f"{_NAMESPACE}/tables/{{table}}"


class TableIdentifier(msgspec.Struct, frozen=True):
    """A table as bodies of requests name it."""

    namespace: list[str]
    name: str

    @property
    def identity(self) -> TableIdentity:
        """The name, checked."""
        return TableIdentity.of(self.namespace, self.name)


class _RenameTable(msgspec.Struct, frozen=True):
    source: TableIdentifier
    destination: TableIdentifier


class _RegisterTable(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    metadata_location: str
    overwrite: bool = False


def list_tables(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """The tables of a namespace."""
    asked: PageRequest = requested_page(context, request)
    with context.database.reading() as connection:
        page = Tables(connection, _warehouse(context, request)).page(request.namespace, asked)
    found = [{"namespace": one.namespace.levels, "name": one.name} for one in page.items]
    return json_response({"identifiers": found, "next-page-token": page.next_token})


def create_table(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Make a table, or say how it would be."""
    warehouse = _warehouse(context, request)
    made = context.tables.create(
        warehouse, request.namespace.levels, request.body, request.idempotency_key
    )
    if isinstance(made, bytes):
        return ApiResponse(headers={"content-type": "application/json"}, body=made)
    return made.response


def load_table(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """The newest version of a table."""
    found = context.tables.load(
        _warehouse(context, request), request.table, _wanted_snapshots(request)
    )
    return found.not_modified if _is_known(request, found) else found.response


def load_kept_table(context: ServerContext, request: ApiRequest) -> ApiResponse | None:
    """The newest version of a table, if its answer is kept and one look at a disk confirms it."""
    found = context.tables.kept(
        _warehouse(context, request), request.table, _wanted_snapshots(request)
    )
    if found is None:
        return None
    return found.not_modified if _is_known(request, found) else found.response


def _wanted_snapshots(request: ApiRequest) -> str:
    snapshots = request.query.get("snapshots") or "all"
    if snapshots not in ("all", "refs"):
        raise malformed("snapshots is all or refs")
    return snapshots


def table_exists(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Whether a table is there."""
    warehouse = _warehouse(context, request)
    if not context.tables.exists(warehouse, request.table):
        with context.database.reading() as connection:
            raise Tables(connection, warehouse).missing(request.table)
    return no_content()


def commit_table(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Change a table, or make one that was staged."""
    warehouse = _warehouse(context, request)
    return context.tables.commit(
        warehouse, request.table, request.body, request.idempotency_key
    ).response


def drop_table(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Take the name from a table; ``purgeRequested`` lets its files be deleted later."""
    warehouse, identity = _warehouse(context, request), request.table
    purge, now_ms = request.flag("purgeRequested"), context.runtime.clock.now_ms()

    def change(connection: Connection) -> ApiResponse:
        Tables(connection, warehouse).drop(identity, now_ms, purge=purge)
        return no_content()

    return context.single_change(warehouse, request).run(change)


def register_table(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Give a Delta table that is there a name."""
    warehouse, asked = _warehouse(context, request), request.decode(_RegisterTable)
    return context.tables.register(
        warehouse,
        TableIdentity.of(request.namespace.levels, asked.name),
        asked.metadata_location,
        context.single_change(warehouse, request),
        overwrite=asked.overwrite,
    ).response


def unregister_table(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Forget a table without touching its files."""
    warehouse = _warehouse(context, request)
    change = context.single_change(warehouse, request)
    return context.tables.unregister(warehouse, request.table, change).response


def rename_table(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Give a table another name."""
    warehouse, asked = _warehouse(context, request), request.decode(_RenameTable)
    source, target = asked.source.identity, asked.destination.identity

    def change(connection: Connection) -> ApiResponse:
        Tables(connection, warehouse).rename(source, target)
        return no_content()

    return context.single_change(warehouse, request).run(change)


def _is_known(request: ApiRequest, found: TableAnswer) -> bool:
    """Whether the client has this very answer; packed or not makes no difference."""
    asked = request.headers.get("if-none-match", "")
    if not asked:
        return False
    tag = found.etag.removeprefix("W/")
    return any(one.strip().removeprefix("W/") in (tag, "*") for one in asked.split(","))


def _warehouse(context: ServerContext, request: ApiRequest) -> str:
    return context.warehouse(request.parameters["prefix"])


ROUTES: Final = (
    Route(
        method="GET",
        path=f"{_NAMESPACE}/tables",
        operation="listTables",
        handler=list_tables,
        summary="The tables of a namespace; in pages.",
    ),
    Route(
        method="POST",
        path=f"{_NAMESPACE}/tables",
        operation="createTable",
        handler=create_table,
        summary="Make a twin table; with `stage-create` only say how it would be.",
        is_commit=True,
    ),
    Route(
        method="GET",
        path=_TABLE,
        operation="loadTable",
        handler=load_table,
        from_memory=load_kept_table,
        summary="The newest version; `snapshots=refs` for less history; 304 by `If-None-Match`.",
    ),
    Route(
        method="HEAD",
        path=_TABLE,
        operation="tableExists",
        handler=table_exists,
        summary="Whether a table is there.",
    ),
    Route(
        method="POST",
        path=_TABLE,
        operation="updateTable",
        handler=commit_table,
        summary="Commit: one entry of the Delta log, or the first one of a staged table.",
        is_commit=True,
    ),
    Route(
        method="DELETE",
        path=_TABLE,
        operation="dropTable",
        handler=drop_table,
        summary="Drop a table; for 7 days it can be brought back. `purgeRequested` deletes its "
        "files after that.",
    ),
    Route(
        method="POST",
        path=f"{_NAMESPACE}/register",
        operation="registerTable",
        handler=register_table,
        summary="Give a folder with a `_delta_log` a name.",
    ),
    Route(
        method="POST",
        path=f"{_TABLE}/unregister",
        operation="unregisterTable",
        handler=unregister_table,
        summary="Forget a table; its files stay where they are.",
    ),
    Route(
        method="POST",
        path="/v1/{prefix}/tables/rename",
        operation="renameTable",
        handler=rename_table,
        summary="Give a table another name, in the same or another namespace.",
    ),
)
