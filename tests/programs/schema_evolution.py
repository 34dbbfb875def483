"""A new column is refused, then added with mergeSchema; old rows have nulls."""

from pyspark.errors import AnalysisException


def main(spark, folder):
    path = f"{folder}/loans"
    spark.createDataFrame([(1, 10.0)], "id INT, amount DOUBLE").write.format("delta").save(path)
    more = spark.createDataFrame([(2, 20.0, "CA")], "id INT, amount DOUBLE, state STRING")
    try:
        more.write.format("delta").mode("append").save(path)
        refused = None
    except AnalysisException as error:
        refused = "schema mismatch" in str(error)
    more.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    fewer = spark.createDataFrame([(3,)], "id INT")
    fewer.write.format("delta").mode("append").save(path)
    loans = spark.read.format("delta").load(path)
    return [refused, loans.columns, loans.orderBy("id").collect()]
