"""CHAR values with the spaces that Spark adds when it reads them, whatever the session is set to.

``spark.sql.readSideCharPadding`` and ``spark.sql.legacy.charVarcharAsString`` switch the padding of
reads off. Files that are to hold the padding are made by this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F
from pyspark.sql import types as T

from twinlake.schema import char_length

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from twinlake.schema import StructField

__all__ = ["padded", "padded_for"]

_PADS: Final = "spark.sql.readSideCharPadding"
_AS_STRING: Final = "spark.sql.legacy.charVarcharAsString"


def padded_for(spark: SparkSession, column: Column, field: StructField) -> Column:
    """A value that is not read from a file, padded as the session pads what it reads."""
    length = char_length(field)
    if length is None:
        return column
    pads = spark.conf.get(_PADS, "true") == "true" and spark.conf.get(_AS_STRING, "false") != "true"
    return padded(column, T.CharType(length)) if pads else column


def padded(column: Column, kind: T.DataType) -> Column:
    """The column with every CHAR in it filled up to its length; ``kind`` has the lengths."""
    match kind:
        case T.CharType():
            short = F.length(column) < F.lit(kind.length)
            return F.when(short, F.rpad(column, kind.length, " ")).otherwise(column)
        case T.StructType() if _has_char(kind):
            inner = (padded(column.getField(f.name), f.dataType).alias(f.name) for f in kind.fields)
            # A struct of nulls is not a null struct.
            return F.when(column.isNotNull(), F.struct(*inner))
        case T.ArrayType() if _has_char(kind):
            return F.transform(column, lambda item: padded(item, kind.elementType))
        case T.MapType() if _has_char(kind):
            values = F.transform_values(column, lambda _, value: padded(value, kind.valueType))
            return F.transform_keys(values, lambda key, _: padded(key, kind.keyType))
        case _:
            return column


def _has_char(kind: T.DataType) -> bool:
    match kind:
        case T.CharType():
            return True
        case T.StructType():
            return any(_has_char(field.dataType) for field in kind.fields)
        case T.ArrayType():
            return _has_char(kind.elementType)
        case T.MapType():
            return _has_char(kind.keyType) or _has_char(kind.valueType)
        case _:
            return False
