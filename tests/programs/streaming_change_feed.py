"""A stream of the changes of a table."""

from delta.tables import DeltaTable


def main(spark, folder):
    source, target, checkpoint = (f"{folder}/{name}" for name in ("in", "out", "checkpoint"))
    spark.sql(
        f"CREATE TABLE delta.`{source}` (id INT, v STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql(f"INSERT INTO delta.`{source}` VALUES (1, 'a'), (2, 'b')")
    DeltaTable.forPath(spark, source).update("id = 2", {"v": "'B'"})
    query = (
        spark.readStream.format("delta")
        .option("readChangeFeed", "true")
        .option("startingVersion", 0)
        .load(source)
        .drop("_commit_timestamp")
        .writeStream.format("delta")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(target)
    )
    query.awaitTermination()
    changes = spark.read.format("delta").load(target)
    return changes.orderBy("_commit_version", "id", "_change_type").collect()
