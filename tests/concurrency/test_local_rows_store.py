"""Changes of rows in an object store: by processes at once, and with answers lost or false."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.row_writers import (
    Journal,
    RowWriter,
    by_id,
    change_rows,
    tagged_versions,
)
from tests.support.processes.writers import barrier, spawn
from tests.support.scale import scale
from tests.support.servers.fault_proxy import COMMIT_FAULTS, FaultKind, FaultProxy
from twinlake import Table
from twinlake.actions import AddCDCFile, AddFile
from twinlake.errors import StorageError
from twinlake.log import CACHE, commit_key, dv_path, read_commit
from twinlake.storage import decode_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.support.servers.object_server import ObjectServer

VECTORS = {
    "delta.enableDeletionVectors": "true",
    "delta.enableRowTracking": "true",
    "delta.enableChangeDataFeed": "true",
}
"""What a table has whose changes write files of every kind."""

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


def tables(
    server: ObjectServer, proxy: FaultProxy, properties: Mapping[str, str] | None = None
) -> tuple[Table, Table]:
    """One table of two rows, seen through the proxy and directly."""
    url = server.url(f"t-{uuid.uuid4()}")
    proxy.disarm()
    direct = Table.create(url, "id INT, n INT", properties=properties, options=server.options)
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
    named = set[str]()
    for version in range(table.refresh().version + 1):
        for action in read_commit(store, version):
            if isinstance(action, AddFile | AddCDCFile):
                named.add(decode_path(action.path))
            if isinstance(action, AddFile) and action.deletion_vector is not None:
                named.add(dv_path(action.deletion_vector) or "")
    keys = [meta.key for meta in store.list_from("") if not meta.key.startswith("_delta_log/")]
    return [key for key in keys if key not in named]


@pytest.mark.parametrize("properties", [{}, VECTORS], ids=["copy on write", "vectors"])
@pytest.mark.parametrize("fault", COMMIT_FAULTS, ids=str)
def test_changes_are_committed_once(
    object_server: ObjectServer, proxy: FaultProxy, fault: FaultKind, properties: dict[str, str]
) -> None:
    table, direct = tables(object_server, proxy, properties)
    for change in CHANGES:
        proxy.arm(fault, path=commit_key(table.version + 1))
        changed = change(table)
        assert proxy.armed == 0
        assert changed.version == table.version + 1
        table = changed
    assert direct.refresh().version == table.version
    assert rows_of(direct) == [(1, 7), (3, 1), (4, 7)]
    assert not strays(direct)


@pytest.mark.parametrize("name", ["data file", "deletion vector", "change file"])
def test_files_whose_write_fails_for_good_leave_nothing(
    object_server: ObjectServer, proxy: FaultProxy, name: str
) -> None:
    """The client repeats a write; when it gives up the change fails, and what it wrote goes."""
    _, direct = tables(object_server, proxy, VECTORS)
    options = {**object_server.options_at(proxy.port), "retry_config": {"max_retries": 1}}
    table = Table.open(direct.location, options=options)
    path = {"data file": "part-", "deletion vector": ".bin", "change file": "_change_data"}[name]
    proxy.arm(FaultKind.FAIL_500, path=path, times=50)
    with pytest.raises(StorageError):
        table.update({"n": "n + 1"}, where="id = 2")
    assert proxy.armed == 48
    proxy.disarm()
    assert direct.refresh().version == table.version
    assert rows_of(direct) == [(1, 0), (2, 0)]
    assert not strays(direct)
    assert table.update({"n": "n + 1"}, where="id = 2").version == table.version + 1
    assert rows_of(direct) == [(1, 0), (2, 1)]


WRITERS = scale(3, 8)
EACH = scale(5, 50)


@pytest.mark.slow
def test_writers_at_once(object_server: ObjectServer, tmp_path: Path) -> None:
    url = object_server.url(f"t-{uuid.uuid4()}")
    Table.create(
        url,
        "id BIGINT, value BIGINT, part INT",
        partition_by=("part",),
        properties=VECTORS,
        options=object_server.options,
    )
    together = barrier(WRITERS)
    writers = [
        RowWriter(
            table=url,
            name=f"w{number}",
            number=number,
            folder=str(tmp_path),
            changes=EACH,
            options=object_server.options,
        )
        for number in range(WRITERS)
    ]
    processes = [spawn(change_rows, writer, together) for writer in writers]
    try:
        for process in processes:
            process.join(900)
        assert [process.exitcode for process in processes] == [0] * WRITERS
    finally:
        for process in processes:
            process.kill()
    table = Table.open(url, options=object_server.options)
    journals = [Journal.read(writer.journal, tagged_versions(table)) for writer in writers]
    expected = {number: value for one in journals for number, value in one.rows.items()}
    assert by_id(table.to_arrow().to_pylist()) == expected
    # Every version is one acknowledged change of one writer.
    versions = sorted(version for one in journals for version in one.versions)
    assert versions == list(range(1, table.version + 1))
    assert not [text for one in journals for text in one.warnings]
    assert any(one.lost for one in journals), "nobody lost: that was no race"
    assert not strays(table)
    ids = table.to_arrow(row_ids=True)["_row_id"].to_pylist()
    assert len(set(ids)) == len(ids)
