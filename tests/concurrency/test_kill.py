"""Writers killed in the middle of commits: what was acknowledged stays, and work goes on."""

from __future__ import annotations

import random
import time
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.writers import (
    Place,
    acknowledged,
    check_log,
    readers,
    spawn,
    write_until_killed,
)
from tests.support.scale import scale

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.servers.object_server import ObjectServer

KILLS = scale(5, 100)
WRITERS = 2


def _first_ack(folder: Path, name: str) -> None:
    deadline = time.monotonic() + 60
    path = folder / f"{name}.ack"
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_size:
            return
        time.sleep(0.002)
    raise AssertionError(f"writer {name} never committed")


def assert_nothing_acknowledged_is_lost(place: Place, folder: Path, kills: int) -> None:
    place.create()
    dice = random.Random(kills)
    with readers(place, folder):
        for round_ in range(kills):
            names = [f"r{round_}w{number}" for number in range(WRITERS)]
            writers = [spawn(write_until_killed, place, name, str(folder)) for name in names]
            try:
                # Two writers, so that some die while they are losing a race.
                for name in names:
                    _first_ack(folder, name)
                time.sleep(dice.uniform(0, 0.1))
            finally:
                for writer in writers:
                    writer.kill()
                for writer in writers:
                    writer.join()
    acks = acknowledged(folder)
    assert len(acks) >= kills * WRITERS
    version = check_log(place, acks)
    # A commit may have landed without its writer living to hear of it; nothing else is there.
    assert len(acks) <= version <= len(acks) + kills * WRITERS

    # The next writer goes on, and what the dead left behind disturbs nobody.
    table = place.open()
    for number in range(12):
        table = table.set_properties({"round": str(number)})
    assert table.version == version + 12
    assert not table.warnings
    assert len(table.files()) == version


@pytest.mark.slow
def test_local_disk(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    assert_nothing_acknowledged_is_lost(Place(url=str(tmp_path / "table")), notes, KILLS)


@pytest.mark.slow
def test_object_store(tmp_path: Path, object_server: ObjectServer) -> None:
    place = Place(url=object_server.url(f"t-{uuid.uuid4()}"), options=object_server.options)
    assert_nothing_acknowledged_is_lost(place, tmp_path, scale(2, 40))
