"""Keys that the table gives out."""

from delta.tables import DeltaTable, IdentityGenerator
from pyspark.errors import AnalysisException


def main(spark, folder):
    path = f"{folder}/users"
    (
        DeltaTable.create(spark)
        .location(path)
        .addColumn("key", "BIGINT", generatedAlwaysAs=IdentityGenerator(start=10, step=5))
        .addColumn("name", "STRING")
        .execute()
    )
    for names in (["a", "b"], ["c"]):
        rows = spark.createDataFrame([(name,) for name in names], "name STRING").coalesce(1)
        rows.write.format("delta").mode("append").save(path)
    given = spark.createDataFrame([(1, "x")], "key LONG, name STRING")
    try:
        given.write.format("delta").mode("append").save(path)
        refused = None
    except AnalysisException as error:
        refused = error.getCondition()
    users = spark.read.format("delta").load(path).orderBy("name").collect()
    keys = [row.key for row in users]
    return [refused, len(users), keys == sorted(keys), {key % 5 for key in keys} == {0}]
