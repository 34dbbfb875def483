"""Schemas and types between twinlake and Spark, by the JSON that Delta and Spark share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from twinlake.schema import Struct, StructField, parse_schema, render_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType as SparkDataType

    from twinlake.schema import DataType

__all__ = ["from_spark", "java_class", "jvm_type", "quoted", "spark_data_type", "spark_type"]


def spark_type(schema: Struct) -> StructType:
    """The schema as PySpark knows it, metadata included."""
    return StructType.fromJson(json.loads(render_schema(schema)))


def spark_data_type(kind: DataType) -> SparkDataType:
    """A type as PySpark knows it."""
    return spark_type(Struct((StructField("value", kind),)))[0].dataType


def from_spark(schema: StructType) -> Struct:
    """A frame's schema as ours."""
    return parse_schema(schema.json())


def jvm_type(spark: SparkSession, schema: Struct) -> Any:
    """The schema as a value in the driver's JVM."""
    kinds = java_class(spark, "org.apache.spark.sql.types.DataType")
    return kinds.fromJson(render_schema(schema))


def java_class(spark: SparkSession, name: str) -> Any:
    """A class by its whole name: one call to Java instead of one for each package."""
    jvm: Any = spark._jvm
    return getattr(jvm, name)


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it, whatever is in it.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"
