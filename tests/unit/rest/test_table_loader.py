"""Loading within a time limit, and one conversion for all who ask at once."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.rest_catalog import rest_caller
from twinlake import Table
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.storage import Store


class _Held:
    """Conversions that wait until they are let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go = threading.Event()
        self.started = threading.Semaphore(0)
        self.count = 0
        real = IcebergCommits.load

        def load(commits: IcebergCommits, store: Store) -> Any:
            self.count += 1
            self.started.release()
            assert self.go.wait(30)
            return real(commits, store)

        monkeypatch.setattr(IcebergCommits, "load", load)


def test_who_waits_too_long_gets_older_metadata_and_later_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rest_caller(tmp_path, conversion_seconds=0.2) as server:
        server.namespace("n")
        made = server.table("n/t")
        table = Table.open(made["metadata"]["location"])
        # Written past the server by a writer that does not convert.
        table = table.set_properties({"twinlake.iceberg.sync": "none"})
        server.ok("GET", "n/tables/t")
        table.append([{"id": 1, "name": "a"}])
        held = _Held(monkeypatch)
        begin = time.monotonic()
        for snapshots in ("all", "refs"):
            found = server.send("GET", f"n/tables/t?snapshots={snapshots}")
            assert found.status_code == 200
            assert found.json()["metadata"]["snapshots"] == []
            assert found.headers["etag"].endswith(f'.1.{snapshots}"')
        assert time.monotonic() - begin < 10
        held.go.set()
        until = time.monotonic() + 20
        while not server.ok("GET", "n/tables/t")["metadata"]["snapshots"]:
            assert time.monotonic() < until
        assert held.count >= 1


def test_without_any_metadata_the_client_is_asked_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    with rest_caller(tmp_path) as server:
        server.namespace("n")
        made = server.table("n/t")
    shutil.rmtree(f"{made['metadata']['location'].removeprefix('file://')}/_iceberg")
    held = _Held(monkeypatch)
    with rest_caller(tmp_path, conversion_seconds=0.1) as server:
        answer = server.send("GET", "n/tables/t")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        held.go.set()
        until = time.monotonic() + 20
        while server.send("GET", "n/tables/t").status_code != 200:
            assert time.monotonic() < until


def test_clients_that_ask_at_once_wait_for_one_conversion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rest_caller(tmp_path) as server:
        server.namespace("n")
        server.table("n/t")
    held = _Held(monkeypatch)
    with rest_caller(tmp_path) as server, ThreadPoolExecutor(1) as pool:

        def let_go() -> None:
            assert held.started.acquire(timeout=20)
            time.sleep(0.3)
            held.go.set()

        pool.submit(let_go)
        path = "/v1/lake/namespaces/n/tables/t"
        answers = server.send_all(*[("GET", path, None)] * 6)
        assert {one.status_code for one in answers} == {200}
        assert held.count == 1
