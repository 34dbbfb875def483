"""A table as text for a terminal and as HTML for a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from twinlake.schema import render_type
from twinlake.table.detail import describe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from twinlake.log import Snapshot

__all__ = ["html", "human_size", "one_line"]

_STYLE = "border-collapse:collapse;margin:.4em 0;font-family:system-ui,sans-serif;font-size:13px"
_CELL = "padding:.15em .8em .15em 0;text-align:left;vertical-align:top"


def human_size(size: int) -> str:
    """Bytes as a person says them.

    >>> human_size(999), human_size(1536), human_size(5 * 1024**3)
    ('999 B', '1.5 KiB', '5.0 GiB')
    """
    amount, units = float(size), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while amount >= 1024 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    return f"{size} B" if units[0] == "B" else f"{amount:.1f} {units[0]}"


def one_line(snapshot: Snapshot) -> str:
    """The ``repr`` of a table; reads nothing."""
    known = snapshot.known_counters
    files = f", {known.num_files} files" if known is not None else ""
    columns = len(snapshot.schema)
    return (
        f"<Table {snapshot.store.url} version {snapshot.version}, protocol {snapshot.protocol}, "
        f"{columns} column{'' if columns == 1 else 's'}{files}>"
    )


def html(snapshot: Snapshot) -> str:
    """One screen: what it is, its columns, its properties."""
    detail = describe(snapshot)
    summary = [
        ("location", detail.location),
        ("version", str(detail.version)),
        ("protocol", f"reader {detail.min_reader_version}, writer {detail.min_writer_version}"),
        ("features", ", ".join(detail.features) or "none"),
        ("partitioned by", ", ".join(detail.partition_columns) or "nothing"),
        ("clustered by", ", ".join(detail.clustering_columns) or "nothing"),
        ("files", f"{detail.num_files} ({human_size(detail.size_in_bytes)})"),
    ]
    columns = [
        (
            field.name,
            render_type(field.type),
            "" if field.nullable else "NOT NULL",
            str(field.metadata.get("comment", "")),
        )
        for field in snapshot.schema
    ]
    title = detail.name or detail.location.rstrip("/").rpartition("/")[2]
    return (
        f"<div><strong>{escape(title)}</strong>"
        + _grid((), summary)
        + _grid(("column", "type", "", "comment"), columns)
        + (_grid(("property", "value"), detail.properties.items()) if detail.properties else "")
        + "</div>"
    )


def _grid(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>"
        for row in rows
    )
    top = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f'<table style="{_STYLE}">{top}<tbody>{body}</tbody></table>'
