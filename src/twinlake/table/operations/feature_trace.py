"""What a feature leaves behind in the log, so that its going can be proved.

Protocol actions are no traces: an old client reads them to learn that it must stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.actions import AddFile, CheckpointMetadata, Metadata, RemoveFile, SidecarFile
from twinlake.errors import CorruptTable
from twinlake.schema import TYPE_CHANGES_KEY, ColumnMappingMode, walk_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.actions import Action
    from twinlake.log import Snapshot
    from twinlake.log.listing import Checkpoint
    from twinlake.storage import Store

__all__ = ["files_in_the_way", "holds_state", "leaves_trace", "v2_checkpoints"]


def _deletion_vector(action: Action) -> bool:
    return isinstance(action, AddFile | RemoveFile) and action.deletion_vector is not None


def _mapping(action: Action) -> bool:
    return isinstance(action, Metadata) and action.column_mapping_mode is not ColumnMappingMode.NONE


def _widening(action: Action) -> bool:
    return isinstance(action, Metadata) and any(
        TYPE_CHANGES_KEY in field.metadata for _, field in walk_fields(action.schema)
    )


def _v2_checkpoint(action: Action) -> bool:
    return isinstance(action, CheckpointMetadata | SidecarFile)


_TRACES: Final[dict[str, Callable[[Action], bool]]] = {
    "deletionVectors": _deletion_vector,
    "columnMapping": _mapping,
    "typeWidening": _widening,
    "typeWidening-preview": _widening,
    "v2Checkpoint": _v2_checkpoint,
}


def leaves_trace(feature: str, action: Action) -> bool:
    """Whether the action could only come from a table with the feature."""
    test = _TRACES.get(feature)
    return test is not None and test(action)


def _with_vectors(snapshot: Snapshot) -> int:
    return snapshot.counters.num_deletion_vectors


def _if_widened(snapshot: Snapshot) -> int:
    return snapshot.num_files if _widening(snapshot.metadata) else 0


def _if_mapped(snapshot: Snapshot) -> int:
    return snapshot.num_files if _mapping(snapshot.metadata) else 0


_FILES: Final[dict[str, Callable[[Snapshot], int]]] = {
    "deletionVectors": _with_vectors,
    "columnMapping": _if_mapped,
    "typeWidening": _if_widened,
    "typeWidening-preview": _if_widened,
}


def files_in_the_way(feature: str, snapshot: Snapshot) -> int:
    """How many live files must be rewritten before the feature can go."""
    count = _FILES.get(feature)
    return count(snapshot) if count is not None else 0


def v2_checkpoints(store: Store) -> list[int]:
    """The versions of the checkpoints in the log that an old client cannot read."""
    from twinlake.log import is_v2_checkpoint
    from twinlake.log.listing import complete_checkpoints, list_log

    def may_be_v2(checkpoint: Checkpoint) -> bool:
        try:
            return is_v2_checkpoint(store, checkpoint)
        except CorruptTable:
            # What cannot be read cannot be cleared either.
            return True

    found = complete_checkpoints(list_log(store))
    return sorted({checkpoint.version for checkpoint in found if may_be_v2(checkpoint)})


def holds_state(checkpoint: Checkpoint, snapshot: Snapshot) -> bool:
    """Whether the checkpoint, read back from the store, is the state of the snapshot."""
    from twinlake.log.checkpoint.reader import read_checkpoint, read_files
    from twinlake.log.snapshot import count_files

    state = read_checkpoint(snapshot.store, checkpoint)
    if state.protocol != snapshot.protocol or state.metadata != snapshot.metadata:
        return False
    adds = read_files(snapshot.store, checkpoint, state).adds
    return count_files(adds) == count_files(snapshot.add_files())
