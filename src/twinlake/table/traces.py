"""What a feature leaves behind in the log, so that its going can be proved.

Protocol actions are no traces: an old client reads them to learn that it must stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.actions import AddFile, CheckpointMetadata, Metadata, RemoveFile, SidecarFile
from twinlake.schema import TYPE_CHANGES_KEY, ColumnMappingMode, walk_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.actions import Action
    from twinlake.log import Snapshot

__all__ = ["files_in_the_way", "leaves_trace"]


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


def _any(snapshot: Snapshot) -> int:
    return snapshot.num_files


_FILES: Final[dict[str, Callable[[Snapshot], int]]] = {
    "deletionVectors": _with_vectors,
    "columnMapping": _any,
    "typeWidening": _if_widened,
    "typeWidening-preview": _if_widened,
}


def files_in_the_way(feature: str, snapshot: Snapshot) -> int:
    """How many live files must be rewritten before the feature can go."""
    count = _FILES.get(feature)
    return count(snapshot) if count is not None else 0
