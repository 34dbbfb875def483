"""Tables by SQL: CREATE, INSERT in its forms, SELECT."""


def main(spark, folder):
    spark.sql(
        "CREATE TABLE sql_people (id INT COMMENT 'key', name STRING, born DATE) USING delta "
        "PARTITIONED BY (name) COMMENT 'people'"
    )
    spark.sql("INSERT INTO sql_people VALUES (1, 'Ada', DATE'1815-12-10')")
    spark.sql("INSERT INTO sql_people (name, id) VALUES ('Bob', 2)")
    spark.sql("INSERT INTO sql_people SELECT id + 10, 'Cy', NULL FROM sql_people")
    seen = spark.sql("SELECT * FROM sql_people ORDER BY id").collect()
    spark.sql("INSERT OVERWRITE sql_people SELECT id, name, born FROM sql_people WHERE id = 1")
    spark.sql("CREATE TABLE IF NOT EXISTS sql_people (id INT) USING delta")
    joined = spark.sql("SELECT a.id, b.name FROM sql_people a JOIN sql_people b ON a.id = b.id")
    return [seen, joined.collect()]
