"""Pack small files, of the whole table and of one partition."""

import os

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    for number in range(4):
        rows = spark.range(number * 10, number * 10 + 10).selectExpr("id", "id % 2 AS p")
        rows.coalesce(1).write.format("delta").mode("append").partitionBy("p").save(path)
    table = DeltaTable.forPath(spark, path)
    one = table.optimize().where("p = 0").executeCompaction().collect()[0].metrics
    rest = table.optimize().executeCompaction().collect()[0].metrics
    return [
        [one.numFilesAdded, one.numFilesRemoved, one.partitionsOptimized],
        [rest.numFilesAdded, rest.numFilesRemoved],
        table.detail().collect()[0].numFiles,
        table.toDF().selectExpr("count(*)", "sum(id)").collect(),
        os.path.isdir(path),
    ]
