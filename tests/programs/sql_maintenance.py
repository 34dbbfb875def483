"""OPTIMIZE, VACUUM, DESCRIBE HISTORY and DESCRIBE DETAIL."""


def main(spark, folder):
    name = f"delta.`{folder}/t`"
    for number in range(3):
        frame = spark.range(number, number + 1).coalesce(1)
        frame.write.format("delta").mode("append").save(f"{folder}/t")
    metrics = spark.sql(f"OPTIMIZE {name}").collect()[0].metrics
    spark.sql(f"VACUUM {name}")
    history = spark.sql(f"DESCRIBE HISTORY {name}").where("operation NOT LIKE 'VACUUM%'")
    detail = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
    return [
        [metrics.numFilesAdded, metrics.numFilesRemoved],
        [row.operation for row in history.orderBy("version").collect()],
        [detail.format, detail.numFiles, detail.partitionColumns],
    ]
