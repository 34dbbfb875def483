"""What a feature leaves behind in the log, so that its going can be proved.

Protocol actions are no traces: an old client reads them to learn that it must stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.actions import AddFile, CheckpointMetadata, Metadata, RemoveFile, SidecarFile
from twinlake.errors import CorruptTable
from twinlake.protocol import FeatureTrace
from twinlake.schema import TYPE_CHANGES_KEY, ColumnMappingMode, walk_fields

if TYPE_CHECKING:
    from twinlake.actions import Action
    from twinlake.log import Checkpoint, Snapshot
    from twinlake.storage import Store

__all__ = ["files_with_trace", "holds_state", "leaves_trace", "v2_checkpoints"]


def leaves_trace(trace: FeatureTrace | None, action: Action) -> bool:
    """Whether the action could only come from a table with the feature of this trace."""
    match trace, action:
        case FeatureTrace.DELETION_VECTORS, AddFile() | RemoveFile():
            return action.deletion_vector is not None
        case FeatureTrace.COLUMN_MAPPING, Metadata():
            return action.column_mapping_mode is not ColumnMappingMode.NONE
        case FeatureTrace.TYPE_CHANGES, Metadata():
            return any(
                TYPE_CHANGES_KEY in field.metadata for _, field in walk_fields(action.schema)
            )
        case FeatureTrace.V2_CHECKPOINTS, CheckpointMetadata() | SidecarFile():
            return True
        case _:
            return False


def files_with_trace(trace: FeatureTrace | None, snapshot: Snapshot) -> int:
    """How many live files must be rewritten before the feature can go."""
    if trace is FeatureTrace.DELETION_VECTORS:
        return snapshot.counters.num_deletion_vectors
    # What the metadata shows may be in any file.
    return snapshot.num_files if leaves_trace(trace, snapshot.metadata) else 0


def v2_checkpoints(store: Store) -> list[int]:
    """The versions of the checkpoints in the log that an old client cannot read."""
    from twinlake.log import complete_checkpoints, is_v2_checkpoint, list_log

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
    from twinlake.log import count_files
    from twinlake.log.checkpoint import read_checkpoint, read_files

    state = read_checkpoint(snapshot.store, checkpoint)
    if state.protocol != snapshot.protocol or state.metadata != snapshot.metadata:
        return False
    adds = read_files(snapshot.store, checkpoint, state).adds
    return count_files(adds) == count_files(snapshot.add_files())
