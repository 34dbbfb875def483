"""Changes of the database that happen once, however often a client sends them.

A request with an idempotency key and its answer are recorded in the transaction that makes the
change; sent again, it gets the same answer and changes nothing.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from twinlake.rest.catalog import KeptAnswers
from twinlake.rest.response import ApiResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.rest.catalog import CatalogDatabase, Connection
    from twinlake.rest.request import ApiRequest
    from twinlake.runtime import Runtime

__all__ = ["SingleChange"]


class SingleChange:
    """The change that one request makes."""

    def __init__(
        self, database: CatalogDatabase, runtime: Runtime, warehouse: str, request: ApiRequest
    ) -> None:
        self._database = database
        self._runtime = runtime
        self._warehouse = warehouse
        self._key = request.idempotency_key
        asked = f"{request.method} {request.path}\n{sorted(request.query.items())}\n".encode()
        self._digest = hashlib.sha256(asked + request.body).hexdigest()

    def before(self) -> tuple[int, bytes] | None:
        """What this very request was answered before, with its status."""
        if self._key is None:
            return None
        with self._database.reading() as connection:
            return self._answers(connection).find(self._key, self._digest)

    def run(self, change: Callable[[Connection], ApiResponse]) -> ApiResponse:
        """Make the change in a transaction and keep its answer, or give the one that was kept."""
        with self._database.changing() as connection:
            if self._key is not None:
                kept = self._answers(connection).find(self._key, self._digest)
                if kept is not None:
                    headers = {"content-type": "application/json"} if kept[1] else {}
                    return ApiResponse(status=kept[0], headers=headers, body=kept[1])
            answer = change(connection)
            self.keep(connection, answer.status, answer.body)
        return answer

    def keep(self, connection: Connection, status: int, body: bytes) -> None:
        """Keep an answer in the transaction that is open."""
        if self._key is not None:
            self._answers(connection).keep(self._key, self._digest, status, body)

    def _answers(self, connection: Connection) -> KeptAnswers:
        return KeptAnswers(connection, self._warehouse, self._runtime.clock.now_ms())
