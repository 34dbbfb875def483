"""What every writer of data files is given and gives back.

Two writers stand behind one interface (``native_writer``, ``arrow_writer``); which one is used
changes how fast rows become files, never what is in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from twinlake.storage import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata
    from twinlake.protocol import Protocol as TableProtocol
    from twinlake.schema import StructField
    from twinlake.storage import Store

__all__ = ["FileTarget", "FileWriter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """Where files go and what they have to look like; it travels to Spark's Python workers."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Metadata
    """The table's metadata as the commit will leave it: schema, partitioning, properties."""
    protocol: TableProtocol | None = None
    """The table's protocol, where it is known: some features ask more of files."""
    durable: bool = True
    """Whether files on a local disk are synced before they are handed over."""
    folder: str = ""
    """Below the table's root; ``_change_data`` for change files."""
    extra: tuple[StructField, ...] = ()
    """Columns after those of the table, named as in the files: change type, row ids."""
    stats: bool = True
    target_file_size: int | None = None
    """Bytes at which a file is closed and the next one begun; None: one file a task."""
    clustering: tuple[tuple[str, ...], ...] = ()
    """Physical paths of clustering columns: they always have statistics."""

    def store(self) -> Store:
        """The store, opened once in each process: it remembers which folders are safe on disk."""
        return _opened(self.url, self.durable, tuple(sorted(self.options.items())))


@lru_cache(maxsize=64)
def _opened(url: str, durable: bool, options: tuple[tuple[str, Any], ...]) -> Store:
    return open_store(url, durable=durable, options=dict(options) or None)


class FileWriter(Protocol):
    """Turns the rows of a frame into files that nobody sees until they are committed."""

    def refusal(self, target: FileTarget) -> str | None:
        """Why this writer cannot make such files; None if it can."""
        ...

    def write(self, frame: DataFrame, target: FileTarget) -> tuple[AddFile, ...]:
        """The new files; if anything fails, what was written is deleted as far as possible.

        The frame has the table's columns by their logical names, in order, then the extra ones.
        """
        ...
