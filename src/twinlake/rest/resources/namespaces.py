"""Namespaces: nested, with properties, found in whatever case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.errors import Code, UserError
from twinlake.rest.catalog import Namespaces, PageRequest
from twinlake.rest.names import NamespaceName
from twinlake.rest.response import ApiResponse, json_response, no_content
from twinlake.rest.routes import Route

if TYPE_CHECKING:
    from twinlake.rest.catalog import Connection
    from twinlake.rest.context import ServerContext
    from twinlake.rest.request import ApiRequest

__all__ = ["ROUTES", "requested_page"]

_PATH: Final = "/v1/{prefix}/namespaces"


class _CreateNamespace(msgspec.Struct, frozen=True):
    namespace: list[str]
    properties: dict[str, str] | None = None


class _UpdateProperties(msgspec.Struct, frozen=True):
    removals: list[str] | None = None
    updates: dict[str, str] | None = None


def requested_page(context: ServerContext, request: ApiRequest) -> PageRequest:
    """The page of a list that a request asks for."""
    query = request.query
    return PageRequest.parse(
        query.get("pageToken"), query.get("pageSize"), context.settings.limits.page_size
    )


def list_namespaces(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """The namespaces right below one, or the outermost."""
    text = request.query.get("parent")
    parent = NamespaceName.parse(text) if text else None
    with context.database.reading() as connection:
        page = Namespaces(connection, _warehouse(context, request)).page(
            parent, requested_page(context, request)
        )
    return json_response(
        {"namespaces": [one.levels for one in page.items], "next-page-token": page.next_token}
    )


def create_namespace(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Make a namespace, in one that is there."""
    asked = request.decode(_CreateNamespace)
    name = NamespaceName.of(asked.namespace)
    properties = asked.properties or {}
    warehouse = _warehouse(context, request)

    def change(connection: Connection) -> ApiResponse:
        made = Namespaces(connection, warehouse).create(name, properties)
        return json_response({"namespace": made.levels, "properties": properties})

    return context.single_change(warehouse, request).run(change)


def load_namespace(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """A namespace with its properties."""
    with context.database.reading() as connection:
        found = Namespaces(connection, _warehouse(context, request)).load(request.namespace)
    return json_response({"namespace": found.name.levels, "properties": found.properties})


def namespace_exists(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Whether a namespace is there."""
    with context.database.reading() as connection:
        Namespaces(connection, _warehouse(context, request)).require(request.namespace)
    return no_content()


def drop_namespace(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Forget an empty namespace."""
    warehouse, name = _warehouse(context, request), request.namespace

    def change(connection: Connection) -> ApiResponse:
        Namespaces(connection, warehouse).drop(name)
        return no_content()

    return context.single_change(warehouse, request).run(change)


def update_properties(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Set and remove properties of a namespace."""
    asked = request.decode(_UpdateProperties)
    updates, removals = asked.updates or {}, asked.removals or []
    both = sorted(updates.keys() & set(removals))
    if both:
        raise UserError(
            Code.PROPERTY_TWICE,
            f"The request sets and removes {', '.join(both)[:500]}.",
            why="a property is in both lists",
            fix="Leave it in one of them.",
            fields={"properties": both},
        )
    warehouse, name = _warehouse(context, request), request.namespace

    def change(connection: Connection) -> ApiResponse:
        namespaces = Namespaces(connection, warehouse)
        gone, missing = namespaces.change_properties(name, updates, removals)
        return json_response({"updated": list(updates), "removed": gone, "missing": missing})

    return context.single_change(warehouse, request).run(change)


def _warehouse(context: ServerContext, request: ApiRequest) -> str:
    return context.warehouse(request.parameters["prefix"])


ROUTES: Final = (
    Route(
        method="GET",
        path=_PATH,
        operation="listNamespaces",
        handler=list_namespaces,
        summary="The namespaces right below `parent`, or the outermost; in pages.",
    ),
    Route(
        method="POST",
        path=_PATH,
        operation="createNamespace",
        handler=create_namespace,
        summary="Make a namespace with properties; the one around it must be there.",
    ),
    Route(
        method="GET",
        path=f"{_PATH}/{{namespace}}",
        operation="loadNamespaceMetadata",
        handler=load_namespace,
        summary="The properties of a namespace.",
    ),
    Route(
        method="HEAD",
        path=f"{_PATH}/{{namespace}}",
        operation="namespaceExists",
        handler=namespace_exists,
        summary="Whether a namespace is there.",
    ),
    Route(
        method="DELETE",
        path=f"{_PATH}/{{namespace}}",
        operation="dropNamespace",
        handler=drop_namespace,
        summary="Drop a namespace that is empty.",
    ),
    Route(
        method="POST",
        path=f"{_PATH}/{{namespace}}/properties",
        operation="updateProperties",
        handler=update_properties,
        summary="Set and remove properties of a namespace.",
    ),
)
