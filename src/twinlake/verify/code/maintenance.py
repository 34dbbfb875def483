"""What actors do besides statements: checkpoints, clean-up, VACUUM, Iceberg metadata, restarts.

None of it may change a row.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.errors import CommitUnknown, StorageError, TwinlakeError
from twinlake.iceberg import sync_and_record
from twinlake.log import cleanup_log, write_checkpoint
from twinlake.storage import SimulatedCrash
from twinlake.table.operations import OperationContext, Vacuum

if TYPE_CHECKING:
    from twinlake.verify.code.row_engine import RowEngine, Rows, StatementResult
    from twinlake.verify.code.statements import Statement

__all__ = [
    "CleanUpLog",
    "RestartOnFailure",
    "StatementSequence",
    "SyncIceberg",
    "VacuumTable",
    "WriteCheckpoint",
]


class _Neutral:
    """The rows stay as they are."""

    __slots__ = ()

    def apply(self, rows: Rows) -> Rows:
        """The same rows."""
        return rows


@dataclass(frozen=True, slots=True)
class WriteCheckpoint(_Neutral):
    """Write a checkpoint of the latest version, and the hint."""

    parts: int | None = None
    name: str = "checkpoint"

    def run(self, engine: RowEngine) -> StatementResult:
        """Load and write it down."""
        write_checkpoint(engine.load(), runtime=engine.runtime, parts=self.parts)
        return None


@dataclass(frozen=True, slots=True)
class CleanUpLog(_Neutral):
    """Delete all history that a checkpoint stands for: the shortest retention there can be.

    ``retention_ms=None`` takes the table's property.
    """

    retention_ms: int | None = 0
    name: str = "clean log"

    def run(self, engine: RowEngine) -> StatementResult:
        """Load, list, decide, delete."""
        cleanup_log(
            engine.load(), runtime=engine.runtime, retention_ms=self.retention_ms, granularity_ms=1
        )
        return None


@dataclass(frozen=True, slots=True)
class StatementSequence:
    """A statement, and then maintenance by the same actor."""

    first: Statement
    then: Statement

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.first.name}, {self.then.name}"

    def run(self, engine: RowEngine) -> StatementResult:
        """One after the other; the result is the statement's, even if the maintenance fails."""
        result = self.first.run(engine)
        with suppress(TwinlakeError):
            self.then.run(engine)
        return result

    def apply(self, rows: Rows) -> Rows:
        """The rows after both."""
        return self.then.apply(self.first.apply(rows))


@dataclass(frozen=True, slots=True)
class RestartOnFailure:
    """A statement that is run again from the start if it crashed or its outcome is not known."""

    statement: Statement

    @property
    def name(self) -> str:
        """That of the statement."""
        return self.statement.name

    def run(self, engine: RowEngine) -> StatementResult:
        """Twice, if need be; the second time nothing of the first is remembered."""
        try:
            return self.statement.run(engine)
        except (SimulatedCrash, CommitUnknown, StorageError):
            engine.written.clear()
            return self.statement.run(engine)

    def apply(self, rows: Rows) -> Rows:
        """As if it had run once."""
        return self.statement.apply(rows)


@dataclass(frozen=True, slots=True)
class VacuumTable(_Neutral):
    """VACUUM; ``retention_hours=None`` takes the table's property."""

    retention_hours: float | None = None
    name: str = "vacuum"

    def run(self, engine: RowEngine) -> StatementResult:
        """List, load, commit the start, delete, commit the end."""
        Vacuum(
            OperationContext(runtime=engine.runtime, hooks=tuple(engine.hooks)),
            engine.load(),
            retention_hours=self.retention_hours,
            enforce_retention=self.retention_hours is None,
        ).run()
        return None


@dataclass(frozen=True, slots=True)
class SyncIceberg(_Neutral):
    """Bring the Iceberg metadata up to the log."""

    name: str = "sync"

    def run(self, engine: RowEngine) -> StatementResult:
        """Load and convert what is missing."""
        sync_and_record(engine.load(), executor=engine.runtime.executor)
        return None
