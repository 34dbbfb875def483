"""Statements that change the table itself, or name files without having read them.

What such a statement means for every later version is its ``intent``; a run in which a committed
intent is not kept has lost a change.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from twinlake.actions import DomainMetadata, SetTransaction
from twinlake.commit import Operation, OperationName, ReadSet
from twinlake.commit.plans import Outcome
from twinlake.log import CACHE, load_snapshot
from twinlake.protocol import Protocol, features
from twinlake.schema import TYPE_CHANGES_KEY, Struct, map_fields
from twinlake.table.operations import OperationContext, restore_snapshot
from twinlake.verify.code.row_engine import RowEffect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.schema import ColumnPath, StructField
    from twinlake.verify.code.row_engine import Row, RowEngine, Rows, StatementResult
    from twinlake.verify.code.statements import Statement

__all__ = [
    "AddFeature",
    "AlterProperties",
    "AppendToDomain",
    "CopyRow",
    "DropDomains",
    "Intent",
    "Overwrite",
    "PreparedStatement",
    "Restore",
    "TouchApplication",
    "TruncateFile",
    "WidenType",
]

DOMAIN: Final = "team.notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What every later version must have once the statement is committed."""

    settings: Mapping[str, str] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    note: str = ""
    """What the domain must hold."""
    restores: bool = False
    """Whether the settings go back to those that the table was made with."""


class _SameRows:
    """The rows stay as they are."""

    __slots__ = ()

    def apply(self, rows: Rows) -> Rows:
        """The same rows."""
        return rows


@dataclass(frozen=True, slots=True)
class AlterProperties(_SameRows):
    """ALTER TABLE SET TBLPROPERTIES."""

    key: str
    value: str
    name: str = "alter"

    @property
    def intent(self) -> Intent:
        """The property stays set."""
        return Intent(settings={self.key: self.value})

    def run(self, engine: RowEngine) -> StatementResult:
        """Commit the metadata with the property."""
        snapshot = engine.load()
        changed = snapshot.metadata.with_configuration({self.key: self.value})
        operation = Operation(name=OperationName.SET_TBLPROPERTIES)
        return engine.commit_actions(snapshot, operation, changed)


@dataclass(frozen=True, slots=True)
class AddFeature(_SameRows):
    """A protocol change: the table gets a feature more."""

    feature: str
    name: str = "add feature"

    @property
    def intent(self) -> Intent:
        """The feature stays."""
        return Intent(features=frozenset({self.feature}))

    def run(self, engine: RowEngine) -> StatementResult:
        """Commit the protocol with the feature."""
        snapshot = engine.load()
        more = Protocol(3, 7, reader_features=set(), writer_features={self.feature})
        changed = snapshot.protocol.merge(more)
        return engine.commit_actions(snapshot, Operation(name=OperationName.ADD_FEATURE), changed)


@dataclass(frozen=True, slots=True)
class AppendToDomain(_SameRows):
    """A domain is read and written with a letter more, so none can get lost."""

    letter: str
    name: str = "note"

    @property
    def intent(self) -> Intent:
        """The letter stays."""
        return Intent(note=self.letter)

    def run(self, engine: RowEngine) -> StatementResult:
        """Read the domain, write it."""
        snapshot = engine.load()
        held = snapshot.domains.get(DOMAIN)
        text = (held.configuration if held is not None else "") + self.letter
        written = DomainMetadata(domain=DOMAIN, configuration=text, removed=False)
        operation = Operation(name=OperationName.MANUAL_UPDATE)
        return engine.commit_actions(snapshot, operation, written)


@dataclass(frozen=True, slots=True)
class DropDomains(_SameRows):
    """DROP FEATURE of the domains, of a table that has none at the moment."""

    name: str = "drop feature"

    def run(self, engine: RowEngine) -> StatementResult:
        """Commit the protocol without the feature, unless it is in use."""
        snapshot = engine.load()
        if DOMAIN in snapshot.domains:
            return None
        before = snapshot.protocol
        left = (before.writer_features or frozenset()) - {features.DOMAIN_METADATA}
        changed = Protocol(
            before.min_reader_version,
            before.min_writer_version,
            reader_features=before.reader_features,
            writer_features=left,
        )
        operation = Operation(name=OperationName.DROP_FEATURE)
        return engine.commit_actions(snapshot, operation, changed)


@dataclass(frozen=True, slots=True)
class WidenType(_SameRows):
    """A type change that records the version in which it happens, as early previews did."""

    name: str = "widen"

    def run(self, engine: RowEngine) -> StatementResult:
        """Commit the schema with the record."""
        snapshot = engine.load()
        change = {"tableVersion": snapshot.version + 1, "fromType": "short", "toType": "integer"}

        def recorded(path: ColumnPath, column: StructField) -> StructField:
            return (
                column.with_metadata(**{TYPE_CHANGES_KEY: [change]}) if path == ("id",) else column
            )

        schema = map_fields(snapshot.metadata.schema, recorded)
        assert isinstance(schema, Struct)
        changed = snapshot.metadata.with_schema(schema)
        return engine.commit_actions(snapshot, Operation(name=OperationName.CHANGE_COLUMN), changed)


