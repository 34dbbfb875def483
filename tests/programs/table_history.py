"""What was done to a table, with parameters and metrics."""

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    spark.range(10).write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path)
    table.delete("id > 7")
    table.update("id = 1", {"id": "100L"})
    history = table.history().select("version", "operation", "operationParameters", "isBlindAppend")
    last = table.history(1).collect()[0]
    return [
        [
            [row.version, row.operation, row.operationParameters.get("mode"), row.isBlindAppend]
            for row in history.collect()
        ],
        [last.version, last.operationMetrics["numUpdatedRows"], last.readVersion],
    ]
