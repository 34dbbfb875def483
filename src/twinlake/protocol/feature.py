"""What a table feature is, as data: one value says all the rest of the code needs to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twinlake.protocol.metadata import Metadata

__all__ = [
    "ClientSupport",
    "Feature",
    "FeatureKind",
    "FeatureTrace",
    "PreDowngrade",
    "Predicate",
    "Removal",
]

Predicate = Callable[["Metadata", frozenset[str]], bool]
"""Asked with the metadata and the names that the protocol supports already."""

Offenders = Callable[["Metadata"], tuple[str, ...]]
"""What a person must take away by hand before a feature can go."""


class FeatureKind(StrEnum):
    """Who must understand the feature."""

    WRITER = "W"
    READER_WRITER = "RW"


class ClientSupport(StrEnum):
    """What twinlake can do with tables that have the feature."""

    NONE = "none"
    READ = "read"
    WRITE = "write"


class FeatureTrace(StrEnum):
    """What a feature leaves in the log, where it shows that the feature was in use."""

    DELETION_VECTORS = "files with deletion vectors"
    COLUMN_MAPPING = "metadata with a column mapping mode"
    TYPE_CHANGES = "fields with type changes"
    V2_CHECKPOINTS = "V2 checkpoints"
    PROTECTED_HISTORY = "versions before the protected one"


class PreDowngrade(StrEnum):
    """What must happen to the table before a feature can go, besides changing metadata."""

    NONE = "nothing"
    RECOMMIT_WITHOUT_ROW_IDS = "commit the files again without row ids"
    CLASSIC_CHECKPOINT = "write a classic checkpoint"
    PUBLISH_COMMITS = "publish the commits that only the coordinator has"
    TRUNCATE_HISTORY = "delete the history before the protected version"
    PURGE_DELETION_VECTORS = "rewrite the files that have deletion vectors"
    REWRITE_TO_LOGICAL_NAMES = "rewrite all files under their logical column names"
    REWRITE_WIDENED_FILES = "rewrite the files whose types differ from the schema"

    @property
    def moves_rows(self) -> bool:
        """Whether it rewrites data and so needs a data engine."""
        return self in {
            PreDowngrade.PURGE_DELETION_VECTORS,
            PreDowngrade.REWRITE_TO_LOGICAL_NAMES,
            PreDowngrade.REWRITE_WIDENED_FILES,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """How a feature leaves a table.

    ``first_*`` belongs to the commit before the downgrade, which stops new traces from coming in;
    the rest belongs to the downgrade itself.
    """

    first_set: Mapping[str, str] = field(default_factory=dict, hash=False)
    first_unset: tuple[str, ...] = ()
    pre_downgrade: PreDowngrade = PreDowngrade.NONE
    trace: FeatureTrace | None = None  # None: history and files stay as they are
    atomic: bool = False  # the first changes belong into the commit that rewrites the files
    unset: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()  # names to tombstone, or "*" for every one
    field_metadata: tuple[str, ...] = ()  # keys to strip from the fields of the schema
    only_with_truncation: bool = False
    offenders: Offenders | None = None
    refusal: str = ""  # the sentence when there are offenders
    advice: str = ""
    delta_class: str | None = None
    never: str = ""  # why it is refused in any case, where it is

    def __post_init__(self) -> None:
        object.__setattr__(self, "first_set", MappingProxyType(dict(self.first_set)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One row of the registry."""

    name: str
    kind: FeatureKind
    min_reader: int
    min_writer: int
    legacy: bool = False
    client: ClientSupport = ClientSupport.NONE
    requires: tuple[str, ...] = ()
    auto: Predicate | None = None
    """Metadata that switches the feature on; None where only a person or another feature does."""
    active: Predicate | None = None
    """Metadata that puts the feature to use, where this differs from ``auto``; with neither, it is
    in use wherever it is supported."""
    existing: bool = False
    """Whether metadata may switch it on in a table that exists."""
    concurrent: bool = False
    """Whether a concurrent writer may rebase over the commit that adds it."""
    idle_harmless: bool = False
    """Whether a writer that lacks it may write while no metadata uses it."""
    history_protected: bool = False
    removal: Removal | None = None
    alias: str | None = None
    """The other name, preview or stable, of the same behaviour."""
    auto_text: str = ""
    where: str
    status: str = "GA"
    description: str

    @property
    def is_reader(self) -> bool:
        """Whether readers must understand it too."""
        return self.kind is FeatureKind.READER_WRITER

    @property
    def removable(self) -> bool:
        """Whether it can be dropped at all."""
        return self.removal is not None

    @property
    def only_with_truncation(self) -> bool:
        """Whether it can be dropped only where history is truncated."""
        return self.removal is not None and self.removal.only_with_truncation

    def __str__(self) -> str:
        return self.name
