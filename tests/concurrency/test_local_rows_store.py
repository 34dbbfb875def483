"""Changes of rows whose commit gets no honest answer, through a real client and server."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.servers.fault_proxy import COMMIT_FAULTS, FaultKind, FaultProxy
from twinlake import Table
from twinlake.actions import AddFile
from twinlake.log import CACHE, commit_key, read_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.servers.object_server import ObjectServer

CHANGES: tuple[Callable[[Table], Table], ...] = (
    lambda t: t.append({"id": [3], "n": [0]}),
    lambda t: t.update({"n": "n + 1"}, where="id >= 2"),
    lambda t: t.merge({"id": [1, 4], "n": [7, 7]}, on="id"),
    lambda t: t.delete("id = 2"),
)


@pytest.fixture(scope="module")
def proxy(object_server: ObjectServer) -> Iterator[FaultProxy]:
    with FaultProxy(object_server.port) as proxy:
        yield proxy


def tables(server: ObjectServer, proxy: FaultProxy) -> tuple[Table, Table]:
    """One table of two rows, seen through the proxy and directly."""
    url = server.url(f"t-{uuid.uuid4()}")
    proxy.disarm()
    direct = Table.create(url, "id INT, n INT", options=server.options)
    direct = direct.append({"id": [1, 2], "n": [0, 0]})
    CACHE.forget(direct.location)
    return Table.open(url, options=server.options_at(proxy.port)), direct


def rows_of(table: Table) -> list[tuple[int, int]]:
    CACHE.forget(table.location)
    found = table.refresh().to_arrow().to_pylist()
    return sorted((row["id"], row["n"]) for row in found)


def strays(table: Table) -> list[str]:
    """Data files that no version names."""
    store = table.snapshot.store
    named = {
        action.path
        for version in range(table.refresh().version + 1)
        for action in read_commit(store, version)
        if isinstance(action, AddFile)
    }
    keys = [meta.key for meta in store.list_from("") if not meta.key.startswith("_delta_log/")]
    return [key for key in keys if key not in named]


@pytest.mark.parametrize("fault", COMMIT_FAULTS, ids=str)
def test_changes_are_committed_once(
    object_server: ObjectServer, proxy: FaultProxy, fault: FaultKind
) -> None:
    table, direct = tables(object_server, proxy)
    for change in CHANGES:
        proxy.arm(fault, path=commit_key(table.version + 1))
        changed = change(table)
        assert proxy.armed == 0
        assert changed.version == table.version + 1
        table = changed
    assert direct.refresh().version == table.version
    assert rows_of(direct) == [(1, 7), (3, 1), (4, 7)]
    assert not strays(direct)
