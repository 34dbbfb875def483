"""Clients of an Iceberg REST catalog, each in its own way: PyIceberg, DuckDB and Iceberg Spark.

They are engines of a workload (:mod:`tests.support.engines.three_engines`) which know their table
by its name in the catalog, and they read it as well, at any snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from tests.support.engines.three_engines import Engine
from tests.support.iceberg.duckdb import connect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "CatalogAddress",
    "DuckDb",
    "IcebergSpark",
    "PyIceberg",
    "RestClient",
    "duckdb_on_catalog",
    "spark_on_catalog",
]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAddress:
    """Where a catalog is, and what its clients call the warehouse."""

    url: str
    warehouse: str | None = None

    def pyiceberg(self, **properties: str) -> Any:
        """As PyIceberg opens it."""
        from pyiceberg.catalog import load_catalog

        named = {} if self.warehouse is None else {"warehouse": self.warehouse}
        return load_catalog("lake", type="rest", uri=self.url, **named, **properties)


def duckdb_on_catalog(address: CatalogAddress) -> Any | str:
    """A connection of DuckDB with the catalog attached as ``lake``, or why there is none."""
    found = connect("avro", "httpfs", "iceberg")
    if not isinstance(found, str):
        found.execute(
            f"ATTACH '{address.warehouse or ''}' AS lake "
            f"(TYPE iceberg, ENDPOINT '{address.url}', AUTHORIZATION_TYPE 'none')"
        )
    return found


def spark_on_catalog(spark: SparkSession, address: CatalogAddress) -> SparkSession:
    """A new session of Iceberg Spark whose catalog ``lake`` is the REST catalog."""
    session = spark.newSession()
    catalog = "spark.sql.catalog.lake"
    session.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set(f"{catalog}.type", "rest")
    session.conf.set(f"{catalog}.uri", address.url)
    if address.warehouse is not None:
        session.conf.set(f"{catalog}.warehouse", address.warehouse)
    # Other clients change the tables, too.
    session.conf.set(f"{catalog}.cache-enabled", "false")
    return session


class RestClient(Engine):
    """A client that changes one table of a catalog and reads it."""

    def __init__(self, spark: Any, folder: Path, table: str) -> None:
        super().__init__(spark, folder)
        self.table = table

    def rows(self, snapshot: int | None = None) -> list[Row]:
        """The rows of a snapshot, or of the current one."""
        raise NotImplementedError

    def optimize(self) -> None:
        """Nothing, for clients that have no compaction of their own."""

    def create(self, columns: str, partition_by: str = "", **properties: str) -> None:
        """Make the table."""
        raise NotImplementedError

    def drop_column(self, name: str) -> None:
        """Take a column away."""
        raise NotImplementedError

    def rename_column(self, old: str, new: str) -> None:
        """Call a column something else."""
        raise NotImplementedError

    def widen_column(self, name: str, kind: str) -> None:
        """Give a column a wider type."""
        raise NotImplementedError


def _in(ids: Sequence[int]) -> str:
    return f"id IN ({', '.join(map(str, ids))})" if ids else "id = -1"


class PyIceberg(RestClient):
    """PyIceberg, which changes rows by writing their files again."""

    name = "PyIceberg"

    def __init__(self, catalog: Any, folder: Path, table: str) -> None:
        super().__init__(None, folder, table)
        self.catalog = catalog

    def _table(self) -> Any:
        return self.catalog.load_table(self.table)

    def _arrow(self, table: Any, rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), table.schema().as_arrow())

    def create(self, columns: str, partition_by: str = "", **properties: str) -> None:
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import assign_fresh_schema_ids
        from pyiceberg.transforms import IdentityTransform

        from twinlake.schema import parse_ddl, to_arrow

        arrow = to_arrow(parse_ddl(columns), field_ids=False)
        schema = assign_fresh_schema_ids(self.catalog._convert_schema_if_needed(arrow))
        fields = [
            PartitionField(
                source_id=schema.find_field(name).field_id,
                field_id=1000 + at,
                transform=IdentityTransform(),
                name=name,
            )
            for at, name in enumerate(partition_by.split(", ") if partition_by else [])
        ]
        spec = PartitionSpec(*fields)
        self.catalog.create_table(self.table, schema, partition_spec=spec, properties=properties)

    def append(self, rows: Sequence[Row]) -> None:
        table = self._table()
        table.append(self._arrow(table, rows))

    def overwrite(self, rows: Sequence[Row]) -> None:
        table = self._table()
        table.overwrite(self._arrow(table, rows))

    def delete(self, ids: Sequence[int]) -> None:
        if ids:
            self._table().delete(_in(ids))

    def update(self, ids: Sequence[int], name: str) -> None:
        table = self._table()
        found = table.scan(row_filter=_in(ids)).to_arrow().to_pylist()
        if found:
            changed = [{**row, "name": name} for row in found]
            table.overwrite(self._arrow(table, changed), overwrite_filter=_in(ids))

    def merge(self, rows: Sequence[Row]) -> None:
        table = self._table()
        new, now = self._arrow(table, rows), table.current_snapshot()
        if now is not None and now.schema_id != table.schema().schema_id:
            # Its upsert fails on columns that no snapshot has yet, with its own catalog as well.
            table.overwrite(new, overwrite_filter=_in([row["id"] for row in rows]))
        else:
            table.upsert(new, join_cols=["id"])

    def add_column(self, column: str) -> None:
        from pyiceberg import types

        kinds = {
            "INT": types.IntegerType,
            "STRING": types.StringType,
            "DATE": types.DateType,
            "DOUBLE": types.DoubleType,
        }
        name, _, kind = column.partition(" ")
        with self._table().update_schema() as update:
            update.add_column(name, kinds[kind]())

    def drop_column(self, name: str) -> None:
        with self._table().update_schema() as update:
            update.delete_column(name)

    def rename_column(self, old: str, new: str) -> None:
        with self._table().update_schema() as update:
            update.rename_column(old, new)

    def widen_column(self, name: str, kind: str) -> None:
        from pyiceberg import types

        kinds = {"BIGINT": types.LongType, "DOUBLE": types.DoubleType}
        with self._table().update_schema() as update:
            update.update_column(name, kinds[kind]())

    def rows(self, snapshot: int | None = None) -> list[Row]:
        found: list[Row] = self._table().scan(snapshot_id=snapshot).to_arrow().to_pylist()
        return found


class DuckDb(RestClient):
    """DuckDB, by SQL."""

    name = "DuckDB"

    def __init__(self, connection: Any, folder: Path, table: str) -> None:
        super().__init__(None, folder, table)
        self.connection = connection
        self.place = f"lake.{table}"

    def sql(self, text: str) -> Any:
        """Run a statement; ``{t}`` is the table."""
        return self.connection.execute(text.replace("{t}", self.place))

    def _source(self, rows: Sequence[Row]) -> str:
        """Rows under a name, with the types of the table."""
        schema = self.sql("SELECT * FROM {t} LIMIT 0").to_arrow_table().schema
        self.connection.register("source", pa.Table.from_pylist(list(rows), schema))
        return "source"

    def create(self, columns: str, partition_by: str = "", **properties: str) -> None:
        text = f"CREATE TABLE {{t}} ({_duck_types(columns)})"
        if partition_by:
            text += f" PARTITIONED BY ({partition_by})"
        if properties:
            listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            text += f" WITH ({listed})"
        self.sql(text)

    def append(self, rows: Sequence[Row]) -> None:
        self.sql(f"INSERT INTO {{t}} SELECT * FROM {self._source(rows)}")

    def overwrite(self, rows: Sequence[Row]) -> None:
        source = self._source(rows)
        self.sql("BEGIN")
        self.sql("DELETE FROM {t}")
        self.sql(f"INSERT INTO {{t}} SELECT * FROM {source}")
        self.sql("COMMIT")

    def delete(self, ids: Sequence[int]) -> None:
        self.sql(f"DELETE FROM {{t}} WHERE {_in(ids)}")

    def update(self, ids: Sequence[int], name: str) -> None:
        self.sql(f"UPDATE {{t}} SET name = '{name}' WHERE {_in(ids)}")

    def merge(self, rows: Sequence[Row]) -> None:
        names = list(rows[0])
        values = ", ".join(f"{name} = source.{name}" for name in names)
        self.sql(
            f"MERGE INTO {{t}} AS t USING {self._source(rows)} ON t.id = source.id "
            f"WHEN MATCHED THEN UPDATE SET {values} "
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) "
            f"VALUES ({', '.join(f'source.{name}' for name in names)})"
        )

    def add_column(self, column: str) -> None:
        self.sql(f"ALTER TABLE {{t}} ADD COLUMN {column}")

    def drop_column(self, name: str) -> None:
        self.sql(f"ALTER TABLE {{t}} DROP COLUMN {name}")

    def rename_column(self, old: str, new: str) -> None:
        self.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")

    def widen_column(self, name: str, kind: str) -> None:
        self.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} TYPE {kind}")

    def rows(self, snapshot: int | None = None) -> list[Row]:
        at = "" if snapshot is None else f" AT (VERSION => {snapshot})"
        found: list[Row] = self.sql(f"SELECT * FROM {{t}}{at}").to_arrow_table().to_pylist()
        return found


def _duck_types(columns: str) -> str:
    """DDL of Spark in DuckDB's words.

    >>> _duck_types("id BIGINT, s STRUCT<a: INT, b: STRING>, tags ARRAY<STRING>")
    'id BIGINT, s STRUCT(a INT, b VARCHAR), tags VARCHAR[]'
    """
    from twinlake.schema import parse_ddl

    return ", ".join(f"{field.name} {_duck_type(field.type)}" for field in parse_ddl(columns))


def _duck_type(kind: Any) -> str:
    from twinlake.schema import Array, Map, Struct

    match kind:
        case Struct():
            return f"STRUCT({', '.join(f'{f.name} {_duck_type(f.type)}' for f in kind)})"
        case Array():
            return f"{_duck_type(kind.element)}[]"
        case Map():
            return f"MAP({_duck_type(kind.key)}, {_duck_type(kind.value)})"
        case _:
            return _DUCK_NAMES.get(str(kind), str(kind).upper())


_DUCK_NAMES: Mapping[str, str] = {"string": "VARCHAR", "long": "BIGINT", "integer": "INT"}


class IcebergSpark(RestClient):
    """Iceberg Spark, by SQL in a session whose catalog is ``lake``."""

    name = "Iceberg Spark"
    options: ClassVar[Mapping[str, str]] = {"rewrite-all": "true"}

    def __init__(self, spark: SparkSession, folder: Path, table: str) -> None:
        super().__init__(spark, folder, table)
        self.place = f"lake.{table}"

    def sql(self, text: str) -> DataFrame:
        """Run a statement; ``{t}`` is the table."""
        return self.spark.sql(text.replace("{t}", self.place))

    def frame(self, rows: Sequence[Row]) -> DataFrame:
        schema = self.spark.table(self.place).schema
        return self.spark.createDataFrame(list(rows), schema).coalesce(1)

    def create(self, columns: str, partition_by: str = "", **properties: str) -> None:
        text = f"CREATE TABLE {{t}} ({columns}) USING iceberg"
        if partition_by:
            text += f" PARTITIONED BY ({partition_by})"
        if properties:
            listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
            text += f" TBLPROPERTIES ({listed})"
        self.sql(text)

    def append(self, rows: Sequence[Row]) -> None:
        self.frame(rows).writeTo(self.place).append()

    def overwrite(self, rows: Sequence[Row]) -> None:
        from pyspark.sql.functions import lit

        self.frame(rows).writeTo(self.place).overwrite(lit(True))

    def delete(self, ids: Sequence[int]) -> None:
        self.sql(f"DELETE FROM {{t}} WHERE {_in(ids)}")

    def update(self, ids: Sequence[int], name: str) -> None:
        self.sql(f"UPDATE {{t}} SET name = '{name}' WHERE {_in(ids)}")

    def merge(self, rows: Sequence[Row]) -> None:
        self.frame(rows).createOrReplaceTempView("merge_source")
        self.sql(
            "MERGE INTO {t} t USING merge_source s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def add_column(self, column: str) -> None:
        self.sql(f"ALTER TABLE {{t}} ADD COLUMNS ({column})")

    def drop_column(self, name: str) -> None:
        self.sql(f"ALTER TABLE {{t}} DROP COLUMN {name}")

    def rename_column(self, old: str, new: str) -> None:
        self.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")

    def widen_column(self, name: str, kind: str) -> None:
        self.sql(f"ALTER TABLE {{t}} ALTER COLUMN {name} TYPE {kind}")

    def optimize(self) -> None:
        options = ", ".join(f"'{key}', '{value}'" for key, value in self.options.items())
        self.sql(
            f"CALL lake.system.rewrite_data_files(table => '{self.table}', "
            f"options => map({options}))"
        ).collect()

    def rows(self, snapshot: int | None = None) -> list[Row]:
        at = "" if snapshot is None else f" VERSION AS OF {snapshot}"
        found: list[Row] = self.sql(f"SELECT * FROM {{t}}{at}").toArrow().to_pylist()
        return found
