"""``twinlake query``: a SELECT on a table, by DuckDB."""

from __future__ import annotations

import contextlib
import re
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
import pyarrow as pa

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.query_columns import scanned_columns
from twinlake.cli.row_view import row_blocks, row_records
from twinlake.cli.text import count_text
from twinlake.cli.view import View
from twinlake.errors import Code, TwinlakeError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.table import Table

__all__ = ["query"]

_NAME: Final = "t"
_STATEMENTS: Final = ("SELECT", "WITH", "FROM", "DESCRIBE", "SUMMARIZE")
#: Other forms of the same: a set operation in brackets, a list of rows, DESC for DESCRIBE.
_FORMS: Final = frozenset({*_STATEMENTS, "(", "VALUES", "DESC"})
_BATCH_ROWS: Final = 10_000
#: A query reads the table and nothing else: no file, no secret, no variable of this process.
_SETTINGS: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "allow_persistent_secrets": "false",
}


@command(time_travel=True)
@click.argument("sql", metavar="SELECT")
@limit_option("rows of the result")
def query(output: Output, reference: TableReference, sql: str, limit: int | None) -> None:
    """Run a SELECT on a table by DuckDB.

    The table has the name t, and its own if that is a plain word: twinlake query ./orders "select
    count(*) from orders". One SELECT, WITH, FROM, DESCRIBE or SUMMARIZE; it reads this table and
    nothing else, and writes nothing. Needs no Spark, but pip install 'twinlake[duckdb]'. Values of
    more than 60 characters are cut; --json has them whole.
    """
    table = reference.open()
    wanted = shown_rows(limit, is_terminal=output.is_terminal)
    found, is_cut = _run(table, sql, wanted)
    note = "" if found.num_rows else "no rows"
    if is_cut:
        note = f"the first {count_text(found.num_rows, 'row')}; --limit sets the number"
    output.show(
        View(
            data={
                "location": table.location,
                "version": table.version,
                "columns": [{"name": f.name, "type": str(f.type)} for f in found.schema],
                "is_complete": not is_cut,
                "rows": row_records(found),
            },
            blocks=row_blocks(found, note, is_terminal=output.is_terminal),
        )
    )


def _run(table: Table, sql: str, limit: int | None) -> tuple[pa.Table, bool]:
    """The rows of the result, and whether there are more than the limit."""
    duckdb = _duckdb()
    schema, names = table.to_arrow(limit=0).schema, _names(table)
    failed: list[TwinlakeError] = []
    # What does not fit into memory is spilled; by default into the working directory.
    with tempfile.TemporaryDirectory(prefix="twinlake-query-") as folder:
        settings = {**_SETTINGS, "temp_directory": folder}
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            try:
                _check_statement(duckdb, connection, sql)
                columns = scanned_columns(connection, sql, names, schema)
                rows = _TableRows(table, schema, columns, failed)
                for name in names:
                    connection.register(name, rows)
                connection.execute("SET lock_configuration = true")
                relation = connection.sql(sql)
                kinds = [str(kind) for kind in relation.types]
                found, is_cut = _limited(_reader(relation), limit)
                return _with_integers(found, kinds), is_cut
            except duckdb.Error as error:
                raise _first(failed) or _failed(sql, error) from error
            except (pa.ArrowException, OSError) as error:
                raise _first(failed) or error from error


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "DuckDB is not installed.",
            why="DuckDB runs the query, and twinlake does not install it by itself",
            fix="Run `pip install 'twinlake[duckdb]'`.",
            fields={"package": "duckdb"},
        ) from error
    return duckdb


@dataclass(frozen=True, slots=True)
class _TableRows:
    """The rows of a table as Arrow streams; DuckDB asks for one a scan.

    Streams have all columns of the table, because the query names them; those that it does not
    read are null instead of being read.
    """

    table: Table
    schema: pa.Schema
    columns: tuple[str, ...]
    failed: list[TwinlakeError]
    """Errors of ours: they come out of a stream as text only."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self.table.to_batches(self.columns):
                yield self._with_all_columns(batch)
        except TwinlakeError as error:
            self.failed.append(error)
            raise

    def _with_all_columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        there = set(self.columns)
        arrays = [
            batch.column(field.name) if field.name in there else pa.nulls(len(batch), field.type)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _first(errors: Sequence[TwinlakeError]) -> TwinlakeError | None:
    return errors[0] if errors else None


def _names(table: Table) -> list[str]:
    own = table.metadata.name or table.location.rstrip("/").rpartition("/")[2]
    is_plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", own) and own.casefold() != _NAME
    return [_NAME, own] if is_plain else [_NAME]


def _check_statement(duckdb: Any, connection: Any, sql: str) -> None:
    statements = connection.extract_statements(sql)
    found = ", ".join(statement.type.name for statement in statements) or "no statement"
    if found == duckdb.StatementType.SELECT.name:
        # So are PRAGMA and SHOW; only the first word tells them apart.
        found = _first_word(duckdb, sql)
        if found in _FORMS:
            return
    raise UserError(
        Code.INVALID_ARGUMENT,
        "The query is not one statement that only reads.",
        why=f"only one of {', '.join(_STATEMENTS)} is run; this is {found}",
        fix="Give one query, such as `twinlake query PATH 'SELECT count(*) FROM t'`.",
        fields={"statements": [statement.type.name for statement in statements]},
    )


def _first_word(duckdb: Any, sql: str) -> str:
    """The first word or sign after comments, in capitals."""
    # From DuckDB 2.0 on comments are tokens, too.
    tokens = duckdb.tokenize(sql)
    start = next(start for start, kind in tokens if kind != duckdb.token_type.comment)
    found = re.match(r"\w+|.", sql.encode()[start:].decode(), re.DOTALL)
    return "" if found is None else found[0].upper()


def _reader(relation: Any) -> pa.RecordBatchReader:
    # DuckDB 1.4 has only the old name, which later releases warn of.
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_record_batch
    return read(_BATCH_ROWS)


def _limited(reader: pa.RecordBatchReader, limit: int | None) -> tuple[pa.Table, bool]:
    batches, rows = [], 0
    for batch in reader:
        batches.append(batch)
        rows += batch.num_rows
        if limit is not None and rows > limit:
            break
    found = pa.Table.from_batches(batches, reader.schema)
    return found.slice(0, limit), limit is not None and rows > limit


def _with_integers(rows: pa.Table, kinds: Sequence[str]) -> pa.Table:
    """Sums of integers as integers where they fit: Arrow has decimals for DuckDB's HUGEINT."""
    for number, kind in enumerate(kinds):
        if kind == "HUGEINT":
            with contextlib.suppress(pa.ArrowInvalid):
                name, column = rows.column_names[number], rows.column(number)
                rows = rows.set_column(number, name, column.cast(pa.int64()))
    return rows


def _failed(sql: str, error: Exception) -> UserError:
    # Below an empty line DuckDB prints the query with a mark, or a stack trace.
    text = str(error).partition("\n\n")[0]
    return UserError(
        Code.INVALID_ARGUMENT,
        "DuckDB cannot run the query.",
        why=text,
        fix="Correct the query; `twinlake schema PATH` lists the columns of the table, which is "
        "named t.",
        fields={"sql": sql},
    )
