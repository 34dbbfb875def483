"""Frames of tables in views and joins with frames of other sources."""


def main(spark, folder):
    path = f"{folder}/orders"
    spark.range(10).selectExpr("id", "id % 4 AS customer").write.format("delta").save(path)
    spark.createDataFrame([(0, "Ada"), (3, "Cy")], "customer LONG, name STRING").write.parquet(
        f"{folder}/customers"
    )
    spark.read.format("delta").load(path).createOrReplaceTempView("view_of_orders")
    spark.read.parquet(f"{folder}/customers").createOrReplaceTempView("view_of_customers")
    joined = spark.sql(
        "SELECT name, count(*) AS n FROM view_of_orders JOIN view_of_customers USING (customer) "
        "WHERE id > 1 GROUP BY name ORDER BY name"
    )
    return joined.collect()
