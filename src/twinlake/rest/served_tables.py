"""The tables of a server: rows of the catalog joined with logs, which say all but the name.

A table that is made has a row first, without a uuid, so that nobody takes its name or its place
meanwhile. Who is to make a table that another has begun to make joins it at the same place: the log
takes one of them, and where the other server was killed nobody waits for it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.errors import (
    Code,
    CommitUnknown,
    ConflictError,
    StorageError,
    TwinlakeError,
    UserError,
)
from twinlake.iceberg.requests import decode_commit, decode_create
from twinlake.log import has_table
from twinlake.rest.catalog import Namespaces, TableRow, Tables, already_there
from twinlake.rest.location_policy import table_store
from twinlake.rest.names import TableIdentity
from twinlake.rest.request import decode_body
from twinlake.rest.table_answers import table_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.rest.catalog import CatalogDatabase
    from twinlake.rest.location_policy import LocationPolicy
    from twinlake.rest.single_change import SingleChange
    from twinlake.rest.table_answers import TableAnswer, TableAnswers
    from twinlake.rest.table_loader import TableLoader
    from twinlake.runtime import Runtime
    from twinlake.table.iceberg_commits import IcebergCommits, TwinState

__all__ = ["ServedTables"]

_ABANDONED_MS: Final = 60_000
_METADATA_FOLDER: Final = "/_iceberg/metadata/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTables:
    """What clients do to tables."""

    database: CatalogDatabase
    policies: Mapping[str, LocationPolicy]
    """By warehouse."""
    commits: IcebergCommits
    loader: TableLoader
    answers: TableAnswers
    runtime: Runtime

    def load(self, warehouse: str, identity: TableIdentity, snapshots: str) -> TableAnswer:
        """The newest version of a table."""
        row = self._row(warehouse, identity)
        found = self.answers.newest(row.root, row.uuid, snapshots)
        if found is not None:
            return found
        with self._missing_is_dropped(warehouse, row):
            loaded = self.loader.load(table_store(row.root), snapshots)
        self._note_uuid(row, loaded.uuid)
        return loaded

    def kept(self, warehouse: str, identity: TableIdentity, snapshots: str) -> TableAnswer | None:
        """The newest version, if it is known without waiting; None says nothing about the table.

        For tables on a disk of this machine that is a row and one look for the next commit, which
        cost less than handing the request to a thread.
        """
        connection = self.database.glance()
        if connection is None:
            return None
        try:
            place = Tables(connection, warehouse).find_place(identity)
        except connection.dialect.failures:
            return None
        return None if place is None else self.answers.newest(*place, snapshots, on_disk=True)

    def exists(self, warehouse: str, identity: TableIdentity) -> bool:
        """Whether a name has a table."""
        return self._find(warehouse, identity) is not None

    def create(
        self, warehouse: str, levels: tuple[str, ...], body: bytes, key: str | None
    ) -> TableAnswer | bytes:
        """Make a table; where it is only staged, the document that says how it will be."""
        request = decode_create(body)
        identity = TableIdentity.of(levels, request.name)
        if key is not None and (before := self._find(warehouse, identity)) is not None:
            return self._made_before(before, body, key)
        root = self._new_root(warehouse, identity, request.location)
        if request.stage_create:
            with self.database.reading() as connection:
                Tables(connection, warehouse).require_free(self.new_row(identity, root))
            return table_document(self.commits.stage(table_store(root), body), None)
        is_chosen = request.location is not None
        with self._reserved(warehouse, identity, root, is_chosen=is_chosen) as row:
            try:
                state = self.commits.create(table_store(row.root), body, key)
            except ConflictError as error:
                if row.root == root:
                    raise
                # Who had begun it has ended it after all.
                raise already_there(identity) from error
        return self._finished(warehouse, row, state)

    def commit(
        self, warehouse: str, identity: TableIdentity, body: bytes, key: str | None
    ) -> TableAnswer:
        """Change a table, or make one that was staged."""
        request = decode_commit(body)
        if request.creates:
            before = self._find(warehouse, identity)
            if before is not None:
                # Either this very request made it, or the requirement fails.
                return self._made(
                    before, self.commits.create_staged(table_store(before.root), body, key)
                )
            root = self._new_root(warehouse, identity, _staged_location(body))
            # The rows that come with it are below its location.
            with self._reserved(warehouse, identity, root, is_chosen=True) as row:
                state = self.commits.create_staged(table_store(root), body, key)
            return self._finished(warehouse, row, state)
        row = self._row(warehouse, identity)
        with self._missing_is_dropped(warehouse, row):
            state = self.commits.commit(table_store(row.root), body, key)
        self._note_uuid(row, state.uuid)
        return self.answers.keep(state, "all")

    def register(
        self,
        warehouse: str,
        identity: TableIdentity,
        location: str,
        change: SingleChange,
        *,
        overwrite: bool,
    ) -> TableAnswer:
        """Give a Delta table that is there a name."""
        if kept := change.before():
            return self._at(kept[1].decode())
        root = self.policies[warehouse].resolve(_root_of(location))
        store = table_store(root)
        with self.database.reading() as connection:
            Namespaces(connection, warehouse).require(identity.namespace)
        if not has_table(store):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"There is no Delta table at {location}.",
                why="the folder has no _delta_log",
                fix="Give the folder of a Delta table as metadata-location. "
                "`twinlake import PATH` makes one of an Iceberg table.",
                fields={"location": location},
            )
        self.policies[warehouse].refuse_inside_table(root)
        state = self.commits.load(store)
        row = self.new_row(identity, root, uuid=state.uuid)
        with self.database.changing() as connection:
            tables = Tables(connection, warehouse)
            before = tables.find(identity) if overwrite else None
            if before is not None:
                tables.remove(before.id)
            dropped = tables.at(root)
            # Its files are not to be deleted: then to register it is to bring it back.
            if dropped is not None and dropped.dropped_ms is not None and not dropped.purge:
                tables.remove(dropped.id)
            tables.add(row)
            change.keep(connection, 200, root.encode())
        return self.answers.keep(state, "all")

    def unregister(
        self, warehouse: str, identity: TableIdentity, change: SingleChange
    ) -> TableAnswer:
        """Forget a table; nothing of it is deleted, and it can be registered elsewhere."""
        if kept := change.before():
            return self._at(kept[1].decode())
        row = self._row(warehouse, identity)
        with self._missing_is_dropped(warehouse, row):
            self.commits.load(table_store(row.root))
        with self.database.changing() as connection:
            tables = Tables(connection, warehouse)
            tables.remove(tables.load(identity).id)
            change.keep(connection, 200, row.root.encode())
        # Looked at once more: whoever committed before the row went is in it.
        return self._at(row.root)

    def _at(self, root: str) -> TableAnswer:
        return self.answers.keep(self.commits.load(table_store(root)), "all")

    def _find(self, warehouse: str, identity: TableIdentity) -> TableRow | None:
        """The row of a table that is there."""
        with self.database.reading() as connection:
            row = Tables(connection, warehouse).find(identity)
        if row is None or (row.uuid is None and not has_table(table_store(row.root))):
            return None
        return row

    def _made_before(self, row: TableRow, body: bytes, key: str) -> TableAnswer:
        """The table of a request that was answered before, and whose answer was lost."""
        try:
            return self._made(row, self.commits.create(table_store(row.root), body, key))
        except ConflictError as error:
            raise already_there(row.identity) from error

    def _row(self, warehouse: str, identity: TableIdentity) -> TableRow:
        with self.database.reading() as connection:
            return Tables(connection, warehouse).load(identity)

    def _new_root(self, warehouse: str, identity: TableIdentity, location: str | None) -> str:
        policy = self.policies[warehouse]
        if location is None:
            return policy.new_root(identity, self.runtime.ids.uuid().hex)
        root = policy.resolve(location)
        policy.refuse_overlap(root)
        return root

    def new_row(self, identity: TableIdentity, root: str, uuid: str | None = None) -> TableRow:
        """A row that is not in the database yet."""
        return TableRow(
            id=str(self.runtime.ids.uuid()),
            identity=identity,
            root=root,
            uuid=uuid,
            created_ms=self.runtime.clock.now_ms(),
        )

    @contextlib.contextmanager
    def _reserved(
        self, warehouse: str, identity: TableIdentity, root: str, *, is_chosen: bool
    ) -> Iterator[TableRow]:
        """A row while the table is made; it goes if the table surely was not.

        The row of a creation that has not ended is taken over, unless the table is to be elsewhere.
        """
        row = self.new_row(identity, root)
        with self.database.changing() as connection:
            tables = Tables(connection, warehouse)
            begun = tables.find(identity)
            if begun is not None and self._is_unfinished(begun):
                if begun.root == root or not is_chosen:
                    row = begun
                elif self.runtime.clock.now_ms() - begun.created_ms > _ABANDONED_MS:
                    tables.remove(begun.id)
            if row is not begun:
                tables.add(row)
        try:
            yield row
        except (CommitUnknown, StorageError):
            raise
        except TwinlakeError:
            if row is not begun:
                with self.database.changing() as connection:
                    Tables(connection, warehouse).remove_unfinished(row.id)
            raise

    def _is_unfinished(self, row: TableRow) -> bool:
        return row.uuid is None and not has_table(table_store(row.root))

    def _finished(self, warehouse: str, row: TableRow, state: TwinState) -> TableAnswer:
        """The answer for a table that was just made, whose row is completed."""
        if not self._note_uuid(row, state.uuid):
            # Who had begun it was refused, or gave up the row to one that looked abandoned.
            with self.database.changing() as connection:
                Tables(connection, warehouse).add(replace(row, uuid=state.uuid))
        return self.answers.keep(state, "all")

    def _made(self, row: TableRow, state: TwinState) -> TableAnswer:
        if not self._note_uuid(row, state.uuid):
            # It was dropped meanwhile, and somebody may have the name by now.
            raise already_there(row.identity)
        return self.answers.keep(state, "all")

    def _note_uuid(self, row: TableRow, uuid: str) -> bool:
        """The log is the truth, also of a table that was made anew at the same place.

        False where the row is gone.
        """
        if row.uuid == uuid:
            return True
        with self.database.changing() as connection:
            return Tables(connection, "").set_uuid(row.id, uuid)

    @contextlib.contextmanager
    def _missing_is_dropped(self, warehouse: str, row: TableRow) -> Iterator[None]:
        """A row whose log is gone is no table."""
        try:
            yield
        except TwinlakeError as error:
            if error.code not in (Code.TABLE_NOT_FOUND, Code.STORAGE_NOT_FOUND):
                raise
            if has_table(table_store(row.root)):
                raise
            with self.database.reading() as connection:
                raise Tables(connection, warehouse).missing(row.identity) from error


class _LocationUpdate(msgspec.Struct, frozen=True):
    action: str
    location: str | None = None


class _LocationUpdates(msgspec.Struct, frozen=True):
    updates: list[_LocationUpdate] = []


def _staged_location(body: bytes) -> str | None:
    """Where the commit of a staged table puts it; a client repeats what it was told."""
    updates = decode_body(body, _LocationUpdates).updates
    asked = [one.location for one in updates if one.action == "set-location"]
    return asked[-1] if asked else None


def _root_of(location: str) -> str:
    """The folder of the table that a location or a metadata file belongs to."""
    root, folder, _ = location.rpartition(_METADATA_FOLDER)
    return root if folder and location.endswith(".metadata.json") else location.rstrip("/")