@dataclass(frozen=True, slots=True)
class TouchApplication(_SameRows):
    """A commit of no actor in particular: the version of an application moves on."""

    application: str = "touch"
    version: int = 1
    name: str = "touch"

    def run(self, engine: RowEngine) -> StatementResult:
        """Commit without a word of who it was."""
        txn = SetTransaction(app_id=self.application, version=self.version, last_updated=None)
        engine.commit_untold(Operation(name=OperationName.STREAMING_UPDATE), txn)
        return None


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement of a process that has done something else to the table before."""

    first: Statement
    statement: Statement

    @property
    def name(self) -> str:
        """That of the statement."""
        return self.statement.name

    def run(self, engine: RowEngine) -> StatementResult:
        """One after the other; the result is the second's."""
        self.first.run(engine)
        return self.statement.run(engine)

    def apply(self, rows: Rows) -> Rows:
        """The rows after both."""
        return self.statement.apply(self.first.apply(rows))


@dataclass(frozen=True, slots=True)
class Overwrite:
    """REPLACE: all rows go, these come."""

    rows: tuple[Row, ...]
    name: str = "overwrite"

    def run(self, engine: RowEngine) -> StatementResult:
        """Remove every file, write the rows, and depend on the whole table."""
        snapshot = engine.load()
        live = list(snapshot.adds())
        gone = [row for add in live for row in engine.live_rows(add)]
        files = engine.write_by_partition(snapshot, self.rows)
        engine.effect = RowEffect(
            read_version=snapshot.version, removed=tuple(gone), added=self.rows
        )
        now = engine.runtime.clock.now_ms()
        outcome = Outcome(
            operation="WRITE",
            adds=files,
            removes=tuple(add.remove(deletion_timestamp=now) for add in live),
            metrics={},
            reads=ReadSet(whole_table=True),
        )
        operation = Operation(name=OperationName.WRITE, parameters={"mode": "Overwrite"})
        return engine.commit(snapshot, operation, outcome)

    def apply(self, rows: Rows) -> Rows:
        """Only these."""
        del rows
        return Counter(self.rows)


@dataclass(frozen=True, slots=True)
class CopyRow:
    """INSERT ... SELECT: rows that are written because of rows that were read and stay."""

    part: str
    id: int
    to: int
    name: str = "copy"

    def run(self, engine: RowEngine) -> StatementResult:
        """Read the files of a partition, append what was found under another id."""
        snapshot = engine.load()
        live = list(snapshot.adds())
        found = [
            (part, self.to, value)
            for add in live
            for part, number, value in engine.live_rows(add)
            if (part, number) == (self.part, self.id)
        ]
        files = engine.write_by_partition(snapshot, found)
        engine.effect = RowEffect(read_version=snapshot.version, added=tuple(found))
        reads = ReadSet(files=frozenset(add.path for add in live))
        outcome = Outcome(operation="WRITE", adds=files, metrics={}, reads=reads)
        operation = Operation(name=OperationName.WRITE, parameters={"mode": "Append"})
        return engine.commit(snapshot, operation, outcome)

    def apply(self, rows: Rows) -> Rows:
        """The copies come in."""
        copies = Counter(
            {
                (part, self.to, value): count
                for (part, number, value), count in rows.items()
                if (part, number) == (self.part, self.id)
            }
        )
        return rows + copies


@dataclass(frozen=True, slots=True)
class TruncateFile:
    """A raw commit that removes the files of a partition and has recorded nothing as read."""

    part: str
    name: str = "truncate"

    def run(self, engine: RowEngine) -> StatementResult:
        """Remove every file whose first row is of the partition."""
        snapshot = engine.load()
        doomed, gone = [], []
        for add in snapshot.adds():
            rows = engine.live_rows(add)
            if all(row[0] == self.part for row in rows):
                doomed.append(add)
                gone += rows
        engine.effect = RowEffect(read_version=snapshot.version, removed=tuple(gone))
        now = engine.runtime.clock.now_ms()
        outcome = Outcome(
            operation="DELETE",
            removes=tuple(add.remove(deletion_timestamp=now) for add in doomed),
            metrics={},
            reads=ReadSet(),
        )
        return engine.commit(snapshot, Operation(name=OperationName.DELETE), outcome)

    def apply(self, rows: Rows) -> Rows:
        """All but the rows of the partition."""
        return Counter({row: count for row, count in rows.items() if row[0] != self.part})


@dataclass(frozen=True, slots=True)
class Restore:
    """RESTORE to an earlier version, by the shipped operation."""

    version: int
    rows: tuple[Row, ...]
    """The rows of that version, as the workload knows them."""
    name: str = "restore"

    @property
    def intent(self) -> Intent:
        """The metadata goes back, too."""
        return Intent(restores=True)

    def run(self, engine: RowEngine) -> StatementResult:
        """Load both versions and commit the older one."""
        snapshot = engine.load()
        target = load_snapshot(engine.store, self.version)
        now = [row for add in snapshot.adds() for row in engine.live_rows(add)]
        then = [row for add in target.adds() for row in engine.live_rows(add)]
        context = OperationContext(runtime=engine.runtime, hooks=tuple(engine.hooks))
        engine.effect = RowEffect(
            read_version=snapshot.version, removed=tuple(now), added=tuple(then)
        )
        result = restore_snapshot(context, snapshot, target, user_metadata=engine.tag)
        CACHE.offer(result.snapshot)
        return result.version

    def apply(self, rows: Rows) -> Rows:
        """The rows of that version."""
        del rows
        return Counter(self.rows)
