"""``twinlake show``: a table on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.cli.command import command
from twinlake.cli.text import count_text, protocol_text, readability, time_text
from twinlake.cli.view import Fields, Grid, Heading, View
from twinlake.compat import enabled_compats
from twinlake.log import commit_rows
from twinlake.protocol import active_features
from twinlake.schema import render_type
from twinlake.table import human_size

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.table import Table

__all__ = ["show"]

_COMMITS = 5


@command(time_travel=True)
def show(output: Output, reference: TableReference) -> None:
    """Show a table on one screen.

    Version and time, protocol and features, columns, partitioning, properties, files and the
    last commits. Works on tables with unsupported reader features too, and names them.
    """
    output.show(_view(reference.open_metadata()))


def _view(table: Table) -> View:
    snapshot = table.snapshot
    gates = readability(snapshot)
    readable = not gates["read_blocked_by"]
    details = _detail(table, readable=readable)
    features = table.protocol.feature_names
    active = sorted(active_features(table.metadata, features) & features)
    commits = table.history(_COMMITS)
    data = {
        **details,
        "reader_features": _listed(table.protocol.reader_features),
        "writer_features": _listed(table.protocol.writer_features),
        "active_features": active,
        **gates,
        "schema": _columns(table),
        "last_commits": [record.to_dict() for record in commits],
        "iceberg": _iceberg(table),
    }
    return View(data=data, blocks=_blocks(table, data, commit_rows(commits)))


def _iceberg(table: Table) -> dict[str, Any] | None:
    """The lag of the Iceberg metadata; None for a table that has none and no compat feature."""
    side = table.iceberg
    if side.version is None and not enabled_compats(table.metadata):
        return None
    return {**side.lag.to_dict(), "metadata_location": side.metadata_location, "name": side.name}


def _lag_text(lag: dict[str, Any] | None) -> str:
    """How far the Iceberg metadata is, in one line; empty where there is nothing to say."""
    if lag is None:
        return ""
    name = f", published as {lag['name']}" if lag["name"] else ""
    if lag["iceberg_version"] is None:
        return f"no metadata yet: {lag['why']}"
    if not lag["versions"]:
        return f"at version {lag['iceberg_version']}{name}"
    behind = count_text(lag["versions"], "version")
    return f"at version {lag['iceberg_version']}, {behind} behind{name}: {lag['why']}"


def _listed(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _detail(table: Table, *, readable: bool) -> dict[str, Any]:
    detail = table.detail().to_dict()
    if readable:
        return detail
    # With unsupported reader features the live files may differ from those in the log.
    unknown = dict.fromkeys(("num_files", "size_in_bytes", "num_deletion_vectors"))
    return {**detail, **unknown}


def _columns(table: Table) -> list[dict[str, Any]]:
    partitions = {name.casefold() for name in table.metadata.partition_columns}
    return [
        {
            "name": field.name,
            "type": render_type(field.type),
            "nullable": field.nullable,
            "partition": field.name.casefold() in partitions,
            "comment": field.metadata.get("comment"),
        }
        for field in table.schema
    ]


def _blocks(
    table: Table, data: dict[str, Any], commits: list[tuple[object, ...]]
) -> list[Fields | Grid | Heading]:
    title = data["name"] or data["location"].rstrip("/").rpartition("/")[2]
    files = "unknown"
    if data["num_files"] is not None:
        files = f"{count_text(data['num_files'], 'file')}, {human_size(data['size_in_bytes'])}"
        if data["num_deletion_vectors"]:
            files += f", {data['num_deletion_vectors']} with a deletion vector"
    idle = [name for name in data["features"] if name not in data["active_features"]]
    details = [
        ("location", data["location"]),
        ("id", data["id"]),
        ("about", data["description"] or ""),
        ("version", str(data["version"])),
        ("created", time_text(data["created_at"]) or ""),
        ("changed", time_text(data["last_modified"]) or ""),
        ("protocol", protocol_text(table.protocol)),
        ("in use", ", ".join(data["active_features"]) or "no feature"),
        ("supported", ", ".join(idle)),
        ("twinlake", _support(data)),
        ("partitioned by", ", ".join(data["partition_columns"])),
        ("clustered by", ", ".join(data["clustering_columns"])),
        ("data", files),
        ("Iceberg", _lag_text(data["iceberg"])),
    ]
    blocks: list[Fields | Grid | Heading] = [
        Heading(title),
        Fields(tuple((label, value) for label, value in details if value)),
        Grid.of(
            "column type null partition comment",
            [
                (c["name"], c["type"], c["nullable"], c["partition"] or None, c["comment"])
                for c in data["schema"]
            ],
        ),
    ]
    if data["properties"]:
        blocks.append(Grid.of("property value", data["properties"].items()))
    blocks.append(Grid.of("version:r time commit engine details", commits))
    return blocks


def _support(data: dict[str, Any]) -> str:
    unread, unwritten = data["read_blocked_by"], data["write_blocked_by"]
    if unread:
        return f"cannot read it: unsupported {', '.join(unread)}"
    if unwritten:
        return f"can read it, cannot write it: unsupported {', '.join(unwritten)}"
    return "can read and write it"
