"""Small tables for the tests of the table room."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinlake import Table
from twinlake.actions import AddFile, DeletionVectorDescriptor


def create(folder: Path, schema: str = "id INT, name STRING", **rest: Any) -> Table:
    rest.setdefault("durable", False)
    return Table.create(folder, schema, **rest)


def data_file(
    name: str,
    rows: int = 10,
    *,
    partition: Mapping[str, str | None] | None = None,
    low: int = 0,
    vector: DeletionVectorDescriptor | None = None,
) -> AddFile:
    """An add action with statistics on ``id``."""
    stats = {
        "numRecords": rows,
        "minValues": {"id": low},
        "maxValues": {"id": low + rows - 1},
        "nullCount": {"id": 0},
    }
    return AddFile(
        path=name,
        partition_values=dict(partition or {}),
        size=rows * 10,
        modification_time=1_700_000_000_000,
        data_change=True,
        stats=json.dumps(stats),
        deletion_vector=vector,
    )


def write_files(folder: Path, *names: str) -> None:
    """Something under the names, for operations that look whether files are there."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"PAR1")


def log_lines(folder: Path, version: int) -> list[dict[str, Any]]:
    text = (folder / "_delta_log" / f"{version:020d}.json").read_text()
    return [json.loads(line) for line in text.splitlines()]


def protocol_line(folder: Path, version: int) -> str | None:
    """The text of the protocol action as it stands in the log."""
    text = (folder / "_delta_log" / f"{version:020d}.json").read_text()
    return next((line for line in text.splitlines() if line.startswith('{"protocol"')), None)
