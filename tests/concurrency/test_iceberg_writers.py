"""Writers at once whose commits make Iceberg metadata: the last word is the newest version."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, as_text, iceberg_rows, opened, twin
from tests.support.local_engine import rows_of
from tests.support.processes.writers import barrier, spawn
from tests.support.scale import scale
from twinlake import Table
from twinlake.table import Catalog

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

WRITERS = 3
COMMITS = scale(5, 100)


def write(folder: str, catalog: str, number: int, report: str, start: Barrier) -> None:
    """In a process of its own: commit, and write down what went wrong afterwards."""
    os.environ["TWINLAKE_CATALOG"] = catalog
    path = Path(folder)
    table = Table.open(path, durable=False)
    start.wait(120)
    said = []
    for turn in range(COMMITS):
        table = append(table, path, [{"id": number * 1000 + turn}])
        said += [str(warning) for warning in table.warnings]
    Path(report).write_text("\n".join(said) or "done")


@pytest.mark.slow
def test_writers_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog, folder = tmp_path / "names.db", tmp_path / "t"
    monkeypatch.setenv("TWINLAKE_CATALOG", str(catalog))
    table = twin(folder, "id LONG", properties={**V2, "twinlake.iceberg.sync": "commit"})
    table.iceberg.publish("t")
    start, reports = barrier(WRITERS), [tmp_path / f"w{n}" for n in range(WRITERS)]
    writers = [
        spawn(write, str(folder), str(catalog), number, str(report), start)
        for number, report in enumerate(reports)
    ]
    for writer in writers:
        writer.join(300)
    assert [report.read_text() for report in reports] == ["done"] * WRITERS
    table = Table.open(folder)
    assert table.version == 1 + WRITERS * COMMITS
    assert table.iceberg.lag.versions == 0
    assert Catalog(catalog).metadata_location("t") == table.iceberg.metadata_location
    assert as_text(iceberg_rows(folder)) == as_text(rows_of(table.snapshot))
    assert len(opened(folder).metadata.snapshots) == WRITERS * COMMITS
