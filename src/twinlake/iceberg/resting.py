"""Conversions at rest: what a process knows of a face it has just made, kept for the next commit.

The commit after this one mostly comes from the same process. What it would read again (a metadata
file that grows with every snapshot, the list, the head of every manifest) it has in memory; all it
has to know is that nobody has been there since.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from twinlake.iceberg.face import Face
    from twinlake.iceberg.face_files import FaceFiles
    from twinlake.iceberg.manifest_reading import Manifests
    from twinlake.storage import ObjectMeta, Store

__all__ = ["MOST_TURNS", "RESTING", "Rested", "Resting"]

#: After so many commits the files are looked at once more: what somebody deleted meanwhile, a
#: manifest or an old list, is not noticed before.
MOST_TURNS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Rested:
    """A face as it was published, and the manifests as far as they are known."""

    face: Face
    manifests: Manifests
    published: tuple[ObjectMeta | None, ...]
    """The metadata file and the list of its newest snapshot, as the store told of them."""
    turns: int

    @classmethod
    def after(cls, before: Rested | None, face: Face, manifests: Manifests) -> Rested:
        """What is kept of a conversion that has just published a face."""
        manifests.rest(face.rows)
        return cls(
            face=face,
            manifests=manifests,
            published=_published(face, manifests.files),
            turns=0 if before is None else before.turns + 1,
        )

    def still_stands(self, version: int | None) -> bool:
        """Whether the face is that of a version and lies there as it was published."""
        if self.face.metadata.delta_version != version or self.turns >= MOST_TURNS:
            return False
        return None not in self.published and self.published == _published(
            self.face, self.manifests.files
        )


def _published(face: Face, files: FaceFiles) -> tuple[ObjectMeta | None, ...]:
    current = face.metadata.current
    lists = () if current is None else (current.manifest_list,)
    locations = (files.metadata_location(face.metadata.delta_version), *lists)
    return tuple(files.store.head(files.key_of(location)) for location in locations)


class Resting:
    """One conversion at rest a store, least recently used out first."""

    def __init__(self, capacity: int = 16) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[int, tuple[Store, Rested]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, store: Store) -> Rested | None:
        """What is kept of a store; it is gone then, for a conversion has it to itself."""
        with self._lock:
            # By the very store: another one to the same place may see other files.
            _, found = self._kept.pop(id(store), (store, None))
        return found

    def keep(self, rested: Rested) -> None:
        """Keep it for the next conversion."""
        store = rested.manifests.files.store
        with self._lock:
            self._kept[id(store)] = store, rested
            self._kept.move_to_end(id(store))
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)


RESTING: Final = Resting()
"""Those of the process."""
