"""Clients, twinlake and two servers that are killed: nothing is lost, doubled or falsely said."""

from __future__ import annotations

import random
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.not_run import not_run
from tests.support.processes.rest_writers import (
    COLUMNS,
    RestWriter,
    SparkSessionWriter,
    change_through_servers,
    check_notes,
    run_writer,
)
from tests.support.processes.writers import spawn
from tests.support.rest_clients.clients import (
    CatalogAddress,
    PyIceberg,
    duckdb_on_catalog,
    spark_on_catalog,
)
from tests.support.scale import is_full_scale, scale
from tests.support.servers.catalog import WAREHOUSE, CatalogServer
from tests.support.servers.fault_proxy import COMMIT_FAULTS, FaultProxy
from twinlake import Table

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tests.support.servers.s3 import S3Server

_SECONDS = scale(4, 60)
_PAUSE = scale(1, 3)
_KILLS = scale(2, 10)
_MOST_SECONDS = 180
_PATIENCE = 20
_WRITERS = ("PyIceberg", "PyIceberg", "DuckDB", "twinlake", "twinlake")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[CatalogServer]]:
    """Two processes on one database and one warehouse."""
    with ExitStack() as stack:
        found = [_server(tmp_path, number) for number in range(2)]
        for server in found:
            stack.callback(server.stop)
            server.start()
        yield found


def _server(folder: Path, number: int, **more: Any) -> CatalogServer:
    return CatalogServer(folder=folder, name=f"server-{number}", **more)


def made(server: CatalogServer, name: str = "n.t") -> str:
    """A new table of the catalog; returns its location."""
    catalog = server.address.pyiceberg()
    catalog.create_namespace("n")
    PyIceberg(catalog, Path(), name).create(COLUMNS)
    location: str = catalog.load_table(name).location()
    return location.removeprefix("file://")


def writers_of(
    servers: list[CatalogServer], location: str, folder: Path, **more: Any
) -> list[RestWriter]:
    return [
        RestWriter(
            kind=kind,
            name=f"{kind}-{number}",
            number=number,
            servers=tuple(server.url for server in servers),
            warehouse=WAREHOUSE,
            table="n.t",
            folder=location,
            notes=str(folder),
            until=str(folder / "stop"),
            **more,
        )
        for number, kind in enumerate(_WRITERS, 1)
    ]


def killing(servers: list[CatalogServer], writers: list[RestWriter]) -> int:
    """Kill one server after the other and start it again; returns how often.

    Between two kills some client has got a commit through, however slow the machine is.
    """
    dice, kills, start = random.Random(1), 0, time.monotonic()
    clients = [writer for writer in writers if writer.kind != "twinlake"]
    while (lasted := time.monotonic() - start) < _MOST_SECONDS:
        enough = lasted > _SECONDS and kills >= _KILLS
        if enough and all(map(_commits, writers)):
            break
        before, patience = sum(map(_commits, clients)), time.monotonic() + _PATIENCE
        time.sleep(dice.uniform(0.3, 1.0) * _PAUSE)
        while sum(map(_commits, clients)) == before and time.monotonic() < patience:
            time.sleep(0.05)
        time.sleep(dice.uniform(0, 0.2))
        victim = servers[kills % len(servers)]
        victim.kill()
        victim.start()
        kills += 1
    return kills


def _commits(writer: RestWriter) -> int:
    """How many of its commits a writer knows of."""
    return writer.journal.read_text().count('"said": "done"') if writer.journal.exists() else 0


def run(writers: list[RestWriter], servers: list[CatalogServer], stop: Path) -> int:
    """Let the writers work while servers die."""
    processes = [spawn(change_through_servers, writer) for writer in writers]
    try:
        deadline = time.monotonic() + 60
        while not all(writer.journal.exists() for writer in writers):
            assert time.monotonic() < deadline, "the writers did not start"
            time.sleep(0.05)
        kills = killing(servers, writers)
    finally:
        stop.touch()
        for process in processes:
            process.join(60)
            if process.is_alive():
                process.kill()
                process.join()
    assert all(process.exitcode == 0 for process in processes)
    return kills


def check(table: Table, servers: list[CatalogServer], writers: list[RestWriter]) -> Counter[str]:
    """The rows as twinlake and PyIceberg hold them against what every writer was told."""
    rows = table.to_arrow().to_pylist()
    told = check_notes(writers, rows)
    for server in servers:
        assert "Traceback" not in server.log.read_text(errors="replace")
    assert [commit.version for commit in table.history()] == list(range(table.version, -1, -1))
    for kind in {writer.kind for writer in writers}:
        assert told[f"{kind} append done"], told
    return told


