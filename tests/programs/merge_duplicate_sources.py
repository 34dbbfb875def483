"""Two source rows for one target row are refused; deduplicated they are not."""

from delta.tables import DeltaTable
from pyspark.errors import UnsupportedOperationException


def main(spark, folder):
    path = f"{folder}/t"
    spark.range(3).selectExpr("id", "'old' AS v").write.format("delta").save(path)
    source = spark.createDataFrame([(1, "x"), (1, "x"), (2, "y")], "id LONG, v STRING")
    table = DeltaTable.forPath(spark, path)

    def upsert(rows):
        merging = table.alias("t").merge(rows.alias("s"), "t.id = s.id")
        merging.whenMatchedUpdateAll().execute()

    try:
        upsert(source)
        refused = None
    except UnsupportedOperationException as error:
        refused = [error.getCondition(), "multiple source rows matched" in str(error)]
    upsert(source.dropDuplicates(["id"]))
    return [refused, table.toDF().orderBy("id").collect()]
