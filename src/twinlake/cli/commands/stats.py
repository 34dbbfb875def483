"""``twinlake stats``: file sizes, rows and value ranges, from the log alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click
import pyarrow as pa
import pyarrow.compute as pc

from twinlake.cli.command import command
from twinlake.cli.range_counts import power_buckets, range_counts
from twinlake.cli.row_view import value_text
from twinlake.cli.text import count_text, truncate
from twinlake.cli.view import Bars, Fields, Grid, Ranges, View
from twinlake.schema import Struct, render_path, render_type
from twinlake.table import human_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.cli.view import Block
    from twinlake.schema import ColumnPath, DataType

__all__ = ["stats"]

_BOUND_WIDTH: Final = 26
#: Ends the maximum of a long text that was cut: no character is greater.
_GREATEST: Final = "\U0010ffff"


@command(time_travel=True)
@click.option(
    "--where",
    metavar="PREDICATE",
    help="Only files that may hold matching rows, by partition values and statistics.",
)
def stats(output: Output, reference: TableReference, where: str | None) -> None:
    """Show file sizes, rows and value ranges of a table.

    Everything comes from the log; no data file is opened. Nulls and ranges are those of the rows in
    the files: rows that a deletion vector hides count too, and bounds of long texts are cut. Where
    few files lie over each part of a column's range, predicates on it skip the others.
    """
    table = reference.open()
    files = table.files(where)
    data = {
        "location": table.location,
        "version": table.version,
        "where": where,
        **_totals(files),
        "columns": [
            _column(files, path, kind, partitions=table.metadata.partition_columns)
            for path, kind in _leaves(table.schema)
        ],
    }
    output.show(View(data=data, blocks=_blocks(data)))


def _totals(files: pa.Table) -> dict[str, Any]:
    sizes, counts = files["size"], files["num_records"]
    vectors = files["deletion_vector"]
    hidden = pc.sum(pc.struct_field(vectors, ["cardinality"])).as_py() or 0
    in_files = None if counts.null_count else pc.sum(counts).as_py() or 0
    num_vectors = len(vectors) - vectors.null_count
    return {
        "num_files": files.num_rows,
        "size_in_bytes": pc.sum(sizes).as_py() or 0,
        "file_size": {
            "min": pc.min(sizes).as_py(),
            "median": pc.quantile(sizes, 0.5, interpolation="lower")[0].as_py(),
            "max": pc.max(sizes).as_py(),
        },
        "num_rows": None if in_files is None else in_files - hidden,
        "num_rows_in_files": in_files,
        "num_deleted_rows": hidden,
        "num_deletion_vectors": num_vectors,
        "file_sizes": _buckets(sizes, "size_in_bytes"),
        "file_rows": _buckets(counts, "rows"),
    }


def _buckets(values: pa.ChunkedArray, total: str) -> list[dict[str, int]]:
    """How many files have how much of something, and how much they have in sum."""
    return [
        {"from": start, "below": end, "files": len(within), total: pc.sum(within).as_py() or 0}
        for start, end, within in power_buckets(values)
    ]


def _leaves(kind: Struct, path: ColumnPath = ()) -> Iterator[tuple[ColumnPath, DataType]]:
    """The columns that may have statistics: structs have those of their fields."""
    for field in kind:
        here = (*path, field.name)
        if isinstance(field.type, Struct):
            yield from _leaves(field.type, here)
        else:
            yield here, field.type


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statistics:
    """The statistics of a column, a value for each file."""

    low: pa.ChunkedArray
    high: pa.ChunkedArray
    nulls: pa.ChunkedArray
    rows: pa.ChunkedArray

    @classmethod
    def of(cls, files: pa.Table, path: ColumnPath, *, is_partition: bool) -> _Statistics:
        rows = files["num_records"]
        if is_partition:
            values = _part(files, ("partition_values", *path))
            # A file lies in one partition: all its values are null, or none is.
            nulls = pc.if_else(pc.is_null(values), rows, 0)
            return cls(low=values, high=values, nulls=nulls, rows=rows)
        return cls(
            low=_part(files, ("stats", "min_values", *path)),
            high=_part(files, ("stats", "max_values", *path)),
            nulls=_part(files, ("stats", "null_count", *path)),
            rows=rows,
        )


def _part(files: pa.Table, path: ColumnPath) -> pa.ChunkedArray:
    """A field below a column; nulls where the statistics do not have it."""
    kind = files.schema.field(path[0]).type
    for name in path[1:]:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return pa.chunked_array([pa.nulls(files.num_rows)])
        kind = kind.field(name).type
    return pc.struct_field(files[path[0]], list(path[1:]))


def _column(
    files: pa.Table, path: ColumnPath, kind: DataType, *, partitions: tuple[str, ...]
) -> dict[str, Any]:
    is_partition = len(path) == 1 and path[0].casefold() in {p.casefold() for p in partitions}
    found = _Statistics.of(files, path, is_partition=is_partition)
    is_counted = pc.and_(pc.is_valid(found.nulls), pc.is_valid(found.rows))
    nulls = pc.sum(found.nulls.filter(is_counted)).as_py() or 0
    rows = pc.sum(found.rows.filter(is_counted)).as_py() or 0
    # A file of nulls alone has no range, and none is missing.
    only_nulls = pc.fill_null(pc.equal(found.nulls, found.rows), False)
    has_range = pc.and_(pc.is_valid(found.low), pc.is_valid(found.high))
    known = pc.sum(pc.or_(has_range, only_nulls)).as_py() if pc.any(has_range).as_py() else 0
    return {
        "column": render_path(path),
        "type": render_type(kind),
        "partition": is_partition,
        "nulls": nulls if rows else None,
        "null_share": nulls / rows if rows else None,
        "min": _bound(pc.min, found.low),
        "max": _bound(pc.max, found.high),
        "files_with_range": known,
        "range_counts": range_counts(found.low, found.high) if known else None,
    }


def _bound(function: Any, values: pa.ChunkedArray) -> Any:
    if pa.types.is_null(values.type):
        return None
    found = function(values)
    try:
        return found.as_py()
    except (OverflowError, ValueError):
        return found.cast(pa.string()).as_py()  # a year that Python does not have


def _blocks(data: dict[str, Any]) -> list[Block]:
    files, size = data["num_files"], data["file_size"]
    rows, vectors = data["num_rows"], data["num_deletion_vectors"]
    details = [("files", str(files)), ("bytes", _bytes(data["size_in_bytes"]))]
    if files:
        sizes = [human_size(size[name]) for name in ("min", "median", "max")]
        details.append(("file size", f"{sizes[0]} to {sizes[2]}, median {sizes[1]}"))
    details.append(("rows", "unknown: files have no statistics" if rows is None else str(rows)))
    if vectors:
        hidden = _share(data["num_deleted_rows"], data["num_rows_in_files"])
        details.append(
            (
                "deletion vectors",
                f"{vectors} of {count_text(files, 'file')} ({_share(vectors, files)}), "
                f"{count_text(data['num_deleted_rows'], 'row')} deleted ({hidden})",
            )
        )
    blocks: list[Block] = [Fields(tuple(details))]
    if files:
        blocks.append(Bars(tuple(map(_size_bar, data["file_sizes"])), title="file sizes"))
    if data["file_rows"]:
        blocks.append(Bars(tuple(map(_rows_bar, data["file_rows"])), title="rows of files"))
    blocks.append(
        Grid.of(
            "column type null:r min max files:r", [_cells(one, files) for one in data["columns"]]
        )
    )
    ranges = tuple(_range(one) for one in data["columns"] if one["range_counts"])
    if files > 1 and ranges:
        blocks.append(Ranges(ranges, title="value ranges: files at each part, of all", whole=files))
    return blocks


def _bytes(size: int) -> str:
    return str(size) if size < 1024 else f"{size} ({human_size(size)})"


def _share(part: int, whole: int | None) -> str:
    """A percentage that is 0 or 100 only if nothing or everything is meant."""
    if not whole:
        return "-"
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "<0.1%"
    return ">99.9%" if 99.9 < share < 100 else f"{share:.3g}%"


def _size_bar(bucket: dict[str, int]) -> tuple[str, int, str]:
    label = f"{human_size(bucket['from'])} to {human_size(bucket['below'])}"
    text = f"{count_text(bucket['files'], 'file')}, {human_size(bucket['size_in_bytes'])}"
    return label, bucket["files"], text


def _rows_bar(bucket: dict[str, int]) -> tuple[str, int, str]:
    label = f"{bucket['from']} to {bucket['below'] - 1}"
    text = f"{count_text(bucket['files'], 'file')}, {count_text(bucket['rows'], 'row')}"
    return label, bucket["files"], text


def _range(column: dict[str, Any]) -> tuple[str, Sequence[int], str]:
    low, high = _bound_text(column["min"]), _bound_text(column["max"])
    return column["column"], column["range_counts"], f"{low} to {high}"


def _cells(column: dict[str, Any], files: int) -> tuple[object, ...]:
    share = column["null_share"]
    known = column["files_with_range"]
    return (
        column["column"],
        truncate(column["type"], _BOUND_WIDTH),
        None if share is None else _share(round(share * 10**9), 10**9),
        _bound_text(column["min"]),
        _bound_text(column["max"]),
        f"{known}/{files}" if known else None,
    )


def _bound_text(value: Any) -> str | None:
    if value is None:
        return None
    cut = isinstance(value, str) and value.endswith(_GREATEST)
    text = value.rstrip(_GREATEST) + "…" if cut else value_text(value)
    return truncate(text, _BOUND_WIDTH)
