"""VERSION AS OF and TIMESTAMP AS OF in a query, and RESTORE."""


def main(spark, folder):
    spark.sql("CREATE TABLE travelled (id INT) USING delta")
    for number in range(3):
        spark.sql(f"INSERT INTO travelled VALUES ({number})")
    seen = [
        spark.sql(f"SELECT count(*) AS n FROM travelled VERSION AS OF {version}").collect()
        for version in range(4)
    ]
    both = spark.sql(
        "SELECT a.id FROM travelled a LEFT ANTI JOIN travelled VERSION AS OF 2 b ON a.id = b.id"
    )
    seen.append(both.collect())
    spark.sql("RESTORE TABLE travelled TO VERSION AS OF 1")
    return [seen, spark.table("travelled").collect()]
