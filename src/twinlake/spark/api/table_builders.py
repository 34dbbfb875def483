"""The builder of ``DeltaTable.create`` and ``replace``: it collects a definition, then executes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from pyspark.sql.types import DataType, StructField, StructType

from twinlake.spark.api.column_definition import (
    ColumnDefinition,
    IdentityGenerator,
    columns_from_schema,
)
from twinlake.spark.api.create_table import CreateMode, TableDefinition
from twinlake.spark.errors import raises_spark_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

    from twinlake.spark.api.catalog import CatalogTableReference

__all__ = ["DeltaTableBuilder", "IdentityGenerator"]

T = TypeVar("T")
_Names = str | list[str] | tuple[str, ...]


class DeltaTableBuilder(Generic[T]):
    """Collects the definition of a table; ``DeltaTable.create(spark)`` and the like return one.

    A name, a location or both must be given. A name is registered in the session's catalog of
    names; without a location the table goes to the session's warehouse.
    """

    def __init__(
        self,
        spark: SparkSession,
        creation: CreateMode,
        handle: Callable[[CatalogTableReference], T],
    ) -> None:
        self._spark = spark
        self._creation = creation
        self._handle = handle
        self._asked = TableDefinition()

    def _with(self, **changes: Any) -> DeltaTableBuilder[T]:
        self._asked = self._asked.changed(**changes)
        return self

    @raises_spark_errors
    def tableName(self, identifier: str) -> DeltaTableBuilder[T]:
        """The name, with or without a namespace before it."""
        _want(str, "Identifier must be str.", identifier)
        return self._with(name=identifier)

    @raises_spark_errors
    def location(self, location: str) -> DeltaTableBuilder[T]:
        """The folder of the table."""
        _want(str, "Location must be str.", location)
        return self._with(location=location)

    @raises_spark_errors
    def comment(self, comment: str) -> DeltaTableBuilder[T]:
        """The description of the table."""
        _want(str, "Table comment must be str.", comment)
        return self._with(comment=comment)

    @raises_spark_errors
    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> DeltaTableBuilder[T]:
        """Add a column; it may be computed by an expression or numbered by the table."""
        _want(str, "Column name must be str.", colName)
        if type(dataType) is not str and not isinstance(dataType, DataType):
            _refuse("Column data type must be str or DataType.", [dataType])
        _want(bool, "Column nullable must be bool.", nullable)
        if comment is not None:
            _want(str, "Column comment must be str.", comment)
        generated, identity = _source(generatedAlwaysAs, generatedByDefaultAs)
        column = ColumnDefinition.of(
            self._spark,
            colName,
            dataType,
            nullable=nullable,
            generated=generated,
            identity=identity,
            explicit=generatedByDefaultAs is not None,
            comment=comment,
        )
        return self._with(columns=(*self._asked.columns, column))

    @raises_spark_errors
    def addColumns(self, cols: StructType | list[StructField]) -> DeltaTableBuilder[T]:
        """Add the columns of an existing schema."""
        if isinstance(cols, list):
            for col in cols:
                _want(StructField, "Column in existing schema must be StructField.", col)
            cols = StructType(cols)
        _want(StructType, "Schema must be StructType or a list of StructField.", cols)
        return self._with(columns=(*self._asked.columns, *columns_from_schema(cols)))

    @raises_spark_errors
    def partitionedBy(self, *cols: _Names) -> DeltaTableBuilder[T]:
        """Set the partition columns."""
        return self._with(partition_by=_columns(cols, "Partitioning column must be str."))

    @raises_spark_errors
    def clusterBy(self, *cols: _Names) -> DeltaTableBuilder[T]:
        """Set the clustering columns."""
        return self._with(cluster_by=_columns(cols, "Clustering column must be str."))

    @raises_spark_errors
    def property(self, key: str, value: str) -> DeltaTableBuilder[T]:
        """Set a table property."""
        if type(key) is not str or type(value) is not str:
            _refuse("Key and value of property must be string.", [key, value])
        return self._with(properties={**self._asked.properties, key: value})

    @raises_spark_errors
    def execute(self) -> T:
        """Create or replace the table; returns it."""
        return self._handle(self._creation.run(self._spark, self._asked))


def _source(always: Any, by_default: Any) -> tuple[str | None, IdentityGenerator | None]:
    """The expression or the generator that fills a column."""
    if always is not None and by_default is not None:
        raise ValueError(
            "generatedByDefaultAs and generatedAlwaysAs cannot both be set.", [by_default, always]
        )
    if type(always) is str:
        return always, None
    if by_default is not None and not _is_generator(by_default):
        _refuse("Generated by default expression must be IdentityGenerator.", [by_default])
    if always is not None and not _is_generator(always):
        _refuse("Generated always as expression must be str or IdentityGenerator.", [always])
    generator = always if always is not None else by_default
    if generator is not None and generator.step == 0:
        raise ValueError("Column identity generation requires step to be non-zero.")
    return None, generator


def _is_generator(value: object) -> bool:
    """Ours, or Delta's own where code still imports that."""
    return isinstance(value, IdentityGenerator) or (
        type(value).__name__ == IdentityGenerator.__name__ and hasattr(value, "step")
    )


def _columns(cols: tuple[Any, ...], message: str) -> tuple[str, ...]:
    if len(cols) == 1 and isinstance(cols[0], (list, tuple)):
        cols = tuple(cols[0])
    for col in cols:
        _want(str, message, col)
    return cols


def _want(kind: type, message: str, value: object) -> None:
    if type(value) is not kind:
        _refuse(message, [value])


def _refuse(message: str, values: Iterable[object]) -> NoReturn:
    found = "".join(f" Found {value} with type {type(value)}" for value in values)
    raise TypeError(message + found)
