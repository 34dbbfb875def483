"""UPDATE and DELETE in SQL, with sub-queries."""


def main(spark, folder):
    name = f"delta.`{folder}/t`"
    spark.range(10).selectExpr("id", "id % 3 AS g").write.format("delta").save(f"{folder}/t")
    seen = [
        spark.sql(f"UPDATE {name} SET g = 100 WHERE id IN (1, 2)").collect(),
        spark.sql(f"DELETE FROM {name} WHERE id > 7 OR g = 100").collect(),
        spark.sql(f"DELETE FROM {name} WHERE id = 999").collect(),
    ]
    return [seen, spark.sql(f"SELECT id, g FROM {name} ORDER BY id").collect()]
