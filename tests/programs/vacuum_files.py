"""Delete the files that no version within the retention needs."""

import os
import time

from delta.tables import DeltaTable
from pyspark.errors import IllegalArgumentException


def files(path):
    return len([name for name in os.listdir(path) if name.endswith(".parquet")])


def main(spark, folder):
    path = f"{folder}/t"
    spark.range(5).coalesce(1).write.format("delta").save(path)
    spark.range(7).coalesce(1).write.format("delta").mode("overwrite").save(path)
    table = DeltaTable.forPath(spark, path)
    try:
        table.vacuum(0)
        refused = None
    except IllegalArgumentException as error:
        refused = [error.getCondition(), "retention period is too low" in str(error)]
    before = files(path)
    table.vacuum()
    kept = files(path)
    time.sleep(1.1)
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    table.vacuum(0)
    return [refused, before, kept, files(path), table.toDF().count()]
