"""Undo a mistake: back to a version, back to a time."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    spark.range(5).coalesce(1).write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete("id < 4")
    metrics = table.restoreToVersion(0).collect()[0].asDict()
    first = table.history().orderBy("version").collect()[0]
    table.delete()
    table.restoreToTimestamp(first.timestamp.strftime("%Y-%m-%d %H:%M:%S.%f"))
    return [
        metrics["num_restored_files"],
        metrics["num_removed_files"],
        table.toDF().orderBy("id").collect(),
    ]
