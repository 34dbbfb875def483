"""``config``: what a client has to know before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.rest.response import json_response
from twinlake.rest.routes import Route

if TYPE_CHECKING:
    from twinlake.rest.context import ServerContext
    from twinlake.rest.request import ApiRequest
    from twinlake.rest.response import ApiResponse

__all__ = ["ROUTES"]

#: As ISO 8601 has it; the log is searched for keys of this age.
_KEY_LIFETIME: Final = "PT30M"


def get_config(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """The settings of a warehouse; of the first one where the client names none."""
    from twinlake.rest.resources import ROUTES as EVERY_ROUTE

    named = request.query.get("warehouse") or context.settings.warehouses[0].name
    warehouse = context.warehouse(named)
    return json_response(
        {
            "defaults": {},
            "overrides": {"prefix": warehouse, "namespace-separator": "%1F"},
            "endpoints": [one.endpoint for one in EVERY_ROUTE if one.is_catalog],
            "idempotency-key-lifetime": _KEY_LIFETIME,
        }
    )


ROUTES: Final = (
    Route(
        method="GET",
        path="/v1/config",
        operation="getConfig",
        handler=get_config,
        summary="The prefix of a warehouse, the routes, and how long idempotency keys live.",
    ),
)
