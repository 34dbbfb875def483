"""A note in the history, by option and by session."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    rows = spark.range(1)
    rows.write.format("delta").option("userMetadata", "first load").save(path)
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "nightly")
    rows.write.format("delta").mode("append").save(path)
    DeltaTable.forPath(spark, path).delete("id = 0")
    history = DeltaTable.forPath(spark, path).history().orderBy("version")
    return [row.userMetadata for row in history.collect()]
