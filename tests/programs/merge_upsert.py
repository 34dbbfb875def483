"""Upsert: update what is there, insert what is new."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/customers"
    customers = [(1, "a@x.org", 3), (2, "b@x.org", 5), (3, "c@x.org", 7)]
    frame = spark.createDataFrame(customers, "id INT, email STRING, visits INT")
    frame.write.format("delta").save(path)
    updates = spark.createDataFrame(
        [(2, "b@y.org", 1), (4, "d@y.org", 2)], "id INT, email STRING, visits INT"
    )
    target = DeltaTable.forPath(spark, path)
    (
        target.alias("customers")
        .merge(updates.alias("updates"), "customers.id = updates.id")
        .whenMatchedUpdate(
            set={"email": "updates.email", "visits": "customers.visits + updates.visits"}
        )
        .whenNotMatchedInsertAll()
        .execute()
    )
    return target.toDF().orderBy("id").collect()
