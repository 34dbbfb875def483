"""A stream from one table to another, in two runs of the same checkpoint."""


def main(spark, folder):
    source, target, checkpoint = (f"{folder}/{name}" for name in ("in", "out", "checkpoint"))

    def run():
        stream = spark.readStream.format("delta").load(source)
        query = (
            stream.selectExpr("id", "id * 2 AS twice")
            .writeStream.format("delta")
            .outputMode("append")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(target)
        )
        query.awaitTermination()

    spark.range(5).write.format("delta").save(source)
    run()
    spark.range(5, 8).write.format("delta").mode("append").save(source)
    run()
    run()
    return spark.read.format("delta").load(target).orderBy("id").collect()
