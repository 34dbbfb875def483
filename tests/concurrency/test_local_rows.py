"""Processes that change rows without Spark at the same time: nothing is lost, nothing is doubled.

Each writer has ids of its own, so the rows that must be there follow from its acknowledged changes
alone. Writers meet in files that OPTIMIZE has packed, and in the log.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.iceberg.both_sides import V2, V3
from tests.support.processes.row_writers import (
    IDS,
    Journal,
    RowTable,
    RowWriter,
    change_rows,
    iceberg_rows_by_id,
)
from tests.support.processes.writers import barrier, spawn
from tests.support.scale import is_full_scale, scale
from tests.support.spark.workers import Driver, drivers, notes_of
from twinlake import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from multiprocessing.process import BaseProcess
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

    from pyspark.sql import SparkSession

WRITERS = scale(4, 8)
CHANGES = scale(5, 50)
SPARK_COMMITS = scale(3, 40)
PATIENCE = 900
"""Seconds that a slow machine gets."""

SYNC = {"twinlake.iceberg.sync": "commit"}
VECTORS = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
}


def new_table(path: Path, properties: Mapping[str, str]) -> Table:
    return Table.create(
        path,
        "id BIGINT, value BIGINT, part INT",
        partition_by=("part",),
        properties=properties,
        durable=False,
    )


def start(
    path: Path, folder: Path, together: Barrier, until: Path | None = None
) -> list[BaseProcess]:
    """Processes that begin together; the caller holds the barrier as long as they run."""
    return [
        spawn(
            change_rows,
            RowWriter(
                table=str(path),
                name=f"w{number}",
                number=number,
                folder=str(folder),
                changes=CHANGES,
                until=None if until is None else str(until),
            ),
            together,
        )
        for number in range(WRITERS)
    ]


def join(writers: list[BaseProcess]) -> None:
    deadline = time.monotonic() + PATIENCE
    try:
        for writer in writers:
            writer.join(max(deadline - time.monotonic(), 1))
        assert [writer.exitcode for writer in writers] == [0] * WRITERS
    finally:
        for writer in writers:
            writer.kill()


def check(path: Path, folder: Path, *, twin: bool) -> dict[str, Journal]:
    """The rows are those of the acknowledged changes, on both sides; returns the journals."""
    found = RowTable.read(path)
    journals = {
        file.stem: Journal.read(file, found.tagged) for file in sorted(folder.glob("*.notes"))
    }
    assert [j.in_flight for j in journals.values() if j.in_flight] == []
    assert found.rows == {n: v for j in journals.values() for n, v in j.rows.items()}
    # Every version is one acknowledged change of one writer.
    versions = sorted(version for j in journals.values() for version in j.versions)
    assert versions == list(range(1, found.table.version + 1))
    assert not [text for j in journals.values() for text in j.warnings]
    # Who lost took back the files of the attempt.
    assert not found.strays
    assert not list(path.rglob("*.tmp"))
    assert any(j.lost for j in journals.values()), "nobody lost: that was no race"
    if twin:
        assert found.table.iceberg.lag.versions == 0
        report = found.table.verify_twin(rows=True)
        assert report.agrees, report.findings[:3]
        assert iceberg_rows_by_id(path) == found.rows
    return journals


@pytest.mark.slow
@pytest.mark.parametrize(
    ("properties", "twin"),
    [
        pytest.param({**V2, **SYNC}, True, id="icebergCompatV2"),
        pytest.param(VECTORS, False, id="deletion vectors"),
        *([pytest.param({**V3, **SYNC}, True, id="icebergCompatV3")] if is_full_scale() else []),
    ],
)
def test_writers_at_once(tmp_path: Path, properties: Mapping[str, str], twin: bool) -> None:
    path, folder = tmp_path / "table", tmp_path / "notes"
    folder.mkdir()
    new_table(path, properties)
    together = barrier(WRITERS)
    join(start(path, folder, together))
    journals = check(path, folder, twin=twin)
    assert len(journals) == WRITERS
    table = Table.open(path)
    if table.metadata.flag("delta.enableRowTracking"):
        ids = table.to_arrow(row_ids=True)["_row_id"].to_pylist()
        assert len(set(ids)) == len(ids) == table.count()
    # Files of past versions go, those of this one stay.
    rows = RowTable.read(path).rows
    table.vacuum(0, enforce_retention=False)
    assert RowTable.read(path).rows == rows


def _acknowledged(journal: Path) -> int:
    return sum("done" in note for note in notes_of(journal))


def _wait(driver: Driver, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        driver.check_alive()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.spark
def test_writers_beside_spark(tmp_path: Path, delta_spark: SparkSession) -> None:
    path, folder = tmp_path / "table", tmp_path / "notes"
    folder.mkdir()
    new_table(path, {**V2, **SYNC})
    with drivers() as running:
        driver = Driver("beside", "spark", path, folder, base=WRITERS * IDS, warm=["delete"])
        running.append(driver)
        driver.wait_ready()
        together = barrier(WRITERS)
        writers = start(path, folder, together, until=folder / "stop")
        try:
            _wait(
                driver, lambda: all(_acknowledged(folder / f"w{n}.notes") for n in range(WRITERS))
            )
            driver.go()
            _wait(driver, lambda: _acknowledged(driver.journal) >= SPARK_COMMITS)
        finally:
            (folder / "stop").touch()
            join(writers)
        driver.join()
    journals = check(path, folder, twin=True)
    # They took turns: Spark committed between the others.
    by_spark = journals.pop("spark").versions
    others = [version for journal in journals.values() for version in journal.versions]
    assert any(min(others) < version < max(others) for version in by_spark)
    theirs = delta_spark.read.format("delta").load(str(path))
    assert dict(map(tuple, theirs.select("id", "value").collect())) == RowTable.read(path).rows
