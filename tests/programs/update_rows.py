"""UPDATE with text, with Columns, with a struct's field and without a condition."""

from delta.tables import DeltaTable
from pyspark.sql import functions as F


def main(spark, folder):
    path = f"{folder}/t"
    spark.sql(
        "SELECT id, 'clk' AS event, named_struct('x', id, 'y', 0L) AS place FROM range(4)"
    ).write.format("delta").save(path)
    table = DeltaTable.forPath(spark, path)
    table.update("event = 'clk' AND id < 2", {"event": "'click'"})
    table.update(F.col("id") == 3, {"event": F.lit("last"), "place.y": F.col("id") * 10})
    table.update(set={"event": "upper(event)"})
    return table.toDF().orderBy("id").collect()
