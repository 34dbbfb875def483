"""The commits that a transaction lost to, and whether its base version is still in the log.

A snapshot is a value and may be older than a cleanup of the log or than the table itself. The
version after it then looks free although the table went on long ago, or is another one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.actions import decode_whole_commit
from twinlake.commit.summary import Winner
from twinlake.errors import Code, ConcurrentWriteException, StorageError, UserError
from twinlake.log import commit_key, load_snapshot
from twinlake.protocol import keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.commit.change import Change
    from twinlake.log import Snapshot
    from twinlake.storage import Store

__all__ = ["missed_winner", "read_winners"]


def missed_winner(held: Snapshot, operation: str) -> bytes | None:
    """None if the commit of ``held`` is in its place, so that the next version may be tried.

    If only that commit is gone and the next one can still be read, that one is the answer: the
    transaction lost to it and can follow it as it follows any winner.

    Raises:
        ConcurrentWriteException: the table went on and what happened since cannot be read.
        UserError: the table is gone, or another one is in its place.
    """
    if held.is_still_there():
        return None
    store = held.store
    fresh = _latest(held)
    if fresh.metadata.id != held.metadata.id:
        raise UserError(
            Code.TABLE_NOT_FOUND,
            f"The table at {store.url} was replaced by another one.",
            why=f"its id was {held.metadata.id!r} and is {fresh.metadata.id!r} now",
            fix="Open the table again and check whether the operation still applies.",
            fields={"store": store.url, "id": held.metadata.id, "found": fresh.metadata.id},
        )
    if store.head(commit_key(held.version)) is None:
        if fresh.version == held.version:
            # Only a checkpoint of the version is left; the next version is free.
            return None
        if fresh.version > held.version:
            try:
                return store.read(commit_key(held.version + 1))
            except StorageError as error:
                if error.code is not Code.STORAGE_NOT_FOUND:
                    raise
        why = f"the log was cleaned up: commits after version {held.version} cannot be read"
    else:
        why = f"the commit of version {held.version} is not the one that was read"
    raise ConcurrentWriteException(
        Code.CONFLICT_WRITE,
        f"{operation} cannot go on from version {held.version} of {store.url}.",
        why=f"{why}, and the table is at version {fresh.version}",
        fix=f"Open the table again and run the operation on version {fresh.version}.",
        delta_class="DELTA_CONCURRENT_WRITE",
        fields={"winner": fresh.version, "version": held.version, "store": store.url},
    )


def _latest(held: Snapshot) -> Snapshot:
    try:
        return load_snapshot(held.store)
    except UserError as error:
        if error.code is not Code.TABLE_NOT_FOUND:
            raise
        raise UserError(
            Code.TABLE_NOT_FOUND,
            f"The table at {held.store.url} is gone.",
            why=f"its log was deleted after version {held.version} was read",
            fix="Check the path, or create the table again with `Table.create(PATH, SCHEMA)`.",
            delta_class="DELTA_TABLE_NOT_FOUND",
            fields={"store": held.store.url, "version": held.version},
        ) from error


def read_winners(store: Store, change: Change, data: bytes) -> Iterator[Winner]:
    """Every commit from the version we wanted, whose body is ``data``, to the newest.

    Read one by one by name: a listing may be stale, a name that is there cannot be.
    """
    version = change.version
    turns_on = change.metadata.flag(
        keys.ENABLE_IN_COMMIT_TIMESTAMPS
    ) and not change.base.metadata.flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS)
    while True:
        key = commit_key(version)
        meta = store.head(key) if turns_on else None
        yield Winner(
            version=version,
            actions=decode_whole_commit(data, source=key),
            modified_ms=None if meta is None else meta.modified_ms,
        )
        version += 1
        try:
            data = store.read(commit_key(version))
        except StorageError as error:
            if error.code is Code.STORAGE_NOT_FOUND:
                return
            raise
