"""What the Iceberg specification defines: manifests, metadata files, single values, schemas.

Pure: bytes and values in, bytes and values out. What depends on the history of a Delta table
belongs to ``derive``, what reads or writes files to ``sync``.
"""

from twinlake.iceberg.format.bound import decode_bound
from twinlake.iceberg.format.manifest import (
    DamagedFile,
    DataFile,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestHeader,
    read_manifest,
    write_manifest,
)
from twinlake.iceberg.format.manifest_list import (
    ManifestFile,
    manifest_file,
    read_manifest_list,
    write_manifest_list,
)
from twinlake.iceberg.format.puffin import Blob, write_puffin
from twinlake.iceberg.format.schema import Leaf, highest_field_id, leaves
from twinlake.iceberg.format.single_value import plain_value
from twinlake.iceberg.format.table_metadata import (
    SnapshotEntry,
    TableMetadata,
    encode_metadata,
    table_uuid,
    with_referenced_snapshots,
)

__all__ = [
    "Blob",
    "DamagedFile",
    "DataFile",
    "EntryStatus",
    "Leaf",
    "ManifestContent",
    "ManifestEntry",
    "ManifestFile",
    "ManifestHeader",
    "SnapshotEntry",
    "TableMetadata",
    "decode_bound",
    "encode_metadata",
    "highest_field_id",
    "leaves",
    "manifest_file",
    "plain_value",
    "read_manifest",
    "read_manifest_list",
    "table_uuid",
    "with_referenced_snapshots",
    "write_manifest",
    "write_manifest_list",
    "write_puffin",
]
