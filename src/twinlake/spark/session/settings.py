"""A Spark session as the data plane needs it: pinned settings, the right store, the right policy.

Parquet settings of Spark are read when a job runs, not when it is planned, and a wrong one is
silent: columns come out null, timestamps come out as int96. So every relation we make and every
file we write belongs to an inner session, a clone of the user's whose four settings nobody else
can reach. The user's own session is left as it is (``enable`` sets the same values there, for
frames that users build themselves).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from twinlake.errors import Code, UserError
from twinlake.runtime import Runtime
from twinlake.spark.executor import SparkExecutor
from twinlake.spark.s3a_options import s3a_options
from twinlake.storage import parse_location
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = [
    "PINNED",
    "check_classic",
    "check_session",
    "default_properties",
    "inner_session",
    "open_table",
    "session_conf",
    "settings_of",
]

PINNED: Final[Mapping[str, str]] = {
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.streaming.fileStreamSink.ignoreMetadata": "false",
}
"""What reading by field id, writing int64 timestamps and file lists stand on."""

_PINNED_WRITES: Final[Mapping[str, str]] = {
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""What else files of a table stand on; it is nobody's business outside the inner session."""

_IGNORE_MISSING: Final = "spark.sql.parquet.fieldId.read.ignoreMissing"
_DEFAULTS: Final = "spark.databricks.delta.properties.defaults."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inner:
    """An inner session, with what brings it up to date in few calls: all of it lives in Java."""

    session: Any
    settings: Any
    users: Any
    """The settings of the user's session, as they are at any time."""
    pinned: Any
    java_map: Any

    @staticmethod
    def of(spark: SparkSession) -> _Inner:
        jvm: Any = spark._jvm
        jsession: Any = spark._jsparkSession
        session = jsession.cloneSession()
        java_map = jvm.java.util.HashMap
        pinned = java_map()
        for key, value in {**PINNED, **_PINNED_WRITES, _IGNORE_MISSING: "false"}.items():
            pinned.put(key, value)
        return _Inner(
            session=session,
            settings=session.sessionState().conf().settings(),
            users=jsession.sessionState().conf().settings(),
            pinned=pinned,
            java_map=java_map,
        )


_INNER: Final[WeakKeyDictionary[SparkSession, _Inner]] = WeakKeyDictionary()


def check_classic(spark: SparkSession) -> None:
    """Refuse a Spark Connect session."""
    if not hasattr(spark, "_jsparkSession"):
        raise UserError(
            Code.SPARK_REQUIRED,
            "twinlake needs a classic Spark session, and this one is a Spark Connect session.",
            why="files are listed and plans are built in the driver's own JVM, which a Connect "
            "client cannot reach",
            fix="Build the session with `SparkSession.builder.master(MASTER)` instead of "
            "`SparkSession.builder.remote(URL)`, and unset `SPARK_REMOTE` and "
            "`spark.api.mode`.",
            fields={"session": type(spark).__module__},
        )


def check_session(spark: SparkSession) -> None:
    """Refuse sessions that are not supported: Spark Connect, and lenient field ids."""
    check_classic(spark)
    if session_conf(spark, _IGNORE_MISSING, "false").lower() == "true":
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{_IGNORE_MISSING} is true, and tables cannot be read safely like that.",
            why="files without field ids would be read as nulls instead of being reported",
            fix=f"Run `spark.conf.set({_IGNORE_MISSING!r}, 'false')`.",
            fields={"setting": _IGNORE_MISSING},
        )


def inner_session(spark: SparkSession, *, with_listeners: bool = False) -> Any:
    """The JVM session that relations and written files belong to, settings up to date.

    ``with_listeners``: one with the listeners that the user's session has by now; a clone
    takes them over when it is made.
    """
    check_session(spark)
    inner = None if with_listeners else _INNER.get(spark)
    if inner is None:
        inner = _INNER[spark] = _Inner.of(spark)
    # One map, put in one step: no moment at which a job of ours could see the user's values.
    settings = inner.java_map(inner.users)
    settings.putAll(inner.pinned)
    inner.settings.putAll(settings)
    # A setting that the user unset is unset here too.
    inner.settings.keySet().retainAll(settings.keySet())
    return inner.session


def session_conf(spark: SparkSession, key: str, default: str) -> str:
    """A setting of the session, or the default where nobody set it."""
    value: str | None = spark.conf.get(key, default)
    return default if value is None else value


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """The settings of a session for tables."""

    spark: SparkSession
    policy: str
    options: Mapping[str, Any]

    @property
    def default_properties(self) -> Mapping[str, str]:
        """What the session wants every new table to have."""
        # Every setting of the session is some calls to Java away: only new tables need them.
        return default_properties(self.spark)


def settings_of(spark: SparkSession, path: str | os.PathLike[str]) -> SessionSettings:
    """The upgrade policy, and what the object store of ``path`` needs from Hadoop's settings."""
    # Everything begins here; further on a Connect session fails in words about attributes.
    check_classic(spark)
    return SessionSettings(
        spark=spark,
        policy=session_conf(spark, "spark.twinlake.upgradePolicy", "bundled"),
        options=_store_options(spark, os.fspath(path)),
    )


def default_properties(spark: SparkSession) -> dict[str, str]:
    """Delta's session settings for new tables, as table properties."""
    found: Mapping[str, str] = spark.conf.getAll
    return {
        f"delta.{key.removeprefix(_DEFAULTS)}": value
        for key, value in found.items()
        if key.startswith(_DEFAULTS)
    }


def open_table(
    spark: SparkSession,
    path: str | os.PathLike[str],
    version: int | None = None,
    timestamp: Any = None,
) -> Table:
    """The table at a path, with the session's store settings, policy and executor."""
    settings = settings_of(spark, path)
    runtime = Runtime(executor=SparkExecutor(spark))
    return Table.open(
        path,
        version,
        timestamp,
        policy=settings.policy,
        options=settings.options or None,
        runtime=runtime,
    )


def _store_options(spark: SparkSession, path: str) -> dict[str, Any]:
    """The settings of Spark's S3A connector as options of our own store."""
    location = parse_location(path)
    if location.scheme != "s3":
        return {}
    jsession: Any = spark._jsparkSession
    return s3a_options(location, jsession.sessionState().newHadoopConf().get)
