"""Rows as a Parquet file, which a server looks into where an Iceberg client brings it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["is_parquet", "read_parquet_rows", "write_parquet_rows"]

_MAGIC: Final = b"PAR1"
_FIELD_ID: Final = b"PARQUET:field_id"


def is_parquet(data: bytes) -> bool:
    """Whether a data file is Parquet."""
    return data.startswith(_MAGIC)


@lru_cache(maxsize=256)
def write_parquet_rows(
    columns: tuple[tuple[str, int], ...], rows: tuple[tuple[str, int, str], ...]
) -> bytes:
    """A file with a text, a number and a text; ``columns`` are their names and field ids."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = (pa.string(), pa.int32(), pa.string())
    schema = pa.schema(
        pa.field(name, kind, metadata={_FIELD_ID: str(number).encode()})
        for (name, number), kind in zip(columns, types, strict=True)
    )
    arrays = [
        pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, schema=schema), sink)
    body: bytes = sink.getvalue().to_pybytes()
    return body


@lru_cache(maxsize=256)
def read_parquet_rows(data: bytes) -> Sequence[tuple[str, int, str]]:
    """The rows of a file, in their order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # No threads: an actor has one.
    table = pq.read_table(pa.BufferReader(data), use_threads=False)
    return tuple(zip(*(column.to_pylist() for column in table.columns), strict=True))
