"""Make a table equal to a snapshot: what the source lacks goes or is marked."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/stock"
    rows = [(1, 5, "active"), (2, 6, "active"), (3, 7, "old")]
    frame = spark.createDataFrame(rows, "id INT, amount INT, status STRING")
    frame.write.format("delta").save(path)
    snapshot = spark.createDataFrame([(1, 50), (9, 90)], "id INT, amount INT")
    stock = DeltaTable.forPath(spark, path)
    (
        stock.alias("t")
        .merge(snapshot.alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"amount": "s.amount"})
        .whenNotMatchedInsert(values={"id": "s.id", "amount": "s.amount", "status": "'active'"})
        .whenNotMatchedBySourceDelete(condition="t.status = 'old'")
        .whenNotMatchedBySourceUpdate(set={"status": "'gone'"})
        .execute()
    )
    return stock.toDF().orderBy("id").collect()
