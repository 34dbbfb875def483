"""Iceberg clients whose commits a REST server turns into commits of a Delta log.

The server holds no authority: the log is the truth, and the table a client sees is a pure
function of it. The server loads the log, checks the client's requirement (the snapshot it built
on is current), translates the files, and puts the next entry if it is absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import Failure, Next, Start, action, always
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.reading import live_data, live_deletes
from twinlake.verify.models.iceberg.starting import CANONICAL
from twinlake.verify.models.iceberg.values import (
    COMMIT,
    COMMITTED,
    INSERT,
    Row,
    Table,
    Version,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["RESENDS", "RETRIES_PUT", "TWO_VECTORS", "ThroughServer"]

#: Mutants: a lost race is met by putting the next version without checking the requirement again;
#: a client whose reply was lost starts over as if nothing had happened; two delete files for one
#: data file become two vectors of which a reader uses the last.
RETRIES_PUT, RESENDS, TWO_VECTORS = "retries-put", "resends", "two-vectors"

SERVER_PUTS, REPLY_LOST = "SERVER_PUTS", "REPLY_LOST"
Faults = tuple[int]
Tokens = tuple[int]


@dataclass(frozen=True, kw_only=True)
class ThroughServer(IcebergV2):
    """The base model with the catalog's register replaced by a server on a Delta log."""

    title: ClassVar[str] = "Iceberg commits through a server on a Delta log"
    mutants: ClassVar[tuple[str | None, ...]] = (None, RETRIES_PUT, RESENDS, TWO_VECTORS)
    only_grows: ClassVar[tuple[str, ...]] = ("started", "aborted", "tokens", "faulted")

    #: How many replies of the server may be lost.
    lost_replies: int = 1
    identity: str = CANONICAL

    def initial(self) -> Iterator[Start]:
        """The empty table; no request was sent."""
        for start in super().initial():
            yield Start({**start.shared, "tokens": (0,), "faulted": (0,)}, start.actors)

    @action(at=COMMIT, writes=("tokens",), name="ServerChecksRequirement")
    def commit(  # type: ignore[override]
        self, writer: Writer, table: Table, tokens: Tokens
    ) -> Iterator[Next]:
        """Load the log; the requirement is that the client's base is the newest version."""
        if writer.base != len(table) - 1:
            yield Next(self.retry(writer), arguments={"requirement": "failed"})
        elif writer.token:
            yield Next(writer._replace(state=SERVER_PUTS), arguments={"token": writer.token})
        else:
            sent = writer._replace(state=SERVER_PUTS, token=tokens[0] + 1)
            yield Next(sent, {"tokens": (sent.token,)}, {"token": sent.token})

    @action(at=SERVER_PUTS, writes=("table", "inserting", "faulted"))
    def server_puts(
        self, writer: Writer, table: Table, inserting: frozenset[str], faulted: Faults
    ) -> Iterator[Next]:
        """Put the entry if it is absent; after a lost race load and check again."""
        if writer.base != len(table) - 1 and self.mutant != RETRIES_PUT:
            yield Next(writer._replace(state=COMMIT), arguments={"put": "exists"})
            return
        version = self.build(table, writer)._replace(token=writer.token)
        shared: dict[str, Hashable] = {"table": (*table, version)}
        if faulted[0] < self.lost_replies:
            lost = {**shared, "faulted": (faulted[0] + 1,)}
            unknown = writer._replace(state=REPLY_LOST)
            yield Next(unknown, lost, {"version": len(table), "reply": "lost"})
        if writer.sql_op == INSERT:
            shared["inserting"] = inserting - {writer.row_history[0][0][0]}
        yield Next(Writer(state=COMMITTED), shared, {"version": len(table), "reply": "ok"})

    @action(at=REPLY_LOST, writes=("inserting",))
    def client_looks(
        self, writer: Writer, table: Table, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """Look for the commit by its key before trying again."""
        if self.mutant == RESENDS or all(version.token != writer.token for version in table):
            again = self.retry(writer)
            yield Next(again._replace(token=0), arguments={"found": False})
            return
        shared: dict[str, Hashable] = {}
        if writer.sql_op == INSERT:
            shared["inserting"] = inserting - {writer.row_history[0][0][0]}
        yield Next(Writer(state=COMMITTED), shared, {"found": True})

    @always
    def both_faces_read_the_same(self, table: Table) -> Failure | None:
        """A scan of the Iceberg view and a scan of the Delta version give the same rows."""
        current = table[-1]
        iceberg = sorted(row for _, rows in self.scan(current) for _, row in rows)
        delta = sorted(self._delta_rows(current))
        if iceberg == delta:
            return None
        return Failure(
            f"version {len(table) - 1}: Iceberg reads {iceberg}, Delta reads {delta}",
            {"iceberg": iceberg, "delta": delta},
        )

    def _delta_rows(self, version: Version) -> Iterator[Row]:
        """Every data file with its vector: the union of the position deletes that apply."""
        for entry, file in live_data(version):
            vectors = [
                {at for path, at in deletes.positions if path == file.path}
                for deleted, deletes in live_deletes(version)
                if deleted.sequence_number >= entry.sequence_number
            ]
            vectors = [vector for vector in vectors if vector]
            used = vectors[-1:] if self.mutant == TWO_VECTORS else vectors
            gone: set[int] = set().union(*used)
            yield from (row for at, row in enumerate(file.rows) if at not in gone)

    @always
    def committed_exactly_once(self, table: Table) -> Failure | None:
        """No request is in the log twice."""
        tokens = [version.token for version in table[1:]]
        twice = sorted({token for token in tokens if tokens.count(token) > 1})
        return Failure(f"request {twice[0]} was committed twice") if twice else None
