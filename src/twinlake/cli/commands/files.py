"""``twinlake files``: the live files of a table."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command, limit_option, shown_rows
from twinlake.cli.text import count_text, time_text
from twinlake.cli.view import Grid, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference

__all__ = ["files"]

_RANGES = 6
"""How many columns' ranges a line shows; JSON has them all."""


@command(time_travel=True)
@click.option(
    "--where",
    metavar="PREDICATE",
    help="Only files that may hold matching rows, by partition values and statistics.",
)
@limit_option("files")
def files(output: Output, reference: TableReference, where: str | None, limit: int | None) -> None:
    """List the live files of a table with their statistics.

    Size in bytes, rows, how many of them a deletion vector hides (`deleted`), when the file was
    written, partition values, and the minimum and maximum of each column.
    """
    table = reference.open()
    found = table.files(where)
    total = found.num_rows
    wanted = shown_rows(limit, is_terminal=output.is_terminal)
    shown = found.slice(0, wanted)
    records = [_record(row) for batch in shown.to_batches(1024) for row in batch.to_pylist()]
    note = "" if len(records) == total else f"{len(records)} of {count_text(total, 'file')}"
    output.show(
        View(
            data={
                "location": table.location,
                "version": table.version,
                "where": where,
                "total": total,
                "files": records,
            },
            blocks=[
                Grid.of(
                    "path size:r rows:r deleted:r changed partition statistics",
                    [_cells(record) for record in records],
                    note=note,
                )
            ],
        )
    )


def _record(row: dict[str, Any]) -> dict[str, Any]:
    vector = row["deletion_vector"]
    return {
        **row,
        "tags": dict(row["tags"]) if row["tags"] is not None else None,
        "deleted_records": vector["cardinality"] if vector else 0,
    }


def _cells(record: dict[str, Any]) -> tuple[object, ...]:
    partition = ",".join(f"{k}={_value(v)}" for k, v in (record["partition_values"] or {}).items())
    ranges = list(_ranges(record["stats"] or {}))
    more = len(ranges) - _RANGES
    return (
        record["path"],
        record["size"],
        record["num_records"],
        record["deleted_records"],
        time_text(record["modification_time"]),
        partition,
        " ".join(ranges[:_RANGES]) + (f" (+{more} more)" if more > 0 else ""),
    )


def _ranges(stats: dict[str, Any]) -> Iterator[str]:
    low, high = dict(_leaves(stats.get("min_values"))), dict(_leaves(stats.get("max_values")))
    for name in low:
        if low[name] is not None or high.get(name) is not None:
            yield f"{name}={_value(low[name])}..{_value(high.get(name))}"


def _leaves(values: dict[str, Any] | None, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in (values or {}).items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _value(value: Any) -> str:
    if value is None:
        return "null"
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)
