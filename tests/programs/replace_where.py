"""Replace the rows that match a predicate, and only those."""

from pyspark.errors import AnalysisException


def main(spark, folder):
    path = f"{folder}/sales"
    sales = spark.range(12).selectExpr(
        "id", "make_date(2024, cast(id % 3 AS int) + 1, 1) AS month", "id * 10 AS amount"
    )
    sales.write.format("delta").partitionBy("month").save(path)
    january = spark.sql("SELECT 100L AS id, DATE'2024-01-01' AS month, 1L AS amount")
    writer = january.write.format("delta").mode("overwrite")
    writer.option("replaceWhere", "month = '2024-01-01'").save(path)
    february = spark.sql("SELECT 200L AS id, DATE'2024-02-01' AS month, 2L AS amount")
    try:
        writer = february.write.format("delta").mode("overwrite")
        writer.option("replaceWhere", "month = '2024-01-01'").save(path)
        refused = None
    except AnalysisException as error:
        refused = error.getCondition()
    table = spark.read.format("delta").load(path)
    return [refused, table.orderBy("id").collect()]
