"""A batch that is written twice counts once: txnAppId and txnVersion."""


def main(spark, folder):
    path = f"{folder}/t"
    for version in (1, 1, 2, 1):
        batch = spark.range(version * 10, version * 10 + 3)
        (
            batch.write.format("delta")
            .mode("append")
            .option("txnAppId", "daily-job")
            .option("txnVersion", version)
            .save(path)
        )
    return spark.read.format("delta").load(path).orderBy("id").collect()
