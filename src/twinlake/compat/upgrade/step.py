"""The values of an upgrade: its goal, its input, its steps with their costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.rule import Profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.compat.compat_feature import Compat
    from twinlake.compat.rule import Violation

__all__ = [
    "Cost",
    "FileSummary",
    "Goal",
    "HistoryTruncation",
    "Step",
    "StepKind",
    "StepState",
    "UpgradeMode",
]


class UpgradeMode(StrEnum):
    """Who may write the table afterwards."""

    STRICT = "strict"
    """Iceberg writers and clients that know the writer feature; Delta Spark reads only."""
    SHARED = "shared"
    """The layout for Iceberg writers without the writer feature: Delta Spark writes as well."""


class StepKind(StrEnum):
    """What a step does."""

    SWITCH = "switch"
    """Set properties that the compat feature depends on; metadata only."""
    PURGE = "purge"
    """Rewrite files with deletion vectors, under the metadata as it is."""
    DROP_FEATURE = "drop_feature"
    CONVERT = "convert"
    """Change metadata and files together, in one commit."""
    ENABLE = "enable"
    """Enable the compat feature and its base."""
    UNIFORM = "uniform"
    """Ask for Iceberg metadata to be kept."""


class StepState(StrEnum):
    """How far a step is."""

    PLANNED = "planned"
    DONE = "done"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The compat feature to reach, and how."""

    compat: Compat
    mode: UpgradeMode = UpgradeMode.STRICT
    profile: Profile = Profile.SPEC
    in_place: bool = False
    """Whether files are to stay as they are where column names and ids change."""
    uniform: bool = False
    """Whether Iceberg metadata is to be kept afterwards."""
    give_up: frozenset[str] = frozenset()
    """Rules for writers that may be taken away, by their names in ``GIVE_UP_KEYS``."""
    policy: str = "bundled"

    @property
    def base(self) -> Compat:
        """The compat feature itself, or the base of a writer feature."""
        return COMPATS[self.compat.base] if self.compat.base is not None else self.compat

    @property
    def sets_writer_flag(self) -> bool:
        """Whether the upgrade ends with an enabled writer feature."""
        return self.compat.is_writer and self.mode is UpgradeMode.STRICT

    @property
    def hides_rows(self) -> bool:
        """Whether deletion vectors are allowed."""
        return self.base.version >= 3

    def __str__(self) -> str:
        if not self.compat.is_writer:
            return self.compat.feature
        return f"{self.compat.feature} ({self.mode})"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSummary:
    """What is known of the live files."""

    files: int = 0
    size: int = 0
    vectors: int = 0
    """Files that have a deletion vector."""
    vectors_size: int = 0
    unfit: int = 0
    """Files that break a rule about files, or have a deletion vector where that is not allowed."""
    unfit_size: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)
    """How many files break each rule about files."""
    examples: tuple[Violation, ...] = ()
    """Some of these violations, for the report."""
    untagged: int = 0
    """Fit files without the tag of the version they were written for, where it is required."""
    unfit_values: int = 0
    """Files of which only values break a rule: a rewrite fixes them under any column names."""
    unfit_values_size: int = 0
    rewrite_reasons: tuple[str, ...] = ()
    """Why other files must be rewritten; only filled for an upgrade in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryTruncation:
    """What has to be truncated before a feature can be dropped from the history."""

    versions: int = 0
    """How many versions have to be deleted."""
    retention_ms: int = 0
    until_ms: int | None = None
    """When they may be; None if nothing is known that they wait for."""
    kept: str = ""
    """Why they can never be deleted, where that is so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a step takes."""

    files: int = 0
    """Files to rewrite."""
    size: int = 0
    """Bytes of these."""
    listed: int = 0
    """Files to commit again as they are."""
    history: int = 0
    """Versions that can no longer be read afterwards."""
    wait_ms: int = 0
    """How long history is retained before it may be deleted."""
    until_ms: int | None = None
    """When that is over, where it is known."""

    @property
    def is_metadata_only(self) -> bool:
        """Whether no data file is written."""
        return not self.files

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "files": self.files,
            "bytes": self.size,
            "files_listed_again": self.listed,
            "metadata_only": self.is_metadata_only,
            "history_lost": self.history,
            "wait_ms": self.wait_ms,
            "until_ms": self.until_ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing to do; each is a commit, or a few, that leave a valid table."""

    kind: StepKind
    subject: str = ""
    """The feature, where the step is about one."""
    truncates: bool = False
    """Whether history has to be deleted for it."""
    what: str
    why: tuple[str, ...] = ()
    """The rules that it fixes."""
    cost: Cost = Cost()
    notes: tuple[str, ...] = ()
    """What a person should know before."""
    state: StepState = StepState.PLANNED
    version: int | None = None
    """The version of its last commit, once it is done."""

    @property
    def key(self) -> tuple[StepKind, str]:
        """Which step it is, from one plan to the next."""
        return self.kind, self.subject

    def finished(self, version: int) -> Step:
        """The step once it is done."""
        return replace(self, state=StepState.DONE, version=version)

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "kind": str(self.kind),
            **({"subject": self.subject} if self.subject else {}),
            "what": self.what,
            "why": list(self.why),
            "cost": self.cost.to_dict(),
            "notes": list(self.notes),
            "state": str(self.state),
            **({"version": self.version} if self.version is not None else {}),
        }
