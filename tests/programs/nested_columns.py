"""Structs, arrays and maps: written, read, widened by new fields."""


def main(spark, folder):
    path = f"{folder}/t"
    first = spark.sql(
        "SELECT 1 AS id, named_struct('a', 1, 'b', 'x') AS s, array(1, 2) AS l, map('k', 1.5D) AS m"
    )
    first.write.format("delta").save(path)
    second = spark.sql(
        "SELECT 2 AS id, named_struct('a', 2, 'b', 'y', 'c', true) AS s, array() AS l, NULL AS m"
    )
    second = second.selectExpr("id", "s", "cast(l AS array<int>)", "cast(m AS map<string,double>)")
    second.write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    table = spark.read.format("delta").load(path)
    return [
        table.select("id", "s.a", "s.c", "l", "m").orderBy("id").collect(),
        table.schema.simpleString(),
        table.where("s.a = 2").count(),
    ]
