"""One table from twinlake's errors to those of the REST catalog's specification.

A client takes 409 as a reason to try again, 400 as a reason to stop and delete its files, and every
5xx of a commit as "unknown", after which it keeps them. So 5xx is for a commit only where nobody
can say whether it happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from twinlake.errors import (
    Code,
    CommitUnknown,
    ConflictError,
    StorageError,
    TwinlakeError,
)
from twinlake.rest.response import ApiResponse, json_response

__all__ = ["ERRORS_BY_CLASS", "ERRORS_BY_CODE", "RestError", "error_response", "rest_error"]


@dataclass(frozen=True, slots=True)
class RestError:
    """The status of an answer, and the name that clients branch on."""

    status: int
    type: str


_REFUSED: Final = RestError(400, "ValidationException")
_UNKNOWN: Final = RestError(500, "CommitStateUnknownException")

ERRORS_BY_CODE: Final = {
    Code.WAREHOUSE_NOT_FOUND: RestError(404, "NoSuchWarehouseException"),
    Code.NAMESPACE_NOT_FOUND: RestError(404, "NoSuchNamespaceException"),
    Code.TABLE_NOT_FOUND: RestError(404, "NoSuchTableException"),
    Code.ROUTE_NOT_FOUND: RestError(404, "NoSuchRouteException"),
    Code.NAMESPACE_EXISTS: RestError(409, "AlreadyExistsException"),
    Code.TABLE_EXISTS: RestError(409, "AlreadyExistsException"),
    Code.NAMESPACE_NOT_EMPTY: RestError(409, "NamespaceNotEmptyException"),
    Code.KEY_REUSED: RestError(422, "UnprocessableEntityException"),
    Code.PROPERTY_TWICE: RestError(422, "UnprocessableEntityException"),
    Code.SERVER_BUSY: RestError(503, "ServiceUnavailableException"),
    Code.INTERNAL: RestError(500, "InternalServerError"),
}
"""What a code means, before its class is looked at."""

ERRORS_BY_CLASS: Final[tuple[tuple[type[TwinlakeError], RestError], ...]] = (
    (ConflictError, RestError(409, "CommitFailedException")),
    (CommitUnknown, _UNKNOWN),
    (StorageError, RestError(500, "InternalServerError")),
    (TwinlakeError, _REFUSED),
)
"""What a class means; the first that fits counts."""


def rest_error(error: TwinlakeError, *, is_commit: bool) -> RestError:
    """What a client is told. A commit that fails for a reason beyond it has an unknown outcome."""
    if "allow" in error.fields:
        return RestError(405, "MethodNotAllowedException")
    found = ERRORS_BY_CODE.get(error.code)
    if found is None:
        found = next(one for kind, one in ERRORS_BY_CLASS if isinstance(error, kind))
    return _UNKNOWN if is_commit and found.status == 500 else found


def error_response(error: TwinlakeError, *, is_commit: bool = False) -> ApiResponse:
    """The answer for an error: its code, its rule, and how to fix it, in one message."""
    told = rest_error(error, is_commit=is_commit)
    rule = f" ({error.rule})" if error.rule else ""
    message = f"{error.code}{rule}: {error.what}"
    if error.why:
        message = f"{message} Why: {error.why.rstrip('.')}."
    if error.fix:
        message = f"{message} Fix: {error.fix}"
    document = {"error": {"message": message, "type": told.type, "code": told.status}}
    headers = {"retry-after": "1"} if told.status == 503 else {}
    if told.status == 405:
        headers["allow"] = str(error.fields.get("allow", ""))
    return json_response(document, told.status, headers)
