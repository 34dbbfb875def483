"""Replace the columns of a table with overwriteSchema."""


def main(spark, folder):
    path = f"{folder}/t"
    spark.range(3).write.format("delta").save(path)
    renamed = spark.range(2).selectExpr("cast(id AS string) AS key", "id % 2 = 0 AS even")
    writer = renamed.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy("even").save(path)
    table = spark.read.format("delta").load(path)
    return [table.dtypes, table.orderBy("key").collect()]
