"""Schemas that users have at hand, from whatever library, as the schema of a table."""

from __future__ import annotations

from typing import Any

from twinlake.errors import Code, UserError
from twinlake.schema import Struct, from_arrow, parse_schema

__all__ = ["table_schema"]


def table_schema(given: Any) -> Struct | str:
    """DDL text and our schemas as they are; those of Arrow, PySpark, pandas and polars as ours.

    >>> import pyarrow as pa
    >>> str(table_schema(pa.schema([("id", pa.int32())])))
    'struct<id: integer>'
    """
    if isinstance(given, str | Struct):
        return given
    package = type(given).__module__.partition(".")[0]
    if package == "pyspark" and hasattr(given, "json") and hasattr(given, "fields"):
        return parse_schema(given.json())
    found = _arrow_schema(given, package)
    if found is not None:
        return from_arrow(found)
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"A {type(given).__name__} is no schema of a table.",
        why="A schema is DDL text, or one of twinlake, pyarrow or PySpark, or that of a frame.",
        fix='Pass text such as "id INT, name STRING", or a schema of pyarrow.',
        fields={"type": type(given).__name__},
    )


def _arrow_schema(given: Any, package: str) -> Any:
    import pyarrow as pa

    if package == "pandas" and hasattr(given, "columns"):
        return pa.Schema.from_pandas(given, preserve_index=False)
    if package == "polars" and hasattr(given, "to_frame") and not hasattr(given, "columns"):
        # A schema of polars gives its types to Arrow through an empty frame.
        given = given.to_frame()
    if hasattr(given, "__arrow_c_schema__"):
        return pa.schema(given)
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given).schema
    return None
