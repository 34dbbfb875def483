"""The bodies of the requests that create and change a table."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from twinlake.errors import Code, UserError
from twinlake.iceberg.requests.documents import (
    check_order_document,
    check_schema_document,
    check_spec_document,
    check_update_documents,
)
from twinlake.iceberg.requests.requirements import AssertCreate, AssertRefSnapshotId, Requirement
from twinlake.iceberg.requests.updates import AddSnapshot, SetSnapshotRef, Update

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "CommitTableRequest",
    "CreateTableRequest",
    "decode_commit",
    "decode_create",
    "malformed",
]


class CommitTableRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``CommitTableRequest``."""

    requirements: tuple[Requirement, ...] = ()
    updates: tuple[Update, ...] = ()

    @property
    def creates(self) -> bool:
        """Whether the request is about a table that does not exist yet."""
        return any(isinstance(one, AssertCreate) for one in self.requirements)

    @property
    def other_requirements(self) -> tuple[Requirement, ...]:
        """All but that the table does not exist."""
        return tuple(one for one in self.requirements if not isinstance(one, AssertCreate))

    def rows_only(self) -> CommitTableRequest:
        """The same request without what makes the table: its snapshots, and where main goes."""
        kept = (u for u in self.updates if isinstance(u, AddSnapshot | SetSnapshotRef))
        return CommitTableRequest(updates=tuple(kept))

    @property
    def base_snapshot_id(self) -> int | None:
        """The snapshot of ``main`` that the request was built on, where it says so."""
        named = (one for one in self.requirements if isinstance(one, AssertRefSnapshotId))
        return next((one.snapshot_id for one in named if one.ref == "main"), None)

    @property
    def last_snapshot_id(self) -> int | None:
        """The id of the last snapshot that the request adds."""
        added = [one.snapshot for one in self.updates if isinstance(one, AddSnapshot)]
        found = added[-1].get("snapshot-id") if added else None
        return found if isinstance(found, int) else None


class CreateTableRequest(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """``CreateTableRequest``."""

    name: str
    location: str | None = None
    schema: dict[str, Any]
    partition_spec: dict[str, Any] | None = None
    write_order: dict[str, Any] | None = None
    stage_create: bool | None = False
    properties: dict[str, str] | None = None


_Body = TypeVar("_Body")

_COMMIT: Final = msgspec.json.Decoder(CommitTableRequest)
_CREATE: Final = msgspec.json.Decoder(CreateTableRequest)


def decode_commit(body: bytes) -> CommitTableRequest:
    """A commit request; ``UserError`` where the body is none, or asks for an unknown update."""
    found = _decoded(_COMMIT, body)
    with _as_malformed():
        check_update_documents(found.updates)
    return found


def decode_create(body: bytes) -> CreateTableRequest:
    """A request to create a table."""
    found = _decoded(_CREATE, body)
    with _as_malformed():
        check_schema_document(found.schema)
        check_spec_document(found.partition_spec)
        check_order_document(found.write_order)
    return found


def _decoded(decoder: msgspec.json.Decoder[_Body], body: bytes) -> _Body:
    with _as_malformed():
        return decoder.decode(body)


@contextlib.contextmanager
def _as_malformed() -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise malformed(str(error) or type(error).__name__) from error


def malformed(why: str) -> UserError:
    """The error for a request that is not as the REST catalog's specification says."""
    return UserError(
        Code.INVALID_ARGUMENT,
        "The request is malformed.",
        why=why,
        fix="Send what Iceberg's REST catalog specification defines for this route.",
    )
