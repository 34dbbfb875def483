"""The table as it was at the time of a commit."""

import time

from delta.tables import DeltaTable


def main(spark, folder):
    path = f"{folder}/t"
    spark.range(2).write.format("delta").save(path)
    time.sleep(0.05)
    spark.range(2, 5).write.format("delta").mode("append").save(path)
    history = DeltaTable.forPath(spark, path).history().orderBy("version").collect()
    seen = []
    for row in history:
        text = row.timestamp.strftime("%Y-%m-%d %H:%M:%S.%f")
        frame = spark.read.format("delta").option("timestampAsOf", text).load(path)
        seen.append([row.version, frame.count()])
    return seen
