"""The servers: requests in, entries of the Delta log out; no authority of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.verify.checker import ActionCheck, Next, action
from twinlake.verify.models.iceberg.snapshot_scan import scan
from twinlake.verify.models.iceberg.values import NEVER
from twinlake.verify.models.server.clients import NO_CHECK, SINCE_BASE, IcebergClients
from twinlake.verify.models.server.mutants import (
    CACHED_VIEW,
    FORGETS_KEY,
    LOCAL_IDS,
    NO_KEY,
    REFUSES_AS_CONFLICT,
    RETRIES_PUT,
    SERVER_GIVES_UP,
    TWO_VECTORS,
)
from twinlake.verify.models.server.translation import (
    changed_since,
    schema_of,
    snapshot_id_of,
    touched,
    translate,
    view,
)
from twinlake.verify.models.server.values import (
    ANSWER,
    CHECK_REQUIREMENTS,
    PUT,
    REPLY_COMMITTED,
    REPLY_CONFLICT,
    REPLY_FAILED,
    REPLY_UNKNOWN,
    SETTLE,
    WAITING,
    CommitRequest,
    Log,
    Published,
    Replies,
    Requests,
    ServerLogEntry,
    ServerState,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["Servers"]

Faulted = tuple[int]


@dataclass(frozen=True, kw_only=True)
class Servers(IcebergClients):
    """What the servers do."""

    @action(role="Server", at=WAITING, writes=("requests", "published"))
    def take_request(
        self, server: ServerState, log: Log, requests: Requests, published: Published
    ) -> Iterator[Next]:
        """Take any request that is under way, and load the newest version."""
        for request in dict.fromkeys(requests):
            held = server._replace(state=CHECK_REQUIREMENTS, request=request, loaded=len(log) - 1)
            held, shown = self._shows(held, log)
            left = list(requests)
            left.remove(request)
            shared: dict[str, Hashable] = {"requests": tuple(left)}
            if not shown <= published:
                shared["published"] = published | shown
            yield Next(held, shared, {"key": request.key, "version": held.loaded})

    def _shows(self, server: ServerState, log: Log) -> tuple[ServerState, Published]:
        """The snapshots of the loaded version as this server shows them."""
        if self.mutant == LOCAL_IDS:
            known = dict(server.numbers)
            if snapshot_id_of(log, server.loaded):
                known.setdefault(server.loaded, len(known) + 1)
            numbers = tuple(sorted(known.items()))
            shown = frozenset((version, own, own) for version, own in numbers)
            return server._replace(numbers=numbers), shown
        return server, frozenset(
            (number, version.snapshot_id, version.sequence_number)
            for number, version in enumerate(view(log))
            if log[number].makes_snapshot
        )

    @action(role="Server", at=CHECK_REQUIREMENTS, frozen={"log": "loaded"})
    def check_requirements(self, server: ServerState, log: Log) -> Iterator[Next]:
        """Look the key up, check the requirements, translate the files."""
        request = server.request
        looks = self.mutant != NO_KEY and not (self.mutant == FORGETS_KEY and server.again)
        if looks and any(entry.key == request.key for entry in log):
            done = server._replace(state=ANSWER, answer=REPLY_COMMITTED)
            yield Next(done, checks=(ActionCheck("key is new", False, "it is in the log"),))
            return
        checks = self._requirements(server, log)
        if not all(check.passed for check in checks):
            refused = server._replace(state=ANSWER, answer=REPLY_CONFLICT)
            yield Next(refused, checks=checks)
            return
        changed = self._changed_file(request, log)
        if changed is not None:
            # To refresh and send it again would not help: the scan stays what it was.
            failed = REPLY_CONFLICT if self.mutant == REFUSES_AS_CONFLICT else REPLY_FAILED
            found = (*checks, ActionCheck("files are as they were", False, changed))
            yield Next(server._replace(state=ANSWER, answer=failed), checks=found)
            return
        entry = self._entry(request, log)
        actions = {"adds": entry.adds, "removes": entry.removes}
        yield Next(server._replace(state=PUT, entry=entry), arguments=actions, checks=checks)

    def _requirements(self, server: ServerState, log: Log) -> tuple[ActionCheck, ...]:
        request = server.request
        seen = log
        if self.mutant == CACHED_VIEW and server.cached != NEVER:
            seen = log[: server.cached + 1]
        now = (snapshot_id_of(seen, len(seen) - 1), schema_of(seen))
        return tuple(
            ActionCheck(name, wanted == found, "" if wanted == found else f"it is {found}")
            for name, wanted, found in zip(
                ("assert-ref-snapshot-id", "assert-current-schema-id"),
                request.required,
                now,
                strict=True,
            )
        )

    def _changed_file(self, request: CommitRequest, log: Log) -> str | None:
        """A file of the commit that is not as it was: Delta's own conflict check."""
        if self.file_check == NO_CHECK:
            return None
        client = request.client
        since = client.base if self.file_check == SINCE_BASE else client.scan_version
        return changed_since(log, since, touched(client))

    def _entry(self, request: CommitRequest, log: Log) -> ServerLogEntry:
        client = request.client
        version = self.build(view(log), client)
        adds, removes = translate(
            log, client, two_vectors=self.mutant == TWO_VECTORS, drop_emptied=self.drop_emptied
        )
        return ServerLogEntry(
            operation=version.operation,
            adds=adds,
            removes=removes,
            snapshot_id=client.snapshot_id,
            key=request.key,
            required=request.required,
            recorded=version.recorded,
            meant=tuple(sorted(row for _, rows in scan(version) for _, row in rows)),
        )

    @action(role="Server", at=PUT, writes=("log", "replies"))
    def put_entry(self, server: ServerState, log: Log, replies: Replies) -> Iterator[Next]:
        """Put the entry after the loaded version, if it is absent, and say so."""
        if self._may_put(server, log):
            shared: dict[str, Hashable] = {
                "log": (*log, server.entry),
                "replies": replies | {(server.request.key, REPLY_COMMITTED)},
            }
            yield Next(self._free(server), shared, {"version": len(log)})

    @action(role="Server", at=PUT)
    def lose_race(self, server: ServerState, log: Log) -> Iterator[Next]:
        """The entry is there already: load the log again, and check again."""
        if not self._may_put(server, log):
            again = server._replace(state=CHECK_REQUIREMENTS, loaded=len(log) - 1, again=True)
            yield Next(again, arguments={"version": again.loaded})

    def _may_put(self, server: ServerState, log: Log) -> bool:
        if server.loaded == len(log) - 1:
            return True
        if self.mutant != RETRIES_PUT:
            return False
        files = touched(server.request.client)
        return self.file_check == NO_CHECK or changed_since(log, server.loaded, files) is None

    @action(role="Server", at=PUT, writes=("log", "faulted"), fair=False)
    def lose_answer_of_store(
        self, server: ServerState, log: Log, faulted: Faulted
    ) -> Iterator[Next]:
        """Put the entry and not learn whether that took effect."""
        if faulted[0] < self.faults:
            unsure = server._replace(state=SETTLE)
            lost: dict[str, Hashable] = {"faulted": (faulted[0] + 1,)}
            yield Next(unsure, lost, {"effect": False})
            if server.loaded == len(log) - 1:
                yield Next(unsure, {**lost, "log": (*log, server.entry)}, {"effect": True})

    @action(role="Server", at=SETTLE, writes=("replies",))
    def settle(self, server: ServerState, log: Log, replies: Replies) -> Iterator[Next]:
        """Read the entry back; where that fails too, answer that the outcome is unknown."""
        key = server.request.key
        if self.mutant == SERVER_GIVES_UP:
            yield Next(self._free(server), {"replies": replies | {(key, REPLY_CONFLICT)}})
            return
        unknown = {"replies": replies | {(key, REPLY_UNKNOWN)}}
        yield Next(self._free(server), unknown, {"found": "no answer"})
        if server.loaded == len(log) - 1:
            yield Next(server._replace(state=PUT), arguments={"found": "nothing"})
        elif log[server.loaded + 1].key == key:
            mine = server._replace(state=ANSWER, answer=REPLY_COMMITTED)
            yield Next(mine, arguments={"found": "its own"})
        else:
            again = server._replace(state=CHECK_REQUIREMENTS, loaded=len(log) - 1, again=True)
            yield Next(again, arguments={"found": "another's"})

    @action(role="Server", at=PUT, writes=("replies", "faulted"), fair=False)
    def crash(self, server: ServerState, replies: Replies, faulted: Faulted) -> Iterator[Next]:
        """Stop before the put, and come back without the request."""
        if faulted[0] < self.faults:
            shared: dict[str, Hashable] = {
                "faulted": (faulted[0] + 1,),
                "replies": replies | {(server.request.key, REPLY_UNKNOWN)},
            }
            yield Next(self._free(server), shared)

    @action(role="Server", at=ANSWER, writes=("replies",))
    def answer(self, server: ServerState, replies: Replies) -> Iterator[Next]:
        """Answer without a put."""
        done = {"replies": replies | {(server.request.key, server.answer)}}
        yield Next(self._free(server), done, {"answer": server.answer})

    def _free(self, server: ServerState) -> ServerState:
        kept = ServerState(numbers=server.numbers)
        return kept._replace(cached=server.loaded) if self.mutant == CACHED_VIEW else kept
