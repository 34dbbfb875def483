"""Write a frame, read it back, read some of it."""

from pyspark.sql import functions as F


def main(spark, folder):
    path = f"{folder}/events"
    events = spark.range(20).select(
        F.col("id").alias("event_id"),
        (F.col("id") % 3).cast("int").alias("kind"),
        F.expr("date_add(DATE'2024-01-01', cast(id AS int))").alias("day"),
        F.expr("cast(id AS decimal(10, 2)) / 4").alias("amount"),
    )
    events.write.format("delta").save(path)
    read = spark.read.format("delta").load(path)
    late = read.where("day >= DATE'2024-01-15' AND kind = 1").select("event_id", "day")
    return [
        read.count(),
        read.groupBy("kind").agg(F.sum("amount").alias("total")).orderBy("kind").collect(),
        late.orderBy("event_id").collect(),
    ]
