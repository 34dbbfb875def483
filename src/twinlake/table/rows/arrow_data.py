"""Data that users hand over, whatever it is made of, as a stream of Arrow batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.errors import Code, UserError
from twinlake.schema import Array, Map, Struct, from_arrow, to_arrow, walk_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.schema import DataType

__all__ = ["ArrowData"]


@dataclass(frozen=True, slots=True)
class ArrowData:
    """Rows to write: their schema in the types of tables, and batches that can be read once."""

    schema: Struct
    reader: pa.RecordBatchReader

    @classmethod
    def of(cls, data: Any, target: Struct | None = None) -> ArrowData:
        """From Arrow, pandas, polars, a mapping of columns, a list of rows, or a stream of Arrow.

        ``target`` says which dictionaries in Python's values are maps and not structs.

        >>> str(ArrowData.of({"id": [1, 2]}).schema)
        'struct<id: long>'
        """
        try:
            reader = _reader(data, target or Struct(()))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise _no_rows(data, str(error).splitlines()[0] if str(error) else "") from error
        return cls(from_arrow(reader.schema), reader)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; what the source raises is an error of the data."""
        try:
            yield from (batch for batch in self.reader if batch.num_rows)
        except pa.ArrowException as error:
            raise _no_rows(self.reader, str(error).splitlines()[0]) from error


def _reader(data: Any, target: Struct) -> pa.RecordBatchReader:
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
        return _columns(data, target).to_reader()
    if isinstance(data, list) and all(isinstance(row, dict) for row in data):
        # Arrow itself would take the names of the first row, and drop what only others have.
        names = dict.fromkeys(name for row in data for name in row)
        columns = {name: [row.get(name) for row in data] for name in names}
        return _columns(columns, target).to_reader()
    raise TypeError("it is neither Arrow data nor anything that becomes Arrow data")


def _columns(columns: Mapping[str, Any], target: Struct) -> pa.Table:
    """Columns of Python's values; Arrow finds their types, but for those with maps in them."""
    made = {}
    _check_names(columns)
    for name, values in columns.items():
        field = target.get(name)
        if isinstance(values, list) and field is not None and _has_map(field.type):
            items = [_with_items(value, field.type) for value in values]
            made[name] = pa.array(items, to_arrow(Struct((field,))).field(0).type)
        else:
            made[name] = values
    return pa.table(made)


def _check_names(values: Mapping[Any, Any]) -> None:
    if other := [name for name in values if not isinstance(name, str)]:
        raise TypeError(f"names of columns and fields are text, and {other[0]!r} is not")


def _has_map(kind: DataType) -> bool:
    return any(isinstance(one, Map) for _, one in walk_types(kind))


def _with_items(value: Any, kind: DataType) -> Any:
    """A value of Python in which each map is a list of keys and values, as Arrow takes them."""
    match kind:
        case Map() if isinstance(value, dict):
            return [(key, _with_items(item, kind.value)) for key, item in value.items()]
        case Array() if isinstance(value, list | tuple):
            return [_with_items(item, kind.element) for item in value]
        case Struct() if isinstance(value, dict):
            _check_names(value)
            fields = {name: kind.get(name) for name in value}
            if unknown := [name for name, field in fields.items() if field is None]:
                # Arrow would leave them out.
                raise ValueError(f"a struct of the table has no field {', '.join(unknown)}")
            return {f.name: _with_items(value[name], f.type) for name, f in fields.items() if f}
        case _:
            return value


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