def test_servers_that_are_killed(tmp_path: Path, servers: list[CatalogServer]) -> None:
    if isinstance(why := duckdb_on_catalog(servers[0].address), str):
        not_run(why, required_by="TWINLAKE_REQUIRE_INTEROP")
    why.close()
    location = made(servers[0])
    writers = writers_of(servers, location, tmp_path)

    kills = run(writers, servers, tmp_path / "stop")

    table = Table.open(location)
    told = check(table, servers, writers)
    assert kills >= _KILLS, told
    seen = PyIceberg(servers[1].address.pyiceberg(), Path(), "n.t").rows()
    check_notes(writers, seen)
    report = table.verify_twin(rows=is_full_scale())
    assert report.agrees, report.findings[:3]


@pytest.mark.skipif(not is_full_scale(), reason="long: run with TWINLAKE_SCALE=full")
def test_servers_that_are_killed_with_iceberg_spark(
    tmp_path: Path, servers: list[CatalogServer], delta_spark: SparkSession
) -> None:
    location = made(servers[0])
    writers = writers_of(servers, location, tmp_path)
    spark = RestWriter(
        kind="Iceberg Spark",
        name="spark",
        number=len(writers) + 1,
        servers=tuple(server.url for server in servers),
        warehouse=WAREHOUSE,
        table="n.t",
        folder=location,
        notes=str(tmp_path),
        until=str(tmp_path / "stop"),
    )
    lakes = {
        url: spark_on_catalog(delta_spark, CatalogAddress(url=url, warehouse=WAREHOUSE))
        for url in spark.servers
    }
    thread = threading.Thread(
        target=run_writer,
        args=(spark, lambda writer, url: SparkSessionWriter(lakes, url, writer.table)),
    )
    thread.start()
    try:
        run(writers, servers, tmp_path / "stop")
    finally:
        (tmp_path / "stop").touch()
        thread.join(120)
    assert not thread.is_alive()

    table = Table.open(location)
    check(table, servers, [*writers, spark])
    theirs = delta_spark.read.format("delta").load(location).toArrow().to_pylist()
    check_notes([*writers, spark], theirs)
    assert table.verify_twin(rows=True).agrees


def test_servers_that_are_killed_on_a_store_that_loses_replies(
    tmp_path: Path, s3_server: S3Server
) -> None:
    """The same on S3: replies to the servers' commits get lost, and they must find out."""
    with FaultProxy(s3_server.port) as proxy, ExitStack() as stack:
        options = s3_server.options_at(proxy.port)
        environment = {
            "AWS_ENDPOINT": options["endpoint"],
            "AWS_ACCESS_KEY_ID": options["access_key_id"],
            "AWS_SECRET_ACCESS_KEY": options["secret_access_key"],
            "AWS_REGION": options["region"],
            "AWS_ALLOW_HTTP": "true",
        }
        warehouse = s3_server.url(f"rest-{tmp_path.name}")
        servers = [
            _server(tmp_path, number, warehouse=warehouse, environment=environment)
            for number in range(2)
        ]
        for server in servers:
            stack.callback(server.stop)
            server.start()
        direct = s3_server.options
        pyiceberg = {
            "endpoint": direct["endpoint"],
            "access-key-id": direct["access_key_id"],
            "secret-access-key": direct["secret_access_key"],
            "region": direct["region"],
        }
        catalog = servers[0].address.pyiceberg(**{f"s3.{k}": v for k, v in pyiceberg.items()})
        catalog.create_namespace("n")
        PyIceberg(catalog, Path(), "n.t").create(COLUMNS)
        location: str = catalog.load_table("n.t").location()
        secret = (
            "CREATE SECRET (TYPE s3, KEY_ID '{access_key_id}', SECRET '{secret_access_key}', "
            "REGION '{region}', ENDPOINT '{host}', URL_STYLE 'path', USE_SSL false)"
        ).format(**direct, host=direct["endpoint"].removeprefix("http://"))
        more = {"pyiceberg": pyiceberg, "twinlake": direct, "duckdb": [secret]}
        writers = writers_of(servers, location, tmp_path, options=more)
        faults = threading.Thread(target=_lose_replies, args=(proxy, tmp_path / "stop"))
        faults.start()
        try:
            run(writers, servers, tmp_path / "stop")
        finally:
            (tmp_path / "stop").touch()
            faults.join(30)
        proxy.disarm()

        table = Table.open(location, options=direct)
        check(table, servers, writers)
        assert table.verify_twin().agrees


def _lose_replies(proxy: FaultProxy, stop: Path) -> None:
    """Now and then the reply to a commit is lost, or an error that says nothing."""
    dice = random.Random(2)
    while not stop.exists():
        proxy.disarm()
        proxy.arm(dice.choice(COMMIT_FAULTS), path="_delta_log")
        time.sleep(dice.uniform(0.1, 0.4))
