"""MERGE in SQL, with a common table expression and conditions."""


def main(spark, folder):
    target = f"delta.`{folder}/t`"
    spark.sql(f"CREATE TABLE {target} (id INT, n INT, s STRING) USING delta")
    spark.sql(f"INSERT INTO {target} VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c')")
    changes = spark.createDataFrame([(1, 10), (2, -1), (5, 50)], "id INT, n INT")
    changes.createOrReplaceTempView("merge_changes")
    metrics = spark.sql(
        f"""
        MERGE INTO {target} AS t
        USING (SELECT id, n FROM merge_changes) AS s
        ON t.id = s.id
        WHEN MATCHED AND s.n < 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET n = t.n + s.n, s = 'updated' -- a comment
        WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)
        WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s = 'alone'
        """
    )
    return [metrics.collect(), spark.sql(f"SELECT * FROM {target} ORDER BY id").collect()]
