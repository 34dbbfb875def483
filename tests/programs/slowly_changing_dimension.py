"""SCD type 2: an address that changes closes the row that is current and opens another."""

from delta.tables import DeltaTable
from pyspark.sql import functions as F


def main(spark, folder):
    path = f"{folder}/addresses"
    schema = "customer INT, address STRING, current BOOLEAN, from_date STRING, to_date STRING"
    rows = [(1, "old street", True, "2020-01-01", None), (2, "same", True, "2020-01-01", None)]
    spark.createDataFrame(rows, schema).write.format("delta").save(path)
    updates = spark.createDataFrame(
        [(1, "new street", "2024-05-01"), (2, "same", "2024-05-01"), (3, "first", "2024-05-01")],
        "customer INT, address STRING, since STRING",
    )
    table = DeltaTable.forPath(spark, path)
    moved = (
        updates.alias("u")
        .join(table.toDF().alias("a"), "customer")
        .where("a.current = true AND u.address <> a.address")
        .selectExpr("NULL AS merge_key", "customer", "u.address AS address", "since")
    )
    staged = moved.unionByName(
        updates.select(F.col("customer").alias("merge_key"), "customer", "address", "since")
    )
    (
        table.alias("a")
        .merge(staged.alias("s"), "a.customer = s.merge_key")
        .whenMatchedUpdate(
            condition="a.current = true AND a.address <> s.address",
            set={"current": "false", "to_date": "s.since"},
        )
        .whenNotMatchedInsert(
            values={
                "customer": "s.customer",
                "address": "s.address",
                "current": "true",
                "from_date": "s.since",
                "to_date": "null",
            }
        )
        .execute()
    )
    return table.toDF().orderBy("customer", "from_date").collect()
