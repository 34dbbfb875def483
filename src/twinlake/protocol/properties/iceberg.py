"""Properties of the Iceberg side that a table asks for, and which of them it may have.

They are kept among the table's own under a prefix. Some are for twinlake to set, because readers,
writers and our own cleaning go by them: those are refused when somebody sets them, and left out
where another engine has set them all the same. So are values that would make Iceberg's libraries
fail.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from twinlake.protocol.properties import value_parsers as as_

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "COPY_ON_WRITE",
    "HISTORY_AGE",
    "ICEBERG_PREFIX",
    "SERIALIZABLE",
    "iceberg_key",
    "iceberg_property_problem",
    "is_reserved_for_iceberg",
    "requested_iceberg_properties",
]

ICEBERG_PREFIX: Final = "delta.universalFormat.config.iceberg."
HISTORY_AGE: Final = "history.expire.max-snapshot-age-ms"
COPY_ON_WRITE: Final = MappingProxyType(
    {f"write.{kind}.mode": "copy-on-write" for kind in ("delete", "update", "merge")}
)
"""What format version 2 writes by: its other way of deleting rows has no form in Delta."""
SERIALIZABLE: Final = MappingProxyType(
    {f"write.{kind}.isolation-level": "serializable" for kind in ("delete", "update", "merge")}
)
"""What Iceberg clients validate by; a weaker level loses rows without a conflict."""

#: What twinlake sets itself, and what Iceberg keeps for its own use.
_KEPT: Final = frozenset(
    {
        "base-delta-version",
        "gc.enabled",
        "schema.name-mapping.default",
        "write.data.path",
        "write.folder-storage.path",
        "write.format.default",
        "write.location-provider.impl",
        "write.metadata.path",
        "write.object-storage.path",
        "current-schema",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "default-partition-spec",
        "default-sort-order",
        "format-version",
        "snapshot-count",
        "uuid",
        *SERIALIZABLE,
    }
)
_KEPT_PREFIXES: Final = ("delta-", "delta.", "encryption.", "twinlake.")

_INT: Final = 2**31 - 1
_count: Final = as_.integer(0, _INT)
_positive: Final = as_.integer(1, _INT)
_long: Final = as_.integer(0)
_size: Final = as_.integer(1)
_mode: Final = as_.one_of("copy-on-write", "merge-on-read")

#: Properties that Iceberg's libraries read as something other than text.
_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    HISTORY_AGE: _long,
    "history.expire.min-snapshots-to-keep": _positive,
    "history.expire.max-ref-age-ms": _size,
    "commit.retry.num-retries": _count,
    "commit.retry.min-wait-ms": _count,
    "commit.retry.max-wait-ms": _count,
    "commit.retry.total-timeout-ms": _count,
    "commit.status-check.num-retries": _count,
    "commit.status-check.min-wait-ms": _long,
    "commit.status-check.max-wait-ms": _long,
    "commit.status-check.total-timeout-ms": _long,
    "commit.manifest.target-size-bytes": _size,
    "commit.manifest.min-count-to-merge": _count,
    "commit.manifest-merge.enabled": as_.boolean,
    "read.split.target-size": _size,
    "read.split.metadata-target-size": _size,
    "read.split.planning-lookback": _positive,
    "read.split.open-file-cost": _long,
    "read.split.adaptive-size.enabled": as_.boolean,
    "read.parquet.vectorization.enabled": as_.boolean,
    "read.parquet.vectorization.batch-size": _positive,
    "read.data-planning-mode": as_.one_of("auto", "local", "distributed"),
    "read.delete-planning-mode": as_.one_of("auto", "local", "distributed"),
    "write.delete.mode": _mode,
    "write.update.mode": _mode,
    "write.merge.mode": _mode,
    "write.distribution-mode": as_.one_of("none", "hash", "range"),
    "write.target-file-size-bytes": _size,
    "write.delete.target-file-size-bytes": _size,
    "write.object-storage.enabled": as_.boolean,
    "write.object-storage.partitioned-paths": as_.boolean,
    "write.spark.fanout.enabled": as_.boolean,
    "write.spark.accept-any-schema": as_.boolean,
    "write.metadata.previous-versions-max": _positive,
    "write.metadata.delete-after-commit.enabled": as_.boolean,
    "write.metadata.compression-codec": as_.one_of("none", "gzip"),
    "write.metadata.metrics.max-inferred-column-defaults": _count,
    "write.parquet.compression-codec": as_.one_of(
        "uncompressed", "snappy", "gzip", "lz4", "zstd", "brotli"
    ),
    "write.parquet.compression-level": as_.integer(-_INT, _INT),
    "write.parquet.row-group-size-bytes": _positive,
    "write.parquet.page-size-bytes": _positive,
    "write.parquet.page-row-limit": _positive,
    "write.parquet.dict-size-bytes": _positive,
    "write.parquet.row-group-check-min-record-count": _positive,
    "write.parquet.row-group-check-max-record-count": _positive,
    "write.parquet.bloom-filter-max-bytes": _positive,
}


def iceberg_key(key: str) -> str | None:
    """The name of a property on the Iceberg side; None where it is none of Iceberg's.

    >>> iceberg_key("delta.universalFormat.config.iceberg.write.distribution-mode")
    'write.distribution-mode'
    """
    is_requested = key.lower().startswith(ICEBERG_PREFIX.lower())
    return key[len(ICEBERG_PREFIX) :] if is_requested else None


def is_reserved_for_iceberg(name: str) -> bool:
    """Whether a property is not for people to set.

    >>> is_reserved_for_iceberg("twinlake.leftovers")
    True
    """
    folded = name.strip().lower()
    return folded in _KEPT or folded.startswith(_KEPT_PREFIXES)


def iceberg_property_problem(name: str, value: str) -> str:
    """Why a property may not be asked for; empty where it may.

    >>> iceberg_property_problem("commit.retry.num-retries", "many")
    "must be a whole number of at least 0, not 'many'"
    """
    if not name.strip():
        return "names no property"
    if is_reserved_for_iceberg(name):
        return "is said by the Iceberg metadata itself"
    parse = _PARSERS.get(name)
    try:
        _ = parse(value) if parse is not None else None
    except ValueError as error:
        return f"must be {error}, not {value[:80]!r}"
    return ""


def requested_iceberg_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """What a table asks for on the Iceberg side, as far as it may have it."""
    requested = {iceberg_key(key): value for key, value in sorted(configuration.items())}
    return {
        name: value
        for name, value in requested.items()
        if name is not None and not iceberg_property_problem(name, value)
    }
