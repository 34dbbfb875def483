"""DELETE by text, by Column, of whole partitions and of everything."""

from delta.tables import DeltaTable
from pyspark.sql import functions as F


def main(spark, folder):
    path = f"{folder}/t"
    rows = spark.range(20).selectExpr("id", "id % 4 AS p", "concat('n', id) AS name")
    rows.write.format("delta").partitionBy("p").save(path)
    table = DeltaTable.forPath(spark, path)
    seen = []
    for condition in ("p = 3", F.col("id") < 5, "name LIKE 'n1%' AND p = 2"):
        table.delete(condition)
        seen.append([row.id for row in table.toDF().orderBy("id").collect()])
    table.delete()
    return [seen, table.toDF().count()]
