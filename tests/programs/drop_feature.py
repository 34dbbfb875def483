"""A feature is added, used, and dropped again."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    spark.range(3).write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path)
    seen = []
    table.addFeatureSupport("checkConstraints")
    seen.append(table.detail().collect()[0])
    table.dropFeatureSupport("checkConstraints")
    seen.append(table.detail().collect()[0])
    return [
        [row.minReaderVersion, row.minWriterVersion, sorted(row.tableFeatures or [])]
        for row in seen
    ]
