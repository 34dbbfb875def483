"""``FileTarget``: where data files are written, and for which table.

It is given to every writer. Which one is used changes how fast rows become files, never what is in
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from twinlake.actions import find_clustering
from twinlake.log import StatsColumns
from twinlake.storage import open_store, store_config

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata, Protocol
    from twinlake.schema import StructField
    from twinlake.storage import Store

__all__ = ["FileTarget", "clustering_columns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTarget:
    """Where files go and what they have to look like; it travels to Spark's Python workers."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict)
    metadata: Metadata
    """The table's metadata as the commit will leave it: schema, partitioning, properties."""
    protocol: Protocol | None = None
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

    @classmethod
    def of(
        cls,
        store: Store,
        metadata: Metadata,
        *,
        protocol: Protocol | None = None,
        folder: str = "",
        extra: Sequence[StructField] = (),
        target_file_size: int | None = None,
        clustering: tuple[tuple[str, ...], ...] = (),
    ) -> FileTarget:
        """Files in a store that may hold no table yet; statistics for data files only."""
        config = store_config(store)
        return cls(
            url=config.url,
            options=config.options,
            durable=config.durable,
            metadata=metadata,
            protocol=protocol,
            folder=folder,
            extra=tuple(extra),
            stats=not folder,
            target_file_size=target_file_size,
            clustering=clustering,
        )

    @property
    def stats_columns(self) -> StatsColumns | None:
        """The columns that get statistics; None where files have none."""
        if not self.stats:
            return None
        return StatsColumns.of(self.metadata, self.protocol, clustering=self.clustering)

    def store(self) -> Store:
        """The store, opened once in each process: it remembers which folders are safe on disk."""
        given = dict(self.options)
        try:
            settings = msgspec.json.encode(given, order="deterministic")
        except (TypeError, RecursionError):
            # Callables and the like cannot be compared; such a store is opened again.
            return open_store(self.url, durable=self.durable, options=given)
        return _opened(_StoreKey(self.url, self.durable, settings, given))


def clustering_columns(snapshot: Snapshot) -> tuple[tuple[str, ...], ...]:
    """The clustering columns by physical path."""
    found = find_clustering(snapshot.domains.values())
    return () if found is None else found.physical_paths(snapshot.metadata)


@dataclass(frozen=True, slots=True)
class _StoreKey:
    """A location and settings; nested settings are compared by their text."""

    url: str
    durable: bool
    settings: bytes
    options: Mapping[str, Any] = field(compare=False)


@lru_cache(maxsize=64)
def _opened(key: _StoreKey) -> Store:
    return open_store(key.url, durable=key.durable, options=dict(key.options) or None)
