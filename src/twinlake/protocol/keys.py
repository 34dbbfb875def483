"""The keys of table properties, each written once; the registry says what they mean.

Keys that the rules of a schema mention are defined there.
"""

from __future__ import annotations

from typing import Final

from twinlake.schema import (
    COLUMN_MAPPING_MODE,
    ENABLE_TYPE_WIDENING,
    MAX_COLUMN_ID,
)

__all__ = ["COLUMN_MAPPING_MODE", "ENABLE_TYPE_WIDENING", "MAX_COLUMN_ID", "support"]

CONSTRAINTS_PREFIX: Final = "delta.constraints."
FEATURE_PREFIX: Final = "delta.feature."

APPEND_ONLY: Final = "delta.appendOnly"
ENABLE_CHANGE_DATA_FEED: Final = "delta.enableChangeDataFeed"
ENABLE_DELETION_VECTORS: Final = "delta.enableDeletionVectors"
COLUMN_MAPPING_HAS_DROPPED_OR_RENAMED: Final = "delta.columnMapping.hasDroppedOrRenamed"
CHECKPOINT_INTERVAL: Final = "delta.checkpointInterval"
CHECKPOINT_POLICY: Final = "delta.checkpointPolicy"
LOG_RETENTION_DURATION: Final = "delta.logRetentionDuration"
CHECKPOINT_RETENTION_DURATION: Final = "delta.checkpointRetentionDuration"
SAMPLE_RETENTION_DURATION: Final = "delta.sampleRetentionDuration"
DELETED_FILE_RETENTION_DURATION: Final = "delta.deletedFileRetentionDuration"
SET_TRANSACTION_RETENTION_DURATION: Final = "delta.setTransactionRetentionDuration"
TRUNCATE_HISTORY_RETENTION_DURATION: Final = "delta.dropFeatureTruncateHistory.retentionDuration"
ENABLE_EXPIRED_LOG_CLEANUP: Final = "delta.enableExpiredLogCleanup"
ENABLE_FULL_RETENTION_ROLLBACK: Final = "delta.enableFullRetentionRollback"
ENABLE_ROW_TRACKING: Final = "delta.enableRowTracking"
ROW_TRACKING_SUSPENDED: Final = "delta.rowTrackingSuspended"
MATERIALIZED_ROW_ID: Final = "delta.rowTracking.materializedRowIdColumnName"
MATERIALIZED_ROW_COMMIT_VERSION: Final = "delta.rowTracking.materializedRowCommitVersionColumnName"
ISOLATION_LEVEL: Final = "delta.isolationLevel"
DATA_SKIPPING_NUM_INDEXED_COLS: Final = "delta.dataSkippingNumIndexedCols"
DATA_SKIPPING_STATS_COLUMNS: Final = "delta.dataSkippingStatsColumns"
ENABLE_IN_COMMIT_TIMESTAMPS: Final = "delta.enableInCommitTimestamps"
IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION: Final = "delta.inCommitTimestampEnablementVersion"
IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP: Final = "delta.inCommitTimestampEnablementTimestamp"
CHECKPOINT_WRITE_STATS_AS_JSON: Final = "delta.checkpoint.writeStatsAsJson"
CHECKPOINT_WRITE_STATS_AS_STRUCT: Final = "delta.checkpoint.writeStatsAsStruct"
ENABLE_VARIANT_SHREDDING: Final = "delta.enableVariantShredding"
ENABLE_ICEBERG_COMPAT_V1: Final = "delta.enableIcebergCompatV1"
ENABLE_ICEBERG_COMPAT_V2: Final = "delta.enableIcebergCompatV2"
ENABLE_ICEBERG_COMPAT_V3: Final = "delta.enableIcebergCompatV3"
ENABLE_ICEBERG_WRITER_COMPAT_V1: Final = "delta.enableIcebergWriterCompatV1"
ENABLE_ICEBERG_WRITER_COMPAT_V3: Final = "delta.enableIcebergWriterCompatV3"
ENABLE_MATERIALIZE_PARTITION_COLUMNS: Final = "delta.enableMaterializePartitionColumnsFeature"
ENABLED_FORMATS: Final = "delta.universalFormat.enabledFormats"
CAST_ICEBERG_TIME_TYPE: Final = "delta.castIcebergTimeType"
TARGET_FILE_SIZE: Final = "delta.targetFileSize"
TUNE_FILE_SIZES_FOR_REWRITES: Final = "delta.tuneFileSizesForRewrites"
AUTO_OPTIMIZE: Final = "delta.autoOptimize"
AUTO_OPTIMIZE_AUTO_COMPACT: Final = "delta.autoOptimize.autoCompact"
AUTO_OPTIMIZE_OPTIMIZE_WRITE: Final = "delta.autoOptimize.optimizeWrite"
RANDOMIZE_FILE_PREFIXES: Final = "delta.randomizeFilePrefixes"
RANDOM_PREFIX_LENGTH: Final = "delta.randomPrefixLength"
SYMLINK_FORMAT_MANIFEST_ENABLED: Final = "delta.compatibility.symlinkFormatManifest.enabled"
REQUIRE_CHECKPOINT_PROTECTION: Final = "delta.requireCheckpointProtectionBeforeVersion"
PARQUET_COMPRESSION_CODEC: Final = "delta.parquet.compression.codec"
COMMIT_COORDINATOR: Final = "delta.coordinatedCommits.commitCoordinator-preview"
COMMIT_COORDINATOR_CONF: Final = "delta.coordinatedCommits.commitCoordinatorConf-preview"
COORDINATED_COMMITS_TABLE_CONF: Final = "delta.coordinatedCommits.tableConf-preview"
REDIRECT_READER_WRITER: Final = "delta.redirectReaderWriter-preview"
REDIRECT_WRITER_ONLY: Final = "delta.redirectWriterOnly-preview"
MIN_READER_VERSION: Final = "delta.minReaderVersion"
MIN_WRITER_VERSION: Final = "delta.minWriterVersion"
IGNORE_PROTOCOL_DEFAULTS: Final = "delta.ignoreProtocolDefaults"
PARTITION_TIME_ZONE: Final = "twinlake.partitionTimeZone"
ICEBERG_SYNC: Final = "twinlake.iceberg.sync"
ICEBERG_PUBLISH: Final = "twinlake.iceberg.publish"
ICEBERG_POSITION_DELETES: Final = "twinlake.iceberg.positionDeletes"


def support(*features: str) -> dict[str, str]:
    """The properties that add features to the protocol by name.

    >>> support("clustering")
    {'delta.feature.clustering': 'supported'}
    """
    return {FEATURE_PREFIX + name: "supported" for name in features}
