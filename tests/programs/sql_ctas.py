"""CREATE TABLE AS SELECT, with a name and at a place, and CREATE OR REPLACE."""


def main(spark, folder):
    place = f"{folder}/squares"
    spark.sql(
        f"CREATE TABLE ctas_squares USING delta LOCATION '{place}' "
        "AS SELECT id, id * id AS square FROM range(5)"
    )
    first = spark.table("ctas_squares").orderBy("id").collect()
    spark.sql(
        "CREATE OR REPLACE TABLE ctas_squares USING delta "
        f"LOCATION '{place}' AS SELECT id, id * id * id AS cube FROM range(3)"
    )
    by_path = spark.read.format("delta").load(place)
    return [first, by_path.columns, by_path.orderBy("id").collect()]
