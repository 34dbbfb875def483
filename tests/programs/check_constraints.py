"""CHECK constraints: added, kept, dropped."""

from pyspark.errors import AnalysisException


def main(spark, folder):
    path = f"{folder}/orders"
    name = f"delta.`{path}`"
    spark.sql(f"CREATE TABLE {name} (id INT NOT NULL, quantity INT) USING delta")
    spark.sql(f"INSERT INTO {name} VALUES (1, 5), (2, 9)")
    spark.sql(f"ALTER TABLE {name} ADD CONSTRAINT some CHECK (quantity > 0)")
    seen = []
    for statement in (
        f"INSERT INTO {name} VALUES (3, 0)",
        f"INSERT INTO {name} VALUES (NULL, 1)",
        f"UPDATE {name} SET quantity = -1 WHERE id = 1",
        f"ALTER TABLE {name} ADD CONSTRAINT few CHECK (quantity < 6)",
    ):
        try:
            spark.sql(statement)
            seen.append(None)
        except AnalysisException as error:
            seen.append(error.getCondition())
        except Exception as error:
            seen.append([word for word in ("DELTA_", "violated") if word in str(error)])
    spark.sql(f"ALTER TABLE {name} DROP CONSTRAINT some")
    spark.sql(f"INSERT INTO {name} VALUES (3, 0)")
    return [seen, spark.sql(f"SELECT * FROM {name} ORDER BY id").collect()]
