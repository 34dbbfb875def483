"""DELETE with deletion vectors, and REORG that purges them."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    name = f"delta.`{path}`"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    spark.range(100).coalesce(1).write.format("delta").mode("append").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete("id % 10 = 0")
    deleted = table.history(1).collect()[0].operationMetrics["numDeletionVectorsAdded"]
    spark.sql(f"REORG TABLE {name} APPLY (PURGE)")
    return [deleted, table.toDF().selectExpr("count(*)", "sum(id)").collect()]
