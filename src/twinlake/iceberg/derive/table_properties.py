"""The properties of the Iceberg side: what the table asks for, and what follows from Delta.

What twinlake sets itself is said last: whatever the table asks for, it cannot say it otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.iceberg.derive.expiry import retention_ms
from twinlake.protocol import (
    COPY_ON_WRITE,
    HISTORY_AGE,
    SERIALIZABLE,
    keys,
    requested_iceberg_properties,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.iceberg.derive.table_layout import DeltaCommit, TableLayout
    from twinlake.iceberg.format.table_metadata import TableMetadata
    from twinlake.protocol import Metadata

__all__ = ["iceberg_properties"]

#: A commit meets others here, Delta's among them: rather often, not for half an hour.
_RETRIES: Final = {
    "commit.retry.num-retries": "10",
    "commit.retry.min-wait-ms": "100",
    "commit.retry.max-wait-ms": "10000",
    "commit.retry.total-timeout-ms": "300000",
}
_CODEC: Final = "write.parquet.compression-codec"
#: What Delta calls the codecs that Iceberg has, too.
_CODECS: Final[Mapping[str, str]] = {
    "none": "uncompressed",
    **{name: name for name in ("uncompressed", "snappy", "gzip", "lz4", "zstd", "brotli")},
}
_DEFAULT_CODEC: Final = "snappy"
_MERGE_ON_READ_SINCE: Final = 3


def iceberg_properties(commit: DeltaCommit, old: TableMetadata | None) -> dict[str, str]:
    """The properties after a commit, which came after ``old``."""
    layout = commit.layout
    return {
        **_RETRIES,
        _CODEC: _codec(layout.metadata),
        **_requested(layout),
        **SERIALIZABLE,
        HISTORY_AGE: str(retention_ms(layout.metadata)),
        # Data files are Delta's: what Iceberg does not reach, Delta may need still.
        "gc.enabled": "false",
        "write.format.default": "parquet",
        # Where Delta's own files are, so that its VACUUM looks after them.
        "write.data.path": layout.location,
        # Beside the data, where Delta's VACUUM leaves them alone.
        "write.metadata.path": f"{layout.location}/_iceberg/metadata",
        "schema.name-mapping.default": layout.name_mapping,
        **({} if old is None else {"base-delta-version": str(old.delta_version)}),
        "delta-version": str(commit.version),
        "delta-timestamp": str(commit.timestamp_ms),
    }


def _requested(layout: TableLayout) -> dict[str, str]:
    """What the table asks for; the only write mode of format 2 is not said.

    Copy-on-write is the default of Iceberg, and DuckDB refuses DELETE where it is said.
    """
    found = requested_iceberg_properties(layout.metadata.configuration)
    if layout.format_version < _MERGE_ON_READ_SINCE:
        return {name: value for name, value in found.items() if name not in COPY_ON_WRITE}
    return found


def _codec(metadata: Metadata) -> str:
    """What the writers of the table compress with."""
    return _CODECS.get(metadata.get(keys.PARQUET_COMPRESSION_CODEC).strip().lower(), _DEFAULT_CODEC)
