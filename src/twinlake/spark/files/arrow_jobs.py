"""Functions over Arrow batches in Spark's Python workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import DataFrame, functions
from pyspark.sql.udf import _create_udf
from pyspark.util import PythonEvalType

from twinlake.spark.spark_types import quoted
from twinlake.spark.worker_python import InWorker, worker_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["map_in_arrow"]


def map_in_arrow(
    frame: DataFrame,
    call: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """The frame's batches through a function that is importable by name.

    ``DataFrame.mapInArrow`` does the same, but it asks for pandas and trips over dots in names.
    """
    made: Any = InWorker.of(call)
    function: Any = _create_udf(made, schema, PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    columns = [functions.col(quoted(name)) for name in frame.columns]
    with worker_functions(frame.sparkSession):
        applied = function(*columns)._jc
    jdf = cast("Any", frame)._jdf.mapInArrow(applied, False, None)
    return DataFrame(jdf, frame.sparkSession)
