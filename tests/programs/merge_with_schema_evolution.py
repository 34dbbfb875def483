"""MERGE adds the columns that the source brings along."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/items"
    spark.createDataFrame([(1, "a")], "id INT, name STRING").write.format("delta").save(path)
    source = spark.createDataFrame(
        [(1, "A", 1.5), (2, "B", 2.5)], "id INT, name STRING, price DOUBLE"
    )
    items = DeltaTable.forPath(spark, path)
    (
        items.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .withSchemaEvolution()
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    result = DeltaTable.forPath(spark, path).toDF()
    return [result.columns, result.orderBy("id").collect()]
