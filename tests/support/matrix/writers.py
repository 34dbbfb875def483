"""The writers of the matrix: who makes a table and who puts rows into it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.matrix.settings import FEATURES
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from tests.support.matrix.columns import Group

__all__ = ["WRITERS", "Writer", "session_settings"]


@dataclass(frozen=True, slots=True)
class Writer:
    """How a table is made, and how rows are appended to it."""

    name: str
    create: Callable[[SparkSession, Path, Group, Mapping[str, str]], None]
    append: Callable[[DataFrame, Path], None]
    finish: Callable[[SparkSession, Path, str], None] | None = None
    """What gives the table the compat feature after all rows are written; None if it has it."""
    first_properties: Mapping[str, str] = field(default_factory=dict)
    """Those of a table that gets the feature later."""
    features: tuple[str, ...] = tuple(FEATURES)
    """The features to try it with."""


@contextmanager
def session_settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Set session settings for the time of the block."""
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


def _create_by_delta(
    spark: SparkSession, folder: Path, group: Group, properties: Mapping[str, str]
) -> None:
    every = {**dict(group.properties), **properties}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in every.items())
    partitions = f"PARTITIONED BY ({', '.join(group.partition_by)})" if group.partition_by else ""
    told = f"TBLPROPERTIES ({listed})" if listed else ""
    spark.sql(
        f"CREATE TABLE delta.`{folder}` ({group.ddl}) USING delta {partitions} {told}"
    ).collect()


def _create_by_us(
    _spark: SparkSession, folder: Path, group: Group, properties: Mapping[str, str]
) -> None:
    Table.create(
        folder,
        group.ddl,
        partition_by=group.partition_by,
        properties={**dict(group.properties), **properties},
        policy="minimal",
        durable=False,
    )


def _append_by_delta(frame: DataFrame, folder: Path) -> None:
    frame.write.format("delta").mode("append").save(str(folder))


def _append_by_us(writer: str) -> Callable[[DataFrame, Path], None]:
    def append(frame: DataFrame, folder: Path) -> None:
        from twinlake.spark import write

        with session_settings(frame.sparkSession, {"spark.twinlake.writer": writer}):
            write(frame, folder, "append")

    return append


def _upgrade(*, in_place: bool) -> Callable[[SparkSession, Path, str], None]:
    def upgrade(spark: SparkSession, folder: Path, feature: str) -> None:
        plan = Table.open(folder).upgrade(feature, in_place=in_place, spark=spark)
        assert plan.done, str(plan)

    return upgrade


def _enable_by_us(_spark: SparkSession, folder: Path, feature: str) -> None:
    Table.open(folder).set_properties(FEATURES[feature])


def _enable_by_delta(spark: SparkSession, folder: Path, feature: str) -> None:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in FEATURES[feature].items())
    spark.sql(f"ALTER TABLE delta.`{folder}` SET TBLPROPERTIES ({listed})").collect()


_COMPATS: Final = tuple(feature for feature in FEATURES if feature != "none")
_FIRST_COMPATS: Final = ("icebergCompatV1", "icebergCompatV2")
_BY_NAME: Final = {"delta.columnMapping.mode": "name"}

WRITERS: Final[Mapping[str, Writer]] = {
    writer.name: writer
    for writer in (
        Writer("Delta Spark", _create_by_delta, _append_by_delta),
        Writer(
            "Delta Spark into a table of twinlake",
            _create_by_us,
            _append_by_delta,
            features=("none", *_FIRST_COMPATS),
        ),
        Writer("twinlake native", _create_by_us, _append_by_us("native")),
        Writer("twinlake Arrow", _create_by_us, _append_by_us("arrow")),
        Writer("twinlake small frames", _create_by_us, _append_by_us("auto")),
        Writer(
            "Delta Spark, then upgrade",
            _create_by_delta,
            _append_by_delta,
            _upgrade(in_place=False),
            features=_COMPATS,
        ),
        Writer(
            "Delta Spark, then upgrade in place",
            _create_by_delta,
            _append_by_delta,
            _upgrade(in_place=True),
            _BY_NAME,
            ("icebergCompatV1", "icebergCompatV2", "icebergWriterCompatV1"),
        ),
        Writer(
            "Delta Spark, then set_properties",
            _create_by_delta,
            _append_by_delta,
            _enable_by_us,
            _BY_NAME,
            _FIRST_COMPATS,
        ),
        Writer(
            "Delta Spark, then ALTER TABLE by Delta Spark",
            _create_by_delta,
            _append_by_delta,
            _enable_by_delta,
            _BY_NAME,
            _FIRST_COMPATS,
        ),
    )
}
"""By name."""
