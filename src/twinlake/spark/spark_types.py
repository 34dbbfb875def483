"""Schemas between Delta's JSON and Spark: the two speak the same one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from twinlake.schema import parse_schema, render_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from twinlake.schema import Struct

__all__ = ["from_spark", "java_class", "jvm_type", "quoted", "spark_type"]


def spark_type(schema: Struct) -> StructType:
    """The schema as PySpark knows it, metadata included."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(render_schema(schema)))


def from_spark(schema: StructType) -> Struct:
    """A frame's schema as ours."""
    return parse_schema(schema.json())


def jvm_type(spark: SparkSession, schema: Struct) -> Any:
    """The schema as a value in the driver's JVM."""
    kinds = java_class(spark, "org.apache.spark.sql.types.DataType")
    return kinds.fromJson(render_schema(schema))


def java_class(spark: SparkSession, name: str) -> Any:
    """A class by its whole name: one question to Java instead of one for each package."""
    jvm: Any = spark._jvm
    return getattr(jvm, name)


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it, whatever is in it.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"
