"""The actions of the Delta log as immutable values, and their JSON form."""

from twinlake.actions.codec import (
    PRECEDENCE,
    Action,
    action_name,
    check_readable,
    decode_action,
    decode_lines,
    decode_whole_commit,
    encode_action,
    encode_lines,
)
from twinlake.actions.domains import (
    annotations_action,
    clustering_action,
    find_annotations,
    find_clustering,
    find_row_tracking,
    row_tracking_action,
)
from twinlake.actions.files import (
    AddCDCFile,
    AddFile,
    DeletionVectorDescriptor,
    FileKey,
    RemoveFile,
)
from twinlake.actions.state import (
    CheckpointMetadata,
    CommitInfo,
    DomainMetadata,
    SetTransaction,
    SidecarFile,
    UnknownAction,
)
from twinlake.protocol import Metadata, Protocol

__all__ = [
    "PRECEDENCE",
    "Action",
    "AddCDCFile",
    "AddFile",
    "CheckpointMetadata",
    "CommitInfo",
    "DeletionVectorDescriptor",
    "DomainMetadata",
    "FileKey",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "SetTransaction",
    "SidecarFile",
    "UnknownAction",
    "action_name",
    "annotations_action",
    "check_readable",
    "clustering_action",
    "decode_action",
    "decode_lines",
    "decode_whole_commit",
    "encode_action",
    "encode_lines",
    "find_annotations",
    "find_clustering",
    "find_row_tracking",
    "row_tracking_action",
]
