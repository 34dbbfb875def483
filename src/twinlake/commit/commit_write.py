"""Placing one commit body under one key, when replies may be lost.

The rule: after *any* failure, and after a conflict too, read the key back. Our own bytes mean
that an attempt landed; other bytes mean that a rival won; nothing there means the same bytes go
to the same key again. The next version is never tried while this one is unknown: a late write
might still land and the change would be committed twice. Bodies carry a unique id, so equal
bytes are ours and nobody else's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.errors import Code, CommitUnknown, StorageError
from twinlake.storage import Committed, Durable, Unknown

if TYPE_CHECKING:
    from twinlake.runtime import Clock, Ids
    from twinlake.storage import Store

__all__ = ["CommitWritten", "Lost", "write_commit"]

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitWritten:
    """The body is under the key; ``read_back`` says that only a look settled it."""

    attempts: int = 1
    read_back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A rival's body is under the key."""

    winner: bytes
    attempts: int = 1


def write_commit(
    store: Store,
    key: str,
    body: bytes,
    *,
    clock: Clock,
    ids: Ids,
    attempts: int = 8,
    commit_id: str = "",
) -> CommitWritten | Lost:
    """Create ``key`` with ``body``, or find out who did.

    ``body`` must hold an id that no other commit has; ``commit_id`` names it in errors. Raises
    ``CommitUnknown`` if the store gave no clear answer within ``attempts``, and the store's own
    ``StorageError`` if it refused from the start (disk full, no permission).

    >>> from twinlake.runtime import RandomIds, SystemClock
    >>> from twinlake.storage import MemoryStore
    >>> write_commit(MemoryStore(), "a.json", b"{}", clock=SystemClock(), ids=RandomIds())
    CommitWritten(attempts=1, read_back=False)
    """
    every_call_refused = True
    reason = ""
    for attempt in range(1, attempts + 1):
        if attempt > 1:
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 2))
            clock.sleep(pause * (0.5 + ids.uniform() / 2))
        refusal: StorageError | None = None
        try:
            outcome = store.create(key, body)
        except StorageError as error:
            # A store that raises here says that this call had no effect.
            refusal, reason = error, error.why or error.what
        except Exception as error:
            # An error that the store does not know says nothing of what happened.
            reason = repr(error)
        else:
            if isinstance(outcome, Committed):
                return CommitWritten(attempts=attempt)
            if isinstance(outcome, Unknown):
                refusal, reason = outcome.refusal, outcome.reason
            else:
                reason = "the store reports a conflict, yet nothing can be read under the key"
        every_call_refused = every_call_refused and refusal is not None
        try:
            found = store.read(key)
        except StorageError as error:
            if error.code is not Code.STORAGE_NOT_FOUND:
                reason = f"{reason}; reading back failed: {error.why or error.what}"
        except Exception as error:
            reason = f"{reason}; reading back failed: {error!r}"
        else:
            return _settled(store, key, body, found, attempt, commit_id)
        if refusal is not None and every_call_refused:
            raise refusal
    raise _unknown(store, key, body, attempts, commit_id, reason)


def _settled(
    store: Store, key: str, body: bytes, found: bytes, attempt: int, commit_id: str
) -> CommitWritten | Lost:
    if found == body:
        if isinstance(store, Durable):
            try:
                # What can be read need not be on disk: the lost reply may have been about that.
                store.sync(key)
            except Exception as error:
                raise _not_safe(store, key, body, commit_id, error) from error
        return CommitWritten(attempts=attempt, read_back=True)
    # The id makes a rival's body differ before it ends, so a mere beginning is our own, torn.
    if body.startswith(found):
        raise StorageError(
            Code.STORAGE,
            f"The store kept only {len(found)} of {len(body)} bytes of {key!r} in {store.url}.",
            why="its create is not atomic, so it cannot hold a table safely",
            fix="Delete that damaged object, then move the table to a store with atomic writes.",
            fields={"key": key, "store": store.url, "kept": len(found), "size": len(body)},
        )
    return Lost(winner=found, attempts=attempt)


def _name(body: bytes, commit_id: str) -> str:
    return commit_id or f"sha256:{hashlib.sha256(body).hexdigest()[:16]}"


def _not_safe(
    store: Store, key: str, body: bytes, commit_id: str, error: Exception
) -> CommitUnknown:
    name = _name(body, commit_id)
    reason = (error.why or error.what) if isinstance(error, StorageError) else repr(error)
    return CommitUnknown(
        Code.COMMIT_UNKNOWN,
        f"The commit {name} is at {key!r} in {store.url}, but it may not survive a power cut.",
        why=f"the store could not bring it to safety: {reason}",
        fix=f"Repair the store, then look for {name} in {key!r}; run the operation again only if "
        "the key is missing or holds another commit.",
        fields={"key": key, "store": store.url, "commit_id": name},
    )


def _unknown(
    store: Store, key: str, body: bytes, attempts: int, commit_id: str, reason: str
) -> CommitUnknown:
    name = _name(body, commit_id)
    return CommitUnknown(
        Code.COMMIT_UNKNOWN,
        f"Whether the commit {name} is at {key!r} in {store.url} could not be found out.",
        why=f"{attempts} attempts gave no clear answer; the last: {reason}",
        fix=f"Once the store answers, look for {name} in {key!r}; run the operation again only "
        "if the key is missing or holds another commit.",
        fields={"key": key, "store": store.url, "commit_id": name, "attempts": attempts},
    )
