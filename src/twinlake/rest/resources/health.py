"""Whether the process lives, whether it can serve, and what it has counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, StorageError, TwinlakeError
from twinlake.rest.response import ApiResponse, json_response
from twinlake.rest.routes import Route

if TYPE_CHECKING:
    from twinlake.rest.context import ServerContext
    from twinlake.rest.request import ApiRequest

__all__ = ["ROUTES"]


def get_health(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """The process answers."""
    del context, request
    return json_response({"status": "ok"})


def get_readiness(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """The database answers."""
    del request
    try:
        with context.database.reading() as connection:
            connection.row("SELECT COUNT(*) FROM schema_steps")
    except StorageError as error:
        raise TwinlakeError(
            Code.SERVER_BUSY, "The server is not ready.", why=error.what, fix=error.fix
        ) from error
    return json_response({"status": "ready", "warehouses": list(context.tables.policies)})


def get_metrics(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """The counts of the process."""
    del request
    return ApiResponse(
        headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"},
        body=context.counters.render().encode(),
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/health",
        operation="getHealth",
        handler=get_health,
        summary="200 as long as the process answers.",
        is_catalog=False,
        is_limited=False,
    ),
    Route(
        method="GET",
        path="/ready",
        operation="getReadiness",
        handler=get_readiness,
        summary="200 as long as the database of the server answers, else 503.",
        is_catalog=False,
        is_limited=False,
    ),
    Route(
        method="GET",
        path="/metrics",
        operation="getMetrics",
        handler=get_metrics,
        summary="The counts of the process, for Prometheus.",
        is_catalog=False,
        is_limited=False,
    ),
)
