"""Files of rows that a table takes in: Parquet, CSV and JSON lines.

Text is read with the types of the table's columns, so that nothing is guessed from the first rows.
What does not fit is refused with everything that is wrong, before a row is read where possible.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from twinlake.errors import Code, TwinlakeError, UserError, listed
from twinlake.schema import to_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from twinlake.schema import Struct

__all__ = ["FORMATS", "RowFile", "format_of"]

FORMATS: Final = ("parquet", "csv", "jsonl")
_SUFFIXES: Final = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_COMPRESSED: Final = frozenset({".gz", ".bz2", ".zst"})
_LABELS: Final = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSON lines"}
#: A line must fit into a block.
_BLOCK: Final = 16 << 20


def format_of(path: Path) -> str:
    """The format that the ending of a name stands for.

    Raises:
        UserError: if it stands for none.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    found = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    if found is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The name of {path.name} does not say what format the file has.",
            why=f"the known endings are {', '.join(_SUFFIXES)}, and .gz, .bz2 or .zst after them",
            fix="Name the format with `--format`: parquet, csv or jsonl.",
            fields={"file": str(path)},
        )
    return found


class RowFile:
    """The rows of a file as Arrow batches, by the names and types of a table.

    An error within a stream may reach the caller of the stream as text only, so that ``failure``
    keeps it.
    """

    def __init__(self, path: Path, kind: str, schema: Struct) -> None:
        self.path = path
        self.kind = kind
        self.num_rows = 0
        """How many rows have been read."""
        self.failure: TwinlakeError | None = None
        self._table_schema = to_arrow(schema)

    def reader(self) -> pa.RecordBatchReader:
        """The rows, read while they are used; columns that the file lacks are left out.

        Raises:
            UserError: if the file does not fit the table.
        """
        opened = {"parquet": self._parquet, "csv": self._csv, "jsonl": self._json_lines}
        try:
            schema, batches = opened[self.kind]()
        except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
            raise self._unreadable(error) from error
        return pa.RecordBatchReader.from_batches(schema, self._counted(batches))

    def _counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            for batch in batches:
                self.num_rows += batch.num_rows
                yield batch
        except (pa.ArrowException, OSError) as error:
            self.failure = self._unreadable(error)
            raise self.failure from error

    def _parquet(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        import pyarrow.parquet as pq

        file = pq.ParquetFile(self.path)
        names = list(self._columns(file.schema_arrow.names).values())
        schema = pa.schema([f.with_name(n) for f, n in zip(file.schema_arrow, names, strict=True)])
        return schema, (batch.rename_columns(names) for batch in file.iter_batches())

    def _csv(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        import pyarrow.csv as pa_csv

        with self._stream() as stream:
            lines = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            header = next(csv.reader(lines), None)
        if not header:
            raise self._invalid("it has no header line", "Put the names of the columns first.")
        named = self._columns(header)
        self._check_types(named.values(), is_text_of=_is_csv_type)
        kinds = {name: self._field(column).type for name, column in named.items()}
        schema = pa.schema([(named[name], kinds[name]) for name in header])
        reader = pa_csv.open_csv(
            self._stream(),
            read_options=pa_csv.ReadOptions(block_size=_BLOCK),
            parse_options=pa_csv.ParseOptions(newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=kinds,
                # Nothing between two commas is null; two quotes are an empty text.
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        return schema, (batch.rename_columns(schema.names) for batch in reader)

    def _json_lines(self) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        import pyarrow.json as pa_json

        scan = self._scan_lines()
        named = self._columns(scan.names)
        self._check_types(named.values(), is_text_of=_is_json_type)
        kinds = {name: _nullable(self._field(column).type) for name, column in named.items()}
        unknown = sorted(_unknown_fields(scan.names, kinds))
        if unknown:
            raise self._no_column(unknown)
        schema = pa.schema([(named[name], kind) for name, kind in kinds.items()])
        if not kinds:
            return self._table_schema, iter(())
        reader = pa_json.open_json(
            self._stream(),
            read_options=pa_json.ReadOptions(block_size=max(_BLOCK, scan.longest + 1)),
            parse_options=pa_json.ParseOptions(
                explicit_schema=pa.schema(
                    [(name, _nullable(kind, text_dates=True)) for name, kind in kinds.items()]
                ),
                unexpected_field_behavior="error",
            ),
        )
        return schema, (
            batch.select(list(kinds)).rename_columns(schema.names).cast(schema) for batch in reader
        )

    def _scan_lines(self) -> _LineScan:
        """The names of all lines, so that unknown ones are reported together."""
        scan = _LineScan()
        with self._stream() as stream:
            for number, line in enumerate(io.BufferedReader(stream), 1):
                if not line.strip():
                    continue
                try:
                    row = msgspec.json.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise self._invalid(
                        f"line {number} is no JSON: {error}", "Write one object a line."
                    ) from error
                if not isinstance(row, dict):
                    raise self._invalid(
                        f"line {number} is no JSON object", "Write one object a line."
                    )
                scan.add(row, len(line))
        return scan

    def _stream(self) -> Any:
        return pa.input_stream(str(self.path), compression="detect")

    def _field(self, column: str) -> pa.Field:
        return self._table_schema.field(column)

    def _columns(self, names: Iterable[str]) -> dict[str, str]:
        """The column of the table for each name of the file; Delta ignores case."""
        names = list(names)
        folded = {name.casefold(): name for name in self._table_schema.names}
        unknown = [name for name in names if name.casefold() not in folded]
        if unknown:
            raise self._no_column(unknown)
        found = [folded[name.casefold()] for name in names]
        twice = sorted({column for column in found if found.count(column) > 1})
        if twice:
            raise self._invalid(
                f"it has column {listed(twice, ', ')} more than once; case does not count",
                "Keep one column of each name.",
            )
        return dict(zip(names, found, strict=True))

    def _check_types(self, columns: Iterable[str], *, is_text_of: Any) -> None:
        bad = [
            f"{field.name} ({field.type})"
            for field in map(self._field, columns)
            if not is_text_of(field.type)
        ]
        if bad:
            raise self._invalid(
                f"{_LABELS[self.kind]} has no agreed spelling for the types of {listed(bad, ', ')}",
                "Write the rows as Parquet.",
            )

    def _no_column(self, names: Sequence[str]) -> UserError:
        columns = self._table_schema.names
        return UserError(
            Code.COLUMN_NOT_FOUND,
            f"{self.path.name} has columns that the table does not have: "
            f"{listed(map(repr, names), ', ')}.",
            why=f"the columns of the table are {', '.join(columns)}",
            fix="Remove them from the file, or add them to the table first with "
            "`twinlake alter PATH --add-column 'NAME TYPE'`.",
            fields={"file": str(self.path), "missing": list(names), "columns": list(columns)},
        )

    def _invalid(self, why: str, fix: str) -> UserError:
        return UserError(
            Code.INVALID_ARGUMENT,
            f"{self.path.name} cannot be read as {_LABELS[self.kind]}.",
            why=why,
            fix=fix,
            fields={"file": str(self.path), "format": self.kind},
        )

    def _unreadable(self, error: Exception) -> UserError:
        if isinstance(error, FileNotFoundError | IsADirectoryError):
            return UserError(
                Code.INVALID_ARGUMENT,
                f"There is no file {self.path}.",
                why="it does not exist, or is a folder",
                fix="Check the path of the file.",
                fields={"file": str(self.path)},
            )
        return self._invalid(
            str(error), "Correct the file, or name another format with `--format`."
        )


class _LineScan:
    """The names in the objects of a file, with those below them, and the longest line."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.longest = 0

    def add(self, row: Mapping[str, Any], length: int) -> None:
        self.longest = max(self.longest, length)
        _add_names(self.names, row)


def _add_names(names: dict[str, Any], value: Any) -> None:
    if isinstance(value, dict):
        for name, below in value.items():
            _add_names(names.setdefault(name, {}), below)
    elif isinstance(value, list):
        for item in value:
            _add_names(names, item)


def _unknown_fields(
    names: Mapping[str, Any], kinds: Mapping[str, pa.DataType], path: str = ""
) -> Iterator[str]:
    for name, below in names.items():
        if name not in kinds:
            yield f"{path}{name}"
            continue
        kind = kinds[name]
        while pa.types.is_list(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            fields = {field.name: field.type for field in kind}
            yield from _unknown_fields(below, fields, f"{path}{name}.")


def _nullable(kind: pa.DataType, *, text_dates: bool = False) -> pa.DataType:
    """The type as the reader of JSON makes it, which knows neither NOT NULL nor texts of dates."""
    if pa.types.is_struct(kind):
        return pa.struct([(f.name, _nullable(f.type, text_dates=text_dates)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(_nullable(kind.value_type, text_dates=text_dates))
    return pa.string() if text_dates and pa.types.is_date(kind) else kind


def _is_csv_type(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))


def _is_json_type(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_json_type(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _is_json_type(kind.value_type)
    return not (pa.types.is_map(kind) or pa.types.is_binary(kind))
