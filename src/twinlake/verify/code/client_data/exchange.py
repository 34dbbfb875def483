"""What went between an Iceberg client and its server: what was asked, answered and shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

__all__ = ["KEY_MARK", "AnswerKind", "ClientExchange", "SentRequest"]

KEY_MARK: Final = "/"
"""Parts the name of the client from the number of the attempt, in an idempotency key."""


class AnswerKind(StrEnum):
    """What a client makes of the answer to a commit request, as the REST catalog sends it."""

    NONE = "none"
    COMMITTED = "committed"
    CONFLICT = "conflict"
    """409: refresh, and commit again."""
    REFUSED = "refused"
    """400: the request can never pass."""
    UNKNOWN = "unknown"
    """500: nobody can say whether it was committed."""


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a commit, and what it requires."""

    key: str
    body: bytes
    base: int
    """The Delta version of the metadata that it was built on."""
    snapshot_id: int | None
    """Of the snapshot that it adds, if it adds one."""
    requires: int | None
    """The snapshot that ``main`` has to be at."""


@dataclass(slots=True)
class ClientExchange:
    """All that one client sent, and all that it was shown."""

    answers: list[tuple[SentRequest, AnswerKind]] = field(default_factory=list)
    shown: set[tuple[int, int]] = field(default_factory=set)
    """Delta versions, each with the id that the server showed for its snapshot."""
