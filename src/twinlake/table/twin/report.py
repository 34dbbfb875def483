"""What a comparison of both sides of a table came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["DifferenceKind", "TwinFinding", "TwinReport"]


class DifferenceKind(StrEnum):
    """In what the sides differ."""

    BEHIND = "behind"
    UNREADABLE = "unreadable"
    SNAPSHOT = "snapshot"
    SCHEMA = "schema"
    PARTITIONING = "partitioning"
    FILE_MISSING = "file missing in Iceberg"
    FILE_EXTRA = "file missing in Delta"
    FILE_TWICE = "file listed twice"
    COUNT = "count"
    SIZE = "size"
    PARTITION = "partition"
    DELETES = "deleted rows"
    LINEAGE = "row lineage"
    STATISTICS = "statistics"
    BOUND_LOSES_ROWS = "bound loses rows"
    BOUND_DIFFERS = "bound differs"
    FIELD_IDS = "field ids"
    CALENDAR = "calendar"
    PADDING = "padding"
    ROWS = "rows"
    CHECKSUM = "checksum file differs from the log"


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinFinding:
    """One difference, at the first version that has it."""

    version: int
    what: DifferenceKind
    file: str = ""
    column: str = ""
    delta: str = ""
    """What the Delta side says."""
    iceberg: str = ""
    """What the Iceberg side says."""

    @property
    def key(self) -> tuple[str, ...]:
        """All but the version: what stays wrong is reported once."""
        return (self.what, self.file, self.column, self.delta, self.iceberg)

    def to_dict(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {
            "version": self.version,
            "what": str(self.what),
            "file": self.file,
            "column": self.column,
            "delta": self.delta,
            "iceberg": self.iceberg,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinReport:
    """Whether both sides say the same, and where they do not."""

    location: str
    delta_version: int
    iceberg_version: int
    """The Delta version the Iceberg side is at."""
    versions: tuple[int, ...]
    """The versions that were compared."""
    files: int
    """How many different files were compared."""
    rows: int | None = None
    """How many rows were read on each side; None where rows were not asked for."""
    delta_reader: str
    """What read the Delta side, with its version: the rows where rows were read, else the log."""
    iceberg_reader: str
    """What read the Iceberg side in the same way; never twinlake."""
    findings: tuple[TwinFinding, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether nothing differs."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "location": self.location,
            "agrees": self.agrees,
            "delta_version": self.delta_version,
            "iceberg_version": self.iceberg_version,
            "versions": list(self.versions),
            "files": self.files,
            "rows": self.rows,
            "delta_reader": self.delta_reader,
            "iceberg_reader": self.iceberg_reader,
            "findings": [finding.to_dict() for finding in self.findings],
        }
