"""Bronze, silver and gold: JSON in, a table cleaned by MERGE, sums."""

import json
import os

from delta.tables import DeltaTable
from pyspark.sql import functions as F


def main(spark, folder):
    landing = f"{folder}/landing"
    os.makedirs(landing)
    for number, batch in enumerate(
        [
            [{"id": 1, "city": "Rome", "amount": "10.5"}, {"id": 2, "city": "Oslo", "amount": "x"}],
            [{"id": 1, "city": "Rome", "amount": "12"}, {"id": 3, "city": "Oslo", "amount": "4"}],
        ]
    ):
        with open(f"{landing}/{number}.json", "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in batch)
        raw = spark.read.schema("id LONG, city STRING, amount STRING").json(
            f"{landing}/{number}.json"
        )
        bronze = raw.withColumn("batch", F.lit(number))
        bronze.write.format("delta").mode("append").save(f"{folder}/bronze")
        new = (
            spark.read.format("delta")
            .load(f"{folder}/bronze")
            .where(F.col("batch") == number)
            .withColumn("amount", F.expr("try_cast(amount AS DOUBLE)"))
            .where("amount IS NOT NULL")
        )
        if not DeltaTable.isDeltaTable(spark, f"{folder}/silver"):
            new.limit(0).write.format("delta").save(f"{folder}/silver")
        silver = DeltaTable.forPath(spark, f"{folder}/silver")
        merging = silver.alias("t").merge(new.alias("s"), "t.id = s.id")
        merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    sums = (
        spark.read.format("delta")
        .load(f"{folder}/silver")
        .groupBy("city")
        .agg(F.sum("amount").alias("total"))
    )
    sums.write.format("delta").mode("overwrite").save(f"{folder}/gold")
    return [
        spark.read.format("delta").load(f"{folder}/bronze").count(),
        spark.read.format("delta").load(f"{folder}/gold").orderBy("city").collect(),
    ]
