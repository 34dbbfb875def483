"""The four modes of a writer."""

from pyspark.errors import AnalysisException


def main(spark, folder):
    path = f"{folder}/people"
    first = spark.createDataFrame([(1, "Ada"), (2, "Bob")], "id INT, name STRING")
    second = spark.createDataFrame([(3, "Cy")], "id INT, name STRING")
    first.write.format("delta").mode("error").save(path)
    try:
        second.write.format("delta").save(path)
        refused = None
    except AnalysisException as error:
        refused = [error.getCondition(), error.getSqlState(), "already existent path" in str(error)]
    second.write.format("delta").mode("ignore").save(path)
    second.write.format("delta").mode("append").save(path)
    seen = [spark.read.format("delta").load(path).orderBy("id").collect()]
    second.write.format("delta").mode("overwrite").save(path)
    seen.append(spark.read.format("delta").load(path).collect())
    return [refused, seen]
