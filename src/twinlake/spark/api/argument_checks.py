"""Arguments of the wrong type, refused with the Python errors that Delta's own package raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from twinlake.storage import Location

__all__ = [
    "check_clone",
    "check_hadoop_conf",
    "check_integer",
    "check_source",
    "check_text",
    "check_truth",
    "check_versions",
]

_READER_VERSIONS: Final = range(1, 4)
_WRITER_VERSIONS: Final = range(1, 8)
_HADOOP_PREFIXES: Final = ("fs.", "dfs.")


def check_text(value: object, name: str) -> None:
    """A string."""
    if not isinstance(value, str):
        raise ValueError(f"{name} needs to be a string but got '{type(value)}'.")


def check_integer(value: object, name: str) -> None:
    """A whole number."""
    if not isinstance(value, int):
        raise ValueError(f"{name} needs to be an int but got '{type(value)}'.")


def check_truth(value: object, name: str) -> None:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} needs to be a boolean but got '{type(value)}'.")


def check_versions(reader: object, writer: object) -> None:
    """Protocol versions that exist."""
    check_integer(reader, "readerVersion")
    check_integer(writer, "writerVersion")
    if reader not in _READER_VERSIONS or writer not in _WRITER_VERSIONS:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There are no protocol versions {reader},{writer}.",
            why="reader versions are 1 to 3 and writer versions 1 to 7",
            fix="Add features by name instead: `DeltaTable.addFeatureSupport(NAME)`.",
            fields={"reader": reader, "writer": writer},
        )


def check_source(source: object) -> None:
    """A frame to merge from."""
    if source is None:
        raise ValueError("'source' in merge cannot be None")
    if not isinstance(source, DataFrame):
        raise TypeError("Type of 'source' in merge must be DataFrame.")


def check_clone(target: object, shallow: object, replace: object, properties: Any) -> None:
    """The arguments that all ways of cloning share."""
    check_text(target, "target")
    check_truth(shallow, "isShallow")
    check_truth(replace, "replace")
    if properties is None:
        return
    if not isinstance(properties, dict):
        raise ValueError(f"properties needs to be a dict but got '{type(properties)}'.")
    for key, value in properties.items():
        check_text(key, f"All property keys including {key}")
        check_text(value, f"All property values including {value}")


def check_hadoop_conf(spark: SparkSession, location: Location, conf: Mapping[str, str]) -> None:
    """Hadoop settings for one table: only those that the session has as well.

    Spark reads and writes the table's files under the session's settings, so others would hold
    for the log alone.
    """
    unknown = sorted(key for key in conf if not key.startswith(_HADOOP_PREFIXES))
    if unknown:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"DeltaTable.forPath does not take {', '.join(unknown)}.",
            why="only settings of Hadoop's file systems can be given there",
            fix="Set it on the session: `spark.conf.set(KEY, VALUE)`.",
            delta_class="DELTA_TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
            fields={"keys": unknown},
        )
    if not conf or location.scheme == "file":
        return
    jsession: Any = spark._jsparkSession
    session = jsession.sessionState().newHadoopConf()
    other = sorted(key for key, value in conf.items() if session.get(key) != str(value))
    if other:
        raise UserError(
            Code.NOT_YET,
            f"{', '.join(other)} cannot be given for one table yet.",
            why="the table's files are read and written under the session's settings",
            fix='Set it for the session: `SparkSession.builder.config("spark.hadoop.KEY", '
            "VALUE)` before it starts, or `spark.conf.set(KEY, VALUE)`.",
            fields={"keys": other},
        )
