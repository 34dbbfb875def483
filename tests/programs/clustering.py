"""Liquid clustering: created with columns, changed, switched off."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("id", "INT")
        .addColumn("city", "STRING")
        .clusterBy("city")
        .execute()
    )
    rows = spark.createDataFrame([(1, "x"), (2, "y")], "id INT, city STRING")
    rows.write.format("delta").mode("append").save(path)
    detail = DeltaTable.forPath(spark, path).detail().collect()[0]
    read = spark.read.format("delta").load(path)
    return [list(detail.clusteringColumns), read.orderBy("id").collect()]
