"""Properties: set, shown, unset, and an unknown one refused."""

from pyspark.errors import AnalysisException


def main(spark, folder):
    name = f"delta.`{folder}/t`"
    spark.sql(
        f"CREATE TABLE {name} (id INT) USING delta TBLPROPERTIES ('team' = 'me', "
        "'delta.logRetentionDuration' = 'interval 60 days')"
    )
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'note' = 'x')")
    spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('note')")
    try:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.nonsense' = '1')")
        refused = None
    except AnalysisException as error:
        refused = [error.getCondition(), "delta.nonsense" in str(error)]
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    try:
        spark.sql(f"DELETE FROM {name}")
        kept = None
    except Exception as error:
        kept = "only allow appends" in str(error)
    shown = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    return [refused, kept, shown["team"], shown["delta.appendOnly"], "note" in shown]
