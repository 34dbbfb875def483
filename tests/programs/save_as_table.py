"""Names: saveAsTable, insertInto, table, forName, DROP TABLE."""

from delta.tables import DeltaTable


def main(spark, folder):
    frame = spark.range(4).selectExpr("id", "concat('n', id) AS name")
    frame.write.format("delta").saveAsTable("named_rows")
    frame.write.format("delta").mode("append").saveAsTable("named_rows")
    frame.where("id = 0").write.insertInto("named_rows")
    counts = [spark.table("named_rows").count(), spark.read.table("named_rows").count()]
    table = DeltaTable.forName(spark, "named_rows")
    table.delete("id > 1")
    rows = spark.sql("SELECT * FROM named_rows ORDER BY id, name").collect()
    frame.write.format("delta").mode("overwrite").saveAsTable("named_rows")
    counts.append(spark.table("named_rows").count())
    existed = spark.catalog.tableExists("named_rows")
    spark.sql("DROP TABLE named_rows")
    return [counts, rows, existed, spark.catalog.tableExists("named_rows")]
