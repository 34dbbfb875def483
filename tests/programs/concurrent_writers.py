"""Two writers change the same row: one loses, is told so, and tries again."""

import os
import threading
import time

from delta.exceptions import ConcurrentAppendException
from delta.tables import DeltaTable
from pyspark.sql import functions as F


def main(spark, folder):
    path = f"{folder}/t"
    started, go = f"{folder}/started", f"{folder}/go"
    spark.range(1).selectExpr("id", "0L AS n").write.format("delta").save(path)

    @F.udf("long", useArrow=False)
    def slowly_added(number):
        with open(started, "w"):
            pass
        deadline = time.time() + 60
        while not os.path.exists(go) and time.time() < deadline:
            time.sleep(0.05)
        return number + 1

    losses = []

    def add_one():
        for _ in range(3):
            try:
                DeltaTable.forPath(spark, path).update("id = 0", {"n": slowly_added("n")})
            except ConcurrentAppendException as error:
                losses.append("DELTA_CONCURRENT_APPEND" in str(error))
            else:
                return

    thread = threading.Thread(target=add_one)
    thread.start()
    while not os.path.exists(started):
        time.sleep(0.05)
    DeltaTable.forPath(spark, path).update("id = 0", {"n": "n + 10"})
    with open(go, "w"):
        pass
    thread.join()
    return [losses, spark.read.format("delta").load(path).collect()]
