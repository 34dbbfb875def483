"""Rename and drop columns without rewriting files."""


def main(spark, folder):
    name = f"delta.`{folder}/t`"
    spark.sql(f"CREATE TABLE {name} (id INT, old STRING, extra INT) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 10), (2, 'b', 20)")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN old TO `new name`")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN extra")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra STRING AFTER id")
    spark.sql(f"INSERT INTO {name} VALUES (3, 'x', 'c')")
    frame = spark.table(name)
    return [frame.columns, frame.orderBy("id").collect()]
