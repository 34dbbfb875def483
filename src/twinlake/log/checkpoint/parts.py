"""The files of a checkpoint, each encoded and stored by itself.

Their names may be wanted by others too: nothing a reader could be using is ever replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.errors import Code, CorruptTable, StorageError
from twinlake.log.checkpoint.columns import FileRows, encode_parquet
from twinlake.log.checkpoint.last_checkpoint import replace_object
from twinlake.log.checkpoint.reader import open_parquet
from twinlake.storage import Committed, Conflict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.storage import Store

__all__ = ["CheckpointPart", "PresentFile"]


class PresentFile(Enum):
    """What is under a name that we want."""

    NOTHING = "nothing"
    OURS = "what we would write"
    DAMAGED = "nothing anybody could read"
    FOREIGN = "something else"


@dataclass(frozen=True, slots=True)
class CheckpointPart:
    """A file of a checkpoint to encode and store; picklable, for executors elsewhere."""

    store: Store
    key: str
    state: tuple[tuple[str, dict[str, Any]], ...]
    rows: FileRows
    types: Mapping[str, pa.DataType]
    unique: bool

    def write(self) -> tuple[str, int]:
        """Key and size; under a name that is not unique a sound file may stay as it is."""
        data = self._data()
        if self.unique:
            self.store.put(self.key, data)
        else:
            _create_or_keep(self.store, self.key, data)
        return self.key, len(data)

    def present_file(self) -> tuple[str, PresentFile]:
        """What is under the key already."""
        return self.key, _present_file(self.store, self.key, self._data())

    def claim(self) -> tuple[str, int, bool, bool]:
        """Key, size, whether this call made the file, and whether it holds what this one says."""
        data = self._data()
        outcome = self.store.create(self.key, data)
        if isinstance(outcome, Committed):
            return self.key, len(data), True, True
        refusal = getattr(outcome, "refusal", None)
        if refusal is not None:
            raise refusal
        present_file = _present_file(self.store, self.key, data)
        if present_file in (PresentFile.NOTHING, PresentFile.DAMAGED):
            replace_object(self.store, self.key, data)
        same = present_file is not PresentFile.FOREIGN
        return self.key, len(data), same and present_file is not PresentFile.OURS, same

    def _data(self) -> bytes:
        return encode_parquet(self.state, self.rows, types=self.types)


def _present_file(store: Store, key: str, data: bytes) -> PresentFile:
    try:
        found = store.read(key)
    except StorageError as error:
        if error.code is Code.STORAGE_NOT_FOUND:
            return PresentFile.NOTHING
        raise
    if found == data:
        return PresentFile.OURS
    # A part without any rows is a part like others.
    return PresentFile.DAMAGED if _num_rows(store, key) is None else PresentFile.FOREIGN


def _create_or_keep(store: Store, key: str, data: bytes) -> None:
    """Create a file whose name others may use as well: a whole checkpoint, theirs as good."""
    outcome = store.create(key, data)
    if isinstance(outcome, Committed):
        return
    if isinstance(outcome, Conflict) and _num_rows(store, key):
        return
    refusal = getattr(outcome, "refusal", None)
    if refusal is not None:
        raise refusal
    # The outcome is open, or what is there is damaged: the content is the same whoever writes
    # it, so replacing it in one step is safe.
    replace_object(store, key, data)


def _num_rows(store: Store, key: str) -> int | None:
    """How many rows a Parquet file holds; None if it is none that can be read."""
    try:
        with open_parquet(store, key) as file:
            return int(file.metadata.num_rows)
    except (pa.ArrowException, OSError, ValueError, CorruptTable):
        return None
