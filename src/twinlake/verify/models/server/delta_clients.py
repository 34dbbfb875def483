"""Clients that write the Delta log directly, with Delta's own conflict check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.verify.checker import ActionCheck, Next, action
from twinlake.verify.models.iceberg.values import (
    ABORTED,
    APPEND,
    COMMITTED,
    DELETE,
    IDLE,
    INSERT,
    READ_DATA_FILES,
    UPDATE,
    Writer,
)
from twinlake.verify.models.server.servers import Servers
from twinlake.verify.models.server.translation import (
    changed_since,
    schema_of,
    touched,
    translate,
    view,
)
from twinlake.verify.models.server.values import (
    DELTA_PUT,
    METADATA,
    OPTIMIZE,
    PROPERTIES,
    SCHEMA,
    Log,
    ServerLogEntry,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping

__all__ = ["DeltaClients"]

Spent = tuple[int]
#: Operations of direct clients are numbered from here on, apart from those of Iceberg clients.
FIRST_NUMBER = 50
#: The budgets of the Iceberg clients do not bind a direct client.
UNBOUND = (-1, -1)


@dataclass(frozen=True, kw_only=True)
class DeltaClients(Servers):
    """What the direct Delta clients do."""

    @action(role="DeltaClient", at=IDLE, writes=("direct", "inserting"))
    def delta_start(
        self, _client: Writer, log: Log, direct: Spent, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """Read the newest version and write files: nobody sees those before the commit."""
        if direct[0] >= self.max_delta_ops:
            return
        number = FIRST_NUMBER + direct[0]
        for operation in self.delta_operations:
            for begun in self._begun(operation, log, inserting):
                shared: dict[str, Hashable] = {"direct": (direct[0] + 1,)}
                if operation == INSERT:
                    shared["inserting"] = begun.shared["inserting"]
                ready = self._prepared(begun.actor._replace(token=number), log)
                yield Next(ready, shared, {"operation": operation, **begun.arguments})

    def _begun(self, operation: str, log: Log, inserting: frozenset[str]) -> Iterator[Next]:
        """The operations of a kind, as an Iceberg client would start them."""
        starts: Mapping[str, Callable[[], Iterator[Next]]] = {
            INSERT: lambda: self.start_insert_operation(Writer(), log, UNBOUND, inserting),
            UPDATE: lambda: self.start_update_operation(Writer(), log, UNBOUND),
            DELETE: lambda: self.start_delete_operation(Writer(), log, UNBOUND),
            OPTIMIZE: lambda: self.start_compaction_operation(Writer(), log, UNBOUND),
        }
        if operation in starts:
            yield from starts[operation]()
        else:
            yield Next(Writer(update=operation))

    def _prepared(self, client: Writer, log: Log) -> Writer:
        """The operation run up to its commit."""
        if client.update not in (PROPERTIES, SCHEMA):
            if client.state == READ_DATA_FILES:
                client = next(iter(self.read_data_files(client, log))).actor
            client = next(iter(self.write_data_files(client))).actor
        return client._replace(state=DELTA_PUT, base=len(log) - 1)

    @action(role="DeltaClient", at=DELTA_PUT, writes=("log", "inserting"))
    def delta_put(self, client: Writer, log: Log, inserting: frozenset[str]) -> Iterator[Next]:
        """Put the entry after the version it was planned for, if it is absent."""
        if client.base != len(log) - 1:
            return
        shared: dict[str, Hashable] = {"log": (*log, self._planned(client, log))}
        if client.sql_op == INSERT:
            shared["inserting"] = inserting - {client.row_history[0][0][0]}
        yield Next(Writer(state=COMMITTED), shared, {"version": len(log)})

    def _planned(self, client: Writer, log: Log) -> ServerLogEntry:
        if client.update == PROPERTIES:
            return ServerLogEntry(METADATA)
        if client.update == SCHEMA:
            return ServerLogEntry(METADATA, schema=schema_of(log) + 1)
        adds, removes = translate(log, client, drop_emptied=self.drop_emptied)
        version = self.build(view(log), client)
        return ServerLogEntry(version.operation, adds, removes, recorded=version.recorded)

    @action(role="DeltaClient", at=DELTA_PUT)
    def delta_rebase(self, client: Writer, log: Log) -> Iterator[Next]:
        """The version is taken, and nothing in the way: aim at the next one."""
        if client.base != len(log) - 1:
            checks = self._conflicts(client, log)
            if all(check.passed for check in checks):
                moved = client._replace(base=len(log) - 1)
                yield Next(moved, arguments={"version": len(log)}, checks=checks)

    @action(role="DeltaClient", at=DELTA_PUT, writes=("inserting",))
    def delta_conflict(self, client: Writer, log: Log, inserting: frozenset[str]) -> Iterator[Next]:
        """The version is taken by a commit that this one must not follow."""
        if client.base != len(log) - 1:
            checks = self._conflicts(client, log)
            if not all(check.passed for check in checks):
                shared: dict[str, Hashable] = {}
                if client.sql_op == INSERT:
                    shared["inserting"] = inserting - {client.row_history[0][0][0]}
                yield Next(Writer(state=ABORTED), shared, checks=checks)

    def _conflicts(self, client: Writer, log: Log) -> tuple[ActionCheck, ...]:
        """File by file: what it read or removes is as it was, and nothing else was written.

        A blind append by somebody else does not count: that is what write-serializable means. A
        commit that only sets properties does not count either.
        """
        winners = log[client.base + 1 :]
        reads = client.predicate is not None
        schema = schema_of(log) == schema_of(log[: client.base + 1])
        # Removing a file that another commit rewrote would bring its rows back, or lose some.
        changed = changed_since(log, client.base, touched(client))
        wrote = any(entry.adds and entry.operation != APPEND for entry in winners)
        return (
            ActionCheck("metadata unchanged", schema and client.update != SCHEMA),
            ActionCheck("files unchanged", changed is None, changed or ""),
            ActionCheck("nothing written that was read", not (reads and wrote)),
        )
