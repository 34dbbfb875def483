"""Answers to requests with an idempotency key, kept in the transaction that made the change.

A commit keeps its key in the log instead, where it is there exactly if the commit is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from twinlake.rest.catalog.database import Connection

__all__ = ["KEY_LIFETIME_MS", "KeptAnswers"]

KEY_LIFETIME_MS: Final = 30 * 60 * 1000


@dataclass(frozen=True, slots=True)
class KeptAnswers:
    """What was answered to requests of one warehouse."""

    connection: Connection
    warehouse: str
    now_ms: int

    def find(self, key: str, digest: str) -> tuple[int, bytes] | None:
        """Status and body of the answer to this very request, if it was answered before."""
        found = self.connection.row(
            "SELECT digest, status, body FROM answers WHERE warehouse = ? AND request_key = ? "
            "AND answered_ms > ?",
            self.warehouse,
            key,
            self.now_ms - KEY_LIFETIME_MS,
        )
        if found is None:
            return None
        if found[0] != digest:
            raise UserError(
                Code.KEY_REUSED,
                f"The idempotency key {key} was used for another request.",
                why="a key stands for one request",
                fix="Send the request with a key of its own.",
                fields={"key": key},
            )
        return found[1], found[2].encode()

    def keep(self, key: str, digest: str, status: int, body: bytes) -> None:
        """Keep an answer, and forget those that are too old."""
        self.connection.change(
            "DELETE FROM answers WHERE answered_ms <= ?", self.now_ms - KEY_LIFETIME_MS
        )
        self.connection.change(
            "INSERT INTO answers (warehouse, request_key, digest, status, body, answered_ms) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            self.warehouse,
            key,
            digest,
            status,
            body.decode(),
            self.now_ms,
        )
