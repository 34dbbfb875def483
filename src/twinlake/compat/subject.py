"""What the rules look at: a table, what it was before, and the files of a commit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata, Protocol
    from twinlake.schema import ColumnBounds, LegacyColumn, ParquetNode

__all__ = ["FileFooter", "State", "Subject"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Metadata and protocol of one version."""

    metadata: Metadata
    protocol: Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFooter:
    """What the footer of a data file says, next to what the log says of the file."""

    add: AddFile
    root: ParquetNode | None
    """None where the footer cannot be read; then ``problem`` says why."""
    num_rows: int = 0
    problem: str = ""
    legacy: tuple[LegacyColumn, ...] = ()
    """The columns with values of Spark's legacy calendar."""
    bounds: tuple[ColumnBounds, ...] = ()
    """Of the partition columns, where they were read."""

    @property
    def path(self) -> str:
        """The path as the log spells it."""
        return self.add.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A table as it would be after a commit, or as it is.

    What is not known is left at its default, and the rules about it have nothing to say: without
    ``before`` there is no change to check, without ``footers`` no file.
    """

    after: State
    before: State | None = None
    """None for a new table, and where only the present version is checked."""
    creates: bool = False
    """Whether the commit creates the table."""
    replaces: bool = False
    """Whether the commit puts another table in the place of this one."""
    adds: Sequence[AddFile] = ()
    """The files the commit adds."""
    vectors: int = 0
    """How many live files hide rows by a deletion vector, once the commit is done."""
    footers: Sequence[FileFooter] = ()
    metadata: Metadata = field(init=False, repr=False, compare=False)
    """The metadata to check."""
    protocol: Protocol = field(init=False, repr=False, compare=False)
    """The protocol to check."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", self.after.metadata)
        object.__setattr__(self, "protocol", self.after.protocol)
