"""Whether a request was committed before: its idempotency key, or its snapshot, is in the log.

Both are tags of ``commitInfo``, so that they are there exactly if the commit is.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, StorageError, UserError
from twinlake.iceberg.derive import version_of
from twinlake.log import read_commit_info

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.iceberg.requests import CommitTableRequest
    from twinlake.table.iceberg_commits.twin_state import TwinState

__all__ = ["KEY_LIFETIME_MS", "RequestIdentity"]

KEY_TAG: Final = "twinlake.iceberg.idempotencyKey"
REQUEST_TAG: Final = "twinlake.iceberg.requestHash"
KEY_LIFETIME_MS: Final = 30 * 60 * 1000
"""How long a key is looked for where the request does not say what it was built on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestIdentity:
    """By what a request is known again."""

    key: str | None
    digest: str
    snapshot_id: int | None
    base_snapshot_id: int | None

    @classmethod
    def of(
        cls, body: bytes, key: str | None, request: CommitTableRequest | None = None
    ) -> RequestIdentity:
        """The identity of a request; ``request`` is what its body asks for, if that is a commit."""
        return cls(
            key=key,
            digest=hashlib.sha256(body).hexdigest()[:32],
            snapshot_id=request.last_snapshot_id if request is not None else None,
            base_snapshot_id=request.base_snapshot_id if request is not None else None,
        )

    @property
    def tags(self) -> Mapping[str, str]:
        """What the commit records of the request, beside the id of its snapshot."""
        return {} if self.key is None else {KEY_TAG: self.key, REQUEST_TAG: self.digest}

    def is_committed(self, state: TwinState, now_ms: int) -> bool:
        """Whether a version of the table has this very request.

        Raises:
            UserError: the key belongs to another request.
        """
        if self._is_snapshot_of_client(state):
            return True
        return self.key is not None and self._is_key_used(state, now_ms)

    def _is_snapshot_of_client(self, state: TwinState) -> bool:
        """Whether the table has the snapshot, and did not make its id itself."""
        number = self.snapshot_id
        return (
            number is not None
            and state.table_metadata.has_snapshot(number)
            and version_of(state.snapshot.metadata.id, number) is None
        )

    def _is_key_used(self, state: TwinState, now_ms: int) -> bool:
        first = self._first_version(state)
        for version in range(state.snapshot.version, first - 1, -1):
            try:
                info = read_commit_info(state.snapshot.store, version)
            except StorageError as error:
                if error.code is Code.STORAGE_NOT_FOUND:
                    # The log was cleaned up, which takes longer than any key lives.
                    return False
                raise
            tags = (info.tags if info is not None else None) or {}
            if tags.get(KEY_TAG) == self.key:
                if tags.get(REQUEST_TAG) != self.digest:
                    raise self._reused()
                return True
            stamp = None if info is None else info.in_commit_timestamp or info.timestamp
            if self.base_snapshot_id is None and (stamp or 0) < now_ms - KEY_LIFETIME_MS:
                return False
        return False

    def _first_version(self, state: TwinState) -> int:
        """The version after the one that the request was built on."""
        if self.base_snapshot_id is None:
            return 0
        snapshots = state.table_metadata.snapshots()
        return next(
            (s.sequence_number + 1 for s in snapshots if s.snapshot_id == self.base_snapshot_id), 0
        )

    def _reused(self) -> UserError:
        return UserError(
            Code.KEY_REUSED,
            f"The idempotency key {self.key} was used for another request.",
            why="a key stands for one request",
            fix="Send the request with a key of its own.",
            fields={"key": self.key},
        )
