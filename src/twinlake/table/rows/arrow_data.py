"""Data that users hand over, whatever it is made of, as a stream of Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from twinlake.errors import Code, UserError
from twinlake.files import plain_batch, plain_type
from twinlake.schema import Array, Map, Struct, from_arrow, type_to_arrow, walk_types

if TYPE_CHECKING:
    from twinlake.schema import DataType

__all__ = ["ArrowData", "values_array"]


@dataclass(frozen=True, slots=True)
class ArrowData:
    """Rows to write: their schema in the types of tables, and batches that can be read once."""

    schema: Struct
    reader: pa.RecordBatchReader

    @classmethod
    def of(cls, data: Any, target: Struct | None = None) -> ArrowData:
        """From Arrow, pandas, polars, a mapping of columns, rows or batches, or a stream of Arrow.

        ``target`` says which dictionaries in Python's values are maps and not structs.

        >>> str(ArrowData.of({"id": [1, 2]}).schema)
        'struct<id: long>'
        """
        try:
            reader = _plain(_reader(data, target or Struct(())))
        except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
            raise _no_rows(data, _first_line(error)) from error
        return cls(from_arrow(reader.schema), reader)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows; what the source raises is an error of the data."""
        try:
            yield from (batch for batch in self.reader if batch.num_rows)
        except pa.ArrowException as error:
            raise _no_rows(self.reader, _first_line(error)) from error


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
    if isinstance(data, list | Iterator):
        return _rows_or_batches(iter(data), target)
    raise TypeError("It is neither Arrow data nor anything that becomes Arrow data.")


def _rows_or_batches(data: Iterator[Any], target: Struct) -> pa.RecordBatchReader:
    """Rows as dictionaries are taken all at once, Arrow batches one after the other."""
    first = list(islice(data, 1))
    if first and isinstance(first[0], pa.RecordBatch):
        schema = first[0].schema
        return pa.RecordBatchReader.from_batches(schema, _alike(chain(first, data), schema))
    rows = [*first, *data]
    if other := [row for row in rows if not isinstance(row, dict)]:
        raise TypeError(f"Rows are dictionaries or Arrow batches, and one is a {_name(other[0])}.")
    # Arrow itself would take the names of the first row, and drop what only others have.
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return _columns(columns, target).to_reader()


def _alike(batches: Iterator[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not isinstance(batch, pa.RecordBatch) or not batch.schema.equals(schema):
            # Arrow would hand it on as it is.
            raise pa.ArrowInvalid(f"The batches have different columns, the first {schema.names}.")
        yield batch


def _plain(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows in types that Arrow computes with: polars has its texts as views."""
    schema = pa.schema([field.with_type(plain_type(field.type)) for field in reader.schema])
    if schema == reader.schema:
        return reader
    return pa.RecordBatchReader.from_batches(schema, (plain_batch(batch) for batch in reader))


def _columns(columns: Mapping[str, Any], target: Struct) -> pa.Table:
    """Columns of Python's values; Arrow finds their types, but for those with maps in them."""
    _check_names(columns)
    made = {}
    for name, values in columns.items():
        field = target.get(name)
        try:
            made[name] = values_array(values, field.type if field is not None else None)
        except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
            raise ValueError(f"Column {name}: {_first_line(error)}") from error
    return pa.table(made)


def values_array(values: Any, kind: DataType | None) -> Any:
    """Values as Arrow; the type of a column says which dictionaries of Python's are maps."""
    if isinstance(values, pa.Array | pa.ChunkedArray) or hasattr(values, "__arrow_c_stream__"):
        return values
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        # Of a text Arrow would make as many rows as it has characters.
        raise TypeError(f"It is one value, a {_name(values)}, where a list of values is expected.")
    if isinstance(values, list) and kind is not None and _has_map(kind):
        return pa.array([_with_items(value, kind) for value in values], type_to_arrow(kind))
    return pa.array(values)


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


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else ""


def _name(value: Any) -> str:
    kind = type(value)
    own = kind.__qualname__
    return own if kind.__module__ == "builtins" else f"{kind.__module__}.{own}"


def _no_rows(data: Any, why: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"A {_name(data)} cannot be written as rows.",
        why=why,
        fix="Pass a dictionary with a list of values for each column, a list of dictionaries, a "
        "pyarrow table or batches of it, a pandas or polars frame, or another source of Arrow "
        "data; write a Spark frame with `twinlake.spark.write(df, path)`.",
        fields={"type": _name(data)},
    )
