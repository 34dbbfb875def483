"""Statements of SQL that run with twinlake and with Delta Spark, on copies of one table.

A script is a list of statements that run one after the other. ``{t}`` is a partitioned table with
rows in two commits, ``{s}`` a table to read from, ``{n}`` a name that no table has yet, ``{m}``
another one, and ``{f}`` an empty folder; each side has its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["REFUSED", "SCRIPTS", "Bound", "Expected"]


@dataclass(frozen=True)
class Expected:
    """A statement that does not go alike on both sides, and why."""

    text: str
    ours: str
    """Our error class."""
    why: str


@dataclass(frozen=True)
class Bound:
    """A statement with values for its markers, and the same with the values written out.

    Delta Spark's parser gets no values; it is asked with literals.
    """

    text: str
    args: Any
    literal: str


SCRIPTS: dict[str, list[Any]] = {
    "queries": [
        "SELECT * FROM {t}",
        "SELECT id, d FROM {t} WHERE id > 1 ORDER BY id DESC LIMIT 2",
        "select T.ID, t.`d` from {t} as t where t.p = 1",
        "SELECT count(*) AS n, p FROM {t} GROUP BY p HAVING count(*) > 1",
        "SELECT a.id, b.id AS other FROM {t} a JOIN {t} b ON a.p = b.p AND a.id < b.id",
        "SELECT t.id, s.v FROM {t} t LEFT JOIN {s} s ON t.id = s.id WHERE t.id >= 2",
        "SELECT t.id FROM {t} t FULL OUTER JOIN {s} s USING (id)",
        "SELECT * FROM {t} t, LATERAL (SELECT t.id * 2 AS twice) x",
        "SELECT id FROM {t} WHERE id IN (SELECT id FROM {s} WHERE v > 15)",
        "SELECT id FROM {t} t WHERE EXISTS (SELECT 1 FROM {s} s WHERE s.id = t.id)",
        "SELECT id FROM {t} WHERE id = (SELECT max(id) FROM {s})",
        "SELECT (SELECT max(v) FROM {s}) AS m, id FROM {t} WHERE id = 1",
        "WITH c AS (SELECT * FROM {t} WHERE p = 1) SELECT x.id FROM c x JOIN c y ON x.id = y.id",
        "WITH a AS (SELECT id FROM {t}), b AS (SELECT id + 1 AS id FROM a) SELECT * FROM b",
        "WITH {h} AS (SELECT 7 AS id) SELECT * FROM {h}",
        "SELECT id FROM {t} UNION ALL SELECT id FROM {s}",
        "SELECT id FROM {t} EXCEPT SELECT id FROM {s}",
        "SELECT id, row_number() OVER (PARTITION BY p ORDER BY id) AS r FROM {t}",
        "SELECT id FROM {t} VERSION AS OF 1",
        "SELECT id FROM {t} FOR VERSION AS OF 0",
        "SELECT id FROM {t} VERSION AS OF 1 UNION ALL SELECT id FROM {t}",
        "SELECT id FROM {t} VERSION AS OF '1' AS old WHERE old.id = 2",
        "FROM {t} |> WHERE id > 1 |> SELECT id",
        "SELECT /* a comment */ d -- and another\n FROM {t} WHERE d = 'a' OR d = \"b\"",
        "SELECT 'it''s 𝄞 ü' AS `odd ``name``` FROM {t} WHERE d <> '𝄞' LIMIT 1",
        Bound(
            "SELECT id FROM {t} WHERE id = :wanted AND d = :d",
            {"wanted": 2, "d": "b"},
            "SELECT id FROM {t} WHERE id = 2 AND d = 'b'",
        ),
        Bound(
            "SELECT id FROM {t} WHERE id = ? OR id = -?",
            [3, -1],
            "SELECT id FROM {t} WHERE id = 3 OR id = 1",
        ),
        Bound(
            "SELECT id FROM IDENTIFIER(:name) WHERE id < 3",
            {"name": "{t}"},
            "SELECT id FROM {t} WHERE id < 3",
        ),
        Bound(
            "SELECT ':d' AS x, id FROM {t} WHERE d <> :d",
            {"d": "it's -- b"},
            "SELECT ':d' AS x, id FROM {t}",
        ),
        "SELECT bad FROM {t}",
        "SELECT id FROM {t} WHERE nothing(id) = 1",
        "SELECT id FROM {t} VERSION AS OF 99",
        "SELECT id FROM {t} TIMESTAMP AS OF '1999-01-01'",
        "SELECT id FROM {t} TIMESTAMP AS OF '2999-01-01'",
        "SELECT id FROM {t} TIMESTAMP AS OF 'no time'",
        "SELECT id FROM {t} GROUP BY p",
        "SELECT FROM WHERE {t}",
        "SELECT id FROM {t}; SELECT id FROM {t}",
        "SELECT id FROM {t} JOIN no_such_table USING (id)",
        "SELECT id FROM delta.`{f}`",
        "SELECT id FROM no_such_namespace.t",
    ],
    "delete and update": [
        "DELETE FROM {t} WHERE id = 1",
        "DELETE FROM {t} AS x WHERE x.d = 'b' AND x.p = 2",
        "DELETE FROM {t} WHERE p = 9",
        "INSERT INTO {t} VALUES (5, 'e', 1), (6, 'f', 2), (7, NULL, 3)",
        "UPDATE {t} SET d = concat(d, '!') WHERE id > 4",
        "UPDATE {t} AS q SET q.d = 'null', p = q.p + 1 WHERE q.d IS NULL",
        Bound(
            "UPDATE {t} SET d = :d WHERE id = :id",
            {"d": "it's", "id": 5},
            'UPDATE {t} SET d = "it\'s" WHERE id = 5',
        ),
        "UPDATE {t} SET d = '𝄞 -- no comment' /* WHERE */ WHERE id = 6 -- the end",
        "UPDATE {t} SET p = 3",
        "UPDATE {t} SET no_column = 1",
        "UPDATE {t} SET d = no_column",
        "UPDATE {t} SET d = 1, d = 2",
        "DELETE FROM {t} WHERE no_column = 1",
        "DELETE FROM {t} WHERE id IN (SELECT id FROM {s})",
        "UPDATE {t} SET d = 'x' WHERE EXISTS (SELECT 1 FROM {s})",
        Expected(
            "DELETE FROM {t} WHERE rand() > 0.5",
            "DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED",
            "Spark has a class of its own in SQL, ours is that of DeltaTable",
        ),
        "DELETE FROM no_such_table",
        "UPDATE no_such_table SET a = 1",
        "DELETE FROM delta.`{f}` WHERE id = 1",
        "UPDATE delta.`{f}` SET id = 1",
        "DELETE FROM {t}",
        "TRUNCATE TABLE {t}",
    ],
    "merge": [
        "MERGE INTO {t} t USING {s} s ON t.id = s.id "
        "WHEN MATCHED AND s.v > 15 THEN UPDATE SET d = concat(t.d, s.v) "
        "WHEN MATCHED THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT (id, d, p) VALUES (s.id, 'new', 1)",
        "MERGE INTO {t} AS t USING (SELECT id, max(v) AS v FROM {s} GROUP BY id) AS s "
        "ON t.id = s.id AND t.p = 1 WHEN MATCHED THEN UPDATE SET t.d = cast(s.v AS STRING)",
        "MERGE INTO {t} k "
        "USING (SELECT * FROM VALUES (1, 'x', 1), (50, 'y', 2) AS x(id, d, p)) v "
        "ON k.id = v.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "MERGE INTO {t} t USING {s} s ON t.id = s.id "
        "WHEN NOT MATCHED BY SOURCE AND t.p = 2 THEN UPDATE SET d = 'left' "
        "WHEN NOT MATCHED BY SOURCE AND t.id > 40 THEN DELETE",
        "MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 60 AS id, 'z' AS d, 1 AS p, 2L AS x) "
        "s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        Bound(
            "MERGE INTO {t} t USING (SELECT :id AS id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET d = :d",
            {"id": 60, "d": "by name"},
            "MERGE INTO {t} t USING (SELECT 60 AS id) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET d = 'by name'",
        ),
        "WITH c AS (SELECT id FROM {s} WHERE v > 15) SELECT count(*) AS n FROM c",
        Expected(
            "MERGE INTO {t} t USING {s} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nothing = 1",
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
            "Delta Spark says INTERNAL_ERROR",
        ),
        Expected(
            "MERGE INTO {t} t USING {s} s ON t.nothing = s.id WHEN MATCHED THEN DELETE",
            "DELTA_MERGE_UNRESOLVED_EXPRESSION",
            "Delta Spark says INTERNAL_ERROR",
        ),
        "MERGE INTO {t} t USING (SELECT 1 AS id UNION ALL SELECT 1) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET d = 'twice'",
        "MERGE INTO {t} t USING {s} s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET d = 'never'",
        "MERGE INTO {t} t USING {s} s ON t.id = s.id AND t.id IN (SELECT id FROM {s}) "
        "WHEN MATCHED THEN DELETE",
        "MERGE INTO {t} t USING no_such_table s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO {t} t USING {s} s ON t.id = s.id",
        "MERGE INTO no_such_table t USING {s} s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "MERGE INTO delta.`{f}` t USING {s} s ON t.id = s.id WHEN MATCHED THEN DELETE",
    ],
    "insert": [
        "INSERT INTO {t} VALUES (10, 'j', 1), (11, 'k', 2)",
        "INSERT INTO TABLE {t} SELECT id + 20, d, p FROM {t2} WHERE id < 3",
        "INSERT INTO {t} (p, id) VALUES (3, 12)",
        "INSERT INTO {t} BY NAME SELECT 'by name' AS d, 1 AS p, 13 AS id",
        "INSERT INTO {t} PARTITION (p = 4) VALUES (14, 'fixed')",
        "INSERT INTO {t} PARTITION (p) SELECT 15, 'moving', 5",
        "WITH c AS (SELECT 16 AS id, 'cte' AS d, 1 AS p) INSERT INTO {t} SELECT * FROM c",
        "INSERT INTO {t} VALUES (17L, 18, '1')",
        "INSERT INTO {t} VALUES (DEFAULT, 'no id', 1)",
        "INSERT INTO {t} TABLE {t2}",
        Bound(
            "INSERT INTO {t} VALUES (:id, :d, :p)",
            {"id": 19, "d": "it's", "p": None},
            'INSERT INTO {t} VALUES (19, "it\'s", NULL)',
        ),
        "INSERT OVERWRITE {t} PARTITION (p = 2) SELECT 30, 'over'",
        "INSERT INTO {t} REPLACE WHERE p = 3 AND id > 0 SELECT 31, 'replaced', 3",
        "INSERT INTO {t} REPLACE WHERE p = 3 SELECT 32, 'elsewhere', 4",
        "INSERT OVERWRITE TABLE {t} SELECT id, d, p FROM {t} WHERE id > 9",
        "INSERT OVERWRITE {t} VALUES (40, 'all', 1)",
        "INSERT INTO {t} VALUES (1)",
        "INSERT INTO {t} VALUES (1, 'a', 1, 1)",
        "INSERT INTO {t} (id, d) VALUES (1, 'a', 1)",
        "INSERT INTO {t} (id, nothing) VALUES (1, 'a')",
        "INSERT INTO {t} BY NAME SELECT 1 AS nothing, 1 AS p, 1 AS id",
        Expected(
            "INSERT INTO {t} VALUES ('no number', 'a', 1)",
            "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
            "one class for every value that does not fit its column",
        ),
        "INSERT INTO {t} SELECT * FROM no_such_table",
        "INSERT INTO no_such_table VALUES (1)",
        "INSERT INTO delta.`{f}` VALUES (1)",
        "INSERT INTO {t} VALUES (1, 'a'",
    ],
    "columns and properties": [
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'false', 'my.key' = 'it''s')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES ('my.key')",
        "ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('my.key')",
        "ALTER TABLE {t} ADD COLUMN x INT",
        "ALTER TABLE {t} ADD COLUMNS (y STRING COMMENT 'it''s' FIRST, z BIGINT AFTER id)",
        "ALTER TABLE {t} ALTER COLUMN x COMMENT '𝄞 -- no comment'",
        "ALTER TABLE {t} ALTER COLUMN x AFTER d",
        "ALTER TABLE {t} ALTER COLUMN x FIRST",
        "ALTER TABLE {t} CHANGE COLUMN x x INT COMMENT 'changed'",
        "ALTER TABLE {t} ALTER COLUMN x DROP NOT NULL",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 0 AND d <> 'a)(b')",
        "INSERT INTO {t} (id, d, p) VALUES (-1, 'a', 1)",
        "ALTER TABLE {t} ADD CONSTRAINT positive CHECK (id > 1)",
        "ALTER TABLE {t} ADD CONSTRAINT large CHECK (id > 100)",
        "ALTER TABLE {t} DROP CONSTRAINT positive",
        "ALTER TABLE {t} DROP CONSTRAINT IF EXISTS positive",
        "ALTER TABLE {t} DROP CONSTRAINT positive",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        "ALTER TABLE {t} RENAME COLUMN x TO new_x",
        "ALTER TABLE {t} DROP COLUMN new_x",
        "ALTER TABLE {t} DROP COLUMNS (y, z)",
        "ALTER TABLE {t} DROP COLUMN IF EXISTS nothing",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "ALTER TABLE {t} ADD COLUMN id INT",
        "ALTER TABLE {t} DROP COLUMN nothing",
        "ALTER TABLE {t} RENAME COLUMN nothing TO other",
        "ALTER TABLE {t} ALTER COLUMN nothing COMMENT 'x'",
        Expected(
            "ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'maybe')",
            "IllegalArgumentException",
            "Delta Spark lets an exception of Java through",
        ),
        "ALTER TABLE {t} DROP FEATURE noSuchFeature",
        "ALTER TABLE no_such_table ADD COLUMN x INT",
        "ALTER TABLE delta.`{f}` ADD COLUMN x INT",
        "DESCRIBE {t}",
        "SHOW COLUMNS IN {t}",
        "SHOW TBLPROPERTIES {t} ('delta.appendOnly')",
        "SHOW TBLPROPERTIES {t} ('no.such.key')",
        "SHOW TBLPROPERTIES {t}",
    ],
    "files and versions": [
        "OPTIMIZE {t} WHERE p = 1",
        "OPTIMIZE {t}",
        "OPTIMIZE {t} WHERE id = 1",
        "OPTIMIZE {t} WHERE",
        "OPTIMIZE {t} FULL",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "INSERT INTO {t} SELECT id, 'many', 1 FROM range(100, 120, 1, 1)",
        "DELETE FROM {t} WHERE id = 107",
        "REORG TABLE {t} WHERE p = 1 APPLY (PURGE)",
        "REORG TABLE {t} APPLY (PURGE)",
        "REORG TABLE {t} APPLY (NOTHING)",
        "VACUUM {t}",
        "VACUUM {t} RETAIN 1000 HOURS DRY RUN",
        "VACUUM {t} LITE DRY RUN",
        "VACUUM {t} RETAIN 168.5 HOURS DRY RUN",
        "VACUUM {t} DRY RUN RETAIN 200 HOURS",
        "VACUUM {t} RETAIN 0 HOURS",
        Expected(
            "VACUUM {t} RETAIN 1 HOURS DRY RUN",
            "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT",
            "Delta Spark keeps files for longer than it is told, and says nothing",
        ),
        "VACUUM {t} RETAIN HOURS",
        "VACUUM delta.`{f}`",
        "VACUUM no_such_table",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
        "RESTORE {t} VERSION AS OF 1",
        "RESTORE {t} TO VERSION AS OF 99",
        "RESTORE {t} TO TIMESTAMP AS OF '1999-01-01'",
        "RESTORE {t} TO TIMESTAMP AS OF '2999-01-01'",
        "RESTORE {t} TO",
        "RESTORE no_such_table TO VERSION AS OF 0",
        "DESCRIBE HISTORY {t} LIMIT 3",
        "DESC HISTORY {t}",
        "DESCRIBE HISTORY delta.`{f}`",
        "DESCRIBE HISTORY no_such_table",
        "DESCRIBE DETAIL {t}",
        "DESCRIBE DETAIL delta.`{f}`",
        "SHOW PARTITIONS {t}",
        "SHOW PARTITIONS {s}",
        "SHOW CREATE TABLE {t}",
        "DESCRIBE {t} d",
        "DESCRIBE {t} nothing",
        "DESCRIBE delta.`{f}`",
    ],
    "names": [
        "CREATE TABLE {n} (id INT NOT NULL COMMENT 'key', p INT, "
        "g INT GENERATED ALWAYS AS (id + 1)) USING delta PARTITIONED BY (p) "
        "COMMENT 'it''s 𝄞' TBLPROPERTIES ('k' = 'v')",
        "CREATE TABLE IF NOT EXISTS {n} (id INT) USING delta",
        "CREATE TABLE {n} (id INT) USING delta",
        "INSERT INTO {n} (id, p) VALUES (1, 1), (2, 2)",
        "SELECT {n}.id, g FROM {n} WHERE {n}.id = 2",
        "SELECT default.{n}.id FROM default.{n}",
        "SELECT x.id FROM spark_catalog.default.{n} x",
        "UPDATE {n} SET p = 3 WHERE {n}.id = 2",
        "DELETE FROM default.{n} WHERE id = 1",
        "MERGE INTO {n} USING {s} s ON {n}.id = s.id WHEN MATCHED THEN UPDATE SET p = 7",
        "DESCRIBE EXTENDED {n}",
        "DESCRIBE HISTORY {n}",
        "SHOW TABLES LIKE '{n}'",
        "SHOW TBLPROPERTIES {n}",
        "OPTIMIZE {n}",
        "VACUUM {n}",
        "CREATE TABLE {m} USING delta PARTITIONED BY (p) AS SELECT * FROM {n}",
        "CREATE TABLE {m} USING delta AS SELECT 1 AS x",
        "CREATE TABLE IF NOT EXISTS {m} USING delta AS SELECT 1 AS x",
        "SELECT * FROM {m} JOIN {n} USING (id)",
        "REPLACE TABLE {m} USING delta AS SELECT id, d FROM {t}",
        "CREATE OR REPLACE TABLE {m} USING delta TBLPROPERTIES ('a' = 'b') AS SELECT 1 AS one",
        "CREATE OR REPLACE TABLE {m} (a INT, b STRING) USING delta",
        "REPLACE TABLE {m} (a BIGINT) USING delta COMMENT 'other'",
        "SELECT * FROM {m}",
        "DROP TABLE {m}",
        "SELECT * FROM {m}",
        "DROP TABLE {m}",
        "DROP TABLE IF EXISTS {m}",
        "REPLACE TABLE {m} (a INT) USING delta",
        "CREATE TABLE delta.`{f}/new` (id INT, d STRING) USING delta",
        "CREATE TABLE delta.`{f}/new` (id INT) USING delta",
        "CREATE TABLE {m} USING delta LOCATION '{f}/new'",
        "INSERT INTO {m} VALUES (1, 'at a place')",
        "SELECT * FROM delta.`{f}/new`",
        "DROP TABLE {m}",
        "SELECT * FROM delta.`{f}/new`",
        "CREATE TABLE delta.`{f}/made` USING delta AS SELECT * FROM {t} WHERE id < 3",
        "SELECT * FROM delta.`{f}/made`",
        "CREATE TABLE {m} (a INT, a INT) USING delta",
        "CREATE TABLE {m} (a INT, CONSTRAINT c CHECK (a > 0)) USING delta",
        "CREATE TABLE {m} (a NO_TYPE) USING delta",
        "DROP TABLE {n}",
    ],
    "views": [
        "CREATE TEMPORARY VIEW v_{n} AS SELECT id, d FROM {t} WHERE p = 1",
        "SELECT * FROM v_{n} WHERE id > 1",
        "INSERT INTO {t} VALUES (70, 'seen', 1)",
        "SELECT v.id FROM v_{n} v JOIN {s} s ON v.id = s.id",
        "SELECT max(id) AS m FROM v_{n}",
        "CREATE TEMPORARY VIEW v_{n} AS SELECT 1 AS one",
        "CREATE OR REPLACE TEMP VIEW v_{n} (a, b) AS SELECT id, p FROM {t}",
        "SELECT a + b AS c FROM v_{n}",
        "CREATE TEMP VIEW w_{n} AS SELECT a FROM v_{n} WHERE b = 1",
        "SELECT * FROM w_{n} WHERE a < 3",
        "WITH v_{n} AS (SELECT 5 AS a) SELECT * FROM v_{n}",
        "DROP VIEW w_{n}",
        "SELECT * FROM w_{n}",
        "DROP VIEW v_{n}",
    ],
}
"""By subject; a text, one with values, or what is expected where the sides differ."""


REFUSED: dict[str, str] = {
    "VACUUM {t} USING INVENTORY (SELECT 1)": "VACUUM USING INVENTORY is not supported yet",
    "OPTIMIZE {t} ZORDER BY (id)": "executeZOrderBy is not supported yet",
    "OPTIMIZE {t} WHERE p = 1 ZORDER BY id, d": "executeZOrderBy is not supported yet",
    "GENERATE symlink_format_manifest FOR TABLE {t}": "generate is not supported yet",
    "CONVERT TO DELTA parquet.`/x` PARTITIONED BY (p INT)": "convertToDelta is not supported yet",
    "CREATE TABLE {n} SHALLOW CLONE {t}": "clone is not supported yet",
    "CREATE OR REPLACE TABLE {n} DEEP CLONE {t} VERSION AS OF 1": "cloneAtVersion is not supported",
    "CREATE TABLE IF NOT EXISTS {n} CLONE {t} TIMESTAMP AS OF '2030-01-01'": "cloneAtTimestamp is",
    "ALTER TABLE {t} CLUSTER BY (id)": "CLUSTER BY is not supported yet",
    "ALTER TABLE {t} CLUSTER BY NONE": "CLUSTER BY is not supported yet",
    "ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY": "SYNC IDENTITY is not supported yet",
    "ANALYZE TABLE {t} COMPUTE DELTA STATISTICS": "COMPUTE DELTA STATISTICS is not supported yet",
    "ANALYZE TABLE {t} COMPUTE STATISTICS": "is not supported on",
    "COMMENT ON TABLE {t} IS 'x'": "is not supported on",
    "ALTER TABLE {t} RENAME TO other": "is not supported on",
    "CACHE TABLE {t}": "is not supported on",
    "CREATE VIEW kept AS SELECT * FROM {t}": "The view kept cannot be kept",
    "DROP TABLE {t}": "cannot be dropped",
    "FROM {s} INSERT INTO {t} SELECT 1, 'a', 1 INSERT INTO {t} SELECT 2, 'b', 1": "Several INSERTs",
    "BEGIN SELECT 1; SELECT * FROM {t}; END": "A script with tables of twinlake in it",
    "EXPLAIN DELETE FROM {t}": "EXPLAIN shows queries only",
}
"""Statements that are read and refused, with what the error says."""
