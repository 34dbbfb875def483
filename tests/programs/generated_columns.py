"""Columns that Delta computes from others."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/events"
    (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "BIGINT")
        .addColumn("at", "TIMESTAMP")
        .addColumn("day", "DATE", generatedAlwaysAs="CAST(at AS DATE)")
        .partitionedBy("day")
        .execute()
    )
    rows = spark.sql(
        "SELECT id, TIMESTAMP'2024-03-01 22:00:00' + id * INTERVAL 1 HOUR AS at FROM range(4)"
    )
    rows.write.format("delta").mode("append").save(path)
    wrong = spark.sql(
        "SELECT 9L AS id, TIMESTAMP'2024-03-01 22:00:00' AS at, DATE'2020-01-01' AS day"
    )
    try:
        wrong.write.format("delta").mode("append").save(path)
        refused = None
    except Exception as error:
        refused = "Generated Column" in str(error)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 0", {"at": "TIMESTAMP'2024-05-05 00:00:00'"})
    return [refused, table.toDF().orderBy("id").collect()]
