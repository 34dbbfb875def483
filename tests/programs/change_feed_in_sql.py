"""table_changes, and a downstream table that is kept in step with it."""


def main(spark, folder):
    source, target = "feed_source", "feed_target"
    spark.sql(
        f"CREATE TABLE {source} (id INT, v STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql(f"CREATE TABLE {target} (id INT, v STRING) USING delta")
    spark.sql(f"INSERT INTO {source} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"UPDATE {source} SET v = 'B' WHERE id = 2")
    spark.sql(f"DELETE FROM {source} WHERE id = 1")
    changes = spark.sql(
        f"SELECT id, v, _change_type, _commit_version FROM table_changes('{source}', 1) "
        "ORDER BY _commit_version, id, _change_type"
    )
    spark.sql(
        f"MERGE INTO {target} t USING (SELECT id, v, _change_type FROM table_changes('{source}', 2)"
        " WHERE _change_type <> 'update_preimage') s ON t.id = s.id "
        "WHEN MATCHED AND s._change_type = 'delete' THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = s.v "
        "WHEN NOT MATCHED AND s._change_type <> 'delete' THEN INSERT (id, v) VALUES (s.id, s.v)"
    )
    return [changes.collect(), spark.table(target).orderBy("id").collect()]
