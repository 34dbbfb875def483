"""writeTo: create, append, overwritePartitions, replace."""


def main(spark, folder):
    rows = spark.range(6).selectExpr("id", "id % 2 AS p")
    rows.writeTo("written_to").using("delta").partitionedBy("p").create()
    rows.where("id = 1").writeTo("written_to").append()
    spark.range(100, 101).selectExpr("id", "1L AS p").writeTo("written_to").overwritePartitions()
    seen = spark.table("written_to").orderBy("id").collect()
    spark.range(2).writeTo("written_to").using("delta").createOrReplace()
    return [seen, spark.table("written_to").columns]
