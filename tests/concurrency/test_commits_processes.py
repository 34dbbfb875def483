"""Eight real processes commit to one table: no version is lost, none is given twice."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.writers import (
    Place,
    acknowledged,
    barrier,
    check_log,
    readers,
    spawn,
    write_in_turn,
)
from tests.support.scale import scale

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.servers.object_server import ObjectServer

WRITERS = 8
COMMITS = scale(8, 50)


def assert_every_commit_counts(place: Place, folder: Path, commits: int = COMMITS) -> None:
    place.create()
    start = barrier(WRITERS)
    with readers(place, folder):
        writers = [
            spawn(write_in_turn, place, f"w{number}", commits, str(folder), start)
            for number in range(WRITERS)
        ]
        for writer in writers:
            writer.join(180)
        codes = [writer.exitcode for writer in writers]
        for writer in writers:
            writer.kill()
    assert codes == [0] * WRITERS
    acks = acknowledged(folder)
    assert len(acks) == WRITERS * commits
    assert {ack.version for ack in acks} == set(range(1, WRITERS * commits + 1))
    assert check_log(place, acks) == WRITERS * commits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("durable", "commits"),
    [
        pytest.param(True, COMMITS, id="durable"),
        pytest.param(False, scale(6, 50), id="not durable"),
    ],
)
def test_local_disk(tmp_path: Path, durable: bool, commits: int) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    place = Place(url=str(tmp_path / "table"), durable=durable)
    assert_every_commit_counts(place, notes, commits)
    assert not list((tmp_path / "table").rglob("*.tmp"))


@pytest.mark.slow
def test_object_store(tmp_path: Path, object_server: ObjectServer) -> None:
    place = Place(url=object_server.url(f"t-{uuid.uuid4()}"), options=object_server.options)
    assert_every_commit_counts(place, tmp_path)
