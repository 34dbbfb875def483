"""Deduplicate logs: a MERGE that only inserts what is not there yet."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/logs"
    logs = spark.range(5).selectExpr("id AS uid", "concat('line ', id) AS text")
    logs.write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path)
    for _ in range(2):
        batch = spark.range(3, 8).selectExpr("id AS uid", "concat('again ', id) AS text")
        (
            table.alias("logs")
            .merge(batch.alias("new"), "logs.uid = new.uid")
            .whenNotMatchedInsertAll()
            .execute()
        )
    return table.toDF().orderBy("uid").collect()
