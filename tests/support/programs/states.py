"""What programs leave behind: the tables below a folder, read without any Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["table_states"]

#: What an engine writes beside the operation that was asked for.
_HOUSEKEEPING = frozenset({"VACUUM START", "VACUUM END"})


def table_states(folder: Path) -> dict[str, dict[str, Any]]:
    """Schema, operations, protocol and rows of each table, by its path in the folder."""
    logs = sorted(folder.rglob("_delta_log"))
    return {str(log.parent.relative_to(folder)): _state(log.parent) for log in logs}


def _state(path: Path) -> dict[str, Any]:
    table = Table.open(path)
    protocol = table.protocol
    rows = [] if table.snapshot.num_files == 0 else table.to_arrow().to_pylist()
    return {
        "schema": [
            (field.name, str(field.type), field.nullable, field.metadata.get("comment"))
            for field in table.schema
        ],
        "partitions": tuple(table.metadata.partition_columns),
        "operations": [
            record.operation
            for record in reversed(table.history())
            if record.operation not in _HOUSEKEEPING
        ],
        "properties": dict(table.properties),
        "protocol": (
            protocol.min_reader_version,
            protocol.min_writer_version,
            sorted(protocol.reader_features or ()),
            sorted(protocol.writer_features or ()),
        ),
        "rows": sorted(map(repr, rows)),
    }
