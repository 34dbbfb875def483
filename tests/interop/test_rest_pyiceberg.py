"""A real PyIceberg against a real server: what it commits, Delta readers hold at once."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable as DeltaRsTable
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.types import LongType, StringType

from tests.support.rest_catalog import rest_server
from tests.support.scale import scale
from tests.support.servers.catalog import catalog_server
from tests.support.servers.server_process import accepts
from twinlake import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table import Table as IcebergTable

pytestmark = [pytest.mark.process, pytest.mark.slow]

Row = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rest")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with rest_server(folder) as found:
        yield found


@pytest.fixture(scope="module")
def catalog(address: str) -> RestCatalog:
    return RestCatalog("lake", uri=address, warehouse="lake")


def rows(*values: tuple[int, str]) -> pa.Table:
    ids = pa.array([one[0] for one in values], pa.int64())
    return pa.table({"id": ids, "name": pa.array([one[1] for one in values], pa.string())})


def _place(table: IcebergTable) -> str:
    return table.location().removeprefix("file://")


def agree(catalog: RestCatalog, name: str, expected: list[Row]) -> Table:
    """PyIceberg, with fresh metadata, and our reader of the Delta log hold the same rows."""

    def sorted_rows(found: list[Row]) -> list[Row]:
        return sorted(found, key=lambda row: tuple(map(str, row.values())))

    table = catalog.load_table(name)
    ours = Table.open(_place(table))
    assert sorted_rows(table.scan().to_arrow().to_pylist()) == sorted_rows(expected)
    assert sorted_rows(ours.to_arrow().to_pylist()) == sorted_rows(expected)
    return ours


def test_what_pyiceberg_writes_is_in_the_delta_log_after_each_step(catalog: RestCatalog) -> None:
    catalog.create_namespace("Steps")
    table = catalog.create_table("steps.T", rows((1, "a")).schema)
    agree(catalog, "steps.t", [])
    table.append(rows((1, "a"), (2, "b"), (3, "c")))
    agree(catalog, "steps.t", [{"id": n, "name": c} for n, c in ((1, "a"), (2, "b"), (3, "c"))])
    table.delete("id = 2")
    agree(catalog, "steps.t", [{"id": 1, "name": "a"}, {"id": 3, "name": "c"}])
    table.upsert(rows((3, "C"), (4, "d")), join_cols=["id"])
    expected = [{"id": n, "name": c} for n, c in ((1, "a"), (3, "C"), (4, "d"))]
    agree(catalog, "steps.t", expected)
    table.overwrite(rows((9, "z")), overwrite_filter="id > 3")
    expected = [*expected[:2], {"id": 9, "name": "z"}]
    ours = agree(catalog, "steps.t", expected)
    with table.update_schema() as update:
        update.add_column("note", StringType())
        update.rename_column("name", "title")
    agree(
        catalog,
        "steps.t",
        [{"id": row["id"], "title": row["name"], "note": None} for row in expected],
    )
    # Rows that a Delta writer adds are rows of the Iceberg table.
    ours.refresh().append([{"id": 10, "title": "delta", "note": "n"}])
    table.refresh()
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 9, 10]
    table.append(table.scan(row_filter="id = 10").to_arrow())
    assert catalog.load_table("steps.T").scan().to_arrow().num_rows == 5
    versions = [one.version for one in Table.open(_place(table)).history()]
    assert versions == sorted(versions, reverse=True)
    assert len(set(versions)) == len(versions)


def test_delta_rs_opens_what_pyiceberg_committed(catalog: RestCatalog) -> None:
    catalog.create_namespace("other_readers")
    table = catalog.create_table("other_readers.t", rows((1, "a")).schema)
    table.append(rows((1, "a"), (2, "b")))
    # It reads the log; that it finds columns by name only is in the notes on who reads what.
    found = DeltaRsTable(_place(table))
    assert found.version() == 1
    assert sum(found.get_add_actions(flatten=True)["num_records"].to_pylist()) == 2


def test_tables_are_listed_renamed_and_dropped(catalog: RestCatalog) -> None:
    catalog.create_namespace("life")
    catalog.create_namespace("life.inner")
    assert catalog.list_namespaces("LIFE") == [("life", "inner")]
    table = catalog.create_table("life.one", rows((1, "a")).schema)
    table.append(rows((1, "a")))
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("life.ONE", rows((1, "a")).schema)
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table("nowhere.t", rows((1, "a")).schema)
    catalog.rename_table("life.one", "life.inner.two")
    assert catalog.list_tables("life") == []
    assert catalog.list_tables("life.inner") == [("life", "inner", "two")]
    assert not catalog.table_exists("life.one")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("life")
    catalog.drop_table("life.inner.two")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("life.inner.two")
    catalog.drop_namespace("life.inner")
    catalog.drop_namespace("life")
    assert ("life",) not in catalog.list_namespaces()
    assert Table.open(_place(table)).count() == 1


def test_a_dropped_table_comes_back_with_its_rows(catalog: RestCatalog, folder: Path) -> None:
    catalog.create_namespace("undrop")
    catalog.create_table("undrop.t", rows((1, "a")).schema).append(rows((1, "a")))
    catalog.purge_table("undrop.t")
    command = ["catalog", "undrop", "undrop.t", "--database", str(folder / "server.db")]
    subprocess.run([sys.executable, "-m", "twinlake", *command], check=True, timeout=60)
    agree(catalog, "undrop.t", [{"id": 1, "name": "a"}])


def test_a_table_is_made_with_its_first_rows(catalog: RestCatalog) -> None:
    catalog.create_namespace("staged")
    with catalog.create_table_transaction("staged.t", rows((1, "a")).schema) as transaction:
        transaction.append(rows((1, "a")))
        assert catalog.list_tables("staged") == []
    ours = agree(catalog, "staged.t", [{"id": 1, "name": "a"}])
    assert ours.version == 0


def test_a_delta_table_is_registered(catalog: RestCatalog, folder: Path) -> None:
    catalog.create_namespace("registered")
    place = folder / "lake" / "by_delta"
    made = Table.create(place, "id LONG, name STRING")
    with pytest.raises(BadRequestError, match="twinlake upgrade"):
        catalog.register_table("registered.t", str(place))
    made.upgrade("icebergWriterCompatV1")
    Table.open(place).append([{"id": 1, "name": "a"}])
    table = catalog.register_table("registered.t", str(place))
    table.append(rows((2, "b")))
    agree(catalog, "registered.t", [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    catalog.create_namespace("registered_twice")
    with pytest.raises(BadRequestError, match="no table lies in another one"):
        catalog.register_table("registered_twice.t", str(place))


def test_refusals_reach_the_client_with_their_fix(catalog: RestCatalog) -> None:
    catalog.create_namespace("refused")
    with pytest.raises(BadRequestError, match="Fix:"):
        catalog.create_table("refused.t", pa.schema([("t", pa.time64("us"))]))
    table = catalog.create_table("refused.t", rows((1, "a")).schema)
    with pytest.raises(BadRequestError, match="TWIN-"), table.transaction() as change:
        change.upgrade_table_version(2)
        change.set_properties({"write.metadata.path": "/etc"})
    stale = catalog.load_table("refused.t")
    table.append(rows((1, "a")))
    with pytest.raises(CommitFailedException), stale.update_schema() as update:
        table.append(rows((2, "b")))
        with table.update_schema() as first:
            first.add_column("x", LongType())
        update.add_column("y", LongType())
    assert catalog.load_table("refused.t").scan().to_arrow().num_rows == 2


def test_names_of_the_command_line_resolve_through_the_server(
    catalog: RestCatalog, address: str
) -> None:
    catalog.create_namespace("Cli")
    table = catalog.create_table("Cli.Orders", rows((1, "a")).schema)
    table.append(rows((1, "a")))
    environment = {**os.environ, "TWINLAKE_CATALOG": address}
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "head", "lake.cli.orders"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["id", "name", "1", "a"]
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", "head", "cli.none"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, "TWIN-TABLE-NOT-FOUND" in done.stderr) == (1, True)


def test_two_servers_on_one_database_lose_and_double_nothing(folder: Path, address: str) -> None:
    rounds = scale(4, 25)
    with rest_server(folder, log="second.log") as second:
        one, two = (RestCatalog("c", uri=at, warehouse="lake") for at in (address, second))
        one.create_namespace("both")
        one.create_table("both.t", rows((0, "")).schema)

        def write(catalog: RestCatalog, first: int) -> list[int]:
            done = []
            for number in range(first, first + rounds):
                while True:
                    try:
                        catalog.load_table("both.t").append(rows((number, "x")))
                        break
                    except CommitFailedException:
                        continue
                done.append(number)
            return done

        with ThreadPoolExecutor(3) as pool:
            writers = [pool.submit(write, one, 1000), pool.submit(write, two, 2000)]
            place = _place(one.load_table("both.t"))
            for number in range(rounds):
                Table.open(place).append([{"id": 3000 + number, "name": "delta"}])
            wrote = [number for writer in writers for number in writer.result()]
        wrote += range(3000, 3000 + rounds)
        for catalog in (one, two):
            found = catalog.load_table("both.t").scan().to_arrow()["id"].to_pylist()
            assert sorted(found) == sorted(wrote)
        # A name that one server takes is taken at the other, whoever is first.
        made = []
        for number in range(rounds):
            with ThreadPoolExecutor(2) as pool:
                tries = [
                    pool.submit(c.create_table, f"both.race{number}", rows((0, "")).schema)
                    for c in (one, two)
                ]
                failures = [one.exception() for one in tries]
            made.append(failures.count(None))
            assert all(f is None or isinstance(f, TableAlreadyExistsError) for f in failures)
        assert made == [1] * rounds
        one.drop_table("both.t")
        with pytest.raises(NoSuchTableError):
            two.load_table("both.t")


def test_a_client_that_sends_its_headers_slowly_is_cut_off(address: str) -> None:
    port = int(address.rpartition(":")[2])
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
        connection.settimeout(30)
        while connection.recv(1000):
            pass
    assert 5 < time.monotonic() - begin < 25
    answer = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    answer.request("GET", "/health")
    assert answer.getresponse().status == 200
    answer.close()


def test_bytes_that_are_no_request_leave_the_server_alive(address: str) -> None:
    port = int(address.rpartition(":")[2])
    post = b"POST /v1/lake/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    for garbage in (
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        post + b"Content-Length: -1\r\n\r\n",
        post + b"Content-Length: 99999999999\r\n\r\n",
        b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /v1/%zz/%ff HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        post + b"Content-Length: 100\r\n\r\n{",
        post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
        post + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{}",
    ):
        with socket.create_connection(("127.0.0.1", port), 10) as connection:
            connection.settimeout(10)
            try:
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                status = connection.recv(100).split(b" ")[1:2]
            except OSError:
                continue
            assert status == [] or status[0].startswith(b"4"), garbage[:60]


def test_a_client_whose_body_is_too_large_gets_its_answer(address: str) -> None:
    connection = http.client.HTTPConnection(address.rpartition("/")[2], timeout=60)
    connection.request("POST", "/v1/lake/namespaces", b" " * (33 << 20))
    answer = connection.getresponse()
    assert (answer.status, b"too large" in answer.read()) == (400, True)
    connection.close()


def test_the_server_answers_what_runs_and_stops(tmp_path: Path) -> None:
    with rest_server(tmp_path, "--workers", "2") as address:
        catalog = RestCatalog("c", uri=address, warehouse="lake")
        catalog.create_namespace("n")
        catalog.create_table("n.t", rows((0, "")).schema).append(rows((1, "a")))
        begin = time.monotonic()
    assert time.monotonic() - begin < 15
    text = (tmp_path / "server.log").read_text()
    assert "Traceback" not in text
    assert "POST /v1/lake/namespaces/n/tables/t" in text
    with rest_server(tmp_path) as address:
        catalog = RestCatalog("c", uri=address, warehouse="lake")
        agree(catalog, "n.t", [{"id": 1, "name": "a"}])


def test_workers_end_with_a_server_that_is_killed(tmp_path: Path) -> None:
    with catalog_server(tmp_path) as server:
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        until = time.monotonic() + 20
        while accepts(server.port) and time.monotonic() < until:
            time.sleep(0.1)
        assert not accepts(server.port)
        server.start()
