"""Imports of Iceberg tables killed at any moment: no table or all of it, and the next one ends.

Each round starts from the bare Iceberg table. Some kill the import that takes over, too.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField, StringType

from tests.support.iceberg.both_sides import iceberg_rows
from tests.support.local_engine import rows_of
from tests.support.processes.writers import spawn
from tests.support.scale import scale
from tests.unit.cli.running import run
from twinlake import Table, import_iceberg
from twinlake.errors import Code, UserError
from twinlake.log import CACHE
from twinlake.storage import LocalStore
from twinlake.table.twin.verify_twin import verify_twin

KILLS = scale(3, 200)
SNAPSHOTS = scale(30, 100)
IN_A_ROW = 0.3
"""How often the import that follows a killed one is killed as well."""
AFTER_FIRST_WRITE = 0.7
"""How often the moment is sought between an import's first write and its end."""


def import_when_told(source: str, ready: str, go: str) -> None:
    """In a process of its own: load everything, then import."""
    import pyiceberg.io.pyarrow  # noqa: F401

    Path(ready).touch()
    while not Path(go).exists():
        time.sleep(0.0005)
    import_iceberg(source)


def source_table(folder: Path) -> tuple[Path, list[int]]:
    """An Iceberg table of many snapshots, and how many rows each of them has."""
    folder.mkdir()
    catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
    catalog.create_namespace("d")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = catalog.create_table("d.t", schema)
    for number in range(SNAPSHOTS):
        table.append(pa.table({"id": [number], "name": [f"row {number}"]}))
    table.delete("id = 3")
    catalog.engine.dispose()
    static = StaticTable.from_metadata(table.metadata_location)
    counts = [
        static.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows
        for snapshot in static.metadata.snapshots
    ]
    return Path(table.location().removeprefix("file://")), counts


def kill_one(folder: Path, notes: Path, seconds: float, *, from_first_write: bool) -> bool:
    """Start an import and kill it after so many seconds; whether it still ran then.

    ``from_first_write``: the seconds count from when its log folder is there. On a busy machine
    an import spends nearly all its time before that, and a time from the start would miss it.
    """
    ready, go = notes / "ready", notes / "go"
    ready.unlink(missing_ok=True)
    go.unlink(missing_ok=True)
    process = spawn(import_when_told, str(folder), str(ready), str(go))
    deadline = time.monotonic() + 120
    while not ready.exists():
        assert process.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.002)
    go.touch()
    while from_first_write and process.is_alive() and not (folder / "_delta_log").exists():
        time.sleep(0.0005)
    process.join(seconds)
    assert process.pid is not None
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def version_if_any(folder: Path) -> int | None:
    CACHE.forget(LocalStore(folder).url)
    try:
        return Table.open(folder).version
    except UserError as error:
        assert error.code == Code.TABLE_NOT_FOUND
        return None


def is_over(folder: Path) -> bool:
    """Whether an import has put the whole table in place and taken its mark away."""
    log = folder / "_delta_log"
    return (log / f"{0:020}.json").exists() and not any(log.glob("_import.*.mark"))


@pytest.mark.slow
def test_killed_imports_leave_nothing_or_everything(tmp_path: Path) -> None:
    folder, counts = source_table(tmp_path / "lake")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    dice, kills, between = random.Random(KILLS), 0, 0
    started = time.monotonic()
    import_iceberg(str(folder))
    whole = time.monotonic() - started
    while kills < KILLS or (between * 3 < KILLS and kills < 4 * KILLS):
        for made in ("_delta_log", "_iceberg"):
            shutil.rmtree(folder / made, ignore_errors=True)
        while True:
            begun = dice.random() < AFTER_FIRST_WRITE
            seconds = dice.uniform(0, whole / 10 if begun else whole)
            # A process that had no more to do than to end was killed too late to count.
            killed = kill_one(folder, tmp_path, seconds, from_first_write=begun)
            killed = killed and not is_over(folder)
            kills += killed
            # Readers find no table or all of it, never the beginning of one.
            assert version_if_any(folder) in (None, len(counts) - 1)
            between += killed and (folder / "_delta_log").exists()
            if not killed or dice.random() > IN_A_ROW:
                break
        if killed:
            found = run("import", folder)
            assert found.exit_code == 0, found.output
        CACHE.forget(LocalStore(folder).url)
        table = Table.open(folder)
        assert [len(rows_of(table.at(v).snapshot)) for v in (0, 7, table.version)] == [
            counts[v] for v in (0, 7, -1)
        ]
        assert verify_twin(table, rows=True).agrees
        assert len(iceberg_rows(folder)) == counts[-1]
    assert all(path.read_bytes() == data for path, data in before.items())
    # Some died with part of the log in place, or with the log and without its Iceberg metadata.
    assert between * 3 >= KILLS, f"{between} of {kills} after the first write"
