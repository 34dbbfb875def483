"""Faces at rest: what a process knows of a face it has just made, kept for the next commit.

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
    from twinlake.iceberg.derive.iceberg_state import Face
    from twinlake.iceberg.sync.manifest_reader import Known
    from twinlake.iceberg.sync.metadata_files import FaceFiles
    from twinlake.storage import ObjectMeta, Store

__all__ = ["MOST_TURNS", "RESTING", "Ground", "Resting"]

#: After so many commits everything is read once more: a manifest that somebody deleted meanwhile is
#: not noticed before.
MOST_TURNS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A face to go on from: one that was read, or one that this process has published."""

    face: Face
    known: Known
    """Of its manifests."""
    made_anew: ObjectMeta | None
    """The mark of those who make faces anew, from before this one was read.

    They delete what theirs does not name. Whoever was at work meanwhile may name what is gone.
    """
    published: ObjectMeta | None = None
    """The metadata file as it lies there, if it is ours."""
    turns: int = 0
    """How many faces were made since one was read."""

    def followed_by(self, face: Face, files: FaceFiles) -> Ground:
        """The ground that a face is, once it is published."""
        self.known.rest(face.rows)
        return Ground(
            face=face,
            known=self.known,
            made_anew=self.made_anew,
            published=files.metadata_stamp(face.metadata.delta_version),
            turns=self.turns + 1,
        )

    def holds(self, files: FaceFiles, version: int, made_anew: ObjectMeta | None) -> bool:
        """Whether this is still the face of a version, and nobody has made another."""
        return (
            self.face.metadata.delta_version == version
            and self.turns < MOST_TURNS
            and self.made_anew == made_anew
            and self.published is not None
            and self.published == files.metadata_stamp(version)
        )


class Resting:
    """Grounds by the store they are in, least recently used out first."""

    def __init__(self, capacity: int = 16) -> None:
        self._capacity = capacity
        # By the very store: another one to the same place may see other files. When it is gone
        # nobody can ask any more.
        self._kept: OrderedDict[weakref.ref[Store], Ground] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, store: Store) -> Ground | None:
        """What is kept of a store; it is gone then, for a conversion has it to itself."""
        with self._lock:
            return self._kept.pop(weakref.ref(store), None)

    def keep(self, store: Store, ground: Ground) -> None:
        """Keep it for the next conversion."""
        # Called whenever memory is swept, also by a thread that has the lock.
        kept = weakref.ref(store, lambda gone: self._kept.pop(gone, None))
        with self._lock:
            self._kept.pop(kept, None)
            self._kept[kept] = ground
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)

    def forget(self) -> None:
        """Start anew, as the child of a process does whose other threads are not there."""
        self._kept = OrderedDict()
        self._lock = threading.Lock()


RESTING: Final = Resting()
"""Those of the process."""
os.register_at_fork(after_in_child=RESTING.forget)
