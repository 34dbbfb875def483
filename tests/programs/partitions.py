"""A partitioned table: odd values, nulls, and filters on the partition columns."""

from pyspark.sql import functions as F


def main(spark, folder):
    path = f"{folder}/visits"
    rows = [(1, "a b", 2023), (2, "c/d", 2024), (3, None, 2024), (4, "ü=%", 2023)]
    visits = spark.createDataFrame(rows, "id INT, site STRING, year INT")
    visits.write.format("delta").partitionBy("year", "site").save(path)
    table = spark.read.format("delta").load(path)
    return [
        table.where(F.col("site") == "c/d").select("id").collect(),
        table.where("site IS NULL").select("id", "year").collect(),
        table.where("year = 2023").orderBy("id").collect(),
    ]
