"""``transactions/commit``: a transaction over one table is a plain commit.

Delta has no commit over several logs, so that more than one table is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.errors import Code, UserError
from twinlake.iceberg.requests import malformed
from twinlake.rest.request import decode_body
from twinlake.rest.resources.tables import TableIdentifier
from twinlake.rest.response import ApiResponse, no_content
from twinlake.rest.routes import Route

if TYPE_CHECKING:
    from twinlake.rest.context import ServerContext
    from twinlake.rest.request import ApiRequest

__all__ = ["ROUTES"]


class _Transaction(msgspec.Struct, frozen=True, rename="kebab"):
    table_changes: list[msgspec.Raw]


class _Change(msgspec.Struct, frozen=True):
    identifier: TableIdentifier


def commit_transaction(context: ServerContext, request: ApiRequest) -> ApiResponse:
    """Commit the change of one table."""
    changes = request.decode(_Transaction).table_changes
    if not changes:
        raise malformed("the transaction has no changes")
    if len(changes) > 1:
        raise UserError(
            Code.NOT_YET,
            f"A transaction over {len(changes)} tables cannot be committed.",
            why="each table has a Delta log of its own, and Delta commits to one at a time",
            fix="Commit the tables one by one.",
            fields={"tables": len(changes)},
        )
    body = bytes(changes[0])
    identity = decode_body(body, _Change).identifier.identity
    warehouse = context.warehouse(request.parameters["prefix"])
    context.tables.commit(warehouse, identity, body, request.idempotency_key)
    return no_content()


ROUTES: Final = (
    Route(
        method="POST",
        path="/v1/{prefix}/transactions/commit",
        operation="commitTransaction",
        handler=commit_transaction,
        summary="Commit a transaction, of one table.",
        is_commit=True,
    ),
)
