"""What a table's rows are read by: Arrow, pandas, polars, DuckDB, and anything that takes Arrow."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from twinlake.errors import Code, UserError
from twinlake.table.arguments import checked_arguments
from twinlake.table.view import TableView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from twinlake.table.rows.row_scan import RowScan

__all__ = ["ReadableTable"]

_LIMIT_BYTES: Final = 1 << 30


@checked_arguments
class ReadableTable(TableView):
    """The rows of one version of a table."""

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        limit_bytes: int = _LIMIT_BYTES,
        *,
        row_ids: bool = False,
    ) -> pa.Table:
        """The rows as one Arrow table: those for which ``where`` is true, at most ``limit``.

        A field of a struct is named ``address.city``; the struct then has the fields named. More
        than ``limit_bytes`` of the rows are refused. ``row_ids`` adds the row id of each row and
        the version that last changed it, where the table has row tracking.

        >>> import tempfile, twinlake
        >>> t = twinlake.Table.create(tempfile.mkdtemp(), "id INT, name STRING")
        >>> t.to_arrow(columns=["id"]).num_rows
        0
        """
        import pyarrow as pa

        scan = self._scan(columns, where, row_ids=row_ids)
        found, size = [], 0
        for batch in scan.limited(_checked_limit(limit)):
            found.append(batch)
            size += batch.nbytes
            if size > limit_bytes:
                raise UserError(
                    Code.INVALID_ARGUMENT,
                    f"The rows take more than {limit_bytes} bytes of memory.",
                    why="They are held in this process all at once.",
                    fix="Name fewer columns or rows, read piece by piece with "
                    "`Table.to_batches()`, run `twinlake.spark.scan(spark, path)`, or raise "
                    "`limit_bytes=`.",
                    fields={"limit_bytes": limit_bytes},
                )
        return pa.Table.from_batches(found, scan.schema)

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        *,
        row_ids: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The same rows in batches, read while they are used: any number of them fits."""
        return self._scan(columns, where, row_ids=row_ids).limited(_checked_limit(limit))

    def to_pandas(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        limit_bytes: int = _LIMIT_BYTES,
        *,
        row_ids: bool = False,
    ) -> Any:
        """The rows as a pandas frame; needs ``pip install twinlake[pandas]``."""
        _imported("pandas")
        return self.to_arrow(columns, where, limit, limit_bytes, row_ids=row_ids).to_pandas()

    def to_polars(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        limit_bytes: int = _LIMIT_BYTES,
        *,
        row_ids: bool = False,
    ) -> Any:
        """The rows as a polars frame; needs ``pip install twinlake[polars]``."""
        rows = self.to_arrow(columns, where, limit, limit_bytes, row_ids=row_ids)
        return _imported("polars").from_arrow(rows)

    def to_duckdb(self, connection: Any = None) -> Any:
        """The table as a relation of DuckDB, which reads its rows when it is used."""
        duckdb = _imported("duckdb")
        if connection is not None and not isinstance(connection, duckdb.DuckDBPyConnection):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{connection!r} is no connection of DuckDB.",
                fix="Pass what `duckdb.connect()` returns, or leave `connection=` out.",
            )
        return (connection or duckdb).from_arrow(self)

    def count(self, where: str | None = None) -> int:
        """How many rows there are, or how many match; the log alone answers where it can."""
        return self._scan((), where).count()

    def head(self, n: int = 10) -> pa.Table:
        """The first rows."""
        return self.to_arrow(limit=n)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The rows as a stream of the Arrow PyCapsule interface."""
        import pyarrow as pa

        scan = self._scan(None, None)
        reader = pa.RecordBatchReader.from_batches(scan.schema, scan.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _scan(
        self, columns: Sequence[str] | None, where: str | None, *, row_ids: bool = False
    ) -> RowScan:
        from twinlake.table.rows.row_scan import RowScan

        names = None if columns is None else tuple(columns)
        return RowScan.of(self.snapshot, columns=names, where=where, row_ids=row_ids)


def _checked_limit(limit: int | None) -> int | None:
    if limit is not None and limit < 0:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{limit} rows cannot be read.",
            fix="Give a limit of 0 or more.",
        )
    return limit


def _imported(name: str) -> Any:
    """A library that is only needed for this; if it is missing, the error says how to get it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{name} is not installed.",
            why=f"The result is made by {name}, which twinlake does not install by itself.",
            fix=f"Run `pip install 'twinlake[{name}]'`.",
            fields={"package": name},
        ) from error
