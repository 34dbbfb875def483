"""Real processes race for keys: exactly one wins each, and its bytes are what is kept."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.race import (
    Create,
    RaceResult,
    body_of,
    race,
    through_library,
    through_store,
)
from tests.support.scale import scale
from twinlake.storage import open_store

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.servers.object_server import ObjectServer
    from twinlake.storage import Store

KEYS = scale(50, 500)


def assert_fair(result: RaceResult, store: Store, size: int) -> None:
    assert result.unfair == {}
    for key, (winner,) in result.winners.items():
        assert store.read(key) == body_of(winner, size)
    assert [meta.key for meta in store.list_from("race")] == sorted(result.winners)


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "not durable"])
def test_local_disk(tmp_path: Path, durable: bool) -> None:
    result = race(through_store, str(tmp_path), durable=durable, clients=8, keys=KEYS, size=2000)
    assert_fair(result, open_store(tmp_path), 2000)
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("size", [2_000, 300_000], ids=["2 kB", "300 kB"])
def test_object_store(object_server: ObjectServer, size: int) -> None:
    url, options = object_server.url(f"t-{uuid.uuid4()}"), object_server.options
    result = race(through_store, url, options=options, clients=8, keys=KEYS, size=size)
    assert_fair(result, open_store(url, options=options), size)


def test_the_harness_notices_two_winners() -> None:
    """A race is only worth its verdict if a broken store fails it."""
    result = race(_everybody_wins, "nowhere", clients=2, keys=3)
    assert set(result.unfair.values()) == {(0, 1)}


def test_the_harness_does_not_hang_on_a_client_that_dies() -> None:
    with pytest.raises(RuntimeError, match="client"):
        race(through_library, "s3://", options={"nonsense": "1"}, clients=2, keys=1)


def _everybody_wins(url: str, options: object, durable: bool) -> Create:
    del url, options, durable
    return _always


def _always(key: str, data: bytes) -> bool:
    del key, data
    return True
