"""The same operations by each engine, as its users would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    BatchFunction = Callable[[DataFrame, int], None]


AVAILABLE: Final = "availableNow"


class Engine(Protocol):
    """What is compared. An engine that has no such operation raises."""

    spark: SparkSession

    def ready(self) -> None:
        """Before the clock starts."""

    def append(self, frame: DataFrame, path: str) -> None:
        """Add rows to a table that is there."""

    def read(self, path: str) -> DataFrame:
        """All rows."""

    def scan(self, path: str, where: str) -> DataFrame:
        """Some rows, said at once."""

    def filtered(self, path: str, where: str) -> DataFrame:
        """Some rows, by a filter on the frame of the table."""

    def changes(self, path: str) -> DataFrame:
        """All changes of a table whose feed is on since version 1."""

    def delete(self, path: str, where: str) -> None:
        """Delete rows."""

    def merge(self, path: str, source: DataFrame) -> None:
        """Update what has the source's id, insert what has not."""

    def optimize(self, path: str) -> None:
        """Pack small files."""

    def stream_from(self, path: str, checkpoint: str, to: BatchFunction) -> None:
        """Hand on what is in a table, one file a batch."""

    def stream_into(self, frame: DataFrame, path: str, checkpoint: str) -> None:
        """Append what a stream has now to a table."""


class Twinlake:
    """This library, in a session without any jar."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def ready(self) -> None:
        from twinlake.spark import disable

        disable(self.spark)

    def _table(self, path: str) -> Any:
        from twinlake.spark import DeltaTable

        return DeltaTable.forPath(self.spark, path)

    def append(self, frame: DataFrame, path: str) -> None:
        from twinlake.spark import write

        write(frame, path, "append")

    def read(self, path: str) -> DataFrame:
        from twinlake.spark import scan

        return scan(self.spark, path)

    def scan(self, path: str, where: str) -> DataFrame:
        from twinlake.spark import scan

        return scan(self.spark, path, where=where)

    def filtered(self, path: str, where: str) -> DataFrame:
        frame: DataFrame = self._table(path).toDF().where(where)
        return frame

    def changes(self, path: str) -> DataFrame:
        from twinlake.spark import changes

        return changes(self.spark, path, from_version=1)

    def delete(self, path: str, where: str) -> None:
        self._table(path).delete(where)

    def merge(self, path: str, source: DataFrame) -> None:
        builder = self._table(path).alias("t").merge(source.alias("s"), "t.id = s.id")
        builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def optimize(self, path: str) -> None:
        self._table(path).optimize().executeCompaction()

    def stream_from(self, path: str, checkpoint: str, to: BatchFunction) -> None:
        from twinlake.spark import follow

        query = follow(
            self.spark, path, to, checkpoint=checkpoint, trigger=AVAILABLE, maxFilesPerTrigger=1
        )
        query.awaitTermination()

    def stream_into(self, frame: DataFrame, path: str, checkpoint: str) -> None:
        from twinlake.spark import into

        writer = frame.writeStream.option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).foreachBatch(into(path)).start().awaitTermination()


class TwinlakeSql(Twinlake):
    """The same library, asked in SQL."""

    def scan(self, path: str, where: str) -> DataFrame:
        from twinlake.spark import sql

        return sql(self.spark, f"SELECT * FROM delta.`{path}` WHERE {where}")

    def merge(self, path: str, source: DataFrame) -> None:
        from twinlake.spark import sql

        source.createOrReplaceTempView("benchmark_source")
        sql(
            self.spark,
            f"MERGE INTO delta.`{path}` t USING benchmark_source s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        )


class DeltaSpark:
    """Delta Spark; its Python package does no more than these calls."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def ready(self) -> None:
        """Nothing."""

    def _table(self, path: str) -> Any:
        session: Any = self.spark._jsparkSession
        jvm: Any = self.spark._jvm
        return jvm.io.delta.tables.DeltaTable.forPath(session, path)

    def append(self, frame: DataFrame, path: str) -> None:
        frame.write.format("delta").mode("append").save(path)

    def read(self, path: str) -> DataFrame:
        return self.spark.read.format("delta").load(path)

    def scan(self, path: str, where: str) -> DataFrame:
        return self.read(path).where(where)

    def filtered(self, path: str, where: str) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(self._table(path).toDF(), self.spark).where(where)

    def changes(self, path: str) -> DataFrame:
        feed = self.spark.read.format("delta").option("readChangeFeed", "true")
        return feed.option("startingVersion", 1).load(path)

    def delete(self, path: str, where: str) -> None:
        self._table(path).delete(where)

    def merge(self, path: str, source: DataFrame) -> None:
        from_source: Any = source.alias("s")._jdf
        builder = self._table(path).alias("t").merge(from_source, "t.id = s.id")
        builder.whenMatched().updateAll().whenNotMatched().insertAll().execute()

    def optimize(self, path: str) -> None:
        self._table(path).optimize().executeCompaction()

    def stream_from(self, path: str, checkpoint: str, to: BatchFunction) -> None:
        frame = self.spark.readStream.format("delta").option("maxFilesPerTrigger", 1).load(path)
        writer = frame.writeStream.option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).foreachBatch(to).start().awaitTermination()

    def stream_into(self, frame: DataFrame, path: str, checkpoint: str) -> None:
        writer = frame.writeStream.option("checkpointLocation", checkpoint).format("delta")
        writer.trigger(availableNow=True).start(path).awaitTermination()


class Takeover(Twinlake):
    """This library, by the calls of code for Delta Spark."""

    def ready(self) -> None:
        from twinlake.spark import enable

        enable(self.spark, delta=True)

    def append(self, frame: DataFrame, path: str) -> None:
        frame.write.format("delta").mode("append").save(path)

    def read(self, path: str) -> DataFrame:
        return self.spark.read.format("delta").load(path)

    def filtered(self, path: str, where: str) -> DataFrame:
        return self.read(path).where(where)


class DataSource(Twinlake):
    """This library as a data source in Python, which can only be named as a format."""

    def ready(self) -> None:
        from twinlake.spark import disable, enable

        disable(enable(self.spark))

    def append(self, frame: DataFrame, path: str) -> None:
        frame.write.format("twinlake").mode("append").save(path)

    def read(self, path: str) -> DataFrame:
        return self.spark.read.format("twinlake").load(path)

    def filtered(self, path: str, where: str) -> DataFrame:
        return self.read(path).where(where)


class Parquet(DeltaSpark):
    """Files without a table: what Spark itself costs."""

    def append(self, frame: DataFrame, path: str) -> None:
        frame.write.mode("append").parquet(path)

    def read(self, path: str) -> DataFrame:
        return self.spark.read.parquet(path)


ENGINES: Final[dict[str, Callable[[SparkSession], Engine]]] = {
    "twinlake": Twinlake,
    "twinlake SQL": TwinlakeSql,
    "twinlake takeover": Takeover,
    "twinlake data source": DataSource,
    "Delta Spark": DeltaSpark,
    "Parquet": Parquet,
}
