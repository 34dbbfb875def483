"""A feed of changes: some keys are deleted, others updated or inserted."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/accounts"
    spark.range(1, 6).selectExpr("id", "id * 100 AS balance").write.format("delta").save(path)
    changes = spark.createDataFrame(
        [(1, None, True), (2, 999, False), (7, 700, False), (8, None, True)],
        "id LONG, balance LONG, deleted BOOLEAN",
    )
    accounts = DeltaTable.forPath(spark, path)
    (
        accounts.alias("t")
        .merge(changes.alias("s"), "t.id = s.id")
        .whenMatchedDelete(condition="s.deleted = true")
        .whenMatchedUpdate(set={"balance": "s.balance"})
        .whenNotMatchedInsert(
            condition="s.deleted = false", values={"id": "s.id", "balance": "s.balance"}
        )
        .execute()
    )
    return accounts.toDF().orderBy("id").collect()
