"""Short programs as people write them for Delta Spark, to be run by two engines.

Each is given ``spark``, a copy of one table at ``t`` (partitioned by ``p``, versions 0 to 2), a
path ``new`` where nothing is, names ``n`` and ``other`` that no table has, and ``rows(first, last,
**more)``, a frame with the columns of the table. What it assigns to ``result`` is compared as well
as what it leaves behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BASE", "PROGRAMS"]

#: How the table is made, by Delta Spark.
BASE = """
rows(0, 6).write.format("delta").partitionBy("p").save(t)
rows(6, 9).write.format("delta").mode("append").save(t)
rows(9, 12).write.format("delta").mode("append").save(t)
"""

READS: Mapping[str, str] = {
    "load": 'result = spark.read.format("delta").load(t)',
    "load with its format": 'result = spark.read.load(t, format="delta")',
    "format in capitals": 'result = spark.read.format("DELTA").load(t)',
    "path as an option": 'result = spark.read.format("delta").option("path", t).load()',
    "filters": 'result = spark.read.format("delta").load(t).where("id > 7 AND p = 1").select("s")',
    "filter by a column": 'f = spark.read.format("delta").load(t)\n'
    'result = f.filter(f.id > 7).select(f["s"], (f.p + 1).alias("q"))',
    "self join": 'f = spark.read.format("delta").load(t)\n'
    'result = f.alias("a").join(f.alias("b"), F.expr("a.id = b.id + 1")).select("a.id", "b.s")',
    "grouped": 'result = spark.read.format("delta").load(t).groupBy("p").count()',
    "version": 'result = spark.read.format("delta").option("versionAsOf", 0).load(t)',
    "version as text": 'result = spark.read.format("delta").option("versionAsOf", "1").load(t)',
    "version in load": 'result = spark.read.load(t, format="delta", versionAsOf=1)',
    "option in small letters": 'result = spark.read.format("delta").option("versionasof", 0)'
    ".load(t)",
    "version too high": 'result = spark.read.format("delta").option("versionAsOf", 9).load(t)',
    "version below zero": 'result = spark.read.format("delta").option("versionAsOf", -1).load(t)',
    "version no number": 'result = spark.read.format("delta").option("versionAsOf", "x").load(t)',
    "timestamp": 'result = spark.read.format("delta").option("timestampAsOf", at(1)).load(t)',
    "timestamp too early": 'result = spark.read.format("delta").option("timestampAsOf", '
    '"2001-01-01").load(t)',
    "timestamp too late": 'result = spark.read.format("delta").option("timestampAsOf", '
    '"2999-01-01").load(t)',
    "timestamp no time": 'result = spark.read.format("delta").option("timestampAsOf", "soon")'
    ".load(t)",
    "version and timestamp": 'result = spark.read.format("delta").option("versionAsOf", 1)'
    '.option("timestampAsOf", "2030-01-01").load(t)',
    "version in the path": 'result = spark.read.format("delta").load(t + "@v1")',
    "version in the path too high": 'result = spark.read.format("delta").load(t + "@v7")',
    "version in the path and option": 'result = spark.read.format("delta")'
    '.option("versionAsOf", 1).load(t + "@v1")',
    "time in the path": 'result = spark.read.format("delta").load(t + "@20010101000000000")',
    "no table": 'result = spark.read.format("delta").load(new)',
    "no path": 'result = spark.read.format("delta").load()',
    "schema of its own": 'result = spark.read.schema("id BIGINT").format("delta").load(t)',
    "unknown option": 'result = spark.read.format("delta").option("nothing", "1").load(t)',
    "two paths": 'result = spark.read.format("delta").load([t, t])',
    "list of one path": 'result = spark.read.format("delta").load([t])',
    "folder of a partition": 'result = spark.read.format("delta").load(t + "/p=1")',
    "as a view": 'spark.read.format("delta").load(t).createOrReplaceTempView("v")\n'
    'result = spark.table("v").where("id < 3")',
}

WRITES: Mapping[str, str] = {
    "new": 'rows(0, 3).write.format("delta").save(new)',
    "new in mode append": 'rows(0, 3).write.format("delta").mode("append").save(new)',
    "new in mode overwrite": 'rows(0, 3).write.format("delta").mode("overwrite").save(new)',
    "new in mode ignore": 'rows(0, 3).write.format("delta").mode("ignore").save(new)',
    "new with partitions": 'rows(0, 3).write.partitionBy("p").format("delta").save(new)',
    "new with a partition that is not there": "rows(0, 3).write.partitionBy('q')"
    '.format("delta").save(new)',
    "new with clustering": 'rows(0, 3).write.format("delta").clusterBy("id").save(new)',
    "new with properties": 'rows(0, 3).write.format("delta")'
    '.option("delta.enableChangeDataFeed", "true").save(new)',
    "all in save": 'rows(0, 3).write.save(new, format="delta", mode="append", partitionBy="p", '
    'userMetadata="note")',
    "existing": 'rows(0, 3).write.format("delta").save(t)',
    "existing in mode error": 'rows(0, 3).write.format("delta").mode("error").save(t)',
    "existing in mode ignore": 'rows(0, 3).write.format("delta").mode("ignore").save(t)',
    "unknown mode": 'rows(0, 3).write.format("delta").mode("upsert").save(t)',
    "append": 'rows(20, 23).write.format("delta").mode("append").save(t)',
    "append by option": 'rows(20, 23).write.format("delta").mode("append").option("path", t)'
    ".save()",
    "append without a path": 'rows(20, 23).write.format("delta").mode("append").save()',
    "append with the same partitions": 'rows(20, 23).write.format("delta").mode("append")'
    '.partitionBy("p").save(t)',
    "append with other partitions": 'rows(20, 23).write.format("delta").mode("append")'
    '.partitionBy("id").save(t)',
    "append fewer columns": 'rows(20, 23).select("p", "id").write.format("delta")'
    '.mode("append").save(t)',
    "append more columns": 'rows(20, 23, more="1").write.format("delta").mode("append").save(t)',
    "append more columns, merging": 'rows(20, 23, more="1").write.format("delta").mode("append")'
    '.option("mergeSchema", "true").save(t)',
    "append more columns, merging by a truth value": 'rows(20, 23, more="1").write'
    '.format("delta").mode("append").option("mergeSchema", True).save(t)',
    "append other types": 'rows(20, 23).withColumn("id", F.lit("x")).write.format("delta")'
    '.mode("append").save(t)',
    "merging neither true nor false": 'rows(20, 23).write.format("delta").mode("append")'
    '.option("mergeSchema", "maybe").save(t)',
    "overwrite": 'rows(20, 23).write.format("delta").mode("overwrite").save(t)',
    "overwrite with other columns": 'rows(20, 23).select("id").write.format("delta")'
    '.mode("overwrite").save(t)',
    "overwrite the schema": 'rows(20, 23).selectExpr("id AS a").write.format("delta")'
    '.mode("overwrite").option("overwriteSchema", "true").save(t)',
    "overwrite schema and partitions": 'rows(20, 23).write.format("delta").mode("overwrite")'
    '.option("overwriteSchema", "true").partitionBy("s").save(t)',
    "overwrite the schema in mode append": 'rows(20, 23).write.format("delta").mode("append")'
    '.option("overwriteSchema", "true").save(t)',
    "replace where": 'rows(20, 23).withColumn("p", F.lit(1)).write.format("delta")'
    '.mode("overwrite").option("replaceWhere", "p = 1").save(t)',
    "replace where on data": 'rows(3, 5).write.format("delta").mode("overwrite")'
    '.option("replaceWhere", "id >= 3 AND id < 5").save(t)',
    "replace where with other rows": 'rows(20, 23).write.format("delta").mode("overwrite")'
    '.option("replaceWhere", "id < 5").save(t)',
    "replace where in mode append": 'rows(20, 23).write.format("delta").mode("append")'
    '.option("replaceWhere", "id < 5").save(t)',
    "replace where no condition": 'rows(20, 23).write.format("delta").mode("overwrite")'
    '.option("replaceWhere", "id <").save(t)',
    "replace where no column": 'rows(20, 23).write.format("delta").mode("overwrite")'
    '.option("replaceWhere", "nothing = 1").save(t)',
    "replace where and schema": 'rows(20, 23).write.format("delta").mode("overwrite")'
    '.option("replaceWhere", "id > 5").option("overwriteSchema", "true").save(t)',
    "replace where and dynamic": 'rows(20, 23).write.format("delta").mode("overwrite")'
    '.option("replaceWhere", "id > 5").option("partitionOverwriteMode", "dynamic").save(t)',
    "dynamic": 'rows(20, 22).where("p = 0").write.format("delta").mode("overwrite")'
    '.option("partitionOverwriteMode", "dynamic").save(t)',
    "static": 'rows(20, 22).where("p = 0").write.format("delta").mode("overwrite")'
    '.option("partitionOverwriteMode", "STATIC").save(t)',
    "partition overwrite of another kind": 'rows(20, 22).write.format("delta").mode("overwrite")'
    '.option("partitionOverwriteMode", "some").save(t)',
    "once by txn": 'for _ in range(2):\n    rows(20, 22).write.format("delta").mode("append")'
    '.option("txnAppId", "job").option("txnVersion", 1).save(t)',
    "txn without version": 'rows(20, 22).write.format("delta").mode("append")'
    '.option("txnAppId", "job").save(t)',
    "txn without application": 'rows(20, 22).write.format("delta").mode("append")'
    '.option("txnVersion", 1).save(t)',
    "txn version no number": 'rows(20, 22).write.format("delta").mode("append")'
    '.option("txnAppId", "job").option("txnVersion", "one").save(t)',
    "note": 'rows(20, 22).write.format("delta").mode("append")'
    '.option("userMetadata", "a \\"note\\"").save(t)',
    "no new data": 'spark.read.format("delta").load(t).repartition(1).write.format("delta")'
    '.option("dataChange", "false").mode("overwrite").save(t)',
    "buckets": 'rows(0, 3).write.format("delta").bucketBy(2, "id").save(new)',
    "rows of the table itself": 'spark.read.format("delta").load(t).where("id < 4")'
    '.write.format("delta").mode("overwrite").save(t)',
    "unknown option": 'rows(20, 22).write.format("delta").mode("append")'
    '.option("nothing", "1").save(t)',
    "to another format": 'rows(20, 22).write.format("delta").mode("append").parquet(new)\n'
    "result = spark.read.parquet(new)",
}

NAMES: Mapping[str, str] = {
    "save": 'rows(0, 3).write.format("delta").saveAsTable(n)\nresult = spark.table(n)',
    "save with arguments": 'rows(0, 3).write.saveAsTable(n, format="delta", mode="overwrite", '
    'partitionBy=["p"])\nresult = spark.read.table(n)',
    "save twice": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(0, 3).write.format("delta").saveAsTable(n)',
    "save, then ignore": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(0, 3).write.format("delta").mode("ignore").saveAsTable(n)',
    "save, then append": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).write.format("delta").mode("append").saveAsTable(n)',
    "append to nothing": 'rows(3, 5).write.format("delta").mode("append").saveAsTable(n)',
    "append in another order": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).select("p", "s", "id").write.format("delta").mode("append").saveAsTable(n)',
    "append more columns": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5, more="1").write.format("delta").mode("append")'
    '.option("mergeSchema", "true").saveAsTable(n)',
    "append more columns without merging": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5, more="1").write.format("delta").mode("append").saveAsTable(n)',
    "save, then overwrite": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).write.format("delta").mode("overwrite").saveAsTable(n)',
    "overwrite with other columns": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).select("id").write.format("delta").mode("overwrite").saveAsTable(n)',
    "overwrite the schema": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).select("id").write.format("delta").mode("overwrite")'
    '.option("overwriteSchema", "true").saveAsTable(n)',
    "overwrite where": 'rows(0, 6).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).write.format("delta").mode("overwrite")'
    '.option("replaceWhere", "id >= 3 AND id < 5").saveAsTable(n)',
    "save at a path": 'rows(0, 3).write.format("delta").option("path", new).saveAsTable(n)\n'
    "result = spark.table(n)",
    "name a table": 'rows(20, 23).write.format("delta").mode("append").option("path", t)'
    ".saveAsTable(n)",
    "save with properties": 'rows(0, 3).write.format("delta")'
    '.option("delta.enableChangeDataFeed", "true").saveAsTable(n)',
    "insert": 'rows(0, 3).write.format("delta").saveAsTable(n)\nrows(3, 5).write.insertInto(n)',
    "insert by position": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).selectExpr("id AS a", "s AS b", "p AS c").write.insertInto(n)',
    "insert too few": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).select("id").write.insertInto(n)',
    "insert, overwriting": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    "rows(3, 5).write.insertInto(n, overwrite=True)",
    "insert with partitions": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    'rows(3, 5).write.partitionBy("p").insertInto(n)',
    "insert into nothing": "rows(3, 5).write.insertInto(n)",
    "insert into a path": "rows(20, 23).write.insertInto(f'delta.`{t}`')",
    "version of a name": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    "rows(3, 5).write.insertInto(n)\n"
    'result = spark.read.option("versionAsOf", 0).table(n)',
    "a path as a name": "result = spark.table(f'delta.`{t}`')",
    "a path with a version as a name": "result = spark.table(f'delta.`{t}@v1`')",
    "a path without a table as a name": "result = spark.table(f'delta.`{new}`')",
    "no such name": "result = spark.table(n)",
    "read no such name": "result = spark.read.table(n)",
    "exists": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    "result = spark.createDataFrame([(spark.catalog.tableExists(n), "
    "spark.catalog.tableExists(other))])",
    "full name": 'rows(0, 3).write.format("delta").saveAsTable(f"default.{n}")\n'
    'result = spark.table(f"spark_catalog.default.{n}")',
    "a view of the same name": 'rows(0, 3).write.format("delta").saveAsTable(n)\n'
    "spark.range(2).createOrReplaceTempView(n)\nresult = spark.table(n)\n"
    "spark.catalog.dropTempView(n)",
    "no such database": 'rows(0, 3).write.format("delta").saveAsTable("absent.t")',
    "create": 'rows(0, 3).writeTo(n).using("delta").create()\nresult = spark.table(n)',
    "create with partitions": 'rows(0, 3).writeTo(n).using("delta").partitionedBy("p")'
    '.tableProperty("delta.appendOnly", "true").create()',
    "create partitioned by days": 'rows(0, 3).withColumn("d", F.lit("2024-01-01").cast("date"))'
    '.writeTo(n).using("delta").partitionedBy(F.partitioning.days("d")).create()',
    "create clustered": 'rows(0, 3).writeTo(n).using("delta").clusterBy("id").create()',
    "create twice": 'rows(0, 3).writeTo(n).using("delta").create()\n'
    'rows(0, 3).writeTo(n).using("delta").create()',
    "create or replace": 'rows(0, 3).writeTo(n).using("delta").createOrReplace()\n'
    'rows(3, 5).select("id").writeTo(n).using("delta").createOrReplace()',
    "replace": 'rows(0, 3).writeTo(n).using("delta").create()\n'
    'rows(3, 5).writeTo(n).using("delta").partitionedBy("p").replace()',
    "replace nothing": 'rows(3, 5).writeTo(n).using("delta").replace()',
    "append by writeTo": 'rows(0, 3).writeTo(n).using("delta").create()\n'
    "rows(3, 5).writeTo(n).append()",
    "append in another order by writeTo": 'rows(0, 3).writeTo(n).using("delta").create()\n'
    'rows(3, 5).select("p", "id", "s").writeTo(n).append()',
    "append more by writeTo": 'rows(0, 3).writeTo(n).using("delta").create()\n'
    'rows(3, 5, more="1").writeTo(n).append()',
    "append more by writeTo, merging": 'rows(0, 3).writeTo(n).using("delta").create()\n'
    'rows(3, 5, more="1").writeTo(n).option("mergeSchema", "true").append()',
    "append to nothing by writeTo": "rows(3, 5).writeTo(n).append()",
    "append to a path by writeTo": "rows(20, 23).writeTo(f'delta.`{t}`').append()",
    "overwrite by writeTo": 'rows(0, 6).writeTo(n).using("delta").create()\n'
    'rows(3, 5).writeTo(n).overwrite(F.col("id") >= 3)',
    "overwrite all by writeTo": 'rows(0, 6).writeTo(n).using("delta").create()\n'
    "rows(3, 5).writeTo(n).overwrite(F.lit(True))",
    "overwrite with other rows by writeTo": 'rows(0, 6).writeTo(n).using("delta").create()\n'
    'rows(3, 5).writeTo(n).overwrite(F.col("id") >= 4)',
    "overwrite partitions": 'rows(0, 6).writeTo(n).using("delta").partitionedBy("p").create()\n'
    'rows(3, 5).where("p = 0").writeTo(n).overwritePartitions()',
    "note by writeTo": 'rows(0, 3).writeTo(n).using("delta").create()\n'
    'rows(3, 5).writeTo(n).option("userMetadata", "note").append()',
}

PROGRAMS: Mapping[str, str] = {
    **{f"read: {name}": text for name, text in READS.items()},
    **{f"write: {name}": text for name, text in WRITES.items()},
    **{f"names: {name}": text for name, text in NAMES.items()},
}
