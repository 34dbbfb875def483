"""Drivers of streams killed in the middle of micro-batches: every row arrives once, everywhere."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.scale import scale
from tests.support.spark.stream_programs import SINKS
from tests.support.spark.workers import Driver, drivers
from twinlake.table import Table

if TYPE_CHECKING:
    from pathlib import Path

KILLS = scale(3, 20)
BATCHES = scale(20, 200)
ROWS = 50
"""Of each commit of the source, which is one file and so one batch."""
LIMIT = 600.0


def _append(source: Path, first: int, last: int) -> None:
    table = Table.open(source)
    for number in range(first, last):
        ids = range(number * ROWS, (number + 1) * ROWS)
        table = table.append({"id": list(ids), "value": [number] * ROWS})


def _arrived(folder: Path) -> dict[str, int]:
    """How many rows each sink has; one that is not there yet has none."""
    return {
        name: Table.open(folder / name).count() if Table.exists(folder / name) else 0
        for name in SINKS
    }


def _wait(driver: Driver, folder: Path, rows: int) -> None:
    """Until all sinks have so many rows."""
    deadline = time.monotonic() + LIMIT
    while min(_arrived(folder).values()) < rows:
        driver.check_alive()
        assert time.monotonic() < deadline, f"{_arrived(folder)} of {rows}: {driver.said()}"
        time.sleep(0.02)


def _start(number: int, folder: Path) -> Driver:
    return Driver("streams", f"s{number}", folder / "source", folder, warm=[])


@pytest.mark.slow
@pytest.mark.spark
def test_killed_streams_lose_no_row_and_repeat_none(tmp_path: Path) -> None:
    source, dice = tmp_path / "source", random.Random(KILLS)
    Table.create(source, "id BIGINT, value INT")
    share = BATCHES // (KILLS + 1)
    written = 0
    with drivers() as running:
        # The next driver gets up while this one works: a JVM takes as long as a round.
        following = _start(0, tmp_path)
        running.append(following)
        for number in range(KILLS):
            driver = following
            driver.wait_ready()
            _append(source, written, written + share)
            before = min(_arrived(tmp_path).values())
            written += share
            driver.go()
            following = _start(number + 1, tmp_path)
            running.append(following)
            # Somewhere in the batches of this round, while there are more of them to do.
            _wait(driver, tmp_path, before + ROWS * dice.randrange(1, share - 1))
            time.sleep(dice.uniform(0, 0.5))
            driver.kill()
        following.wait_ready()
        _append(source, written, BATCHES)
        following.go()
        _wait(following, tmp_path, BATCHES * ROWS)
        # Time for a row too many to arrive as well.
        time.sleep(1)
        following.kill()
    for name in SINKS:
        rows = Table.open(tmp_path / name).to_arrow().sort_by("id")
        assert rows["id"].to_pylist() == list(range(BATCHES * ROWS)), name
        assert rows["value"].to_pylist() == [n // ROWS for n in range(BATCHES * ROWS)], name
