"""The session settings of Delta Spark that twinlake reads, and its own: one row each.

A setting that is not listed is ignored, as a session ignores any name it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.spark.session import session_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "FEED_OUT_OF_RANGE",
    "RETENTION_CHECK",
    "SETTINGS",
    "SHOW_VALUES",
    "SessionSetting",
    "feed_schema_mode",
    "may_read_out_of_range",
    "retention_check",
    "setting_text",
    "show_values",
    "user_metadata",
]

_DELTA: Final = "spark.databricks.delta."
SHOW_VALUES: Final = "spark.twinlake.errors.showValues"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSetting:
    """One session setting."""

    name: str
    """The full name; a ``*`` at the end stands for any rest."""
    meaning: str
    default: str | None
    """None where nothing happens unless it is set."""
    used_by: tuple[str, ...]
    """The modules of ``twinlake.spark`` that read it."""


RETENTION_CHECK: Final = f"{_DELTA}retentionDurationCheck.enabled"

FEED_OUT_OF_RANGE: Final = f"{_DELTA}changeDataFeed.timestampOutOfRange.enabled"
_FEED_SCHEMA: Final = f"{_DELTA}changeDataFeed.defaultSchemaModeForColumnMappingTable"
_FEED_SCHEMAS: Final = {mode.lower(): mode for mode in ("endVersion", "latest", "legacy")}

SETTINGS: Final[tuple[SessionSetting, ...]] = (
    SessionSetting(
        name=RETENTION_CHECK,
        meaning="Refuse a VACUUM that keeps less than delta.deletedFileRetentionDuration.",
        default="true",
        used_by=("twinlake.spark.delta_settings",),
    ),
    SessionSetting(
        name=f"{_DELTA}commitInfo.userMetadata",
        meaning="A note in the commits of writes, DELETE, UPDATE, MERGE, RESTORE and of new "
        "tables, unless the call has its own.",
        default=None,
        used_by=("twinlake.spark.delta_settings", "twinlake.spark.dml.write"),
    ),
    SessionSetting(
        name=f"{_DELTA}schema.autoMerge.enabled",
        meaning="Writes and MERGE add the columns that the table lacks.",
        default="false",
        used_by=("twinlake.spark.dml.write", "twinlake.spark.dml.merge.execution"),
    ),
    SessionSetting(
        name=f"{_DELTA}properties.defaults.*",
        meaning="Table properties that every new table gets, without the leading delta.: "
        "properties.defaults.enableDeletionVectors, properties.defaults.minReaderVersion, "
        "properties.defaults.feature.<name>.",
        default=None,
        used_by=("twinlake.spark.session.settings",),
    ),
    SessionSetting(
        name=f"{_DELTA}optimize.*",
        meaning="How OPTIMIZE packs: minFileSize, maxFileSize, maxDeletedRowsRatio.",
        default=None,
        used_by=("twinlake.spark.maintenance.optimize",),
    ),
    SessionSetting(
        name=FEED_OUT_OF_RANGE,
        meaning="Changes that start beyond the latest version are no rows, and those that end "
        "after it end with it; else both are errors.",
        default="false",
        used_by=("twinlake.spark.delta_settings",),
    ),
    SessionSetting(
        name=_FEED_SCHEMA,
        meaning="The columns of changes of a table with column mapping: endVersion, those at the "
        "end of the range, or latest (legacy means the same).",
        default="endVersion",
        used_by=("twinlake.spark.delta_settings",),
    ),
    SessionSetting(
        name="spark.sql.sources.partitionOverwriteMode",
        meaning="dynamic: an overwrite replaces only the partitions it has rows for.",
        default="static",
        used_by=("twinlake.spark.dml.write",),
    ),
    SessionSetting(
        name="spark.sql.warehouse.dir",
        meaning="Where tables that are created by name alone are put.",
        default="spark-warehouse",
        used_by=("twinlake.spark.api.catalog",),
    ),
    SessionSetting(
        name="spark.twinlake.upgradePolicy",
        meaning="How the protocol grows: bundled, or minimal as Delta Spark does it.",
        default="bundled",
        used_by=("twinlake.spark.session.settings",),
    ),
    SessionSetting(
        name=SHOW_VALUES,
        meaning="Errors about a row show values of its columns: of violated constraints, of "
        "replace_where and of values that do not fit their column.",
        default="false",
        used_by=("twinlake.spark.delta_settings",),
    ),
    SessionSetting(
        name="spark.twinlake.catalog",
        meaning="The SQLite file with the names of tables; else TWINLAKE_CATALOG, else "
        "~/.twinlake/catalog.db.",
        default=None,
        used_by=("twinlake.spark.api.catalog",),
    ),
)
"""Every setting that has an effect; the reference page is made from it."""

_BY_NAME: Final = {setting.name: setting for setting in SETTINGS}
_FLAGS: Final = {"true": True, "false": False}


def setting_text(spark: SparkSession, name: str) -> str | None:
    """The session's value, or the default; None if there is neither."""
    known = _BY_NAME[name]
    return session_conf(spark, name, known.default or "") or None


def _flag(spark: SparkSession, name: str) -> bool:
    text = setting_text(spark, name) or ""
    found = _FLAGS.get(text.strip().lower())
    if found is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The session setting {name} is {text!r}.",
            why="it is true or false",
            fix=f"Run `spark.conf.set({name!r}, 'true')` or `spark.conf.set({name!r}, 'false')`.",
            fields={"setting": name, "value": text},
        )
    return found


def retention_check(spark: SparkSession) -> bool:
    """Whether VACUUM refuses retentions that are too short."""
    return _flag(spark, RETENTION_CHECK)


def show_values(spark: SparkSession) -> bool:
    """Whether errors about rows may show values of them."""
    return _flag(spark, SHOW_VALUES)


def user_metadata(spark: SparkSession) -> str | None:
    """The note for ``commitInfo`` of the session's commits."""
    return setting_text(spark, f"{_DELTA}commitInfo.userMetadata")


def may_read_out_of_range(spark: SparkSession) -> bool:
    """Whether a feed may be asked for versions that the table does not have yet."""
    return _flag(spark, FEED_OUT_OF_RANGE)


def feed_schema_mode(spark: SparkSession) -> str:
    """Which columns the feed of a table with column mapping has."""
    text = setting_text(spark, _FEED_SCHEMA) or ""
    found = _FEED_SCHEMAS.get(text.strip().lower())
    if found is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The session setting {_FEED_SCHEMA} is {text!r}.",
            why="it is endVersion, latest or legacy",
            fix=f"Run `spark.conf.set({_FEED_SCHEMA!r}, 'endVersion')`.",
            fields={"setting": _FEED_SCHEMA, "value": text},
        )
    return found
