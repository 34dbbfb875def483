"""Iceberg commits as Delta actions: what a client sends, decoded, checked and translated. Pure.

Requests and their updates, schemas, manifests and data files of other writers. Reading files and
committing belong to ``table.iceberg_commits`` and ``iceberg.importing``.
"""

from twinlake.iceberg.requests.data_file import (
    SourceFile,
    add_action,
    count_problem,
    file_identity,
    partition_problem,
)
from twinlake.iceberg.requests.manifest import (
    EntryStatus,
    ListedManifest,
    SourceEntry,
    check_manifest_bytes,
    decode_manifest,
    decode_manifest_list,
)
from twinlake.iceberg.requests.new_table import NewTable, partition_columns
from twinlake.iceberg.requests.properties import change_properties
from twinlake.iceberg.requests.requirements import failed_requirements
from twinlake.iceberg.requests.schema import (
    ImportedSchema,
    changed_schema,
    import_schema,
)
from twinlake.iceberg.requests.snapshot_diff import SnapshotDiff, diff_files
from twinlake.iceberg.requests.table_change import ClientSnapshot, TableChange, read_updates
from twinlake.iceberg.requests.table_request import (
    CommitTableRequest,
    CreateTableRequest,
    decode_commit,
    decode_create,
    malformed,
)

__all__ = [
    "ClientSnapshot",
    "CommitTableRequest",
    "CreateTableRequest",
    "EntryStatus",
    "ImportedSchema",
    "ListedManifest",
    "NewTable",
    "SnapshotDiff",
    "SourceEntry",
    "SourceFile",
    "TableChange",
    "add_action",
    "change_properties",
    "changed_schema",
    "check_manifest_bytes",
    "count_problem",
    "decode_commit",
    "decode_create",
    "decode_manifest",
    "decode_manifest_list",
    "diff_files",
    "failed_requirements",
    "file_identity",
    "import_schema",
    "malformed",
    "partition_columns",
    "partition_problem",
    "read_updates",
]
