"""Reports that clients send of their scans and commits: accepted and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.rest.resources.tables import table_exists
from twinlake.rest.response import no_content
from twinlake.rest.routes import Route

if TYPE_CHECKING:
    from twinlake.rest.context import ServerContext
    from twinlake.rest.request import ApiRequest
    from twinlake.rest.response import ApiResponse

__all__ = ["ROUTES"]

#: Any other kind is counted as one, so that clients cannot make up labels.
_KINDS: Final = frozenset({"scan-report", "commit-report"})


class _Report(msgspec.Struct, frozen=True, rename="kebab"):
    report_type: str


def report_metrics(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Count the report of a client."""
    kind = request.decode(_Report).report_type
    table_exists(context, request)
    context.counters.count_report(kind if kind in _KINDS else "other")
    return no_content()


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics",
        operation="reportMetrics",
        handler=report_metrics,
        summary="Take a client's report of a scan or a commit, and count it.",
    ),
)
