"""Earlier versions, by option and by a path of a frame reader."""

from pyspark.errors import AnalysisException


def main(spark, folder):
    path = f"{folder}/t"
    for number in range(3):
        spark.range(number, number + 1).write.format("delta").mode("append").save(path)
    seen = [
        spark.read.format("delta").option("versionAsOf", version).load(path).count()
        for version in (0, 1, "2")
    ]
    try:
        spark.read.format("delta").option("versionAsOf", 7).load(path).collect()
        refused = None
    except AnalysisException as error:
        refused = [error.getCondition(), "Available versions: [0, 2]" in str(error)]
    return [seen, refused]
