"""The table properties that are known, and how they are checked before they are stored.

A wrong value must fail when it is set, never when somebody reads the table later; so reading is
lenient (an unreadable stored value falls back to the default) and setting is strict.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from twinlake.errors import Code, UserError, how_to_upgrade, listed
from twinlake.protocol.properties import value_parsers as as_
from twinlake.protocol.properties.iceberg import (
    COPY_ON_WRITE,
    HISTORY_AGE,
    ICEBERG_PREFIX,
    iceberg_key,
    iceberg_wishes,
    wish_problem,
)
from twinlake.protocol.registry import FEATURES, find_feature
from twinlake.protocol.triggers import CONSTRAINTS_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import tzinfo

    from twinlake.protocol.metadata import Metadata

__all__ = [
    "FEATURE_PREFIX",
    "IGNORE_PROTOCOL_DEFAULTS",
    "MIN_READER_VERSION",
    "MIN_WRITER_VERSION",
    "PARTITION_TIME_ZONE",
    "PROPERTIES",
    "Property",
    "canonical_key",
    "is_secret",
    "parse_properties",
    "partition_zone",
    "property_value",
    "refuse_iceberg_wishes",
    "render_property_table",
    "snapshot_age_ms",
]

T = TypeVar("T")

FEATURE_PREFIX: Final = "delta.feature."
MIN_READER_VERSION: Final = "delta.minReaderVersion"
MIN_WRITER_VERSION: Final = "delta.minWriterVersion"
IGNORE_PROTOCOL_DEFAULTS: Final = "delta.ignoreProtocolDefaults"
PARTITION_TIME_ZONE: Final = "twinlake.partitionTimeZone"
MAX_VALUE_BYTES: Final = 1_000_000
MAX_KEY_BYTES: Final = 4_096
_DELTA: Final = "delta."
_RETENTIONS: Final = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Property(Generic[T]):
    """A known property: its parser, its default and what it does."""

    key: str
    parse: Callable[[str], T]
    default: str | None = None
    reserved: bool = False
    """Kept by the system; a person has no reason to set it."""
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
    _flag("delta.appendOnly", "Rows can only be added."),
    _flag("delta.enableChangeDataFeed", "Record row-level changes."),
    _flag("delta.enableDeletionVectors", "Mark deleted rows instead of rewriting files."),
    Property(
        key="delta.columnMapping.mode",
        parse=as_.one_of("none", "name", "id"),
        default="none",
        description="How columns are found in the files.",
    ),
    _number("delta.columnMapping.maxColumnId", "The highest column id given.", reserved=True),
    _flag(
        "delta.columnMapping.hasDroppedOrRenamed",
        "Whether a column was dropped or renamed.",
        reserved=True,
    ),
    _number("delta.checkpointInterval", "Commits between two checkpoints.", "10", low=1),
    Property(
        key="delta.checkpointPolicy",
        parse=as_.one_of("classic", "v2"),
        default="classic",
        description="The kind of checkpoint to write.",
    ),
    _duration("delta.logRetentionDuration", "How long history is kept.", "interval 30 days"),
    _duration("delta.checkpointRetentionDuration", "How long checkpoints are kept."),
    _duration("delta.sampleRetentionDuration", "How long sampled statistics are kept."),
    _duration(
        "delta.deletedFileRetentionDuration",
        "How long files are kept after they left the table.",
        "interval 1 week",
    ),
    _duration(
        "delta.setTransactionRetentionDuration", "How long application versions are remembered."
    ),
    _duration(
        "delta.dropFeatureTruncateHistory.retentionDuration",
        "How long history is kept when it is truncated to drop a feature.",
        "interval 24 hours",
    ),
    _flag(
        "delta.enableExpiredLogCleanup",
        "Delete expired history after the checkpoint of a commit.",
        "true",
    ),
    _flag("delta.enableFullRetentionRollback", "Keep all that restoring may need.", "true"),
    _flag("delta.enableRowTracking", "Give rows stable ids."),
    _flag("delta.rowTrackingSuspended", "Give new files no row ids.", reserved=True),
    _text(
        "delta.rowTracking.materializedRowIdColumnName",
        "The column that row ids are stored in.",
        reserved=True,
    ),
    _text(
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        "The column that row commit versions are stored in.",
        reserved=True,
    ),
    Property(
        key="delta.isolationLevel",
        parse=as_.one_of("Serializable", "WriteSerializable"),
        default="WriteSerializable",
        description="How strictly concurrent writers are kept apart.",
    ),
    _number(
        "delta.dataSkippingNumIndexedCols",
        "Leading columns to collect statistics on; -1 for all.",
        "32",
        low=-1,
    ),
    Property(
        key="delta.dataSkippingStatsColumns",
        parse=as_.names(),
        description="Columns to collect statistics on, instead of the leading ones.",
    ),
    _flag("delta.enableInCommitTimestamps", "Write timestamps into commits."),
    _number(
        "delta.inCommitTimestampEnablementVersion",
        "The first version with a timestamp in its commit.",
        reserved=True,
    ),
    _number(
        "delta.inCommitTimestampEnablementTimestamp",
        "The timestamp of that version.",
        reserved=True,
    ),
    _flag("delta.checkpoint.writeStatsAsJson", "Statistics as JSON in checkpoints.", "true"),
    _flag("delta.checkpoint.writeStatsAsStruct", "Statistics as columns in checkpoints.", "true"),
    _flag("delta.enableTypeWidening", "Allow wider types without rewriting files."),
    _flag("delta.enableVariantShredding", "Store parts of variants as typed columns."),
    _flag("delta.enableIcebergCompatV1", "Keep the table convertible to Iceberg v1."),
    _flag("delta.enableIcebergCompatV2", "Keep the table convertible to Iceberg v2."),
    _flag("delta.enableIcebergCompatV3", "Keep the table convertible to Iceberg v3."),
    _flag("delta.enableIcebergWriterCompatV1", "Let Iceberg v2 writers write the table."),
    _flag("delta.enableIcebergWriterCompatV3", "Let Iceberg v3 writers write the table."),
    _flag("delta.enableMaterializePartitionColumnsFeature", "Partition columns in the files."),
    Property(
        key="delta.universalFormat.enabledFormats",
        parse=as_.names("iceberg", "hudi"),
        description="The other formats to keep metadata in.",
    ),
    _flag("delta.castIcebergTimeType", "Read Iceberg's time type as a number."),
    Property(key="delta.targetFileSize", parse=as_.size, description="Bytes to aim at per file."),
    _flag("delta.tuneFileSizesForRewrites", "Prefer smaller files where rewrites are many."),
    Property(
        key="delta.autoOptimize", parse=as_.boolean, description="Optimise writes and compact."
    ),
    Property(
        key="delta.autoOptimize.autoCompact",
        parse=as_.one_of("true", "false", "auto"),
        description="Compact small files after writing.",
    ),
    Property(
        key="delta.autoOptimize.optimizeWrite",
        parse=as_.boolean,
        description="Gather rows into fewer files while writing.",
    ),
    _flag("delta.randomizeFilePrefixes", "Spread files over random folders."),
    _number("delta.randomPrefixLength", "Length of the names of such folders.", "2", low=1),
    _flag("delta.compatibility.symlinkFormatManifest.enabled", "Keep manifests for old engines."),
    _number(
        "delta.requireCheckpointProtectionBeforeVersion",
        "History before this version must be cleaned up as a whole.",
        "0",
        reserved=True,
    ),
    Property(
        key="delta.parquet.compression.codec",
        parse=as_.one_of(
            "uncompressed", "none", "snappy", "gzip", "lzo", "brotli", "lz4", "lz4_raw", "zstd"
        ),
        description="How data files are compressed.",
    ),
    _text(
        "delta.coordinatedCommits.commitCoordinator-preview",
        "The coordinator of commits.",
        reserved=True,
    ),
    *(
        Property(key=key, parse=as_.json_object, reserved=True, description=description)
        for key, description in (
            (
                "delta.coordinatedCommits.commitCoordinatorConf-preview",
                "Settings of the coordinator.",
            ),
            ("delta.coordinatedCommits.tableConf-preview", "What the coordinator calls the table."),
            ("delta.redirectReaderWriter-preview", "Where readers and writers are sent."),
            ("delta.redirectWriterOnly-preview", "Where writers are sent."),
        )
    ),
    _number(MIN_READER_VERSION, "Raise the reader version; steers the protocol, is not stored."),
    _number(MIN_WRITER_VERSION, "Raise the writer version; steers the protocol, is not stored."),
    _flag(
        IGNORE_PROTOCOL_DEFAULTS,
        "Start a new table from (1, 1); steers the protocol, is not stored.",
    ),
    Property(
        key=PARTITION_TIME_ZONE,
        parse=as_.time_zone,
        default="UTC",
        description="The zone of partition timestamps that other writers spelt without one.",
    ),
    Property(
        key="twinlake.iceberg.sync",
        parse=as_.one_of("commit", "none"),
        default="none",
        description="Whether Iceberg metadata is made with every commit of twinlake (`commit`).",
    ),
    _text(
        "twinlake.iceberg.publish",
        "The name in a catalog that follows the Iceberg metadata.",
        reserved=True,
    ),
)

PROPERTIES: Final[Mapping[str, Property[Any]]] = MappingProxyType({row.key: row for row in _ROWS})
"""Every known property by its key: those of ``delta.*`` and a few of our own."""

_FOLDED: Final = {key.lower(): key for key in PROPERTIES}
# Properties whose stored text other engines compare as it is, so that case must be the listed one.
_SPELLED: Final = frozenset(
    {"delta.columnMapping.mode", "delta.checkpointPolicy", "delta.isolationLevel"}
)

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
    if folded.startswith(FEATURE_PREFIX):
        name = key[len(FEATURE_PREFIX) :]
        feature = find_feature(name)
        return FEATURE_PREFIX + (feature.name if feature else name)
    if folded.startswith(CONSTRAINTS_PREFIX):
        return CONSTRAINTS_PREFIX + key[len(CONSTRAINTS_PREFIX) :]
    wish = iceberg_key(key)
    return key if wish is None else ICEBERG_PREFIX + wish


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
    zone: tzinfo = property_value(metadata, PARTITION_TIME_ZONE)
    return zone


def parse_properties(properties: Mapping[str, object]) -> dict[str, str]:
    """The properties in their stored spelling; raises once, naming everything that is wrong.

    >>> parse_properties({"delta.APPENDONLY": True, "owner": "me"})
    {'delta.appendOnly': 'true', 'owner': 'me'}
    """
    result: dict[str, str] = {}
    problems: list[_Problem] = []
    for raw_key, raw_value in properties.items():
        key = canonical_key(str(raw_key))
        value = _as_text(raw_value)
        problem = _check(key, value, raw_value)
        if problem is None and key in result and result[key] != value:
            problem = _Problem(key, "is given twice, with different values")
        if problem is not None:
            problems.append(problem)
        elif value is not None:
            result[key] = PROPERTIES[key].parse(value) if key in _SPELLED else value
    if problems:
        _refuse(problems)
    return result


def snapshot_age_ms(metadata: Metadata) -> int:
    """How long Delta promises to keep a version whole: its files, and the log that tells of it."""
    return min(int(property_value(metadata, name)) for name in _RETENTIONS)


def refuse_iceberg_wishes(metadata: Metadata, given: Iterable[str]) -> None:
    """Refuse what the keys given ask of the Iceberg side and the table cannot keep.

    The metadata is that with the keys set.
    """
    wishes = iceberg_wishes(metadata.configuration)
    longest = snapshot_age_ms(metadata)
    is_v2 = any(metadata.flag(f"delta.enableIcebergCompatV{version}") for version in (1, 2))
    problems = []
    for key in given:
        name = iceberg_key(key)
        value = wishes.get(name) if name is not None else None
        if name is None or value is None:
            continue
        if name == HISTORY_AGE and int(value) > longest:
            problems.append(
                _Problem(
                    key,
                    f"must be at most {longest}, not {value}: Delta keeps files and history no "
                    "longer",
                    fix=f"Raise {' and '.join(map('`{}`'.format, _RETENTIONS))} first.",
                )
            )
        wanted = COPY_ON_WRITE.get(name)
        if is_v2 and wanted not in (None, value.lower()):
            problems.append(
                _Problem(
                    key,
                    f"must be {wanted} in format version 2, whose delete files Delta cannot have",
                    fix=f"Set it to `{wanted}`, or run {how_to_upgrade('icebergCompatV3')}.",
                )
            )
    if problems:
        _refuse(problems)


@dataclass(frozen=True, slots=True)
class _Problem:
    key: str
    text: str
    fix: str = ""
    delta_class: str | None = None
    code: Code = Code.PROPERTY_INVALID


def _as_text(value: object) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int():
            return str(value) if abs(value) < 10**30 else None
        case _:
            return None


def _check(key: str, value: str | None, raw: object) -> _Problem | None:
    if not key.strip():
        return _Problem(repr(key)[:80], "is not a usable key")
    shown = key if len(key) <= 200 else key[:200] + "…"
    if len(key.encode("utf-8", "replace")) > MAX_KEY_BYTES:
        return _Problem(shown, f"has a key longer than {MAX_KEY_BYTES} bytes")
    if value is None:
        return _Problem(shown, f"needs text, not {type(raw).__name__}")
    try:
        length = len(value.encode())
        key.encode()
    except UnicodeEncodeError:
        return _Problem(shown, "holds text that is not valid Unicode")
    if length > MAX_VALUE_BYTES:
        return _Problem(shown, f"is {length:,} bytes long; at most {MAX_VALUE_BYTES:,} are stored")
    if not key.lower().startswith(_DELTA) and key not in PROPERTIES:
        return None
    if key.startswith(FEATURE_PREFIX):
        return _check_feature(key.removeprefix(FEATURE_PREFIX), value)
    if key.startswith(CONSTRAINTS_PREFIX):
        bad = not key.removeprefix(CONSTRAINTS_PREFIX).strip() or not value.strip()
        return _Problem(shown, "needs a name and an expression") if bad else None
    name = iceberg_key(key)
    if name is not None:
        text = wish_problem(name, value)
        return _Problem(shown, text, fix="Leave it out, or correct it.") if text else None
    known = PROPERTIES.get(key)
    if known is None:
        return _unknown(shown)
    try:
        known.parse(value)
    except ValueError as error:
        version = key in {MIN_READER_VERSION, MIN_WRITER_VERSION}
        return _Problem(
            key,
            f"must be {error}, not {value[:80]!r}",
            delta_class="DELTA_PROTOCOL_PROPERTY_NOT_INT" if version else None,
        )
    return None


def _check_feature(name: str, status: str) -> _Problem | None:
    key = FEATURE_PREFIX + name
    if name not in FEATURES:
        near = _nearest(name, FEATURES)
        return _Problem(
            key,
            "names a feature that is not known",
            fix=f"Did you mean `{FEATURE_PREFIX}{near}`?" if near else "",
            delta_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
            code=Code.FEATURE_UNKNOWN,
        )
    if status.lower() not in {"supported", "enabled"}:
        return _Problem(
            key,
            f"must be supported, not {status[:80]!r}",
            delta_class="DELTA_UNSUPPORTED_FEATURE_STATUS",
        )
    return None


def _unknown(key: str) -> _Problem:
    near = _nearest(key, PROPERTIES)
    return _Problem(
        key,
        "is not a known delta property",
        fix=f"Did you mean `{near}`?" if near else "Keys of your own must not start with `delta.`",
        delta_class="DELTA_UNKNOWN_CONFIGURATION",
    )


def _nearest(name: str, known: Iterable[str]) -> str | None:
    folded = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower()[:200], folded, n=1, cutoff=0.7)
    return folded[found[0]] if found else None


def _refuse(problems: list[_Problem]) -> None:
    first = problems[0]
    many = len(problems) > 1
    fixes = dict.fromkeys(problem.fix for problem in problems if problem.fix)
    raise UserError(
        first.code,
        f"{len(problems)} properties cannot be set."
        if many
        else f"Property {first.key} cannot be set.",
        why=listed(f"{problem.key} {problem.text}" for problem in problems) + ".",
        fix=listed(fixes, " ") or "Correct the value.",
        delta_class=next((p.delta_class for p in problems if p.delta_class), None),
        fields={"properties": [problem.key for problem in problems]},
    )


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
