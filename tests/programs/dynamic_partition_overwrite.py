"""An overwrite that replaces only the partitions it has rows for."""


def main(spark, folder):
    path = f"{folder}/days"
    days = spark.createDataFrame([(1, "mon"), (2, "tue"), (3, "wed")], "value INT, day STRING")
    days.write.format("delta").partitionBy("day").save(path)
    tuesday = spark.createDataFrame([(20, "tue")], "value INT, day STRING")
    writer = tuesday.write.format("delta").mode("overwrite")
    writer.option("partitionOverwriteMode", "dynamic").save(path)
    by_option = spark.read.format("delta").load(path).orderBy("value").collect()
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    monday = spark.createDataFrame([(10, "mon")], "value INT, day STRING")
    monday.write.format("delta").mode("overwrite").save(path)
    return [by_option, spark.read.format("delta").load(path).orderBy("value").collect()]
