"""Data that users hand over, whatever it is made of, as a stream of Arrow batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.errors import Code, UserError
from twinlake.schema import from_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.schema import Struct

__all__ = ["ArrowData"]


@dataclass(frozen=True, slots=True)
class ArrowData:
    """Rows to write: their schema in the types of tables, and batches that can be read once."""

    schema: Struct
    reader: pa.RecordBatchReader

    @classmethod
    def of(cls, data: Any) -> ArrowData:
        """From Arrow, pandas, polars, a mapping of columns, a list of rows, or a stream of Arrow.

        >>> str(ArrowData.of({"id": [1, 2]}).schema)
        'struct<id: long>'
        """
        try:
            reader = _reader(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise _no_rows(data, str(error).splitlines()[0] if str(error) else "") from error
        return cls(from_arrow(reader.schema), reader)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; what the source raises is an error of the data."""
        try:
            yield from (batch for batch in self.reader if batch.num_rows)
        except pa.ArrowException as error:
            raise _no_rows(self.reader, str(error).splitlines()[0]) from error


def _reader(data: Any) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        # Its own stream would have the index among the columns.
        return pa.Table.from_pandas(data, preserve_index=False).to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)]).to_reader()
    if isinstance(data, dict):
        return pa.table(data).to_reader()
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        return pa.Table.from_pylist(data).to_reader()
    raise TypeError("it is neither Arrow data nor anything that becomes Arrow data")


def _no_rows(data: Any, why: str) -> UserError:
    kind = type(data)
    return UserError(
        Code.INVALID_ARGUMENT,
        f"A {kind.__module__}.{kind.__qualname__} cannot be written as rows.",
        why=why,
        fix="Pass a pyarrow table, a pandas or polars frame, or another source of Arrow data; a "
        "Spark frame is written by `twinlake.spark.write(df, path)`.",
        fields={"type": f"{kind.__module__}.{kind.__qualname__}"},
    )
