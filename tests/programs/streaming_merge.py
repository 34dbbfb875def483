"""A stream whose batches are merged into a table with foreachBatch."""

from delta.tables import DeltaTable


def main(spark, folder):
    source, target, checkpoint = (f"{folder}/{name}" for name in ("in", "out", "checkpoint"))
    spark.createDataFrame([], "id INT, v STRING").write.format("delta").save(target)

    def upsert(batch, batch_id):
        latest = batch.groupBy("id").agg({"v": "max"}).withColumnRenamed("max(v)", "v")
        table = DeltaTable.forPath(batch.sparkSession, target)
        merging = table.alias("t").merge(latest.alias("s"), "t.id = s.id")
        merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    for rows in ([(1, "a"), (2, "b")], [(2, "c"), (3, "d")]):
        frame = spark.createDataFrame(rows, "id INT, v STRING")
        frame.write.format("delta").mode("append").save(source)
        query = (
            spark.readStream.format("delta")
            .load(source)
            .writeStream.foreachBatch(upsert)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return spark.read.format("delta").load(target).orderBy("id").collect()
