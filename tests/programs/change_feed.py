"""Read what changed between versions."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "INT")
        .addColumn("v", "STRING")
        .property("delta.enableChangeDataFeed", "true")
        .execute()
    )
    rows = spark.createDataFrame([(1, "a"), (2, "b"), (3, "c")], "id INT, v STRING")
    rows.write.format("delta").mode("append").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("id = 1", {"v": "'A'"})
    table.delete("id = 2")
    source = spark.createDataFrame([(3, "C"), (4, "D")], "id INT, v STRING")
    merging = table.alias("t").merge(source.alias("s"), "t.id = s.id")
    merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    reader = spark.read.format("delta").option("readChangeFeed", "true")
    changes = reader.option("startingVersion", 1).load(path)
    later = reader.option("startingVersion", 2).option("endingVersion", 3).load(path)
    order = ["_commit_version", "id", "_change_type"]
    return [
        changes.drop("_commit_timestamp").orderBy(*order).collect(),
        later.select(*order).orderBy(*order).collect(),
    ]
