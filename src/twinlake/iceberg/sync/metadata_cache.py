"""What a process knows of the Iceberg metadata it has just written, kept for the next commit.

The commit after this one mostly comes from the same process. What it would read again (a metadata
file that grows with every snapshot, the list, the head of every manifest) it has in memory; all it
has to know is that nobody has been there since.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from twinlake.iceberg.derive.iceberg_state import IcebergState
    from twinlake.iceberg.sync.manifest_reader import ManifestCache
    from twinlake.iceberg.sync.metadata_files import MetadataFiles
    from twinlake.storage import ObjectMeta, Store

__all__ = ["MAX_REUSES", "METADATA_CACHE", "CachedState", "MetadataCache"]

#: After so many commits everything is read once more: a manifest that somebody deleted meanwhile is
#: not noticed before.
MAX_REUSES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedState:
    """A state to continue from: one that was read, or one that this process has published."""

    state: IcebergState
    known: ManifestCache
    """Of its manifests."""
    rebuild_marker: ObjectMeta | None
    """The rebuild marker, from before this state was read.

    They delete what theirs does not name. A sync that ran meanwhile may name what is gone.
    """
    published: ObjectMeta | None = None
    """The metadata file as it lies there, if it is ours."""
    reuses: int = 0
    """How many states were made since one was read."""

    def after_publish(self, state: IcebergState, files: MetadataFiles) -> CachedState:
        """The state to continue from once a state is published."""
        self.known.rest(state.rows)
        return CachedState(
            state=state,
            known=self.known,
            rebuild_marker=self.rebuild_marker,
            published=files.metadata_stamp(state.metadata.delta_version),
            reuses=self.reuses + 1,
        )

    def is_published(self, files: MetadataFiles, version: int) -> bool:
        """Whether this is the metadata file of a version as it lies there."""
        return (
            self.state.metadata.delta_version == version
            and self.published is not None
            and self.published == files.metadata_stamp(version)
        )

    def is_current(
        self, files: MetadataFiles, version: int, rebuild_marker: ObjectMeta | None
    ) -> bool:
        """Whether this is still the state of a version, and nobody has made another."""
        return (
            self.reuses < MAX_REUSES
            and self.rebuild_marker == rebuild_marker
            and self.is_published(files, version)
        )


class MetadataCache:
    """Cached states by the store they are in, least recently used out first."""

    def __init__(self, capacity: int = 16) -> None:
        self._capacity = capacity
        # By the very store: another one of the same location may see other files. When it is gone
        # nobody can ask any more.
        self._kept: OrderedDict[weakref.ref[Store], CachedState] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, store: Store) -> CachedState | None:
        """What is kept of a store; it is gone then, for a conversion has it to itself."""
        with self._lock:
            return self._kept.pop(weakref.ref(store), None)

    def peek(self, store: Store) -> CachedState | None:
        """What is kept of a store, to look at its state; it stays for the next conversion."""
        with self._lock:
            return self._kept.get(weakref.ref(store))

    def keep(self, store: Store, state: CachedState) -> None:
        """Keep it for the next conversion."""
        # Called whenever memory is swept, also by a thread that has the lock.
        kept = weakref.ref(store, lambda gone: self._kept.pop(gone, None))
        with self._lock:
            self._kept.pop(kept, None)
            self._kept[kept] = state
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)

    def forget(self) -> None:
        """Forget everything, as the child of a process does whose other threads are not there."""
        self._kept = OrderedDict()
        self._lock = threading.Lock()


METADATA_CACHE: Final = MetadataCache()
"""Those of the process."""
os.register_at_fork(after_in_child=METADATA_CACHE.forget)
