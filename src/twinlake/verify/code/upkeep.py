"""What actors do besides statements: checkpoints, clean-up, VACUUM, Iceberg metadata, restarts.

None of it may change a row.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.errors import CommitUnknown, StorageError, TwinlakeError
from twinlake.storage import SimulatedCrash

if TYPE_CHECKING:
    from twinlake.verify.code.bench import Bench, Rows, Told
    from twinlake.verify.code.statements import Statement

__all__ = ["Checkpoint", "CleanLog", "Followed", "Restarted", "Sync", "VacuumFiles"]


class _Neutral:
    """The rows stay as they are."""

    __slots__ = ()

    def apply(self, rows: Rows) -> Rows:
        """The same rows."""
        return rows


@dataclass(frozen=True, slots=True)
class Checkpoint(_Neutral):
    """Write a checkpoint of the latest version, and the hint."""

    parts: int | None = None
    name: str = "checkpoint"

    def run(self, bench: Bench) -> Told:
        """Load and write it down."""
        from twinlake.log import write_checkpoint

        write_checkpoint(bench.load(), runtime=bench.runtime, parts=self.parts)
        return None


@dataclass(frozen=True, slots=True)
class CleanLog(_Neutral):
    """Delete all history that a checkpoint stands for: the shortest retention there can be.

    ``retention_ms=None`` is what the table promises.
    """

    retention_ms: int | None = 0
    name: str = "clean log"

    def run(self, bench: Bench) -> Told:
        """Load, list, decide, delete."""
        from twinlake.log import cleanup_log

        cleanup_log(
            bench.load(),
            runtime=bench.runtime,
            retention_ms=self.retention_ms,
            granularity_ms=1,
        )
        return None


@dataclass(frozen=True, slots=True)
class Followed:
    """A statement, and then upkeep by the same actor."""

    first: Statement
    then: Statement

    @property
    def name(self) -> str:
        """Both names."""
        return f"{self.first.name}, {self.then.name}"

    def run(self, bench: Bench) -> Told:
        """One after the other; what the statement came to stays, whatever becomes of the upkeep."""
        told = self.first.run(bench)
        with suppress(TwinlakeError):
            self.then.run(bench)
        return told

    def apply(self, rows: Rows) -> Rows:
        """The rows after both."""
        return self.then.apply(self.first.apply(rows))


@dataclass(frozen=True, slots=True)
class Restarted:
    """A statement that is run again from the start if it crashed or its outcome is not known."""

    statement: Statement

    @property
    def name(self) -> str:
        """That of the statement."""
        return self.statement.name

    def run(self, bench: Bench) -> Told:
        """Twice, if need be; the second time nothing of the first is remembered."""
        try:
            return self.statement.run(bench)
        except (SimulatedCrash, CommitUnknown, StorageError):
            bench.written.clear()
            return self.statement.run(bench)

    def apply(self, rows: Rows) -> Rows:
        """As if it had run once."""
        return self.statement.apply(rows)


@dataclass(frozen=True, slots=True)
class VacuumFiles(_Neutral):
    """VACUUM; ``retention_hours=None`` is what the table promises."""

    retention_hours: float | None = None
    name: str = "vacuum"

    def run(self, bench: Bench) -> Told:
        """List, load, announce, delete, tell."""
        from twinlake.table.operations.vacuum import Vacuum

        Vacuum(
            bench.load(),
            retention_hours=self.retention_hours,
            mode="full",
            enforce_retention=self.retention_hours is None,
            policy="bundled",
            runtime=bench.runtime,
            hooks=bench.hooks,
        ).run()
        return None


@dataclass(frozen=True, slots=True)
class Sync(_Neutral):
    """Bring the Iceberg metadata up to the log."""

    name: str = "sync"

    def run(self, bench: Bench) -> Told:
        """Load and convert what is missing."""
        from twinlake.iceberg import sync_and_record

        sync_and_record(bench.load(), executor=bench.runtime.executor)
        return None
