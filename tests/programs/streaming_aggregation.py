"""Counts in complete mode: each batch replaces the table."""


def main(spark, folder):
    source, target, checkpoint = (f"{folder}/{name}" for name in ("in", "out", "checkpoint"))
    for start in (0, 4):
        rows = spark.range(start, start + 6).selectExpr("id % 3 AS kind")
        rows.write.format("delta").mode("append").save(source)
        query = (
            spark.readStream.format("delta")
            .load(source)
            .groupBy("kind")
            .count()
            .writeStream.format("delta")
            .outputMode("complete")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(target)
        )
        query.awaitTermination()
    return spark.read.format("delta").load(target).orderBy("kind").collect()
