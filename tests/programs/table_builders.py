"""create, createIfNotExists, replace and createOrReplace."""

from delta.tables import DeltaTable
from pyspark.sql.types import IntegerType, StringType, StructField, StructType


def main(spark, folder):
    schema = StructType(
        [StructField("id", IntegerType(), False), StructField("name", StringType())]
    )
    (
        DeltaTable.create(spark)
        .tableName("built_rows")
        .addColumns(schema)
        .addColumn("day", "DATE", comment="when")
        .property("description", "built")
        .partitionedBy("day")
        .execute()
    )
    again = DeltaTable.createIfNotExists(spark).tableName("built_rows").addColumn("id", "INT")
    kept = again.execute().toDF().columns
    replaced = DeltaTable.createOrReplace(spark).tableName("built_rows").addColumn("k", "LONG")
    columns = replaced.execute().toDF().columns
    return [kept, columns, DeltaTable.forName(spark, "built_rows").detail().collect()[0].format]
