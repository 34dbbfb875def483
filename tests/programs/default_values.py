"""Columns with a default value."""


def main(spark, folder):
    name = f"delta.`{folder}/t`"
    spark.sql(
        f"CREATE TABLE {name} (id INT, state STRING DEFAULT 'new', n INT DEFAULT 1 + 1) "
        "USING delta TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    spark.sql(f"INSERT INTO {name} (id) VALUES (1)")
    spark.sql(f"INSERT INTO {name} VALUES (2, DEFAULT, 7)")
    spark.sql(f"INSERT INTO {name} (id, state) VALUES (3, NULL)")
    return spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()
