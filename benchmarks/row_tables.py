"""Tables of rows for the benchmarks that read and write rows without Spark; made once, kept."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = "id BIGINT, k INT, s STRING, d DATE, f DOUBLE, at TIMESTAMP"


def rows(first: int, count: int) -> Any:
    """Rows of six columns that begin at an id."""
    import numpy as np
    import pyarrow as pa

    ids = np.arange(first, first + count)
    return pa.table(
        {
            "id": ids,
            "k": pa.array((ids % 1000).astype(np.int32)),
            "s": pa.array([f"name {n % 5000}" for n in ids]),
            "d": pa.array((ids % 20_000).astype(np.int32)).cast(pa.date32()),
            "f": ids * 0.25,
            "at": pa.array(ids * 1_000_003, pa.timestamp("us", "UTC")),
        }
    )


def row_table(folder: Path, *, count: int, files: int, deleted: bool = False) -> str:
    """The path of a table of so many rows in so many files; with a tenth of them deleted."""
    from twinlake import Table

    path = folder / f"rows-{count}-{files}{'-deleted' if deleted else ''}"
    marker = path / "_complete"
    if marker.exists():
        return str(path)
    shutil.rmtree(path, ignore_errors=True)
    # With the usual ten, most of the time would go into checkpoints of a table that only grows.
    properties = {"delta.checkpointInterval": "1000"}
    if deleted:
        properties["delta.enableDeletionVectors"] = "true"
    table = Table.create(path, COLUMNS, properties=properties, durable=False)
    each = count // files
    for number in range(files):
        table = table.append(rows(number * each, each))
    if deleted:
        table = table.delete("k < 100")
    table.checkpoint()
    marker.touch()
    return str(path)
