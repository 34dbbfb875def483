"""The table properties that are known: their parsers, defaults and meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from twinlake.protocol import keys
from twinlake.protocol.feature_lookup import find_feature
from twinlake.protocol.properties import value_parsers as as_
from twinlake.protocol.properties.iceberg import (
    ICEBERG_PREFIX,
    iceberg_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from twinlake.protocol.metadata import Metadata

__all__ = [
    "PROPERTIES",
    "RETENTION_KEYS",
    "Property",
    "canonical_key",
    "is_secret",
    "partition_zone",
    "property_value",
    "render_property_table",
    "snapshot_age_ms",
]

T = TypeVar("T")

RETENTION_KEYS: Final = (keys.DELETED_FILE_RETENTION_DURATION, keys.LOG_RETENTION_DURATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Property(Generic[T]):
    """A known property: its parser, its default and what it does."""

    key: str
    parse: Callable[[str], T]
    default: str | None = None
    reserved: bool = False
    """Kept by the system; a person has no reason to set it."""
    kept: str = ""
    """Why a person can neither set nor unset it, where that is so."""
    description: str

    def value(self, metadata: Metadata) -> T | None:
        """The value in force: what is stored if it can be read, else the default."""
        stored = metadata.configuration.get(self.key)
        if stored is not None:
            try:
                return self.parse(stored)
            except ValueError:
                pass
        return None if self.default is None else self.parse(self.default)


def _flag(key: str, description: str, default: str = "false", **rest: Any) -> Property[bool]:
    return Property(key=key, parse=as_.boolean, default=default, description=description, **rest)


def _number(
    key: str, description: str, default: str | None = None, *, low: int = 0, **rest: Any
) -> Property[int]:
    parse = as_.integer(low)
    return Property(key=key, parse=parse, default=default, description=description, **rest)


def _duration(key: str, description: str, default: str | None = None) -> Property[int]:
    return Property(key=key, parse=as_.duration_ms, default=default, description=description)


def _text(key: str, description: str, **rest: Any) -> Property[str]:
    return Property(key=key, parse=as_.text, description=description, **rest)


_ROWS: Final[tuple[Property[Any], ...]] = (
    _flag(keys.APPEND_ONLY, "Rows can only be added."),
    _flag(keys.ENABLE_CHANGE_DATA_FEED, "Record row-level changes."),
    _flag(keys.ENABLE_DELETION_VECTORS, "Mark deleted rows instead of rewriting files."),
    Property(
        key=keys.COLUMN_MAPPING_MODE,
        parse=as_.one_of("none", "name", "id"),
        default="none",
        description="How columns are found in the files.",
    ),
    _number(
        keys.MAX_COLUMN_ID,
        "The highest column id given.",
        reserved=True,
        kept="the table keeps the highest column id, and it may never come down",
    ),
    _flag(
        keys.COLUMN_MAPPING_HAS_DROPPED_OR_RENAMED,
        "Whether a column was dropped or renamed.",
        reserved=True,
    ),
    _number(keys.CHECKPOINT_INTERVAL, "Commits between two checkpoints.", "10", low=1),
    Property(
        key=keys.CHECKPOINT_POLICY,
        parse=as_.one_of("classic", "v2"),
        default="classic",
        description="The kind of checkpoint to write.",
    ),
    _duration(keys.LOG_RETENTION_DURATION, "How long history is kept.", "interval 30 days"),
    _duration(keys.CHECKPOINT_RETENTION_DURATION, "How long checkpoints are kept."),
    _duration(keys.SAMPLE_RETENTION_DURATION, "How long sampled statistics are kept."),
    _duration(
        keys.DELETED_FILE_RETENTION_DURATION,
        "How long files are kept after they left the table.",
        "interval 1 week",
    ),
    _duration(
        keys.SET_TRANSACTION_RETENTION_DURATION, "How long application versions are remembered."
    ),
    _duration(
        keys.TRUNCATE_HISTORY_RETENTION_DURATION,
        "How long history is kept when it is truncated to drop a feature.",
        "interval 24 hours",
    ),
    _flag(
        keys.ENABLE_EXPIRED_LOG_CLEANUP,
        "Delete expired history after the checkpoint of a commit.",
        "true",
    ),
    _flag(keys.ENABLE_FULL_RETENTION_ROLLBACK, "Keep all that restoring may need.", "true"),
    _flag(keys.ENABLE_ROW_TRACKING, "Give rows stable ids."),
    _flag(keys.ROW_TRACKING_SUSPENDED, "Give new files no row ids.", reserved=True),
    _text(
        keys.MATERIALIZED_ROW_ID,
        "The column that row ids are stored in.",
        reserved=True,
    ),
    _text(
        keys.MATERIALIZED_ROW_COMMIT_VERSION,
        "The column that row commit versions are stored in.",
        reserved=True,
    ),
    Property(
        key=keys.ISOLATION_LEVEL,
        parse=as_.one_of("Serializable", "WriteSerializable"),
        default="WriteSerializable",
        description="How strictly concurrent writers are kept apart.",
    ),
    _number(
        keys.DATA_SKIPPING_NUM_INDEXED_COLS,
        "Leading columns to collect statistics on; -1 for all.",
        "32",
        low=-1,
    ),
    Property(
        key=keys.DATA_SKIPPING_STATS_COLUMNS,
        parse=as_.names(),
        description="Columns to collect statistics on, instead of the leading ones.",
    ),
    _flag(keys.ENABLE_IN_COMMIT_TIMESTAMPS, "Write timestamps into commits."),
    _number(
        keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
        "The first version with a timestamp in its commit.",
        reserved=True,
    ),
    _number(
        keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
        "The timestamp of that version.",
        reserved=True,
    ),
    _flag(keys.CHECKPOINT_WRITE_STATS_AS_JSON, "Statistics as JSON in checkpoints.", "true"),
    _flag(keys.CHECKPOINT_WRITE_STATS_AS_STRUCT, "Statistics as columns in checkpoints.", "true"),
    _flag(keys.ENABLE_TYPE_WIDENING, "Allow wider types without rewriting files."),
    _flag(keys.ENABLE_VARIANT_SHREDDING, "Store parts of variants as typed columns."),
    _flag(keys.ENABLE_ICEBERG_COMPAT_V1, "Keep the table convertible to Iceberg v1."),
    _flag(keys.ENABLE_ICEBERG_COMPAT_V2, "Keep the table convertible to Iceberg v2."),
    _flag(keys.ENABLE_ICEBERG_COMPAT_V3, "Keep the table convertible to Iceberg v3."),
    _flag(keys.ENABLE_ICEBERG_WRITER_COMPAT_V1, "Let Iceberg v2 writers write the table."),
    _flag(keys.ENABLE_ICEBERG_WRITER_COMPAT_V3, "Let Iceberg v3 writers write the table."),
    _flag(keys.ENABLE_MATERIALIZE_PARTITION_COLUMNS, "Partition columns in the files."),
    Property(
        key=keys.ENABLED_FORMATS,
        parse=as_.names("iceberg", "hudi"),
        description="The other formats to keep metadata in.",
    ),
    _flag(keys.CAST_ICEBERG_TIME_TYPE, "Read Iceberg's time type as a number."),
    Property(key=keys.TARGET_FILE_SIZE, parse=as_.size, description="Bytes to aim at per file."),
    _flag(keys.TUNE_FILE_SIZES_FOR_REWRITES, "Prefer smaller files where rewrites are many."),
    Property(key=keys.AUTO_OPTIMIZE, parse=as_.boolean, description="Optimise writes and compact."),
    Property(
        key=keys.AUTO_OPTIMIZE_AUTO_COMPACT,
        parse=as_.one_of("true", "false", "auto"),
        description="Compact small files after writing.",
    ),
    Property(
        key=keys.AUTO_OPTIMIZE_OPTIMIZE_WRITE,
        parse=as_.boolean,
        description="Gather rows into fewer files while writing.",
    ),
    _flag(keys.RANDOMIZE_FILE_PREFIXES, "Spread files over random folders."),
    _number(keys.RANDOM_PREFIX_LENGTH, "Length of the names of such folders.", "2", low=1),
    _flag(keys.SYMLINK_FORMAT_MANIFEST_ENABLED, "Keep manifests for old engines."),
    _number(
        keys.REQUIRE_CHECKPOINT_PROTECTION,
        "History before this version must be cleaned up as a whole.",
        "0",
        reserved=True,
        kept="dropping a feature sets it, and cleanup would delete what it protects",
    ),
    Property(
        key=keys.PARQUET_COMPRESSION_CODEC,
        parse=as_.one_of(
            "uncompressed", "none", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd"
        ),
        description="How data files are compressed.",
    ),
    _text(
        keys.COMMIT_COORDINATOR,
        "The coordinator of commits.",
        reserved=True,
    ),
    *(
        Property(key=key, parse=as_.json_object, reserved=True, description=description)
        for key, description in (
            (
                keys.COMMIT_COORDINATOR_CONF,
                "Settings of the coordinator.",
            ),
            (keys.COORDINATED_COMMITS_TABLE_CONF, "What the coordinator calls the table."),
            (keys.REDIRECT_READER_WRITER, "Where readers and writers are sent."),
            (keys.REDIRECT_WRITER_ONLY, "Where writers are sent."),
        )
    ),
    _number(
        keys.MIN_READER_VERSION, "Raise the reader version; steers the protocol, is not stored."
    ),
    _number(
        keys.MIN_WRITER_VERSION, "Raise the writer version; steers the protocol, is not stored."
    ),
    _flag(
        keys.IGNORE_PROTOCOL_DEFAULTS,
        "Start a new table from (1, 1); steers the protocol, is not stored.",
    ),
    Property(
        key=keys.PARTITION_TIME_ZONE,
        parse=as_.time_zone,
        default="UTC",
        description="The zone of partition timestamps that other writers spelt without one.",
    ),
    Property(
        key=keys.ICEBERG_SYNC,
        parse=as_.one_of("commit", "none"),
        default="none",
        description="Whether Iceberg metadata is made with every commit of twinlake (`commit`).",
    ),
    Property(
        key=keys.ICEBERG_POSITION_DELETES,
        parse=as_.one_of("apply", "refuse"),
        default="apply",
        description="What becomes of position deletes that an Iceberg client commits in format "
        "version 2: the data files are rewritten in the same commit (`apply`), or the commit is "
        "refused (`refuse`).",
    ),
    _text(
        keys.ICEBERG_PUBLISH,
        "The name in a catalog that follows the Iceberg metadata.",
        reserved=True,
    ),
)

PROPERTIES: Final[Mapping[str, Property[Any]]] = MappingProxyType({row.key: row for row in _ROWS})
"""Every known property by its key: those of ``delta.*`` and a few of our own."""

_FOLDED: Final = {key.lower(): key for key in PROPERTIES}

_SECRET: Final = re.compile(
    r"passw(or)?d|secret|token|credential|private[._-]?key|access[._-]?key|account[._-]?key"
    r"|api[._-]?key|shared[._-]?key|encryption[._-]?key|(^|[._-])sas([._-]|$)|signature",
    re.IGNORECASE,
)


def canonical_key(key: str) -> str:
    """The key as it is stored: known ``delta.*`` keys in their one spelling.

    >>> canonical_key("DELTA.appendonly")
    'delta.appendOnly'
    """
    folded = key.lower()
    if folded in _FOLDED:
        return _FOLDED[folded]
    if folded.startswith(keys.FEATURE_PREFIX):
        name = key[len(keys.FEATURE_PREFIX) :]
        feature = find_feature(name)
        return keys.FEATURE_PREFIX + (feature.name if feature else name)
    if folded.startswith(keys.CONSTRAINTS_PREFIX):
        return keys.CONSTRAINTS_PREFIX + key[len(keys.CONSTRAINTS_PREFIX) :]
    requested = iceberg_key(key)
    return key if requested is None else ICEBERG_PREFIX + requested


def property_value(metadata: Metadata, key: str) -> Any:
    """The value in force of a known property, parsed.

    >>> from twinlake.protocol import Metadata
    >>> property_value(Metadata(), "delta.checkpointInterval")
    10
    """
    return PROPERTIES[key].value(metadata)


def partition_zone(metadata: Metadata) -> tzinfo:
    """The zone of partition timestamps of the table that do not say theirs.

    >>> from twinlake.protocol import Metadata
    >>> partition_zone(Metadata())
    datetime.timezone.utc
    """
    zone: tzinfo = property_value(metadata, keys.PARTITION_TIME_ZONE)
    return zone


def snapshot_age_ms(metadata: Metadata) -> int:
    """How long Delta keeps a version whole: its files and its log entries."""
    return min(int(property_value(metadata, name)) for name in RETENTION_KEYS)


def is_secret(key: str) -> bool:
    """Whether the value under this key looks like a credential and must not be displayed.

    >>> is_secret("fs.s3a.secret.key"), is_secret("delta.appendOnly")
    (True, False)
    """
    return _SECRET.search(key) is not None


def render_property_table() -> str:
    """The known properties as a Markdown table, for the documentation."""
    lines = ["| Property | Default | Set by | What it is |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{row.key}` | {'-' if row.default is None else f'`{row.default}`'} "
        f"| {'the system' if row.reserved else 'people'} | {row.description} |"
        for row in _ROWS
    ]
    return "\n".join(lines) + "\n"
