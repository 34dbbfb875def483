"""The part of ``twinlake demo`` about the Iceberg side: the same rows through PyIceberg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.view import Grid, Heading, Lines, Prose, View
from twinlake.iceberg import SYNC_PROPERTY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["iceberg_story"]

_DELETE: Final = "id % 2 = 0"


def iceberg_story(spark: Any, folder: Path) -> Iterator[View]:
    """The upgraded table read as Iceberg, before and straight after a Delta commit."""
    from twinlake.spark import DeltaTable, scan
    from twinlake.table import Table

    path = str(folder / "visits")
    table = Table.open(path).set_properties({SYNC_PROPERTY: "commit"})
    before = table.version
    DeltaTable.forPath(spark, path).delete(_DELETE)
    table = table.refresh()
    delta = {v: scan(spark, path, version=v).count() for v in (before, table.version)}
    try:
        from pyiceberg.table import StaticTable
    except ImportError:
        yield _without_pyiceberg(table.iceberg.metadata_location or "")
        return
    face = StaticTable.from_metadata(f"{path}/_iceberg")
    snapshots = sorted(face.metadata.snapshots, key=lambda one: one.sequence_number or 0)[-2:]
    counts = [face.scan(snapshot_id=found.snapshot_id).to_arrow().num_rows for found in snapshots]
    rows = [
        (version, count, str(found.snapshot_id), seen)
        for (version, count), found, seen in zip(delta.items(), snapshots, counts, strict=True)
    ]
    yield View(
        data={"step": "iceberg", "delta": list(delta.values()), "iceberg": counts},
        blocks=[
            Heading("16. The same table, through Iceberg"),
            Lines(
                (
                    f'>>> visits.set_properties({{"{SYNC_PROPERTY}": "commit"}})',
                    f'>>> DeltaTable.forPath(spark, "visits").delete("{_DELETE}")',
                    '>>> StaticTable.from_metadata("visits/_iceberg").scan().to_arrow().num_rows',
                ),
                style="bold",
            ),
            Prose(
                "Iceberg metadata is made with the commit, out of the log alone: not one data file "
                "was copied. PyIceberg reads the same rows at both versions."
            ),
            Grid.of("delta_version:r rows:r iceberg_snapshot:r rows_by_pyiceberg:r", rows),
        ],
    )


def _without_pyiceberg(location: str) -> View:
    return View(
        data={"step": "iceberg", "metadata_location": location},
        blocks=[
            Heading("16. The same table, through Iceberg"),
            Prose("PyIceberg is not installed, so nobody reads it here. Its metadata is at:"),
            Lines((location,)),
        ],
    )
