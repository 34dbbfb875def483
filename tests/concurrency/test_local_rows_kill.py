"""Writers of rows killed at any moment: what was acknowledged stays, and the next one goes on."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.iceberg.both_sides import V2
from tests.support.processes.row_writers import (
    Journal,
    RowTable,
    RowWriter,
    change_rows,
    iceberg_rows_by_id,
)
from tests.support.processes.writers import spawn
from tests.support.scale import is_full_scale, scale
from twinlake import Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.process import BaseProcess

KILLS = scale(3, 50)
VERIFIED = scale(1, 10)
"""Every so many kills both sides are compared at every version."""
COARSE = 0.05
"""The clock of file times is not as fine as that of the notes."""

TWIN = {**V2, "twinlake.iceberg.sync": "commit"}
VECTORS = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}


@dataclass(slots=True)
class Model:
    """What must be in the table by the notes of the dead."""

    rows: dict[int, int] = field(default_factory=dict)
    strays: frozenset[str] = frozenset()
    landed: int = 0
    """Kills after the commit of a change that nobody acknowledged any more."""
    between: int = 0
    """Kills between the first file of a change and its commit."""

    def follow(self, writer: RowWriter) -> RowTable:
        """Take over what a killed writer did."""
        found = RowTable.read(Path(writer.table))
        journal = Journal.read(writer.journal, found.tagged)
        self.rows |= journal.rows
        assert found.rows == self.rows
        new = {key: at for key, at in found.strays.items() if key not in self.strays}
        leaks = sorted(key for key, at in new.items() if at < journal.began - COARSE)
        assert not leaks, f"finished changes left {leaks[:3]}"
        in_flight = journal.in_flight
        assert not new or in_flight is not None, f"nothing was under way, yet it left {list(new)}"
        self.landed += in_flight in found.tagged
        self.between += bool(new) and in_flight not in found.tagged
        self.strays = frozenset(found.strays)
        return found


def _kill(process: BaseProcess, writer: RowWriter, dice: random.Random) -> None:
    """After some changes, at any moment of the next."""
    enough, deadline = dice.randrange(3, 12), time.monotonic() + 120
    try:
        while not writer.journal.exists() or (
            writer.journal.read_bytes().count(b'"done"') < enough
        ):
            assert process.is_alive()
            assert time.monotonic() < deadline, "the writer got nothing done"
            time.sleep(0.002)
        time.sleep(dice.uniform(0, 0.1))
    finally:
        process.kill()
        process.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    "properties",
    [pytest.param(TWIN, id="twin"), pytest.param(VECTORS, id="deletion vectors")],
)
def test_killed_writers(tmp_path: Path, properties: Mapping[str, str]) -> None:
    path, is_twin = tmp_path / "table", properties is TWIN
    Table.create(
        path,
        "id BIGINT, value BIGINT, part INT",
        partition_by=("part",),
        properties=properties,
        durable=False,
    )
    dice, model = random.Random(KILLS), Model()
    for kill in range(KILLS):
        writer = RowWriter(table=str(path), name=f"w{kill}", number=kill, folder=str(tmp_path))
        _kill(spawn(change_rows, writer), writer, dice)
        found = model.follow(writer)
        if is_twin:
            found.table.iceberg.sync()
            assert iceberg_rows_by_id(path) == model.rows
            if (kill + 1) % VERIFIED == 0:
                report = found.table.verify_twin(rows=True)
                assert report.agrees, report.findings[:3]
    last = RowWriter(table=str(path), name="last", number=KILLS, folder=str(tmp_path), changes=8)
    change_rows(last)
    model.follow(last)
    if is_full_scale():
        assert model.landed
        assert model.between
    # What the dead have left is swept, and nothing else.
    Table.open(path).vacuum(0, enforce_retention=False)
    swept = RowTable.read(path)
    assert (swept.rows, swept.strays) == (model.rows, {})
    if is_twin:
        assert swept.table.verify_twin(rows=True).agrees
